/*
 * Whether the leader's registers are everybody's. A leader goes on from its own: if a disk or a mistake left it other
 * ones, it would hand out again what was handed out. All have the same log, so all have the same registers at
 * each place in it, or somebody is wrong.
 *
 * So a leader first lets everything be applied that is in its log, then says in an entry what its registers
 * come to, and begins its first write when that entry is applied; and again from time to time. A member whose
 * own do not come to the same answers that leader no more, in this term. It applies what is committed before
 * it answers for what follows (libraft does both in this order), so of three that agree by two, no write of the
 * third is ever acknowledged: it gives up the lead, and one of the two gets it. Which of two is right if the
 * third is gone is not for us to say: then nobody writes. What this does not see: a leader that goes wrong while
 * it leads, until it says so the next time; and a member that got its registers from the wrong one, as a snapshot.
 */
#include "raft/node_in.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    CHECK_EVERY = 4096,     /* requests, */
    CHECK_PER_REGISTER = 4, /* and more where there are many registers: a sum looks at all */
    SAY_EVERY_MS = 10000,
};

bool check_passed(const struct node *n)
{
    return n->check.term == n->raft.current_term && n->fsm.requests < n->check.until;
}

void check_settle(struct node *n)
{
    n->check.settled = n->raft.current_term;
}

bool check_settled(const struct node *n)
{
    return n->check.settled == n->raft.current_term;
}

/* Its own entry: everything before it is applied here too, so all may be asked to compare again later. */
static void said(struct raft_apply *req, int status, void *result)
{
    struct node *n = req->data;
    (void)result;
    n->check.under_way = false;
    if (status == 0) {
        uint64_t every = (uint64_t)n->fsm.map.count * CHECK_PER_REGISTER;
        n->check.term = n->raft.current_term;
        n->check.until = n->fsm.requests + (every > CHECK_EVERY ? every : CHECK_EVERY);
    }
    free(req);
    node_pump_soon(n);
}

void check_propose(struct node *n)
{
    if (n->check.under_way || n->proposals.under_way > 0 || n->proposals.naming ||
        !check_settled(n))
        return;
    struct raft_apply *req = calloc(1, sizeof *req);
    struct raft_buffer b = { raft_malloc(FSM_CHECK_BYTES), FSM_CHECK_BYTES };
    if (req && b.base) {
        fsm_entry_check(b.base, n->raft.current_term, &n->fsm);
        req->data = n;
        if (node_append(n, req, &b, said) == 0) {
            n->check.under_way = true;
            return;
        }
    }
    free(req);
    raft_free(b.base);
}

/* Two that differ and no third may elect each other for ever. */
static void tell(struct node *n, const struct fsm_check *c)
{
    raft_id id = 0;
    const char *address = NULL;
    uint64_t now = uv_now(&n->loop.uv);
    if (n->check.said_ms != 0 && now - n->check.said_ms < SAY_EVERY_MS)
        return;
    n->check.said_ms = now;
    raft_leader(&n->raft, &id, &address);
    node_say(n, NODE_ERROR, "registers_differ",
             "leader=%llx address=%s term=%" PRIu64 " sum=%016" PRIx64 " leaders_sum=%016" PRIx64
             " cure=if no other member says so, remove this one, delete its folder, join anew; if "
             "all others do, the same for that leader",
             id, address ? address : "?", c->term, c->sum, c->leaders_sum);
}

void check_applied(struct node *n)
{
    struct fsm_check *c = &n->fsm.check;
    bool ours = c->term == n->raft.current_term; /* else it was another leader's, long ago */
    if (ours && !c->same && n->check.differs != c->term) {
        n->check.differs = c->term;
        tell(n, c);
    }
    *c = (struct fsm_check){ 0 };
}

bool check_differs(const struct node *n)
{
    return n->check.differs != 0 && n->check.differs == n->raft.current_term;
}
