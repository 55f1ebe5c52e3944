/*
 * The HTTP API: one table of routes, from which requests are dispatched and counted, misspelt paths
 * get a suggestion, 405 gets its Allow, and /openapi.json is made. A request goes through the short
 * cut for the most frequent one, then path, method, parameters, handler. An error is answered here
 * or in the handler, as a problem that says what to do. Tested in tests/unit/server/http.c.
 */
#include "server/http_call.h"
#include "server/tracing.h"
#include "wire/distance.h"
#include "wire/json_write.h"
#include "wire/url.h"

#include <stdio.h>

#define MINT_PARAMS                                                                              \
    (PARAM(N) | PARAM(SEQ) | PARAM(SHARD) | PARAM(ENCODING) | PARAM(PREFIX) | PARAM(NAMESPACE) | \
     PARAM(NAME) | PARAM(LENGTH))

#define BOTH (ALLOW_GET | ALLOW_POST)

static const struct route routes[] = {
    { BOTH, ROUTE_MINTS | ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED, 0, "/generate", route_generate,
      MINT_PARAMS | PARAM(KIND), "generate", "IDs",
      "The next ID: a Snowflake, or on the ticket port a ticket number", "Minted" },
    { BOTH, ROUTE_MINTS | ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED, 0, "/v1/ids/{kind}", route_ids,
      MINT_PARAMS, "mint", "IDs", "The next ID of a kind", "Minted" },
    { BOTH, ROUTE_MINTS | ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED, 0, "/v1/sequences/{name}/next",
      route_sequence_next, PARAM(N) | PARAM(ENCODING) | PARAM(PREFIX), "takeTicket", "Sequences",
      "The next number of a sequence", "Minted" },
    { ALLOW_GET, ROUTE_READY | ROUTE_GUARDED, 0, "/v1/sequences", route_sequences,
      PARAM(AFTER) | PARAM(LIMIT), "listSequences", "Sequences", "The sequences by name, in pages",
      "Sequences" },
    { ALLOW_POST, ROUTE_BODY | ROUTE_READY | ROUTE_GUARDED, 201, "/v1/sequences",
      route_sequence_create, 0, "createSequence", "Sequences", "Create a sequence", "Sequence" },
    { ALLOW_GET, ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED, 0, "/v1/sequences/{name}",
      route_sequence, 0, "describeSequence", "Sequences",
      "One sequence: its settings and how far it is", "Sequence" },
    { ALLOW_DELETE, ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED | ROUTE_ADMIN, 0,
      "/v1/sequences/{name}", route_sequence_delete, 0, "deleteSequence", "Sequences",
      "Delete a sequence; none of its numbers comes again", "SequenceDeleted" },
    { ALLOW_POST, ROUTE_BODY | ROUTE_READY | ROUTE_GUARDED, 0, "/v1/leases", route_lease_take, 0,
      "takeLease", "Leases", "Lend a slot and a window of timestamps to make Snowflake IDs with",
      "Lease" },
    { ALLOW_POST, ROUTE_BODY | ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED, 0,
      "/v1/leases/{lease}/extend", route_lease_extend, 0, "extendLease", "Leases",
      "Extend the window of a lease", "Lease" },
    { ALLOW_DELETE, ROUTE_READY | ROUTE_GUARDED, 0, "/v1/leases/{lease}", route_lease_return, 0,
      "returnLease", "Leases", "Give a slot back; its window is not used any more",
      "LeaseReturned" },
    { ALLOW_GET, 0, 0, "/v1/inspect/{id}", route_inspect, PARAM(KIND) | PARAM(LAYOUT), "inspect",
      "Knowledge", "What a text says when it is read as an ID: all plausible readings, best first",
      "Inspection" },
    { ALLOW_GET, 0, 0, "/v1/layouts", route_layouts, 0, "listLayouts", "Knowledge",
      "The 64-bit layouts with their limits, and the one that this server serves", "Layouts" },
    { ALLOW_GET, 0, 0, "/v1/kinds", route_kinds, 0, "listKinds", "Knowledge",
      "The kinds of IDs, and the encodings of numbers", "Kinds" },
    { ALLOW_GET, 0, 0, "/v1/node", route_node, 0, "describeNode", "Operation",
      "This server: its slot, its window of timestamps, its clock, its store", "Node" },
    { ALLOW_GET, ROUTE_READY | ROUTE_GUARDED, 0, "/v1/nodes", route_nodes, 0, "listNodes",
      "Operation", "All that share this server's store: servers, and commands such as firn elect",
      "Nodes" },
    { ALLOW_GET, ROUTE_READY | ROUTE_GUARDED, 0, "/v1/slots", route_slots, 0, "listSlots",
      "Operation", "The slots of the store that are not free, as of a few seconds ago", "Slots" },
    { ALLOW_GET, ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED, 0, "/v1/cluster", route_cluster, 0,
      "describeCluster", "Operation",
      "The members of the Raft cluster that this server belongs to: roles, leader, lag",
      "Cluster" },
    { ALLOW_POST, ROUTE_BODY | ROUTE_READY | ROUTE_FINDS | ROUTE_GUARDED | ROUTE_ADMIN, 0,
      "/v1/cluster", route_cluster_change, 0, "changeCluster", "Operation",
      "Add, promote or remove a member, or hand over the lead", "ClusterChanged" },
    { ALLOW_GET, 0, 0, "/healthz", route_healthz, 0, "health", "Operation",
      "200 while the process runs", "Health" },
    { ALLOW_GET, ROUTE_READY, 0, "/readyz", route_readyz, 0, "ready", "Operation",
      "200 while IDs can be made, else 503 with the reason", "Health" },
    { ALLOW_GET, 0, 0, "/metrics", route_metrics, 0, "metrics", "Operation",
      "Metrics in the text format of Prometheus, or OpenMetrics if Accept names it", "text/plain" },
    { ALLOW_GET, 0, 0, "/v1/events", route_events, PARAM(AFTER), "events", "Operation",
      "The last hour, a row per second, as server-sent events; ask again with Last-Event-ID",
      "text/event-stream" },
    { ALLOW_GET, 0, 0, "/openapi.json", route_openapi, 0, "openapi", "Operation",
      "This description", "application/json" },
    { ALLOW_GET, ROUTE_HOME, 0, "/", route_home, 0, "home", "Operation",
      "The dashboard, on the home port", "text/html" },
    { ALLOW_GET, ROUTE_HOME, 0, "/lab", route_lab, 0, "lab", "Operation",
      "The lab, consensus step by step, on the home port", "text/html" },
    { ALLOW_GET, ROUTE_HOME | ROUTE_FINDS, 0, "/web/{file}", route_web, 0, "web", "Operation",
      "A script, style, data or documentation file of the pages, on the home port", "text/plain" },
};

enum { ROUTES_N = sizeof routes / sizeof routes[0] };
_Static_assert(ROUTES_N < (int)HTTP_ROUTES_MAX, "the last counter is for requests without a route");

const struct param_row http_params[PARAMS_N] = {
#define X(name, text, schema, about) { text, schema, about },
    PARAMS(X)
#undef X
};

const struct route *http_routes(size_t *out_n)
{
    *out_n = ROUTES_N;
    return routes;
}

static char names[ROUTES_N][64]; /* written before the loops start, then constant */

static void name_routes(void)
{
    for (size_t i = 0; i < ROUTES_N; i++)
        snprintf(names[i], sizeof names[i], "%s%s%s%s %s", routes[i].allow & ALLOW_GET ? "GET" : "",
                 routes[i].allow == BOTH ? "|" : "", routes[i].allow & ALLOW_POST ? "POST" : "",
                 routes[i].allow & ALLOW_DELETE ? "DELETE" : "", routes[i].path);
}

const char *http_route_name(size_t i)
{
    return i < ROUTES_N ? names[i] : i == ROUTES_N ? "none" : NULL;
}

/* --- counting --- */

static struct http_counter *counter(struct service_ctx *ctx, const struct route *route)
{
    return &ctx->http[route ? route - routes : ROUTES_N];
}

/* One writer: a load and a store are enough. */
static void add(_Atomic uint64_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

void call_count_error(struct service_ctx *ctx, const struct route *route)
{
    add(&counter(ctx, route)->errors, 1);
}

void call_repeats(struct call *c, uint32_t n)
{
    c->r->repeats = n;
    tracing_passed(c->ctx, n);
    add(&counter(c->ctx, c->route)->requests, n);
}

/* --- matching --- */

static bool path_matches(const char *pattern, struct slice path, struct slice *arg)
{
    const char *p = path.p, *end = p + path.len;
    for (; *pattern; pattern++) {
        if (*pattern == '{') {
            const char *stop = p;
            while (stop < end && *stop != '/')
                stop++;
            if (stop == p)
                return false;
            *arg = (struct slice){ p, (size_t)(stop - p) };
            p = stop;
            while (*pattern != '}')
                pattern++;
        } else if (p == end || *p++ != *pattern) {
            return false;
        }
    }
    return p == end;
}

const struct route *http_route_find(enum http_method m, struct slice path, int port,
                                    struct slice *arg, unsigned *allow)
{
    unsigned want = m == METHOD_GET || m == METHOD_HEAD ? ALLOW_GET
                    : m == METHOD_POST                  ? ALLOW_POST
                    : m == METHOD_DELETE                ? ALLOW_DELETE
                                                        : 0;
    *allow = 0;
    for (size_t i = 0; i < ROUTES_N; i++) {
        const struct route *t = &routes[i];
        struct slice found = { NULL, 0 };
        if (!path_matches(t->path, path, &found) || ((t->flags & ROUTE_HOME) && port != PORT_HOME))
            continue;
        *allow |= t->allow;
        if (t->allow & want) {
            *arg = found;
            return t;
        }
    }
    return NULL;
}

/* How far a path is from a pattern: segment by segment, so that an argument costs nothing. */
static size_t path_distance(const char *pattern, struct slice path, char *out, size_t cap)
{
    struct slice rest = { pattern, strlen(pattern) }, want, have;
    size_t distance = 0, len = 0;
    while (url_path_next(&rest, &want)) {
        bool there = url_path_next(&path, &have);
        bool braces = want.len && want.p[0] == '{';
        if (!there || (braces && have.len == 0))
            distance += want.len + 1;
        else if (!braces)
            distance += edit_distance(want.p, want.len, have.p, have.len);
        struct slice part = braces && there && have.len && have.len < 80 ? have : want;
        if (len + part.len + 2 > cap)
            break;
        out[len++] = '/';
        memcpy(out + len, part.p, part.len);
        len += part.len;
    }
    while (url_path_next(&path, &have))
        distance += have.len + 1;
    out[len] = '\0';
    return distance;
}

void http_route_suggest(struct slice path, char out[SUGGEST_BUF])
{
    size_t best = (size_t)-1;
    char text[SUGGEST_BUF];
    out[0] = '\0';
    for (size_t i = 0; i < ROUTES_N; i++) {
        size_t d = path_distance(routes[i].path, path, text, sizeof text);
        if (d < best && !(routes[i].flags & ROUTE_HOME)) {
            best = d;
            memcpy(out, text, sizeof text);
        }
    }
}

const char *nearest_row(const char *p, size_t len, const void *rows, size_t n, size_t stride)
{
    const char *found = NULL;
    size_t best = (size_t)-1;
    for (size_t i = 0; i < n; i++) { /* a row begins with its name */
        const char *name;
        memcpy(&name, (const char *)rows + i * stride, sizeof name);
        size_t d = edit_distance(p, len, name, strlen(name));
        if (d < best) {
            best = d;
            found = name;
        }
    }
    return found && edit_is_slip(best, strlen(found)) ? found : NULL;
}

/* --- parameters --- */

static int param_find(struct slice name, uint32_t allowed)
{
    for (int i = 0; i < PARAMS_N; i++)
        if (allowed >> i & 1 && strlen(http_params[i].name) == name.len &&
            memcmp(http_params[i].name, name.p, name.len) == 0)
            return i;
    return -1;
}

static void unknown_param(struct call *c, struct slice name)
{
    char known[256] = "";
    size_t len = 0, best = (size_t)-1;
    const char *near = NULL;
    for (int i = 0; i < PARAMS_N; i++) {
        if (!(c->route->params >> i & 1))
            continue;
        const char *p = http_params[i].name;
        size_t d = edit_distance(name.p, name.len, p, strlen(p));
        if (d < best) {
            best = d;
            near = p;
        }
        len += (size_t)snprintf(known + len, sizeof known - len, "%s%s", len ? ", " : "", p);
    }
    int shown = (int)(name.len < 40 ? name.len : 40);
    if (!near)
        call_fail(c, PROBLEM_PARAMETER, "%s takes no parameters, and '%.*s' is one: leave it out",
                  c->route->path, shown, name.p);
    else if (edit_is_slip(best, strlen(near)))
        call_fail(c, PROBLEM_PARAMETER, "there is no parameter '%.*s'; did you mean %s?", shown,
                  name.p, near);
    else
        call_fail(c, PROBLEM_PARAMETER, "there is no parameter '%.*s'; %s takes %s", shown, name.p,
                  c->route->path, known);
}

/* Decodes all parameters of a query or form. False: the problem is answered. */
static bool read_params(struct call *c, struct slice query)
{
    struct slice name, value;
    struct query *q = &c->q;
    while (url_query_next(&query, &name, &value)) {
        int i = param_find(name, c->route->params);
        if (i < 0) {
            unknown_param(c, name);
            return false;
        }
        if (q->value[i].p) {
            call_fail(c, PROBLEM_PARAMETER, "%s is there twice: which one counts is unclear",
                      http_params[i].name);
            return false;
        }
        size_t len = 0;
        char *to = q->text + q->used;
        if (url_decode(value, true, to, sizeof q->text - q->used, &len) != 0) {
            call_fail(c, PROBLEM_PARAMETER,
                      "the value of %s is too long or not percent-encoded properly",
                      http_params[i].name);
            return false;
        }
        q->value[i] = (struct slice){ to, len };
        q->used += len + 1;
    }
    return true;
}

/* --- answering --- */

bool call_allowed(struct call *c, enum guard_what what, const char *name, size_t len)
{
    struct guard_refusal why;
    struct slice s = { name, len };
    c->ctx->guard.paid = c->r->waited_ms > 0;
    if (guard_check(c->ctx, c->r->peer, c->req->authorization, what, s, &why) == 0)
        return true;
    call_count_error(c->ctx, c->route);
    guard_refuse_http(c->r, &why, s);
    return false;
}

struct buf *call_json(struct call *c, unsigned status, const char *fields)
{
    char head[512];
    snprintf(head, sizeof head, "Content-Type: application/json\r\n%s", fields);
    reply_begin(c->r, status, head);
    buf_add(c->r->out, "{", 1);
    return c->r->out;
}

void call_json_end(struct call *c)
{
    buf_add(c->r->out, "}\n", 2);
    reply_end(c->r);
}

static void no_route(struct call *c)
{
    char near[SUGGEST_BUF];
    struct slice path = c->req->path;
    http_route_suggest(path, near);
    call_fail(c, PROBLEM_ROUTE,
              "there is nothing at %.*s; the nearest is %s; /openapi.json lists all",
              (int)(path.len < 200 ? path.len : 200), path.p, near);
}

static void wrong_method(struct call *c, unsigned allow)
{
    static const char *const texts[] = {
        "",       "GET, HEAD",         "POST",         "GET, HEAD, POST",
        "DELETE", "GET, HEAD, DELETE", "POST, DELETE", "all"
    };
    char field[64];
    snprintf(field, sizeof field, "Allow: %s\r\n", texts[allow]);
    call_count_error(c->ctx, NULL);
    problem_reply(c->r, PROBLEM_METHOD, field, "%s is not for this path; use %s",
                  http_method_name(c->req->method), texts[allow]);
}

/* A POST of a form is a query in the body. */
static bool read_form(struct call *c)
{
    struct slice body = c->req->body;
    if (c->req->method != METHOD_POST || body.len == 0 || (c->route->flags & ROUTE_BODY))
        return true;
    if (!http_type_is(c->req->content_type, "application/x-www-form-urlencoded")) {
        call_fail(
            c, PROBLEM_MEDIA,
            "give the parameters in the query (?n=3), or as application/x-www-form-urlencoded");
        return false;
    }
    return read_params(c, body);
}

/* --- browsers --- */

/* A page whose name its author points to 127.0.0.1 is of our origin for the browser, but Host shows
 * the name. Over TLS its certificate would have to be ours. */
static bool host_counts(const struct service_ctx *ctx, const struct peer *peer)
{
    return !peer->tls && (peer->network.loopback || ctx->app->browser.everywhere);
}

static bool host_fine(struct service_ctx *ctx, struct slice host, const struct peer *peer)
{
    if (!host_counts(ctx, peer))
        return true;
    if (browser_host(&ctx->app->browser, host) == HOST_FOREIGN)
        return false;
    if (host.p && host.len <= sizeof ctx->host) {
        memcpy(ctx->host, host.p, host.len);
        ctx->host_len = host.len;
    }
    return true;
}

/* Host is as it was the last time. Two words that may overlap are compared without a call. */
static inline bool host_again(const struct service_ctx *ctx, struct slice host)
{
    const size_t word = 8;
    if (host.len != ctx->host_len || host.len < word)
        return false;
    const char *end = host.p + host.len - word, *end_then = ctx->host + host.len - word;
    return memcmp(host.p, ctx->host, word) == 0 && memcmp(end, end_then, word) == 0 &&
           (host.len <= 2 * word || memcmp(host.p, ctx->host, host.len) == 0);
}

/* Nearly all requests: no page sent it, and its Host is known. */
static bool usual(struct service_ctx *ctx, const struct http_request *req, const struct peer *peer)
{
    return !req->origin.p && !req->fetch_site.p &&
           (host_again(ctx, req->host) || host_fine(ctx, req->host, peer));
}

static int shown(struct slice s)
{
    return (int)(s.len < 100 ? s.len : 100);
}

static bool wrong_host(struct call *c)
{
    const struct http_request *req = c->req;
    if (http_vital(req) || host_fine(c->ctx, req->host, c->r->peer))
        return false;
    call_fail(c, PROBLEM_HOST,
              "this server does not go by the name %.*s: use localhost or an address, or add the "
              "name to http.hosts if a proxy passes it on",
              shown(req->host), req->host.p);
    return true;
}

/* Pages of other origins may read, which their browser does not show them, but not mint or change
 * anything. */
static bool wrong_origin(struct call *c)
{
    const struct http_request *req = c->req;
    const struct browser *b = &c->ctx->app->browser;
    bool read = req->method <= METHOD_HEAD && !(c->route->flags & ROUTE_MINTS);
    if (!read && browser_foreign(b, req)) {
        call_fail(c, PROBLEM_ORIGIN,
                  "the page is of another origin (%.*s) than this server; if it may do this, add "
                  "its origin to http.origins: docs/browsers.md",
                  shown(req->origin), req->origin.p ? req->origin.p : "");
        return true;
    }
    if ((c->route->flags & ROUTE_ADMIN) && host_counts(c->ctx, c->r->peer) &&
        browser_host(b, req->host) != HOST_OWN) {
        call_fail(
            c, PROBLEM_HOST,
            "administration needs a Host of this server's own, not %.*s: use localhost, or add "
            "the name to http.hosts",
            shown(req->host), req->host.p);
        return true;
    }
    return false;
}

/* A body is JSON and says so: a form of another site cannot. */
static bool wrong_body(struct call *c)
{
    if (!(c->route->flags & ROUTE_BODY) || c->req->body.len == 0 ||
        http_type_is(c->req->content_type, "application/json"))
        return false;
    call_fail(c, PROBLEM_MEDIA,
              "send JSON with Content-Type: application/json (curl --json says that)");
    return true;
}

/* A browser asks whether a page may ask. */
static bool preflight(struct call *c)
{
    if (c->req->method != METHOD_OPTIONS || !browser_allowed(&c->ctx->app->browser, c->req->origin))
        return false;
    reply_http(c->r, 204, browser_preflight, "", 0);
    return true;
}

static uint8_t timed_as(const struct route *route)
{
    switch (route ? route->tag[0] : 0) {
    case 'I': /* IDs, but for tickets: take() */
        return HTTP_IDS;
    case 'S':
        return HTTP_SEQUENCES;
    case 'L':
        return HTTP_LEASES;
    default:
        return HTTP_OTHER;
    }
}

static void dispatch(struct call *c)
{
    unsigned allow;
    struct slice arg = { NULL, 0 };
    int port = c->r->peer ? c->r->peer->tag : PORT_HOME;
    const struct browser *b = &c->ctx->app->browser;
    const char *fields = browser_allowed(b, c->req->origin);
    c->r->fields = fields ? fields : browser_others(b);
    c->route = http_route_find(c->req->method, c->req->path, port, &arg, &allow);
    c->r->timed_as = timed_as(c->route);
    if (c->r->waited_ms == 0)
        add(&counter(c->ctx, c->route)->requests, 1);
    if (tracing_wanted(c->ctx, c->req))
        tracing_begin(c);
    else if (c->r->waited_ms == 0)
        tracing_passed(c->ctx, 1);
    if (wrong_host(c) || preflight(c))
        return;
    if (!c->route) {
        if (allow)
            wrong_method(c, allow);
        else
            no_route(c);
        return;
    }
    c->arg_len = 0;
    c->q.used = 0;
    for (int i = 0; i < PARAMS_N; i++)
        c->q.value[i] = (struct slice){ NULL, 0 };
    if (url_decode(arg, false, c->arg, sizeof c->arg, &c->arg_len) != 0) {
        call_fail(c, PROBLEM_PARAMETER,
                  "the last part of the path is too long or not percent-encoded properly");
        return;
    }
    if (!wrong_origin(c) && !wrong_body(c) && read_params(c, c->req->query) && read_form(c))
        c->route->run(c);
}

/* One draw for a block of requests that have all arrived: 0 when no more are wanted, or none is
 * left. */
enum { BLOCK_MAX = 64 };
static size_t next_block(struct service_ctx *ctx, uint64_t ids[BLOCK_MAX], size_t want)
{
    size_t n = 0;
    want = want < BLOCK_MAX ? want : BLOCK_MAX;
    return want && minter_numbers(ctx->minter, LEASED_SNOWFLAKE, 0, ids, want, &n) == 0 ? n : 0;
}

/* GET /generate without parameters on the Snowflake port: by far the most frequent request. */
static bool short_cut(struct service_ctx *ctx, const struct http_request *req, struct reply *r)
{
    uint64_t id, ids[BLOCK_MAX];
    size_t at = 0, have = 0;
    uint32_t n = 0;
    if (req->path.len != 9 || memcmp(req->path.p, "/generate", 9) != 0 || req->query.p ||
        req->idempotency_key.p || req->method > METHOD_HEAD || r->peer->tag == PORT_TICKET ||
        answer_format(req->accept) != ANSWER_JSON || guard_on(&ctx->guard) ||
        minter_tight(ctx->minter, LEASED_SNOWFLAKE) || r->waited_ms ||
        minter_number(ctx->minter, LEASED_SNOWFLAKE, &id) != 0)
        return false;
    uint32_t repeats = (uint32_t)http_repeats(req, RUN_MAX);
    if (repeats >= ctx->unsampled)
        repeats = (uint32_t)(ctx->unsampled - 1);
    do { /* a number for this one, and for those that follow as long as there are numbers */
        if (at == have) {
            have = next_block(ctx, ids, repeats - n);
            at = 0;
        }
        r->follows = have > 0;
        answer_one(r, id);
        id = r->follows ? ids[at++] : 0;
        n++;
    } while (r->follows);
    r->repeats = n - 1;
    minter_count(ctx->minter, ctx->snowflake_kind, n);
    add(&ctx->http[0].requests, n);
    tracing_passed(ctx, n);
    return true;
}

void http_handle(struct service_ctx *ctx, const struct http_request *req, struct reply *r)
{
    if (!tracing_wanted(ctx, req) && usual(ctx, req, r->peer) && short_cut(ctx, req, r))
        return;
    struct call c; /* large: what is used of it is set in dispatch() */
    c.ctx = ctx;
    c.req = req;
    c.r = r;
    c.route = NULL;
    dispatch(&c);
    if (r->user)
        tracing_leave(ctx, r);
}

bool http_vital(const struct http_request *req)
{
    static const char *const paths[] = { "/healthz", "/readyz", "/metrics" };
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (req->path.len == strlen(paths[i]) && memcmp(req->path.p, paths[i], req->path.len) == 0)
            return req->method <= METHOD_HEAD;
    return false;
}

void http_init(struct service_ctx *ctx)
{
    name_routes();
    tracing_init(ctx);
    ctx->snowflake_kind = firn_kind_find("snowflake", 9);
}
