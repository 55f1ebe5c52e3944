/* The load generator for libraries: threads, pacing, results. */
#include "cli/bench/calls.h"
#include "platform/mono.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
enum { BLOCK = 64, PROBES = 256, QUICK_NS = 1000, SHOW_NS = 500000000, LOOK_NS = 20000000 };

struct caller {
    pthread_t thread;
    const struct load_plan *plan;
    calls_fn *next;
    void *user;
    uint32_t number;
    uint64_t start_ns, measure_ns, end_ns, budget;
    uint64_t *ids, ids_n, ids_room, last;
    bool has_last;
    struct histogram recent;
    uint64_t show_ns;
    _Atomic uint64_t shown_requests, shown_errors, shown_p50, shown_p99;
    _Atomic bool over;
    struct load_result r;
};

static void sleep_until(uint64_t at_ns)
{
    struct timespec t = { .tv_sec = (time_t)(at_ns / NS_PER_S),
                          .tv_nsec = (long)(at_ns % NS_PER_S) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static inline void call(struct caller *c)
{
    uint64_t id;
    char why[240] = "";
    if (c->next(c->user, &id, why) != 0) {
        c->r.errors++;
        if (c->r.sample_len == 0) {
            c->r.sample_len = strnlen(why, sizeof c->r.sample);
            memcpy(c->r.sample, why, c->r.sample_len);
        }
        return;
    }
    c->r.requests++;
    if (!c->plan->check)
        return;
    c->r.falls += c->has_last && id <= c->last;
    c->last = id;
    c->has_last = true;
    if (c->ids_n < c->ids_room)
        c->ids[c->ids_n++] = id;
    else
        c->r.unchecked++;
}

static void note(struct caller *c, uint64_t took_ns, uint64_t times, uint64_t now)
{
    histogram_add(&c->r.latency, took_ns, times);
    if (!c->plan->live)
        return;
    histogram_add(&c->recent, took_ns, times);
    if (now < c->show_ns)
        return;
    atomic_store_explicit(&c->shown_requests, c->r.requests, memory_order_relaxed);
    atomic_store_explicit(&c->shown_errors, c->r.errors, memory_order_relaxed);
    atomic_store_explicit(&c->shown_p50, histogram_at(&c->recent, 500000), memory_order_relaxed);
    atomic_store_explicit(&c->shown_p99, histogram_at(&c->recent, 990000), memory_order_relaxed);
    histogram_reset(&c->recent);
    c->show_ns = now + SHOW_NS;
}

/* The warm-up is over: reset the counters. */
static void begin(struct caller *c)
{
    c->r.requests = c->r.errors = 0;
    histogram_reset(&c->r.latency);
}

static bool stopped(const struct caller *c)
{
    return c->plan->stop && *c->plan->stop;
}

static void closed_loop(struct caller *c)
{
    uint64_t now = mono_ns(), probes = 0, spent = 0, block = 1;
    bool warm = c->measure_ns <= now;
    while (now < c->end_ns && c->budget > 0 && !stopped(c)) {
        uint64_t n = block < c->budget ? block : c->budget, then = now;
        for (uint64_t i = 0; i < n; i++)
            call(c);
        now = mono_ns();
        c->budget -= n;
        note(c, (now - then) / n, n, now);
        if (!warm && now >= c->measure_ns) {
            begin(c);
            warm = true;
        }
        spent += now - then;
        if (block == 1 && ++probes == PROBES) {
            block = spent / PROBES < QUICK_NS ? BLOCK : 1;
            probes = spent = 0;
        }
    }
    c->r.elapsed_ns = now > c->measure_ns ? now - c->measure_ns : now - c->start_ns;
}

static void open_loop(struct caller *c)
{
    const struct load_plan *p = c->plan;
    double interval = 1e9 * p->threads / (double)p->rate;
    uint64_t now = mono_ns(), due = 0;
    bool warm = c->measure_ns <= c->start_ns;
    for (uint64_t i = 0; c->budget > 0 && !stopped(c); i++, c->budget--) {
        due = c->start_ns + (uint64_t)(((double)i + (double)c->number / p->threads) * interval);
        if (due >= c->end_ns)
            break;
        if (due > now)
            sleep_until(due);
        if (!warm && due >= c->measure_ns) {
            begin(c);
            warm = true;
        }
        call(c);
        now = mono_ns();
        note(c, now > due ? now - due : 0, 1, now);
    }
    now = mono_ns();
    c->r.elapsed_ns = now > c->measure_ns ? now - c->measure_ns : now - c->start_ns;
}

static void *run(void *user)
{
    struct caller *c = user;
    sleep_until(c->start_ns);
    if (c->plan->rate)
        open_loop(c);
    else
        closed_loop(c);
    atomic_store(&c->over, true);
    return NULL;
}

static void watch(const struct load_plan *p, struct caller *c, uint32_t n)
{
    uint64_t measure = c[0].measure_ns, next = c[0].start_ns + SHOW_NS, last_ns = measure, last = 0;
    for (bool over = false; !over && p->live;) {
        struct load_live l = { 0 };
        uint64_t now = mono_ns();
        over = true;
        for (uint32_t i = 0; i < n; i++) {
            uint64_t p50 = atomic_load(&c[i].shown_p50), p99 = atomic_load(&c[i].shown_p99);
            over = over && atomic_load(&c[i].over);
            l.requests += atomic_load(&c[i].shown_requests);
            l.errors += atomic_load(&c[i].shown_errors);
            l.p50_ns = p50 > l.p50_ns ? p50 : l.p50_ns;
            l.p99_ns = p99 > l.p99_ns ? p99 : l.p99_ns;
        }
        if (now >= next && !over) {
            l.elapsed_ns = now > measure ? now - measure : 0;
            if (l.requests >= last && now > last_ns)
                l.per_second = (uint64_t)((double)(l.requests - last) * 1e9 /
                                          (double)(now - last_ns));
            last = l.requests;
            last_ns = now;
            next = now + SHOW_NS;
            p->live(&l, p->live_user);
        }
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
    }
}

static bool caller_init(struct caller *c, const struct load_plan *p, uint32_t number,
                        uint64_t start_ns)
{
    c->plan = p;
    c->number = number;
    c->start_ns = c->show_ns = start_ns;
    c->measure_ns = start_ns + p->warmup_ns;
    c->end_ns = c->measure_ns + p->run_ns;
    c->budget = UINT64_MAX;
    if (p->requests_max)
        c->budget = p->requests_max / p->threads + (number < p->requests_max % p->threads);
    if (!p->check)
        return true;
    c->ids_room = (p->ids_max ? p->ids_max : LOAD_IDS_MAX) / p->threads + 1;
    void *m = mmap(NULL, c->ids_room * sizeof *c->ids, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    c->ids = m == MAP_FAILED ? NULL : m;
    return c->ids != NULL;
}

static void sum_up(struct load_result *out, const struct caller *c)
{
    out->requests += c->r.requests;
    out->errors += c->r.errors;
    out->falls += c->r.falls;
    out->unchecked += c->r.unchecked;
    histogram_merge(&out->latency, &c->r.latency);
    if (c->r.elapsed_ns > out->elapsed_ns)
        out->elapsed_ns = c->r.elapsed_ns;
    if (c->r.sample_len > 0 && out->sample_len == 0) {
        out->sample_len = c->r.sample_len;
        memcpy(out->sample, c->r.sample, c->r.sample_len);
    }
}

int calls_run(const struct load_plan *plan, calls_fn *next, void *user, struct load_result *out)
{
    const uint64_t *ids[LOAD_THREADS_MAX];
    uint64_t n[LOAD_THREADS_MAX], start = mono_ns() + NS_PER_S / 100;
    struct caller *c = calloc(plan->threads, sizeof *c);
    uint32_t started = 0;
    int r = c ? 0 : FIRN_ENOMEM;
    memset(out, 0, sizeof *out);
    for (uint32_t i = 0; i < plan->threads && r == 0; i++)
        if (!caller_init(&c[i], plan, i, start))
            r = FIRN_ENOMEM;
    for (; started < plan->threads && r == 0; started++) {
        c[started].next = next;
        c[started].user = user;
        if (pthread_create(&c[started].thread, NULL, run, &c[started]) != 0)
            break;
    }
    if (r == 0 && started < plan->threads)
        r = FIRN_ENOMEM; /* threads that run end by themselves */
    if (started > 0)
        watch(plan, c, started);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(c[i].thread, NULL);
        sum_up(out, &c[i]);
        ids[i] = c[i].ids;
        n[i] = c[i].ids_n;
    }
    out->share[0] = (struct load_share){ out->requests, out->errors, 0 };
    if (r == 0 && plan->check)
        r = load_check(ids, n, started, out);
    else if (r != 0)
        snprintf(out->why, sizeof out->why, "out of memory");
    for (uint32_t i = 0; i < plan->threads && c; i++)
        if (c[i].ids)
            munmap(c[i].ids, c[i].ids_room * sizeof *c[i].ids);
    free(c);
    return r < 0 ? r : 0;
}
