/*
 * The Raft lab: libraft nodes are brought to term 3 with nine entries in the log, all committed, by
 * an election, a few writes and a transfer of leadership. Recording begins there: a client sets x =
 * 5, which becomes entry 10 of term 3; then A, the leader, falls silent or is killed, and term 4
 * begins.
 */
#include "cli/lab/lab.h"
#include "cli/lab/raft_record.h"
#include "id/diag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { A, B, C };
enum { CUT_B_C = 2 }; /* the one link that does not involve the leader */
enum { FIRST_TERM = 3, LAST_BEFORE = 9, LIMIT_MS = 5000 };

const char *const lab_raft_links[] = { "A-B", "A-C", "B-C", NULL };
static const struct {
    unsigned a, b;
} link_ends[] = { { A, B }, { A, C }, { B, C } };

struct play {
    struct recording rec;
    bool silent, lose;
    bool lost[WORLD_NODES]; /* with `lose`: the message to each was lost already */
};

static bool lose(void *user, const struct world_message *m)
{
    struct play *p = user;
    if (m->type != RAFT_IO_APPEND_ENTRIES)
        return false;
    if (p->silent && m->from == A)
        return true;
    if (p->lose && m->entries > 0 && !p->lost[m->to]) {
        p->lost[m->to] = true;
        return true;
    }
    return false;
}

/* ---- scenario ---- */

typedef bool condition(const struct play *p);

static bool until(struct play *p, condition *met, uint64_t limit_ms)
{
    uint64_t end = p->rec.world.now_ms + limit_ms;
    while (!met || !met(p))
        if (p->rec.world.now_ms > end || !world_step(&p->rec.world))
            return false;
    return true;
}

static void pass(struct play *p, uint64_t ms)
{
    uint64_t end = p->rec.world.now_ms + ms;
    while (p->rec.world.now_ms < end && world_step(&p->rec.world))
        continue;
}

static bool b_leads(const struct play *p)
{
    return world_leader(&p->rec.world) == B;
}

static bool a_leads(const struct play *p)
{
    return world_leader(&p->rec.world) == A;
}

static bool answered(const struct play *p)
{
    return p->rec.answered;
}

/* One leader, which all running nodes follow, with nothing pending. */
static bool settled(const struct play *p)
{
    int leader = world_leader(&p->rec.world);
    if (leader < 0)
        return false;
    struct seen l = record_look(&p->rec.world.node[leader]);
    for (int i = 0; i < WORLD_NODES; i++) {
        struct seen s = record_look(&p->rec.world.node[i]);
        if (s.up && (s.term != l.term || s.last != l.last || s.applied != l.last ||
                     (i != leader && s.leader != (raft_id)leader + 1)))
            return false;
    }
    return true;
}

/* One leader of a later term, with a majority behind it, whatever else there is. */
static bool new_leader(const struct play *p)
{
    int leader = world_leader(&p->rec.world);
    return leader >= 0 && p->rec.world.node[leader].raft.current_term > FIRST_TERM;
}

/* All nodes that the leader reaches have all entries. */
static bool majority_settled(const struct play *p)
{
    int leader = world_leader(&p->rec.world);
    if (leader < 0)
        return false;
    struct seen l = record_look(&p->rec.world.node[leader]);
    for (int i = 0; i < WORLD_NODES; i++)
        if (p->rec.world.node[i].up && !p->rec.world.cut[leader][i] &&
            record_look(&p->rec.world.node[i]).applied != l.last)
            return false;
    return true;
}

/* Term 1 is the configuration's. B is elected in term 2 and writes, then transfers leadership to
 * A, which is elected in term 3 and writes. Nodes are changed by libraft's own calls only. */
static bool before(struct play *p)
{
    static const char *const command[] = { "set x = 1", "set y = 2", "set x = 3", "set z = 1",
                                           "set y = 3", "set z = 2", "set x = 4", "set y = 4" };
    struct raft_world *w = &p->rec.world;
    unsigned k = 0;
    if (!until(p, b_leads, LIMIT_MS))
        return false;
    for (; k < 5; k++)
        if (!world_ask(w, B, command[k]))
            return false;
    if (!until(p, settled, LIMIT_MS) || !world_transfer(w, B, A) || !until(p, a_leads, LIMIT_MS))
        return false;
    for (; k < sizeof command / sizeof command[0]; k++)
        if (!world_ask(w, A, command[k]))
            return false;
    w->quick = -1;
    for (unsigned i = B; i <= C;
         i++) { /* a node chooses its timeout when it starts, not at each heartbeat */
        if (!until(p, settled, LIMIT_MS))
            return false;
        world_kill(w, i);
        if (!world_start(w, i))
            return false;
    }
    if (!until(p, settled, LIMIT_MS))
        return false;
    pass(p, WORLD_HEARTBEAT_MS);
    struct seen a = record_look(&w->node[A]);
    return a.term == FIRST_TERM && a.last == LAST_BEFORE && a.commit == LAST_BEFORE && settled(p);
}

static void set_cut(struct play *p, int cut, bool on)
{
    unsigned a = link_ends[cut].a, b = link_ends[cut].b;
    p->rec.world.cut[a][b] = p->rec.world.cut[b][a] = on;
    struct lab_step *s = record_step(&p->rec, LAB_FAULT, on ? "cut" : "heal", (int)a + 1,
                                     (int)b + 1);
    lab_label(s, on ? "the link is cut" : "the link works again");
    lab_why(s,
            on ? "From here on no message arrives between %c and %c."
               : "Messages arrive between %c and %c again.",
            record_name(a), record_name(b));
}

static bool ask(struct play *p, unsigned node, const char *command)
{
    p->rec.answered = false;
    struct lab_step *s = record_step(&p->rec, LAB_MESSAGE, "request", RECORD_CLIENT, (int)node + 1);
    lab_label(s, "%s", command);
    lab_why(s, "The client asks the leader: only the leader accepts commands.");
    if (!world_ask(&p->rec.world, node, command))
        return false;
    record_refresh(&p->rec, node);
    raft_term term = p->rec.world.node[node].raft.current_term;
    s = record_note(&p->rec, "append", node);
    s->term = term;
    s->index = p->rec.world.asked;
    lab_label(s, "new entry: term %llu, index %llu, %s", term, p->rec.world.asked, command);
    lab_why(s,
            "%c adds the command to its log. It is not committed yet: if %c crashed now, it "
            "could be lost.",
            record_name(node), record_name(node));
    return true;
}

static bool replicate(struct play *p, const struct lab_opts *o)
{
    record_chapter(
        &p->rec, "replication", "Replication: set x = 5",
        "Before: A leads in term 3, elected by libraft; nine entries are committed on all nodes, "
        "and x is 4.");
    if (o->cut >= 0)
        set_cut(p, o->cut, true);
    if (o->faults & LAB_LOSE) {
        p->lose = true;
        struct lab_step *s = record_step(&p->rec, LAB_FAULT, "lossy", A + 1, A + 1);
        lab_label(s, "the first AppendEntries will be lost");
        lab_why(s, "The network loses the first message with the new entry to each follower.");
    }
    if (!ask(p, A, "set x = 5") || !until(p, answered, LIMIT_MS))
        return false;
    if (o->faults & LAB_KILL_LEADER)
        return true;
    if (!until(p, majority_settled, LIMIT_MS))
        return false;
    if (o->cut >= 0 && o->cut != CUT_B_C) {
        /* One follower is isolated long enough to start an election. */
        pass(p, 3 * WORLD_ELECTION_MS);
        set_cut(p, o->cut, false);
        return until(p, settled, LIMIT_MS);
    }
    return true;
}

static void kill_leader(struct play *p)
{
    record_chapter(
        &p->rec, "election", "Election: the leader crashes",
        "A has answered the client and crashes before it tells any follower that entry 10 "
        "is committed.");
    world_kill(&p->rec.world, A);
    record_refresh(&p->rec, A);
    struct lab_step *s = record_step(&p->rec, LAB_FAULT, "kill", A + 1, A + 1);
    lab_label(s, "killed");
    lab_why(s, "kill -9: A's memory is lost, its disk remains. No node is notified.");
}

static void silence_leader(struct play *p)
{
    record_chapter(
        &p->rec, "election", "Election: the leader falls silent",
        "No heartbeat of A arrives any more, as if A were stopped or its network failed.");
    p->silent = true;
    struct lab_step *s = record_step(&p->rec, LAB_FAULT, "silence", A + 1, A + 1);
    lab_label(s, "its heartbeats are lost");
    lab_why(s, "Messages that A sends as a leader are lost; it still receives messages, and can "
               "vote.");
}

/* Nodes that run and reach each other elect a leader; if none can, the link must be restored
 * first. */
static bool elect(struct play *p, const struct lab_opts *o)
{
    bool dead = o->faults & LAB_KILL_LEADER;
    if (dead && o->cut == CUT_B_C) {
        pass(p, 4 * WORLD_ELECTION_MS);
        if (world_leader(&p->rec.world) >= 0)
            return false;
        struct lab_step *s = record_step(&p->rec, LAB_NOTE, "no_majority", B + 1, C + 1);
        lab_label(s, "no majority, no leader");
        lab_why(s,
                "One of three nodes is down and the other two cannot reach each other: no node can "
                "be elected, so nothing is accepted, and nothing that was accepted is lost.");
    }
    if (dead && o->cut >= 0)
        set_cut(p, o->cut, false);
    if (!until(p, new_leader, LIMIT_MS))
        return false;
    p->silent = false;
    if (!dead && o->cut == CUT_B_C) {
        if (!until(p, majority_settled, LIMIT_MS))
            return false;
        set_cut(p, o->cut, false);
    }
    return until(p, settled, LIMIT_MS);
}

static bool go_on(struct play *p)
{
    int leader = world_leader(&p->rec.world);
    record_chapter(
        &p->rec, "service", "Service goes on",
        "Nothing that was confirmed to a client is lost: x is 5. The next command goes to "
        "the new leader.");
    if (leader < 0 || !ask(p, (unsigned)leader, "set y = 6") || !until(p, answered, LIMIT_MS))
        return false;
    if (!world_start(&p->rec.world, A))
        return false;
    record_refresh(&p->rec, A);
    struct lab_step *s = record_step(&p->rec, LAB_FAULT, "restart", A + 1, A + 1);
    lab_label(s, "starts again");
    lab_why(s, "A reads its term, its vote and its log from its disk. It starts as a follower, as "
               "every node does, and does not know what is committed.");
    return until(p, settled, LIMIT_MS);
}

static bool play(struct play *p, const struct lab_opts *o, struct lab_trace *t)
{
    snprintf(t->title, sizeof t->title, "Raft: three libraft nodes agree on x = 5");
    if (!before(p))
        return false;
    record_begin(&p->rec, t);
    p->rec.world.lose = lose;
    p->rec.world.lose_user = p;
    if (!replicate(p, o))
        return false;
    p->lose = false;
    if (o->faults & LAB_KILL_LEADER)
        kill_leader(p);
    else
        silence_leader(p);
    return elect(p, o) && (!(o->faults & LAB_KILL_LEADER) || go_on(p));
}

const char *lab_raft_missing(void)
{
    return NULL;
}

int lab_raft(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d)
{
    lab_trace_init(out, "raft", o->seed);
    struct play *p = calloc(1, sizeof *p);
    if (!p)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    bool ok = world_init(&p->rec.world, o->seed, !(o->faults & LAB_NO_PRE_VOTE), B) &&
              play(p, o, out);
    world_done(&p->rec.world);
    free(p);
    if (out->full)
        return firn__diag(d, FIRN_ENOMEM, 0,
                          "out of memory, or a run without end (seed %" PRIu64 ")", o->seed);
    return ok ? 0
              : firn__diag(d, FIRN_EIO, 0,
                           "the nodes did not finish with seed %" PRIu64
                           ", after %zu steps: try another --seed, and report this one",
                           o->seed, out->steps);
}
