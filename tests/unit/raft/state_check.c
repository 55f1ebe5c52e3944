/* When a leader may write, and who does not answer it. */
#include "raft/state_check.c"

#include "t.h"

static struct {
    struct raft_apply *req;
    char entry[FSM_CHECK_BYTES];
    unsigned applies, errors, pumps;
    bool refuses;
} world;

int raft_apply(struct raft *r, struct raft_apply *req, const struct raft_buffer bufs[],
               const unsigned n, raft_apply_cb cb)
{
    (void)r, (void)n;
    if (world.refuses)
        return RAFT_NOTLEADER;
    req->cb = cb;
    world.req = req;
    world.applies++;
    memcpy(world.entry, bufs[0].base, FSM_CHECK_BYTES);
    raft_free(bufs[0].base);
    return 0;
}

void raft_leader(struct raft *r, raft_id *id, const char **address)
{
    (void)r;
    *id = 3;
    *address = "c:1";
}

void node_say(const struct node *n, enum node_level level, const char *event, const char *fmt, ...)
{
    (void)n, (void)fmt;
    world.errors += level == NODE_ERROR && strcmp(event, "registers_differ") == 0;
}

static struct node node, other;

static void begin(void)
{
    fsm_done(&node.fsm);
    fsm_done(&other.fsm);
    memset(&node, 0, sizeof node);
    memset(&other, 0, sizeof other);
    memset(&world, 0, sizeof world);
    node.loop.closing = true; /* there is no loop to wake */
    node.raft.current_term = other.raft.current_term = 7;
    node.fsm.incarnation = other.fsm.incarnation = 1;
}

static void done(int status)
{
    world.req->cb(world.req, status, NULL);
}

/* As that member does when the entry is committed. */
static void applied_at(struct node *n)
{
    T_EQ(fsm_apply(&n->fsm, world.entry, FSM_CHECK_BYTES), 0);
    T_EQ(n->fsm.check.term, 7);
    check_applied(n);
    T_EQ(n->fsm.check.term, 0);
}

T_TEST(first_all_is_applied_then_it_is_said_then_it_may_write)
{
    begin();
    check_propose(&node);
    T_EQ(world.applies, 0);
    check_settle(&node);
    node.proposals.under_way = 1; /* of what it would not be the sum */
    check_propose(&node);
    T_EQ(world.applies, 0);
    node.proposals.under_way = 0;
    check_propose(&node);
    check_propose(&node);
    T_EQ(world.applies, 1);
    T_OK(!check_passed(&node));
    applied_at(&node);
    done(0);
    T_OK(check_passed(&node) && !check_differs(&node));
    node.raft.current_term = 8;
    T_OK(!check_passed(&node));
    check_propose(&node);
    T_EQ(world.applies, 1);
}

T_TEST(it_is_said_again_after_a_while)
{
    begin();
    check_settle(&node);
    check_propose(&node);
    done(0);
    node.fsm.requests = CHECK_EVERY - 1;
    T_OK(check_passed(&node));
    node.fsm.requests++;
    T_OK(!check_passed(&node));
    check_propose(&node);
    done(0);
    T_OK(check_passed(&node));
    T_EQ(world.applies, 2);
}

T_TEST(one_that_is_lost_is_said_again)
{
    begin();
    check_settle(&node);
    world.refuses = true;
    check_propose(&node);
    world.refuses = false;
    check_propose(&node);
    done(RAFT_LEADERSHIPLOST);
    T_OK(!check_passed(&node));
    check_propose(&node);
    T_EQ(world.applies, 2);
    done(0);
    T_OK(check_passed(&node));
}

T_TEST(who_has_other_registers_does_not_answer_in_that_term)
{
    begin();
    check_settle(&node);
    check_propose(&node);
    applied_at(&other);
    T_OK(!check_differs(&other));
    other.fsm.incarnation = 2;
    applied_at(&other);
    applied_at(&other);
    T_OK(check_differs(&other));
    T_EQ(world.errors, 1);
    other.raft.current_term = 8; /* the next leader may be right */
    T_OK(!check_differs(&other));
    done(0);
}

T_TEST(what_an_earlier_leader_said_is_history)
{
    begin();
    check_settle(&node);
    check_propose(&node);
    other.fsm.requests = 5;
    other.raft.current_term = 9; /* replayed from the log, after a restart */
    applied_at(&other);
    T_OK(!check_differs(&other));
    T_EQ(world.errors, 0);
    done(0);
}
