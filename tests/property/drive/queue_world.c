/*
 * A small world from a seed: processes that stand in line for one leadership, over registers that
 * lose replies, apply requests late or never and answer from the past. Processes pause, crash and
 * come back, leave the line and join it again; their clocks begin anywhere and, in one of the
 * worlds, run at rates up to 1.4 times each other's.
 * Never: two that believe to lead at the same moment, each by its own clock; a leader whose token
 * is not above that of every leader before; a member register whose epoch goes back. Often enough:
 * everything the rules tell apart. In the end, with the faults healed, each process gets its turn.
 */
#include "t.h"

#include "coord/queue.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    PROCESSES = 5,
    NUMBERS = 128, /* member registers: the 64 lowest free ones may be chosen, and some are held */
    QUEUE = NUMBERS,
    HISTORY = 8,
    LATE_MAX = 64,
    TTL_MS = 300,
    RUN_MS = 40000,
    HEAL_MS = 20000,
};

struct version {
    size_t len; /* 0: absent */
    char text[RECORD_TEXT_MAX];
};

struct late { /* a write on its way */
    bool used;
    uint64_t at;
    int reg;
    struct version old, value;
    int process; /* that waits for the answer, -1: none any more */
    uint64_t call;
};

enum part { PART_MEMBER, PART_LINE };

struct process {
    bool up, leaving;
    struct roster roster;
    struct membership m;
    struct candidate c;
    uint64_t offset;       /* of its clock */
    unsigned rate;         /* of its clock, percent */
    uint64_t paused_until; /* true time */
    bool counted;          /* as leading, with this token */
    uint64_t leave_at;

    bool busy; /* a call is on its way */
    enum part part;
    struct membership_action ma;
    struct candidate_action ca;
    uint64_t call, reply_at;
    int result;
    struct version reply;
    bool applied; /* a write: the answer is known */
};

struct world {
    uint64_t seed, rng, now, calls;
    bool healed, uneven;
    unsigned fault_percent, disturb;
    struct version reg[NUMBERS + 1][HISTORY];
    size_t versions[NUMBERS + 1];
    struct late late[LATE_MAX];
    struct process p[PROCESSES];
    uint64_t last_token, leaders, turns[PROCESSES];
};

static struct {
    uint64_t led, lost, struck, conflicts, unknown, late_landed, stale, crashed, released, adopted,
        member_lost, lapsed_and_renewed, house;
} sometimes;

static struct world *w;

#define NEVER(cond)                                                                          \
    do {                                                                                     \
        if (cond)                                                                            \
            t_fail(__FILE__, __LINE__, "never: " #cond, "world seed %" PRIu64 " ", w->seed); \
    } while (0)

static uint64_t draw(void)
{
    uint64_t z = (w->rng += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t below(uint64_t n)
{
    return draw() % n;
}

static bool chance(unsigned percent)
{
    return below(100) < percent;
}

static bool fault(void)
{
    return !w->healed && chance(w->fault_percent);
}

static struct nonce draw_nonce(void)
{
    struct nonce n;
    uint64_t v[2] = { draw(), draw() | 1 };
    memcpy(n.b, v, sizeof n.b);
    return n;
}

static struct membership_now clock_of(const struct process *p)
{
    return (struct membership_now){ p->offset + w->now * p->rate / 100, 1700000000000u + w->now };
}

/* ---- the store ---- */

static const struct version *current(int reg)
{
    return &w->reg[reg][(w->versions[reg] - 1) % HISTORY];
}

static bool same(const struct version *a, const struct version *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static int apply(int reg, const struct version *old, const struct version *value)
{
    struct member_record before, after;
    if (!same(current(reg), old)) {
        sometimes.conflicts++;
        return FIRN_ECONFLICT;
    }
    if (reg < QUEUE) {
        T_EQ(member_parse(value->text, value->len, &after, NULL), 0);
        if (old->len && member_parse(old->text, old->len, &before, NULL) == 0) {
            NEVER(after.epoch < before.epoch);
            NEVER(after.epoch == before.epoch && before.state == MEMBER_FREE);
        }
    }
    w->reg[reg][w->versions[reg]++ % HISTORY] = *value;
    return 0;
}

static void version_set(struct version *v, const char *p, size_t len)
{
    v->len = p ? len : 0;
    if (p)
        memcpy(v->text, p, len);
}

static void land(struct late *l)
{
    int r = apply(l->reg, &l->old, &l->value);
    l->used = false;
    struct process *p = l->process >= 0 ? &w->p[l->process] : NULL;
    if (p && p->up && p->busy && p->call == l->call && !p->applied) {
        p->applied = true;
        if (p->result == 0) /* the answer will arrive */
            p->result = r;
    } else if (r == 0) {
        sometimes.late_landed++;
    }
}

static void send_write(struct process *p, int reg, const char *old, size_t old_len,
                       const char *value, size_t len)
{
    struct late *l = NULL;
    for (int i = 0; i < LATE_MAX; i++)
        if (!w->late[i].used)
            l = &w->late[i];
    p->result = 0;
    p->applied = false;
    uint64_t landing = 1 + below(30), answer = landing + below(30);
    bool write = l != NULL;
    if (!l || (fault() && chance(40))) {
        p->result = FIRN_EIO;
        p->applied = true;
        write = false;
    } else if (fault()) {
        p->result = FIRN_EUNKNOWN;
        sometimes.unknown++;
        write = chance(70);
        landing = 1 + below(chance(50) ? 100 : 3 * TTL_MS);
        answer = 100;
    }
    p->reply_at = w->now + answer;
    if (write) {
        *l = (struct late){ .used = true,
                            .at = w->now + landing,
                            .reg = reg,
                            .process = (int)(p - w->p),
                            .call = p->call };
        version_set(&l->old, old, old_len);
        version_set(&l->value, value, len);
    }
}

/* A read sees the register as it is when the answer leaves, or, unless fresh, something older. */
static void answer_read(struct process *p, int reg, bool fresh)
{
    size_t n = w->versions[reg], back = 0;
    if (!fresh && fault() && n > 1) {
        back = 1 + below(n - 1 < HISTORY - 1 ? n - 1 : HISTORY - 1);
        sometimes.stale++;
    }
    p->reply = w->reg[reg][(n - 1 - back) % HISTORY];
    p->result = p->reply.len ? 0 : FIRN_ENOENT;
}

/* ---- a process ---- */

static void start(struct process *p)
{
    struct membership_params params = { .ttl_ms = TTL_MS,
                                        .backoff_min_ms = 10,
                                        .backoff_max_ms = 50,
                                        .keep_house = chance(50),
                                        .kind = "sim",
                                        .name = "p" };
    memset(&p->roster, 0, sizeof p->roster);
    T_EQ(membership_init(&p->m, &params, &p->roster, NULL), 0);
    candidate_init(&p->c, 0);
    p->up = true;
    p->busy = p->leaving = p->counted = false;
    p->offset = 1 + below(1000000);
    p->rate = w->uneven ? 85 + (unsigned)below(35) : 100;
    p->leave_at = 0;
}

/* What it would say if it were asked now; asking it for real would change it. */
static bool believes(const struct process *p)
{
    static struct candidate copy;
    if (!p->up || p->c.state != CANDIDATE_LEADING)
        return false;
    copy = p->c;
    return candidate_leads(&copy, &p->m, clock_of(p).ms);
}

static void check(void)
{
    int leading = 0;
    for (int i = 0; i < PROCESSES; i++) {
        struct process *p = &w->p[i];
        if (!believes(p)) {
            p->counted = false;
            continue;
        }
        leading++;
        if (p->counted)
            continue;
        NEVER(p->c.token <= w->last_token);
        w->last_token = p->c.token;
        w->leaders++;
        w->turns[i]++;
        sometimes.led++;
        p->counted = true;
        p->leave_at = chance(60) || w->healed ? w->now + below(4 * TTL_MS) : 0;
    }
    NEVER(leading > 1);
}

static void tell(struct process *p)
{
    struct membership_now now = clock_of(p);
    const char *text = p->reply.text;
    size_t len = p->reply.len;
    uint64_t unbroken = p->m.unbroken, lost = p->m.lost;
    bool was_up = p->m.state == MEMBERSHIP_UP, waiting = p->c.state == CANDIDATE_OUT;
    p->busy = false;
    if (p->part == PART_MEMBER) {
        switch (p->ma.what) {
        case MEMBERSHIP_DO_SCAN:
            roster_begin(&p->roster);
            if (p->result == 0)
                for (uint32_t n = 0; n < NUMBERS; n++)
                    if (current((int)n)->len)
                        roster_add(&p->roster, n, current((int)n)->text, current((int)n)->len,
                                   now.ms);
            sometimes.house += was_up;
            membership_scan_done(&p->m, &now, p->result);
            break;
        case MEMBERSHIP_DO_READ:
            membership_read_done(&p->m, &now, p->result, text, len);
            break;
        case MEMBERSHIP_DO_CAS:
            membership_cas_done(&p->m, &now, p->result);
            break;
        case MEMBERSHIP_DO_WAIT:
            break;
        }
        sometimes.member_lost += p->m.lost - lost;
        sometimes.lapsed_and_renewed += was_up && p->m.lost == lost && p->m.unbroken != unbroken;
        return;
    }
    switch (p->ca.what) {
    case CANDIDATE_DO_READ:
        candidate_read_done(&p->c, &p->m, &now, p->result, text, len);
        sometimes.adopted += waiting && p->c.state == CANDIDATE_WAITING;
        break;
    case CANDIDATE_DO_CAS:
        candidate_cas_done(&p->c, &p->m, &now, p->result);
        break;
    case CANDIDATE_DO_WATCH:
        candidate_watch_done(&p->c, &p->m, &now, p->result, text, len);
        break;
    case CANDIDATE_DO_CAS_MEMBER:
        sometimes.struck += p->result == 0;
        candidate_strike_done(&p->c, &now, p->result);
        break;
    case CANDIDATE_DO_WAIT:
        break;
    }
}

/* Begin a call; reads are answered later, as the store is then. */
static void call(struct process *p)
{
    struct membership_now now = clock_of(p);
    struct nonce fresh = draw_nonce();
    p->call = ++w->calls;
    membership_next(&p->m, &now, &fresh, &p->ma);
    p->part = PART_MEMBER;
    p->reply_at = w->now + 1 + below(30);
    p->result = fault() ? FIRN_EIO : 0;
    p->applied = true;
    p->busy = p->ma.what != MEMBERSHIP_DO_WAIT;
    NEVER(p->ma.number >= NUMBERS);
    if (p->ma.what == MEMBERSHIP_DO_CAS)
        send_write(p, (int)p->ma.number, p->ma.old, p->ma.old_len, p->ma.value, p->ma.value_len);
    if (p->busy)
        return;
    fresh = draw_nonce();
    candidate_next(&p->c, &p->m, &now, &fresh, &p->ca);
    p->part = PART_LINE;
    p->busy = p->ca.what != CANDIDATE_DO_WAIT;
    if (p->ca.what == CANDIDATE_DO_CAS)
        send_write(p, QUEUE, p->ca.old, p->ca.old_len, p->ca.value, p->ca.value_len);
    else if (p->ca.what == CANDIDATE_DO_CAS_MEMBER)
        send_write(p, (int)p->ca.number, p->ca.old, p->ca.old_len, p->ca.value, p->ca.value_len);
}

/* The answer to the call is due: fill it in, for what is read now. False: a watch that goes on. */
static bool answered(struct process *p)
{
    bool member = p->part == PART_MEMBER;
    if (!p->applied && p->result == 0) /* its write has not landed: it will, before the answer */
        return false;
    if (p->result != 0)
        return true;
    if (member && p->ma.what == MEMBERSHIP_DO_READ)
        answer_read(p, (int)p->ma.number, p->ma.fresh);
    else if (!member && p->ca.what == CANDIDATE_DO_READ)
        answer_read(p, QUEUE, p->ca.fresh);
    else if (!member && p->ca.what == CANDIDATE_DO_WATCH) {
        answer_read(p, (int)p->ca.number, p->ca.fresh);
        if (p->ca.old && p->reply.len == p->ca.old_len &&
            memcmp(p->reply.text, p->ca.old, p->ca.old_len) == 0) {
            /* One thread serves the line and the membership: it waits in short pieces. */
            if (clock_of(p).ms < p->ca.ms) {
                p->busy = false;
                return false;
            }
            p->result = FIRN_EAGAIN;
        }
    }
    return true;
}

static void step(struct process *p)
{
    if (!p->up || w->now < p->paused_until)
        return;
    if (p->busy && w->now >= p->reply_at && answered(p))
        tell(p);
    if (p->busy)
        return;
    bool leads = candidate_leads(&p->c, &p->m, clock_of(p).ms);
    if (p->c.state == CANDIDATE_LOST) {
        sometimes.lost++;
        candidate_again(&p->c); /* the work has stopped */
    } else if (leads && p->leave_at && w->now >= p->leave_at) {
        sometimes.released++;
        candidate_leave(&p->c);
        p->leave_at = 0;
    } else if (p->c.state == CANDIDATE_LEFT) {
        membership_touch(&p->m);
        candidate_init(&p->c, p->c.next_seen);
    }
    call(p);
}

static void disturb(struct process *p)
{
    if (!p->up) {
        start(p);
    } else if (chance(40)) {
        p->up = false;
        sometimes.crashed++;
    } else {
        p->paused_until = w->now + below(4 * TTL_MS);
    }
}

static void tick(void)
{
    w->now += 1 + below(4);
    for (int i = 0; i < LATE_MAX; i++)
        if (w->late[i].used && w->now >= w->late[i].at)
            land(&w->late[i]);
    if (!w->healed && below(2000) < w->disturb)
        disturb(&w->p[below(PROCESSES)]);
    for (int i = 0; i < PROCESSES; i++) {
        step(&w->p[i]);
        check();
    }
}

static void run(uint64_t seed, bool uneven)
{
    memset(w, 0, sizeof *w);
    w->seed = w->rng = seed;
    w->uneven = uneven;
    w->fault_percent = (unsigned)below(40);
    w->disturb = (unsigned)below(20);
    for (int i = 0; i <= NUMBERS; i++)
        w->versions[i] = 1; /* absent */
    for (int i = 0; i < PROCESSES; i++)
        start(&w->p[i]);
    while (w->now < RUN_MS)
        tick();
    w->healed = true;
    for (int i = 0; i < PROCESSES; i++) {
        w->p[i].paused_until = 0;
        if (!w->p[i].up && chance(50))
            start(&w->p[i]);
        w->turns[i] = believes(&w->p[i]); /* a leader of before has its turn, and an end of it */
        w->p[i].leave_at = w->turns[i] ? w->now
                                       : 0; /* the others: when they have led for a while */
    }
    w->p[0].up ? (void)0 : start(&w->p[0]);
    while (w->now < RUN_MS + HEAL_MS)
        tick();
    for (int i = 0; i < PROCESSES; i++)
        NEVER(w->p[i].up && w->turns[i] == 0);
}

static void worlds(uint64_t count, bool uneven)
{
    w = malloc(sizeof *w);
    T_OK(w != NULL);
    memset(&sometimes, 0, sizeof sometimes);
    uint64_t first = t_random();
    printf("worlds from seed %" PRIu64 "\n", first);
    for (uint64_t i = 0; i < count; i++)
        run(first + i, uneven);
    free(w);
    w = NULL;
    printf("led %" PRIu64 ", lost %" PRIu64 ", struck %" PRIu64 ", conflicts %" PRIu64
           ", unknown %" PRIu64 ", late %" PRIu64 ", stale %" PRIu64 ", crashed %" PRIu64
           ", released %" PRIu64 ", adopted %" PRIu64 ", members lost %" PRIu64
           ", renewed late %" PRIu64 ", house kept %" PRIu64 "\n",
           sometimes.led, sometimes.lost, sometimes.struck, sometimes.conflicts, sometimes.unknown,
           sometimes.late_landed, sometimes.stale, sometimes.crashed, sometimes.released,
           sometimes.adopted, sometimes.member_lost, sometimes.lapsed_and_renewed, sometimes.house);
    T_OK(sometimes.lost && sometimes.struck && sometimes.conflicts && sometimes.unknown);
    T_OK(sometimes.late_landed && sometimes.stale && sometimes.crashed && sometimes.released);
    T_OK(sometimes.adopted && sometimes.member_lost && sometimes.lapsed_and_renewed);
    T_OK(sometimes.house);
}

T_TEST(one_leader_at_a_time)
{
    worlds(t_scale(300), false);
}

T_TEST(one_leader_at_a_time_with_uneven_clocks)
{
    worlds(t_scale(300), true);
}
