/* One loop's tickets: what is answered from the numbers in hand, what becomes a job, and in which
 * order jobs leave. The coordinator is this file: the linker leaves the real one out. */
#include "t.h"

#include "server/minter.h"

#include <stdio.h>
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
    T_EQ(ranges_init(&ranges), 0);
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

/* The part of the coordinator: it knows the sequence. */
static void open_it(const char *name, enum seq_mode mode, const char *note)
{
    struct seq_record record = { .mode = mode, .step = 1 };
    snprintf(record.note, sizeof record.note, "%s", note);
    seq_table_describe(seq_table_open(ranges.table, name, strlen(name)), &record);
}

static void put(uint64_t first, uint64_t count, bool fresh)
{
    struct seq_range block = { first, 1, count };
    if (!seq_table_find(ranges.table, "r", 1))
        open_it("r", SEQ_RANGE, "");
    seq_table_put(seq_table_find(ranges.table, "r", 1), &block, fresh, 0);
}

static enum seq_hand in_hand(const char *name, uint64_t want, bool some, struct seq_range *got)
{
    struct seq_record record;
    enum seq_hand hand = ticket_in_hand(desk, name, strlen(name), want, some, 0, got, &record);
    T_OK(hand != SEQ_HAND_TAKEN || record.mode == SEQ_RANGE);
    return hand;
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
        ticket_queue(desk, wait_for(&w[i], "g", i + 1));
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
    struct seq_range got;
    setup();
    put(1, 100, true);
    T_EQ(in_hand("r", 10, false, &got), SEQ_HAND_TAKEN);
    T_EQ(got.first, 1);
    T_EQ(in_hand("r", 5, false, &got), SEQ_HAND_TAKEN);
    T_EQ(got.first, 11);
    ticket_desk_turn(desk);
    T_EQ(wake_ups, 0);
    T_EQ(done_n, 0); /* done() is only for those that waited */

    T_EQ(in_hand("r", 50, false, &got), SEQ_HAND_TAKEN); /* more than half: fetch ahead */
    T_EQ(in_hand("r", 1, false, &got), SEQ_HAND_TAKEN);  /* only once */
    ticket_desk_turn(desk);
    T_EQ(wake_ups, 1);
    T_OK(submitted && !submitted->next && submitted->what == JOB_FETCH);
    T_STR(submitted->name, "r");
    put(101, 100, false);
    T_EQ(answer_all(0, SEQ_RANGE), 1); /* frees the job */
    T_EQ(in_hand("r", 90, true, &got), SEQ_HAND_TAKEN);
    T_EQ(got.first, 67);
    T_EQ(got.count, 34); /* in one piece */
    T_EQ(in_hand("none", 1, false, &got), SEQ_HAND_UNKNOWN);
    teardown();
}

/* Behind a request that waits, numbers in hand would be too high for its connection's order: it
 * asks only what the sequence is. */
T_TEST(ticket_desk_looks_without_taking)
{
    struct seq_range got;
    uint64_t next;
    setup();
    put(1, 100, true);
    T_EQ(in_hand("r", 0, false, &got), SEQ_HAND_SHORT);
    T_EQ(ranges_peek(&ranges, "r", 1, &next), 0);
    T_EQ(next, 1); /* nothing was taken */
    ticket_desk_turn(desk);
    T_EQ(wake_ups, 0);
    teardown();
}

T_TEST(ticket_desk_knows_gapless_sequences)
{
    struct seq_range got;
    setup();
    T_EQ(in_hand("g", 1, false, &got), SEQ_HAND_UNKNOWN);
    open_it("g", SEQ_GAPLESS, "");
    open_it("d", SEQ_GAPLESS, "dated:day:6");
    open_it("e", SEQ_RANGE, "dated:day:6");
    T_EQ(in_hand("g", 1, false, &got), SEQ_HAND_GAPLESS);
    T_EQ(in_hand("gg", 1, false, &got), SEQ_HAND_UNKNOWN);
    T_EQ(in_hand("d", 1, false, &got), SEQ_HAND_DATED);
    T_EQ(in_hand("e", 1, false, &got), SEQ_HAND_DATED);
    put(1, 10, true);
    T_EQ(in_hand("r", 11, false, &got), SEQ_HAND_SHORT);
    teardown();
}
