/* The cluster as this member sees it, as JSON. How far the others are only the leader knows. */
#include "raft/node_in.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

struct out {
    char *p;
    size_t len, cap;
};

__attribute__((format(printf, 2, 3))) static void add(struct out *o, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(o->p + o->len, o->cap - o->len, fmt, args);
    va_end(args);
    if (n > 0 && (size_t)n < o->cap - o->len)
        o->len += (size_t)n;
}

static void add_member(struct out *o, struct node *n, unsigned i, raft_id leader)
{
    static const char *const roles[] = { "standby", "voter", "spare" };
    const struct raft_server *s = &n->raft.configuration.servers[i];
    bool leads = raft_state(&n->raft) == RAFT_LEADER;
    add(o, "%s{\"id\":\"%016llx\",\"address\":\"%s\",\"role\":\"%s\",\"leader\":%s", i ? "," : "",
        s->id, s->address, roles[s->role % 3], s->id == leader ? "true" : "false");
    if (s->id == n->id) {
        add(o, ",\"index\":%llu,\"lag\":0,\"seen\":true", raft_last_index(&n->raft));
    } else if (leads) { /* progress is in the order of the configuration */
        const struct raft_progress *p = &n->raft.leader_state.progress[i];
        raft_index last = raft_last_index(&n->raft);
        add(o, ",\"index\":%llu,\"lag\":%llu,\"seen\":%s", p->match_index,
            last > p->match_index ? last - p->match_index : 0, p->recent_recv ? "true" : "false");
    }
    add(o, "}");
}

size_t node_status(struct node *n, char *to, size_t cap)
{
    static const char *const states[] = { "unavailable", "follower", "candidate", "leader" };
    struct out o = { to, 0, cap };
    raft_id leader = 0;
    const char *address = NULL;
    raft_leader(&n->raft, &leader, &address);
    add(&o, "{\"cluster\":\"%016" PRIx64 "\",\"answered_by\":\"%016" PRIx64 "\",\"state\":\"%s\"",
        n->fsm.incarnation, n->id, states[raft_state(&n->raft) & 3]);
    add(&o, ",\"leader\":\"%016llx\",\"term\":%llu,\"last_index\":%llu,\"commit_index\":%llu",
        leader, n->raft.current_term, raft_last_index(&n->raft), n->raft.commit_index);
    add(&o, ",\"applied_index\":%llu,\"registers\":%zu", raft_last_applied(&n->raft),
        n->fsm.map.count);
    add(&o, ",\"snapshot_index\":%llu,\"snapshots\":%" PRIu64 ",\"members\":[",
        n->raft.log.snapshot.last_index, n->snapshots);
    for (unsigned i = 0; i < n->raft.configuration.n; i++)
        add_member(&o, n, i, leader);
    add(&o, "]}");
    return o.len;
}
