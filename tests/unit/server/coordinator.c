/* The coordinator's thread: jobs in and back, a store that is away or fails, and the end with jobs
 * that still wait. */
#include "coordinator_world.h"

#include "firn/layout.h"

#include <sched.h>

static struct board board;
static struct coordinator *c;
static atomic_int away; /* opening the store fails so many times */

static int open_shaky(void *user, uint32_t timeout_ms, struct firn_store **out, struct firn_diag *d)
{
    (void)user, (void)timeout_ms;
    if (shaky_hit(&away)) {
        snprintf(d->text, sizeof d->text, "no route to the store");
        return FIRN_EIO;
    }
    *out = &shaky.base;
    return 0;
}

static int start(const char *url)
{
    static char layout[FIRN_LAYOUT_TEXT_BUF];
    static _Atomic uint64_t last;
    static _Atomic uint64_t *const lasts[] = { &last };
    struct firn_layout l;
    struct firn_diag d = { 0 };
    struct coordinator_opts o = { .store = url,
                                  .open_store = open_shaky,
                                  .first = { .start = 100001 },
                                  .addresses = "a,b,c",
                                  .wait_ms = 600000,
                                  .last = lasts,
                                  .last_n = 1 };
    shaky_open();
    returned.n = 0;
    board_init(&board);
    T_EQ(firn_layout_parse("firn", 4, 0, &l, &d), 0);
    o.lease = (struct lease_params){ .name = "test", .init = true };
    lease_params_of(&l, &o.lease, layout);
    return coordinator_start(&o, &board, &c, &d);
}

static void stop(void)
{
    coordinator_stop(c, 0);
    board_done(&board);
    T_OK(!shaky.inner); /* closed */
}

static void submit(struct job *j, size_t n)
{
    coordinator_submit(c, chain(j, n), &j[n - 1]);
}

T_TEST(coordinator_answers_jobs_and_makes_the_default_sequence)
{
    struct job j[4];
    T_EQ(start("memory:"), 0);
    job_init(&j[0], JOB_TAKE, DEFAULT_SEQUENCE, 2);
    job_init(&j[1], JOB_CREATE, "b", 0)->spec.start = 7;
    job_init(&j[2], JOB_TAKE, "b", 1);
    job_init(&j[3], JOB_LIST, "", 10);
    submit(j, 4);
    await_returned(4);
    T_TOOK(&j[0], 100001, 2);
    T_EQ(j[1].result, 0, "%s", j[1].diag.text);
    T_TOOK(&j[2], 7, 1);
    T_EQ(j[3].list_n, 2);
    T_STR(j[3].list[0].name, "b");
    T_EQ(j[3].list[0].record.next, 8);
    free(j[3].list);
    job_init(&j[0], JOB_CREATE, "b", 0);
    submit(j, 1);
    await_returned(5);
    T_EQ(j[0].result, FIRN_ECONFLICT);
    T_EQ(j[0].record.start, 7); /* the one that exists */
    stop();
}

T_TEST(coordinator_many_small_submits_keep_their_order)
{
    enum { N = 500 };
    static struct job j[N];
    uint64_t next = 1;
    T_EQ(start("memory:"), 0);
    job_init(&j[0], JOB_CREATE, "a", 0);
    submit(j, 1);
    await_returned(1);
    for (int i = 0; i < N; i++) {
        job_init(&j[i], JOB_TAKE, "a", 1 + (uint64_t)i % 3);
        submit(&j[i], 1);
    }
    await_returned(N + 1);
    for (int i = 0; i < N; i++) {
        T_TOOK(&j[i], next, 1 + (uint64_t)i % 3);
        next += j[i].range.count;
    }
    T_EQ(coordinator_stats(c)->tickets, next - 1);
    T_OK(coordinator_stats(c)->commits <= N);
    stop();
}

T_TEST(coordinator_goes_on_after_failures)
{
    struct job j[2];
    T_EQ(start("memory:"), 0);
    job_init(&j[0], JOB_CREATE, "a", 0);
    submit(j, 1);
    await_returned(1);
    job_init(&j[0], JOB_TAKE, "a", 5);
    job_init(&j[1], JOB_TAKE, "a", 1);
    atomic_store(&shaky.lose_answers, 1);
    atomic_store(&shaky.fail_reads, 3);
    atomic_store(&shaky.refuse_writes, 2);
    submit(j, 2);
    await_returned(3);
    T_TOOK(&j[0], 1, 5);
    T_TOOK(&j[1], 6, 1);
    stop();
}

/* Nothing that waits is left behind: the caller gets its memory back, and learns that it has no
 * number. */
T_TEST(coordinator_stop_returns_waiting_jobs)
{
    struct job j[3];
    T_EQ(start("memory:"), 0);
    job_init(&j[0], JOB_CREATE, "a", 0);
    submit(j, 1);
    await_returned(1);
    for (int i = 0; i < 3; i++)
        job_init(&j[i], JOB_TAKE, "a", 1);
    atomic_store(&shaky.refuse_writes, 1000000);
    submit(j, 3);
    while (coordinator_stats(c)->commit_errors == 0)
        sched_yield();
    T_EQ(returned.n, 1);
    stop();
    T_EQ(returned.n, 4);
    for (size_t i = 0; i < 3; i++) {
        T_EQ(j[i].result, FIRN_ECLOSED);
        T_OK(returned.job[1 + i] == &j[i]);
    }
}

/* A shared store may come later: until then every job is refused at once, with the reason. */
T_TEST(coordinator_waits_for_a_shared_store)
{
    struct job j;
    atomic_store(&away, 2);
    T_EQ(start("etcd://127.0.0.1:1/firn"), 0);
    for (size_t n = 1;; n++) {
        submit(job_init(&j, JOB_TAKE, DEFAULT_SEQUENCE, 1), 1);
        await_returned(n);
        if (j.result == 0)
            break;
        T_EQ(j.result, FIRN_EIO); /* it met a try that failed */
        T_STR(j.diag.text, "no route to the store");
    }
    T_TOOK(&j, 100001, 1);
    stop();
    atomic_store(&away, 1);
    T_EQ(start("memory:"), FIRN_EIO); /* a store of this process is there, or is not */
    board_done(&board);
    firn_store_close(&shaky.base);
}

T_TEST(coordinator_publishes_the_grant_and_releases_it)
{
    struct lease_view v;
    struct job j;
    T_EQ(start("memory:"), 0);
    do {
        sched_yield();
        board_copy(&board, &v);
    } while (v.grant.gen == 0);
    T_OK(v.grant.from < v.grant.until);
    submit(job_init(&j, JOB_NODES, "", 0), 1);
    await_returned(1);
    T_EQ(j.result, 0, "%s", j.diag.text);
    free(j.nodes);
    for (size_t i = 2; i < 4; i++) { /* read, and from the cache */
        submit(job_init(&j, JOB_SLOTS, "", 0), 1);
        await_returned(i);
        T_EQ(j.result, 0, "%s", j.diag.text);
        size_t mine = 0;
        for (size_t k = 0; k < j.list_n; k++)
            mine += strcmp(j.slots[k].state, "mine") == 0 && j.slots[k].slot == v.grant.slot;
        T_EQ(mine, 1, "of %zu", j.list_n);
        uint32_t total, used = coordinator_slots_used(c, &total);
        T_EQ(total, j.list_n, "counted with the list");
        T_EQ(used, 1, "this process's alone");
        free(j.slots);
    }
    stop();
}
