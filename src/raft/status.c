/*
 * The cluster's status as this member sees it: JSON, or for people lines of fields with tabs
 * between them. Only the leader knows how far the other members are.
 */
#include "raft/node_in.h"

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

static void add_member(struct text *o, struct node *n, unsigned i, raft_id leader)
{
    static const char *const roles[] = { "standby", "voter", "spare" };
    firn_assert(i < n->raft.configuration.n);
    const struct raft_server *s = &n->raft.configuration.servers[i];
    bool leads = raft_state(&n->raft) == RAFT_LEADER;
    text_addf(o, "%s{\"id\":\"%016llx\",\"address\":\"%s\",\"role\":\"%s\",\"leader\":%s",
              i ? "," : "", s->id, s->address, roles[s->role % 3],
              s->id == leader ? "true" : "false");
    if (s->id == n->self.id) {
        text_addf(o, ",\"index\":%llu,\"lag\":0,\"seen\":true", raft_last_index(&n->raft));
    } else if (leads) { /* progress has the order of the configuration */
        const struct raft_progress *p = &n->raft.leader_state.progress[i];
        raft_index last = raft_last_index(&n->raft);
        text_addf(o, ",\"index\":%llu,\"lag\":%llu,\"seen\":%s", p->match_index,
                  last > p->match_index ? last - p->match_index : 0,
                  status_heard(n, i) ? "true" : "false");
    }
    text_addf(o, "}");
}

static void add_line(struct text *o, struct node *n, unsigned i, raft_id leader)
{
    static const char *const roles[] = { "standby", "voter", "spare" };
    const struct raft_server *s = &n->raft.configuration.servers[i];
    bool leads = raft_state(&n->raft) == RAFT_LEADER, me = s->id == n->self.id;
    raft_index last = raft_last_index(&n->raft);
    firn_assert(i < n->raft.configuration.n);
    text_addf(o, "%016llx\t%s\t%s%s\t", s->id, s->address, roles[s->role % 3],
              s->id == leader ? ", leader" : "");
    if (!me && !leads) {
        text_addf(o, "?\t?\t?\n");
        return;
    }
    const struct raft_progress *p = me ? NULL : &n->raft.leader_state.progress[i];
    raft_index index = p ? p->match_index : last;
    text_addf(o, "%llu\t%llu\t%s\n", index, last > index ? last - index : 0,
              me || status_heard(n, i) ? "yes" : "NO");
}

static void status_lines(struct node *n, struct text *o, raft_id leader)
{
    if (leader == 0)
        text_addf(o, "NO LEADER that this member knows of; ");
    text_addf(o,
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

void node_status(struct node *n, bool lines, struct text *o)
{
    static const char *const states[] = { "unavailable", "follower", "candidate", "leader" };
    raft_id leader = 0;
    const char *address = NULL;
    raft_leader(&n->raft, &leader, &address);
    if (n->shield.leader
            .silent) /* a standby begins no election, and would name its last leader for ever */
        leader = 0;
    if (lines) {
        status_lines(n, o, leader);
        return;
    }
    text_addf(o,
              "{\"cluster\":\"%016" PRIx64 "\",\"answered_by\":\"%016" PRIx64 "\",\"state\":\"%s\"",
              n->fsm.incarnation, n->self.id, states[raft_state(&n->raft) & 3]);
    if (leader)
        text_addf(o, ",\"leader\":\"%016llx\"", leader);
    else
        text_addf(o, ",\"leader\":null");
    text_addf(o, ",\"term\":%llu,\"last_index\":%llu,\"commit_index\":%llu", n->raft.current_term,
              raft_last_index(&n->raft), n->raft.commit_index);
    text_addf(o, ",\"applied_index\":%llu,\"registers\":%zu,\"registers_sum\":\"%016" PRIx64 "\"",
              raft_last_applied(&n->raft), n->fsm.map.count, digest_now(n));
    text_addf(o, ",\"registers_differ\":%s", check_differs(n) ? "true" : "false");
    text_addf(o, ",\"snapshot_index\":%llu,\"snapshots\":%" PRIu64 ",\"members\":[",
              n->raft.log.snapshot.last_index, n->applied.snapshots);
    for (unsigned i = 0; i < n->raft.configuration.n; i++)
        add_member(o, n, i, leader);
    text_addf(o, "]}");
}
