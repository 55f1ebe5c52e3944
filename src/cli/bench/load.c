/*
 * A load run: starts and watches the threads (load_worker.c), reads the server's CPU time, and adds
 * up the results.
 */
#include "cli/bench/load_worker.h"
#include "cli/verify/sortfile.h"
#include "platform/mono.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SORT_MEMORY_BYTES = 256 << 20 };

/* user + system time of the process and its size, from /proc/PID/stat. */
static bool server_usage(uint32_t pid, uint64_t *out_cpu_ns, uint64_t *out_rss_bytes)
{
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    size_t n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    text[n] = '\0';
    const char *p = strrchr(text, ')'); /* the name before it may contain any character */
    unsigned long long user, system;
    long long rss;
    if (!p || sscanf(p + 1,
                     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d "
                     "%*d %*d %*u %*u %lld",
                     &user, &system, &rss) != 3)
        return false;
    *out_cpu_ns = (uint64_t)((double)(user + system) * 1e9 / (double)sysconf(_SC_CLK_TCK));
    *out_rss_bytes = (uint64_t)rss * (uint64_t)sysconf(_SC_PAGESIZE);
    return true;
}

struct watch {
    const struct load_plan *plan;
    struct worker *w;
    uint32_t threads;
    uint64_t measure_ns, last_ns, next_ns, last_requests;
};

static void watch_show(struct watch *t, uint64_t now)
{
    struct load_live l = { .elapsed_ns = now > t->measure_ns ? now - t->measure_ns : 0 };
    for (uint32_t i = 0; i < t->threads; i++) {
        struct glimpse *g = &t->w[i].glimpse;
        uint64_t p50 = atomic_load_explicit(&g->p50_ns, memory_order_relaxed);
        uint64_t p99 = atomic_load_explicit(&g->p99_ns, memory_order_relaxed);
        l.requests += atomic_load_explicit(&g->requests, memory_order_relaxed);
        l.errors += atomic_load_explicit(&g->errors, memory_order_relaxed);
        l.lost += atomic_load_explicit(&g->lost, memory_order_relaxed);
        l.retried += atomic_load_explicit(&g->retried, memory_order_relaxed);
        l.sent += atomic_load_explicit(&g->sent, memory_order_relaxed);
        l.unsent += atomic_load_explicit(&g->unsent, memory_order_relaxed);
        l.p50_ns = p50 > l.p50_ns ? p50 : l.p50_ns; /* the worst of the threads */
        l.p99_ns = p99 > l.p99_ns ? p99 : l.p99_ns;
    }
    if (l.requests >= t->last_requests && now > t->last_ns)
        l.per_second = (uint64_t)((double)(l.requests - t->last_requests) * 1e9 /
                                  (double)(now - t->last_ns));
    t->last_requests = l.requests;
    t->last_ns = now;
    t->next_ns = now + LIVE_NS;
    t->plan->live(&l, t->plan->live_user);
}

/* Wait and show progress; returns early if all workers have finished or the run is stopped. */
static void watch_until(struct watch *t, uint64_t at_ns)
{
    for (uint64_t now = mono_ns(); now < at_ns; now = mono_ns()) {
        bool over = true;
        for (uint32_t i = 0; i < t->threads; i++)
            over = over && atomic_load(&t->w[i].glimpse.over);
        if (over || (t->plan->stop && *t->plan->stop))
            return;
        if (t->plan->live && now >= t->next_ns)
            watch_show(t, now);
        uint64_t wait = at_ns - now < SECOND_NS / 10 ? at_ns - now : SECOND_NS / 10;
        nanosleep(&(struct timespec){ .tv_nsec = (long)wait }, NULL);
    }
}

int load_check(const uint64_t *const *ids, const uint64_t *n, uint32_t lists,
               struct load_result *out)
{
    struct sortfile s;
    struct sort_item item;
    struct firn_diag d = { 0 };
    uint64_t before = 0;
    int r = 0;
    sortfile_init(&s, SORT_NUMBERS, SORT_MEMORY_BYTES);
    for (uint32_t t = 0; t < lists; t++)
        for (uint64_t i = 0; i < n[t] && r == 0; i++)
            r = sortfile_add_number(&s, ids[t][i], out->ids++, &d);
    if (r == 0)
        r = sortfile_finish(&s, &d);
    while (r >= 0 && (r = sortfile_next(&s, &item, &d)) == 1) {
        if (out->distinct > 0 && item.value == before)
            out->repeated = before;
        else
            out->distinct++;
        before = item.value;
    }
    sortfile_done(&s);
    if (r < 0)
        snprintf(out->why, sizeof out->why, "cannot sort the IDs: %s", d.text);
    return r;
}

static int check_ids(const struct worker *w, uint32_t threads, struct load_result *out)
{
    const uint64_t *ids[LOAD_THREADS_MAX];
    uint64_t n[LOAD_THREADS_MAX];
    for (uint32_t t = 0; t < threads; t++) {
        ids[t] = w[t].ids;
        n[t] = w[t].ids_n;
    }
    return load_check(ids, n, threads, out);
}

static void add_up(struct load_result *out, const struct worker *w)
{
    const struct load_result *r = &w->r;
    out->requests += r->requests;
    out->errors += r->errors;
    out->lost += r->lost;
    out->retried += r->retried;
    out->sent += r->sent;
    out->unsent += r->unsent;
    out->unanswered += r->unanswered;
    out->reconnects += r->reconnects;
    out->bytes_in += r->bytes_in;
    out->bytes_out += r->bytes_out;
    out->falls += r->falls;
    out->unreadable += r->unreadable;
    out->hashed += r->hashed;
    out->unchecked += r->unchecked;
    for (uint32_t t = 0; t < w->plan->targets; t++) {
        out->share[t].requests += r->share[t].requests;
        out->share[t].errors += r->share[t].errors;
        out->share[t].lost += r->share[t].lost;
    }
    if (r->sample_len > 0) {
        out->sample_len = r->sample_len;
        memcpy(out->sample, r->sample, r->sample_len);
    }
    histogram_merge(&out->latency, &r->latency);
    if (w->stopped_ns - w->measure_ns > out->elapsed_ns)
        out->elapsed_ns = w->stopped_ns - w->measure_ns;
}

static int open_idle(const struct load_plan *plan, int *fd)
{
    for (uint32_t i = 0; i < plan->idle; i++)
        if ((fd[i] = load_dial(&plan->target[i % plan->targets])) < 0)
            return FIRN_EIO;
    return 0;
}

/* Start the threads, watch the server's CPU time meanwhile, wait for them. */
static void run_workers(const struct load_plan *plan, struct worker *w, struct load_result *out)
{
    uint64_t start = mono_ns() + SECOND_NS / 100, cpu0 = 0, cpu1 = 0, rss;
    uint32_t started = 0;
    for (; started < plan->threads; started++) {
        struct worker *x = &w[started];
        x->phase = plan->warmup_ns ? WARMING : MEASURING;
        x->start_ns = start;
        x->measure_ns = start + plan->warmup_ns;
        x->end_ns = x->measure_ns + plan->run_ns;
        if (pthread_create(&x->thread, NULL, load_worker_run, x) != 0) {
            snprintf(out->why, sizeof out->why, "only %" PRIu32 " threads could be started",
                     started);
            break;
        }
    }
    struct watch t = { .plan = plan, .w = w, .threads = started };
    t.measure_ns = t.last_ns = start + plan->warmup_ns;
    /* a moment after the workers have published theirs */
    t.next_ns = start + LIVE_NS + SECOND_NS / 20;
    if (plan->pid || plan->live) {
        watch_until(&t, start + plan->warmup_ns);
        out->has_cpu = plan->pid && server_usage(plan->pid, &cpu0, &rss);
        if (!plan->requests_max || plan->live)
            watch_until(&t, start + plan->warmup_ns + plan->run_ns);
    }
    if (plan->pid && !plan->requests_max)
        out->has_cpu = out->has_cpu && server_usage(plan->pid, &cpu1, &out->rss_bytes);
    for (uint32_t i = 0; i < started; i++)
        pthread_join(w[i].thread, NULL);
    if (plan->pid && plan->requests_max)
        out->has_cpu = out->has_cpu && server_usage(plan->pid, &cpu1, &out->rss_bytes);
    out->cpu_ns = cpu1 - cpu0;
    for (uint32_t i = 0; i < started; i++)
        add_up(out, &w[i]);
}

int load_run(const struct load_plan *plan, struct load_result *out)
{
    memset(out, 0, sizeof *out);
    struct worker *w = calloc(plan->threads, sizeof *w);
    int *idle = calloc(plan->idle + 1, sizeof *idle), r = 0;
    uint32_t ready = 0;
    if (!w || !idle) {
        r = FIRN_ENOMEM;
        goto done;
    }
    for (uint32_t i = 0; i < plan->idle; i++)
        idle[i] = -1;
    for (; ready < plan->threads && r == 0; ready++)
        r = load_worker_init(&w[ready], plan, ready);
    if (r == 0)
        r = open_idle(plan, idle);
    if (r != 0) {
        snprintf(out->why, sizeof out->why, "%s", strerror(r == FIRN_EIO ? errno : ENOMEM));
        out->failed_target = ready > 0 ? w[ready - 1].r.failed_target : 0;
        goto done;
    }
    run_workers(plan, w, out);
    if (out->why[0])
        r = FIRN_ENOMEM;
    else if (plan->check)
        r = check_ids(w, plan->threads, out);
done:
    for (uint32_t i = 0; i < ready; i++)
        load_worker_done(&w[i]);
    for (uint32_t i = 0; i < plan->idle && idle; i++)
        if (idle[i] >= 0)
            close(idle[i]);
    free(idle);
    free(w);
    return r < 0 ? r : 0;
}
