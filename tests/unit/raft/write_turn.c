/* Whose turn it is to write a register that several want. */
#include "raft/write_turn.h"
#include "t.h"

enum { KEY = 7, OTHER_KEY = 8, A = 1, B = 2, C = 3, FOR = 15 };

static struct turns t;

static void begin(void)
{
    memset(&t, 0, sizeof t);
    t.now_ms = 100;
    t.for_ms = FOR;
}

static enum turn_of ask(uintptr_t who)
{
    return turns_ask(&t, KEY, who);
}

/* Its write goes into an entry, and that is applied. */
static void writes(uintptr_t who, uint64_t entry, bool won)
{
    t.entry = entry;
    turns_begin(&t, KEY, who);
    t.entry = 0;
    (won ? turns_won : turns_lost)(&t, KEY, who);
    turns_over(&t, entry);
}

T_TEST(nobody_waits_where_nobody_lost)
{
    begin();
    T_EQ(ask(A), TURN_FREE);
    turns_won(&t, KEY, A);
    t.entry = 1;
    turns_begin(&t, KEY, A);
    T_EQ(ask(B), TURN_FREE);
    T_EQ(t.used, 0);
}

T_TEST(who_lost_is_next)
{
    begin();
    turns_lost(&t, KEY, A);
    T_EQ(ask(A), TURN_OURS);
    T_EQ(ask(B), TURN_OTHERS);
    T_EQ(turns_ask(&t, OTHER_KEY, B), TURN_FREE);
    writes(A, 1, true);
    T_EQ(ask(B), TURN_FREE);
    T_EQ(ask(A), TURN_FREE);
    T_EQ(t.used, 0);
}

/* Behind it in the same entry one loses and hears; in the next one, it would win, and the line
 * would never move. */
T_TEST(while_it_writes_others_go_into_its_entry_alone)
{
    begin();
    turns_lost(&t, KEY, A);
    turns_lost(&t, KEY, B);
    T_EQ(ask(A), TURN_OURS);
    t.entry = 5;
    turns_begin(&t, KEY, A);
    T_EQ(ask(C), TURN_FREE);
    T_EQ(ask(B), TURN_FREE);
    t.entry = 6;
    T_EQ(ask(C), TURN_OTHERS);
    T_EQ(ask(B), TURN_OTHERS);
    T_EQ(ask(A), TURN_OTHERS);
    t.entry = 0;
    T_EQ(ask(C), TURN_OTHERS);
    turns_won(&t, KEY, A);
    turns_over(&t, 5);
    T_EQ(ask(C), TURN_OTHERS);
    T_EQ(ask(B), TURN_OURS);
}

T_TEST(in_the_order_of_losing)
{
    begin();
    turns_lost(&t, KEY, A);
    turns_lost(&t, KEY, B);
    turns_lost(&t, KEY, C);
    for (uintptr_t round = 0; round < 9; round++) { /* each loses again while another one writes */
        uintptr_t now = A + round % 3;
        for (uintptr_t who = A; who <= C; who++)
            T_EQ(ask(who), who == now ? TURN_OURS : TURN_OTHERS);
        writes(now, 1 + round, true);
        for (uintptr_t who = A; who <= C; who++)
            if (who != now)
                turns_lost(&t, KEY, who);
        turns_lost(&t, KEY, now); /* and it tried again too soon */
    }
}

T_TEST(a_turn_that_is_not_taken_ends)
{
    begin();
    turns_lost(&t, KEY, A);
    turns_lost(&t, KEY, B);
    t.now_ms = 114;
    T_EQ(ask(C), TURN_OTHERS);
    t.now_ms = 115;
    T_EQ(ask(C), TURN_OTHERS);
    T_EQ(turns_ask(&t, KEY, B), TURN_OURS);
    t.now_ms = 115 + TURN_HELD_MS; /* B came, and nothing was written */
    T_EQ(ask(C), TURN_FREE);
}

/* It does not count one turn after another from now on. */
T_TEST(a_line_that_was_left_alone_is_over)
{
    begin();
    for (uintptr_t who = 0; who < TURN_LINE_MAX; who++)
        turns_lost(&t, KEY, who);
    t.now_ms = 100 + TURN_LINE_MAX * FOR - 1;
    T_EQ(ask(99), TURN_OTHERS);
    t.now_ms++;
    T_EQ(ask(99), TURN_FREE);
    T_EQ(t.used, 0);
}

/* The entries before it take longer than a turn. */
T_TEST(who_came_in_time_keeps_its_turn)
{
    begin();
    turns_lost(&t, KEY, A);
    t.now_ms = 101;
    T_EQ(ask(A), TURN_OURS);
    t.now_ms = 100 + 40 * FOR;
    T_EQ(ask(B), TURN_OTHERS);
    T_EQ(ask(A), TURN_OURS);
}

T_TEST(one_that_loses_in_its_turn_keeps_it)
{
    begin();
    turns_lost(&t, KEY, A);
    t.now_ms = 110;
    writes(A, 1, false); /* what it wrote on was older */
    t.now_ms = 120;
    T_EQ(ask(B), TURN_OTHERS);
    T_EQ(ask(A), TURN_OURS);
}

T_TEST(one_that_wins_out_of_turn_leaves_the_line)
{
    begin();
    turns_lost(&t, KEY, A);
    turns_lost(&t, KEY, B);
    turns_lost(&t, KEY, C);
    turns_won(&t, KEY, B);
    writes(A, 1, true);
    T_EQ(ask(B), TURN_OTHERS);
    T_EQ(ask(C), TURN_OURS);
}

T_TEST(a_write_of_which_nothing_is_heard_is_forgotten)
{
    for (int entry_ends = 0; entry_ends < 2; entry_ends++) {
        begin();
        turns_lost(&t, KEY, A);
        turns_lost(&t, KEY, B);
        t.entry = 1;
        turns_begin(&t, KEY, A);
        t.entry = 0;
        if (entry_ends)
            turns_over(&t, 1);
        else
            t.now_ms += TURN_HELD_MS;
        T_EQ(ask(B), TURN_OURS);
    }
}

T_TEST(who_goes_away_has_no_turn)
{
    begin();
    turns_lost(&t, KEY, A);
    turns_lost(&t, KEY, B);
    turns_lost(&t, KEY, C);
    turns_forget(&t, B);
    turns_forget(&t, A);
    T_EQ(ask(C), TURN_OURS);
    turns_forget(&t, C);
    T_EQ(ask(A), TURN_FREE);
}

T_TEST(more_than_there_is_room_for)
{
    begin();
    for (uint64_t key = 0; key < 2 * TURNS_MAX; key++)
        for (uintptr_t who = 0; who < 2 * TURN_LINE_MAX; who++)
            turns_lost(&t, key, who);
    T_EQ(turns_ask(&t, 0, 0), TURN_OURS);
    T_EQ(turns_ask(&t, TURNS_MAX, 0), TURN_FREE); /* as if there were no turns */
    t.now_ms = 5000;
    turns_lost(&t, TURNS_MAX, 5); /* the others' are over */
    T_EQ(turns_ask(&t, TURNS_MAX, 5), TURN_OURS);
    T_EQ(t.used, 1);
}
