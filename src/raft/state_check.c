/*
 * Leader state check: compare register digests before the first write.
 * All members apply the same log, so all have the same registers at each index, unless a disk or a
 * bug changed them on one. Such a member, as the leader, would issue again what was issued before.
 *
 * So a leader first applies every entry of its log, then appends its digest, and begins to write
 * when that entry is applied; it repeats this every few thousand requests. A member whose digest
 * differs no longer answers that leader in this term. member_drain() applies a committed entry
 * before it answers for a later one. So if two of three members agree, no write of the third is
 * acknowledged: it loses the lead, and one of the two gets it. The digest itself is committed by
 * members that have not compared it yet, so the first one of a term is proved by the commit of an
 * entry behind it. A write is such an entry. Current reads and changes of the members wait for one:
 * a read is answered by any majority, also by members that lack the digest, and a leader of two
 * that removes the other one needs no answer but its own. If only two members are up and they
 * differ, neither can tell which one is right, and no write is acknowledged. Not detected:
 * registers that change on the leader, until its next digest; and a member that received its
 * registers from the wrong leader, as a snapshot.
 */
#include "raft/member_in.h"
#include "raft/mutant.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    CHECK_EVERY = 4096, /* requests, or */
    CHECK_PER_REGISTER =
        4, /* requests per register if that is more: a digest reads all registers */
    SAY_EVERY_MS = 10000,
};

bool check_passed(const struct member *m)
{
    firn_assert(m->check.term <= core_term(m->core), "checked=%" PRIu64 " term=%" PRIu64,
                m->check.term, core_term(m->core));
    return m->check.term == core_term(m->core) && m->fsm.requests < m->check.until;
}

bool check_proved(const struct member *m)
{
    return check_passed(m) &&
           (core_committed(m->core) > m->check.index || MEMBER_MUTANT(rm_unproved));
}

void check_said(struct member *m, uint64_t index, bool applied)
{
    firn_assert(m->check.under_way);
    m->check.under_way = false;
    if (!applied || core_state(m->core) != CORE_LEADER)
        return;
    if (m->check.term != core_term(m->core)) /* else this entry proves the one before */
        m->check.index = index;
    uint64_t every = (uint64_t)m->fsm.map.count * CHECK_PER_REGISTER;
    m->check.term = core_term(m->core);
    m->check.until = m->fsm.requests + (every > CHECK_EVERY ? every : CHECK_EVERY);
}

void check_propose(struct member *m)
{
    if (m->proposals.first || !core_settled(m->core) || core_applied(m->core) != core_last(m->core))
        return;
    struct proposal *p = calloc(1, sizeof *p);
    char room[FSM_CHECK_BYTES];
    if (!p)
        return;
    p->kind = PROPOSAL_CHECK;
    fsm_entry_check(room, core_term(m->core), &m->fsm);
    if (!proposal_append(m, p, room, sizeof room))
        free(p);
}

/* Logs the difference, rate-limited: two members that differ may alternate as leader. */
static void tell(struct member *m, const struct fsm_check *c)
{
    if (m->check.said_ms != 0 && m->now_ms - m->check.said_ms < SAY_EVERY_MS)
        return;
    m->check.said_ms = m->now_ms;
    const struct core_member *leader = config_member(core_config(m->core), core_leader(m->core));
    member_say(
        m, NODE_ERROR, "registers_differ",
        "leader=%" PRIx64 " address=%s term=%" PRIu64 " sum=%016" PRIx64 " leaders_sum=%016" PRIx64
        " cure=if no other member says so, remove this one, delete its folder, join again; if "
        "all other members say so, do the same with that leader",
        core_leader(m->core), leader ? leader->address : "?", c->term, c->sum, c->leaders_sum);
}

void check_applied(struct member *m)
{
    struct fsm_check *c = &m->fsm.check;
    firn_assert(m->check.differs <= core_term(m->core), "differs=%" PRIu64 " term=%" PRIu64,
                m->check.differs, core_term(m->core));
    bool ours = c->term == core_term(m->core); /* else it is an entry of an earlier leader */
    if (ours && !c->same && m->check.differs != c->term) {
        m->check.differs = c->term;
        tell(m, c);
    }
    *c = (struct fsm_check){ 0 };
}

bool check_differs(const struct member *m)
{
    return m->check.differs != 0 && m->check.differs == core_term(m->core);
}
