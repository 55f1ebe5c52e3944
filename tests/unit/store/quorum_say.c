/* What a quorum says of stores that do not take part: who, why, and the cure at the end of it. */
#include "t.h"

#include "id/diag.h"
#include "store/quorum_say.h"

#include <stdio.h>
#include <string.h>

enum { TEXT = sizeof((struct firn_diag *)0)->text };

static struct acceptor a[7];

/* Members of one quorum, in the order of the URL; more of the case is up to the test. */
static void begin(unsigned n)
{
    memset(a, 0, sizeof a);
    for (unsigned i = 0; i < n; i++) {
        a[i].place = i + 1;
        a[i].state = ACCEPTOR_MEMBER;
        a[i].member.state = MEMBER_FORMED;
    }
}

static void set(unsigned i, enum acceptor_state state, const char *why)
{
    a[i].state = state;
    a[i].error = state == ACCEPTOR_UNFIT ? FIRN_ENOTSUP : 0;
    firn__diag(&a[i].why, 0, 0, "%s", why);
}

static const char *said(unsigned n)
{
    static char text[TEXT];
    quorum_say(a, n, text, sizeof text);
    return text;
}

T_TEST(one_reason_of_all_is_told_once_and_in_full)
{
    static const char why[] = "Redis may forget confirmed writes at a fail-over, and IDs are then "
                              "unique only as far as clocks are right: say unsafe_ok=yes to use it";
    begin(3);
    for (unsigned i = 0; i < 3; i++)
        set(i, ACCEPTOR_UNFIT, why);
    char want[TEXT];
    snprintf(want, sizeof want, "0 of 3 stores take part, 2 are needed; all 3: %s", why);
    T_STR(said(3), want);
}

T_TEST(stores_are_counted_as_in_the_url)
{
    begin(5);
    for (unsigned i = 0; i < 5; i++)
        a[i].place = 5 - i;
    set(0, ACCEPTOR_AWAY, "gone");
    set(3, ACCEPTOR_AWAY, "gone");
    T_STR(said(5), "3 of 5 stores take part, 3 are needed; stores 2, 5: gone");
}

T_TEST(who_needs_a_hand_comes_first)
{
    begin(3);
    set(0, ACCEPTOR_AWAY, "no answer");
    set(2, ACCEPTOR_UNFIT, "fsync is off: set it on");
    T_STR(said(3), "1 of 3 stores take part, 2 are needed; store 3: fsync is off: set it on; store "
                   "1: no answer");
}

T_TEST(a_long_reason_keeps_its_cure)
{
    char why[TEXT];
    begin(7);
    memset(why, 'x', sizeof why);
    snprintf(why + 150, sizeof why - 150, ": set it right, then try again");
    for (unsigned i = 0; i < 7; i++)
        set(i, ACCEPTOR_UNFIT, why);
    set(6, ACCEPTOR_AWAY, "it is away");
    const char *text = said(7);
    T_EQ(strlen(text), TEXT - 1);
    T_OK(strstr(text, "stores 1, 2, 3, 4, 5, 6: xxx"), "%s", text);
    T_OK(strstr(text, " ... x"), "%s", text);
    T_STR(text + strlen(text) - 14, "then try again");
}

T_TEST(members_fail_too_but_others_are_told_first)
{
    begin(3);
    set(1, ACCEPTOR_MEMBER, "timed out");
    T_STR(said(3), "3 of 3 stores take part, 2 are needed; store 2: timed out");
    set(2, ACCEPTOR_AWAY, "gone");
    T_STR(said(3), "2 of 3 stores take part, 2 are needed; store 3: gone");
}

T_TEST(members_of_two_quorums_are_not_together)
{
    begin(3);
    a[1].member.quorum.b[0] = 1;
    set(2, ACCEPTOR_AWAY, "gone");
    T_EQ(quorum_together(a, 3), 1u);
    a[2].state = ACCEPTOR_MEMBER;
    T_EQ(quorum_together(a, 3), 2u);
    a[2].member.state = MEMBER_FORMING;
    T_EQ(quorum_together(a, 3), 1u);
}

T_TEST(hopeless_only_without_a_majority)
{
    static const struct {
        unsigned refused, unfit, away;
        int want;
    } row[] = {
        { 0, 0, 5, 0 },
        { 2, 0, 0, 0 },
        { 2, 0, 3, 0 },
        { 3, 0, 0, FIRN_ESTORE },
        { 0, 2, 3, 0 },
        { 0, 3, 0, FIRN_ENOTSUP },
        { 1, 2, 0, FIRN_ENOTSUP },
        { 3, 2, 0, FIRN_ESTORE },
    };
    for (size_t k = 0; k < T_LEN(row); k++) {
        begin(5);
        for (unsigned i = 0; i < row[k].refused; i++)
            set(i, ACCEPTOR_REFUSED, "wiped");
        for (unsigned i = 0; i < row[k].unfit; i++)
            set(row[k].refused + i, ACCEPTOR_UNFIT, "fsync is off");
        for (unsigned i = 0; i < row[k].away; i++)
            set(row[k].refused + row[k].unfit + i, ACCEPTOR_AWAY, "gone");
        T_EQ(quorum_hopeless(a, 5), row[k].want, "row %zu", k);
    }
}

T_TEST(who_is_refused_is_admitted_while_a_majority_is_left)
{
    char full[QUORUM_REASON_BUF];
    begin(3);
    set(0, ACCEPTOR_REFUSED, "wiped");
    a[0].refusal = REFUSED_EMPTY;
    T_STR(said(3), "2 of 3 stores take part, 2 are needed; store 1: wiped: see that it is the "
                   "right one, then `firn admin admit`");
    set(1, ACCEPTOR_REFUSED, "wiped");
    a[1].refusal = REFUSED_EMPTY;
    T_STR(said(3), "1 of 3 stores take part, 2 are needed; stores 1, 2: wiped: `firn admin doctor` "
                   "says what can be done");
    quorum_reason(a, 3, 0, false, full);
    T_STR(full, "wiped: put its backup there, or a copy of a store that is left, then `firn admin "
                "admit --as-is` it");
    quorum_reason(a, 3, 2, false, full);
    T_STR(full, "");
    a[1].refusal = REFUSED_CHANGED;
    quorum_reason(a, 3, 1, false, full);
    T_STR(full, "wiped: if there is nothing newer, `firn admin admit --as-is` it");
}

T_TEST(what_is_not_formed_waits_for_all)
{
    begin(3);
    set(0, ACCEPTOR_BLANK, "");
    set(1, ACCEPTOR_OPENING, "");
    set(2, ACCEPTOR_BLANK, "");
    T_STR(said(3), "0 of 3 stores take part, 2 are needed; stores 1, 3: it is empty: a quorum is "
                   "formed when all of its stores are there; store 2: it does not answer");
}

T_TEST(stores_in_one_server_are_seen)
{
    static const struct {
        const char *identity;
        unsigned want;
    } row[] = {
        { "redis:aaaa:bbbb", 0 },      { "postgres:71:1:5.100", 1 }, { "redis:aaaa:bbbb", 0 },
        { "postgres:71:2:6.200", 1 },  { "postgres:7:1:5.100", 4 },  { "sqlite:9:1.000000001", 5 },
        { "sqlite:9:1.000000001", 6 },
    };
    begin(7);
    for (unsigned i = 0; i < T_LEN(row); i++)
        snprintf(a[i].identity, sizeof a[i].identity, "%s", row[i].identity);
    for (unsigned i = 0; i < T_LEN(row); i++)
        T_EQ(quorum_server_of(a, 7, i), row[i].want, "%s", row[i].identity);
    memset(a[2].identity, 0, sizeof a[2].identity); /* not known yet */
    T_EQ(quorum_server_of(a, 7, 2), 2u);
}
