/* Arrays of PostgreSQL in binary form, byte for byte. */
#include "t.h"

#include "auditlog/pg_array.h"

static struct buf made(void)
{
    struct buf b;
    buf_init(&b, 10000);
    return b;
}

#define SAME(b, ...)                                                   \
    do {                                                               \
        static const unsigned char want_[] = { __VA_ARGS__ };          \
        T_EQ((b).len, sizeof want_);                                   \
        for (size_t i_ = 0; i_ < sizeof want_; i_++)                   \
            T_EQ((unsigned char)(b).p[i_], want_[i_], "byte %zu", i_); \
    } while (0)

T_TEST(pg_array_of_texts)
{
    struct buf b = made();
    pg_array_begin(&b, PG_TEXT, 2);
    pg_array_bytes(&b, "ab", 2);
    pg_array_null(&b);
    SAME(b, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 25, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 'a', 'b', 255,
         255, 255, 255);
    buf_done(&b);
}

T_TEST(pg_array_of_numbers_and_times)
{
    struct buf b = made();
    pg_array_begin(&b, PG_INT8, 1);
    pg_array_int8(&b, UINT64_C(0x0102030405060708));
    SAME(b, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 8, 1, 2, 3, 4, 5,
         6, 7, 8);
    T_EQ(pg_read_int8(b.p + 24), INT64_C(0x0102030405060708));
    b.len = 0;
    pg_array_time(&b, INT64_C(946684800000001)); /* a microsecond after 2000-01-01 */
    SAME(b, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1);
    T_EQ(pg_read_time(b.p + 4), INT64_C(946684800000001));
    b.len = 0;
    pg_array_time(&b, 0);
    T_EQ(pg_read_time(b.p + 4), 0);
    buf_done(&b);
}

T_TEST(pg_array_that_is_empty)
{
    struct buf b = made();
    pg_array_begin(&b, PG_TEXT, 0);
    SAME(b, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 25);
    buf_done(&b);
}
