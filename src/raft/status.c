/*
 * The cluster's status as this member sees it: JSON, or for people lines of fields with tabs
 * between them. Only the leader knows how far the other members are.
 */
#include "raft/node_in.h"
#include "wire/json_write.h"

#include <inttypes.h>

/* libraft clears recent_recv at each of its own checks, so it is noted at each tick. */
void status_note_heard(struct node *n)
{
    const struct raft_configuration *c = &n->raft.configuration;
    for (unsigned i = 0; i < c->n && i < MEMBERS_MAX; i++) {
        if (n->heard[i].id != c->servers[i].id)
            n->heard[i].ms = 0;
        n->heard[i].id = c->servers[i].id;
        if (raft_state(&n->raft) == RAFT_LEADER && n->raft.leader_state.progress[i].recent_recv)
            n->heard[i].ms = uv_now(&n->loop.uv);
    }
}

bool status_heard(const struct node *n, unsigned i)
{
    return i < MEMBERS_MAX && n->heard[i].ms && n->heard[i].ms + HEARD_MS > uv_now(&n->loop.uv);
}

static const char *const roles[] = { "standby", "voter", "spare" };

static void json_hex(struct buf *o, const char *key, uint64_t id)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, id);
    json_text(o, key, text);
}

static void add_member(struct buf *o, struct node *n, unsigned i, raft_id leader)
{
    firn_assert(i < n->raft.configuration.n);
    const struct raft_server *s = &n->raft.configuration.servers[i];
    bool me = s->id == n->self.id;
    json_begin(o, NULL, '{');
    json_hex(o, "id", s->id);
    json_text(o, "address", s->address);
    json_text(o, "role", roles[s->role % 3]);
    json_bool(o, "leader", s->id == leader);
    if (me || raft_state(&n->raft) == RAFT_LEADER) { /* progress has the configuration's order */
        raft_index last = raft_last_index(&n->raft);
        raft_index index = me ? last : n->raft.leader_state.progress[i].match_index;
        json_count(o, "index", index);
        json_count(o, "lag", last > index ? last - index : 0);
        json_bool(o, "seen", me || status_heard(n, i));
    }
    json_end(o, '}');
}

static void add_line(struct buf *o, struct node *n, unsigned i, raft_id leader)
{
    const struct raft_server *s = &n->raft.configuration.servers[i];
    bool leads = raft_state(&n->raft) == RAFT_LEADER, me = s->id == n->self.id;
    raft_index last = raft_last_index(&n->raft);
    firn_assert(i < n->raft.configuration.n);
    buf_addf(o, "%016llx\t%s\t%s%s\t", s->id, s->address, roles[s->role % 3],
             s->id == leader ? ", leader" : "");
    if (!me && !leads) {
        buf_addf(o, "?\t?\t?\n");
        return;
    }
    const struct raft_progress *p = me ? NULL : &n->raft.leader_state.progress[i];
    raft_index index = p ? p->match_index : last;
    buf_addf(o, "%llu\t%llu\t%s\n", index, last > index ? last - index : 0,
             me || status_heard(n, i) ? "yes" : "NO");
}

static void status_lines(struct node *n, struct buf *o, raft_id leader)
{
    if (leader == 0)
        buf_addf(o, "NO LEADER that this member knows of; ");
    buf_addf(o,
             "term %llu, index %llu, committed %llu, %zu registers, snapshot at %llu, "
             "cluster %016" PRIx64 "\n",
             n->raft.current_term, raft_last_index(&n->raft), n->raft.commit_index,
             n->fsm.map.count, n->raft.log.snapshot.last_index, n->fsm.incarnation);
    for (unsigned i = 0; i < n->raft.configuration.n; i++)
        add_line(o, n, i, leader);
}

static uint64_t digest_now(struct node *n)
{
    raft_index index = raft_last_applied(&n->raft);
    firn_assert(n->applied.digest.index <= index, "cached=%llu applied=%llu",
                n->applied.digest.index, index);
    if (n->applied.digest.index != index) {
        n->applied.digest.index = index;
        n->applied.digest.sum = fsm_sum(&n->fsm);
    }
    return n->applied.digest.sum;
}

void node_status(struct node *n, bool lines, struct buf *o)
{
    static const char *const states[] = { "unavailable", "follower", "candidate", "leader" };
    raft_id leader = 0;
    const char *address = NULL;
    raft_leader(&n->raft, &leader, &address);
    if (n->shield.leader.silent) /* a standby would name its last leader for ever */
        leader = 0;
    if (lines) {
        status_lines(n, o, leader);
        return;
    }
    json_begin(o, NULL, '{');
    json_hex(o, "cluster", n->fsm.incarnation);
    json_hex(o, "answered_by", n->self.id);
    json_text(o, "state", states[raft_state(&n->raft) & 3]);
    if (leader)
        json_hex(o, "leader", leader);
    else
        json_null(o, "leader");
    json_count(o, "term", n->raft.current_term);
    json_count(o, "last_index", raft_last_index(&n->raft));
    json_count(o, "commit_index", n->raft.commit_index);
    json_count(o, "applied_index", raft_last_applied(&n->raft));
    json_count(o, "registers", n->fsm.map.count);
    json_hex(o, "registers_sum", digest_now(n));
    json_bool(o, "registers_differ", check_differs(n));
    json_count(o, "snapshot_index", n->raft.log.snapshot.last_index);
    json_count(o, "snapshots", n->applied.snapshots);
    json_begin(o, "members", '[');
    for (unsigned i = 0; i < n->raft.configuration.n; i++)
        add_member(o, n, i, leader);
    json_end(o, ']');
    json_end(o, '}');
}
