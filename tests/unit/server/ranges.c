/* Blocks in hand: numbers rise for every loop, and what becomes of blocks that fail, come late or
 * are too short. */
#include "t.h"

#include "server/ranges.h"

#include <stdio.h>
#include <stdlib.h>

static struct ranges r;
static struct seq_record record = { .mode = SEQ_RANGE, .step = 1 };

static void put(const char *name, uint64_t first, uint64_t count, bool fresh)
{
    struct seq_range block = { first, 1, count };
    ranges_put(&r, name, strlen(name), &record, &block, fresh, 0);
}

/* The first number, or the error. */
static int64_t take(const char *name, uint64_t want, bool *fetch)
{
    struct seq_range got;
    struct seq_record of;
    bool ahead;
    int e = ranges_take(&r, name, strlen(name), want, false, 0, &got, &of, &ahead);
    if (fetch)
        *fetch = ahead;
    if (e == 0) {
        T_EQ(got.count, want);
        T_EQ(of.mode, SEQ_RANGE);
    }
    return e ? e : (int64_t)got.first;
}

T_TEST(ranges_hand_out_a_block_and_ask_for_the_next_once)
{
    bool fetch;
    uint64_t next;
    ranges_init(&r);
    T_EQ(take("a", 1, &fetch), FIRN_ENOENT);
    T_OK(!fetch);
    T_EQ(ranges_peek(&r, "a", 1, &next), FIRN_ENOENT);
    T_EQ(ranges_want(&r, "a", 1), SEQ_BLOCK_MIN);
    put("a", 1, 100, true);
    T_EQ(ranges_peek(&r, "a", 1, &next), 0);
    T_EQ(next, 1);
    T_EQ(take("a", 10, &fetch), 1);
    T_OK(!fetch && !ranges_asked(&r, "a", 1));
    T_EQ(take("a", 50, &fetch), 11);
    T_OK(fetch && ranges_asked(&r, "a", 1)); /* more than half is used */
    T_EQ(take("a", 1, &fetch), 61);
    T_OK(!fetch); /* it is under way */
    put("a", 101, 100, false);
    T_OK(!ranges_asked(&r, "a", 1));
    T_EQ(take("a", 39, NULL), 62);
    T_EQ(take("a", 1, NULL), 101);
    ranges_done(&r);
}

T_TEST(ranges_a_run_is_in_one_piece)
{
    struct seq_range got;
    bool fetch;
    ranges_init(&r);
    put("a", 1, 10, true);
    T_EQ(take("a", 11, &fetch), FIRN_EAGAIN);
    T_EQ(ranges_take(&r, "a", 1, 11, true, 0, &got, NULL, &fetch), 0); /* or fewer */
    T_EQ(got.first, 1);
    T_EQ(got.count, 10);
    T_EQ(take("a", 1, &fetch), FIRN_EAGAIN);
    ranges_done(&r);
}

/* A block that could not be fetched leaves what is in hand, and the next request asks again. */
T_TEST(ranges_a_failed_fetch_costs_nothing)
{
    bool fetch;
    ranges_init(&r);
    put("a", 1, 100, true);
    T_EQ(take("a", 60, &fetch), 1);
    T_OK(fetch);
    put("a", 0, 0, false);
    T_EQ(take("a", 1, &fetch), 61);
    T_OK(fetch);
    ranges_done(&r);
}

/* Somebody was given lower numbers of this very block: older blocks are below those. */
T_TEST(ranges_a_fresh_block_drops_older_ones)
{
    ranges_init(&r);
    put("a", 1, 100, true);
    T_EQ(take("a", 1, NULL), 1);
    put("a", 501, 100, true);
    T_EQ(take("a", 1, NULL), 501);
    put("a", 701, 0, true); /* all of it was taken at once */
    T_EQ(take("a", 1, NULL), FIRN_EAGAIN);
    ranges_done(&r);
}

/* Two names with one place in the table: the newcomer takes it: a gap, never a repeat. */
T_TEST(ranges_a_newcomer_takes_the_place)
{
    char other[16] = "";
    size_t place = record_name_hash("a", 1) % RANGES_MAX;
    for (int i = 0; !other[0]; i++) {
        char name[16];
        snprintf(name, sizeof name, "b%d", i);
        if (record_name_hash(name, strlen(name)) % RANGES_MAX == place)
            memcpy(other, name, sizeof other);
    }
    ranges_init(&r);
    put("a", 1, 100, true);
    T_EQ(take("a", 1, NULL), 1);
    put(other, 1, 100, true);
    T_EQ(take("a", 1, NULL), FIRN_ENOENT);
    T_EQ(take(other, 1, NULL), 1);
    put("a", 101, 100, true);
    T_EQ(take("a", 1, NULL), 101);
    ranges_done(&r);
}

/* --- loops --- */

enum { LOOPS = 4, EACH = 20000, BLOCK = 1000 };

static struct loop_taken {
    pthread_t thread;
    uint64_t number[EACH];
    size_t n;
    bool fell;
} loop[LOOPS];

static pthread_mutex_t coordinator = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_block;

static void *take_many(void *arg)
{
    struct loop_taken *l = arg;
    while (l->n < EACH) {
        struct seq_range got;
        bool fetch;
        int e = ranges_take(&r, "a", 1, 1, false, 0, &got, NULL, &fetch);
        if (e == 0) {
            l->fell |= l->n > 0 && got.first <= l->number[l->n - 1];
            l->number[l->n++] = got.first;
        }
        if (e || fetch) { /* the part of the coordinator, which is one thread */
            pthread_mutex_lock(&coordinator);
            struct seq_range block = { next_block, 1, BLOCK };
            next_block += BLOCK;
            ranges_put(&r, "a", 1, &record, &block, false, 0);
            pthread_mutex_unlock(&coordinator);
        }
    }
    return NULL;
}

T_TEST(ranges_rise_for_every_loop_and_repeat_for_none)
{
    ranges_init(&r);
    next_block = 1;
    put("a", 0, 0, true);
    for (int i = 0; i < LOOPS; i++)
        T_EQ(pthread_create(&loop[i].thread, NULL, take_many, &loop[i]), 0);
    for (int i = 0; i < LOOPS; i++)
        pthread_join(loop[i].thread, NULL);
    uint8_t *seen = calloc(next_block, 1);
    T_OK(seen);
    for (int i = 0; i < LOOPS; i++) {
        T_OK(!loop[i].fell, "loop %d", i);
        for (size_t k = 0; k < EACH; k++) {
            T_OK(loop[i].number[k] > 0 && loop[i].number[k] < next_block);
            T_OK(!seen[loop[i].number[k]]++, "%" PRIu64 " twice", loop[i].number[k]);
        }
    }
    free(seen);
    ranges_done(&r);
}
