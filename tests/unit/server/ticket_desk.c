/* One loop's tickets: what is answered from the numbers in hand, what becomes a job, and in which
 * order jobs leave. The coordinator is this file: the linker leaves the real one out. */
#include "t.h"

#include "server/minter.h"

#include <stdlib.h>

static struct ranges ranges;
static struct job *submitted, **tail;
static unsigned wake_ups;

struct ranges *coordinator_ranges(struct coordinator *c)
{
    (void)c;
    return &ranges;
}

void coordinator_submit(struct coordinator *c, struct job *first, struct job *last)
{
    (void)c;
    wake_ups++;
    *tail = first;
    tail = &last->next;
    T_OK(!last->next);
}

static struct ticket_desk *desk;
static struct ticket_wait *done[16];
static size_t done_n;

static void note(struct ticket_wait *w)
{
    done[done_n++] = w;
}

static void setup(void)
{
    ranges_init(&ranges);
    submitted = NULL;
    tail = &submitted;
    wake_ups = 0;
    done_n = 0;
    T_EQ(ticket_desk_new(NULL, NULL, &desk), 0);
}

static void teardown(void)
{
    ticket_desk_free(desk);
    ranges_done(&ranges);
}

static struct ticket_wait *wait_for(struct ticket_wait *w, const char *name, uint64_t want)
{
    *w = (struct ticket_wait){ .done = note };
    w->job.name_len = strlen(name);
    memcpy(w->job.name, name, w->job.name_len + 1);
    w->job.want = want;
    return w;
}

static void put(uint64_t first, uint64_t count, bool fresh)
{
    struct seq_record record = { .mode = SEQ_RANGE, .step = 1 };
    struct seq_range block = { first, 1, count };
    ranges_put(&ranges, "r", 1, &record, &block, fresh, 0);
}

/* The part of the coordinator: everything that was submitted is answered, in order. */
static size_t answer_all(uint64_t first, enum seq_mode mode)
{
    size_t n = 0;
    ticket_desk_turn(desk);
    for (struct job *j = submitted, *next; j; j = next, n++) {
        next = j->next;
        j->result = 0;
        j->range = (struct seq_range){ first, 1, j->want };
        j->record = (struct seq_record){ .mode = mode };
        first += j->want;
        j->done(j);
    }
    submitted = NULL;
    tail = &submitted;
    return n;
}

T_TEST(ticket_desk_waits_in_the_order_of_the_requests)
{
    struct ticket_wait w[3];
    setup();
    for (size_t i = 0; i < 3; i++)
        T_EQ(ticket_take(desk, wait_for(&w[i], "g", i + 1), false, 0), FIRN_EAGAIN);
    T_EQ(wake_ups, 0); /* not before the end of the turn */
    T_EQ(answer_all(1, SEQ_GAPLESS), 3);
    T_EQ(wake_ups, 1);
    T_EQ(done_n, 3);
    for (size_t i = 0; i < 3; i++) {
        T_OK(done[i] == &w[i]);
        T_EQ(w[i].job.range.count, i + 1);
    }
    T_EQ(w[2].job.range.first, 4);
    ticket_desk_turn(desk);
    T_EQ(wake_ups, 1); /* nothing to send */
    teardown();
}

T_TEST(ticket_desk_numbers_in_hand_answer_at_once)
{
    struct ticket_wait w;
    struct seq_range got;
    setup();
    put(1, 100, true);
    T_EQ(ticket_take(desk, wait_for(&w, "r", 10), false, 0), 0);
    T_EQ(w.job.range.first, 1);
    T_EQ(w.job.record.mode, SEQ_RANGE);
    T_EQ(ticket_in_hand(desk, "r", 1, 5, false, 0, &got), 0);
    T_EQ(got.first, 11);
    ticket_desk_turn(desk);
    T_EQ(wake_ups, 0);
    T_EQ(done_n, 0); /* done() is only for those that waited */

    T_EQ(ticket_in_hand(desk, "r", 1, 50, false, 0, &got), 0); /* more than half: fetch ahead */
    T_EQ(ticket_in_hand(desk, "r", 1, 1, false, 0, &got), 0);  /* only once */
    ticket_desk_turn(desk);
    T_EQ(wake_ups, 1);
    T_OK(submitted && !submitted->next && submitted->what == JOB_FETCH);
    T_STR(submitted->name, "r");
    put(101, 100, false);
    T_EQ(answer_all(0, SEQ_RANGE), 1); /* frees the job */
    T_EQ(ticket_in_hand(desk, "r", 1, 90, true, 0, &got), 0);
    T_EQ(got.first, 67);
    T_EQ(got.count, 34); /* in one piece */
    T_EQ(ticket_in_hand(desk, "none", 4, 1, false, 0, &got), FIRN_ENOENT);
    teardown();
}

/* Behind a request that waits, numbers in hand would be too high for its connection's order; and a
 * request with a key has to be kept before it is answered. */
T_TEST(ticket_desk_some_requests_wait_although_numbers_are_in_hand)
{
    struct ticket_wait w[2];
    struct keyed key = { .ask = { .want = 1 } };
    setup();
    put(1, 100, true);
    T_EQ(ticket_take(desk, wait_for(&w[0], "r", 1), true, 0), FIRN_EAGAIN);
    wait_for(&w[1], "r", 1)->job.keyed = &key;
    T_EQ(ticket_take(desk, &w[1], false, 0), FIRN_EAGAIN);
    T_EQ(answer_all(1, SEQ_RANGE), 2);
    uint64_t next;
    T_EQ(ranges_peek(&ranges, "r", 1, &next), 0);
    T_EQ(next, 1); /* nothing was taken */
    teardown();
}

T_TEST(ticket_desk_remembers_gapless_sequences)
{
    struct ticket_wait w;
    setup();
    T_OK(!ticket_is_gapless(desk, "g", 1));
    T_EQ(ticket_take(desk, wait_for(&w, "g", 1), false, 0), FIRN_EAGAIN);
    T_OK(!ticket_is_gapless(desk, "g", 1)); /* not known before the answer */
    answer_all(1, SEQ_GAPLESS);
    T_OK(ticket_is_gapless(desk, "g", 1));
    T_OK(!ticket_is_gapless(desk, "gg", 2));
    T_EQ(ticket_take(desk, wait_for(&w, "x", 1), false, 0), FIRN_EAGAIN);
    answer_all(1, SEQ_RANGE);
    T_OK(!ticket_is_gapless(desk, "x", 1));
    T_EQ(ticket_take(desk, wait_for(&w, "d", 1), false, 0), FIRN_EAGAIN);
    ticket_desk_turn(desk);
    submitted->result = 0;
    submitted->record.mode = SEQ_GAPLESS;
    submitted->range = (struct seq_range){ 1, 1, 1 };
    submitted->period = 20261118; /* dated: its bare numbers come again */
    submitted->done(submitted);
    T_OK(!ticket_is_gapless(desk, "d", 1));
    teardown();
}
