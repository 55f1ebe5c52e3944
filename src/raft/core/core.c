/*
 * Life, outputs and accessors of the Raft core.
 *
 * Saves: what changed since the last core_save() is one save. The disk does saves in order, so when
 * save n is done, the disk has the log as it was when n was given out. Entries truncated since then
 * are not the log's any more: `last` of every save under way is lowered with a truncation, and
 * `saved` is never more than the prefix that the log and the disk have in common.
 */
#include "raft/core/core_in.h"

#include <stdlib.h>

uint64_t core_heartbeat_ms(const struct core *c)
{
    return max64(1, c->o.heartbeat_ms ? c->o.heartbeat_ms : c->o.election_ms / 5);
}

struct peer *core_find_peer(struct core *c, uint64_t id)
{
    for (unsigned i = 0; i < c->peers; i++)
        if (c->peer[i].id == id)
            return &c->peer[i];
    return NULL;
}

/* ---- life ---- */

static void free_snapshots(struct core *c)
{
    free(c->snapshot);
    free(c->waiting);
    free(c->collecting);
}

static struct core_snapshot *copy_snapshot(const struct core_snapshot *s)
{
    struct core_snapshot *copy = snapshot_new(s->index, s->term, &s->config, s->len);
    if (copy && s->len > 0)
        memcpy((char *)copy->bytes, s->bytes, s->len);
    return copy;
}

/* FIRN_EFORMAT: entries do not follow each other. */
static int check_entries(const struct core_saved_state *s)
{
    struct core_config config;
    uint64_t term = 1;
    if (s->entries > 0 && (s->first == 0 || s->first > (s->snapshot ? s->snapshot->index : 0) + 1))
        return FIRN_EFORMAT;
    for (size_t i = 0; i < s->entries; i++) {
        const struct core_entry *e = &s->entry[i];
        if (e->index != s->first + i || e->term < term)
            return FIRN_EFORMAT;
        if (e->type < ENTRY_NOTHING || e->type > ENTRY_CONFIG ||
            (e->type == ENTRY_CONFIG && config_read(e->bytes, e->len, &config) != 0))
            return FIRN_EFORMAT;
        term = e->term;
    }
    return 0;
}

static int load_log(struct core *c, const struct core_saved_state *s)
{
    uint64_t behind = c->snapshot ? c->snapshot->index : 0; /* entries after it are needed */
    size_t i = 0;
    if (c->snapshot) {
        c->log.base = behind;
        c->log.base_term = c->snapshot->term;
    }
    if (s->entries == 0)
        return 0;
    uint64_t last = s->first + s->entries - 1;
    if (behind > 0 && s->first <= behind) {
        /* The disk stores a snapshot before it removes the log that the snapshot replaces. */
        if (last < behind || s->entry[behind - s->first].term != c->snapshot->term) {
            c->snapshot_again = true;
            return 0;
        }
        if (s->first > 1) { /* the term before the first is not known, so the first is `base` */
            c->log.base = s->first;
            c->log.base_term = s->entry[i++].term;
        } else {
            c->log.base = c->log.base_term = 0;
        }
    }
    for (; i < s->entries; i++) {
        const struct core_entry *e = &s->entry[i];
        if (e->term < c->log.base_term)
            return FIRN_EFORMAT;
        int r = log_append(&c->log, e->term, e->type, e->bytes, e->len);
        if (r != 0)
            return r;
    }
    return 0;
}

int core_new(const struct core_opts *o, const struct core_saved_state *s, uint64_t now_ms,
             struct core **out)
{
    if (o->id == 0 || o->election_ms == 0)
        return FIRN_EINVAL;
    int r = check_entries(s);
    if (r != 0)
        return r;
    if (s->snapshot &&
        (!config_valid(&s->snapshot->config) || s->snapshot->index == 0 || s->snapshot->term == 0))
        return FIRN_EFORMAT;
    struct core *c = calloc(1, sizeof *c);
    if (!c)
        return FIRN_ENOMEM;
    c->o = *o;
    c->now = now_ms;
    c->random = o->seed;
    c->term = s->term;
    c->vote = s->vote;
    if (s->snapshot && !(c->snapshot = copy_snapshot(s->snapshot)))
        r = FIRN_ENOMEM;
    if (r == 0)
        r = load_log(c, s);
    if (r != 0) {
        core_free(c);
        return r;
    }
    /* A crash within a save may leave entries or a snapshot of a term that was not yet written. */
    uint64_t term = log_term(&c->log, log_last(&c->log));
    if (c->snapshot)
        term = max64(term, c->snapshot->term);
    if (term > c->term)
        core_set_state(c, term, 0);
    c->saved = c->given = log_last(&c->log);
    c->commit = c->snapshot ? c->snapshot->index : 0;
    core_config_found(c);
    election_reset(c);
    *out = c;
    return 0;
}

void core_free(struct core *c)
{
    if (!c)
        return;
    free_snapshots(c);
    log_done(&c->log);
    free(c);
}

/* ---- state ---- */

void core_set_state(struct core *c, uint64_t term, uint64_t vote)
{
    firn_assert(term >= c->term, "term=%" PRIu64 " was=%" PRIu64, term, c->term);
    firn_assert(term > c->term || c->vote == 0 || c->vote == vote || CORE_MUTANT(rc_vote_twice),
                "term=%" PRIu64 " vote=%" PRIu64 " was=%" PRIu64, term, vote, c->vote);
    if (term > c->term) {
        c->term_save = c->number + 1;
        c->term_leader = 0;
        c->proved = c->acked = c->ack_round = 0;
        c->ack_due = false;
        c->replies = 0; /* they speak of an earlier term */
        snapshot_forget(c);
    }
    c->vote_save = c->number + 1;
    c->term = term;
    c->vote = vote;
    c->state_dirty = true;
}

int core_append(struct core *c, uint64_t term, enum core_type type, const char *bytes, size_t len)
{
    firn_assert(term <= c->term);
    int r = log_append(&c->log, term, type, bytes, len);
    if (r == 0 && type == ENTRY_CONFIG)
        core_config_found(c);
    return r;
}

void core_truncate(struct core *c, uint64_t from)
{
    firn_assert(from > c->commit, "from=%" PRIu64 " commit=%" PRIu64, from, c->commit);
    firn_assert(from > c->proved, "from=%" PRIu64 " proved=%" PRIu64, from, c->proved);
    firn_assert(c->state != CORE_LEADER, "a leader only appends");
    log_truncate(&c->log, from);
    if (from <= c->given) {
        c->truncate = c->truncate ? min64(c->truncate, from) : from;
        c->given = from - 1;
    }
    if (!CORE_MUTANT(rc_overtaken_save_counts)) {
        c->saved = min64(c->saved, from - 1);
        for (unsigned i = 0; i < c->savings; i++) {
            struct saving *s = &c->saving[(c->saving_head + i) % SAVES_MAX];
            s->last = min64(s->last, from - 1);
        }
    }
    if (c->config_index >= from && !CORE_MUTANT(rc_config_not_rolled_back))
        core_config_found(c);
}

void core_commit_to(struct core *c, uint64_t index)
{
    firn_assert(index >= c->commit && index <= log_last(&c->log),
                "index=%" PRIu64 " commit=%" PRIu64 " last=%" PRIu64, index, c->commit,
                log_last(&c->log));
    c->commit = index;
    if (CORE_MUTANT(rc_config_at_commit))
        core_config_found(c);
}

static void insert(uint64_t *value, unsigned n, uint64_t v) /* descending */
{
    for (; n > 0 && value[n - 1] < v; n--)
        value[n] = value[n - 1];
    value[n] = v;
}

uint64_t core_majority(struct core *c, uint64_t (*of)(struct core *c, const struct peer *p),
                       uint64_t own)
{
    uint64_t value[CORE_MEMBERS_MAX + 1];
    unsigned n = 0;
    for (unsigned i = 0; i < c->config.count; i++) {
        const struct core_member *m = &c->config.member[i];
        if (m->role == CORE_VOTER)
            insert(value, n++, m->id == c->o.id ? own : of(c, core_find_peer(c, m->id)));
    }
    if (CORE_MUTANT(rc_removed_counts) && !core_votes(c))
        insert(value, n, own);
    return n == 0 ? 0 : value[n / 2];
}

/* ---- inputs ---- */

static void set_now(struct core *c, uint64_t now_ms)
{
    firn_assert(now_ms >= c->now, "now_ms=%" PRIu64 " was=%" PRIu64, now_ms, c->now);
    c->now = now_ms;
}

void core_tick(struct core *c, uint64_t now_ms)
{
    set_now(c, now_ms);
    if (c->ticked &&
        now_ms - c->tick_ms > c->o.election_ms / 2) { /* it was this process that slept */
        c->since_ms = now_ms;
        c->deadline_ms = max64(c->deadline_ms, now_ms + core_heartbeat_ms(c));
    }
    c->ticked = true;
    c->tick_ms = now_ms;
    if (c->state == CORE_LEADER)
        lead_tick(c);
    else
        election_tick(c);
}

/* What a term other than ours means. False: the message is dealt with. */
static bool terms(struct core *c, const struct core_message *m)
{
    switch (m->type) {
    case MESSAGE_VOTE:
        return true; /* election.c: a higher term is not always believed */
    case MESSAGE_APPEND:
    case MESSAGE_SNAPSHOT:
        if (m->term < c->term && !CORE_MUTANT(rc_old_leader)) {
            /* The sender learns that its lead is over. */
            core_reply(c, c->term_save,
                       &(struct core_message){ .type = m->type == MESSAGE_APPEND
                                                           ? MESSAGE_APPEND_RESULT
                                                           : MESSAGE_SNAPSHOT_RESULT,
                                               .to = m->from,
                                               .index = m->index,
                                               .index_term = m->index_term,
                                               .total = m->total });
            return false;
        }
        if (!follow_possible(c, m)) {
            c->impossible++;
            return false;
        }
        return true;
    case MESSAGE_VOTE_RESULT:
        if (m->pre && m->ok)
            return m->term == c->term + 1; /* the term that we would have */
        break;
    case MESSAGE_APPEND_RESULT:
    case MESSAGE_SNAPSHOT_RESULT:
    case MESSAGE_TIMEOUT_NOW:
        break;
    }
    /* What answers no question of ours tells nothing. */
    if (m->term > c->term && core_find_peer(c, m->from))
        election_follow(c, m->term, 0);
    return m->term == c->term;
}

void core_receive(struct core *c, const struct core_message *m, uint64_t now_ms)
{
    set_now(c, now_ms);
    if (m->to != c->o.id || !message_valid(m) || !terms(c, m))
        return;
    switch (m->type) {
    case MESSAGE_VOTE:
        election_vote(c, m);
        break;
    case MESSAGE_VOTE_RESULT:
        election_result(c, m);
        break;
    case MESSAGE_APPEND:
        follow_append(c, m);
        break;
    case MESSAGE_APPEND_RESULT:
        lead_result(c, m);
        break;
    case MESSAGE_SNAPSHOT:
        snapshot_receive(c, m);
        break;
    case MESSAGE_SNAPSHOT_RESULT:
        snapshot_result(c, m);
        break;
    case MESSAGE_TIMEOUT_NOW:
        transfer_receive(c, m);
        break;
    }
}

int core_propose(struct core *c, const char *bytes, size_t len, uint64_t *out_index)
{
    if (!core_leads(c))
        return FIRN_EAGAIN;
    if (len > CORE_ENTRY_BYTES_MAX)
        return FIRN_EINVAL;
    int r = core_append(c, c->term, ENTRY_DATA, bytes, len);
    if (r == 0)
        *out_index = log_last(&c->log);
    return r;
}

void core_set_election(struct core *c, uint32_t election_ms)
{
    if (election_ms > 0 && election_ms != c->o.election_ms) {
        c->o.election_ms = election_ms;
        election_reset(c);
    }
}

/* ---- saves ---- */

bool core_save(struct core *c, struct core_save *out)
{
    /* The log that a leader's snapshot replaces is not written any more. Of our own log the disk
     * has what a snapshot contains, before it gets the snapshot. */
    bool replaced = c->waiting && c->waiting_received;
    bool fresh = c->waiting && !c->waiting_given && !c->snapshot_again &&
                 (replaced || c->given >= c->waiting->index);
    uint64_t entries = replaced ? 0 : log_last(&c->log) - c->given;
    if (c->savings == SAVES_MAX ||
        (!c->state_dirty && !c->truncate && entries == 0 && !fresh && !c->snapshot_again))
        return false;
    *out = (struct core_save){ .number = ++c->number, .term = c->term, .vote = c->vote };
    out->truncate = c->truncate;
    if (fresh) {
        out->snapshot = c->waiting;
        out->log_first = c->waiting_base + 1;
        c->waiting_given = true;
        if (c->waiting_received) { /* nothing of the log stays */
            c->given = c->waiting->index;
            out->truncate = c->given + 1;
        }
    } else if (c->snapshot_again) {
        out->snapshot = c->snapshot;
        out->log_first = out->truncate = c->snapshot->index + 1;
    }
    out->first = c->given + 1;
    out->entries = entries;
    c->snapshot_again = c->state_dirty = false;
    c->truncate = 0;
    c->given += entries;
    c->saving[(c->saving_head + c->savings++) % SAVES_MAX] = (struct saving){ c->number, c->given,
                                                                              fresh };
    return true;
}

void core_saved(struct core *c, uint64_t number, uint64_t now_ms)
{
    set_now(c, now_ms);
    firn_assert(number <= c->number, "number=%" PRIu64 " given=%" PRIu64, number, c->number);
    while (c->savings > 0 && c->saving[c->saving_head].number <= number) {
        struct saving s = c->saving[c->saving_head];
        c->saving_head = (c->saving_head + 1) % SAVES_MAX;
        c->savings--;
        firn_assert(s.number == c->saved_number + 1);
        c->saved_number = s.number;
        if (s.snapshot)
            snapshot_saved(c);
        c->saved = s.last;
        if (CORE_MUTANT(rc_overtaken_save_counts))
            c->saved = min64(c->saved, log_last(&c->log));
        firn_assert(c->saved <= log_last(&c->log), "saved=%" PRIu64 " last=%" PRIu64, c->saved,
                    log_last(&c->log));
    }
    if (c->state == CORE_CANDIDATE)
        election_count(c);
    if (c->state == CORE_LEADER)
        lead_commit(c);
}

/* ---- messages ---- */

void core_reply(struct core *c, uint64_t need, const struct core_message *m)
{
    if (c->replies == REPLIES_MAX)
        return;
    struct reply *r = &c->reply[c->replies++];
    *r = (struct reply){ need, *m };
    r->m.from = c->o.id;
    if (r->m.term == 0)
        r->m.term = c->term;
}

bool core_send(struct core *c, struct core_message *out)
{
    for (unsigned i = 0; i < c->replies; i++) {
        if (c->reply[i].need > c->saved_number)
            continue;
        *out = c->reply[i].m;
        c->replies--;
        memmove(&c->reply[i], &c->reply[i + 1], (c->replies - i) * sizeof c->reply[0]);
        return true;
    }
    if (c->term_save > c->saved_number &&
        !(CORE_MUTANT(rc_unsaved_own_vote) && c->state == CORE_CANDIDATE))
        return false;
    switch (c->state) {
    case CORE_FOLLOWER:
        return follow_send(c, out);
    case CORE_CANDIDATE:
        return election_send(c, out);
    case CORE_LEADER:
        return lead_send(c, out);
    }
    return false;
}

/* ---- applying ---- */

enum core_apply_kind core_apply(struct core *c, struct core_applying *out)
{
    if (c->snapshot && c->applied < c->snapshot->index) {
        *out = (struct core_applying){ .snapshot = c->snapshot };
        c->applied = c->snapshot->index;
        return APPLY_SNAPSHOT;
    }
    if (c->applied >= c->commit)
        return APPLY_NONE;
    *out = (struct core_applying){ .entry = *log_at(&c->log, c->applied + 1) };
    firn_assert(out->entry.index == c->applied + 1);
    c->applied++;
    return APPLY_ENTRY;
}

/* ---- looking ---- */

enum core_state core_state(const struct core *c)
{
    return c->state;
}

bool core_leads(const struct core *c)
{
    return c->state == CORE_LEADER && !c->transfer_to;
}

bool core_settled(const struct core *c)
{
    return c->state == CORE_LEADER && log_term(&c->log, c->commit) == c->term;
}

bool core_transferring(const struct core *c)
{
    return c->transfer_to != 0;
}

uint64_t core_leader(const struct core *c)
{
    return c->leader;
}

uint64_t core_term(const struct core *c)
{
    return c->term;
}

uint64_t core_vote(const struct core *c)
{
    return c->vote;
}

uint64_t core_last(const struct core *c)
{
    return log_last(&c->log);
}

uint64_t core_last_saved(const struct core *c)
{
    return c->saved;
}

uint64_t core_first(const struct core *c)
{
    return c->log.base + 1;
}

uint64_t core_committed(const struct core *c)
{
    return c->commit;
}

uint64_t core_applied(const struct core *c)
{
    return c->applied;
}

uint64_t core_impossible(const struct core *c)
{
    return c->impossible;
}

bool core_snapshotting(const struct core *c)
{
    return c->waiting != NULL;
}

uint64_t core_snapshot_index(const struct core *c)
{
    return c->snapshot ? c->snapshot->index : 0;
}

uint32_t core_election_ms(const struct core *c)
{
    return c->o.election_ms;
}

bool core_entry_at(const struct core *c, uint64_t index, struct core_entry *out)
{
    if (index <= c->log.base || index > log_last(&c->log))
        return false;
    *out = *log_at(&c->log, index);
    return true;
}

const struct core_config *core_config(const struct core *c)
{
    return &c->config;
}

bool core_changing(const struct core *c)
{
    return c->config_index > c->commit;
}

bool core_peer(const struct core *c, uint64_t id, struct core_peer *out)
{
    if (c->state != CORE_LEADER)
        return false;
    for (unsigned i = 0; i < c->peers; i++) {
        const struct peer *p = &c->peer[i];
        if (p->id == id) {
            *out = (struct core_peer){ p->match, p->heard ? p->heard_ms : 0,
                                       p->mode == PEER_SNAPSHOT };
            return true;
        }
    }
    return false;
}
