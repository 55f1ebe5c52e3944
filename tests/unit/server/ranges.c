/* The table of sequences under its lock: numbers rise for every loop, and none comes twice. */
#include "t.h"

#include "server/ranges.h"

#include <stdlib.h>

static struct ranges r;
static struct seq_entry *entry;

static void open_it(void)
{
    struct seq_record record = { .mode = SEQ_RANGE, .step = 1 };
    T_EQ(ranges_init(&r), 0);
    entry = seq_table_open(r.table, "a", 1);
    seq_table_describe(entry, &record);
}

T_TEST(ranges_take_and_peek)
{
    struct seq_range got;
    struct seq_record of;
    uint64_t next;
    bool fetch;
    open_it();
    T_EQ(ranges_peek(&r, "a", 1, &next), FIRN_ENOENT);
    T_EQ(ranges_take(&r, "a", 1, 1, false, 0, &got, &of, &fetch), SEQ_HAND_SHORT);
    seq_table_put(entry, &(struct seq_range){ 7, 1, 100 }, true, 0);
    T_EQ(ranges_peek(&r, "a", 1, &next), 0);
    T_EQ(next, 7);
    T_EQ(ranges_take(&r, "a", 1, 3, false, 0, &got, &of, &fetch), SEQ_HAND_TAKEN);
    T_EQ(got.first, 7);
    T_EQ(of.mode, SEQ_RANGE);
    T_OK(!fetch);
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
        bool none = ranges_take(&r, "a", 1, 1, false, 0, &got, NULL, &fetch) != SEQ_HAND_TAKEN;
        if (!none) {
            l->fell |= l->n > 0 && got.first <= l->number[l->n - 1];
            l->number[l->n++] = got.first;
        }
        if (none || fetch) { /* the part of the coordinator, which is one thread */
            pthread_mutex_lock(&coordinator);
            struct seq_range block = { next_block, 1, BLOCK };
            next_block += BLOCK;
            ranges_lock(&r);
            seq_table_put(entry, &block, false, 0);
            ranges_unlock(&r);
            pthread_mutex_unlock(&coordinator);
        }
    }
    return NULL;
}

T_TEST(ranges_rise_for_every_loop_and_repeat_for_none)
{
    open_it();
    next_block = 1;
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
