/* Every notation of firn convert reads what it wrote, 64 and 128 bits; ordered ones keep the order
 * of the values. */
#include "cli/encoding.h"
#include "t.h"

static struct encoding_value any(unsigned bits)
{
    struct encoding_value v = { { 0, 0 }, bits };
    v.v.lo = t_random() >> t_random_below(64);
    if (bits == 128)
        v.v.hi = t_random() >> t_random_below(64);
    return v;
}

T_TEST(reads_what_it_wrote)
{
    size_t n;
    const struct encoding *e = encoding_list(&n);
    for (size_t i = 0; i < n; i++)
        for (uint64_t round = 0; round < t_scale(2000); round++) {
            struct encoding_value in = any(round % 2 ? 64 : 128), out = { { 0, 0 }, 0 };
            char text[ENCODING_TEXT_BUF];
            struct firn_diag d = { 0, "" };
            int r = encoding_write(&e[i], in, text);
            if (r != 0) {
                T_EQ(r, FIRN_ERANGE, "%s", e[i].name);
                T_OK(!e[i].codec && in.bits == 64, "%s has no form of 64 bits", e[i].name);
                continue;
            }
            T_EQ(encoding_read(&e[i], in.bits, text, strlen(text), &out, &d), 0, "%s '%s': %s",
                 e[i].name, text, d.text);
            T_OK(out.v.hi == in.v.hi && out.v.lo == in.v.lo && out.bits == in.bits, "%s '%s'",
                 e[i].name, text);
        }
}

T_TEST(order)
{
    size_t n;
    const struct encoding *e = encoding_list(&n);
    for (size_t i = 0; i < n; i++)
        for (uint64_t round = 0; e[i].ordered && round < t_scale(2000); round++) {
            struct encoding_value a = any(128), b = any(128);
            char x[ENCODING_TEXT_BUF], y[ENCODING_TEXT_BUF];
            T_EQ(encoding_write(&e[i], a, x), 0);
            T_EQ(encoding_write(&e[i], b, y), 0);
            bool below = a.v.hi != b.v.hi ? a.v.hi < b.v.hi : a.v.lo < b.v.lo;
            T_EQ(strcmp(x, y) < 0, below, "%s: %s, %s", e[i].name, x, y);
        }
}

T_TEST(names)
{
    size_t n;
    const struct encoding *e = encoding_list(&n);
    for (size_t i = 0; i < n; i++)
        T_OK(encoding_find(e[i].name) == &e[i], "%s", e[i].name);
    T_OK(encoding_find("") == NULL);
    T_OK(encoding_find("base63") == NULL);
}
