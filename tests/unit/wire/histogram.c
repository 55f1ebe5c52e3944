/* Buckets of the histogram: no gap, no overlap, the promised precision; percentiles against
 * sorting. */
#include "wire/histogram.h"
#include "wire/histogram.c"
#include "t.h"

#include <stdlib.h>

T_TEST(buckets_join_without_gap)
{
    for (size_t i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        uint64_t last = bucket_last(i);
        T_EQ(histogram__index(last), i);
        T_EQ(histogram__index(last + 1), i + 1);
    }
    T_OK(bucket_last(HISTOGRAM_BUCKETS - 1) == UINT64_MAX);
    T_EQ(histogram__index(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

T_TEST(small_values_are_exact)
{
    for (uint64_t v = 0; v < 256; v++)
        T_EQ(bucket_last(histogram__index(v)), v);
}

T_TEST(large_values_are_near)
{
    for (int i = 0; i < 100000; i++) {
        uint64_t v = t_random() >> t_random_below(64);
        uint64_t last = bucket_last(histogram__index(v));
        T_OK(last >= v && last - v <= v / 128, "value %" PRIu64 ", bucket ends at %" PRIu64, v,
             last);
    }
}

T_TEST(empty)
{
    static struct histogram h;
    T_EQ(histogram_at(&h, 500000), 0);
    static struct histogram other;
    histogram_merge(&h, &other);
    T_EQ(h.total, 0);
}

T_TEST(one_value)
{
    static struct histogram h;
    histogram_reset(&h);
    histogram_add(&h, 1000003, 1);
    static const uint32_t at[] = { 0, 1, 500000, 999000, 1000000 };
    for (size_t i = 0; i < T_LEN(at); i++)
        T_EQ(histogram_at(&h, at[i]), 1000003);
}

T_TEST(ranks)
{
    static struct histogram h;
    histogram_reset(&h);
    for (uint64_t v = 1; v <= 200; v++) /* below 256, so exact */
        histogram_add(&h, v, 5);
    static const struct {
        uint32_t at;
        uint64_t want;
    } rows[] = { { 0, 1 },        { 1, 1 },        { 5000, 1 },     { 5001, 2 },
                 { 500000, 100 }, { 500001, 101 }, { 990000, 198 }, { 1000000, 200 } };
    for (size_t i = 0; i < T_LEN(rows); i++)
        T_EQ(histogram_at(&h, rows[i].at), rows[i].want, "at %" PRIu32, rows[i].at);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

T_TEST(percentiles_of_merged_parts_against_sorting)
{
    enum { N = 20000 };
    static struct histogram part[3], all;
    static uint64_t v[N];
    histogram_reset(&all);
    for (size_t i = 0; i < 3; i++)
        histogram_reset(&part[i]);
    for (size_t i = 0; i < N; i++) {
        v[i] = t_random() >> (20 + t_random_below(40));
        histogram_add(&part[i % 3], v[i], 1);
    }
    for (size_t i = 0; i < 3; i++)
        histogram_merge(&all, &part[i]);
    qsort(v, N, sizeof v[0], by_value);
    T_EQ(all.total, N);
    T_OK(all.min == v[0] && all.max == v[N - 1]);
    static const uint32_t at[] = { 100, 250000, 500000, 900000, 990000, 999000, 1000000 };
    for (size_t i = 0; i < T_LEN(at); i++) {
        uint64_t rank = ((uint64_t)N * at[i] + 999999) / 1000000;
        uint64_t want = v[rank - 1], got = histogram_at(&all, at[i]);
        T_OK(got >= want && got - want <= want / 128, "at %" PRIu32 ": %" PRIu64 " for %" PRIu64,
             at[i], got, want);
    }
}

T_TEST(huge_counts_do_not_overflow)
{
    static struct histogram h;
    histogram_reset(&h);
    histogram_add(&h, 1, UINT64_C(1) << 61);
    histogram_add(&h, 2, UINT64_C(1) << 61);
    T_EQ(histogram_at(&h, 500000), 1);
    T_EQ(histogram_at(&h, 500001), 2);
}
