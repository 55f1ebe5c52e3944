/*
 * Leader state check: compare register digests before the first write.
 * All members apply the same log, so all have the same registers at each index, unless a disk or a
 * bug changed them on one. Such a member, as the leader, would issue again what was issued before.
 *
 * So a leader first applies every entry of its log, then appends its digest, and begins to write
 * when that entry is applied; it repeats this every few thousand requests. A member whose digest
 * differs no longer answers that leader in this term. libraft applies a committed entry before it
 * answers for a later one. So if two of three members agree, no write of the third is acknowledged:
 * it loses the lead, and one of the two gets it. If only two members are up and they differ,
 * neither can tell which one is right, and no write is acknowledged. Not detected: registers that
 * change on the leader, until its next digest; and a member that received its registers from the
 * wrong leader, as a snapshot.
 */
#include "raft/node_in.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    CHECK_EVERY = 4096, /* requests, or */
    CHECK_PER_REGISTER =
        4, /* requests per register if that is more: a digest reads all registers */
    SAY_EVERY_MS = 10000,
};

bool check_passed(const struct node *n)
{
    firn_assert(n->check.term <= n->raft.current_term, "checked=%llu term=%llu", n->check.term,
                n->raft.current_term);
    return n->check.term == n->raft.current_term && n->fsm.requests < n->check.until;
}

void check_settle(struct node *n)
{
    firn_assert(n->check.settled <= n->raft.current_term, "settled=%llu term=%llu",
                n->check.settled, n->raft.current_term);
    n->check.settled = n->raft.current_term;
}

bool check_settled(const struct node *n)
{
    return n->check.settled == n->raft.current_term;
}

/* The leader's own entry is applied, and with it every entry before it. */
static void said(struct raft_apply *req, int status, void *result)
{
    struct node *n = req->data;
    (void)result;
    firn_assert(n->check.under_way && n->check.term <= n->raft.current_term,
                "checked=%llu term=%llu", n->check.term, n->raft.current_term);
    n->check.under_way = false;
    if (status == 0) {
        uint64_t every = (uint64_t)n->fsm.map.count * CHECK_PER_REGISTER;
        n->check.term = n->raft.current_term;
        firn_assert(n->check.settled == n->raft.current_term, "settled=%llu term=%llu",
                    n->check.settled, n->raft.current_term);
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

/* Logs the difference, rate-limited: two members that differ may alternate as leader. */
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
             " cure=if no other member says so, remove this one, delete its folder, join again; if "
             "all other members say so, do the same with that leader",
             id, address ? address : "?", c->term, c->sum, c->leaders_sum);
}

void check_applied(struct node *n)
{
    struct fsm_check *c = &n->fsm.check;
    firn_assert(n->check.differs <= n->raft.current_term, "differs=%llu term=%llu",
                n->check.differs, n->raft.current_term);
    bool ours = c->term == n->raft.current_term; /* else it is an entry of an earlier leader */
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
