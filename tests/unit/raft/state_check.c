/* When a leader may write, and who does not answer it. */
#include "raft/state_check.c"

#include "t.h"

static struct {
    char entry[FSM_CHECK_BYTES];
    unsigned applies, errors;
    bool refuses, unsettled;
    uint64_t term, last, committed;
} world;

bool proposal_append(struct member *m, struct proposal *p, char *entry, size_t len)
{
    if (world.refuses)
        return false;
    T_EQ(len, FSM_CHECK_BYTES);
    T_EQ(p->kind, PROPOSAL_CHECK);
    memcpy(world.entry, entry, len);
    world.applies++;
    m->check.under_way = true;
    m->proposals.first = p;
    return true;
}

uint64_t core_term(const struct core *c)
{
    return c ? *(const uint64_t *)(const void *)c : world.term;
}

enum core_state core_state(const struct core *c)
{
    (void)c;
    return CORE_LEADER;
}

bool core_settled(const struct core *c)
{
    (void)c;
    return !world.unsettled;
}

uint64_t core_applied(const struct core *c)
{
    (void)c;
    return 100;
}

uint64_t core_last(const struct core *c)
{
    (void)c;
    return world.last;
}

uint64_t core_committed(const struct core *c)
{
    (void)c;
    return world.committed;
}

uint64_t core_leader(const struct core *c)
{
    (void)c;
    return 3;
}

const struct core_config *core_config(const struct core *c)
{
    (void)c;
    return NULL;
}

const struct core_member *config_member(const struct core_config *c, uint64_t id)
{
    (void)c, (void)id;
    return NULL;
}

void member_say(const struct member *m, enum node_level level, const char *event, const char *fmt,
                ...)
{
    (void)m, (void)fmt;
    world.errors += level == NODE_ERROR && strcmp(event, "registers_differ") == 0;
}

static struct member node, other;
static uint64_t other_term; /* the member's core is this, for core_term() */

static void begin(void)
{
    fsm_done(&node.fsm);
    fsm_done(&other.fsm);
    memset(&node, 0, sizeof node);
    memset(&other, 0, sizeof other);
    memset(&world, 0, sizeof world);
    world.term = other_term = 7;
    world.last = 100;
    other.core = (struct core *)(void *)&other_term;
    node.fsm.incarnation = other.fsm.incarnation = 1;
}

static void done(bool applied)
{
    free(node.proposals.first);
    node.proposals.first = NULL;
    check_said(&node, 101, applied);
}

/* As that member does when the entry is committed. */
static void applied_at(struct member *m)
{
    T_EQ(fsm_apply(&m->fsm, world.entry, FSM_CHECK_BYTES), 0);
    T_EQ(m->fsm.check.term, 7);
    check_applied(m);
    T_EQ(m->fsm.check.term, 0);
}

T_TEST(first_all_is_applied_then_it_is_said_then_it_may_write)
{
    struct proposal first = { .kind = PROPOSAL_WRITES };
    begin();
    world.unsettled = true;
    check_propose(&node);
    T_EQ(world.applies, 0);
    world.unsettled = false;
    node.proposals.first = &first; /* of what it would not be the sum */
    check_propose(&node);
    T_EQ(world.applies, 0);
    node.proposals.first = NULL;
    world.last = 101; /* an entry that is not applied */
    check_propose(&node);
    T_EQ(world.applies, 0);
    world.last = 100;
    check_propose(&node);
    check_propose(&node);
    T_EQ(world.applies, 1);
    T_OK(!check_passed(&node));
    applied_at(&node);
    done(true);
    T_OK(check_passed(&node) && !check_differs(&node));
    world.term = 8;
    T_OK(!check_passed(&node));
}

T_TEST(it_is_said_again_after_a_while)
{
    begin();
    check_propose(&node);
    done(true);
    node.fsm.requests = CHECK_EVERY - 1;
    T_OK(check_passed(&node));
    node.fsm.requests++;
    T_OK(!check_passed(&node));
    check_propose(&node);
    done(true);
    T_OK(check_passed(&node));
    T_EQ(world.applies, 2);
}

/* Members that differ commit the digest, too: they have not compared it yet. */
T_TEST(an_entry_behind_it_proves_it)
{
    begin();
    world.committed = 101;
    check_propose(&node);
    T_OK(!check_proved(&node));
    done(true);
    T_OK(check_passed(&node) && !check_proved(&node));
    check_propose(&node); /* such an entry, where no write comes */
    world.committed = 102;
    done(true);
    T_OK(check_proved(&node));
    world.term = 8;
    world.committed = 103;
    T_OK(!check_proved(&node));
}

T_TEST(one_that_is_lost_is_said_again)
{
    begin();
    world.refuses = true;
    check_propose(&node);
    world.refuses = false;
    check_propose(&node);
    done(false);
    T_OK(!check_passed(&node));
    check_propose(&node);
    T_EQ(world.applies, 2);
    done(true);
    T_OK(check_passed(&node));
}

T_TEST(who_has_other_registers_does_not_answer_in_that_term)
{
    begin();
    check_propose(&node);
    applied_at(&other);
    T_OK(!check_differs(&other));
    other.fsm.incarnation = 2;
    applied_at(&other);
    applied_at(&other);
    T_OK(check_differs(&other));
    T_EQ(world.errors, 1);
    other_term = 8; /* the next leader may be right */
    T_OK(!check_differs(&other));
    done(true);
}

T_TEST(what_an_earlier_leader_said_is_history)
{
    begin();
    check_propose(&node);
    other.fsm.requests = 5;
    other_term = 9; /* replayed from the log, after a restart */
    applied_at(&other);
    T_OK(!check_differs(&other));
    T_EQ(world.errors, 0);
    done(true);
}
