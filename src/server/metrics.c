/* The metrics of /metrics. Counters are summed over the loops at each request.
 * Tested in tests/integration/http_api.py. */
#include "server/metrics.h"
#include "daemon/span_export.h"
#include "server/peers.h"

#include <inttypes.h>

static void ids(struct app *app, struct metrics *m)
{
    size_t n;
    const struct firn_kind *kind = firn_kinds(&n);
    metric_head(m, "firn_ids_total", "IDs handed out, by kind.");
    for (size_t k = 0; k < n; k++) {
        uint64_t sum = 0;
        if (!(kind[k].flags & FIRN_KIND_MAKES))
            continue;
        for (size_t i = 0; i < app->loops; i++)
            sum += minter_counted(app->ctx[i].minter, k);
        metric_value(m, "firn_ids_total", "kind", kind[k].name, sum);
    }
}

static void network(struct app *app, struct metrics *m)
{
    struct loop_stats sum = { 0 }, s;
    uint64_t *to = (uint64_t *)&sum;
    const uint64_t *from = (const uint64_t *)&s; /* a struct of uint64_t only */
    for (size_t i = 0; i < app->loops; i++) {
        loop_stats(app->ctx[i].loop, &s);
        for (size_t k = 0; k < sizeof s / sizeof *to; k++)
            to[k] += from[k];
    }
    metric(m, "firn_connections", "Connections open now.", (double)sum.conns);
    metric(m, "firn_connections_accepted_total", "Connections accepted.", (double)sum.accepted);
    metric(m, "firn_connections_refused_total", "Connections refused: too many.",
           (double)sum.refused);
    metric(m, "firn_connections_crowded_total", "Of those, connections whose address had too many.",
           (double)sum.crowded);
    metric_head(m, "firn_requests_total", "Requests, by protocol.");
    metric_value(m, "firn_requests_total", "protocol", "http", sum.http_requests);
    metric_value(m, "firn_requests_total", "protocol", "resp", sum.resp_requests);
    metric_head(m, "firn_protocol_errors_total", "Requests that the parsers refused.");
    metric_value(m, "firn_protocol_errors_total", "protocol", "http", sum.http_errors);
    metric_value(m, "firn_protocol_errors_total", "protocol", "resp", sum.resp_errors);
    metric(m, "firn_timeouts_total", "Connections closed by a deadline.", (double)sum.timeouts);
    metric(m, "firn_overruns_total", "Connections closed because they did not read.",
           (double)sum.overruns);
    metric(m, "firn_requests_waiting", "Requests that wait for the store.", (double)sum.deferred);
    metric(m, "firn_received_bytes_total", "Bytes received.", (double)sum.bytes_in);
    metric(m, "firn_sent_bytes_total", "Bytes sent.", (double)sum.bytes_out);
    metric(m, "firn_tls_handshakes_total", "TLS handshakes that succeeded.",
           (double)sum.tls_handshakes);
    metric(m, "firn_tls_errors_total", "Connections with a TLS error, or plaintext on a TLS port.",
           (double)sum.tls_errors);
}

/* By route of the HTTP API; "none" is what had no route: 404 and 405. */
static void routes(struct app *app, struct metrics *m)
{
    static const char *const names[] = { "firn_http_requests_total", "firn_http_errors_total" };
    for (int which = 0; which < 2; which++) {
        metric_head(m, names[which],
                    which ? "HTTP answers that were problems, by route."
                          : "HTTP requests, by route.");
        for (size_t k = 0; http_route_name(k); k++) {
            uint64_t sum = 0;
            for (size_t i = 0; i < app->loops; i++) {
                const struct http_counter *c = &app->ctx[i].http[k];
                sum += atomic_load_explicit(which ? &c->errors : &c->requests,
                                            memory_order_relaxed);
            }
            metric_value(m, names[which], "route", http_route_name(k), sum);
        }
    }
}

static void latencies(struct app *app, struct metrics *m)
{
    static const char *const names[] = { "firn_http_request_seconds", "firn_resp_command_seconds" };
    static const char *const kinds[2][LATENCY_KINDS] = {
        { [HTTP_IDS] = "ids",
          [HTTP_TICKETS] = "tickets",
          [HTTP_SEQUENCES] = "sequences",
          [HTTP_LEASES] = "leases",
          [HTTP_OTHER] = "other" },
        { [RESP_TICKETS] = "tickets", [RESP_IDS] = "ids", [RESP_OTHER] = "other" },
    };
    for (int resp = 0; resp < 2; resp++) {
        metric_histogram_head(m, names[resp],
                              resp ? "Time from reading a command to sending its answer."
                                   : "Time from reading a request to sending its answer.");
        for (unsigned k = 0; k < LATENCY_KINDS && kinds[resp][k]; k++) {
            struct latency sum = { 0 };
            for (size_t i = 0; i < app->loops; i++)
                loop_latency(app->ctx[i].loop, resp, k, &sum);
            metric_histogram(m, names[resp], "kind", kinds[resp][k], &sum);
        }
    }
    struct latency waits = { 0 };
    for (size_t i = 0; i < app->loops; i++)
        latency_merge(&waits, outbox_waits(app->ctx[i].outbox));
    metric_histogram_head(m, "firn_ticket_wait_seconds",
                          "Time that requests for tickets waited for the store.");
    metric_histogram(m, "firn_ticket_wait_seconds", NULL, NULL, &waits);
}

static double f_seconds(struct app *app)
{
    struct board_clock c;
    board_clock_init(&c, &app->board);
    return (double)c.base.fine_ns(&c.base) / 1e9;
}

static void lease(struct app *app, struct metrics *m)
{
    struct lease_view v;
    const char *why;
    board_copy(&app->board, &v);
    double until = (double)firn_layout_unix_us(&app->plan.lease, v.grant.until) / 1e6;
    double left = v.grant.gen ? until - f_seconds(app) : 0;
    metric(m, "firn_ready", "1 while IDs can be minted and the store extends the window.",
           app_ready(app, &why));
    metric(m, "firn_slot", "The worker slot that this process holds.", v.grant.slot);
    metric(m, "firn_window_seconds", "Seconds of timestamps left if the store stays away.",
           left > 0 ? left : 0);
    metric(m, "firn_window_full_seconds", "Seconds of timestamps that one extension reserves.",
           (double)(v.window * app->plan.lease.tick_us) / 1e6);
    metric(m, "firn_layout_end_seconds", "Unix time at which the layout's timestamps run out.",
           (double)firn_layout_end_us(&app->plan.lease) / 1e6);
    metric_head(m, "firn_build_info", "1 for the version that runs.");
    metric_value(m, "firn_build_info", "version", FIRN_VERSION, 1);
    metric_head(m, "firn_slot_state", "1 for the state that the slot is in.");
    for (int s = SLOT_START; s <= SLOT_CLOSED; s++)
        metric_value(m, "firn_slot_state", "state", slot_state_name((enum slot_state)s),
                     (int)v.state == s);
    metric_head(m, "firn_clock_state", "1 for the state that the clock is in.");
    for (int s = CLOCK_WAIT; s <= CLOCK_SUSPECT; s++)
        metric_value(m, "firn_clock_state", "state", clock_state_name((enum clock_state)s),
                     (int)v.clock == s);
    metric(m, "firn_clock_behind_seconds",
           "How far the system clock is behind firn's; below 0: it is ahead and not followed.",
           (double)v.behind_ns / 1e9);
    metric_head(m, "firn_clock_steps_total", "Steps of the system clock by half a second or more.");
    metric_value(m, "firn_clock_steps_total", "direction", "back", v.steps.back);
    metric_value(m, "firn_clock_steps_total", "direction", "ahead", v.steps.ahead);
    metric(m, "firn_fenced_total",
           "Times that the slot was fenced, by another process or by this one.",
           (double)v.fenced_count);
    metric(m, "firn_twin_total", "Times that a copy of this process was seen.",
           (double)v.twin_count);
    metric(m, "firn_sequences_open",
           "1 while the state of the store allows tickets; 0: halted, held or looked at.",
           v.gate == LEASE_GATE_OPEN);
    if (app->peers) {
        const struct peers_stats *p = peers_stats(app->peers);
        metric(m, "firn_peers_up", "Peers that answered when they were last asked.",
               atomic_load(&p->up));
        metric(m, "firn_peer_failures_total", "Requests to peers without a good answer.",
               (double)atomic_load(&p->failures));
        metric(m, "firn_slot_clashes_total", "Times that a peer was found on this node's slot.",
               (double)atomic_load(&p->clashes));
    }
    uint32_t slots, used = coordinator_slots_used(app->coordinator, &slots);
    if (slots != 0) {
        metric(m, "firn_slots", "Worker slots of the store, counted every minute.", slots);
        metric(m, "firn_slots_used", "Slots that nobody else can take: held, retired, poisoned.",
               used);
    }
    metric(m, "firn_store_errors_total", "Store calls that failed.", (double)v.store_errors);
}

static void tickets(struct app *app, struct metrics *m)
{
    const struct coordinator_stats *s = coordinator_stats(app->coordinator);
    metric(m, "firn_tickets_committed_total", "Ticket numbers committed to the store.",
           (double)atomic_load(&s->tickets));
    metric(m, "firn_sequences", "Sequences in the store, counted every five minutes.",
           (double)atomic_load(&s->sequences));
    metric(m, "firn_sequences_limit", "limits.sequences; 0: no limit.",
           (double)app->config.limits.sequences);
    metric(m, "firn_commits_total", "Group commits.", (double)atomic_load(&s->commits));
    metric(m, "firn_commit_errors_total", "Sequences of a commit that failed.",
           (double)atomic_load(&s->commit_errors));
    metric(m, "firn_commit_conflicts_total",
           "Sequences of a commit that another server was faster on; they went into the next one.",
           (double)atomic_load(&s->conflicts));
    metric(m, "firn_keys_kept_total", "Clients' keys that got numbers or IDs.",
           (double)atomic_load(&s->keys_kept));
    metric(m, "firn_keys_replayed_total",
           "Requests that were answered with what their key has stood for before.",
           (double)atomic_load(&s->keys_replayed));
    metric(m, "firn_keys_removed_total", "Keys that were forgotten after the retention.",
           (double)atomic_load(&s->keys_removed));
}

static void store(struct app *app, struct metrics *m)
{
    static const char *const ops[] = { "read", "write", "scan" };
    static const char *const results[] = { "ok", "absent", "conflict", "unknown", "error" };
    const struct store_counts *n = coordinator_store_counts(app->coordinator);
    metric_head(m, "firn_store_operations_total", "Calls of the store, by result.");
    for (int op = 0; op < STORE_OPS_N; op++)
        for (int i = 0; i < STORE_RESULTS_N; i++)
            buf_addf(m->out, "firn_store_operations_total{op=\"%s\",result=\"%s\"} %" PRIu64 "\n",
                     ops[op], results[i], __atomic_load_n(&n->calls[op][i], __ATOMIC_RELAXED));
    metric_histogram_head(m, "firn_store_operation_seconds", "Time that a call of the store took.");
    for (int op = 0; op < STORE_OPS_N; op++) {
        struct latency l = { 0 };
        latency_merge(&l, &n->took[op]);
        metric_histogram(m, "firn_store_operation_seconds", "op", ops[op], &l);
    }
}

static void traces(struct app *app, struct metrics *m)
{
    if (!app->spans)
        return;
    const struct span_export_stats *s = span_export_stats(app->spans);
    metric_head(m, "firn_trace_spans_total", "Spans of traces, by what became of them.");
    metric_value(m, "firn_trace_spans_total", "result", "exported", atomic_load(&s->exported));
    metric_value(m, "firn_trace_spans_total", "result", "dropped", atomic_load(&s->dropped));
    metric_value(m, "firn_trace_spans_total", "result", "failed", atomic_load(&s->failed));
    metric(m, "firn_trace_spans_waiting", "Spans that wait for the collector.",
           span_export_waiting(app->spans));
}

static void leases(struct app *app, struct metrics *m)
{
    const struct leases_stats *s = coordinator_leases(app->coordinator);
    metric(m, "firn_leases", "Slots held for clients now.", (double)atomic_load(&s->held));
    metric(m, "firn_leases_max", "Slots that may be.", (double)app->config.leases.max);
    metric(m, "firn_leases_granted_total", "Slots lent to clients.",
           (double)atomic_load(&s->granted));
    metric(m, "firn_leases_extended_total", "Windows of clients extended.",
           (double)atomic_load(&s->extended));
    metric(m, "firn_leases_refused_total", "Clients that got no slot.",
           (double)atomic_load(&s->refused));
    metric(m, "firn_leases_returned_total", "Slots that clients gave back.",
           (double)atomic_load(&s->returned));
    metric(m, "firn_leases_expired_total", "Leases that expired without being extended.",
           (double)atomic_load(&s->expired));
}

void metrics_write(struct app *app, struct metrics *m)
{
    ids(app, m);
    network(app, m);
    routes(app, m);
    latencies(app, m);
    lease(app, m);
    tickets(app, m);
    store(app, m);
    metrics_cluster(app->cluster, m);
    leases(app, m);
    traces(app, m);
    metrics_process(m, app->started_ms);
    metrics_end(m);
}
