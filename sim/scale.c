/*
 * One cluster as large as the default layout allows, over hours or days: nodes restart, leave, stop
 * and are partitioned, clocks step, the store fails now and then. Checked and printed: no ID twice,
 * the store's load, and that no slot leaks.
 */
#include "scale.h"
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SLOTS = 1024, STEP_S = 10 };

static void configure(struct config *c, unsigned nodes, double hours)
{
    static const char layout[] = "time:41@1ms,node:10,seq:12;epoch=1609459200000";
    *c = (struct config){
        .seed = 1,
        .store_time = true,
        .slots = SLOTS,
        .nodes = nodes,
        .lanes = 1,
        .tick_ms = 1,
        .window_ms = 60000,
        .renew_ms = 20000,
        .max_drift_ms = 5000,
        .skew_max_ms = 10000,
        .max_idle_ms = 30ull * 86400 * 1000,
        .quarantine_ms = 60000,
        .op_timeout_ms = 2000,
        .burst_max = 3,
        .start_ns = INT64_C(1700000000) * SECOND,
        .duration_ns = (int64_t)(hours * 3600) * SECOND,
    };
    c->emit_ms = hours > 12 ? 60000 : 10000;
    if (firn_layout_parse(layout, strlen(layout), 0, &c->layout, NULL) != 0)
        abort();
    firn_layout_format(&c->layout, c->layout_text);
}

/* In each step of ten seconds: about as often as a large fleet sees it, and somewhat more. */
static void disturb(struct world *w, uint64_t *r)
{
    static const struct {
        enum fault_kind kind;
        unsigned per_mille; /* in a step, somewhere in the cluster */
        int64_t lo, hi;
    } often[] = {
        { FAULT_crash, 300, 0, 5000 },          { FAULT_leave, 200, 0, 2000 },
        { FAULT_pause, 100, 1000, 180000 },     { FAULT_cut, 100, 5000, 120000 },
        { FAULT_lose_reply, 500, 0, 0 },        { FAULT_lose_request, 300, 0, 0 },
        { FAULT_late, 200, 0, 60000 },          { FAULT_repeat, 200, 0, 60000 },
        { FAULT_clock_step, 100, -2000, 2000 }, { FAULT_clock_freeze, 20, 1000, 5000 },
        { FAULT_store_down, 2, 5000, 30000 },   { FAULT_suspend, 20, 1000, 600000 },
    };
    for (size_t i = 0; i < sizeof often / sizeof often[0]; i++) {
        if (rand_below(r, 1000) >= often[i].per_mille)
            continue;
        struct fault f = { .kind = (uint16_t)often[i].kind };
        f.node = (uint16_t)rand_below(r, w->config->nodes);
        f.arg = rand_between(r, often[i].lo, often[i].hi);
        inject(w, &f);
    }
}

static void count_slots(struct world *w, unsigned *held, unsigned *active)
{
    struct slot_record s;
    uint64_t f = firn_layout_ticks(&w->config->layout, w->now / 1000);
    *held = *active = 0;
    for (size_t i = 0; i < w->store.count; i++) {
        const struct text *t = store_now(&w->store.cell[i]);
        if (w->store.cell[i].slot >= 0 && t && slot_parse(t->p, t->len, &s, NULL) == 0)
            *held += s.state == SLOT_HELD && s.until + w->config->quarantine_ms > f;
    }
    for (int i = 0; i < w->procs; i++)
        *active += w->proc[i].up && w->proc[i].state == SLOT_ACTIVE;
}

bool scale_run(unsigned nodes, double hours)
{
    static struct plan plan;
    static struct world w;
    configure(&plan.config, nodes, hours);
    plan.count = 0;
    world_new(&w, &plan.config, (int)nodes + 2);
    w.scale = true;
    uint64_t r = rand_split(plan.config.seed, 9), steps = (uint64_t)(hours * 3600) / STEP_S;
    uint64_t per_line = steps / 12 ? steps / 12 : 1;
    unsigned held, active, most = 0, least_active = nodes;
    world_begin(&w, &plan);
    printf("   hour   active  slots held        IDs  store ops/s\n");
    uint64_t ops = w.store.ops;
    for (uint64_t i = 1; i <= steps && !w.failed; i++) {
        if (i > 6)
            disturb(&w, &r);
        world_until(&w, w.now + STEP_S * SECOND);
        if (i % 30 == 0) {
            count_slots(&w, &held, &active);
            most = held > most ? held : most;
            least_active = active < least_active ? active : least_active;
        }
        if (i % per_line == 0) {
            count_slots(&w, &held, &active);
            printf("%7.2f %8u %11u %10" PRIu64 " %12.1f\n", (double)(i * STEP_S) / 3600, active,
                   held, w.ids, (double)(w.store.ops - ops) / (double)(per_line * STEP_S));
            fflush(stdout);
            ops = w.store.ops;
        }
    }
    if (w.failed)
        printf("FAIL %s: %s\n", w.oracle, w.what);
    printf("%u nodes for %.1f h: %.0f simulated node-hours, %" PRIu64 " IDs, %s\n", nodes, hours,
           nodes * hours, w.ids, w.failed ? "broken" : "0 repeated");
    printf("store operations: %.1f a second on average, %" PRIu64 " at most in one second\n",
           (double)w.store.ops / (hours * 3600), w.store.ops_peak);
    printf("slots held or in quarantine: %u at most of %d; active nodes: %u at least\n", most,
           SLOTS, least_active);
    bool ok = !w.failed && w.ids > 0;
    world_free(&w);
    return ok;
}
