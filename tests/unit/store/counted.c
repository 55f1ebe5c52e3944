/* A store that counts: each call once, by its result; what the inner store answers is not changed.
 */
#include "t.h"

#include "store/counted.h"

T_TEST(store_counts_calls)
{
    struct store_counts n = { 0 };
    struct firn_store *inner, *s;
    struct firn_record rec;
    T_EQ(firn_store_memory_new(&inner), 0);
    T_EQ(store_counted_new(inner, &n, &s), 0);
    T_STR(s->ops->scheme, "memory");
    struct firn_slice key = firn_slice("a", 1), none = firn_slice(NULL, 0);
    struct firn_cas want = { .key = key, .old = none, .value = firn_slice("1", 1) };
    T_EQ(firn_store_read(s, key, true, &rec, NULL), FIRN_ENOENT);
    T_EQ(firn_store_cas(s, &want, NULL), 0);
    T_EQ(firn_store_cas(s, &want, NULL), FIRN_ECONFLICT);
    T_EQ(firn_store_read(s, key, true, &rec, NULL), 0);
    T_EQ(rec.len, 1u);
    T_EQ(n.calls[STORE_READ][STORE_ABSENT], 1u);
    T_EQ(n.calls[STORE_READ][STORE_OK], 1u);
    uint64_t writes = 0, timed = 0;
    for (int i = 0; i < STORE_RESULTS_N; i++)
        writes += n.calls[STORE_WRITE][i];
    for (int i = 0; i <= LATENCY_BOUNDS; i++)
        timed += n.took[STORE_WRITE].bucket[i];
    T_EQ(writes, 2u);
    T_EQ(timed, 2u);
    firn_store_close(s);
}
