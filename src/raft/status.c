/*
 * The cluster's status as this member sees it: JSON, or for people lines of fields with tabs
 * between them. Only the leader knows how far the other members are.
 */
#include "raft/member_in.h"
#include "wire/json_write.h"

#include <inttypes.h>
#include <stdio.h>

bool status_heard(const struct member *m, uint64_t id)
{
    struct core_peer p;
    return core_peer(m->core, id, &p) && p.heard_ms && p.heard_ms + HEARD_MS > core_ms(m);
}

static const char *const roles[] = { [CORE_STANDBY] = "standby", [CORE_VOTER] = "voter" };

static void json_hex(struct buf *o, const char *key, uint64_t id)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, id);
    json_text(o, key, text);
}

/* How far a member's log is known to be on its disk. False: this member cannot know. */
static bool index_of(const struct member *m, uint64_t id, uint64_t *out)
{
    struct core_peer p;
    if (id == m->self.id)
        *out = core_last(m->core);
    else if (core_peer(m->core, id, &p))
        *out = p.match;
    else
        return false;
    return true;
}

static void add_member(struct buf *o, struct member *m, const struct core_member *s,
                       uint64_t leader)
{
    uint64_t last = core_last(m->core), index;
    json_begin(o, NULL, '{');
    json_hex(o, "id", s->id);
    json_text(o, "address", s->address);
    json_text(o, "role", roles[s->role]);
    json_bool(o, "leader", s->id == leader);
    if (index_of(m, s->id, &index)) {
        json_count(o, "index", index);
        json_count(o, "lag", last > index ? last - index : 0);
        json_bool(o, "seen", s->id == m->self.id || status_heard(m, s->id));
    }
    json_end(o, '}');
}

static void add_line(struct buf *o, struct member *m, const struct core_member *s, uint64_t leader)
{
    uint64_t last = core_last(m->core), index;
    buf_addf(o, "%016" PRIx64 "\t%s\t%s%s\t", s->id, s->address, roles[s->role],
             s->id == leader ? ", leader" : "");
    if (!index_of(m, s->id, &index))
        buf_addf(o, "?\t?\t?\n");
    else
        buf_addf(o, "%" PRIu64 "\t%" PRIu64 "\t%s\n", index, last > index ? last - index : 0,
                 s->id == m->self.id || status_heard(m, s->id) ? "yes" : "NO");
}

static void status_lines(struct member *m, struct buf *o, uint64_t leader)
{
    const struct core_config *c = core_config(m->core);
    if (leader == 0)
        buf_addf(o, "NO LEADER that this member knows of; ");
    buf_addf(o,
             "term %" PRIu64 ", index %" PRIu64 ", committed %" PRIu64
             ", %zu registers, snapshot at %" PRIu64 ", cluster %016" PRIx64 "\n",
             core_term(m->core), core_last(m->core), core_committed(m->core), m->fsm.map.count,
             core_snapshot_index(m->core), m->fsm.incarnation);
    for (unsigned i = 0; i < c->count; i++)
        add_line(o, m, &c->member[i], leader);
}

static uint64_t digest_now(struct member *m)
{
    uint64_t index = core_applied(m->core);
    firn_assert(m->applied.digest.index <= index, "cached=%" PRIu64 " applied=%" PRIu64,
                m->applied.digest.index, index);
    if (m->applied.digest.index != index) {
        m->applied.digest.index = index;
        m->applied.digest.sum = fsm_sum(&m->fsm);
    }
    return m->applied.digest.sum;
}

void member_status(struct member *m, bool lines, struct buf *o)
{
    static const char *const states[] = { "unavailable", "follower", "candidate", "leader" };
    const struct core_config *c = core_config(m->core);
    /* A standby would name its last leader for ever. */
    uint64_t leader = m->election.silent ? 0 : core_leader(m->core);
    if (lines) {
        status_lines(m, o, leader);
        return;
    }
    json_begin(o, NULL, '{');
    json_hex(o, "cluster", m->fsm.incarnation);
    json_hex(o, "answered_by", m->self.id);
    json_text(o, "state", states[view_state(m)]);
    if (leader)
        json_hex(o, "leader", leader);
    else
        json_null(o, "leader");
    json_count(o, "term", core_term(m->core));
    json_count(o, "last_index", core_last(m->core));
    json_count(o, "commit_index", core_committed(m->core));
    json_count(o, "applied_index", core_applied(m->core));
    json_count(o, "registers", m->fsm.map.count);
    json_hex(o, "registers_sum", digest_now(m));
    json_bool(o, "registers_differ", check_differs(m));
    json_count(o, "snapshot_index", core_snapshot_index(m->core));
    json_count(o, "snapshots", m->applied.snapshots);
    json_begin(o, "members", '[');
    for (unsigned i = 0; i < c->count; i++)
        add_member(o, m, &c->member[i], leader);
    json_end(o, ']');
    json_end(o, '}');
}
