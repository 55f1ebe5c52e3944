/*
 * Handing the lead over: no new entries, the target gets all that there are, then it is told to
 * stand at once. It ends when another term begins, or after one election time-out.
 * Tested by tests/unit/raft/core/core.c and tests/unit/raft/core/rules.c.
 */
#include "raft/core/core_in.h"

const struct peer *transfer_furthest(const struct core *c)
{
    const struct peer *best = NULL;
    for (unsigned i = 0; i < c->peers; i++) {
        const struct peer *p = &c->peer[i];
        if (config_votes(&c->config, p->id) && p->heard && (!best || p->match > best->match))
            best = p;
    }
    return best;
}

int core_transfer(struct core *c, uint64_t to)
{
    if (!core_leads(c))
        return FIRN_EAGAIN;
    const struct peer *p = to ? core_find_peer(c, to) : transfer_furthest(c);
    if (!p || !config_votes(&c->config, p->id))
        return FIRN_ENOENT;
    c->transfer_to = p->id;
    c->transfer_ms = c->now;
    c->told_ms = 0;
    transfer_step(c);
    return 0;
}

void transfer_tell(struct core *c, uint64_t to)
{
    core_reply(c, c->term_save, &(struct core_message){ .type = MESSAGE_TIMEOUT_NOW, .to = to });
}

void transfer_step(struct core *c)
{
    if (c->state != CORE_LEADER || !c->transfer_to)
        return;
    if (c->now - c->transfer_ms >= c->o.election_ms) {
        c->transfer_to = 0;
        return;
    }
    const struct peer *p = core_find_peer(c, c->transfer_to);
    firn_assert(p, "transfer_to=%" PRIu64, c->transfer_to);
    if (p->match == log_last(&c->log) &&
        (c->told_ms == 0 || c->now - c->told_ms >= core_heartbeat_ms(c))) {
        c->told_ms = max64(c->now, 1);
        transfer_tell(c, p->id);
    }
}

void transfer_receive(struct core *c, const struct core_message *m)
{
    if (c->state == CORE_FOLLOWER && m->term == c->term && m->from == c->term_leader)
        election_stand(c, false, true);
}
