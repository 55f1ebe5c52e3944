/*
 * The follower's side of replication.
 *
 * `proved` is the last index up to which this log is known to equal the log of this term's leader:
 * a message whose entry before the first we have, proves that entry and those that it brings. Only
 * that much is committed, and of that only what is on the disk is acknowledged. An answer is made
 * when it is sent, from what is saved then; so a slow disk delays what an answer claims, not the
 * answer to a heartbeat.
 * Tested by tests/unit/raft/core/core.c and tests/unit/raft/core/rules.c.
 */
#include "raft/core/core_in.h"

/* Differs from our log, at or before `fixed`. */
static bool differs(const struct core *c, uint64_t index, uint64_t term, uint64_t fixed)
{
    return index >= c->log.base && index <= min64(fixed, log_last(&c->log)) &&
           log_term(&c->log, index) != term;
}

bool follow_possible(const struct core *c, const struct core_message *m)
{
    bool ours = m->term == c->term;
    if (CORE_MUTANT(rc_old_leader) || m->term < c->term)
        return true;
    if (ours && (c->state == CORE_LEADER || (c->term_leader != 0 && c->term_leader != m->from)))
        return false;
    if (m->type != MESSAGE_APPEND)
        return true;
    uint64_t fixed = ours ? max64(c->commit, c->proved) : c->commit;
    if (differs(c, m->index, m->index_term, fixed))
        return false;
    for (size_t i = 0; i < m->entries; i++)
        if (differs(c, m->entry[i].index, m->entry[i].term, fixed))
            return false;
    return true;
}

/* The leader continues behind the index that we name. */
static void refuse(struct core *c, const struct core_message *m)
{
    uint64_t last = log_last(&c->log), hint = min64(last, m->index - 1);
    if (m->index <= last) { /* go on before the whole term that differs */
        uint64_t term = log_term(&c->log, m->index);
        while (hint > c->commit && log_term(&c->log, hint) == term)
            hint--;
    }
    core_reply(
        c, c->term_save,
        &(struct core_message){
            .type = MESSAGE_APPEND_RESULT, .to = m->from, .index = hint, .round = m->round });
}

/* Takes entries from entry[from] on. Returns how many of the message the log has then. */
static size_t take(struct core *c, const struct core_message *m, size_t from)
{
    for (size_t i = from; i < m->entries; i++) {
        const struct core_entry *e = &m->entry[i];
        if (e->index <= log_last(&c->log)) {
            if (log_term(&c->log, e->index) == e->term || CORE_MUTANT(rc_conflict_kept))
                continue;
            core_truncate(c, e->index);
        }
        if (core_append(c, e->term, e->type, e->bytes, e->len) != 0)
            return i; /* no memory: as if the rest had been lost on the way */
    }
    return m->entries;
}

static uint64_t to_acknowledge(const struct core *c)
{
    if (CORE_MUTANT(rc_ack_unproved))
        return c->saved;
    return CORE_MUTANT(rc_ack_unsaved) ? c->proved : min64(c->proved, c->saved);
}

void follow_append(struct core *c, const struct core_message *m)
{
    firn_assert(follow_possible(c, m));
    election_follow(c, m->term, m->from);
    bool asked = m->round > c->ack_round;
    c->ack_round = max64(c->ack_round, m->round);
    size_t skip = 0;
    if (c->waiting && c->waiting_received) { /* the log is being replaced */
        c->ack_due = true;
        return;
    }
    if (m->index < c->log.base) { /* committed long ago: begin where our log does */
        skip = (size_t)min64(c->log.base - m->index, m->entries);
        if (m->index + skip < c->log.base || m->entry[skip - 1].term != c->log.base_term) {
            c->ack_due = true;
            return;
        }
    } else if (!log_has(&c->log, m->index, m->index_term)) {
        refuse(c, m);
        return;
    }
    uint64_t proved = m->index + take(c, m, skip);
    c->proved = max64(c->proved, proved);
    if (CORE_MUTANT(rc_commit_beyond_proved))
        proved = log_last(&c->log);
    if (min64(m->commit, proved) > c->commit)
        core_commit_to(c, min64(m->commit, proved));
    /* Entries are acknowledged when they are saved; all else, and now and then, is at once. */
    if (m->entries == 0 || asked || c->proved <= c->saved ||
        c->now - c->acked_ms >= core_heartbeat_ms(c))
        c->ack_due = true;
}

bool follow_send(struct core *c, struct core_message *out)
{
    uint64_t index = to_acknowledge(c);
    if (!c->leader || (!c->ack_due && index <= c->acked))
        return false;
    firn_assert(index <= c->proved || CORE_MUTANT(rc_ack_unproved));
    firn_assert(index <= c->saved || CORE_MUTANT(rc_ack_unsaved));
    *out = (struct core_message){ .type = MESSAGE_APPEND_RESULT,
                                  .from = c->o.id,
                                  .to = c->leader,
                                  .term = c->term,
                                  .ok = true,
                                  .index = index,
                                  .round = c->ack_round };
    c->acked = index;
    c->acked_ms = c->now;
    c->ack_due = false;
    return true;
}
