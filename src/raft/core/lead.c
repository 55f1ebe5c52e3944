/*
 * The leader's side of replication. Each peer has the index that it gets next and the index up to
 * which its disk is known to equal our log. An append goes out as soon as there is something to
 * send, without waiting for the last answer (pipeline); after a refusal one append at a time finds
 * where the logs differ (probe). A heartbeat names the last entry that was sent, so that a lost
 * append shows as a refusal; no timer is needed for it.
 *
 * An entry is committed when it is of this term and on the disks of a majority of the voters; it
 * commits those before it. Our own disk counts as the others' do: when the save is done. A leader
 * that is no voter of the newest configuration does not count, and steps down when it is committed.
 * Tested by tests/unit/raft/core/core.c and tests/unit/raft/core/rules.c.
 */
#include "raft/core/core_in.h"

void lead_peer_begin(struct core *c, struct peer *p)
{
    *p = (struct peer){ .id = p->id, .mode = PEER_PROBE, .due = true };
    p->next = log_last(&c->log) + 1;
}

void lead_begin(struct core *c)
{
    firn_assert(c->state == CORE_CANDIDATE && !c->pre);
    firn_assert(c->vote == c->o.id && c->term_leader == 0, "term=%" PRIu64 " leader=%" PRIu64,
                c->term, c->term_leader);
    if (core_append(c, c->term, ENTRY_NOTHING, NULL, 0) != 0) {
        election_follow(c, c->term, 0); /* without memory it cannot lead */
        return;
    }
    c->state = CORE_LEADER;
    c->leader = c->term_leader = c->o.id;
    c->since_ms = c->now;
    for (unsigned i = 0; i < c->peers; i++) {
        lead_peer_begin(c, &c->peer[i]);
        c->peer[i].next--; /* with our first entry */
    }
    lead_commit(c);
}

bool lead_heard(const struct core *c, const struct peer *p)
{
    return p->heard && c->now - p->heard_ms < c->o.election_ms;
}

void lead_heard_now(struct core *c, struct peer *p)
{
    p->heard = true;
    p->heard_ms = c->now;
}

static uint64_t heard(struct core *c, const struct peer *p)
{
    return lead_heard(c, p);
}

void lead_tick(struct core *c)
{
    if (c->now - c->since_ms >= c->o.election_ms && core_majority(c, heard, 1) == 0) {
        election_follow(c, c->term, 0);
        return;
    }
    transfer_step(c);
}

static uint64_t match(struct core *c, const struct peer *p)
{
    (void)c;
    return p->match;
}

void lead_commit(struct core *c)
{
    uint64_t own = CORE_MUTANT(rc_own_unsaved_counts) ? log_last(&c->log) : c->saved;
    uint64_t index = core_majority(c, match, own);
    if (index > c->commit &&
        (log_term(&c->log, index) == c->term || CORE_MUTANT(rc_count_old_term))) {
        core_commit_to(c, index);
        if (!core_votes(c) && c->config_index <= c->commit) { /* it was removed */
            const struct peer *p = transfer_furthest(c);
            if (p)
                transfer_tell(c, p->id);
            election_follow(c, c->term, 0);
            return;
        }
    }
    lead_show(c);
}

/* ---- reads ---- */

static uint64_t answered_round(struct core *c, const struct peer *p)
{
    (void)c;
    return p->round;
}

void lead_show(struct core *c)
{
    if (c->state != CORE_LEADER || (!core_settled(c) && !CORE_MUTANT(rc_read_unsettled)))
        return;
    uint64_t shown = core_majority(c, answered_round, c->round);
    if (CORE_MUTANT(rc_read_without_round))
        shown = c->round;
    c->shown = max64(c->shown, shown);
}

uint64_t core_ask(struct core *c)
{
    if (c->state != CORE_LEADER)
        return 0;
    c->round++;
    lead_show(c);
    return c->round;
}

uint64_t core_shown(const struct core *c)
{
    return c->shown;
}

/* ---- sending ---- */

static void append_to(struct core *c, struct peer *p, uint64_t before, uint64_t entries,
                      struct core_message *out)
{
    *out = (struct core_message){ .type = MESSAGE_APPEND,
                                  .from = c->o.id,
                                  .to = p->id,
                                  .term = c->term,
                                  .index = before,
                                  .index_term = before ? log_term(&c->log, before) : 0,
                                  .commit = c->commit,
                                  .round = c->round };
    size_t bytes = 0;
    if (entries > 0)
        out->entry = log_at(&c->log, before + 1);
    for (; out->entries < min64(entries, CORE_APPEND_ENTRIES_MAX); out->entries++) {
        bytes += out->entry[out->entries].len;
        if (out->entries > 0 && bytes > CORE_APPEND_BYTES_MAX)
            break;
    }
    p->sent_ms = c->now;
    p->round_sent = c->round;
}

static bool send_to(struct core *c, struct peer *p, struct core_message *out)
{
    uint64_t last = log_last(&c->log), base = c->log.base;
    if (p->mode != PEER_SNAPSHOT && p->next <= base) {
        p->mode = PEER_SNAPSHOT;
        p->snapshot = 0;
        p->due = true;
    }
    bool beat = c->now - p->sent_ms >= core_heartbeat_ms(c) || p->round_sent < c->round;
    switch (p->mode) {
    case PEER_PIPELINE:
        if (p->next <= last && p->inflights < INFLIGHT_MAX) {
            append_to(c, p, p->next - 1, last - p->next + 1, out);
            p->next += out->entries;
            p->inflight[p->inflights++] = p->next - 1;
            return true;
        }
        if (beat)
            append_to(c, p, p->next - 1, 0, out);
        return beat;
    case PEER_PROBE:
        if (!p->due && !beat)
            return false;
        p->due = false;
        append_to(c, p, p->next - 1, last - p->next + 1, out);
        return true;
    case PEER_SNAPSHOT:
        if (snapshot_send(c, p, out))
            return true;
        if (beat) /* says nothing but that there is a leader */
            append_to(c, p, 0, 0, out);
        return beat;
    }
    return false;
}

bool lead_send(struct core *c, struct core_message *out)
{
    for (unsigned i = 0; i < c->peers; i++)
        if (send_to(c, &c->peer[i], out))
            return true;
    return false;
}

/* ---- answers ---- */

static void refused(struct peer *p, uint64_t hint)
{
    uint64_t next = max64(p->match, hint) + 1;
    if (p->mode == PEER_SNAPSHOT || next >= p->next)
        return; /* an old answer */
    p->mode = PEER_PROBE;
    p->next = next;
    p->due = true;
    p->inflights = 0;
}

static void matched(struct peer *p, uint64_t index, uint64_t base)
{
    firn_assert(index >= p->match);
    p->match = index;
    unsigned n = 0;
    while (n < p->inflights && p->inflight[n] <= index)
        n++;
    p->inflights -= n;
    memmove(p->inflight, p->inflight + n, p->inflights * sizeof p->inflight[0]);
    if ((p->mode == PEER_PROBE && index + 1 >= p->next) ||
        (p->mode == PEER_SNAPSHOT && index >= base)) {
        p->mode = PEER_PIPELINE;
        p->inflights = 0;
        p->next = index + 1;
    }
    p->next = max64(p->next, index + 1);
}

void lead_result(struct core *c, const struct core_message *m)
{
    struct peer *p = core_find_peer(c, m->from);
    if (c->state != CORE_LEADER || !p || m->round > c->round)
        return;
    lead_heard_now(c, p);
    p->round = max64(p->round, m->round);
    if (m->ok && m->index <= log_last(&c->log)) {
        matched(p, max64(p->match, m->index), c->log.base);
        lead_commit(c);
        transfer_step(c);
    } else if (!m->ok) {
        refused(p, m->index);
    }
    lead_show(c);
}
