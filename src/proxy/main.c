/*
 * firn-proxy's main(): starts settings, plan, sockets and loops, in this order, and ends them in
 * the reverse one. Then the main thread waits for signals and looks at the configuration file:
 * SIGTERM gives notice and drains, SIGINT drains, SIGHUP or a changed file makes a new plan. Tested
 * in tests/integration/gateway.py.
 */
#include "daemon/log.h"
#include "daemon/signals.h"
#include "daemon/span_export.h"
#include "daemon/systemd.h"
#include "id/diag.h"
#include "id/fnv.h"
#include "id/rng_take.h"
#include "platform/mono.h"
#include "proxy/admin.h"
#include "proxy/cache_link.h"
#include "proxy/text_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    LOOPS_MAX = 64,
    WATCH_MS = 1000,      /* between two looks at the file */
    SETTLED_LOOKS = 1,    /* the file is read when it stayed the same for so many more looks */
    DESCRIPTORS_EACH = 2, /* of a connection: a client's and a server's */
    DESCRIPTORS_OTHER = 256,
    LIMIT_PLACES = 128 * 1024, /* clients that are counted at once; 4 MiB when all are used */
};

enum port { PORT_HTTP, PORT_HTTPS, PORT_ADMIN, PORTS };

struct runner { /* one loop's thread */
    pthread_t thread;
    struct service service;
};

static struct app app;
static struct service_ctx workers[LOOPS_MAX];
static struct runner runners[LOOPS_MAX];
static char addresses[PORTS][PEER_ADDRESS_BUF];
static uint32_t outgoing_max; /* connections to servers that the descriptors are enough for */

static void *run_loop(void *arg)
{
    struct runner *r = arg;
    if (loop_run(r->service.ctx->loop) != 0)
        log_error("loop_failed", "index=%zu", r->service.ctx->index);
    return NULL;
}

static int fail(const char *what, int error, const struct firn_diag *d)
{
    fprintf(stderr, "firn-proxy: %s: %s\n", what, d->text[0] ? d->text : firn_error_message(error));
    return 1;
}

/* --- start --- */

static int load_tls(const struct config *c, struct firn_diag *d)
{
    struct tls_files files = { c->tls.cert, c->tls.key, c->tls.client_ca, "tls." };
    return tls_context_load(app.tls, &files, d);
}

static int make_places(const struct config *c)
{
    uint64_t salt, want = c->limits.connections;
    uint64_t have = descriptors_raise(want * DESCRIPTORS_EACH + DESCRIPTORS_OTHER);
    uint64_t room = have > 2 * DESCRIPTORS_OTHER ? (have - DESCRIPTORS_OTHER) / DESCRIPTORS_EACH
                                                 : have / 4;
    uint64_t max = room < want ? room : want, others = max + DESCRIPTORS_OTHER;
    outgoing_max = have > others ? (uint32_t)(have - others) : 1;
    if (max < want)
        log_warn("connections_lowered",
                 "wanted=%" PRIu64 " now=%" PRIu64 " descriptors=%" PRIu64 " cure=%s", want, max,
                 have,
                 "raise the hard limit on open files (LimitNOFILE= in the systemd unit, ulimit -Hn "
                 "in a shell) or lower limits.connections");
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        return FIRN_EIO;
    places_init(&app.places, (uint32_t)max, (uint32_t)c->limits.connections_per_address, salt);
    return 0;
}

static int start_tracing(const struct config *c, struct firn_diag *d)
{
    struct firn_ulid id;
    if (!c->tracing.endpoint)
        return 0;
    if (firn_ulid_make(app.started_ms, firn_rng_thread(), &id) == 0)
        firn_ulid_format(&id, app.instance);
    snprintf(app.service, sizeof app.service, "%s", c->tracing.service);
    struct span_export_opts o = { .endpoint = c->tracing.endpoint,
                                  .tls_ca = c->tracing.tls_ca,
                                  .queue = (uint32_t)c->tracing.queue,
                                  .timeout_ms = (uint32_t)c->tracing.timeout_ms,
                                  .resource = { app.service, FIRN_VERSION, app.instance, NULL } };
    return span_export_start(&o, &app.spans, d);
}

static int make_limits(void)
{
    struct siphash_key key;
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key)
        return FIRN_EIO;
    return limit_table_new(LIMIT_PLACES, key, &app.limits);
}

static int start_loops(const struct config *c, struct firn_diag *d)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = c->loops ? c->loops : cores > 0 ? (size_t)cores : 1;
    const uint32_t outgoing = outgoing_max / (uint32_t)n;
    struct loop_opts o = { .drain_ms = (uint32_t)c->limits.drain_ms,
                           .outgoing_max = outgoing ? outgoing : 1 };
    struct edge_opts e = { .header_ms = (uint32_t)c->limits.header_ms,
                           .body_ms = (uint32_t)c->limits.body_ms,
                           .idle_ms = (uint32_t)c->limits.idle_ms,
                           .write_ms = (uint32_t)c->limits.write_ms,
                           .requests_max = (uint32_t)c->limits.requests,
                           .proxy_protocol = c->listen.proxy_protocol };
    app.workers = workers;
    for (size_t i = 0; i < n && i < LOOPS_MAX; i++) {
        struct service_ctx *w = &workers[i];
        worker_init(w, &app, i);
        runners[i].service = (struct service){ .ctx = w, .http = admin_http, .vital = admin_vital };
        int r = loop_new(&o, &runners[i].service, &app.places, &w->loop);
        if (r == 0)
            app.workers_n++;
        if (r == 0)
            r = edge_new(w->loop, &e, &worker_calls, w, &w->edge);
        if (r == 0)
            r = worker_prepare(w, app.plan);
        if (r == 0)
            worker_commit(w);
        if (r) {
            snprintf(d->text, sizeof d->text, "cannot start loop %zu: %s", i,
                     firn_error_message(r));
            return r;
        }
    }
    return 0;
}

static int listen_on(size_t loop, enum port port, int fd, bool shared)
{
    struct service_ctx *w = &workers[loop];
    return port == PORT_ADMIN
               ? loop_listen(w->loop, fd, (int)port, shared)
               : edge_listen(w->edge, fd, (int)port, shared, port == PORT_HTTPS ? app.tls : NULL);
}

static int listen_port(enum port port, const struct config_addrs *addrs, struct firn_diag *d)
{
    for (size_t i = 0; i < addrs->n; i++) {
        char address[HOST_PORT_BUF];
        int fds[LOOPS_MAX];
        const struct config_addr *a = &addrs->v[i];
        const bool local = upstream_path(a->host) != NULL;
        if (local)
            snprintf(address, sizeof address, "%s", a->host);
        else
            host_port_write(strcmp(a->host, "*") == 0 ? "" : a->host, a->port, address);
        int r = listen_open(address, fds, app.workers_n, d);
        if (r)
            return r;
        if (i == 0)
            listen_name(fds[0], addresses[port]);
        for (size_t k = 0; k < app.workers_n; k++)
            if ((r = listen_on(k, port, fds[k], local && app.workers_n > 1)))
                return r;
    }
    return 0;
}

/* A socket that systemd opened; each loop has a copy of it. */
static int listen_passed(void *user, size_t loop, size_t port, int fd)
{
    const struct config *c = user;
    if (port == PORT_HTTPS && !c->tls.cert) {
        close(fd);
        return FIRN_EINVAL;
    }
    if (loop == 0 && !addresses[port][0])
        listen_name(fd, addresses[port]);
    return listen_on(loop, (enum port)port, fd, true);
}

static int listen_all(struct config *c, struct firn_diag *d)
{
    static const char *const names[PORTS] = {
        [PORT_HTTP] = "http", [PORT_HTTPS] = "https", [PORT_ADMIN] = "admin"
    };
    const struct config_addrs *addrs[PORTS] = { &c->listen.http, &c->listen.https,
                                                &c->listen.admin };
    bool passed[PORTS] = { false };
    int r = systemd_share(names, PORTS, app.workers_n, listen_passed, c, passed, d);
    if (r && passed[PORT_HTTPS] && !c->tls.cert)
        return firn__diag(d, FIRN_EINVAL, 0, "the socket for https from systemd needs tls.cert");
    for (int p = 0; p < PORTS && r == 0; p++)
        if (!passed[p])
            r = listen_port((enum port)p, addrs[p], d);
    return r;
}

/* Anyone who reaches the admin address may use it. */
static void warn_exposed(const struct config *c)
{
    for (size_t i = 0; !c->admin.token_file && i < c->listen.admin.n; i++) {
        const char *host = c->listen.admin.v[i].host;
        if (!upstream_path(host) && !host_is_loopback(host))
            log_warn("admin_exposed", "listen.admin=%s cure=%s", host,
                     "other machines can drain servers and reload there: set admin.token_file, or "
                     "keep them away with a firewall");
    }
}

/* --- reload --- */

enum step { PREPARE, COMMIT, DROP };

struct change { /* one for each loop */
    struct loop_task task;
    struct service_ctx *worker;
    struct plan *plan;
    enum step step;
    int result;
    pthread_mutex_t *lock;
    pthread_cond_t *cond;
    size_t *left;
};

static void take_step(struct loop_task *t)
{
    struct change *c = (struct change *)t;
    switch (c->step) {
    case PREPARE:
        c->result = worker_prepare(c->worker, c->plan);
        break;
    case COMMIT:
        worker_commit(c->worker);
        break;
    case DROP:
        worker_drop(c->worker);
        break;
    }
    pthread_mutex_lock(c->lock);
    if (--*c->left == 0)
        pthread_cond_signal(c->cond);
    pthread_mutex_unlock(c->lock);
}

/* Every loop takes the step; returns when all have. */
static int everywhere(enum step step, struct plan *p)
{
    static struct change changes[LOOPS_MAX];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
    size_t left = app.workers_n;
    int r = 0;
    for (size_t i = 0; i < app.workers_n; i++) {
        changes[i] = (struct change){ .task = { .fn = take_step },
                                      .worker = &workers[i],
                                      .plan = p,
                                      .step = step,
                                      .lock = &lock,
                                      .cond = &cond,
                                      .left = &left };
        loop_call(workers[i].loop, &changes[i].task);
    }
    pthread_mutex_lock(&lock);
    while (left > 0)
        pthread_cond_wait(&cond, &lock);
    pthread_mutex_unlock(&lock);
    for (size_t i = 0; i < app.workers_n; i++)
        r = r ? r : changes[i].result;
    return r;
}

/* All loops take the plan, or none does. `tls`: its certificates are read anew, which is the last
 * that may fail. */
static int use_everywhere(struct plan *p, bool tls, struct firn_diag *d)
{
    int r = everywhere(PREPARE, p);
    if (r == 0 && tls)
        r = load_tls(&p->config, d);
    (void)everywhere(r == 0 ? COMMIT : DROP, p);
    return r;
}

static void reload_failed(const struct firn_diag *d, int error)
{
    const char *why = d->text[0] ? d->text : firn_error_message(error);
    atomic_fetch_add(&app.reload_errors, 1);
    pthread_mutex_lock(&app.plan_lock);
    snprintf(app.reload_error, sizeof app.reload_error, "%s", why);
    pthread_mutex_unlock(&app.plan_lock);
    log_error("reload_failed", "cause=%s cure=%s", why,
              "repair it; the gateway goes on with the configuration that it has");
}

/* Returns the plan before, which the caller gives back. */
static struct plan *take_over(struct plan *p)
{
    struct plan *old = app.plan;
    pthread_mutex_lock(&app.plan_lock);
    app.plan = p;
    app.reload_error[0] = '\0';
    pthread_mutex_unlock(&app.plan_lock);
    return old;
}

/* Names have other addresses: requests from now on go there, those in hand end where they are. */
static void renew(const struct lookups *found)
{
    struct firn_diag d = { 0, "" };
    struct plan *p = NULL;
    int r = plan_renew(app.plan, found, &p, &d);
    if (r == 0)
        r = use_everywhere(p, false, &d);
    if (r) {
        plan_unref(p);
        log_error("renewal_failed", "cause=%s", d.text[0] ? d.text : firn_error_message(r));
        return;
    }
    log_info("servers_changed", "plan=%" PRIu64, p->number);
    pthread_mutex_lock(&app.plan_lock);
    struct plan *old = app.plan;
    app.plan = p;
    pthread_mutex_unlock(&app.plan_lock);
    plan_unref(old);
}

/* Looks names of servers up again, every resolve_ms and after a reload. */
static void follow_names(uint64_t *next_ms)
{
    static uint64_t plan = 1; /* up to this one names were looked up */
    const uint64_t every = app.plan->config.resolve_ms;
    struct lookups *found = names_take();
    for (size_t i = 0; found && i < found->n; i++) {
        atomic_fetch_add(&app.lookups, 1);
        if (found->v[i].result == 0)
            continue;
        atomic_fetch_add(&app.lookup_errors, 1);
        log_warn("lookup_failed", "cause=%s cure=%s", found->v[i].why.text,
                 "the addresses that it had stay in use");
    }
    if (found && plan_differs(app.plan, found))
        renew(found);
    free(found);
    if (app.plan->number == plan && (every == 0 || mono_ms() < *next_ms))
        return;
    plan = app.plan->number;
    (void)names_begin(app.plan);
    *next_ms = mono_ms() + every;
}

static void reload(void)
{
    struct config next;
    struct config_change change[CONFIG_SETTINGS_MAX];
    struct firn_diag d = { 0, "" };
    struct plan *p = NULL;
    size_t n;
    int r = config_reload(&app.plan->config.base, &next.base, change, &n, &d);
    if (r == 0 && next.routes.n == 0 && app.plan->config.routes.n > 0) {
        config_free(&next.base); /* a file that is being written reads like this */
        r = firn__diag(&d, FIRN_EINVAL, 0,
                       "there is no route in it; to serve nothing, stop the gateway");
    }
    if (r == 0)
        r = plan_new(&next, app.plan, &p, &d);
    if (r == 0)
        r = use_everywhere(p, true, &d);
    if (r) {
        plan_unref(p);
        reload_failed(&d, r);
        return;
    }
    for (size_t i = 0; i < n; i++)
        log_info("setting_changed", "name=%s applied=%s", change[i].name,
                 change[i].applied ? "now" : "after a restart");
    struct plan *old = take_over(p);
    log_setup((enum log_level)p->config.log.level, (enum log_format)p->config.log.format);
    atomic_fetch_add(&app.reloads, 1);
    log_info("reloaded", "plan=%" PRIu64 " changes=%zu", p->number, n);
    plan_unref(old);
}

struct looks { /* at the files whose change is a reload */
    struct file_look config;
    uint64_t others; /* a hash of what they look like */
};

static uint64_t look_at(uint64_t hash, const char *path)
{
    const struct file_look l = file_look_at(path);
    hash = fnv(hash, &l.at, sizeof l.at);
    hash = fnv(hash, &l.size, sizeof l.size);
    return fnv(hash, &l.inode, sizeof l.inode);
}

/* Keys of tokens are not among them: guards_watch() reads them by themselves. */
static struct looks look(void)
{
    const struct config *c = &app.plan->config;
    const char *const named[] = { c->graphql.schema, c->tls.cert,         c->tls.key,
                                  c->tls.client_ca,  c->admin.token_file, c->redis.password_file };
    uint64_t others = FNV_BEGIN;
    for (size_t i = 0; i < sizeof named / sizeof named[0]; i++)
        others = look_at(others, named[i]);
    for (size_t i = 0; i < c->services.n; i++) {
        const struct config_service *s = &c->services.v[i];
        others = look_at(look_at(look_at(others, s->tls_ca), s->tls_cert), s->tls_key);
    }
    return (struct looks){ file_look_at(c->base.file), others };
}

static bool looks_same(const struct looks *a, const struct looks *b)
{
    return file_look_same(&a->config, &b->config) && a->others == b->others;
}

static void do_reload(struct looks *read)
{
    systemd_reloading();
    *read = look(); /* before they are read: a change meanwhile is seen */
    reload();
    systemd_ready("serving");
}

/* --- running --- */

static int wait_for_end(void)
{
    struct looks read = look(), last = read;
    const uint64_t feed_ms = systemd_watchdog_ms();
    uint64_t fed_ms = 0, names_ms = mono_ms() + app.plan->config.resolve_ms;
    systemd_ready("serving");
    for (;;) {
        int sig = signals_wait((uint32_t)(feed_ms && feed_ms < WATCH_MS ? feed_ms : WATCH_MS));
        if (sig == SIGTERM || sig == SIGINT)
            return sig;
        if (sig == SIGHUP) {
            do_reload(&read);
        } else if (app.plan->config.watch) {
            struct looks now = look();
            bool settled = looks_same(&now, &last); /* an editor may be writing it */
            last = now;
            if (settled && now.config.size >= 0 && !looks_same(&now, &read))
                do_reload(&read);
            guards_watch(app.plan->guards);
        }
        follow_names(&names_ms);
        if (feed_ms && mono_ms() - fed_ms >= feed_ms) {
            systemd_watchdog();
            fed_ms = mono_ms();
        }
        log_flush();
    }
}

static void give_notice(uint64_t ms)
{
    log_info("leaving", "notice_ms=%" PRIu64, ms);
    log_flush();
    for (size_t i = 0; i < app.workers_n; i++)
        loop_leave(workers[i].loop);
    signals_notice(ms);
}

static void remove_sockets(const struct config_addrs *addrs)
{
    for (size_t i = 0; i < addrs->n; i++)
        if (upstream_path(addrs->v[i].host))
            unlink(upstream_path(addrs->v[i].host));
}

static void stop(int sig)
{
    systemd_stopping("draining");
    atomic_store(&app.draining, true);
    if (sig == SIGTERM && app.plan->config.limits.notice_ms > 0)
        give_notice(app.plan->config.limits.notice_ms);
    log_info("draining", "connections=%u", (unsigned)atomic_load(&app.places.open));
    for (size_t i = 0; i < app.workers_n; i++)
        loop_drain(workers[i].loop);
    for (size_t i = 0; i < app.workers_n; i++)
        pthread_join(runners[i].thread, NULL);
    for (size_t i = 0; i < app.workers_n; i++)
        worker_done(&workers[i]);
    span_export_stop(app.spans);
    for (size_t i = 0; i < app.workers_n; i++)
        loop_free(workers[i].loop);
    cache_close(&app);
    remove_sockets(&app.plan->config.listen.http);
    remove_sockets(&app.plan->config.listen.https);
    plan_unref(app.plan);
    tls_context_free(app.tls);
    limit_table_free(app.limits);
    log_info("ended", "clean=yes");
    log_flush();
}

static int run(struct config *c)
{
    struct firn_diag d = { 0, "" };
    app.started_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
    pthread_mutex_init(&app.plan_lock, NULL);
    error_ring_init(&app.errors);
    log_setup((enum log_level)c->log.level, (enum log_format)c->log.format);
    signals_block();
    int r = tls_context_new(TLS_SERVER, &app.tls);
    if (r == 0)
        r = load_tls(c, &d);
    if (r)
        return fail("tls", r, &d);
    if ((r = cache_open(&app, c)))
        return fail("cache", r, &d);
    if ((r = make_places(c)))
        return fail("places for connections", r, &d);
    if ((r = make_limits()))
        return fail("limits", r, &d);
    if ((r = plan_new(c, NULL, &app.plan, &d)))
        return fail("configuration", r, &d);
    c = &app.plan->config;
    if ((r = start_tracing(c, &d)))
        return fail("tracing.endpoint", r, &d);
    if ((r = start_loops(c, &d)))
        return fail("loops", r, &d);
    if ((r = listen_all(c, &d)))
        return fail("listening", r, &d);
    for (size_t i = 0; i < app.workers_n; i++)
        if (pthread_create(&runners[i].thread, NULL, run_loop, &runners[i]) != 0)
            return fail("threads", FIRN_ENOMEM, &d);
    log_info("serving", "http=%s https=%s admin=%s loops=%zu routes=%zu services=%zu",
             addresses[PORT_HTTP], addresses[PORT_HTTPS], addresses[PORT_ADMIN], app.workers_n,
             c->routes.n, c->services.n);
    warn_exposed(c);
    stop(wait_for_end());
    names_end();
    return 0;
}

int main(int argc, char **argv)
{
    static struct config config;
    descriptors_standard();
    int status = config_begin(&config.base, &proxy_config, argc, argv);
    return status < 0 ? run(&config) : status;
}
