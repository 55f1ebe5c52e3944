/*
 * The lab of firn's own election: five processes run the candidates of coord/queue.c, each on the
 * membership that it leases (coord/membership.c), over registers with compare-and-swap. No process
 * is told that another one died: its successor in the line sees the lease run out, frees its member
 * register, removes it from the line and leads. A leader that was paused finds by its own clock
 * that its lease is over.
 *
 * A call of the store takes effect at once, and its process goes on a little later. Beats and reads
 * are counted and left out. Invariant, asserted at each step: at most one process may believe that
 * it leads, and the tokens of leaders rise.
 */
#include "cli/lab/lab.h"
#include "coord/queue.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 5, REGISTERS = 64, NOT_WATCHING = -1 };
enum { DOING, MEMBER, TOKEN, AHEAD, LEASE };
enum { CALL_MS = 2, TOLD_MS = 3, JOIN_MS = 40, TTL_MS = 3000, BEGIN_MS = 1000, LIMIT_MS = 60000 };
static const uint64_t unix_ms = 1700000000000u;

struct text {
    size_t len; /* 0: absent */
    char bytes[RECORD_TEXT_MAX];
};

struct process {
    int party, watches;
    bool begun, up, paused, leads;
    uint64_t wake_ms; /* its next turn */
    struct roster roster;
    struct membership m;
    struct candidate c;
};

struct play {
    struct lab_trace *trace;
    uint64_t now_ms, rng, last_token;
    int store;
    unsigned beats, reads, writes, woken; /* the last three: of the chapter; woken: a set */
    bool failed;
    struct text line, member[REGISTERS];
    struct process process[PROCESSES];
};

/* ---- steps ---- */

static const char *list(const struct text *line, char out[LAB_CELL_BUF])
{
    struct queue_record q = { 0 };
    size_t len = 0;
    snprintf(out, LAB_CELL_BUF, "-");
    if (line->len > 0 && queue_parse(line->bytes, line->len, &q, NULL) == 0)
        for (uint32_t i = 0; i < q.count && len < LAB_CELL_BUF; i++)
            len += (size_t)snprintf(out + len, LAB_CELL_BUF - len, "%s%" PRIu64, i ? " " : "",
                                    q.place[i].token);
    return out;
}

static struct membership_now clock_of(const struct play *p)
{
    return (struct membership_now){ p->now_ms, unix_ms + p->now_ms };
}

/* It runs, and would say that it leads. */
static bool believes(const struct play *p, struct process *x)
{
    return x->up && !x->paused && candidate_leads(&x->c, &x->m, p->now_ms);
}

static const char *doing_of(const struct play *p, struct process *x)
{
    if (!x->up)
        return x->begun ? "dead" : "idle";
    if (x->paused)
        return "paused";
    return believes(p, x) ? "leader" : x->c.state == CANDIDATE_WAITING ? "waiting" : "joining";
}

static void put_state(struct play *p, struct lab_step *s)
{
    char text[LAB_CELL_BUF];
    lab_cell(s, p->store, DOING, "store");
    lab_cell(s, p->store, TOKEN, "%s", list(&p->line, text));
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct process *x = &p->process[i];
        bool in = x->c.state == CANDIDATE_WAITING || x->c.state == CANDIDATE_LEADING;
        lab_cell(s, x->party, DOING, "%s", doing_of(p, x));
        if (x->up && x->m.state == MEMBERSHIP_UP) {
            lab_cell(s, x->party, MEMBER, "%" PRIu32 ".%" PRIu64, x->m.number, x->m.epoch);
            lab_cell(s, x->party, LEASE, "%" PRIu64 " ms",
                     x->m.valid_until_ms > p->now_ms ? x->m.valid_until_ms - p->now_ms : 0);
        } else {
            lab_cell(s, x->party, MEMBER, "-");
            lab_cell(s, x->party, LEASE, "-");
        }
        if (x->up && in) {
            lab_cell(s, x->party, TOKEN, "%" PRIu64, x->c.token);
            lab_cell(s, x->party, AHEAD, "%" PRIu32, x->c.ahead);
        } else {
            lab_cell(s, x->party, TOKEN, "-");
            lab_cell(s, x->party, AHEAD, "-");
        }
    }
}

static struct lab_step *add(struct play *p, enum lab_kind kind, const char *event, int from, int to)
{
    unsigned leaders = 0;
    for (unsigned i = 0; i < PROCESSES; i++)
        leaders += believes(p, &p->process[i]);
    firn_assert(leaders <= 1, "%u leaders", leaders);
    struct lab_step *s = lab_trace_add(p->trace, kind, event, from, to, p->now_ms - BEGIN_MS);
    put_state(p, s);
    return s;
}

static struct lab_step *note(struct play *p, const char *event, const struct process *x)
{
    return add(p, LAB_NOTE, event, x->party, x->party);
}

static void chapter(struct play *p, const char *event, const char *label, const char *why)
{
    struct lab_step *s = add(p, LAB_CHAPTER, event, LAB_NOBODY, LAB_NOBODY);
    lab_label(s, "%s", label);
    lab_why(s, "%s", why);
    p->beats = p->reads = p->writes = p->woken = 0;
}

/* ---- the store ---- */

static uint64_t draw(struct play *p)
{
    uint64_t z = (p->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static struct nonce draw_nonce(struct play *p)
{
    struct nonce n;
    const uint64_t v[2] = { draw(p), draw(p) | 1 };
    memcpy(n.b, v, sizeof n.b);
    return n;
}

static bool holds(const struct text *t, const char *p, size_t len)
{
    return t->len == (p ? len : 0) && (t->len == 0 || memcmp(t->bytes, p, len) == 0);
}

static int swap(struct text *t, const char *old, size_t old_len, const char *value, size_t len)
{
    if (!holds(t, old, old_len))
        return FIRN_ECONFLICT;
    firn_assert(len <= sizeof t->bytes);
    memcpy(t->bytes, value, len);
    t->len = len;
    return 0;
}

static struct text *member_of(struct play *p, uint32_t number)
{
    p->failed = p->failed || number >= REGISTERS;
    return &p->member[number % REGISTERS];
}

/* A member register changed: who watches it is told. */
static void tell_watchers(struct play *p, uint32_t number)
{
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct process *x = &p->process[i];
        if (x->watches == (int)number && x->wake_ms > p->now_ms + TOLD_MS)
            x->wake_ms = p->now_ms + TOLD_MS;
    }
}

static void wrote(struct play *p, const struct process *x)
{
    p->writes++;
    p->woken |= 1u << (x - p->process);
}

/* ---- a process ---- */

/* A write to its own register: a claim is shown, a beat is counted. */
static void own_write(struct play *p, struct process *x, const struct membership_action *a)
{
    struct membership_now now = clock_of(p);
    struct member_record before;
    bool claim = !a->old || (member_parse(a->old, a->old_len, &before, NULL) == 0 &&
                             before.state == MEMBER_FREE);
    int r = swap(member_of(p, a->number), a->old, a->old_len, a->value, a->value_len);
    membership_cas_done(&x->m, &now, r);
    if (r == 0)
        tell_watchers(p, a->number);
    if (!claim) {
        p->beats++;
        return;
    }
    wrote(p, x);
    struct lab_step *s = add(p, LAB_MESSAGE, "claim", x->party, p->store);
    lab_label(s, "member/%05" PRIu32 ": %s", a->number, r == 0 ? "mine" : "taken by another");
    lab_why(
        s,
        "By compare-and-swap. The lease is valid for %d ms from the moment at which a write was "
        "sent, and renewed every third of that.",
        TTL_MS);
}

static void do_membership(struct play *p, struct process *x, const struct membership_action *a)
{
    struct membership_now now = clock_of(p);
    const struct text *t;
    switch (a->what) {
    case MEMBERSHIP_DO_SCAN:
        p->reads++;
        roster_begin(&x->roster);
        for (uint32_t i = 0; i < REGISTERS; i++)
            if (p->member[i].len)
                roster_add(&x->roster, i, p->member[i].bytes, p->member[i].len, now.ms);
        membership_scan_done(&x->m, &now, 0);
        break;
    case MEMBERSHIP_DO_READ:
        p->reads++;
        t = member_of(p, a->number);
        membership_read_done(&x->m, &now, t->len ? 0 : FIRN_ENOENT, t->bytes, t->len);
        break;
    case MEMBERSHIP_DO_CAS:
        own_write(p, x, a);
        break;
    case MEMBERSHIP_DO_WAIT:
        break;
    }
}

static void write_line(struct play *p, struct process *x, const struct candidate_action *a)
{
    struct membership_now now = clock_of(p);
    char was[LAB_CELL_BUF], is[LAB_CELL_BUF];
    list(&p->line, was);
    int r = swap(&p->line, a->old, a->old_len, a->value, a->value_len);
    candidate_cas_done(&x->c, &x->m, &now, r);
    wrote(p, x);
    struct lab_step *s = add(p, LAB_MESSAGE, r == 0 ? "line" : "conflict", x->party, p->store);
    if (r == 0) {
        lab_label(s, "queue/lab: %s becomes %s", was, list(&p->line, is));
        lab_why(s, "By compare-and-swap on the whole line. Who joins gets the next token; who is "
                   "removed never comes back with its old one.");
    } else {
        lab_label(s, "queue/lab: conflict, reads again");
        lab_why(s, "Another process changed the line since this one read it: nothing is written.");
    }
}

static void strike(struct play *p, struct process *x, const struct candidate_action *a)
{
    struct membership_now now = clock_of(p);
    int r = swap(member_of(p, a->number), a->old, a->old_len, a->value, a->value_len);
    candidate_strike_done(&x->c, &now, r);
    wrote(p, x);
    if (r == 0)
        tell_watchers(p, a->number);
    struct lab_step *s = add(p, LAB_MESSAGE, "strike", x->party, p->store);
    lab_label(s, "member/%05" PRIu32 ": %s", a->number, r == 0 ? "freed" : "it was renewed");
    lab_why(s,
            "Its successor has seen that record unchanged for 1.5 times the ttl, %d ms, and frees "
            "exactly that record: a beat in between would make the compare-and-swap fail.",
            TTL_MS * 3 / 2);
}

/* A call of the candidate, or what it waits for. True: it was a call. */
static bool do_candidate(struct play *p, struct process *x, const struct candidate_action *a)
{
    struct membership_now now = clock_of(p);
    const struct text *t;
    x->watches = NOT_WATCHING;
    switch (a->what) {
    case CANDIDATE_DO_WAIT:
        return false;
    case CANDIDATE_DO_READ:
        p->reads++;
        candidate_read_done(&x->c, &x->m, &now, p->line.len ? 0 : FIRN_ENOENT, p->line.bytes,
                            p->line.len);
        return true;
    case CANDIDATE_DO_CAS:
        write_line(p, x, a);
        return true;
    case CANDIDATE_DO_CAS_MEMBER:
        strike(p, x, a);
        return true;
    case CANDIDATE_DO_WATCH:
        t = member_of(p, a->number);
        if (a->old && holds(t, a->old, a->old_len) && now.ms < a->ms) {
            x->watches = (int)a->number;
            return false;
        }
        p->reads++;
        if (a->old && holds(t, a->old, a->old_len))
            candidate_watch_done(&x->c, &x->m, &now, FIRN_EAGAIN, NULL, 0);
        else
            candidate_watch_done(&x->c, &x->m, &now, t->len ? 0 : FIRN_ENOENT, t->bytes, t->len);
        return true;
    }
    return false;
}

static void notice(struct play *p, struct process *x)
{
    bool leads = believes(p, x);
    if (leads && !x->leads) {
        firn_assert(x->c.token > p->last_token, "token %" PRIu64 " after %" PRIu64, x->c.token,
                    p->last_token);
        p->last_token = x->c.token;
        struct lab_step *s = note(p, "leader", x);
        s->index = x->c.token;
        lab_label(s, "leader, fencing token %" PRIu64, x->c.token);
        lab_why(s,
                "First in the line, with a valid lease. Systems that it writes to refuse a token "
                "below the highest that they have seen.");
    }
    x->leads = leads;
    if (x->c.state == CANDIDATE_LOST) {
        struct lab_step *s = note(p, "lost", x);
        lab_label(s, "its lease is over: leads no more");
        lab_why(s, "It did not ask the store: its own clock says that the time is over. It stands "
                   "in line again, for a new token.");
        candidate_again(&x->c);
    }
}

static void turn(struct play *p, struct process *x)
{
    struct membership_now now = clock_of(p);
    struct membership_action ma;
    struct candidate_action ca;
    notice(p, x);
    struct nonce fresh = draw_nonce(p);
    membership_next(&x->m, &now, &fresh, &ma);
    if (ma.what != MEMBERSHIP_DO_WAIT) {
        do_membership(p, x, &ma);
        x->wake_ms = p->now_ms + CALL_MS;
        notice(p, x);
        return;
    }
    fresh = draw_nonce(p);
    candidate_next(&x->c, &x->m, &now, &fresh, &ca);
    if (do_candidate(p, x, &ca))
        x->wake_ms = p->now_ms + CALL_MS;
    else
        x->wake_ms = ma.ms < ca.ms ? ma.ms : ca.ms;
    if (x->wake_ms <= p->now_ms)
        x->wake_ms = p->now_ms + 1;
    notice(p, x);
}

/* The next turn of any process, before `until_ms`. */
static bool step(struct play *p, uint64_t until_ms)
{
    struct process *next = NULL;
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct process *x = &p->process[i];
        if (x->up && !x->paused && (!next || x->wake_ms < next->wake_ms))
            next = x;
    }
    if (!next || next->wake_ms >= until_ms || p->failed || p->trace->full)
        return false;
    if (next->wake_ms > p->now_ms)
        p->now_ms = next->wake_ms;
    turn(p, next);
    return true;
}

/* ---- scenario ---- */

/* `leader` leads, and the line is as long as that. */
static bool settled(struct play *p, int leader, uint32_t count)
{
    struct queue_record q = { 0 };
    if (p->line.len == 0 || queue_parse(p->line.bytes, p->line.len, &q, NULL) != 0)
        return false;
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct process *x = &p->process[i];
        if (x->up && x->c.state != CANDIDATE_WAITING && x->c.state != CANDIDATE_LEADING)
            return false;
    }
    return q.count == count && believes(p, &p->process[leader]);
}

static bool until_settled(struct play *p, int leader, uint32_t count)
{
    uint64_t end = p->now_ms + LIMIT_MS;
    while (!settled(p, leader, count))
        if (!step(p, end))
            return false;
    struct lab_step *s = add(p, LAB_QUIET, "quiet", LAB_NOBODY, LAB_NOBODY);
    lab_label(s, "%u beats and %u reads of all processes, not shown", p->beats, p->reads);
    lab_why(s, "Beats renew the leases. A candidate reads when the register before it changes, "
               "which is every third of a ttl, also while nothing fails.");
    return true;
}

static bool start(struct play *p, unsigned i)
{
    struct process *x = &p->process[i];
    struct membership_params params = {
        .ttl_ms = TTL_MS, .backoff_min_ms = 10, .backoff_max_ms = 50, .kind = "lab", .name = "C"
    };
    memset(&x->roster, 0, sizeof x->roster);
    if (membership_init(&x->m, &params, &x->roster, NULL) != 0)
        return false;
    candidate_init(&x->c, 0);
    x->begun = x->up = true;
    x->paused = x->leads = false;
    x->watches = NOT_WATCHING;
    x->wake_ms = p->now_ms + draw(p) % 8;
    return true;
}

static void kill_process(struct play *p, unsigned i)
{
    struct process *x = &p->process[i];
    x->up = x->leads = false;
    x->watches = NOT_WATCHING;
    struct lab_step *s = add(p, LAB_FAULT, "kill", x->party, x->party);
    lab_label(s, "killed");
    lab_why(s, "Its lease runs on, its place in the line stays, and the store tells nobody.");
}

static void count(struct play *p, const char *event)
{
    unsigned woken = (unsigned)__builtin_popcount(p->woken);
    struct lab_step *s = add(p, LAB_NOTE, event, p->store, p->store);
    lab_label(s, "%u writes, by %u process%s", p->writes, woken, woken == 1 ? "" : "es");
    lab_why(s, "What this failure cost the store, beats and reads left out: the successor alone "
               "acts, however long the line is.");
}

static bool act(struct play *p)
{
    struct lab_trace *t = p->trace;
    static const char *const fields[] = { "doing", "member", "token", "ahead", "lease" };
    p->now_ms = BEGIN_MS;
    p->store = lab_trace_party(t, "Store");
    for (unsigned i = 0; i < PROCESSES; i++) {
        char name[] = { 'C', (char)('1' + i), '\0' };
        p->process[i].party = lab_trace_party(t, name);
        p->process[i].watches = NOT_WATCHING;
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        lab_trace_field(t, fields[i]);
    snprintf(t->title, sizeof t->title, "firn's own election: registers, leases, fencing tokens");
    chapter(p, "join", "Five processes stand in line",
            "Each leases a member register, then appends itself to the line, with the next token.");
    for (unsigned i = 0; i < PROCESSES; i++) {
        uint64_t next = p->now_ms + JOIN_MS;
        if (!start(p, i))
            return false;
        while (step(p, next))
            continue;
        p->now_ms = next;
    }
    if (!until_settled(p, 0, 5))
        return false;
    chapter(p, "fail_over", "The leader is killed",
            "C1 leads. C2 watches its member register, and no other process does.");
    kill_process(p, 0);
    if (!until_settled(p, 1, 4))
        return false;
    count(p, "tally_leader");
    chapter(p, "middle", "A process in the middle is killed",
            "C4 does not lead. C5 watches it, and will watch C3 from then on.");
    kill_process(p, 3);
    if (!until_settled(p, 1, 3))
        return false;
    count(p, "tally_middle");
    chapter(p, "pause", "The leader is paused for longer than its lease",
            "C2 stops, as a process does whose machine was suspended, and does not know it.");
    struct process *c2 = &p->process[1];
    c2->paused = true;
    c2->leads = false;
    c2->watches = NOT_WATCHING;
    struct lab_step *s = add(p, LAB_FAULT, "pause", c2->party, c2->party);
    lab_label(s, "paused");
    lab_why(s, "It sends no beats. Its last lease ends %d ms after the last beat was sent.",
            TTL_MS);
    if (!until_settled(p, 2, 2))
        return false;
    count(p, "tally_pause");
    c2->paused = false;
    c2->wake_ms = p->now_ms + 1;
    s = add(p, LAB_FAULT, "restart", c2->party, c2->party);
    lab_label(s, "runs again");
    lab_why(s, "C3 leads with a higher token. What C2 still has under way carries its old token, "
               "and is refused by a system that checks.");
    return until_settled(p, 2, 3);
}

int lab_queue(const struct lab_opts *o, struct lab_trace *out, struct firn_diag *d)
{
    lab_trace_init(out, "queue", o->seed);
    struct play *p = calloc(1, sizeof *p);
    if (!p)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    p->trace = out;
    p->rng = o->seed;
    bool ok = act(p) && !p->failed;
    free(p);
    if (out->full)
        return firn__diag(d, FIRN_ENOMEM, 0,
                          "out of memory, or a run without end (seed %" PRIu64 ")", o->seed);
    return ok ? 0
              : firn__diag(d, FIRN_EIO, 0,
                           "the processes did not settle with seed %" PRIu64
                           ", after %zu steps: try another --seed, and report this one",
                           o->seed, out->steps);
}
