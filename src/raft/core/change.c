/*
 * Changes of the members: one at a time, each an entry of the log. A new cluster and a forced
 * configuration are entries, too.
 *
 * A change may only begin when the leader has committed an entry of its own term and the last
 * change is committed: else two configurations that do not overlap could both be in force.
 * Tested by tests/unit/raft/core/core.c and tests/unit/raft/core/rules.c.
 */
#include "raft/core/core_in.h"

static int append_config(struct core *c, const struct core_config *config)
{
    char bytes[CORE_CONFIG_BYTES_MAX];
    size_t len = config_write(config, bytes, sizeof bytes);
    return len == 0 ? FIRN_EINVAL : core_append(c, c->term, ENTRY_CONFIG, bytes, len);
}

int core_bootstrap(struct core *c, const struct core_config *config)
{
    if (c->term > 0 || log_last(&c->log) > 0 || c->snapshot || !config_valid(config))
        return FIRN_EINVAL;
    core_set_state(c, 1, 0);
    return append_config(c, config);
}

int core_force(struct core *c, const struct core_config *config)
{
    if (c->ticked || c->state != CORE_FOLLOWER || c->waiting || !config_valid(config))
        return FIRN_EINVAL;
    core_set_state(c, c->term + 1, c->o.id); /* so that no other entry has this index and term */
    return append_config(c, config);
}

/* Whether a majority of the voters of `config` is heard, counting only those that could help. */
static bool reachable(struct core *c, const struct core_config *config)
{
    unsigned n = 0;
    for (unsigned i = 0; i < config->count; i++) {
        const struct core_member *m = &config->member[i];
        const struct peer *p = core_find_peer(c, m->id);
        if (m->role != CORE_VOTER)
            continue;
        if (m->id == c->o.id)
            n++;
        else if (p && lead_heard(c, p))
            n += config_votes(&c->config, m->id) ||
                 p->match + CAUGHT_UP_ENTRIES >= log_last(&c->log);
    }
    return n > config_voters(config) / 2;
}

int core_change(struct core *c, const struct core_config *config, uint64_t *out_index)
{
    if (!core_leads(c) || (!core_settled(c) && !CORE_MUTANT(rc_change_before_own_term)) ||
        (core_changing(c) && !CORE_MUTANT(rc_two_changes)))
        return FIRN_EAGAIN;
    if (!config_valid(config) || config_differences(&c->config, config) != 1)
        return FIRN_EINVAL;
    if (!reachable(c, config))
        return FIRN_ECONFLICT;
    int r = append_config(c, config);
    if (r == 0)
        *out_index = log_last(&c->log);
    return r;
}
