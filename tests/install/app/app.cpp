/* What a user of firn/firn.hpp might write; valid as C++17 and C++20. */
#include <cstdlib>
#include <iostream>
#include <set>
#include <sstream>
#include <type_traits>
#include <unordered_set>

#include <firn/firn.hpp>

#define CHECK(cond)                                                       \
    do {                                                                  \
        if (!(cond)) {                                                    \
            std::cout << "failed: " #cond ", line " << __LINE__ << "\n";  \
            std::exit(1);                                                 \
        }                                                                 \
    } while (0)

static_assert(!std::is_copy_constructible<firn::generator>::value, "an owner");
static_assert(std::is_nothrow_move_constructible<firn::generator>::value, "it moves");
static_assert(sizeof(firn::uuid) == 16 && std::is_trivially_copyable<firn::uuid>::value, "a value");

template <class Id> static void values(Id a, Id b)
{
    CHECK(a < b && b > a && a <= b && b >= a && a != b && !(a == b));
#if defined(__cpp_impl_three_way_comparison)
    CHECK((a <=> b) < 0);
#endif
    CHECK(Id::parse(a.str()).value() == a);
    CHECK(!Id::parse("no ID"));
    CHECK(!Id::parse(std::string_view()));
    CHECK(Id().is_nil() && !a.is_nil());
    std::unordered_set<Id> hashed{ a, b, a };
    std::set<Id> ordered{ b, a };
    CHECK(hashed.size() == 2 && *ordered.begin() == a);
    std::ostringstream out;
    out << a;
    CHECK(out.str() == a.str());
}

static int code_of(void (*run)())
{
    try {
        run();
    } catch (const firn::error &e) {
        CHECK(*e.what() != 0);
        return e.code();
    }
    return 0;
}

int main()
{
    firn::uuid first = firn::uuid::v7();
    values(first, firn::uuid::v7());
    firn::ulid one = firn::ulid::now();
    values(one, firn::ulid::now());
    CHECK(first.version() == 7 && first.unix_ms().value() <= firn_now_ms());
    CHECK(firn::uuid::v4().version() == 4 && !firn::uuid::v4().unix_ms());
    CHECK(firn::uuid::v5(firn_uuid_ns_dns, "www.example.com").str() ==
          "2ed6657d-e927-568b-95e1-2665a8aea6a2");

    firn::generator gen(firn::layout("twitter"), firn::gen_opts(17));
    firn::generator moved = std::move(gen);
    std::uint64_t a = moved.next(), b = moved.next();
    CHECK(a < b && (a >> 12 & 1023) == 17);
    auto some = moved.next_n(100);
    CHECK(!some.empty() && some.front() > b);
    firn::shared_generator shared(firn::layout("firn"), firn::gen_opts(3));
    CHECK(shared.next() < shared.next());
    CHECK(firn::mint("ksuid").next().size() == 27);

    CHECK(code_of([] { firn::layout("nonsense"); }) < 0);
    CHECK(code_of([] { firn::mint m("nonsense"); }) == FIRN_ENOENT);
    CHECK(code_of([] { firn::generator g(firn::layout("firn"), firn_gen_opts{}); }) == FIRN_EINVAL);
    unsetenv("FIRN_WORKER_ID");
    CHECK(code_of([] { firn::snowflake_now(); }) == FIRN_ENOSLOT);
    setenv("FIRN_WORKER_ID", "5", 1);
    CHECK(firn::snowflake_now() < firn::snowflake_now());

    CHECK(std::string(firn_version()) == FIRN_APP_VERSION);
    std::cout << "works\n";
}
