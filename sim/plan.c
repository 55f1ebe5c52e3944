/* Makes, writes and reads plans: the faults and the configuration of one run. */
#include "plan.h"
#include "rand.h"

#include <stdlib.h>

enum { SWEEP_S = 8, SWEEP_FAULTS = 5 };

const char *const fault_name[FAULT_KINDS] = {
#define X(name, text) #name,
    FAULTS(X)
#undef X
};

static void set_layout(struct config *c, const char *text)
{
    if (firn_layout_parse(text, strlen(text), 0, &c->layout, NULL) != 0)
        abort();
    firn_layout_format(&c->layout, c->layout_text);
}

/* Eight slots, four numbers per tick, a window of four ticks: a bug soon shows. */
static void tiny(struct config *c, uint64_t *r)
{
    c->slots = 8;
    c->tick_ms = 1000;
    c->window_ms = 4000;
    c->renew_ms = 1000;
    c->max_drift_ms = 3000;
    c->skew_max_ms = 3000;
    c->max_idle_ms = 200000;
    c->quarantine_ms = c->embedded ? 0 : (uint64_t)rand_between(r, 4, 6) * 1000;
    c->emit_ms = (uint32_t)rand_between(r, 100, 700);
    c->burst_max = (uint32_t)rand_between(r, 1, 4);
    c->duration_ns = rand_between(r, 40, 100) * SECOND;
    set_layout(c, c->ends ? "time:10@1s,node:3,seq:2;epoch=1600000000000"
                          : "time:24@1s,node:3,seq:2;epoch=1600000000000");
    /* Not at the epoch, so that a clock that is behind has somewhere to be. */
    c->start_ns = INT64_C(1600000000) * SECOND + (c->ends ? 990 : 4000) * SECOND;
    c->start_ns += rand_between(r, 0, 999) * MS;
}

/* As shipped, but for the number of slots. */
static void normal(struct config *c, uint64_t *r)
{
    static const char *const layout[] = {
        "time:41@1ms,node:10,seq:12;epoch=1609459200000",
        "time:39@10ms,node:16,seq:8;epoch=1609459200000", /* Sonyflake's tick */
    };
    bool slow = rand_chance(r, 30);
    c->slots = 16;
    c->tick_ms = slow ? 10 : 1;
    c->window_ms = c->embedded ? 3000 : 60000;
    c->renew_ms = c->embedded ? 1000 : 20000;
    c->max_drift_ms = 5000;
    c->skew_max_ms = 10000;
    c->max_idle_ms = 30ull * 86400 * 1000;
    c->quarantine_ms = c->embedded ? 0 : 60000;
    c->emit_ms = (uint32_t)rand_between(r, 200, 2000);
    c->burst_max = (uint32_t)rand_between(r, 1, 10);
    c->duration_ns = (c->embedded ? rand_between(r, 40, 100) : rand_between(r, 200, 500)) * SECOND;
    c->ends = false;
    set_layout(c, layout[slow]);
    c->start_ns = INT64_C(1700000000) * SECOND + rand_between(r, 0, 999999) * 1000;
}

static void configure(struct config *c, uint64_t seed)
{
    uint64_t r = rand_split(seed, 1), of_firnd = rand_split(seed, 4);
    *c = (struct config){ .seed = seed };
    c->tickets = rand_chance(&r, 12);
    c->embedded = rand_chance(&r, 30);
    c->lossy = rand_chance(&r, 35);
    c->clones = rand_chance(&r, 20) && !c->embedded;
    c->wild_clocks = rand_chance(&r, 50);
    c->same_names = rand_chance(&r, 30);
    c->store_time = !c->embedded && rand_chance(&r, 70);
    c->ends = rand_chance(&r, 4);
    c->lanes = rand_chance(&r, 40) ? 2 : 1;
    c->firnd = rand_chance(&r, 30);
    c->batch = !c->firnd && rand_chance(&r, 30);
    c->firnd |= !c->batch && rand_chance(&of_firnd, 60);
    c->give_back = c->embedded; /* a shared store never gives back */
    c->one_by_one = !c->embedded && rand_chance(&r, 40);
    c->nodes = (uint32_t)rand_between(&r, 2, 6);
    c->op_timeout_ms = c->embedded ? 5000 : 2000;
    if (rand_chance(&r, 80))
        tiny(c, &r);
    else
        normal(c, &r);
    if (c->slots == 8 && rand_chance(&r, 20))
        c->nodes = 10; /* more nodes than slots */
    if (c->firnd || c->batch)
        c->lanes = 1;
    c->as_tsid = c->firnd && c->tick_ms == 1 && rand_chance(&of_firnd, 50);
    c->noted = c->firnd && c->embedded && rand_chance(&of_firnd, 50);
    if (c->as_tsid)
        set_layout(c, "unused:1,time:41@1ms,node:10,seq:12;epoch=1577836800000");
}

/* How likely each kind is in this run: a swarm of different mixtures finds more than one
 * mixture. */
static void weigh(const struct config *c, uint64_t *r, unsigned weight[FAULT_KINDS])
{
    static const unsigned char base[FAULT_KINDS] = {
        [FAULT_lose_request] = 6, [FAULT_lose_reply] = 10, [FAULT_late] = 10,
        [FAULT_repeat] = 6,       [FAULT_refuse] = 4,      [FAULT_slow] = 4,
        [FAULT_stale] = 6,        [FAULT_cut] = 5,         [FAULT_store_down] = 3,
        [FAULT_clock_step] = 6,   [FAULT_clock_1970] = 1,  [FAULT_clock_set] = 2,
        [FAULT_clock_freeze] = 3, [FAULT_clock_drift] = 2, [FAULT_suspend] = 2,
        [FAULT_crash] = 10,       [FAULT_pause] = 6,       [FAULT_leave] = 6,
        [FAULT_fork_child] = 3,   [FAULT_burst] = 6,       [FAULT_wrong_layout] = 1,
        [FAULT_restore] = 5,      [FAULT_failover] = 4,    [FAULT_replace] = 1,
        [FAULT_wipe] = 1,         [FAULT_delete_slot] = 1, [FAULT_delete_meta] = 1,
        [FAULT_clone] = 5,        [FAULT_lock_lost] = 2,   [FAULT_fence] = 1,
    };
    for (int k = 0; k < FAULT_KINDS; k++) /* seeds stay what they were: no draw for other worlds' */
        weight[k] = k >= FAULT_px_lose || rand_chance(r, 35) ? 0 : base[k];
    if (!c->lossy)
        for (int k = FAULT_restore; k <= FAULT_delete_meta; k++)
            weight[k] = 0;
    if (!c->clones)
        weight[FAULT_clone] = 0;
    if (c->embedded) { /* a file of this machine: nothing is under way, nothing is old */
        weight[FAULT_late] = weight[FAULT_repeat] = weight[FAULT_stale] = 0;
        weight[FAULT_failover] = 0;
    } else {
        weight[FAULT_lock_lost] = 0;
    }
    if (!c->wild_clocks)
        weight[FAULT_clock_1970] = 0;
    if (!c->tickets)
        return;
    for (int k = FAULT_suspend; k < FAULT_KINDS; k++)
        if (k != FAULT_crash && k != FAULT_pause && k != FAULT_leave)
            weight[k] = 0;
    weight[FAULT_delete_slot] = weight[FAULT_delete_meta] = 0;
    weight[FAULT_wipe] = c->lossy ? 4 : 0;
    weight[FAULT_tk_crash_call] = 8;
    weight[FAULT_tk_lost_wal] = c->lossy && c->embedded ? 4 : 0;
}

static int64_t draw_arg(const struct config *c, uint64_t *r, enum fault_kind kind)
{
    int64_t window = (int64_t)c->window_ms, skew = (int64_t)c->skew_max_ms;
    switch (kind) {
    case FAULT_late:
    case FAULT_repeat:
        return rand_chance(r, 70) ? rand_between(r, 0, window) : rand_between(r, 0, 10 * window);
    case FAULT_slow:
        return rand_between(r, 100, (int64_t)c->op_timeout_ms - 1);
    case FAULT_stale:
        return rand_between(r, 1, 3 * window);
    case FAULT_cut:
    case FAULT_store_down:
        return rand_between(r, window / 4, 4 * window);
    case FAULT_restore:
    case FAULT_failover:
        return rand_between(r, 1, rand_chance(r, 60) ? 2 * window : 8 * window);
    case FAULT_tk_crash_call:
        return rand_between(r, 0, 40);
    case FAULT_tk_lost_wal:
        return rand_between(r, 1, 8 * window);
    case FAULT_delete_slot:
        return (int64_t)rand_below(r, c->slots);
    case FAULT_clock_step:
        if (!c->wild_clocks)
            return rand_between(r, -skew / 4, skew / 4);
        switch (rand_below(r, 5)) {
        case 0:
            return rand_between(r, -skew, skew);
        case 1:
            return -rand_between(r, 0, 8 * window);
        case 2:
            return rand_between(r, 0, 8 * window);
        case 3: /* far into the future, and nothing speaks for it */
            return (int64_t)c->max_idle_ms + rand_between(r, 10, 20) * 86400000;
        default:
            return -rand_between(r, 1, 3600000);
        }
    case FAULT_clock_freeze:
        return rand_between(r, skew / 8, c->wild_clocks ? 6 * window : skew / 4);
    case FAULT_clock_drift:
        return c->wild_clocks ? rand_between(r, -50, 50) : rand_between(r, -3, 3);
    case FAULT_suspend:
    case FAULT_pause:
        return rand_between(r, 10, 6 * window);
    case FAULT_crash:
    case FAULT_leave:
    case FAULT_wrong_layout:
        return rand_chance(r, 60) ? rand_between(r, 0, 50) : rand_between(r, 0, 3 * window);
    case FAULT_burst:
        return rand_between(r, 4, c->slots == 8 ? 60 : 150);
    default:
        return 0;
    }
}

static int by_time(const void *a, const void *b)
{
    const struct fault *x = a, *y = b;
    if (x->at_ms != y->at_ms)
        return x->at_ms < y->at_ms ? -1 : 1;
    return 0;
}

/* Few nodes for a few seconds: each of their calls gets two runs. */
static void shorten(struct config *c)
{
    c->sweep = true;
    c->tickets = c->seed & 1;
    c->nodes = c->nodes < 3 ? c->nodes : 3;
    c->duration_ns = SWEEP_S * SECOND;
}

static void draw_faults(struct plan *p, uint64_t seed, size_t max)
{
    uint64_t r = rand_split(seed, 2);
    unsigned weight[FAULT_KINDS], total = 0;
    weigh(&p->config, &r, weight);
    for (int k = 0; k < FAULT_KINDS; k++)
        total += weight[k];
    p->count = total == 0 ? 0 : (size_t)rand_between(&r, 3, rand_chance(&r, 70) ? 40 : 120);
    if (p->count > max)
        p->count = max;
    uint32_t last_ms = (uint32_t)(p->config.duration_ns / MS);
    unsigned lost = 0;
    for (size_t i = 0; i < p->count; i++) {
        unsigned pick = (unsigned)rand_below(&r, total), k = 0;
        while (pick >= weight[k])
            pick -= weight[k++];
        /* A store that is lost again and again is never long enough well to show anything. */
        if (k >= FAULT_restore && k <= FAULT_delete_meta && ++lost > 3)
            k = FAULT_crash;
        struct fault *f =
            &p->fault[i]; /* one draw a line: compilers order initialisers as they like */
        f->at_ms = (uint32_t)rand_between(&r, 500, last_ms);
        f->kind = (uint16_t)k;
        f->node = (uint16_t)rand_below(&r, p->config.nodes);
        f->arg = draw_arg(&p->config, &r, (enum fault_kind)k);
    }
    qsort(p->fault, p->count, sizeof p->fault[0], by_time);
}

void plan_of_seed(struct plan *p, uint64_t seed)
{
    configure(&p->config, seed);
    draw_faults(p, seed, FAULTS_MAX);
}

void plan_of_sweep(struct plan *p, uint64_t seed)
{
    configure(&p->config, seed);
    shorten(&p->config);
    draw_faults(p, seed, SWEEP_FAULTS);
}

/* ---- worlds of a quorum: emit_ms is the longest way of a message, op_timeout_ms the time of a
 * call ---- */

static void configure_quorum(struct config *c, uint64_t seed)
{
    uint64_t r = rand_split(seed, 10);
    *c = (struct config){ .seed = seed, .quorum = true };
    c->slots = rand_chance(&r, 70) ? 3 : 5;
    c->nodes = 5;
    c->emit_ms = (uint32_t)(rand_chance(&r, 50) ? 3 : rand_between(&r, 5, 40));
    c->op_timeout_ms = (uint64_t)rand_between(&r, 100, 1500);
    c->duration_ns = rand_between(&r, 300, 3000) * MS;
}

static int64_t draw_quorum_arg(uint64_t *r, enum fault_kind kind)
{
    switch (kind) {
    case FAULT_px_lose:
    case FAULT_px_lose_answer:
        return rand_between(r, 1, 4);
    case FAULT_px_late:
    case FAULT_px_repeat:
        return rand_chance(r, 70) ? rand_between(r, 1, 60) : rand_between(r, 1, 1500);
    case FAULT_px_down:
        return rand_between(r, 5, rand_chance(r, 80) ? 200 : 1000);
    default:
        return 0;
    }
}

void plan_of_quorum(struct plan *p, uint64_t seed)
{
    static const unsigned char base[FAULT_KINDS] = {
        [FAULT_px_lose] = 10,  [FAULT_px_lose_answer] = 10, [FAULT_px_late] = 10,
        [FAULT_px_repeat] = 8, [FAULT_px_down] = 5,         [FAULT_px_wipe] = 4,
        [FAULT_px_admit] = 8,  [FAULT_px_crash] = 5,
    };
    uint64_t r = rand_split(seed, 11);
    unsigned weight[FAULT_KINDS], total = 0;
    configure_quorum(&p->config, seed);
    for (int k = 0; k < FAULT_KINDS; k++)
        total += weight[k] = base[k] && !rand_chance(&r, 30) ? base[k] : 0;
    p->count = total == 0 ? 0 : (size_t)rand_between(&r, 3, rand_chance(&r, 60) ? 40 : 200);
    for (size_t i = 0; i < p->count; i++) {
        unsigned pick = (unsigned)rand_below(&r, total), k = 0;
        while (pick >= weight[k])
            pick -= weight[k++];
        struct fault *f = &p->fault[i];
        f->at_ms = (uint32_t)rand_between(&r, 1, p->config.duration_ns / MS);
        f->kind = (uint16_t)k;
        f->node = (uint16_t)rand_below(&r, p->config.nodes);
        f->arg = draw_quorum_arg(&r, (enum fault_kind)k);
    }
    qsort(p->fault, p->count, sizeof p->fault[0], by_time);
}

void plan_write(const struct plan *p, const char *mutant, FILE *out)
{
    const struct config *c = &p->config;
    fprintf(out, "%s %llu",
            c->member    ? "member"
            : c->cluster ? "cluster"
            : c->quorum  ? "quorum"
            : c->sweep   ? "sweep"
                         : "seed",
            (unsigned long long)c->seed);
    if (c->sweep)
        fprintf(out, " %llu %d", (unsigned long long)c->die_call, c->die_after);
    fputc('\n', out);
    if (mutant[0])
        fprintf(out, "mutant %s\n", mutant);
    for (size_t i = 0; i < p->count; i++)
        fprintf(out, "%u %s %u %lld\n", p->fault[i].at_ms, fault_name[p->fault[i].kind],
                p->fault[i].node, (long long)p->fault[i].arg);
}

bool plan_read(struct plan *p, char mutant[32], FILE *in)
{
    char line[256], word[32];
    unsigned long long seed, call;
    unsigned at, node;
    long long arg;
    int number = 0, after;
    bool any = false;
    mutant[0] = '\0';
    p->count = 0;
    while (fgets(line, sizeof line, in)) {
        number++;
        if (line[0] == '#' || line[0] == '\n')
            continue;
        bool quorum = sscanf(line, "quorum %llu", &seed) == 1;
        bool sweep = sscanf(line, "sweep %llu %llu %d", &seed, &call, &after) == 3;
        bool cluster = sscanf(line, "cluster %llu", &seed) == 1;
        bool member = sscanf(line, "member %llu", &seed) == 1;
        if (quorum || sweep || cluster || member || sscanf(line, "seed %llu", &seed) == 1) {
            if (quorum)
                configure_quorum(&p->config, seed);
            else if (cluster || member)
                plan_configure_cluster(&p->config, seed, member);
            else
                configure(&p->config, seed);
            if (sweep) {
                shorten(&p->config);
                p->config.die_call = call;
                p->config.die_after = after != 0;
            }
            any = true;
            continue;
        }
        if (sscanf(line, "mutant %31s", mutant) == 1)
            continue;
        int k = 0;
        if (sscanf(line, "%u %31s %u %lld", &at, word, &node, &arg) == 4)
            while (k < FAULT_KINDS && strcmp(fault_name[k], word) != 0)
                k++;
        else
            k = FAULT_KINDS;
        if (k == FAULT_KINDS || p->count == FAULTS_MAX || !any || node >= p->config.nodes) {
            fprintf(stderr, "line %d of the replay file is none: %s", number, line);
            return false;
        }
        p->fault[p->count++] = (struct fault){ at, (uint16_t)k, (uint16_t)node, arg };
    }
    return any;
}
