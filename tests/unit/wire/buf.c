/* Buffers: growth up to the bound, failure that stays, numbers. */
#include "t.h"

#include "wire/buf.h"

T_TEST(buf_grows_to_its_bound_and_stays_failed)
{
    struct buf b;
    buf_init(&b, 1000);
    for (int i = 0; i < 100; i++)
        buf_add(&b, "0123456789", 10);
    T_EQ(b.len, 1000);
    T_OK(!b.failed);
    buf_add(&b, "x", 1);
    T_OK(b.failed);
    T_EQ(b.len, 1000);
    T_OK(b.cap <= b.max);
    buf_consume(&b, 995);
    T_OK(b.len == 5 && memcmp(b.p, "56789", 5) == 0);
    buf_done(&b);
    T_OK(!b.failed && !b.p && b.max == 1000);
    buf_done(&b);
}

T_TEST(buf_writes_numbers)
{
    static const struct {
        int64_t v;
        const char *text;
    } some[] = { { 0, "0" },
                 { 9, "9" },
                 { 10, "10" },
                 { -1, "-1" },
                 { INT64_MAX, "9223372036854775807" },
                 { INT64_MIN, "-9223372036854775808" } };
    struct buf b;
    buf_init(&b, 1000);
    for (size_t i = 0; i < T_LEN(some); i++) {
        b.len = 0;
        buf_add_i64(&b, some[i].v);
        buf_add(&b, "", 1);
        T_STR(b.p, some[i].text);
    }
    b.len = 0;
    buf_add_u64(&b, UINT64_MAX);
    buf_addf(&b, "/%d%s", 7, "x");
    buf_add(&b, "", 1);
    T_STR(b.p, "18446744073709551615/7x");
    buf_done(&b);
}

T_TEST(buf_refuses_absurd_sizes)
{
    struct buf b;
    buf_init(&b, SIZE_MAX);
    buf_add(&b, "x", 1);
    T_OK(!buf_room(&b, SIZE_MAX));
    T_OK(b.failed);
    buf_done(&b);
}
