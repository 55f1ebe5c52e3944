/*
 * The configuration in force: always the newest one in the log, or the snapshot's. It is looked for
 * again when the log is loaded, truncated or replaced, so that nothing of a removed entry stays.
 * Tested by tests/unit/raft/core/core.c and tests/unit/raft/core/rules.c.
 */
#include "raft/core/core_in.h"

void core_config_at(const struct core *c, uint64_t index, struct core_config *out,
                    uint64_t *out_index)
{
    uint64_t end = max64(c->snapshot ? c->snapshot->index : 0, c->log.base);
    firn_assert(index <= log_last(&c->log));
    for (; index > end; index--) {
        const struct core_entry *e = log_at(&c->log, index);
        if (e->type != ENTRY_CONFIG)
            continue;
        int r = config_read(e->bytes, e->len, out);
        firn_assert(r == 0, "index=%" PRIu64, index);
        *out_index = index;
        return;
    }
    if (c->snapshot)
        *out = c->snapshot->config;
    else
        *out = (struct core_config){ 0 };
    *out_index = c->snapshot ? c->snapshot->index : 0;
}

/* Peers keep what is known of them. */
static void follow_config(struct core *c)
{
    struct peer old[CORE_MEMBERS_MAX];
    unsigned olds = c->peers;
    memcpy(old, c->peer, sizeof old);
    c->peers = 0;
    for (unsigned i = 0; i < c->config.count; i++) {
        uint64_t id = c->config.member[i].id;
        if (id == c->o.id)
            continue;
        struct peer *p = &c->peer[c->peers++];
        unsigned k = 0;
        while (k < olds && old[k].id != id)
            k++;
        if (k < olds) {
            *p = old[k];
            continue;
        }
        *p = (struct peer){ .id = id };
        if (c->state == CORE_LEADER)
            lead_peer_begin(c, p);
    }
    if (c->transfer_to && !config_votes(&c->config, c->transfer_to))
        c->transfer_to = 0;
}

void core_config_set(struct core *c, const struct core_config *config, uint64_t index)
{
    c->config = *config;
    c->config_index = index;
    follow_config(c);
}

void core_config_found(struct core *c)
{
    struct core_config config;
    uint64_t index, upto = log_last(&c->log);
    if (CORE_MUTANT(rc_config_at_commit))
        upto = max64(c->commit, c->log.base);
    core_config_at(c, upto, &config, &index);
    core_config_set(c, &config, index);
}
