/*
 * A small world from a seed: nodes with clocks that step, freeze and leap, over registers that lose
 * replies, apply requests late or twice and answer from the past; nodes crash, pause and restart
 * between any two events. The layout is tiny (4 slots, 2 bits of counter, a window of 4 ticks), so
 * that a mistake soon makes two nodes stamp the same tick.
 * Never: an ID twice, a tick of a slot stamped by two incarnations, a handle whose IDs do not rise, a
 * stamp outside the confirmed window, a false alarm. Often enough: every outcome the rule tells apart.
 */
#include "t.h"

#include "coord/clock_f.h"
#include "coord/slot.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NODES = 4,
    SLOTS = 4,
    SEQ_MAX = 3,
    WINDOW = 4,
    MAX_DRIFT = 3,
    TS_END = 8192,
    HISTORY = 8,
    LATE_MAX = 16,
    EVENTS = 700,
    TICK_NS = 1000000,
    EPOCH_TICKS = 500, /* Unix time of tick 0, in ticks */
};

struct version {
    size_t len;
    char text[RECORD_TEXT_MAX];
};

struct late { /* a request whose sender no longer waits */
    bool used;
    uint32_t slot;
    struct version old, value;
};

struct gen { /* a generator as PROTOCOL.md 4.2 has it */
    struct slot_grant grant;
    uint64_t t, q; /* last stamp */
    bool any;
};

struct sim_node {
    bool up, leaving;
    uint32_t incarnation;
    struct slot_node n;
    struct clock_f clock;
    int64_t r_off; /* ticks that R is wrong by */
    bool frozen;
    uint64_t paused_until;
    struct gen gen;
    uint64_t handle_t, handle_q; /* last ID of this process, over slot changes */
    bool waiting;                /* an action was taken, its reply is on the way */
    struct slot_action action;
    int result;
    struct version reply;
};

struct world {
    uint64_t seed, rng;
    uint64_t now; /* true time, ticks */
    bool use_lock, give_back, healed;
    unsigned fault_percent, disturb_percent;
    uint64_t quarantine;
    struct version slot[SLOTS][HISTORY];
    size_t versions[SLOTS];
    struct late late[LATE_MAX];
    int locked_by[SLOTS];
    struct sim_node node[NODES];
    uint32_t incarnations;
    uint64_t highest_until;
    uint32_t owner[SLOTS][TS_END]; /* incarnation that stamped this tick, 0 for none */
    uint8_t stamped[SLOTS][TS_END];
};

static struct { /* things that must have happened somewhere over all seeds */
    uint64_t ids, granted, adopted, fenced, conflicts, late_landed, stale, no_slot, wait_clock,
        suspect, held, released, crashed, given_back, dry, clock_refused;
} sometimes;

static struct world *w;

#define NEVER(cond, ...)                                                                     \
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

static void draw_nonce(struct nonce *out)
{
    uint64_t v[2] = { draw(), draw() };
    memcpy(out->b, v, sizeof out->b);
}

static const struct nonce cluster = { { 1 } };

/* ---- the store ---- */

static struct version *current(uint32_t slot)
{
    return &w->slot[slot][(w->versions[slot] - 1) % HISTORY];
}

static bool same(const struct version *a, const struct version *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static void put(uint32_t slot, const struct version *v)
{
    struct slot_record r;
    w->slot[slot][w->versions[slot]++ % HISTORY] = *v;
    if (slot_parse(v->text, v->len, &r, NULL) == 0 && r.until > w->highest_until)
        w->highest_until = r.until;
}

static int apply(uint32_t slot, const struct version *old, const struct version *value)
{
    if (!same(current(slot), old)) {
        sometimes.conflicts++;
        return FIRN_ECONFLICT;
    }
    put(slot, value);
    return 0;
}

static void keep_for_later(uint32_t slot, const struct version *old, const struct version *value)
{
    struct late *l = &w->late[below(LATE_MAX)];
    *l = (struct late){ true, slot, *old, *value };
}

static void land_late(void)
{
    struct late *l = &w->late[below(LATE_MAX)];
    if (!l->used)
        return;
    if (apply(l->slot, &l->old, &l->value) == 0)
        sometimes.late_landed++;
    l->used = chance(20); /* some come twice */
}

static int store_cas(const struct slot_action *a)
{
    struct version old, value;
    old.len = a->old_len;
    memcpy(old.text, a->old, a->old_len);
    value.len = a->value_len;
    memcpy(value.text, a->value, a->value_len);
    if (!fault())
        return apply(a->slot, &old, &value);
    switch (below(5)) {
    case 0: /* lost */
        return FIRN_EUNKNOWN;
    case 1: /* the reply is lost */
        apply(a->slot, &old, &value);
        return FIRN_EUNKNOWN;
    case 2: /* on its way, after the sender gave up */
        keep_for_later(a->slot, &old, &value);
        return FIRN_EUNKNOWN;
    case 3: /* doubled */
        keep_for_later(a->slot, &old, &value);
        return apply(a->slot, &old, &value);
    default:
        return FIRN_EIO;
    }
}

static const struct version *some_version(uint32_t slot, bool fresh)
{
    size_t kept = w->versions[slot] < HISTORY ? w->versions[slot] : HISTORY;
    size_t back = fresh || !fault() ? 0 : below(kept);
    sometimes.stale += back > 0;
    return &w->slot[slot][(w->versions[slot] - 1 - back) % HISTORY];
}

/* ---- nodes ---- */

static struct clock_reading reading(const struct sim_node *s)
{
    int64_t t = (int64_t)w->now * TICK_NS;
    return (
        struct clock_reading){ .real = t + s->r_off * TICK_NS, .mono = t, .boot = t, .store = 0 };
}

static struct slot_now now_of(const struct sim_node *s)
{
    int64_t f = clock_f_at(&s->clock, (int64_t)w->now * TICK_NS) / TICK_NS - EPOCH_TICKS;
    return (
        struct slot_now){ .f = f < 0 ? 0 : (uint64_t)f, .last = s->handle_t, .mono_ms = w->now };
}

static void update_clock(struct sim_node *s)
{
    struct clock_reading r = reading(s);
    int64_t highest = w->highest_until ? (int64_t)(w->highest_until + EPOCH_TICKS) * TICK_NS : 0;
    enum clock_state c = clock_f_update(&s->clock, &r, highest);
    sometimes.suspect += c == CLOCK_SUSPECT;
    sometimes.held += c == CLOCK_HELD;
}

static void unlock_all(int who)
{
    for (int i = 0; i < SLOTS; i++)
        if (w->locked_by[i] == who)
            w->locked_by[i] = -1;
}

static void crash(int who)
{
    w->node[who].up = false;
    unlock_all(who);
    sometimes.crashed++;
}

static void boot(int who)
{
    struct sim_node *s = &w->node[who];
    int64_t r_off = s->r_off;
    memset(s, 0, sizeof *s);
    s->r_off = r_off;
    clock_f_init(&s->clock, &(struct clock_f_params){ .epoch_ns = (int64_t)EPOCH_TICKS * TICK_NS,
                                                      .skew_max_ns = 5 * TICK_NS,
                                                      .max_idle_ns = (int64_t)400 * TICK_NS });
    update_clock(s);
    if (s->clock.state == CLOCK_WAIT) { /* refused to start; the clock is set some day */
        sometimes.clock_refused++;
        return;
    }
    struct slot_params p = {
        .cluster = cluster,
        .slot_hi = SLOTS,
        .window = WINDOW,
        .max_drift = MAX_DRIFT,
        .quarantine = w->use_lock ? 0 : w->quarantine,
        .ts_end = TS_END,
        .renew_every_ms = 1,
        .backoff_min_ms = 1,
        .backoff_max_ms = 4,
        .use_lock = w->use_lock,
        .give_back = w->give_back,
    };
    struct nonce me;
    draw_nonce(&me);
    snprintf(p.name, sizeof p.name, "n%d", who);
    if (slot_init(&s->n, &p, &me, NULL) != 0)
        abort();
    s->incarnation = ++w->incarnations;
    s->up = true;
}

static int lock_byte(int who, uint32_t slot)
{
    unlock_all(who);
    bool lost = !w->healed && chance(3); /* somebody deleted the side file */
    if (w->locked_by[slot] >= 0 && !lost)
        return FIRN_ECONFLICT;
    w->locked_by[slot] = who;
    return 0;
}

/* The action happens now; its reply may take a while, and the world goes on meanwhile. */
static void act(int who)
{
    struct sim_node *s = &w->node[who];
    struct nonce fresh;
    struct slot_now now = now_of(s);
    draw_nonce(&fresh);
    slot_next(&s->n, &now, &fresh, &s->action);
    s->waiting = s->action.what != SLOT_DO_WAIT;
    s->result = 0;
    switch (s->action.what) {
    case SLOT_DO_WAIT:
        break;
    case SLOT_DO_SCAN:
        slot_scan_begin(&s->n);
        for (uint32_t i = 0; i < SLOTS; i++) {
            const struct version *v = some_version(i, false);
            slot_scan_add(&s->n, i, v->text, v->len);
        }
        s->result = fault() ? FIRN_EIO : 0;
        break;
    case SLOT_DO_LOCK:
        s->result = lock_byte(who, s->action.slot);
        break;
    case SLOT_DO_READ:
        s->reply = *some_version(s->action.slot, s->action.fresh);
        s->result = fault() ? FIRN_EIO : 0;
        break;
    case SLOT_DO_CAS:
        s->result = store_cas(&s->action);
        break;
    }
}

static void reply(struct sim_node *s)
{
    struct slot_now now = now_of(s);
    struct slot_grant before = s->n.grant;
    enum slot_state state = s->n.state;
    s->waiting = false;
    switch (s->action.what) {
    case SLOT_DO_WAIT:
        break;
    case SLOT_DO_SCAN:
        slot_scan_done(&s->n, &now, s->result);
        break;
    case SLOT_DO_LOCK:
        slot_lock_done(&s->n, &now, s->result);
        break;
    case SLOT_DO_READ:
        slot_read_done(&s->n, &now, s->result, s->reply.text, s->reply.len);
        sometimes.adopted += s->n.grant.until > before.until || s->n.grant.gen != before.gen;
        break;
    case SLOT_DO_CAS:
        slot_cas_done(&s->n, &now, s->result);
        break;
    }
    const struct slot_grant *g = &s->n.grant;
    sometimes.granted += g->gen != before.gen;
    sometimes.fenced += s->n.state == SLOT_FENCED && state != SLOT_FENCED;
    sometimes.no_slot += s->n.state == SLOT_NO_SLOT;
    sometimes.wait_clock += s->n.state == SLOT_WAIT_CLOCK;
    sometimes.dry += slot_state_at(&s->n, &now) == SLOT_DRY;
    /* No clone and no rollback in this world: these would be false alarms. */
    NEVER(s->n.state == SLOT_TWIN);
    NEVER(s->n.state == SLOT_REGRESSED);
    NEVER(s->n.state == SLOT_HALTED);
    NEVER(g->gen == before.gen && g->until < before.until);
    NEVER(g->gen != before.gen && g->from <= now.last);
    NEVER(g->until > slot_limit(&s->n, now.f) + WINDOW);
    if (s->n.state == SLOT_CLOSED && state != SLOT_CLOSED)
        sometimes.released++;
}

/* ---- emission ---- */

/* What the coordinator publishes reaches the generator some time later. */
static void publish(struct sim_node *s)
{
    struct gen *g = &s->gen;
    if (s->n.grant.gen != g->grant.gen) {
        uint64_t from = s->n.grant.from;
        if (s->handle_t + 1 > from)
            from = s->handle_t + 1;
        g->t = from - 1;
        g->q = SEQ_MAX;
        g->any = true;
    }
    g->grant = s->n.grant;
}

static bool emit(struct sim_node *s)
{
    struct gen *g = &s->gen;
    if (!g->any || g->grant.closed)
        return false;
    struct slot_now now = now_of(s);
    uint64_t limit = slot_limit(&s->n, now.f);
    uint64_t t = g->t > now.f ? g->t : now.f;
    uint64_t q = t == g->t ? g->q + 1 : 0;
    if (q > SEQ_MAX) {
        t++;
        q = 0;
    }
    if ((t > now.f && t > limit) || t >= g->grant.until)
        return false;
    g->t = t;
    g->q = q;
    uint32_t slot = g->grant.slot;
    NEVER(t < g->grant.from);
    NEVER(t >= TS_END);
    NEVER(w->owner[slot][t] != 0 && w->owner[slot][t] != s->incarnation);
    NEVER(w->stamped[slot][t] >> q & 1);
    NEVER(s->handle_t > t || (s->handle_t == t && s->handle_q >= q));
    w->owner[slot][t] = s->incarnation;
    w->stamped[slot][t] |= (uint8_t)(1u << q);
    s->handle_t = t;
    s->handle_q = q;
    sometimes.ids++;
    return true;
}

static void leave(struct sim_node *s)
{
    struct slot_now now;
    s->gen.grant.closed = true; /* Close comes first; `last` is exact from here on */
    s->gen.any = false;
    s->leaving = true;
    now = now_of(s);
    sometimes.given_back += s->n.grant.gen != 0 && now.last + 1 < s->n.grant.until;
    slot_release(&s->n, &now);
}

/* ---- the world ---- */

static void disturb(int who)
{
    struct sim_node *s = &w->node[who];
    switch (below(9)) {
    case 0:
        s->r_off = (int64_t)below(9) - 4;
        break;
    case 1:
        s->r_off -= (int64_t)below(30);
        break;
    case 2:
        s->r_off += (int64_t)below(30);
        break;
    case 3:
        s->r_off += 4000; /* a year, in this world */
        break;
    case 4:
        s->frozen = !s->frozen;
        break;
    case 5:
        s->paused_until = w->now + below(20);
        break;
    case 6:
        s->r_off = -(int64_t)w->now; /* 1970 */
        break;
    case 7:
        if (s->up && !s->leaving)
            leave(s);
        break;
    case 8:
        if (s->up)
            crash(who);
        break;
    }
}

static void node_event(int who)
{
    struct sim_node *s = &w->node[who];
    if (!s->up) {
        if (w->healed || chance(30))
            boot(who);
        return;
    }
    if (s->paused_until > w->now)
        return;
    if (s->n.state == SLOT_CLOSED) {
        crash(who);
        return;
    }
    switch (below(4)) {
    case 0:
        update_clock(s);
        break;
    case 1:
        publish(s);
        break;
    default:
        if (s->waiting)
            reply(s);
        else
            act(who);
    }
    for (uint64_t i = below(6); i > 0 && emit(s); i--)
        ;
}

static void world_init(uint64_t seed)
{
    memset(w, 0, sizeof *w);
    w->seed = w->rng = seed;
    w->now = 1000;
    w->use_lock = chance(50);
    w->give_back = chance(50);
    w->fault_percent = (unsigned)below(50);
    w->disturb_percent = 1 + (unsigned)below(5);
    w->quarantine = below(7);
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot_record r;
        struct nonce req;
        struct version v;
        draw_nonce(&req);
        slot_fenced_record(&cluster, NULL, 480 + below(30), 0, &req, &r);
        v.len = slot_encode(&r, v.text);
        put(i, &v);
        w->locked_by[i] = -1;
    }
    for (int i = 0; i < NODES; i++)
        w->node[i].r_off = (int64_t)below(5) - 2;
}

static void tick(void)
{
    w->now++;
    for (int i = 0; i < NODES; i++)
        w->node[i].r_off -= w->node[i].frozen;
}

/* No more faults: every node serves again. Time may have to reach the slots first. */
static void heal(void)
{
    w->healed = true;
    w->fault_percent = 0;
    memset(w->late, 0, sizeof w->late);
    if (w->now < w->highest_until + EPOCH_TICKS)
        w->now = w->highest_until + EPOCH_TICKS;
    for (int i = 0; i < NODES; i++) {
        w->node[i].r_off = 0;
        w->node[i].frozen = false;
        w->node[i].paused_until = 0;
    }
    w->quarantine = 0;
    for (int i = 0; i < 600; i++) {
        if (chance(10))
            tick();
        node_event((int)below(NODES));
    }
    for (int i = 0; i < NODES; i++) {
        NEVER(!w->node[i].up);
        if (w->node[i].n.state != SLOT_ACTIVE)
            printf("    node %d is %s, clock %d, behind %lld\n", i,
                   slot_state_name(w->node[i].n.state), w->node[i].clock.state,
                   (long long)w->node[i].clock.behind_ns / TICK_NS);
        NEVER(w->node[i].n.state != SLOT_ACTIVE);
    }
}

static void run(uint64_t seed)
{
    world_init(seed);
    for (int i = 0; i < EVENTS; i++) {
        if (chance(20))
            tick();
        if (chance(5))
            land_late();
        if (chance(w->disturb_percent))
            disturb((int)below(NODES));
        node_event((int)below(NODES));
    }
    heal();
}

T_TEST(slot_world_never_repeats)
{
    w = malloc(sizeof *w);
    T_OK(w);
    uint64_t base = t_random(), worlds = t_scale(4000);
    const char *one = getenv("WORLD_SEED");
    if (one) {
        run(strtoull(one, NULL, 0));
        return;
    }
    memset(&sometimes, 0, sizeof sometimes);
    for (uint64_t i = 0; i < worlds; i++)
        run(base + i);
    free(w);
    printf("    %" PRIu64 " ids, %" PRIu64 " grants, %" PRIu64 " adopted, %" PRIu64
           " fenced, %" PRIu64 " late, %" PRIu64 " crashes\n",
           sometimes.ids, sometimes.granted, sometimes.adopted, sometimes.fenced,
           sometimes.late_landed, sometimes.crashed);
    T_OK(sometimes.adopted > 0);
    T_OK(sometimes.fenced > 0);
    T_OK(sometimes.conflicts > 0);
    T_OK(sometimes.late_landed > 0);
    T_OK(sometimes.stale > 0);
    T_OK(sometimes.no_slot > 0);
    T_OK(sometimes.wait_clock > 0);
    T_OK(sometimes.suspect > 0);
    T_OK(sometimes.held > 0);
    T_OK(sometimes.released > 0);
    T_OK(sometimes.given_back > 0);
    T_OK(sometimes.dry > 0);
    T_OK(sometimes.clock_refused > 0);
}
