/* When a writer commits, and how much. */
#include "t.h"

#include "auditlog/pace.h"

T_TEST(batch_fits_by_rows_and_bytes)
{
    const struct batch_limits l = { 10, 100 };
    T_OK(batch_fits(&l, 0, 0, 1000, 100000)); /* the first one always */
    T_OK(batch_fits(&l, 9, 0, 1, 100));
    T_OK(!batch_fits(&l, 9, 0, 2, 1));
    T_OK(!batch_fits(&l, 10, 0, 1, 1));
    T_OK(!batch_fits(&l, 11, 0, 1, 1)); /* after a large first one */
    T_OK(batch_fits(&l, 1, 99, 1, 1));
    T_OK(!batch_fits(&l, 1, 100, 1, 1));
    T_OK(!batch_fits(&l, 1, 1, 1, SIZE_MAX));
    T_OK(!batch_fits(&l, 1, 1, SIZE_MAX, 1));
}

T_TEST(pace_between_commits)
{
    T_EQ(pace_wait_ns(0, 2000, 5), 0);
    T_EQ(pace_wait_ns(1000, 2000, 1000), 2000);
    T_EQ(pace_wait_ns(1000, 2000, 2999), 1);
    T_EQ(pace_wait_ns(1000, 2000, 3000), 0);
    T_EQ(pace_wait_ns(1000, 0, 1000), 0);
    T_EQ(pace_wait_ns(1000, 2000, 999), 0); /* a clock that went back waits for nothing */
}

T_TEST(pace_backoff_doubles)
{
    static const uint32_t want[] = { 0, 50, 100, 200, 400, 800, 1000, 1000, 1000 };
    for (uint32_t i = 0; i < T_LEN(want); i++)
        T_EQ(pace_backoff_ms(i), want[i], "%u", i);
    T_EQ(pace_backoff_ms(UINT32_MAX), 1000);
}
