/*
 * firnd's main(): starts settings, sockets, store and coordinator, loops, in this order, and ends
 * them in the reverse one. Then the main thread only waits for signals: SIGTERM gives notice and
 * drains, SIGINT drains, SIGHUP reads the settings again. Tested in tests/integration/.
 */
#include "id/rng_take.h"
#include "wire/tls.h"
#include "server/app.h"
#include "server/peers.h"
#include "id/diag.h"
#include "server/draw.h"
#include "server/tracing.h"
#include "daemon/log.h"
#include "daemon/signals.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "daemon/systemd.h"
#include "platform/mono.h"
#include "store/url.h"
#include "wire/url.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    LISTENERS_MAX = 16,
    LOOPS_MAX = 64,
    LOOP_DESCRIPTORS = 8,    /* of a loop beside its sockets: epoll, wake-ups */
    OTHER_DESCRIPTORS = 128, /* the store, peers, files */
};

struct runner { /* one loop's thread */
    pthread_t thread;
    struct service service;
    int result;
};

static struct app app; /* large, and as old as the process */
static struct runner runners[LOOPS_MAX];
static struct history history;

static void on_turn(struct service_ctx *ctx)
{
    minter_turn(ctx->minter);
    ticket_desk_turn(ctx->desk);
}

static void on_closed(struct service_ctx *ctx, struct peer *p)
{
    (void)ctx;
    resp_session_free(p);
}

static void *run_loop(void *arg)
{
    struct runner *r = arg;
    r->result = loop_run(r->service.ctx->loop);
    return NULL;
}

/* --- start --- */

static int fail(const char *what, int error, const struct firn_diag *d)
{
    fprintf(stderr, "firnd: %s: %s\n", what, d->text[0] ? d->text : firn_error_message(error));
    return 1;
}

/* mkdir -p, for the state directory only. */
static int make_dir(const char *path, struct firn_diag *d)
{
    char part[4096];
    size_t len = strlen(path);
    if (len >= sizeof part)
        return FIRN_EINVAL;
    for (size_t i = 1; i <= len; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, 0750) != 0 && errno != EEXIST) {
            snprintf(
                d->text, sizeof d->text,
                "cannot create %.100s: %s; set state_dir to a directory that firnd may write to",
                part, strerror(errno));
            return FIRN_EIO;
        }
    }
    return 0;
}

/* The loops come from settings, or one for each core. */
static size_t choose_loops(const struct config *c)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = c->loops ? c->loops : (cores > 0 ? (size_t)cores : 1);
    return n < LOOPS_MAX ? n : LOOPS_MAX;
}

static int plan_layout(struct firn_diag *d)
{
    struct firn_layout l;
    const char *text = app.config.layout;
    int r = firn_layout_parse(text, strlen(text), 0, &l,
                              d); /* the epoch was checked with the settings */
    if (r)
        return r;
    app.loops = choose_loops(&app.config);
    r = stamp_plan_init(&app.plan, &l, d);
    if (r == 0)
        r = numbers_new(&app.plan, &app.board, (uint32_t)app.loops, &app.numbers);
    app.shares = r == 0 ? draw_shares_new() : NULL;
    return r == 0 && !app.shares ? FIRN_ENOMEM : r;
}

static struct tls_files tls_files(const struct config *c)
{
    return (struct tls_files){ c->tls.cert, c->tls.key, c->tls.client_ca, "tls." };
}

static int start_guard(struct firn_diag *d)
{
    struct tls_files files = tls_files(&app.config);
    int r = guard_new(&app.config, &app.guard);
    if (r == 0)
        r = tls_context_new(TLS_SERVER, &app.tls);
    return r ? r : tls_context_load(app.tls, &files, d);
}

static int start_browser(void)
{
    char own[256] = "";
    if (gethostname(own, sizeof own - 1) != 0)
        own[0] = '\0';
    return browser_init(&app.browser, own, &app.config.http.hosts, &app.config.http.origins);
}

static int start_tracing(struct firn_diag *d)
{
    const struct config *c = &app.config;
    snprintf(app.service, sizeof app.service, "%s", c->tracing.service);
    snprintf(app.name, sizeof app.name, "%s", c->name);
    app.sample = span_sample_read(c->tracing.sample);
    if (!c->tracing.endpoint)
        return 0;
    struct span_export_opts o = { .endpoint = c->tracing.endpoint,
                                  .tls_ca = c->tracing.tls_ca,
                                  .queue = (uint32_t)c->tracing.queue,
                                  .timeout_ms = (uint32_t)c->tracing.timeout_ms };
    o.resource = (struct span_resource){
        .service = app.service, .version = FIRN_VERSION, .instance = app.start, .node = app.name
    };
    return span_export_start(&o, &app.spans, d);
}

/* As many places as the settings say, or as the system allows descriptors for. */
static int make_places(void)
{
    const struct config *c = &app.config;
    uint64_t want = c->limits.connections, salt;
    uint64_t listeners = c->listen.home.n + c->listen.snowflake.n + c->listen.ticket.n;
    uint64_t others = PLACES_EXTRA + OTHER_DESCRIPTORS + app.loops * (listeners + LOOP_DESCRIPTORS);
    uint64_t have = descriptors_raise(want + others);
    uint64_t room = have > 2 * others ? have - others : have / 2;
    uint64_t max = room < want ? room : want;
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

static int start_loops(struct firn_diag *d)
{
    const struct config *c = &app.config;
    struct loop_opts o = { .header_ms = (uint32_t)c->limits.header_ms,
                           .idle_http_ms = (uint32_t)c->limits.idle_ms,
                           .write_ms = (uint32_t)c->limits.write_ms,
                           .drain_ms = (uint32_t)c->limits.drain_ms,
                           .tls = app.tls };
    store_url_redact(c->store, app.store_text, sizeof app.store_text);
    app.ctx = calloc(app.loops, sizeof *app.ctx);
    if (!app.ctx)
        return FIRN_ENOMEM;
    for (size_t i = 0; i < app.loops; i++) {
        struct service_ctx *ctx = &app.ctx[i];
        *ctx = (struct service_ctx){ .app = &app, .index = i };
        ctx->ticket_kind = firn_kind_find("ticket", 6);
        ctx->numbers_max = c->limits.ids_per_request;
        ctx->numbers = calloc(ctx->numbers_max, sizeof *ctx->numbers);
        http_init(ctx);
        runners[i].service = (struct service){ .ctx = ctx,
                                               .http = http_handle,
                                               .resp = resp_handle,
                                               .turn = on_turn,
                                               .answered = tracing_answered,
                                               .closed = on_closed,
                                               .command = resp_is_command,
                                               .vital = http_vital,
                                               .may_idle = guard_may_idle };
        int r = ctx->numbers ? minter_new(&app.plan, &app.board, app.numbers, &ctx->minter)
                             : FIRN_ENOMEM;
        if (r == 0)
            r = loop_new(&o, &runners[i].service, &app.places, &ctx->loop);
        if (r == 0)
            r = outbox_new(ctx->loop, &ctx->outbox);
        if (r == 0)
            r = guard_view_init(&ctx->guard, app.guard);
        if (r) {
            snprintf(d->text, sizeof d->text, "cannot start loop %zu: %s", i,
                     firn_error_message(r));
            return r;
        }
    }
    return 0;
}

/* Sockets of our own, one for each loop and address of a port. */
static int listen_port(enum port port, const struct config_addrs *addrs, struct firn_diag *d)
{
    for (size_t i = 0; i < addrs->n; i++) {
        char address[HOST_PORT_BUF];
        int fds[LOOPS_MAX];
        const struct config_addr *a = &addrs->v[i];
        host_port_write(strcmp(a->host, "*") == 0 ? "" : a->host, a->port, address);
        int r = listen_open(address, fds, app.loops, d);
        if (r) {
            if (!d->text[0])
                snprintf(d->text, sizeof d->text, "cannot listen on %.150s", address);
            return r;
        }
        if (i == 0)
            listen_name(fds[0], app.address[port]);
        for (size_t k = 0; k < app.loops; k++) {
            r = loop_listen(app.ctx[k].loop, fds[k], (int)port, false);
            if (r)
                return r;
        }
    }
    return 0;
}

/* A socket that systemd opened; each loop has a copy of it. */
static int listen_passed(void *user, size_t loop, size_t port, int fd)
{
    (void)user;
    if (loop == 0 && !app.address[port][0])
        listen_name(fd, app.address[port]);
    return loop_listen(app.ctx[loop].loop, fd, (int)port, true);
}

static int listen_all(struct firn_diag *d)
{
    const struct config_addrs *addrs[PORTS] = { &app.config.listen.home,
                                                &app.config.listen.snowflake,
                                                &app.config.listen.ticket };
    static const char *const names[PORTS] = {
        [PORT_HOME] = "home", [PORT_SNOWFLAKE] = "snowflake", [PORT_TICKET] = "ticket"
    };
    bool passed[PORTS] = { false };
    int r = systemd_share(names, PORTS, app.loops, listen_passed, NULL, passed, d);
    for (int p = 0; p < PORTS && r == 0; p++)
        if (!passed[p])
            r = listen_port((enum port)p, addrs[p], d);
    return r;
}

/* ---- peers ---- */

static void own_face(void *user, struct node_face *out)
{
    app_face(user, out);
}

static void avoid_slots(void *user, const struct slot_avoid *slots, bool yield)
{
    struct app *a = user;
    coordinator_avoid(a->coordinator, slots, yield);
}

/* Before there is a slot: those of the peers. */
static int ask_peers(const char *layout, struct slot_avoid *out, struct firn_diag *d)
{
    const struct config *c = &app.config;
    if (c->peers.n == 0)
        return 0;
    struct peers_opts o = { .at = &c->peers,
                            .cert = c->tls.cert,
                            .key = c->tls.key,
                            .ca = c->tls.client_ca,
                            .face = own_face,
                            .avoid = avoid_slots,
                            .user = &app };
    int r = peers_new(&o, &app.peers, d);
    if (r == 0)
        peers_slots(app.peers, layout, out);
    return r;
}

static int start_coordinator(struct firn_diag *d)
{
    static _Atomic uint64_t *last;
    static char store[4096], layout[FIRN_LAYOUT_TEXT_BUF];
    const struct config *c = &app.config;
    static char addresses[PORTS * PEER_ADDRESS_BUF];
    snprintf(addresses, sizeof addresses, "%s,%s,%s", app.address[PORT_HOME],
             app.address[PORT_SNOWFLAKE], app.address[PORT_TICKET]);
    struct coordinator_opts o = { .store = store,
                                  .addresses = addresses,
                                  .store_timeout_ms = (uint32_t)c->store_timeout_ms,
                                  .last = &last,
                                  .last_n = 1 };
    o.leases_max = (uint32_t)c->leases.max;
    o.retention_s = c->tickets.idem_retention_s;
    o.sequences_max = c->limits.sequences;
    o.first.start = c->tickets.default_start;
    o.first.mode = c->tickets.default_mode == CONFIG_TICKET_RANGE ? SEQ_RANGE : SEQ_GAPLESS;
    snprintf(store, sizeof store, "%s", c->store); /* settings may be freed by a reload */
    bool file = strncmp(store, "sqlite:", 7) == 0, member = cluster_wanted(c);
    int r = file || member ? make_dir(c->state_dir, d) : 0;
    if (r == 0 && member) {
        r = cluster_start(c, &app.cluster, d);
        o.open_store = cluster_store;
        o.open_user = app.cluster;
    }
    if (r)
        return r;
    last = numbers_last(app.numbers);
    o.lease = (struct lease_params){ .name = c->name,
                                     .accept_clock = c->accept_clock,
                                     .init = c->store_init || (member && c->cluster.init),
                                     .fresh = member && c->cluster.fresh,
                                     .window_ms = member ? c->cluster.window_ms : 0,
                                     .manual_fence = c->fence == CONFIG_FENCE_MANUAL };
    lease_params_of(&app.plan.layout[LEASED_SNOWFLAKE], &o.lease, layout);
    if (strcmp(c->worker_id, "auto") != 0) {
        o.lease.pinned = true;
        o.lease.pin = (uint32_t)strtoul(c->worker_id, NULL, 10); /* checked with the settings */
    }
    if (r == 0)
        r = ask_peers(layout, &o.lease.avoid, d);
    if (r == 0)
        r = coordinator_start(&o, &app.board, &app.coordinator, d);
    if (r == 0)
        numbers_set_note(app.numbers, coordinator_note(app.coordinator));
    for (size_t i = 0; i < app.loops && r == 0; i++)
        r = ticket_desk_new(app.coordinator, app.ctx[i].outbox, &app.ctx[i].desk);
    return r;
}

static int start_threads(void)
{
    for (size_t i = 0; i < app.loops; i++)
        if (pthread_create(&runners[i].thread, NULL, run_loop, &runners[i]) != 0)
            return FIRN_ENOMEM;
    return 0;
}

/* --- running --- */

static void greet(void)
{
    if (app.config.log.format == CONFIG_LOG_JSON || !isatty(STDERR_FILENO)) {
        log_info("serving", "home=%s snowflake=%s ticket=%s loops=%zu", app.address[PORT_HOME],
                 app.address[PORT_SNOWFLAKE], app.address[PORT_TICKET], app.loops);
        return;
    }
    const char *s = tls_context_on(app.tls) ? "s" : "";
    fprintf(stderr,
            "\nfirnd serves\n"
            "    http%s://%-22s this server: page, API, metrics\n"
            "    http%s://%-22s Snowflake IDs\n"
            "    http%s://%-22s ticket numbers\n"
            "\nTry\n"
            "    curl http%s://%s/generate\n"
            "    curl http%s://%s/generate\n"
            "    redis-cli%s -p %s INCR orders\n"
            "\nCtrl-C ends it.\n\n",
            s, app.address[PORT_HOME], s, app.address[PORT_SNOWFLAKE], s, app.address[PORT_TICKET],
            s, app.address[PORT_SNOWFLAKE], s, app.address[PORT_TICKET], *s ? " --tls" : "",
            strrchr(app.address[PORT_HOME], ':') ? strrchr(app.address[PORT_HOME], ':') + 1
                                                 : "9000");
}

static void warn_exposed(void)
{
    const char *why = config_exposed(&app.config);
    if (!why)
        return;
    fprintf(stderr,
            "\n*** WARNING: %s\n*** Every client that reaches it can take IDs and tickets.\n\n",
            why);
    log_warn("exposed", "cause=%s", why);
}

/* Certificates and keys are read again although their names are the same: they may be renewed. */
static void reload_guard(const struct config *next)
{
    static const char cure[] =
        "repair it and send SIGHUP again; firnd goes on with the files as they were";
    struct firn_diag d = { 0, "" };
    struct tls_files files = tls_files(next);
    int r = tls_context_load(app.tls, &files, &d);
    if (r)
        log_error("tls_reload_failed", "cause=%s cure=%s",
                  d.text[0] ? d.text : firn_error_message(r), cure);
    d.text[0] = '\0';
    r = cluster_renew_tls(app.cluster, next, &d);
    if (r)
        log_error("tls_reload_failed", "cause=%s cure=%s",
                  d.text[0] ? d.text : firn_error_message(r), cure);
    r = guard_reload(app.guard, next);
    if (r)
        log_error("token_reload_failed", "cause=%s cure=%s", firn_error_message(r), cure);
}

static void reload(void)
{
    struct config next;
    struct config_change change[CONFIG_SETTINGS_MAX];
    struct firn_diag d = { 0, "" };
    size_t n;
    systemd_reloading();
    int r = config_reload(&app.config.base, &next.base, change, &n, &d);
    if (r) {
        log_error("reload_failed", "cause=%s cure=%s", d.text,
                  "repair it and send SIGHUP again; firnd goes on with the settings as they were");
    } else {
        for (size_t i = 0; i < n; i++)
            log_info("setting_changed", "name=%s applied=%s", change[i].name,
                     change[i].applied ? "now" : "after a restart");
        log_setup((enum log_level)next.log.level, (enum log_format)next.log.format);
        reload_guard(&next);
        log_info("reloaded", "changes=%zu", n);
        /* Handlers read no setting that a reload may change, so the old one can go. */
        config_free(&app.config.base);
        app.config = next;
    }
    systemd_ready("serving");
}

/* Until a signal ends the program; returns it. The watchdog is fed twice in the time that systemd
 * gives, while the board's version changes: a coordinator that hangs in the store must be noticed.
 */
static int wait_for_end(void)
{
    bool was_ready = false;
    uint64_t version = 0, fed_ms = 0, row_ms = mono_ms();
    const uint64_t feed_ms = systemd_watchdog_ms(), nap_ms = HISTORY_EVERY_MS;
    for (;;) {
        uint64_t left = row_ms + nap_ms > mono_ms() ? row_ms + nap_ms - mono_ms() : 1;
        int sig = signals_wait((uint32_t)(feed_ms && feed_ms < left ? feed_ms : left));
        if (sig == SIGTERM || sig == SIGINT)
            return sig;
        if (sig == SIGHUP)
            reload();
        const char *why;
        bool ready = app_ready(&app, &why);
        if (ready && !was_ready)
            systemd_ready("serving");
        else
            systemd_status("%s", why);
        was_ready |= ready;
        uint64_t now = atomic_load(&app.board.version), ms = mono_ms();
        if (ms - row_ms >= nap_ms) { /* after a pause of the process: one row, then on from here */
            history_sample(&app);
            row_ms = ms - row_ms < 2 * nap_ms ? row_ms + nap_ms : ms;
        }
        if (feed_ms && now != version && ms - fed_ms >= feed_ms) {
            systemd_watchdog();
            version = now;
            fed_ms = ms;
        }
        log_flush();
    }
}

/* /readyz says no, and requests are served until load balancers have seen it. */
static void give_notice(uint64_t ms)
{
    log_info("leaving", "notice_ms=%" PRIu64, ms);
    log_flush();
    for (size_t i = 0; i < app.loops; i++)
        loop_leave(app.ctx[i].loop);
    signals_notice(ms);
}

static void stop(int sig)
{
    systemd_stopping("draining");
    atomic_store(&app.draining, true);
    if (sig == SIGTERM && app.config.limits.notice_ms > 0)
        give_notice(app.config.limits.notice_ms);
    log_info("draining", "connections=%u", (unsigned)atomic_load(&app.places.open));
    for (size_t i = 0; i < app.loops; i++)
        loop_drain(app.ctx[i].loop);
    for (size_t i = 0; i < app.loops; i++)
        pthread_join(runners[i].thread, NULL);
    peers_free(app.peers);
    app.peers = NULL;
    coordinator_stop(app.coordinator, numbers_close(app.numbers));
    cluster_stop(app.cluster);
    span_export_stop(app.spans);
    for (size_t i = 0; i < app.loops; i++) {
        loop_free(app.ctx[i].loop);
        ticket_desk_free(app.ctx[i].desk);
        outbox_free(app.ctx[i].outbox);
        minter_free(app.ctx[i].minter);
        resp_waits_free(&app.ctx[i]);
        http_done(&app.ctx[i]);
        guard_view_done(&app.ctx[i].guard);
        free(app.ctx[i].numbers);
    }
    free(app.ctx);
    numbers_free(app.numbers);
    free(app.shares);
    guard_free(app.guard);
    tls_context_free(app.tls);
    browser_done(&app.browser);
    board_done(&app.board);
    history_done(&history);
    config_free(&app.config.base);
    log_info("ended", "clean=yes");
    log_flush();
}

static int run(void)
{
    struct firn_diag d = { 0, "" };
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct nonce start;
    firn__entropy(start.b, sizeof start.b);
    nonce_text(&start, app.start);
    app.started_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    log_setup((enum log_level)app.config.log.level, (enum log_format)app.config.log.format);
    size_t links = 0;
    if (config_strangers(&firnd_config, &links, stderr) == 0 && links > 0)
        log_info("service_links_ignored", "variables=%zu cause=%s", links,
                 "Kubernetes sets them for a service whose name begins with firn");
    board_init(&app.board);
    history_init(&history);
    app.history = &history;
    signals_block();
    umask(077); /* what we write names sequences and stores: it is for our user alone */

    int r = plan_layout(&d);
    if (r)
        return fail("layout", r, &d);
    if ((r = start_guard(&d)))
        return fail("security", r, &d);
    if ((r = start_browser()))
        return fail("http", r, &d);
    if ((r = start_tracing(&d)))
        return fail("tracing", r, &d);
    if ((r = make_places()))
        return fail("places for connections", r, &d);
    if ((r = start_loops(&d)) || (r = listen_all(&d)))
        return fail("listening", r, &d);
    if ((r = start_coordinator(&d)))
        return fail("store", r, &d);
    if ((r = start_threads()) || (app.peers && (r = peers_start(app.peers))))
        return fail("threads", r, &d);
    warn_exposed();
    greet();
    stop(wait_for_end());
    return 0;
}

int main(int argc, char **argv)
{
    descriptors_standard();
    int status = config_begin(&app.config.base, &firnd_config, argc, argv);
    return status < 0 ? run() : status;
}
