/*
 * The Raft lab: libraft nodes are brought to term 3 with nine entries in the log, all committed, by an
 * election, a few writes and a transfer of the lead. From there on it is recorded: a client sets x = 5, which
 * becomes entry 10 of term 3; then A, the leader, falls silent or is killed, and term 4 begins.
 *
 * What a node did is found by comparing it before and after each event: libraft is not asked to tell.
 * Heartbeats and answers that change nothing are counted, not drawn.
 */
#include "lab/lab.h"
#include "lab/raft_world.h"
#include "id/diag.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A, B, C, CLIENT = 0 }; /* nodes; the client is party 0, a node is party node + 1 */
enum { ROLE, TERM, VOTE, LOG, COMMIT, APPLIED, VALUE };
enum { FIRST_TERM = 3, LAST_BEFORE = 9, LIMIT_MS = 5000, DRAWN_QUIET_MIN = 4 };

const char *const lab_raft_links[] = { "A-B", "A-C", "B-C", NULL };
static const struct {
    unsigned a, b;
} link_ends[] = { { A, B }, { A, C }, { B, C } };

struct seen { /* of a node */
    bool up, pre_vote;
    unsigned short role;
    raft_term term;
    raft_id vote, leader;
    raft_index last, stored, commit, applied;
    raft_index match[WORLD_NODES]; /* of a leader */
};

struct play {
    struct raft_world world;
    struct lab_trace *trace;
    struct seen seen[WORLD_NODES];
    bool recording, silent, lose, answered;
    bool lost[WORLD_NODES]; /* with `lose`: what each was to get is gone already */
    uint64_t start_ms, heard_ms[WORLD_NODES];
    unsigned quiet, missed; /* messages that are not drawn: without news; lost like others before */
    uint64_t quiet_ms;
    struct { /* told in the middle of an event, drawn after it */
        raft_index first, last;
        char command[WORLD_COMMAND_BUF];
        bool answer;
        int status;
    } pending;
};

static char name(unsigned node)
{
    return (char)('A' + node);
}

/* ---- state ---- */

static struct seen look(const struct world_node *n)
{
    const struct raft *r = &n->raft;
    struct seen s = { .up = n->up };
    if (!n->up)
        return s;
    s.role = r->state;
    s.term = r->current_term;
    s.vote = r->voted_for;
    s.last = raft_last_index(&((struct world_node *)n)->raft); /* libraft's is not const */
    s.stored = r->last_stored;
    s.commit = r->commit_index;
    s.applied = r->last_applied;
    if (s.role == RAFT_FOLLOWER)
        s.leader = r->follower_state.current_leader.id;
    if (s.role == RAFT_CANDIDATE)
        s.pre_vote = r->candidate_state.in_pre_vote;
    if (s.role == RAFT_LEADER)
        for (unsigned i = 0; i < WORLD_NODES; i++)
            s.match[i] = r->leader_state.progress[i].match_index;
    return s;
}

static void put_state(struct play *p, struct lab_step *s)
{
    static const char *const role[] = { "-", "follower", "candidate", "leader" };
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        const struct world_node *n = &p->world.node[i];
        struct seen now = look(n);
        int party = (int)i + 1;
        if (!now.up) {
            for (unsigned f = 0; f < p->trace->fields; f++)
                lab_cell(s, party, f, "%s", f == ROLE ? "down" : "");
            continue;
        }
        lab_cell(s, party, ROLE, "%s", role[now.role]);
        lab_cell(s, party, TERM, "%llu", now.term);
        lab_cell(s, party, VOTE, "%c", now.vote ? name((unsigned)now.vote - 1) : '-');
        lab_cell(s, party, LOG, "%llu", now.last);
        lab_cell(s, party, COMMIT, "%llu", now.commit);
        lab_cell(s, party, APPLIED, "%llu", now.applied);
        lab_cell(s, party, VALUE, "%s", n->variable['x' - 'a'][0] ? n->variable['x' - 'a'] : "-");
    }
}

/* ---- steps ---- */

static void flush_quiet(struct play *p)
{
    uint64_t ms = p->world.now_ms - p->quiet_ms;
    if (p->quiet + p->missed >= DRAWN_QUIET_MIN) {
        struct lab_step *s = lab_trace_add(p->trace, LAB_QUIET, "quiet", LAB_NOBODY, LAB_NOBODY,
                                           p->world.now_ms - p->start_ms);
        if (p->missed > 0) {
            lab_label(s, "%" PRIu64 " ms: %u more messages get lost", ms, p->missed);
            lab_why(s, "The same again: whoever gets no answer sends again.");
        } else {
            lab_label(s, "%" PRIu64 " ms: %u heartbeats and answers without news", ms, p->quiet);
            lab_why(
                s,
                "A leader sends an empty AppendEntries every %d ms. Followers that hear it do not "
                "stand for election.",
                WORLD_HEARTBEAT_MS);
        }
    }
    p->quiet = p->missed = 0;
}

static struct lab_step *add(struct play *p, enum lab_kind kind, const char *event, int from, int to)
{
    flush_quiet(p);
    struct lab_step *s = lab_trace_add(p->trace, kind, event, from, to,
                                       p->world.now_ms - p->start_ms);
    put_state(p, s);
    return s;
}

/* Not drawn, but counted. */
static void leave_out(struct play *p, bool lost)
{
    if (p->quiet + p->missed == 0)
        p->quiet_ms = p->world.now_ms;
    *(lost ? &p->missed : &p->quiet) += 1;
}

static struct lab_step *note(struct play *p, const char *event, unsigned node)
{
    return add(p, LAB_NOTE, event, (int)node + 1, (int)node + 1);
}

/* What a node concluded from an event is shown with the step that tells of it, not with the event. */
static void hold_back(struct play *p, struct lab_step *s, unsigned node, unsigned first)
{
    if (p->trace->steps < 2 || p->trace->full)
        return;
    const struct lab_step *before = &p->trace->step[p->trace->steps - 2];
    for (unsigned f = first; f < p->trace->fields; f++)
        if (f != LOG)
            memcpy(s->cell[node + 1][f], before->cell[node + 1][f], LAB_CELL_BUF);
}

static void chapter(struct play *p, const char *event, const char *label, const char *why)
{
    struct lab_step *s = add(p, LAB_CHAPTER, event, LAB_NOBODY, LAB_NOBODY);
    lab_label(s, "%s", label);
    lab_why(s, "%s", why);
}

/* ---- what a node did: the difference between two looks ---- */

static void became_leader(struct play *p, unsigned i, const struct seen *now)
{
    struct lab_step *s = note(p, "leader", i);
    s->term = now->term;
    lab_label(s, "2 of 3 votes: leader of term %llu", now->term);
    lab_why(s,
            "%c has a majority. Any two majorities share a node, and a node votes once a term: "
            "there is at most one leader in term %llu.",
            name(i), now->term);
}

static void became_candidate(struct play *p, unsigned i, const struct seen *was,
                             const struct seen *now)
{
    bool asked_first = was->role == RAFT_CANDIDATE && was->pre_vote && !now->pre_vote;
    struct lab_step *s = note(p, asked_first ? "candidate" : "timeout", i);
    s->term = now->term;
    if (asked_first) {
        lab_label(s, "would win: candidate in term %llu", now->term);
        lab_why(s,
                "A majority would vote for %c. Now it is meant: it raises its term to %llu and "
                "votes for itself.",
                name(i), now->term);
        return;
    }
    uint64_t silence = p->world.now_ms - p->heard_ms[i];
    if (was->role == RAFT_CANDIDATE) {
        lab_label(s, "nobody won: candidate in term %llu", now->term);
        lab_why(s,
                "The votes of term %llu were split or refused. After another random time-out %c "
                "tries in a higher term.",
                was->term, name(i));
    } else if (now->pre_vote) {
        lab_label(s, "time-out (%" PRIu64 " ms): asks first", silence);
        lab_why(s,
                "%c heard no leader for %" PRIu64 " ms. Time-outs are random, from %d to %d ms "
                "(and looked at every %d), so that rarely two stand at once. Pre-vote: it asks who "
                "would vote before it raises its term.",
                name(i), silence, WORLD_ELECTION_MS, 2 * WORLD_ELECTION_MS, WORLD_HEARTBEAT_MS);
    } else {
        lab_label(s, "time-out (%" PRIu64 " ms): candidate, term %llu", silence, now->term);
        lab_why(
            s,
            "%c heard no leader for %" PRIu64 " ms. Time-outs are random, from %d to %d ms "
            "(and looked at every %d), so that rarely two stand at once. It raises its term and "
            "votes for itself.",
            name(i), silence, WORLD_ELECTION_MS, 2 * WORLD_ELECTION_MS, WORLD_HEARTBEAT_MS);
    }
}

static void became_follower(struct play *p, unsigned i, const struct seen *was,
                            const struct seen *now)
{
    struct lab_step *s = note(p, was->role == RAFT_LEADER ? "step_down" : "follower", i);
    s->term = now->term;
    if (was->role == RAFT_LEADER && now->term == was->term) {
        lab_label(s, "reaches no majority: steps down");
        lab_why(s,
                "No follower answered %c for an election time-out. It stops leading, so that "
                "clients turn to whoever is elected.",
                name(i));
    } else if (now->leader) {
        lab_label(s, "follows %c in term %llu", name((unsigned)now->leader - 1), now->term);
        lab_why(s, "An AppendEntries of term %llu says that %c was elected: %c follows.", now->term,
                name((unsigned)now->leader - 1), name(i));
    } else {
        lab_label(s, "steps back: term %llu", now->term);
        lab_why(s,
                "A message of a higher term than its own: %c is no leader and no candidate in term "
                "%llu.",
                name(i), now->term);
    }
}

static void committed(struct play *p, unsigned i, const struct seen *now)
{
    unsigned have = 0;
    char who[24] = "";
    for (unsigned k = 0; k < WORLD_NODES; k++)
        if (now->match[k] >= now->commit)
            snprintf(who + strlen(who), sizeof who - strlen(who), have++ ? " and %c" : "%c",
                     name(k));
    const struct world_entry *e = &p->world.node[i].disk.entry[now->commit - 1];
    struct lab_step *s = note(p, "commit", i);
    hold_back(p, s, i, APPLIED);
    s->term = now->term;
    s->index = now->commit;
    lab_label(s, "%s have it, %u of 3: commits %llu", who, have, now->commit);
    if (e->term == now->term)
        lab_why(s,
                "Entry %llu is on the disks of a majority (%s). Every later leader needs votes of "
                "a majority, so one of its voters has the entry, and votes only for a log that has "
                "it too: it cannot get lost any more.",
                now->commit, who);
    else
        lab_why(
            s,
            "Entry %llu of term %llu was in the log of %c when it was elected, and is on a "
            "majority (%s). libraft commits it at once; the paper waits for an entry of the new "
            "leader's own term.",
            now->commit, e->term, name(i), who);
}

static void applied(struct play *p, unsigned i, const struct seen *now)
{
    struct lab_step *s = note(p, "apply", i);
    s->term = now->term;
    s->index = p->pending.last;
    if (p->pending.first == p->pending.last)
        lab_label(s, "applies %llu: %s", p->pending.last, p->pending.command);
    else
        lab_label(s, "applies %llu to %llu: x = %s", p->pending.first, p->pending.last,
                  p->world.node[i].variable['x' - 'a']);
    if (p->pending.first < p->pending.last)
        lab_why(s,
                "What %c knew was in its memory, which is gone. It executes its log again, as far "
                "as the leader says that it is committed.",
                name(i));
    else if (now->role == RAFT_LEADER)
        lab_why(s,
                "What is committed may be executed. All nodes execute the same entries in the same "
                "order, so all of them hold the same values.");
    else
        lab_why(
            s,
            "The leader's commit index is %llu: %c knows now that a majority has the entry, and "
            "executes it too.",
            now->commit, name(i));
}

/* After every event on node `i`. */
static void compare(struct play *p, unsigned i)
{
    struct seen was = p->seen[i], now = look(&p->world.node[i]);
    p->seen[i] = now;
    if (!p->recording || !now.up) {
        p->pending.first = p->pending.last = 0;
        return;
    }
    if (now.role != was.role && now.role == RAFT_LEADER)
        became_leader(p, i, &now);
    else if (now.role == RAFT_CANDIDATE &&
             (was.role != RAFT_CANDIDATE || now.term != was.term || now.pre_vote != was.pre_vote))
        became_candidate(p, i, &was, &now);
    else if (now.role == RAFT_FOLLOWER &&
             (was.role == RAFT_LEADER || (was.role == RAFT_CANDIDATE && now.leader)))
        became_follower(p, i, &was, &now);
    if (now.role == RAFT_LEADER && now.commit > was.commit)
        committed(p, i, &now);
    if (p->pending.last)
        applied(p, i, &now);
    p->pending.first = p->pending.last = 0;
    if (p->pending.answer) {
        struct lab_step *s = add(p, LAB_MESSAGE, "answer", (int)i + 1, CLIENT);
        s->term = now.term;
        s->index = now.commit;
        lab_label(s, p->pending.status == 0 ? "done (index %llu)" : "failed", now.commit);
        lab_why(s,
                "Only now the client hears of success: what it was told survives the loss of any "
                "one node.");
        p->answered = true;
    }
    p->pending.answer = false;
}

/* ---- messages ---- */

static void describe_entries(const struct world_message *m, struct lab_step *s)
{
    s->index = m->prev_index + m->entries;
    if (m->entries == 1)
        lab_label(s, "AppendEntries(term %llu, %llu: %s)", m->term, s->index + 0ULL, m->command);
    else
        lab_label(s, "AppendEntries(term %llu, %llu to %" PRIu64 ")", m->term, m->prev_index + 1,
                  s->index);
    lab_why(
        s,
        "%c sends the entry, with the place before it (index %llu, term %llu): a follower whose "
        "log differs there refuses, so equal logs stay equal.",
        name(m->from), m->prev_index, m->prev_term);
}

static void describe_heartbeat(const struct play *p, const struct world_message *m,
                               struct lab_step *s)
{
    const struct seen *to = &p->seen[m->to];
    s->index = m->leader_commit;
    lab_label(s, "AppendEntries(term %llu, leaderCommit %llu)", m->term, m->leader_commit);
    if (to->term < m->term || to->leader != m->from + 1)
        lab_why(s,
                "The first heartbeat of the leader of term %llu: it ends the election and starts "
                "%c's time-out again.",
                m->term, name(m->to));
    else
        lab_why(
            s, "A heartbeat carries the leader's commit index: that is how followers learn what is "
               "committed.");
}

static void describe_ack(const struct play *p, const struct world_message *m, struct lab_step *s)
{
    s->index = m->rejected ? m->rejected : m->last_index;
    if (m->rejected) {
        lab_label(s, "refused(term %llu, log ends at %llu)", m->term, m->last_index);
        if (m->term > p->seen[m->to].term)
            lab_why(s, "%c is in a higher term already and tells so.", name(m->from));
        else
            lab_why(s,
                    "%c has no entry %llu: something before it got lost. The leader goes back and "
                    "sends again from %llu.",
                    name(m->from), m->rejected, m->last_index + 1);
        return;
    }
    lab_label(s, "success(term %llu, index %llu)", m->term, m->last_index);
    lab_why(s, "%c has everything up to %llu on its disk. The leader counts who has what.",
            name(m->from), m->last_index);
}

static void describe_request(const struct world_message *m, struct lab_step *s)
{
    s->index = m->last_index;
    lab_label(s,
              m->pre_vote ? "pre-vote: RequestVote(term %llu, log %llu/%llu)"
                          : "RequestVote(term %llu, log %llu/%llu)",
              m->term, m->last_index, m->last_term);
    if (m->pre_vote)
        lab_why(s,
                "Would you vote for me in term %llu? My log ends at index %llu of term %llu. "
                "Nobody's term changes by this.",
                m->term, m->last_index, m->last_term);
    else
        lab_why(s,
                "%c asks for a vote in term %llu. Its log ends at index %llu of term %llu: nobody "
                "votes for a log that lacks what its own has.",
                name(m->from), m->term, m->last_index, m->last_term);
}

static void describe_vote(const struct play *p, const struct world_message *m, struct lab_step *s)
{
    const struct seen *voter = &p->seen[m->from], *candidate = &p->seen[m->to];
    lab_label(s,
              m->granted ? m->pre_vote ? "would vote (term %llu)" : "vote (term %llu)"
                         : "refused (term %llu)",
              m->term);
    if (m->granted && m->pre_vote)
        lab_why(s, "%c has no leader either, and %c's log is as good as its own.", name(m->from),
                name(m->to));
    else if (m->granted)
        lab_why(s,
                "%c gives its one vote of term %llu, on its disk before it answers: it cannot vote "
                "twice, not even after a crash.",
                name(m->from), m->term);
    else if (voter->role == RAFT_LEADER || voter->leader)
        lab_why(
            s,
            "%c heard its leader less than its own time-out ago and still believes in it. So one node "
            "with a bad link cannot depose a leader that the others hear.",
            name(m->from));
    else if (candidate->last < voter->last)
        lab_why(s,
                "%c's log ends at %llu, %c's at %llu: a leader without entry %llu, which may be "
                "committed, must not be.",
                name(m->to), candidate->last, name(m->from), voter->last, voter->last);
    else
        lab_why(s, "%c voted for another in this term, or for itself.", name(m->from));
}

/* A message that got lost, the same as one before in this chapter. */
static bool lost_before(const struct play *p, const struct lab_step *like)
{
    const struct lab_trace *t = p->trace;
    for (size_t i = t->steps; i-- > 0 && t->step[i].kind != LAB_CHAPTER;)
        if (t->step[i].kind == LAB_LOST && t->step[i].from == like->from &&
            t->step[i].to == like->to && strcmp(t->step[i].label, like->label) == 0)
            return true;
    return false;
}

static bool without_news(const struct play *p, const struct world_message *m)
{
    bool empty = m->type == RAFT_IO_APPEND_ENTRIES && m->entries == 0;
    bool plain = m->type == RAFT_IO_APPEND_ENTRIES_RESULT && !m->rejected;
    struct seen was = p->seen[m->to], now = look(&p->world.node[m->to]);
    return (empty || plain) && !m->lost && memcmp(&was, &now, sizeof was) == 0;
}

static void describe_lost(const struct play *p, const struct world_message *m, struct lab_step *s)
{
    if (!p->world.node[m->to].up)
        lab_why(s, "%c is down: nobody hears it. %c will notice by the answer that does not come.",
                name(m->to), name(m->from));
    else if (m->type == RAFT_IO_APPEND_ENTRIES && m->entries == 0)
        lab_why(s,
                "The heartbeat does not arrive. %c cannot know whether the leader is dead, slow or "
                "cut off.",
                name(m->to));
    else
        lab_why(s, "It does not arrive. %c will notice by the answer that does not come.",
                name(m->from));
    if (m->type == RAFT_IO_REQUEST_VOTE)
        lab_why(s,
                "%c %s. %c needs one more vote than its own: a majority of all nodes, not of those "
                "that answer.",
                name(m->to), p->world.node[m->to].up ? "is out of reach" : "is down",
                name(m->from));
    if (m->type == RAFT_IO_APPEND_ENTRIES_RESULT)
        lab_why(s, "%c did its part, but nobody hears of it.", name(m->from));
}

static void describe(const struct play *p, const struct world_message *m, struct lab_step *s)
{
    s->term = m->term;
    if (m->type == RAFT_IO_APPEND_ENTRIES && m->entries > 0)
        describe_entries(m, s);
    else if (m->type == RAFT_IO_APPEND_ENTRIES)
        describe_heartbeat(p, m, s);
    else if (m->type == RAFT_IO_APPEND_ENTRIES_RESULT)
        describe_ack(p, m, s);
    else if (m->type == RAFT_IO_REQUEST_VOTE)
        describe_request(m, s);
    else
        describe_vote(p, m, s);
    if (m->lost)
        describe_lost(p, m, s);
}

static const char *event_name(const struct world_message *m)
{
    switch (m->type) {
    case RAFT_IO_APPEND_ENTRIES:
        return "append_entries";
    case RAFT_IO_APPEND_ENTRIES_RESULT:
        return "append_entries_result";
    case RAFT_IO_REQUEST_VOTE:
        return m->pre_vote ? "request_pre_vote" : "request_vote";
    case RAFT_IO_REQUEST_VOTE_RESULT:
        return m->pre_vote ? "pre_vote" : "vote";
    default:
        return "other";
    }
}

static void on_message(void *user, const struct world_message *m)
{
    struct play *p = user;
    struct lab_step like = { .from = (int)m->from + 1, .to = (int)m->to + 1 };
    describe(p, m, &like);
    if (p->recording && (without_news(p, m) || (m->lost && lost_before(p, &like)))) {
        leave_out(p, m->lost);
    } else if (p->recording) {
        struct lab_step *s = add(p, m->lost ? LAB_LOST : LAB_MESSAGE, event_name(m), like.from,
                                 like.to);
        describe(p, m, s);
        struct seen now = look(&p->world.node[m->to]);
        hold_back(p, s, m->to, COMMIT);
        if (now.role != RAFT_FOLLOWER && !m->lost) /* it became that by this message, or stays it */
            hold_back(p, s, m->to, ROLE);
    }
    if (m->type == RAFT_IO_APPEND_ENTRIES && !m->lost)
        p->heard_ms[m->to] = p->world.now_ms;
    compare(p, m->to);
}

static void on_stored(void *user, unsigned node, raft_index index)
{
    struct play *p = user;
    if (p->recording && index > LAST_BEFORE) {
        const struct world_entry *e = &p->world.node[node].disk.entry[index - 1];
        struct lab_step *s = note(p, "stored", node);
        hold_back(p, s, node, COMMIT);
        s->term = e->term;
        s->index = index;
        lab_label(s, "%llu is on its disk", index);
        lab_why(s,
                p->seen[node].role == RAFT_LEADER
                    ? "%c writes its own log while the messages are under way; it counts itself "
                      "only when the disk has it."
                    : "%c adds the entry to its log and answers when the disk has it. It does not "
                      "execute it yet: nobody knows whether it will be committed.",
                name(node));
    }
    compare(p, node);
}

static void on_ticked(void *user, unsigned node)
{
    compare(user, node);
}

static void on_applied(void *user, unsigned node, raft_index index, const char *command)
{
    struct play *p = user;
    (void)node;
    if (p->pending.last == 0)
        p->pending.first = index;
    p->pending.last = index;
    snprintf(p->pending.command, sizeof p->pending.command, "%s", command);
}

static void on_answered(void *user, unsigned node, int status)
{
    struct play *p = user;
    (void)node;
    p->pending.answer = p->recording;
    p->pending.status = status;
}

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

/* ---- the story ---- */

typedef bool condition(const struct play *p);

static bool until(struct play *p, condition *met, uint64_t limit_ms)
{
    uint64_t end = p->world.now_ms + limit_ms;
    while (!met || !met(p))
        if (p->world.now_ms > end || !world_step(&p->world))
            return false;
    return true;
}

static void pass(struct play *p, uint64_t ms)
{
    uint64_t end = p->world.now_ms + ms;
    while (p->world.now_ms < end && world_step(&p->world))
        continue;
}

static bool b_leads(const struct play *p)
{
    return world_leader(&p->world) == B;
}

static bool a_leads(const struct play *p)
{
    return world_leader(&p->world) == A;
}

static bool answered(const struct play *p)
{
    return p->answered;
}

/* One leader, whom all that are up follow, with nothing open. */
static bool settled(const struct play *p)
{
    int leader = world_leader(&p->world);
    if (leader < 0)
        return false;
    struct seen l = look(&p->world.node[leader]);
    for (int i = 0; i < WORLD_NODES; i++) {
        struct seen s = look(&p->world.node[i]);
        if (s.up && (s.term != l.term || s.last != l.last || s.applied != l.last ||
                     (i != leader && s.leader != (raft_id)leader + 1)))
            return false;
    }
    return true;
}

/* One leader of a later term, with a majority behind it, whatever else there is. */
static bool new_leader(const struct play *p)
{
    int leader = world_leader(&p->world);
    return leader >= 0 && p->world.node[leader].raft.current_term > FIRST_TERM;
}

/* All nodes that the leader reaches have all. */
static bool majority_settled(const struct play *p)
{
    int leader = world_leader(&p->world);
    if (leader < 0)
        return false;
    struct seen l = look(&p->world.node[leader]);
    for (int i = 0; i < WORLD_NODES; i++)
        if (p->world.node[i].up && !p->world.cut[leader][i] &&
            look(&p->world.node[i]).applied != l.last)
            return false;
    return true;
}

/* Term 1 is the configuration's. B is elected in term 2 and writes, then hands over to A, which is elected in
 * term 3 and writes. Nothing is put into a node but by libraft's own calls. */
static bool before(struct play *p)
{
    static const char *const command[] = { "set x = 1", "set y = 2", "set x = 3", "set z = 1",
                                           "set y = 3", "set z = 2", "set x = 4", "set y = 4" };
    struct raft_world *w = &p->world;
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
         i++) { /* a node draws its time-out when it starts, not at each heartbeat */
        if (!until(p, settled, LIMIT_MS))
            return false;
        world_kill(w, i);
        if (!world_start(w, i))
            return false;
    }
    if (!until(p, settled, LIMIT_MS))
        return false;
    pass(p, WORLD_HEARTBEAT_MS);
    struct seen a = look(&w->node[A]);
    return a.term == FIRST_TERM && a.last == LAST_BEFORE && a.commit == LAST_BEFORE && settled(p);
}

static void set_cut(struct play *p, int cut, bool on)
{
    unsigned a = link_ends[cut].a, b = link_ends[cut].b;
    p->world.cut[a][b] = p->world.cut[b][a] = on;
    struct lab_step *s = add(p, LAB_FAULT, on ? "cut" : "heal", (int)a + 1, (int)b + 1);
    lab_label(s, on ? "the link is cut" : "the link works again");
    lab_why(s,
            on ? "From here on nothing gets through between %c and %c."
               : "Messages get through between %c and %c again.",
            name(a), name(b));
}

static bool ask(struct play *p, unsigned node, const char *command)
{
    p->answered = false;
    struct lab_step *s = add(p, LAB_MESSAGE, "request", CLIENT, (int)node + 1);
    lab_label(s, "%s", command);
    lab_why(s, "The client turns to the leader: only the leader takes commands.");
    if (!world_ask(&p->world, node, command))
        return false;
    p->seen[node] = look(&p->world.node[node]);
    s = note(p, "append", node);
    s->term = p->seen[node].term;
    s->index = p->world.asked;
    lab_label(s, "new entry: term %llu, index %llu, %s", p->seen[node].term, p->world.asked,
              command);
    lab_why(s,
            "%c adds the command to its log. It is not committed yet: if %c died now, it could be "
            "gone.",
            name(node), name(node));
    return true;
}

static bool replicate(struct play *p, const struct lab_opts *o)
{
    chapter(
        p, "replication", "Replication: set x = 5",
        "Before: A leads in term 3, elected by libraft; nine entries are committed on all nodes, "
        "and x is 4.");
    if (o->cut >= 0)
        set_cut(p, o->cut, true);
    if (o->faults & LAB_LOSE) {
        p->lose = true;
        struct lab_step *s = add(p, LAB_FAULT, "lossy", A + 1, A + 1);
        lab_label(s, "the first AppendEntries will get lost");
        lab_why(s, "The network loses the first message with the new entry to each follower.");
    }
    if (!ask(p, A, "set x = 5") || !until(p, answered, LIMIT_MS))
        return false;
    if (o->faults & LAB_KILL_LEADER)
        return true;
    if (!until(p, majority_settled, LIMIT_MS))
        return false;
    if (o->cut == 0 ||
        o->cut == 1) { /* one follower is alone: long enough that it wants to be elected */
        pass(p, 3 * WORLD_ELECTION_MS);
        set_cut(p, o->cut, false);
        return until(p, settled, LIMIT_MS);
    }
    return true;
}

static bool kill_leader(struct play *p)
{
    chapter(
        p, "election", "Election: the leader dies",
        "A has answered the client and dies before it tells anybody that entry 10 is committed.");
    world_kill(&p->world, A);
    p->seen[A] = look(&p->world.node[A]);
    struct lab_step *s = add(p, LAB_FAULT, "kill", A + 1, A + 1);
    lab_label(s, "killed");
    lab_why(s, "kill -9: A's memory is gone, its disk stays. Nobody is told.");
    return true;
}

static void silence_leader(struct play *p)
{
    chapter(p, "election", "Election: the leader falls silent",
            "No heartbeat of A arrives any more, as if it stood still or its network did.");
    p->silent = true;
    struct lab_step *s = add(p, LAB_FAULT, "silence", A + 1, A + 1);
    lab_label(s, "its heartbeats get lost");
    lab_why(s, "What A sends as a leader is lost; it still hears, and can vote.");
}

/* Who lives and can talk elects a leader; if nobody can, the link has to heal first. */
static bool elect(struct play *p, const struct lab_opts *o)
{
    bool stuck = (o->faults & LAB_KILL_LEADER) && o->cut == 2;
    if (stuck) {
        pass(p, 4 * WORLD_ELECTION_MS);
        if (world_leader(&p->world) >= 0)
            return false;
        struct lab_step *s = add(p, LAB_NOTE, "no_majority", B + 1, C + 1);
        lab_label(s, "no majority, no leader");
        lab_why(
            s, "One of three nodes is down and the other two do not hear each other: nobody can be "
               "elected, so nothing is accepted, and nothing that was is lost.");
    }
    if (stuck || ((o->faults & LAB_KILL_LEADER) && o->cut >= 0))
        set_cut(p, o->cut, false);
    if (!until(p, new_leader, LIMIT_MS))
        return false;
    p->silent = false;
    if (!(o->faults & LAB_KILL_LEADER) && o->cut == 2) {
        if (!until(p, majority_settled, LIMIT_MS))
            return false;
        set_cut(p, o->cut, false);
    }
    return until(p, settled, LIMIT_MS);
}

static bool go_on(struct play *p)
{
    int leader = world_leader(&p->world);
    chapter(
        p, "service", "Service goes on",
        "Nothing that a client was told is gone: x is 5. The next command goes to the new leader.");
    if (leader < 0 || !ask(p, (unsigned)leader, "set y = 6") || !until(p, answered, LIMIT_MS))
        return false;
    if (!world_start(&p->world, A))
        return false;
    p->seen[A] = look(&p->world.node[A]);
    p->heard_ms[A] = p->world.now_ms;
    struct lab_step *s = add(p, LAB_FAULT, "restart", A + 1, A + 1);
    lab_label(s, "starts again");
    lab_why(s, "A has its term, its vote and its log from its disk. It starts as a follower, as "
               "everybody does, and knows of no commit.");
    return until(p, settled, LIMIT_MS);
}

static bool play(struct play *p, const struct lab_opts *o)
{
    struct lab_trace *t = p->trace;
    static const char *const fields[] = { "role", "term", "vote", "log", "commit", "applied", "x" };
    lab_trace_party(t, "Client");
    for (unsigned i = 0; i < WORLD_NODES; i++)
        lab_trace_party(t, (char[]){ name(i), '\0' });
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        lab_trace_field(t, fields[i]);
    snprintf(t->title, sizeof t->title, "Raft: three libraft nodes agree on x = 5");
    if (!before(p))
        return false;
    p->recording = true;
    p->start_ms = p->world.now_ms;
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        p->seen[i] = look(&p->world.node[i]);
        p->heard_ms[i] = p->world.now_ms;
    }
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
    p->trace = out;
    bool ok = world_init(&p->world, o->seed, !(o->faults & LAB_NO_PRE_VOTE), B);
    if (ok) {
        p->world.watch = (struct world_watch){ p,         on_message, on_stored,
                                               on_ticked, on_applied, on_answered };
        p->world.lose = lose;
        ok = play(p, o);
    }
    world_done(&p->world);
    free(p);
    if (out->full)
        return firn__diag(d, FIRN_ENOMEM, 0,
                          "out of memory, or a run without end (seed %" PRIu64 ")", o->seed);
    return ok ? 0
              : firn__diag(d, FIRN_EIO, 0,
                           "the nodes did not come to an end with seed %" PRIu64
                           ", after %zu steps: try another --seed, and report this one",
                           o->seed, out->steps);
}
