/* Records what the nodes of a raft_world do as steps of a trace, with reasons. */
#include "cli/lab/raft_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DRAWN_QUIET_MIN = 4 };

char record_name(unsigned node)
{
    return (char)('A' + node);
}

/* ---- state ---- */

struct seen record_look(const struct world_node *n)
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

static void put_state(struct recording *p, struct lab_step *s)
{
    static const char *const role[] = { "-", "follower", "candidate", "leader" };
    for (unsigned i = 0; i < WORLD_NODES; i++) {
        const struct world_node *n = &p->world.node[i];
        struct seen now = record_look(n);
        int party = (int)i + 1;
        if (!now.up) {
            for (unsigned f = 0; f < p->trace->fields; f++)
                lab_cell(s, party, f, "%s", f == RECORD_ROLE ? "down" : "");
            continue;
        }
        lab_cell(s, party, RECORD_ROLE, "%s", role[now.role]);
        lab_cell(s, party, RECORD_TERM, "%llu", now.term);
        lab_cell(s, party, RECORD_VOTE, "%c", now.vote ? record_name((unsigned)now.vote - 1) : '-');
        lab_cell(s, party, RECORD_LOG, "%llu", now.last);
        lab_cell(s, party, RECORD_COMMIT, "%llu", now.commit);
        lab_cell(s, party, RECORD_APPLIED, "%llu", now.applied);
        lab_cell(s, party, RECORD_VALUE, "%s",
                 n->variable['x' - 'a'][0] ? n->variable['x' - 'a'] : "-");
    }
}

/* ---- steps ---- */

static void flush_quiet(struct recording *p)
{
    uint64_t ms = p->world.now_ms - p->quiet_ms;
    if (p->quiet + p->missed >= DRAWN_QUIET_MIN) {
        struct lab_step *s = lab_trace_add(p->trace, LAB_QUIET, "quiet", LAB_NOBODY, LAB_NOBODY,
                                           p->world.now_ms - p->start_ms);
        if (p->missed > 0) {
            lab_label(s, "%" PRIu64 " ms: %u more messages are lost", ms, p->missed);
            lab_why(s, "The same again: a node that gets no answer sends again.");
        } else {
            lab_label(s, "%" PRIu64 " ms: %u heartbeats and answers without changes", ms, p->quiet);
            lab_why(
                s,
                "A leader sends an empty AppendEntries every %d ms. Followers that receive it do "
                "not start an election.",
                WORLD_HEARTBEAT_MS);
        }
    }
    p->quiet = p->missed = 0;
}

struct lab_step *record_step(struct recording *p, enum lab_kind kind, const char *event, int from,
                             int to)
{
    flush_quiet(p);
    struct lab_step *s = lab_trace_add(p->trace, kind, event, from, to,
                                       p->world.now_ms - p->start_ms);
    put_state(p, s);
    return s;
}

/* Not drawn, but counted. */
static void leave_out(struct recording *p, bool lost)
{
    if (p->quiet + p->missed == 0)
        p->quiet_ms = p->world.now_ms;
    *(lost ? &p->missed : &p->quiet) += 1;
}

struct lab_step *record_note(struct recording *p, const char *event, unsigned node)
{
    return record_step(p, LAB_NOTE, event, (int)node + 1, (int)node + 1);
}

/* A node's conclusion from an event is shown with the step that names it, not with the event. */
static void hold_back(struct recording *p, struct lab_step *s, unsigned node, unsigned first)
{
    if (p->trace->steps < 2 || p->trace->full)
        return;
    const struct lab_step *before = &p->trace->step[p->trace->steps - 2];
    for (unsigned f = first; f < p->trace->fields; f++)
        if (f != RECORD_LOG)
            memcpy(s->cell[node + 1][f], before->cell[node + 1][f], LAB_CELL_BUF);
}

void record_chapter(struct recording *p, const char *event, const char *label, const char *why)
{
    struct lab_step *s = record_step(p, LAB_CHAPTER, event, LAB_NOBODY, LAB_NOBODY);
    lab_label(s, "%s", label);
    lab_why(s, "%s", why);
}

/* ---- what a node did: the difference between two states ---- */

static void became_leader(struct recording *p, unsigned i, const struct seen *now)
{
    struct lab_step *s = record_note(p, "leader", i);
    s->term = now->term;
    lab_label(s, "2 of 3 votes: leader of term %llu", now->term);
    lab_why(s,
            "%c has a majority. Any two majorities share a node, and a node votes once per "
            "term: there is at most one leader in term %llu.",
            record_name(i), now->term);
}

static void became_candidate(struct recording *p, unsigned i, const struct seen *was,
                             const struct seen *now)
{
    bool asked_first = was->role == RAFT_CANDIDATE && was->pre_vote && !now->pre_vote;
    struct lab_step *s = record_note(p, asked_first ? "candidate" : "timeout", i);
    s->term = now->term;
    if (asked_first) {
        lab_label(s, "would win: candidate in term %llu", now->term);
        lab_why(s,
                "A majority would vote for %c. Now the real election starts: it increases its term "
                "to %llu and votes for itself.",
                record_name(i), now->term);
        return;
    }
    uint64_t silence = p->world.now_ms - p->heard_ms[i];
    if (was->role == RAFT_CANDIDATE) {
        lab_label(s, "no winner: candidate in term %llu", now->term);
        lab_why(s,
                "The votes of term %llu were split or refused. After another random timeout %c "
                "tries again in a higher term.",
                was->term, record_name(i));
    } else if (now->pre_vote) {
        lab_label(s, "time-out (%" PRIu64 " ms): asks first", silence);
        lab_why(s,
                "%c received nothing from a leader for %" PRIu64
                " ms. Timeouts are random, from %d to %d ms (checked every %d ms), so that two "
                "nodes rarely start an election at once. Pre-vote: it asks for votes before it "
                "increases its term.",
                record_name(i), silence, WORLD_ELECTION_MS, 2 * WORLD_ELECTION_MS,
                WORLD_HEARTBEAT_MS);
    } else {
        lab_label(s, "time-out (%" PRIu64 " ms): candidate, term %llu", silence, now->term);
        lab_why(
            s,
            "%c received nothing from a leader for %" PRIu64
            " ms. Timeouts are random, from %d to %d ms (checked every %d ms), so that two "
            "nodes rarely start an election at once. It increases its term and votes for itself.",
            record_name(i), silence, WORLD_ELECTION_MS, 2 * WORLD_ELECTION_MS, WORLD_HEARTBEAT_MS);
    }
}

static void became_follower(struct recording *p, unsigned i, const struct seen *was,
                            const struct seen *now)
{
    struct lab_step *s = record_note(p, was->role == RAFT_LEADER ? "step_down" : "follower", i);
    s->term = now->term;
    if (was->role == RAFT_LEADER && now->term == was->term) {
        lab_label(s, "reaches no majority: steps down");
        lab_why(s,
                "No follower answered %c for an election timeout. It stops leading, so that "
                "clients find the new leader.",
                record_name(i));
    } else if (now->leader) {
        lab_label(s, "follows %c in term %llu", record_name((unsigned)now->leader - 1), now->term);
        lab_why(s, "An AppendEntries of term %llu shows that %c was elected: %c follows.",
                now->term, record_name((unsigned)now->leader - 1), record_name(i));
    } else {
        lab_label(s, "steps back: term %llu", now->term);
        lab_why(s, "A message of a higher term than its own: %c becomes a follower in term %llu.",
                record_name(i), now->term);
    }
}

static void committed(struct recording *p, unsigned i, const struct seen *now)
{
    unsigned have = 0;
    char who[24] = "";
    for (unsigned k = 0; k < WORLD_NODES; k++)
        if (now->match[k] >= now->commit)
            snprintf(who + strlen(who), sizeof who - strlen(who), have++ ? " and %c" : "%c",
                     record_name(k));
    const struct world_entry *e = &p->world.node[i].disk.entry[now->commit - 1];
    struct lab_step *s = record_note(p, "commit", i);
    hold_back(p, s, i, RECORD_APPLIED);
    s->term = now->term;
    s->index = now->commit;
    lab_label(s, "%s have it, %u of 3: commits %llu", who, have, now->commit);
    if (e->term == now->term)
        lab_why(s,
                "Entry %llu is on the disks of a majority (%s). Every later leader needs votes of "
                "a majority, so one of its voters has the entry, and votes only for a log that has "
                "it too: it cannot be lost any more.",
                now->commit, who);
    else
        lab_why(s,
                "Entry %llu of term %llu was in the log of %c when it was elected, and is on a "
                "majority (%s). libraft commits it at once; the paper, and firnd around libraft, "
                "wait for an "
                "entry of the new leader's own term.",
                now->commit, e->term, record_name(i), who);
}

static void applied(struct recording *p, unsigned i, const struct seen *now)
{
    struct lab_step *s = record_note(p, "apply", i);
    s->term = now->term;
    s->index = p->pending.last;
    if (p->pending.first == p->pending.last)
        lab_label(s, "applies %llu: %s", p->pending.last, p->pending.command);
    else
        lab_label(s, "applies %llu to %llu: x = %s", p->pending.first, p->pending.last,
                  p->world.node[i].variable['x' - 'a']);
    if (p->pending.first < p->pending.last)
        lab_why(s,
                "The state of %c was in its memory, which is lost. It applies its log again, up to "
                "the leader's commit index.",
                record_name(i));
    else if (now->role == RAFT_LEADER)
        lab_why(s, "Committed entries are applied. All nodes apply the same entries in the same "
                   "order, so all of them hold the same values.");
    else
        lab_why(s,
                "The leader's commit index is %llu: %c now knows that a majority has the entry, "
                "and applies it, too.",
                now->commit, record_name(i));
}

/* After every event on node `i`. */
static void compare(struct recording *p, unsigned i)
{
    struct seen was = p->seen[i], now = record_look(&p->world.node[i]);
    p->seen[i] = now;
    if (!now.up)
        return;
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
        struct lab_step *s = record_step(p, LAB_MESSAGE, "answer", (int)i + 1, RECORD_CLIENT);
        s->term = now.term;
        s->index = now.commit;
        lab_label(s, p->pending.status == 0 ? "done (index %llu)" : "failed", now.commit);
        lab_why(s,
                "Only now the client gets its answer: a confirmed command survives the loss of any "
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
    lab_why(s,
            "%c sends the entry, with the position before it (index %llu, term %llu): a "
            "follower whose log differs there refuses, so equal logs stay equal.",
            record_name(m->from), m->prev_index, m->prev_term);
}

static void describe_heartbeat(const struct recording *p, const struct world_message *m,
                               struct lab_step *s)
{
    const struct seen *to = &p->seen[m->to];
    s->index = m->leader_commit;
    lab_label(s, "AppendEntries(term %llu, leaderCommit %llu)", m->term, m->leader_commit);
    if (to->term < m->term || to->leader != m->from + 1)
        lab_why(s,
                "The first heartbeat of the leader of term %llu: it ends the election and restarts "
                "%c's timeout.",
                m->term, record_name(m->to));
    else
        lab_why(s, "A heartbeat carries the leader's commit index: from it followers learn what is "
                   "committed.");
}

static void describe_ack(const struct recording *p, const struct world_message *m,
                         struct lab_step *s)
{
    s->index = m->rejected ? m->rejected : m->last_index;
    if (m->rejected) {
        lab_label(s, "refused(term %llu, log ends at %llu)", m->term, m->last_index);
        if (m->term > p->seen[m->to].term)
            lab_why(s, "%c is in a higher term already and reports it.", record_name(m->from));
        else
            lab_why(
                s,
                "%c has no entry %llu: an earlier entry was lost. The leader goes back and sends "
                "again from %llu.",
                record_name(m->from), m->rejected, m->last_index + 1);
        return;
    }
    lab_label(s, "success(term %llu, index %llu)", m->term, m->last_index);
    lab_why(s,
            "%c has everything up to %llu on its disk. The leader counts the nodes that have it.",
            record_name(m->from), m->last_index);
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
                "Asks for a vote in term %llu, without changing any term. Its log ends at index "
                "%llu of term %llu.",
                m->term, m->last_index, m->last_term);
    else
        lab_why(s,
                "%c asks for a vote in term %llu. Its log ends at index %llu of term %llu: no node "
                "votes for a log that is behind its own.",
                record_name(m->from), m->term, m->last_index, m->last_term);
}

static void describe_vote(const struct recording *p, const struct world_message *m,
                          struct lab_step *s)
{
    const struct seen *voter = &p->seen[m->from], *candidate = &p->seen[m->to];
    lab_label(s,
              m->granted ? m->pre_vote ? "would vote (term %llu)" : "vote (term %llu)"
                         : "refused (term %llu)",
              m->term);
    if (m->granted && m->pre_vote)
        lab_why(s, "%c has no leader either, and %c's log is not behind its own.",
                record_name(m->from), record_name(m->to));
    else if (m->granted)
        lab_why(s,
                "%c gives its one vote of term %llu, on its disk before it answers: it cannot vote "
                "twice, not even after a crash.",
                record_name(m->from), m->term);
    else if (voter->role == RAFT_LEADER || voter->leader)
        lab_why(s,
                "%c received a message of its leader within its timeout and still follows it. So "
                "one node with a bad link cannot depose a leader that the other nodes reach.",
                record_name(m->from));
    else if (candidate->last < voter->last)
        lab_why(s,
                "%c's log ends at %llu, %c's at %llu: a node without entry %llu, which may be "
                "committed, must not lead.",
                record_name(m->to), candidate->last, record_name(m->from), voter->last,
                voter->last);
    else
        lab_why(s, "%c voted for another in this term, or for itself.", record_name(m->from));
}

/* A lost message that equals an earlier one of this chapter. */
static bool lost_before(const struct recording *p, const struct lab_step *like)
{
    const struct lab_trace *t = p->trace;
    for (size_t i = t->steps; i-- > 0 && t->step[i].kind != LAB_CHAPTER;)
        if (t->step[i].kind == LAB_LOST && t->step[i].from == like->from &&
            t->step[i].to == like->to && strcmp(t->step[i].label, like->label) == 0)
            return true;
    return false;
}

/* Field by field: padding must not be compared. */
static bool seen_eq(const struct seen *a, const struct seen *b)
{
    return a->up == b->up && a->pre_vote == b->pre_vote && a->role == b->role &&
           a->term == b->term && a->vote == b->vote && a->leader == b->leader &&
           a->last == b->last && a->stored == b->stored && a->commit == b->commit &&
           a->applied == b->applied && memcmp(a->match, b->match, sizeof a->match) == 0;
}

static bool without_news(const struct recording *p, const struct world_message *m)
{
    bool empty = m->type == RAFT_IO_APPEND_ENTRIES && m->entries == 0;
    bool plain = m->type == RAFT_IO_APPEND_ENTRIES_RESULT && !m->rejected;
    struct seen was = p->seen[m->to], now = record_look(&p->world.node[m->to]);
    return (empty || plain) && !m->lost && seen_eq(&was, &now);
}

static void describe_lost(const struct recording *p, const struct world_message *m,
                          struct lab_step *s)
{
    if (!p->world.node[m->to].up)
        lab_why(s, "%c is down. %c will notice that no answer arrives.", record_name(m->to),
                record_name(m->from));
    else if (m->type == RAFT_IO_APPEND_ENTRIES && m->entries == 0)
        lab_why(s,
                "The heartbeat does not arrive. %c cannot know whether the leader is dead, slow or "
                "partitioned.",
                record_name(m->to));
    else
        lab_why(s, "The message does not arrive. %c will notice that no answer arrives.",
                record_name(m->from));
    if (m->type == RAFT_IO_REQUEST_VOTE)
        lab_why(s,
                "%c %s. %c needs one more vote than its own: a majority of all nodes, not of those "
                "that answer.",
                record_name(m->to), p->world.node[m->to].up ? "cannot be reached" : "is down",
                record_name(m->from));
    if (m->type == RAFT_IO_APPEND_ENTRIES_RESULT)
        lab_why(s, "%c has done it, but its answer is lost.", record_name(m->from));
}

static void describe(const struct recording *p, const struct world_message *m, struct lab_step *s)
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
    struct recording *p = user;
    struct lab_step like = { .from = (int)m->from + 1, .to = (int)m->to + 1 };
    describe(p, m, &like);
    if ((without_news(p, m) || (m->lost && lost_before(p, &like)))) {
        leave_out(p, m->lost);
    } else {
        struct lab_step *s = record_step(p, m->lost ? LAB_LOST : LAB_MESSAGE, event_name(m),
                                         like.from, like.to);
        describe(p, m, s);
        struct seen now = record_look(&p->world.node[m->to]);
        hold_back(p, s, m->to, RECORD_COMMIT);
        /* it became this by the message, or remains it */
        if (now.role != RAFT_FOLLOWER && !m->lost)
            hold_back(p, s, m->to, RECORD_ROLE);
    }
    if (m->type == RAFT_IO_APPEND_ENTRIES && !m->lost)
        p->heard_ms[m->to] = p->world.now_ms;
    compare(p, m->to);
}

static void on_stored(void *user, unsigned node, raft_index index)
{
    struct recording *p = user;
    if (index > p->last_before) {
        const struct world_entry *e = &p->world.node[node].disk.entry[index - 1];
        struct lab_step *s = record_note(p, "stored", node);
        hold_back(p, s, node, RECORD_COMMIT);
        s->term = e->term;
        s->index = index;
        lab_label(s, "%llu is on its disk", index);
        lab_why(
            s,
            p->seen[node].role == RAFT_LEADER
                ? "%c writes its own log while the messages are in transit; it counts itself only "
                  "when the entry is on its disk."
                : "%c adds the entry to its log and answers when it is on its disk. It does not "
                  "apply it yet: it is not known to be committed.",
            record_name(node));
    }
    compare(p, node);
}

static void on_ticked(void *user, unsigned node)
{
    compare(user, node);
}

static void on_applied(void *user, unsigned node, raft_index index, const char *command)
{
    struct recording *p = user;
    (void)node;
    if (p->pending.last == 0)
        p->pending.first = index;
    p->pending.last = index;
    snprintf(p->pending.command, sizeof p->pending.command, "%s", command);
}

static void on_answered(void *user, unsigned node, int status)
{
    struct recording *p = user;
    (void)node;
    p->pending.answer = true;
    p->pending.status = status;
}

void record_refresh(struct recording *p, unsigned node)
{
    p->seen[node] = record_look(&p->world.node[node]);
    p->heard_ms[node] = p->world.now_ms;
}

void record_begin(struct recording *p, struct lab_trace *t)
{
    static const char *const fields[] = {
        [RECORD_ROLE] = "role", [RECORD_TERM] = "term",     [RECORD_VOTE] = "vote",
        [RECORD_LOG] = "log",   [RECORD_COMMIT] = "commit", [RECORD_APPLIED] = "applied",
        [RECORD_VALUE] = "x"
    };
    p->trace = t;
    lab_trace_party(t, "Client");
    for (unsigned i = 0; i < WORLD_NODES; i++)
        lab_trace_party(t, (char[]){ record_name(i), '\0' });
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        lab_trace_field(t, fields[i]);
    p->world.watch = (struct world_watch){ p,         on_message, on_stored,
                                           on_ticked, on_applied, on_answered };
    p->start_ms = p->world.now_ms;
    p->last_before = raft_last_index(&p->world.node[0].raft);
    for (unsigned i = 0; i < WORLD_NODES; i++)
        record_refresh(p, i);
}
