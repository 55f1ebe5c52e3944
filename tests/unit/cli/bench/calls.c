/* Threads that call: counts, order, uniqueness, errors, and latency from when a call was due. */
#include "cli/bench/calls.c"
#include "wire/histogram.c"
#include "wire/http_response.c"
#include "cli/id_body.c"
#include "cli/bench/load.c"
#include "cli/bench/load_worker.c"
#include "cli/verify/sortfile.c"
#include "t.h"

static _Atomic uint64_t counter;
static struct load_result r;

static int count(void *user, uint64_t *out_id, char why[240])
{
    (void)user, (void)why;
    *out_id = atomic_fetch_add(&counter, 1) + 1;
    return 0;
}

static int sometimes(void *user, uint64_t *out_id, char why[240])
{
    count(user, out_id, why);
    if (*out_id % 4)
        return 0;
    snprintf(why, 240, "not now");
    return FIRN_EAGAIN;
}

static int same(void *user, uint64_t *out_id, char why[240])
{
    (void)user, (void)why;
    *out_id = 7;
    return 0;
}

static int slow(void *user, uint64_t *out_id, char why[240])
{
    nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
    return count(user, out_id, why);
}

static struct load_plan plan(void)
{
    return (struct load_plan){
        .threads = 2, .run_ns = 20 * NS_PER_S, .requests_max = 20001, .check = true
    };
}

T_TEST(every_call_is_counted)
{
    struct load_plan p = plan();
    T_EQ(calls_run(&p, count, NULL, &r), 0);
    T_EQ(r.requests, 20001);
    T_EQ(r.latency.total, 20001);
    T_EQ(r.ids, 20001);
    T_EQ(r.distinct, 20001);
    T_EQ(r.falls + r.errors + r.unchecked, 0);
    T_OK(r.elapsed_ns > 0);
    p.ids_max = 1998;
    T_EQ(calls_run(&p, count, NULL, &r), 0);
    T_EQ(r.ids, 2000);
    T_EQ(r.unchecked, 18001);
}

T_TEST(errors_and_repeats_are_seen)
{
    struct load_plan p = plan();
    atomic_store(&counter, 0);
    T_EQ(calls_run(&p, sometimes, NULL, &r), 0);
    T_EQ(r.requests, 15001);
    T_EQ(r.errors, 5000);
    T_EQ(r.distinct, 15001);
    T_OK(r.sample_len == 7 && memcmp(r.sample, "not now", 7) == 0);
    T_EQ(calls_run(&p, same, NULL, &r), 0);
    T_EQ(r.distinct, 1);
    T_EQ(r.repeated, 7);
    T_EQ(r.falls, 19999);
}

T_TEST(open_loop_counts_from_when_due)
{
    struct load_plan p = plan();
    p.threads = 1;
    p.rate = 100; /* due each 10 ms, and each takes 100 ms: the tenth has waited for nine others */
    p.requests_max = 10;
    T_EQ(calls_run(&p, slow, NULL, &r), 0);
    T_EQ(r.requests, 10);
    T_OK(r.latency.max >= 900000000, "%" PRIu64, r.latency.max);
}
