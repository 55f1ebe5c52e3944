/* How far a follower's log is known to be the leader's. */
#include "raft/shield/match.h"
#include "t.h"

T_TEST(nothing_is_known_first)
{
    struct match m = { 0 };
    T_EQ(match_answer(&m, 1, 100), 0);
    T_EQ(match_answer(&m, 0, 100), 0);
}

T_TEST(no_more_than_was_shown_and_stored)
{
    struct match m = { 0 };
    match_show(&m, 2, 100); /* a heartbeat at 100, and there are five more of an old leader's */
    T_EQ(match_answer(&m, 2, 105), 100);
    match_show(&m, 2, 103); /* three entries, not yet on the disk */
    T_EQ(match_answer(&m, 2, 100), 100);
    T_EQ(match_answer(&m, 2, 102), 102);
    T_EQ(match_answer(&m, 2, 105), 103);
    match_show(&m, 2, 101); /* what comes late takes nothing back */
    T_EQ(match_answer(&m, 2, 103), 103);
}

T_TEST(another_term_begins_anew)
{
    struct match m = { 0 };
    match_show(&m, 2, 100);
    T_EQ(match_answer(&m, 3, 100), 0); /* what the old leader had in common, the new one may not */
    match_show(&m, 3, 90);
    T_EQ(match_answer(&m, 3, 100), 90);
    match_show(&m, 2, 120); /* too late */
    T_EQ(match_answer(&m, 3, 120), 90);
    T_EQ(match_answer(&m, 2, 120), 0);
}
