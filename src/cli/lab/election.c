/*
 * The election lab: ZooKeeper's recipe. Each candidate creates an EPHEMERAL_SEQUENTIAL znode below
 * /election; the lowest leads; when a session expires, ZooKeeper deletes its znode and tells those
 * that watch it. If all watch the leader, each fail-over wakes and asks everybody (the herd); the
 * cure is to watch the znode before one's own.
 *
 * The ensemble is a model of one znode's children, sessions and one-shot watches. The children in
 * their order are a struct queue_record, the line of firn's own elections (coord/queue.h), whose
 * tokens number the znodes. The candidates are a model too: coord/queue.c runs firn's candidates,
 * on registers, leases and fencing tokens; docs/lab.md names the differences.
 *
 * Invariant, asserted at each step: at most one candidate leads, and its znode is the lowest. At
 * the end of each chapter exactly one does.
 */
#include "cli/lab/lab.h"
#include "coord/queue.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 5, EVENTS_MAX = 64, EXPIRIES = 3 };
enum { DOING, ZNODE, WATCHES };
enum { WAY_MS = 2, JOIN_MS = 20, SESSION_MS = 4000, LIMIT_MS = 60000 };

enum event_type { START, CREATE, CREATED, READ, CHILDREN, EXISTS, EXISTS_DONE, EXPIRE, DELETED };

struct event {
    uint64_t at_ms, sequence;
    enum event_type type;
    unsigned who;
    uint64_t session, token;  /* the znode that the message is about */
    struct queue_record line; /* CHILDREN */
    bool found;               /* EXISTS_DONE */
};

enum doing { OUT, JOINING, WAITING, LEADING, DEAD };

struct candidate_model {
    int party;
    enum doing doing;
    uint64_t session, token, watched; /* 0: none */
};

struct tally {
    unsigned notified, reads;
};

struct play {
    struct lab_trace *trace;
    bool herd;
    uint64_t now_ms, rng, sequence, sessions;
    int ensemble;
    struct candidate_model candidate[CANDIDATES];
    struct queue_record line;
    struct tally tally[EXPIRIES], *counting;
    bool failed;
    struct event event[EVENTS_MAX];
    size_t events;
};

/* ---- steps ---- */

enum { NAME_BUF = 32, LIST_BUF = QUEUE_MAX * 4 };

static const char *znode(uint64_t token, char out[NAME_BUF])
{
    snprintf(out, NAME_BUF, "/election/%010" PRIu64, token);
    return out;
}

static const char *list(const struct queue_record *line, char out[LIST_BUF])
{
    size_t len = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < line->count && len < LIST_BUF; i++)
        len += (size_t)snprintf(out + len, LIST_BUF - len, "%s%" PRIu64, i ? " " : "",
                                line->place[i].token);
    return out;
}

static void put_state(const struct play *p, struct lab_step *s)
{
    static const char *const doing[] = { "idle", "joining", "waiting", "leader", "dead" };
    char text[LIST_BUF];
    lab_cell(s, p->ensemble, DOING, "ensemble");
    lab_cell(s, p->ensemble, ZNODE, "%s", p->line.count ? list(&p->line, text) : "-");
    for (unsigned i = 0; i < CANDIDATES; i++) {
        const struct candidate_model *c = &p->candidate[i];
        const uint64_t field[] = { [ZNODE] = c->token, [WATCHES] = c->watched };
        lab_cell(s, c->party, DOING, "%s", doing[c->doing]);
        for (unsigned f = ZNODE; f <= WATCHES; f++)
            if (field[f])
                lab_cell(s, c->party, f, "%" PRIu64, field[f]);
            else
                lab_cell(s, c->party, f, "-");
    }
}

static struct lab_step *add(struct play *p, enum lab_kind kind, const char *event, int from, int to)
{
    unsigned leaders = 0;
    for (unsigned i = 0; i < CANDIDATES; i++)
        if (p->candidate[i].doing == LEADING) {
            leaders++;
            firn_assert(p->line.count > 0 && p->line.place[0].token == p->candidate[i].token,
                        "C%u leads with %" PRIu64, i + 1, p->candidate[i].token);
        }
    firn_assert(leaders <= 1, "%u leaders", leaders);
    struct lab_step *s = lab_trace_add(p->trace, kind, event, from, to, p->now_ms);
    put_state(p, s);
    return s;
}

static struct lab_step *asks(struct play *p, const char *event, unsigned who)
{
    return add(p, LAB_MESSAGE, event, p->candidate[who].party, p->ensemble);
}

static struct lab_step *answers(struct play *p, const char *event, unsigned who)
{
    return add(p, LAB_MESSAGE, event, p->ensemble, p->candidate[who].party);
}

static void chapter(struct play *p, const char *event, const char *label, const char *why)
{
    struct lab_step *s = add(p, LAB_CHAPTER, event, LAB_NOBODY, LAB_NOBODY);
    lab_label(s, "%s", label);
    lab_why(s, "%s", why);
}

/* ---- events ---- */

static uint64_t draw(struct play *p)
{
    uint64_t z = (p->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct event *schedule(struct play *p, enum event_type type, unsigned who, uint64_t in_ms)
{
    if (p->events == EVENTS_MAX) {
        p->failed = true;
        p->events--;
    }
    struct event *e = &p->event[p->events++];
    *e = (struct event){ .at_ms = p->now_ms + in_ms,
                         .sequence = p->sequence++,
                         .type = type,
                         .who = who,
                         .session = p->candidate[who].session };
    return e;
}

/* A message: a connection to ZooKeeper keeps the order, so each takes as long as its candidate is
 * far away. */
static struct event *post(struct play *p, enum event_type type, unsigned who)
{
    return schedule(p, type, who, WAY_MS + (p->rng >> (4 * who)) % 4);
}

static struct event next(struct play *p)
{
    size_t best = 0;
    for (size_t i = 1; i < p->events; i++) {
        const struct event *a = &p->event[i], *b = &p->event[best];
        if (a->at_ms < b->at_ms || (a->at_ms == b->at_ms && a->sequence < b->sequence))
            best = i;
    }
    struct event e = p->event[best];
    p->event[best] = p->event[--p->events];
    return e;
}

/* ---- the ensemble ---- */

static void create(struct play *p, const struct event *e)
{
    struct lab_step *s = asks(p, "create", e->who);
    lab_label(s, "create /election/, EPHEMERAL_SEQUENTIAL");
    lab_why(s,
            "A znode that lives as long as the candidate's session, and whose name gets the next "
            "number of /election.");
    if (queue_append(&p->line, e->who, e->session) != 0) {
        p->failed = true;
        return;
    }
    put_state(p, s);
    post(p, CREATED, e->who)->token = p->line.place[p->line.count - 1].token;
}

static void read_children(struct play *p, const struct event *e)
{
    struct lab_step *s = asks(p, "read", e->who);
    lab_label(s, "getChildren /election");
    lab_why(s, "Which znodes are there, and is mine the lowest?");
    if (p->counting)
        p->counting->reads++;
    post(p, CHILDREN, e->who)->line = p->line;
}

static void exists(struct play *p, const struct event *e)
{
    char name[NAME_BUF];
    struct lab_step *s = asks(p, "watch", e->who);
    lab_label(s, "exists %s, watch", znode(e->token, name));
    lab_why(s, p->herd ? "Every candidate watches the leader's znode."
                       : "A candidate watches the znode before its own, and no other.");
    struct event *back = post(p, EXISTS_DONE, e->who);
    back->token = e->token;
    for (uint32_t i = 0; i < p->line.count; i++)
        back->found = back->found || p->line.place[i].token == e->token;
    if (back->found) {
        p->candidate[e->who].watched = e->token; /* from now on the ensemble would tell */
        put_state(p, s);
    }
}

/* The session is over: its znode goes, and those that watch it are told, once. */
static void expire(struct play *p, const struct event *e)
{
    char name[NAME_BUF];
    int at = queue_find(&p->line, e->who, e->session);
    if (at < 0)
        return;
    uint64_t token = p->line.place[at].token;
    queue_remove(&p->line, at);
    p->candidate[e->who].token = 0;
    struct lab_step *s = add(p, LAB_NOTE, "expire", p->ensemble, p->ensemble);
    lab_label(s, "C%u's session expires: %s is deleted", e->who + 1, znode(token, name));
    lab_why(s, "No heartbeat of C%u for %u ms. An ephemeral znode ends with its session.",
            e->who + 1, (unsigned)SESSION_MS);
    for (unsigned i = 0; i < CANDIDATES; i++)
        if (p->candidate[i].doing != DEAD && p->candidate[i].watched == token) {
            post(p, DELETED, i)->token = token;
            if (p->counting)
                p->counting->notified++;
        }
}

/* ---- the candidates ---- */

static void ask_children(struct play *p, unsigned who)
{
    post(p, READ, who);
}

static void start(struct play *p, unsigned who)
{
    struct candidate_model *c = &p->candidate[who];
    c->doing = JOINING;
    c->session = ++p->sessions;
    c->token = c->watched = 0;
    post(p, CREATE, who);
}

static void created(struct play *p, const struct event *e)
{
    char name[NAME_BUF];
    p->candidate[e->who].token = e->token;
    struct lab_step *s = answers(p, "created", e->who);
    lab_label(s, "%s", znode(e->token, name));
    lab_why(s, "C%u's place in the line. Numbers only rise: none is given twice.", e->who + 1);
    ask_children(p, e->who);
}

static void children(struct play *p, const struct event *e)
{
    struct candidate_model *c = &p->candidate[e->who];
    char text[LIST_BUF], name[NAME_BUF];
    int at = queue_find(&e->line, e->who, e->session);
    struct lab_step *s = answers(p, "children", e->who);
    lab_label(s, "%s", list(&e->line, text));
    lab_why(s, "The numbers of all znodes below /election.");
    if (at < 0) {
        p->failed = true;
    } else if (at == 0) {
        c->doing = LEADING;
        s = add(p, LAB_NOTE, "leader", c->party, c->party);
        s->index = c->token;
        lab_label(s, "leader: %s is the lowest", znode(c->token, name));
        lab_why(s,
                "No lower znode can appear, because numbers only rise: C%u leads until its "
                "session ends.",
                e->who + 1);
    } else {
        c->doing = WAITING;
        post(p, EXISTS, e->who)->token = e->line.place[p->herd ? 0 : at - 1].token;
    }
}

static void exists_done(struct play *p, const struct event *e)
{
    struct lab_step *s = answers(p, e->found ? "watching" : "gone", e->who);
    lab_label(s, e->found ? "it exists" : "no such znode");
    if (e->found) {
        lab_why(s, "The watch is set: C%u sleeps until that znode is deleted.", e->who + 1);
    } else {
        lab_why(s, "It was deleted between the two requests: C%u reads again.", e->who + 1);
        ask_children(p, e->who);
    }
}

static void deleted(struct play *p, const struct event *e)
{
    struct lab_step *s;
    char name[NAME_BUF];
    p->candidate[e->who].watched = 0;
    s = answers(p, "notified", e->who);
    lab_label(s, "NodeDeleted %s", znode(e->token, name));
    lab_why(s, p->herd ? "All candidates watched it, so all are woken, and all read."
                       : "Only the next in line watched it.");
    ask_children(p, e->who);
}

static bool step(struct play *p)
{
    if (p->events == 0 || p->failed)
        return false;
    struct event e = next(p);
    const struct candidate_model *c = &p->candidate[e.who];
    p->now_ms = e.at_ms;
    if (e.type == START)
        start(p, e.who);
    else if (e.type == EXPIRE)
        expire(p, &e);
    if (c->doing == DEAD || c->session != e.session) /* a message of or to a dead candidate */
        return true;
    switch (e.type) {
    case START:
    case EXPIRE:
        break;
    case CREATE:
        create(p, &e);
        break;
    case CREATED:
        created(p, &e);
        break;
    case READ:
        read_children(p, &e);
        break;
    case CHILDREN:
        children(p, &e);
        break;
    case EXISTS:
        exists(p, &e);
        break;
    case EXISTS_DONE:
        exists_done(p, &e);
        break;
    case DELETED:
        deleted(p, &e);
        break;
    }
    return !p->failed;
}

/* Until nothing is under way; then exactly one leads. */
static bool settle(struct play *p)
{
    uint64_t end = p->now_ms + LIMIT_MS;
    unsigned leaders = 0;
    while (p->now_ms < end && step(p))
        continue;
    for (unsigned i = 0; i < CANDIDATES; i++)
        leaders += p->candidate[i].doing == LEADING;
    firn_assert(p->failed || p->events > 0 || leaders == 1, "%u leaders", leaders);
    return !p->failed && p->events == 0;
}

/* ---- scenario ---- */

static void kill_candidate(struct play *p, unsigned who)
{
    struct candidate_model *c = &p->candidate[who];
    c->doing = DEAD;
    c->watched = 0;
    struct lab_step *s = add(p, LAB_FAULT, "kill", c->party, c->party);
    lab_label(s, "killed");
    lab_why(s, "C%u stops. ZooKeeper does not know: the znode stays until the session expires.",
            who + 1);
    schedule(p, EXPIRE, who, SESSION_MS);
}

static bool lose_session(struct play *p, unsigned who, struct tally *t)
{
    p->counting = t;
    kill_candidate(p, who);
    if (!settle(p))
        return false;
    p->counting = NULL;
    struct lab_step *s = add(p, LAB_NOTE, "tally", p->ensemble, p->ensemble);
    lab_label(s, "%u notification%s, %u read%s", t->notified, t->notified == 1 ? "" : "s", t->reads,
              t->reads == 1 ? "" : "s");
    lab_why(s,
            "What this expiry cost the ensemble, the new watches left out. %u candidates are "
            "left.",
            p->line.count);
    return true;
}

static int leader(const struct play *p)
{
    for (int i = 0; i < CANDIDATES; i++)
        if (p->candidate[i].doing == LEADING)
            return i;
    return -1;
}

static bool act(struct play *p)
{
    struct lab_trace *t = p->trace;
    p->line.next = 1;
    p->rng = draw(p);
    p->ensemble = lab_trace_party(t, "ZooKeeper");
    for (unsigned i = 0; i < CANDIDATES; i++) {
        char name[] = { 'C', (char)('1' + i), '\0' };
        p->candidate[i].party = lab_trace_party(t, name);
    }
    lab_trace_field(t, "doing");
    lab_trace_field(t, "znode");
    lab_trace_field(t, "watches");
    chapter(p, "join", "Five candidates stand in line",
            "Each creates its znode, reads the line, and watches one other znode if it is not the "
            "lowest.");
    for (unsigned i = 0; i < CANDIDATES; i++)
        schedule(p, START, i, i * JOIN_MS);
    if (!settle(p) || leader(p) != 0)
        return false;
    chapter(p, "fail_over", "The leader's session ends",
            p->herd ? "C1 leads, and the other four watch its znode."
                    : "C1 leads. C2, the next lowest, is the only one that watches its znode.");
    if (!lose_session(p, 0, &p->tally[0]) || leader(p) != 1)
        return false;
    chapter(p, "middle", "A candidate in the middle loses its session",
            p->herd ? "C4 does not lead, and no candidate watches it."
                    : "C4 does not lead. C5 watches it, and will watch C3 from then on.");
    if (!lose_session(p, 3, &p->tally[1]) || leader(p) != 1)
        return false;
    chapter(p, "second", "The next leader's session ends",
            "C2 is killed. The next lowest takes over, past the gap in the numbers.");
    if (!lose_session(p, 1, &p->tally[2]) || leader(p) != 2)
        return false;
    chapter(p, "return", "The first leader comes back",
            "C1 has a new session, and gets a new number: it stands at the end of the line.");
    schedule(p, START, 0, 0);
    return settle(p) && leader(p) == 2;
}

static int play(bool herd, uint64_t seed, struct lab_trace *t, struct tally out[EXPIRIES])
{
    struct play *p = calloc(1, sizeof *p);
    if (!p)
        return FIRN_ENOMEM;
    p->trace = t;
    p->herd = herd;
    p->rng = seed;
    int r = act(p) ? 0 : FIRN_EIO;
    memcpy(out, p->tally, sizeof p->tally);
    free(p);
    return t->full ? FIRN_ENOMEM : r;
}

static void put_tally(struct lab_trace *t, const char *event, const char *what,
                      const struct tally n[EXPIRIES], const char *why)
{
    struct lab_step *s = lab_trace_add(t, LAB_NOTE, event, 0, 0, t->step[t->steps - 1].at_ms);
    lab_label(s, "%s: %u + %u + %u notifications, %u + %u + %u reads", what, n[0].notified,
              n[1].notified, n[2].notified, n[0].reads, n[1].reads, n[2].reads);
    lab_why(s, "%s", why);
}

int lab_election(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d)
{
    bool herd = o->faults & LAB_HERD;
    struct tally here[EXPIRIES], there[EXPIRIES];
    struct lab_trace unseen;
    lab_trace_init(out, "election", o->seed);
    lab_trace_init(&unseen, "election", o->seed);
    snprintf(out->title, sizeof out->title, "ZooKeeper's election recipe: %s",
             herd ? "all watch the leader, the herd" : "each watches the one before");
    int r = play(herd, o->seed, out, here);
    if (r == 0)
        r = play(!herd, o->seed, &unseen, there);
    lab_trace_done(&unseen);
    if (r != 0)
        return firn__diag(d, r, 0,
                          "the candidates did not settle with seed %" PRIu64
                          ", after %zu steps: try another --seed, and report this one",
                          o->seed, out->steps);
    struct lab_step *s = lab_trace_add(out, LAB_CHAPTER, "counted", LAB_NOBODY, LAB_NOBODY,
                                       out->step[out->steps - 1].at_ms);
    lab_label(s, "Counted: the leader's session, one in the middle, the next leader's");
    lab_why(s, "The same three expiries with both ways to watch; the other run is not shown.");
    put_tally(out, "tally_herd", "all watch the leader", herd ? here : there,
              "A leader's end wakes all that are left, at the same moment: with 1,000 candidates "
              "999 notifications and 999 reads. --herd shows that run.");
    put_tally(out, "tally_cure", "watch the one before", herd ? there : here,
              "Each expiry wakes one candidate, however many there are.");
    return 0;
}
