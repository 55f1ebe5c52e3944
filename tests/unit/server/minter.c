/* The minter against a board that the test writes: slots that change, grants that are empty or
 * closed. */
#include "t.h"

#include "coord/lease_ticks.h"
#include "server/minter.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

static struct board board;
static struct stamp_plan plan;
static struct numbers *numbers;
static uint64_t now_tick; /* of the lease, when the world was made */

static void make_world(const char *layout)
{
    struct firn_layout l;
    struct firn_diag d = { 0, "" };
    T_EQ(firn_layout_parse(layout, strlen(layout), 0, &l, &d), 0, "%s", d.text);
    T_EQ(stamp_plan_init(&plan, &l, &d), 0, "%s", d.text);
    board_init(&board);
    T_EQ(numbers_new(&plan, &board, 2, &numbers), 0);
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    now_tick = firn_layout_ticks(&plan.lease, (int64_t)t.tv_sec * 1000000);
}

static uint64_t floor_tick; /* of a store that was just made or fenced; 0: none */

/* Publish a grant; the clock shows the real time. */
static void grant(uint64_t gen, uint32_t slot, uint64_t from, uint64_t until, bool closed)
{
    struct timespec real, mono;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    struct lease_view v = { .state = SLOT_ACTIVE, .clock = CLOCK_OK };
    v.floor_tick = floor_tick;
    v.stamp_end = floor_tick ? floor_tick + 5000 : 0;
    v.max_drift = 5000;
    v.window = 3000;
    v.off_ns = (int64_t)(real.tv_sec - mono.tv_sec) * 1000000000 + real.tv_nsec - mono.tv_nsec;
    v.grant = (struct slot_grant){ gen, slot, from, until, closed };
    board_publish(&board, &v);
}

static struct firn_parts parts_of(enum leased which, uint64_t id)
{
    struct firn_parts p;
    T_EQ(firn_layout_decompose(&plan.layout[which], id, &p), 0);
    return p;
}

T_TEST(minter_waits_for_a_grant)
{
    struct minter *m;
    uint64_t id;
    make_world("firn");
    T_EQ(minter_new(&plan, &board, numbers, &m), 0);
    T_EQ(minter_number(m, LEASED_SNOWFLAKE, &id), FIRN_EWINDOW);
    grant(1, 7, now_tick, now_tick + 60000, false);
    for (int i = 0; i < LEASED_N; i++) {
        T_EQ(minter_number(m, (enum leased)i, &id), 0);
        T_EQ(parts_of((enum leased)i, id).field[FIRN_FIELD_NODE], 7);
    }
    minter_free(m);
    numbers_free(numbers);
    board_done(&board);
}

T_TEST(minter_leaves_an_old_slot_for_good)
{
    struct minter *m;
    uint64_t id, last = 0;
    make_world("firn");
    T_EQ(minter_new(&plan, &board, numbers, &m), 0);
    grant(1, 3, now_tick, now_tick + 60000, false);
    for (int i = 0; i < 5000; i++)
        T_EQ(minter_number(m, LEASED_SNOWFLAKE, &last), 0);
    grant(2, 4, now_tick + 90000, now_tick + 90000, false); /* empty, soon to be extended */
    for (int i = 0; i < LEASED_N; i++)
        T_EQ(minter_number(m, (enum leased)i, &id), FIRN_EWINDOW);
    grant(2, 4, now_tick, now_tick + 120000, false);
    T_EQ(minter_number(m, LEASED_SNOWFLAKE, &id), 0);
    struct firn_parts p = parts_of(LEASED_SNOWFLAKE, id), q = parts_of(LEASED_SNOWFLAKE, last);
    T_EQ(p.field[FIRN_FIELD_NODE], 4);
    T_OK(p.field[FIRN_FIELD_TIME] > q.field[FIRN_FIELD_TIME], "order over the change of slots");
    minter_free(m);
    numbers_free(numbers);
    board_done(&board);
}

/* A fence covers what may have been stamped: not further than max_drift above the floor, though the
 * clock comes near it. */
T_TEST(minter_stays_below_the_floor_s_limit)
{
    struct minter *m;
    uint64_t id = 0, last = 0;
    make_world("firn");
    T_EQ(minter_new(&plan, &board, numbers, &m), 0);
    floor_tick = now_tick + 1000; /* nearer than a window: both above the clock would be too far */
    grant(1, 3, now_tick, now_tick + 60000, false);
    for (int i = 0; i < 400000 && minter_number(m, LEASED_SONYFLAKE, &id) == 0; i++)
        last = id;
    uint64_t tick = parts_of(LEASED_SONYFLAKE, last).field[FIRN_FIELD_TIME] + 1;
    T_OK(lease_ticks_stamped(&plan.layout[LEASED_SONYFLAKE], &plan.lease, tick - 1) <
             floor_tick + 5000,
         "not above the limit");
    T_OK(lease_ticks_stamped(&plan.layout[LEASED_SONYFLAKE], &plan.lease, tick) >=
             floor_tick + 5000 - 20,
         "but up to it");
    floor_tick = 0;
    minter_free(m);
    numbers_free(numbers);
    board_done(&board);
}

T_TEST(minter_stops_when_the_grant_is_closed)
{
    struct minter *m;
    uint64_t id;
    make_world("firn");
    T_EQ(minter_new(&plan, &board, numbers, &m), 0);
    grant(1, 3, now_tick, now_tick + 60000, false);
    T_EQ(minter_number(m, LEASED_SNOWFLAKE, &id), 0);
    minter_turn(m);
    grant(1, 3, now_tick, now_tick + 60000, true);
    for (int i = 0; i < LEASED_N; i++)
        T_EQ(minter_number(m, (enum leased)i, &id), FIRN_EWINDOW);
    minter_turn(m); /* there is nothing to tell any more */
    minter_free(m);
    numbers_free(numbers);
    board_done(&board);
}

/* Whatever is handed out is noted first, in the ticks of the lease. */
T_TEST(minter_notes_what_it_stamps)
{
    struct minter *m;
    uint64_t ids[9000];
    _Atomic uint64_t note = 0;
    make_world("firn");
    T_EQ(minter_new(&plan, &board, numbers, &m), 0);
    numbers_set_note(numbers, &note);
    grant(1, 3, now_tick, now_tick + 60000, false);
    for (int i = 0; i < 30; i++) {
        enum leased which = (enum leased)(i % LEASED_N);
        size_t n = 1;
        T_EQ(minter_numbers(m, which, 0, ids, i & 4 ? T_LEN(ids) : 1, &n), 0);
        uint64_t tick = parts_of(which, ids[n - 1]).field[FIRN_FIELD_TIME];
        T_OK(note >= lease_ticks_stamped(&plan.layout[which], &plan.lease, tick), "kind %d", which);
    }
    note = UINT64_MAX; /* it never falls */
    T_EQ(minter_number(m, LEASED_SNOWFLAKE, ids), 0);
    T_EQ(note, UINT64_MAX);
    minter_free(m);
    numbers_free(numbers);
    board_done(&board);
}

/* A layout that writes the same numbers as TSIDs, with another text, shares their generator. */
T_TEST(minter_equal_numbers_come_from_one_generator)
{
    struct minter *m;
    uint64_t last = 0, id;
    make_world("unused:1,time:41@1ms,node:10,seq:12;epoch=1577836800000");
    T_EQ(plan.share[LEASED_TSID], LEASED_SNOWFLAKE);
    T_EQ(plan.share[LEASED_SONYFLAKE], LEASED_SONYFLAKE);
    T_EQ(minter_new(&plan, &board, numbers, &m), 0);
    grant(1, 3, now_tick, now_tick + 60000, false);
    for (int i = 0; i < 10000; i++) {
        T_EQ(minter_number(m, i % 2 ? LEASED_TSID : LEASED_SNOWFLAKE, &id), 0);
        T_OK(id > last, "a TSID and a snowflake are the same number");
        last = id;
    }
    minter_free(m);
    numbers_free(numbers);
    board_done(&board);
}

T_TEST(minter_ends_where_the_layout_ends)
{
    struct timespec t;
    char layout[160];
    clock_gettime(CLOCK_REALTIME, &t);
    /* 2^20 ms of time, of which about two seconds are left. */
    snprintf(layout, sizeof layout, "time:20@1ms,node:10,seq:24;epoch=%llu",
             (unsigned long long)t.tv_sec * 1000 - ((1 << 20) - 2000));
    struct minter *m;
    uint64_t id, last = 0;
    make_world(layout);
    T_EQ(minter_new(&plan, &board, numbers, &m), 0);
    grant(1, 3, now_tick, now_tick + 60000, false); /* the lease knows nothing of that end */
    grant(1, 3, now_tick, now_tick + 90000, false);
    int r;
    while ((r = minter_number(m, LEASED_SNOWFLAKE, &id)) == 0) {
        T_OK(id > last, "time began again");
        last = id;
    }
    T_EQ(r, FIRN_EEXHAUSTED);
    minter_free(m);
    numbers_free(numbers);
    board_done(&board);
}

/* Two loops take turns: each ID is larger than the one before, although the clock stands still
 * behind the window, and although the grant moves to a smaller slot that only one loop has seen. */
T_TEST(minter_one_order_for_all_loops)
{
    struct minter *m[2];
    uint64_t id, last = 0;
    make_world("firn");
    for (int i = 0; i < 2; i++)
        T_EQ(minter_new(&plan, &board, numbers, &m[i]), 0);
    floor_tick = now_tick + 7000; /* a new store: stamps begin ahead of the clock */
    for (uint64_t gen = 1; gen <= 20; gen++) {
        grant(gen, (uint32_t)(40 - gen), now_tick + 7000, now_tick + 12000, false);
        for (int i = 0; i < 300; i++) {
            size_t n = 1;
            uint64_t ids[7];
            if (i % 5 == 4) {
                T_EQ(minter_numbers(m[i * 7 % 2], LEASED_SNOWFLAKE, 0, ids, 7, &n), 0);
                id = ids[0];
            } else {
                T_EQ(minter_number(m[i * 7 % 2], LEASED_SNOWFLAKE, &id), 0);
            }
            T_OK(id > last, "%llu after %llu", (unsigned long long)id, (unsigned long long)last);
            last = n > 1 ? ids[n - 1] : id;
            if (i % 100 == 50) /* seen by the one that draws next, not by the other */
                grant(gen, (uint32_t)(40 - gen), now_tick + 7000, now_tick + 12000 + gen, false);
        }
    }
    floor_tick = 0;
    for (int i = 0; i < 2; i++)
        minter_turn(m[i]);
    T_OK(*numbers_last(numbers) >= now_tick + 7000);
    uint64_t seen = *numbers_last(numbers);
    T_EQ(numbers_close(numbers), seen);
    for (int i = 0; i < 2; i++) {
        T_EQ(minter_number(m[i], LEASED_SNOWFLAKE, &id), FIRN_EWINDOW);
        minter_free(m[i]);
    }
    numbers_free(numbers);
    board_done(&board);
}

struct racer {
    struct minter *m;
    _Atomic bool *stop;
    uint64_t drawn, failed;
    pthread_t thread;
};

static _Atomic uint64_t answered; /* the largest ID that a request was answered with */

/* A request that begins after another was answered: `answered` before, a larger ID after. */
static void *race(void *arg)
{
    struct racer *r = arg;
    uint64_t ids[3], id;
    while (!atomic_load(r->stop)) {
        uint64_t before = atomic_load(&answered);
        size_t n = 1;
        int e = r->drawn % 16 ? minter_number(r->m, LEASED_SNOWFLAKE, &id)
                              : minter_numbers(r->m, LEASED_SNOWFLAKE, 0, ids, 3, &n);
        if (e) {
            r->failed += e != FIRN_EAGAIN && e != FIRN_EWINDOW;
            continue;
        }
        id = r->drawn % 16 ? id : ids[0];
        r->failed += id <= before;
        r->drawn++;
        id = n > 1 ? ids[n - 1] : id;
        while (before < id && !atomic_compare_exchange_weak(&answered, &before, id)) {
        }
        minter_turn(r->m);
    }
    return NULL;
}

T_TEST(minter_one_order_while_grants_change)
{
    struct racer r[2];
    _Atomic bool stop = false;
    make_world("firn");
    atomic_store(&answered, 0);
    grant(1, 500, now_tick, now_tick + 60000, false);
    for (int i = 0; i < 2; i++) {
        r[i] = (struct racer){ .stop = &stop };
        T_EQ(minter_new(&plan, &board, numbers, &r[i].m), 0);
        T_EQ(pthread_create(&r[i].thread, NULL, race, &r[i]), 0);
    }
    for (uint64_t gen = 2; gen < 400; gen++) {
        grant(gen, (uint32_t)(500 - gen), now_tick, now_tick + 60000, false);
        sched_yield();
    }
    atomic_store(&stop, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(r[i].thread, NULL);
        T_EQ(r[i].failed, 0, "of %llu", (unsigned long long)r[i].drawn);
        minter_free(r[i].m);
    }
    numbers_free(numbers);
    board_done(&board);
}
