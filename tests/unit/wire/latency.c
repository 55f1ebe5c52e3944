/* Latencies in doubling buckets: bounds are inclusive, and nothing is lost at either end. */
#include "t.h"

#include "wire/latency.h"

T_TEST(latency_buckets)
{
    T_EQ(latency_bucket(0), 0u);
    for (size_t i = 0; i < LATENCY_BOUNDS; i++) {
        uint64_t ns = latency_bound_us(i) * 1000;
        T_EQ(latency_bucket(ns), i, "at its bound");
        T_EQ(latency_bucket(ns + 1), i + 1, "above bound %zu", i);
    }
    T_EQ(latency_bound_us(0), 16u);
    T_EQ(latency_bucket(UINT64_MAX), (size_t)LATENCY_BOUNDS);
}

T_TEST(latency_sums)
{
    struct latency a = { 0 }, b = { 0 };
    latency_add(&a, 1000, 3);
    latency_add(&a, 20000, 1);
    latency_add(&b, 30000, 2);
    latency_merge(&b, &a);
    T_EQ(b.sum_ns, 83000u);
    T_EQ(b.bucket[0], 3u);
    T_EQ(b.bucket[1], 3u);
}
