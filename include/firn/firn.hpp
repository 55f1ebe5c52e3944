/*
 * firn/firn.hpp - libfirn for C++17: values that compare, hash and print, generators that free
 * themselves, errors as exceptions. All of it is inline over the C functions, which stay usable
 * beside it; their headers say what may be called from which thread.
 *
 *     firn::uuid id = firn::uuid::v7();
 *     std::cout << id.str();
 *     std::unordered_set<firn::uuid> seen{id};
 *     if (auto read = firn::ulid::parse(text)) use(*read);
 */
#ifndef FIRN_FIRN_HPP
#define FIRN_FIRN_HPP

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#if defined(__cpp_impl_three_way_comparison)
#include <compare>
#endif

#include "firn/firn.h"

namespace firn
{

/* A code of firn/error.h; what() is its message, or the detail where a function gave one. */
class error : public std::runtime_error
{
public:
    explicit error(int code) : std::runtime_error(firn_error_message(code)), code_(code) {}
    error(int code, const firn_diag &diag)
        : std::runtime_error(diag.text[0] ? diag.text : firn_error_message(code)), code_(code)
    {
    }
    int code() const noexcept { return code_; }
    const char *name() const noexcept { return firn_error_name(code_); }

private:
    int code_;
};

inline void check(int code)
{
    if (code < 0)
        throw error(code);
}

/* Sixteen bytes in the order of memcmp(), which is the order of the texts. */
template <class Id, class Raw> class id_of_16_bytes
{
public:
    constexpr id_of_16_bytes() noexcept : raw_{} {} /* all zeros: nil */
    constexpr id_of_16_bytes(const Raw &raw) noexcept : raw_(raw) {}
    const Raw &raw() const noexcept { return raw_; }
    const std::uint8_t *data() const noexcept { return raw_.b; }
    static constexpr std::size_t size() noexcept { return sizeof(Raw); }

    friend bool operator==(const Id &a, const Id &b) noexcept { return cmp(a, b) == 0; }
#if defined(__cpp_impl_three_way_comparison)
    friend std::strong_ordering operator<=>(const Id &a, const Id &b) noexcept
    {
        return cmp(a, b) <=> 0;
    }
#else
    friend bool operator!=(const Id &a, const Id &b) noexcept { return cmp(a, b) != 0; }
    friend bool operator<(const Id &a, const Id &b) noexcept { return cmp(a, b) < 0; }
    friend bool operator>(const Id &a, const Id &b) noexcept { return cmp(a, b) > 0; }
    friend bool operator<=(const Id &a, const Id &b) noexcept { return cmp(a, b) <= 0; }
    friend bool operator>=(const Id &a, const Id &b) noexcept { return cmp(a, b) >= 0; }
#endif

    /* Some kinds begin with the time or a version: both halves are mixed into all bits. */
    std::size_t hash() const noexcept
    {
        std::uint64_t high, low;
        std::memcpy(&high, raw_.b, sizeof high);
        std::memcpy(&low, raw_.b + 8, sizeof low);
        std::uint64_t x = (high ^ (low << 32 | low >> 32)) * UINT64_C(0x9e3779b97f4a7c15) + low;
        x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
        return static_cast<std::size_t>(x ^ x >> 32);
    }

protected:
    static int cmp(const Id &a, const Id &b) noexcept
    {
        return std::memcmp(a.data(), b.data(), sizeof(Raw));
    }
    Raw raw_;
};

class uuid : public id_of_16_bytes<uuid, firn_uuid>
{
public:
    using id_of_16_bytes::id_of_16_bytes;

    static uuid v4()
    {
        uuid u;
        firn_uuid_v4(firn_rng_thread(), &u.raw_);
        return u;
    }
    static uuid v7() /* those of one thread rise */
    {
        uuid u;
        check(firn_uuid_v7_now(&u.raw_));
        return u;
    }
    static uuid v5(const uuid &ns, std::string_view name)
    {
        uuid u;
        firn_uuid_v5(&ns.raw_, name.data(), name.size(), &u.raw_);
        return u;
    }
    static std::optional<uuid> parse(std::string_view text) noexcept
    {
        uuid u;
        if (firn_uuid_parse(text.data(), text.size(), &u.raw_) != 0)
            return std::nullopt;
        return u;
    }
    bool is_nil() const noexcept { return firn_uuid_is_nil(&raw_) != 0; }
    int version() const noexcept { return firn_uuid_version(&raw_); } /* negative: none */
    std::optional<std::uint64_t> unix_ms() const noexcept
    {
        std::uint64_t ms;
        if (firn_uuid_unix_ms(&raw_, &ms) != 0)
            return std::nullopt;
        return ms;
    }
    std::string str() const
    {
        char text[FIRN_UUID_TEXT_BUF];
        firn_uuid_format(&raw_, text);
        return std::string(text, FIRN_UUID_TEXT_LEN);
    }
};

class ulid : public id_of_16_bytes<ulid, firn_ulid>
{
public:
    using id_of_16_bytes::id_of_16_bytes;

    static ulid now() /* those of one thread rise */
    {
        ulid u;
        check(firn_ulid_now(&u.raw_));
        return u;
    }
    static std::optional<ulid> parse(std::string_view text) noexcept
    {
        ulid u;
        if (firn_ulid_parse(text.data(), text.size(), &u.raw_) != 0)
            return std::nullopt;
        return u;
    }
    bool is_nil() const noexcept { return firn_ulid_is_nil(&raw_) != 0; }
    std::uint64_t unix_ms() const noexcept { return firn_ulid_unix_ms(&raw_); }
    std::string str() const
    {
        char text[FIRN_ULID_TEXT_BUF];
        firn_ulid_format(&raw_, text);
        return std::string(text, FIRN_ULID_TEXT_LEN);
    }
};

template <class Stream> Stream &operator<<(Stream &out, const uuid &id)
{
    out << id.str();
    return out;
}

template <class Stream> Stream &operator<<(Stream &out, const ulid &id)
{
    out << id.str();
    return out;
}

/* A preset's name or a layout's text. */
inline firn_layout layout(std::string_view text)
{
    firn_layout l;
    firn_diag diag = {0, {0}};
    int r = firn_layout_parse(text.data(), text.size(), 0, &l, &diag);
    if (r != 0)
        throw error(r, diag);
    return l;
}

/* The options with their size set and a slot, which no other process may use. */
inline firn_gen_opts gen_opts(std::uint32_t slot)
{
    firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    opts.slot = slot;
    return opts;
}

/* struct firn_gen: for one thread. It moves, it is not copied. */
class generator
{
public:
    generator(const firn_layout &l, const firn_gen_opts &opts) : gen_(make(l, opts)) {}

    std::uint64_t next()
    {
        std::uint64_t id;
        check(firn_gen_next(gen_.get(), &id));
        return id;
    }
    int try_next(std::uint64_t &id) noexcept { return firn_gen_next(gen_.get(), &id); }
    std::vector<std::uint64_t> next_n(std::size_t n) /* up to n, at least one */
    {
        std::vector<std::uint64_t> ids(n);
        check(firn_gen_fill(gen_.get(), ids.data(), n, &n));
        ids.resize(n);
        return ids;
    }
    firn_gen *get() const noexcept { return gen_.get(); }

private:
    struct free_gen {
        void operator()(firn_gen *g) const noexcept { firn_gen_free(g); }
    };
    static firn_gen *make(const firn_layout &l, const firn_gen_opts &opts)
    {
        firn_gen *g = nullptr;
        check(firn_gen_new(&l, &opts, &g));
        return g;
    }
    std::unique_ptr<firn_gen, free_gen> gen_;
};

/* struct firn_shared: for any number of threads. */
class shared_generator
{
public:
    shared_generator(const firn_layout &l, const firn_gen_opts &opts) : gen_(make(l, opts)) {}

    std::uint64_t next()
    {
        std::uint64_t id;
        check(firn_shared_next(gen_.get(), &id));
        return id;
    }
    int try_next(std::uint64_t &id) noexcept { return firn_shared_next(gen_.get(), &id); }
    firn_shared *get() const noexcept { return gen_.get(); }

private:
    struct free_shared {
        void operator()(firn_shared *g) const noexcept { firn_shared_free(g); }
    };
    static firn_shared *make(const firn_layout &l, const firn_gen_opts &opts)
    {
        firn_shared *g = nullptr;
        check(firn_shared_new(&l, &opts, &g));
        return g;
    }
    std::unique_ptr<firn_shared, free_shared> gen_;
};

/* The process's own Snowflake generator: FIRN_WORKER_ID, or firn_snowflake_setup(). */
inline std::uint64_t snowflake_now()
{
    std::uint64_t id;
    check(firn_snowflake_now(&id));
    return id;
}

/* IDs of any kind by name, as text. One thread at a time. */
class mint
{
public:
    explicit mint(std::string_view kind, const firn_mint_opts &opts = defaults())
        : mint_(make(kind, opts))
    {
    }
    static firn_mint_opts defaults()
    {
        firn_mint_opts opts = FIRN_MINT_OPTS_INIT;
        return opts;
    }
    std::string next()
    {
        char text[FIRN_MINT_TEXT_BUF];
        std::size_t len;
        check(firn_mint_text(mint_.get(), text, &len));
        return std::string(text, len);
    }
    firn_mint *get() const noexcept { return mint_.get(); }

private:
    struct free_mint {
        void operator()(firn_mint *m) const noexcept { firn_mint_free(m); }
    };
    static firn_mint *make(std::string_view kind, const firn_mint_opts &opts)
    {
        firn_mint *m = nullptr;
        firn_diag diag = {0, {0}};
        const firn_kind *k = firn_kind_find(kind.data(), kind.size());
        int r = k ? firn_mint_new(k, &opts, &m, &diag) : static_cast<int>(FIRN_ENOENT);
        if (r != 0)
            throw error(r, diag);
        return m;
    }
    std::unique_ptr<firn_mint, free_mint> mint_;
};

} /* namespace firn */

namespace std
{
template <> struct hash<firn::uuid> {
    size_t operator()(const firn::uuid &id) const noexcept { return id.hash(); }
};
template <> struct hash<firn::ulid> {
    size_t operator()(const firn::ulid &id) const noexcept { return id.hash(); }
};
} /* namespace std */

#endif
