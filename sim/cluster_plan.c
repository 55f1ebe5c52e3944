/*
 * The plan of a cluster's world. One seed in five is of a sweep: worlds with the same few faults,
 * in which a member's machine loses its power at one step of its I/O after the other.
 */
#include "cluster_in.h"

enum { SWEEP = 5, SWEEP_STEPS = 256 };

static bool swept(uint64_t seed)
{
    return seed % SWEEP == 0;
}

static uint64_t base_of(uint64_t seed)
{
    return swept(seed) ? UINT64_C(1) << 60 | seed / SWEEP / SWEEP_STEPS : seed;
}

/* See member_lost.c. */
static void configure_lost(struct cluster_config *c, uint64_t seed)
{
    uint64_t r = rand_split(seed, 24);
    uint64_t which = rand_below(&r, 100);
    if (c->sweep)
        return;
    c->meets = which < 15;
    c->disaster = which >= 15 && which < 30;
    c->corrupts = which >= 30 && which < 42;
    c->repeats = which >= 42 && which < 52;
    c->full_end = rand_chance(&r, 25) && !c->disaster && !c->corrupts;
    if (c->meets)
        c->others = c->members == 3 && rand_chance(&r, 60) ? 3 : 1;
    if (c->repeats) { /* the log has the removal, behind a snapshot */
        c->snapshot_every = 10;
        c->snapshot_keep = 60;
    }
    if (c->corrupts) /* a snapshot of the wrong leader would make its registers another's */
        c->snapshot_every = INDEX_MAX;
}

void cluster_configure(struct cluster_config *c, const struct config *of)
{
    uint64_t seed = of->seed;
    uint64_t r = rand_split(base_of(seed), 20), other = rand_split(base_of(seed), 23);
    *c = (struct cluster_config){ .seed = base_of(seed), .sweep = swept(seed) };
    c->members = rand_chance(&r, 65) ? 3 : 5;
    c->alone = rand_chance(&r, 20);
    c->latency_us = rand_chance(&r, 60) ? 2000 : rand_between(&r, 3000, 25000);
    c->election_ms = rand_between(&r, 60, 200);
    c->sync_us = rand_chance(&r, 70) ? 2000 : rand_between(&r, 3000, 40000);
    c->call_us = rand_between(&r, 500, 3000) * 1000;
    c->think_us = rand_chance(&r, 70) ? 40000 : 5000;
    c->loss_pm = rand_chance(&r, 50) ? 0 : (unsigned)rand_between(&r, 5, 150);
    c->repeat_pm = rand_chance(&r, 50) ? 0 : (unsigned)rand_between(&r, 5, 100);
    c->late_pm = rand_chance(&r, 50) ? 0 : (unsigned)rand_between(&r, 5, 80);
    c->snapshot_every = rand_chance(&r, 60) ? 5 : (uint64_t)rand_between(&r, 10, 60);
    c->snapshot_keep = rand_chance(&r, 60) ? 2 : (uint64_t)rand_between(&r, 0, 20);
    c->files = rand_chance(&other, 25);
    c->end_us = (c->sweep ? 1500 : rand_between(&r, 1500, 5000)) * 1000;
    c->whole = of->member;
    if (c->whole) { /* they ask to join one after the other first */
        c->lazy = rand_chance(&other, 50);
        c->firnds = rand_chance(&other, 50);
        c->end_us += 2500000;
        configure_lost(c, base_of(seed));
    }
}

static int64_t draw_arg(const struct cluster_config *c, uint64_t *r, enum fault_kind kind)
{
    int64_t e = c->election_ms;
    switch (kind) {
    case FAULT_rc_lose:
        return rand_between(r, 1, 12);
    case FAULT_rc_late:
    case FAULT_rc_repeat:
        return rand_chance(r, 60) ? rand_between(r, 1, e) : rand_between(r, 1, 12 * e);
    case FAULT_rc_cut:
    case FAULT_rc_cut_in:
    case FAULT_rc_cut_out:
    case FAULT_rc_pause:
        return rand_between(r, e / 4, rand_chance(r, 70) ? 4 * e : 15 * e);
    case FAULT_rc_split:
        return rand_between(r, e, 12 * e) << 8 | rand_between(r, 1, (1 << MACHINES) - 2);
    case FAULT_rc_clock:
        return rand_between(r, 300, 2500);
    case FAULT_rc_kill:
    case FAULT_rc_power:
    case FAULT_rc_all_power:
        return rand_chance(r, 50) ? rand_between(r, 1, e / 2) : rand_between(r, e, 10 * e);
    case FAULT_rc_die_io:
        return rand_between(r, 1, rand_chance(r, 60) ? 20 : 200);
    case FAULT_rc_full:
        return rand_between(r, 20, 10 * e);
    case FAULT_rc_slow:
        return rand_between(r, 50, 500);
    case FAULT_rc_add:
    case FAULT_rc_promote:
    case FAULT_rc_demote:
    case FAULT_rc_remove:
    case FAULT_rc_remove_lead:
    case FAULT_rc_transfer:
        return rand_between(r, 0, 3);
    default:
        return 0;
    }
}

static int by_time(const void *x, const void *y)
{
    const struct fault *a = x, *b = y;
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms ? -1 : 1;
    return a->kind != b->kind ? (int)a->kind - (int)b->kind : (int)a->node - (int)b->node;
}

/* From a stream of their own. */
static void plan_lost(struct plan *p, const struct cluster_config *c)
{
    uint64_t r = rand_split(c->seed, 25);
    int64_t n = c->meets      ? rand_between(&r, 2, 6)
                : c->corrupts ? rand_between(&r, 2, 8)
                : c->disaster ? 1
                : c->repeats  ? 2
                              : 0;
    for (; n > 0; n--) {
        struct fault *f = &p->fault[p->count++];
        *f = (struct fault){ .at_ms = (uint32_t)rand_between(&r, 1000, c->end_us / 1000),
                             .kind = c->meets      ? FAULT_rc_mistake
                                     : c->corrupts ? FAULT_rc_corrupt
                                     : c->repeats  ? FAULT_rc_remove
                                                   : FAULT_rc_disaster,
                             .node = (uint16_t)rand_below(&r, MACHINES),
                             .arg = rand_between(&r, 0, 3) };
        if (c->repeats)
            p->fault[p->count++] = (struct fault){ .at_ms = f->at_ms +
                                                            (uint32_t)rand_between(&r, 100, 800),
                                                   .kind = FAULT_rc_all_power,
                                                   .arg = rand_between(&r, 1, 300) };
        if (c->corrupts && rand_chance(&r, 50)) /* and the member may lead */
            p->fault[p->count++] = (struct fault){ .at_ms = f->at_ms + 1,
                                                   .kind = FAULT_rc_remove_lead,
                                                   .node = f->node };
    }
}

void plan_configure_cluster(struct config *c, uint64_t seed, bool member)
{
    *c = (struct config){ .seed = seed, .cluster = true, .member = member, .nodes = MACHINES };
}

void plan_of_cluster(struct plan *p, uint64_t seed, bool member)
{
    static const unsigned char base[FAULT_KINDS] = {
        [FAULT_rc_lose] = 6,    [FAULT_rc_late] = 8,        [FAULT_rc_repeat] = 5,
        [FAULT_rc_cut] = 8,     [FAULT_rc_cut_in] = 4,      [FAULT_rc_cut_out] = 4,
        [FAULT_rc_split] = 8,   [FAULT_rc_pause] = 6,       [FAULT_rc_clock] = 5,
        [FAULT_rc_kill] = 6,    [FAULT_rc_power] = 8,       [FAULT_rc_all_power] = 2,
        [FAULT_rc_die_io] = 10, [FAULT_rc_full] = 4,        [FAULT_rc_slow] = 4,
        [FAULT_rc_add] = 7,     [FAULT_rc_promote] = 6,     [FAULT_rc_demote] = 3,
        [FAULT_rc_remove] = 5,  [FAULT_rc_remove_lead] = 4, [FAULT_rc_transfer] = 6,
        [FAULT_rc_wipe] = 3,
    };
    struct cluster_config c;
    plan_configure_cluster(&p->config, seed, member);
    cluster_configure(&c, &p->config);
    uint64_t r = rand_split(c.seed, 21);
    unsigned weight[FAULT_KINDS], total = 0;
    for (int i = 0; i < FAULT_KINDS; i++)
        total += weight[i] = base[i] && !rand_chance(&r, 35) ? base[i] : 0;
    p->count = total == 0 ? 0
                          : (size_t)rand_between(&r, 3,
                                                 c.sweep               ? 10
                                                 : rand_chance(&r, 60) ? 30
                                                                       : 90);
    for (size_t i = 0; i < p->count; i++) {
        unsigned pick = (unsigned)rand_below(&r, total), kind = 0;
        while (pick >= weight[kind])
            pick -= weight[kind++];
        struct fault *f = &p->fault[i];
        f->at_ms = (uint32_t)rand_between(&r, 1, c.end_us / 1000);
        f->kind = (uint16_t)kind;
        f->node = (uint16_t)rand_below(&r, rand_chance(&r, 80) ? c.members : MACHINES);
        f->arg = draw_arg(&c, &r, (enum fault_kind)kind);
    }
    if (c.sweep) {
        uint64_t step = seed / SWEEP % SWEEP_STEPS;
        p->fault[p->count++] = (struct fault){ .at_ms = 1 + (uint32_t)(step % 2) * 600,
                                               .kind = FAULT_rc_die_io,
                                               .node = (uint16_t)rand_below(&r, c.members),
                                               .arg = 1 + (int64_t)step / 2 };
    }
    plan_lost(p, &c);
    qsort(p->fault, p->count, sizeof p->fault[0], by_time);
}
