/* Whose turn it is to write a register that several want. */
#include "raft/turn.h"
#include "t.h"

enum { KEY = 7, OTHER_KEY = 8, A = 1, B = 2, C = 3, FOR = 15 };

static enum turn_of ask(struct turns *t, uintptr_t who, uint64_t now)
{
    return turns_ask(t, KEY, who, now, FOR);
}

T_TEST(nobody_waits_where_nobody_lost)
{
    struct turns t = { 0 };
    T_EQ(ask(&t, A, 0), TURN_FREE);
    turns_won(&t, KEY, A, 0, FOR);
    turns_begin(&t, KEY, A, 0, FOR);
    T_EQ(ask(&t, B, 0), TURN_FREE);
    T_EQ(t.used, 0);
}

T_TEST(who_lost_is_next)
{
    struct turns t = { 0 };
    turns_lost(&t, KEY, A, 100, FOR);
    T_EQ(ask(&t, A, 101), TURN_OURS);
    T_EQ(ask(&t, B, 101), TURN_OTHERS);
    T_EQ(turns_ask(&t, OTHER_KEY, B, 101, FOR), TURN_FREE);
    turns_begin(&t, KEY, A, 102, FOR);
    T_EQ(ask(&t, B, 102), TURN_FREE); /* it loses, and hears */
    turns_won(&t, KEY, A, 103, FOR);
    T_EQ(ask(&t, B, 103), TURN_FREE);
    T_EQ(ask(&t, A, 103), TURN_FREE);
}

T_TEST(in_the_order_of_losing)
{
    struct turns t = { 0 };
    turns_lost(&t, KEY, A, 100, FOR);
    turns_lost(&t, KEY, B, 100, FOR);
    turns_lost(&t, KEY, C, 100, FOR);
    for (uintptr_t round = 0; round < 9; round++) { /* each loses again while another one writes */
        uintptr_t now = A + round % 3;
        for (uintptr_t who = A; who <= C; who++)
            T_EQ(ask(&t, who, 101), who == now ? TURN_OURS : TURN_OTHERS);
        turns_begin(&t, KEY, now, 102, FOR);
        turns_won(&t, KEY, now, 103, FOR);
        for (uintptr_t who = A; who <= C; who++)
            if (who != now)
                turns_lost(&t, KEY, who, 103, FOR);
        turns_lost(&t, KEY, now, 103, FOR); /* and it tried again too soon */
    }
}

T_TEST(a_turn_that_is_not_taken_ends)
{
    struct turns t = { 0 };
    turns_lost(&t, KEY, A, 100, FOR);
    turns_lost(&t, KEY, B, 100, FOR);
    T_EQ(ask(&t, C, 114), TURN_OTHERS);
    T_EQ(ask(&t, B, 115), TURN_OURS);
    T_EQ(ask(&t, B, 130), TURN_FREE);
    T_EQ(ask(&t, C, 130), TURN_FREE);
}

T_TEST(one_that_loses_in_its_turn_keeps_it)
{
    struct turns t = { 0 };
    turns_lost(&t, KEY, A, 100, FOR);
    turns_begin(&t, KEY, A, 101, FOR);
    turns_lost(&t, KEY, A, 110, FOR); /* what it wrote on was older */
    T_EQ(ask(&t, A, 120), TURN_OURS);
    T_EQ(ask(&t, B, 120), TURN_OTHERS);
}

T_TEST(a_write_of_which_nothing_is_heard_is_forgotten)
{
    struct turns t = { 0 };
    turns_lost(&t, KEY, A, 100, FOR);
    turns_lost(&t, KEY, B, 100, FOR);
    turns_begin(&t, KEY, A, 101, FOR);
    T_EQ(ask(&t, B, 1100), TURN_FREE);
    T_EQ(ask(&t, B, 1101), TURN_OURS);
}

T_TEST(more_than_there_is_room_for)
{
    struct turns t = { 0 };
    for (uint64_t key = 0; key < 2 * TURNS_MAX; key++)
        for (uintptr_t who = 0; who < 2 * TURN_LINE_MAX; who++)
            turns_lost(&t, key, who, 100, FOR);
    T_EQ(turns_ask(&t, 0, 0, 100, FOR), TURN_OURS);
    T_EQ(turns_ask(&t, TURNS_MAX, 0, 100, FOR), TURN_FREE); /* as if there were no turns */
    turns_lost(&t, TURNS_MAX, 5, 200, FOR);                 /* the others' are over */
    T_EQ(turns_ask(&t, TURNS_MAX, 5, 200, FOR), TURN_OURS);
}
