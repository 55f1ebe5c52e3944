/*
 * Snapshots: taking one, sending one in chunks, and taking a leader's.
 *
 * A snapshot waits until it is saved; until then the old one and the whole log stay. A leader's
 * snapshot is only taken when the log does not have its entry: then nothing of the log can be kept.
 * While it waits, the log is frozen: entries are ignored, the member does not stand, and it votes
 * with the old log as its measure.
 * Tested by tests/unit/raft/core/core.c and tests/unit/raft/core/rules.c.
 */
#include "raft/core/core_in.h"

#include <stdlib.h>

/* ---- taking ---- */

int core_snapshot(struct core *c, const char *bytes, size_t len, uint64_t keep)
{
    uint64_t index = c->applied;
    if (c->waiting)
        return FIRN_EAGAIN;
    if (index <= core_snapshot_index(c) || len > SNAPSHOT_BYTES_MAX)
        return FIRN_EINVAL;
    struct core_config config;
    uint64_t config_index;
    core_config_at(c, index, &config, &config_index);
    if (CORE_MUTANT(rc_snapshot_newest_config))
        config = c->config;
    struct core_snapshot *s = snapshot_new(index, log_term(&c->log, index), &config, len);
    if (!s)
        return FIRN_ENOMEM;
    if (len > 0)
        memcpy((char *)s->bytes, bytes, len);
    c->waiting = s;
    c->waiting_received = c->waiting_given = false;
    c->waiting_base = max64(c->log.base, index > keep ? index - keep : 0);
    return 0;
}

/* ---- when it is saved ---- */

static void install(struct core *c)
{
    const struct core_snapshot *s = c->snapshot;
    firn_assert(s->index > c->commit, "index=%" PRIu64 " commit=%" PRIu64, s->index, c->commit);
    firn_assert(c->state == CORE_FOLLOWER);
    if (CORE_MUTANT(rc_snapshot_keeps_log) && log_last(&c->log) >= s->index)
        c->given = c->saved = log_last(&c->log);
    else
        log_reset(&c->log, s->index, s->term);
    c->commit = s->index;
    c->proved = max64(c->proved, s->index); /* committed: every later leader has it */
    core_config_found(c);
}

static void answer(struct core *c, uint64_t need, uint64_t to, const struct core_snapshot *s,
                   uint64_t offset)
{
    core_reply(c, need,
               &(struct core_message){ .type = MESSAGE_SNAPSHOT_RESULT,
                                       .to = to,
                                       .ok = true,
                                       .index = s->index,
                                       .index_term = s->term,
                                       .offset = offset,
                                       .total = s->len });
}

void snapshot_saved(struct core *c)
{
    firn_assert(c->waiting && c->waiting_given);
    free(c->snapshot);
    c->snapshot = c->waiting;
    c->waiting = NULL;
    if (!c->waiting_received) {
        log_trim(&c->log, max64(c->log.base, c->waiting_base));
        return;
    }
    install(c);
    if (c->leader)
        answer(c, c->term_save, c->leader, c->snapshot, c->snapshot->len);
}

/* ---- a leader's, in chunks ---- */

void snapshot_forget(struct core *c)
{
    free(c->collecting);
    c->collecting = NULL;
    c->collected = 0;
}

/* False: it is dealt with, or there is no memory. */
static bool collect(struct core *c, const struct core_message *m)
{
    struct core_snapshot *s = c->collecting;
    if (!s || s->index != m->index || s->term != m->index_term || s->len != m->total) {
        snapshot_forget(c);
        s = c->collecting = snapshot_new(m->index, m->index_term, m->config, (size_t)m->total);
        if (!s)
            return false;
    }
    if (m->offset == c->collected && m->len > 0) {
        memcpy((char *)s->bytes + c->collected, m->bytes, m->len);
        c->collected += m->len;
    }
    return true;
}

void snapshot_receive(struct core *c, const struct core_message *m)
{
    firn_assert(follow_possible(c, m));
    election_follow(c, m->term, m->from);
    if (c->waiting && c->waiting_received)
        return;
    const struct core_snapshot had = { .index = m->index, .term = m->index_term, .len = m->total };
    if (m->index <= c->commit || log_has(&c->log, m->index, m->index_term)) {
        /* The log has all of it. What a snapshot contains is committed. */
        snapshot_forget(c);
        c->proved = max64(c->proved, m->index);
        if (m->index > c->commit)
            core_commit_to(c, m->index);
        if (m->index <= c->saved)
            answer(c, c->term_save, m->from, &had, m->total);
        return;
    }
    if (!collect(c, m))
        return;
    if (c->collected < m->total) {
        answer(c, c->term_save, m->from, &had, c->collected);
    } else if (!c->waiting) { /* else the leader sends the last chunk again */
        c->waiting = c->collecting;
        c->waiting_received = true;
        c->waiting_given = false;
        c->waiting_base = m->index;
        c->collecting = NULL;
        c->collected = 0;
        if (CORE_MUTANT(rc_snapshot_unsaved))
            answer(c, c->term_save, m->from, &had, m->total);
    }
}

/* ---- sending ---- */

bool snapshot_send(struct core *c, struct peer *p, struct core_message *out)
{
    const struct core_snapshot *s = c->snapshot;
    firn_assert(s && s->index >= c->log.base, "no snapshot before entry %" PRIu64, c->log.base);
    if (p->snapshot != s->index) { /* the first, or a newer one */
        p->snapshot = s->index;
        p->offset = 0;
        p->due = true;
    }
    if (!p->due && c->now - p->chunk_ms < c->o.election_ms)
        return false;
    p->due = false;
    p->chunk_ms = c->now;
    uint64_t offset = p->offset;
    *out = (struct core_message){ .type = MESSAGE_SNAPSHOT,
                                  .from = c->o.id,
                                  .to = p->id,
                                  .term = c->term,
                                  .index = s->index,
                                  .index_term = s->term,
                                  .offset = offset,
                                  .total = s->len,
                                  .bytes = s->bytes + offset,
                                  .len = (size_t)min64(s->len - offset, CORE_CHUNK_BYTES),
                                  .config = &s->config };
    return true;
}

void snapshot_result(struct core *c, const struct core_message *m)
{
    struct peer *p = core_find_peer(c, m->from);
    if (c->state != CORE_LEADER || !p)
        return;
    lead_heard_now(c, p);
    if (!m->ok || p->mode != PEER_SNAPSHOT || p->snapshot != m->index || !c->snapshot ||
        c->snapshot->index != m->index || c->snapshot->len != m->total)
        return;
    if (m->offset == m->total) {
        p->mode = PEER_PIPELINE;
        p->inflights = 0;
        p->match = max64(p->match, m->index);
        p->next = p->match + 1;
        lead_commit(c);
    } else if (m->offset != p->offset) {
        p->offset = m->offset;
        p->due = true;
    }
}
