/*
 * firn-auditlog's main(): starts settings, databases, sockets and loops, in this order, and ends
 * them in the reverse one: the loops answer what is in hand while the writers still commit, and
 * only then do these end. The main thread waits for signals: SIGTERM gives notice and drains,
 * SIGINT drains. Tested in tests/integration/auditlog.py.
 */
#include "auditlog/app.h"
#include "auditlog/commands.h"
#include "wire/url.h"
#include "daemon/log.h"
#include "daemon/signals.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "daemon/systemd.h"
#include "firn/random.h"
#include "firn/ulid.h"
#include "firn/version.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "wire/tls_context.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    LOOPS_MAX = 64,
    DESCRIPTORS_OTHER = 512,
    LOOK_MS = 1000, /* between two looks at the log's held-back lines */
};

struct runner { /* one loop's thread */
    pthread_t thread;
    struct service service;
};

static struct app app;
static struct config config;
static struct runner runners[LOOPS_MAX];
static char addresses[PORTS][PEER_ADDRESS_BUF];

static int fail(const char *what, int error, const struct firn_diag *d)
{
    fprintf(stderr, "firn-auditlog: %s: %s\n", what,
            d->text[0] ? d->text : firn_error_message(error));
    return 1;
}

static void *run_loop(void *arg)
{
    struct runner *r = arg;
    if (loop_run(r->service.ctx->loop) != 0)
        log_error("loop_failed", "cause=%s", "libuv");
    return NULL;
}

/* ---- start ---- */

static int load_tls(struct firn_diag *d)
{
    const struct tls_files files = { config.tls.cert, config.tls.key, config.tls.client_ca,
                                     "tls." };
    return tls_context_load(app.tls, &files, d);
}

static int start_tracing(struct firn_diag *d)
{
    static char instance[FIRN_ULID_TEXT_BUF];
    struct firn_ulid id;
    app.sample = span_sample_read(config.tracing.sample);
    if (!config.tracing.endpoint)
        return 0;
    if (firn_ulid_make(app.started_ms, firn_rng_thread(), &id) == 0)
        firn_ulid_format(&id, instance);
    const struct span_export_opts o = { .endpoint = config.tracing.endpoint,
                                        .tls_ca = config.tracing.tls_ca,
                                        .queue = (uint32_t)config.tracing.queue,
                                        .timeout_ms = (uint32_t)config.tracing.timeout_ms,
                                        .resource = { config.tracing.service, FIRN_VERSION,
                                                      instance, NULL } };
    return span_export_start(&o, &app.spans, d);
}

static struct writer_opts writer_opts(size_t i)
{
    const struct config *c = &config;
    return (struct writer_opts){
        .url = c->shards.v[i],
        .place = { i, c->shards.n },
        .queue_rows = c->limits.queue,
        .queue_bytes = c->limits.queue_kb * 1024,
        .batch = { c->limits.batch, c->limits.batch_kb * 1024 },
        .commit_ns = c->limits.commit_ms * 1000000,
        .wait_ms = (uint32_t)c->limits.wait_ms,
        .ahead_days = (uint32_t)c->partitions.ahead_days,
        .map_version = app.map.version,
        .legacy = c->id == CONFIG_ID_LEGACY,
        .ids = app.ids,
    };
}

static int start_databases(void)
{
    const size_t n = config.shards.n;
    int r = shard_map_deal(n, &app.map);
    app.databases = calloc(n, sizeof *app.databases);
    if (r || !app.databases)
        return r ? r : FIRN_ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct writer_opts w = writer_opts(i);
        const struct reader_opts o = { .url = config.shards.v[i],
                                       .index = i,
                                       .queue_reads = config.limits.reads,
                                       .legacy = config.id == CONFIG_ID_LEGACY };
        r = writer_start(&w, &app.databases[i].writer);
        if (r == 0)
            r = reader_start(&o, &app.databases[i].reader);
        app.databases_n += r == 0;
    }
    return r;
}

static int make_places(void)
{
    const uint64_t want = config.limits.connections;
    const uint64_t have = descriptors_raise(want + DESCRIPTORS_OTHER);
    const uint64_t room = have > 2 * DESCRIPTORS_OTHER ? have - DESCRIPTORS_OTHER : have / 2;
    const uint64_t max = room < want ? room : want;
    uint64_t salt;
    if (max < want)
        log_warn("connections_lowered", "wanted=%" PRIu64 " now=%" PRIu64 " cure=%s", want, max,
                 "raise the hard limit on open files (LimitNOFILE= in the systemd unit, ulimit -Hn "
                 "in a shell) or lower limits.connections");
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        return FIRN_EIO;
    places_init(&app.places, (uint32_t)max, (uint32_t)config.limits.connections_per_address, salt);
    return 0;
}

static int start_loops(struct firn_diag *d)
{
    const struct config *c = &config;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t want = c->loops ? c->loops : cores > 0 ? (size_t)cores : 1;
    const struct loop_opts o = { .header_ms = (uint32_t)c->limits.header_ms,
                                 .idle_http_ms = (uint32_t)c->limits.idle_ms,
                                 .write_ms = (uint32_t)c->limits.write_ms,
                                 .drain_ms = (uint32_t)c->limits.drain_ms,
                                 .tls = app.tls };
    app.ctx = calloc(want, sizeof *app.ctx);
    if (!app.ctx)
        return FIRN_ENOMEM;
    for (size_t i = 0; i < want && i < LOOPS_MAX; i++) {
        struct service_ctx *ctx = &app.ctx[i];
        ctx->app = &app;
        ctx->unsampled = span_sample_next(app.sample);
        runners[i].service =
            (struct service){ .ctx = ctx, .http = http_handle, .vital = http_vital };
        int r = loop_new(&o, &runners[i].service, &app.places, &ctx->loop);
        if (r == 0)
            r = outbox_new(ctx->loop, &ctx->outbox);
        if (r)
            return firn__diag(d, r, 0, "cannot start loop %zu: %s", i, firn_error_message(r));
        app.loops++;
    }
    return 0;
}

static int listen_port(enum port port, const struct config_addrs *addrs, struct firn_diag *d)
{
    for (size_t i = 0; i < addrs->n; i++) {
        char address[HOST_PORT_BUF];
        int fds[LOOPS_MAX];
        const struct config_addr *a = &addrs->v[i];
        host_port_write(strcmp(a->host, "*") == 0 ? "" : a->host, a->port, address);
        int r = listen_open(address, fds, app.loops, d);
        if (r)
            return r;
        if (i == 0)
            listen_name(fds[0], addresses[port]);
        for (size_t k = 0; k < app.loops; k++)
            if ((r = loop_listen(app.ctx[k].loop, fds[k], (int)port, false)))
                return r;
    }
    return 0;
}

/* A socket that systemd opened; each loop has a copy of it. */
static int listen_passed(void *user, size_t loop, size_t port, int fd)
{
    (void)user;
    if (loop == 0 && !addresses[port][0])
        listen_name(fd, addresses[port]);
    return loop_listen(app.ctx[loop].loop, fd, (int)port, true);
}

static int listen_all(struct firn_diag *d)
{
    static const char *const names[PORTS] = { [PORT_HTTP] = "http", [PORT_ADMIN] = "admin" };
    const struct config_addrs *addrs[PORTS] = { &config.listen.http, &config.listen.admin };
    bool passed[PORTS] = { false };
    int r = systemd_share(names, PORTS, app.loops, listen_passed, NULL, passed, d);
    for (int p = 0; p < PORTS && r == 0; p++)
        if (!passed[p])
            r = listen_port((enum port)p, addrs[p], d);
    return r;
}

static void warn_exposed(void)
{
    for (size_t i = 0; config.tokens.n == 0 && i < config.listen.http.n; i++)
        if (!host_is_loopback(config.listen.http.v[i].host))
            log_warn("exposed", "listen.http=%s cure=%s", config.listen.http.v[i].host,
                     "everyone who reaches it may write and read the audit log: set tokens");
}

/* ---- end ---- */

/* Certificates and keys may be renewed under their names; all else needs a restart. */
static void reload(void)
{
    struct firn_diag d = { 0, "" };
    int r = load_tls(&d);
    if (r)
        log_error("reload_failed", "cause=%s cure=%s", d.text[0] ? d.text : firn_error_message(r),
                  "repair it and send SIGHUP again; the files are used as they were");
    else
        log_info("reloaded", "what=certificates cure=%s", "other settings need a restart");
}

static int wait_for_end(void)
{
    const uint64_t feed_ms = systemd_watchdog_ms();
    systemd_ready("serving");
    for (;;) {
        int sig = signals_wait((uint32_t)(feed_ms && feed_ms < LOOK_MS ? feed_ms : LOOK_MS));
        if (sig == SIGTERM || sig == SIGINT)
            return sig;
        if (sig == SIGHUP)
            reload();
        if (feed_ms)
            systemd_watchdog();
        log_flush();
    }
}

static void stop(int sig)
{
    systemd_stopping("draining");
    atomic_store(&app.draining, true);
    if (sig == SIGTERM && config.limits.notice_ms > 0) {
        log_info("leaving", "notice_ms=%" PRIu64, config.limits.notice_ms);
        for (size_t i = 0; i < app.loops; i++)
            loop_leave(app.ctx[i].loop);
        signals_notice(config.limits.notice_ms);
    }
    log_info("draining", "connections=%u", (unsigned)atomic_load(&app.places.open));
    for (size_t i = 0; i < app.loops; i++)
        loop_drain(app.ctx[i].loop);
    for (size_t i = 0; i < app.loops; i++)
        pthread_join(runners[i].thread, NULL);
    for (size_t i = 0; i < app.databases_n; i++) {
        writer_stop(app.databases[i].writer);
        reader_stop(app.databases[i].reader);
    }
    for (size_t i = 0; i < app.loops; i++) {
        loop_free(app.ctx[i].loop);
        outbox_free(app.ctx[i].outbox);
    }
    for (size_t i = 0; i < app.databases_n; i++) {
        writer_free(app.databases[i].writer);
        reader_free(app.databases[i].reader);
    }
    ids_close(app.ids);
    span_export_stop(app.spans);
    tls_context_free(app.tls);
    free(app.ctx);
    free(app.databases);
    config_free(&config.base);
    log_info("ended", "clean=yes");
    log_flush();
}

static int serve(void)
{
    struct firn_diag d = { 0, "" };
    int r;
    app.config = &config;
    app.started_ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
    log_setup((enum log_level)config.log.level, (enum log_format)config.log.format);
    signals_block();
    r = tls_context_new(TLS_SERVER, &app.tls);
    if (r == 0)
        r = load_tls(&d);
    if (r)
        return fail("tls", r, &d);
    if ((r = start_tracing(&d)))
        return fail("tracing.endpoint", r, &d);
    if (config.id == CONFIG_ID_FIRN && (r = ids_open(config.generators, app.spans, &app.ids, &d)))
        return fail("generators", r, &d);
    if ((r = make_places()))
        return fail("places for connections", r, &d);
    if ((r = start_databases()))
        return fail("shards", r, &d);
    if ((r = start_loops(&d)))
        return fail("loops", r, &d);
    if ((r = listen_all(&d)))
        return fail("listening", r, &d);
    for (size_t i = 0; i < app.loops; i++)
        if (pthread_create(&runners[i].thread, NULL, run_loop, &runners[i]) != 0)
            return fail("threads", FIRN_ENOMEM, &d);
    log_info("serving", "http=%s admin=%s loops=%zu shards=%zu id=%s", addresses[PORT_HTTP],
             addresses[PORT_ADMIN], app.loops, app.databases_n,
             config.id == CONFIG_ID_LEGACY ? "legacy" : "firn");
    warn_exposed();
    stop(wait_for_end());
    return 0;
}

int main(int argc, char **argv)
{
    const struct command *command = argc > 1 ? command_find(argv[1]) : NULL;
    descriptors_standard();
    if (command && !command->configured)
        return command->run(&config);
    if (command) { /* what follows are settings, as if it were not there */
        argv[1] = argv[0];
        argv++;
        argc--;
    }
    int status = config_begin(&config.base, &auditlog_config, argc, argv);
    if (status >= 0)
        return status;
    if (!command)
        return serve();
    status = command->run(&config);
    config_free(&config.base);
    return status;
}
