/* The log in memory against a plain array. */
#include "raft/core/core_in.h"
#include "t.h"

T_TEST(log_like_an_array)
{
    enum { MAX = 4000 };
    static uint64_t term[MAX + 1];
    struct log l = { 0 };
    uint64_t last = 0, base = 0;
    for (unsigned step = 0; step < 20000; step++) {
        uint64_t what = t_random_below(100);
        if (what < 80 && last < MAX) {
            char byte = (char)last;
            term[last + 1] = (last ? term[last] : 1) + (t_random_below(10) == 0);
            last++;
            T_EQ(log_append(&l, term[last], ENTRY_DATA, &byte, 1), 0);
        } else if (what < 90 && last > base) {
            last -= t_random_below(last - base < 20 ? last - base : 20);
            log_truncate(&l, last + 1);
        } else if (what < 99 && last > base) {
            base += t_random_below(last - base < 20 ? last - base : 20);
            log_trim(&l, base);
        } else if (last >= MAX) {
            break;
        }
        T_EQ(log_last(&l), last);
        T_EQ(l.base, base);
        for (uint64_t i = base; i <= last; i += 1 + t_random_below(50))
            T_OK(log_has(&l, i, i ? term[i] : 0) && !log_has(&l, i, 1 << 20));
        T_OK(!log_has(&l, last + 1, 1));
        if (last > base)
            T_EQ(*log_at(&l, last)->bytes, (char)(last - 1));
    }
    log_reset(&l, 77, 5);
    T_EQ(log_last(&l), 77);
    T_OK(log_has(&l, 77, 5));
    log_done(&l);
}
