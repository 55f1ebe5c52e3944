/* Routes of the audit log's API, and answers about the service. Tested in
 * tests/integration/auditlog.py. */
#include "auditlog/auth.h"
#include "auditlog/http_call.h"
#include "auditlog/web.h"
#include "wire/url.h"
#include "daemon/about.h"
#include "daemon/metrics.h"

enum { ALLOW_GET = 1, ALLOW_POST = 2 };

/* ---- about the service ---- */

static void route_healthz(struct call *c)
{
    reply_begin(c->r, 200, JSON_FIELDS);
    json_begin(c->r->out, NULL, '{');
    about_healthy(c->r->out);
    json_end(c->r->out, '}');
    buf_add(c->r->out, "\n", 1);
    reply_end(c->r);
}

static size_t databases_away(struct app *a)
{
    size_t away = 0, rows;
    uint64_t since;
    for (size_t i = 0; i < a->databases_n; i++) {
        bool is;
        queue_look(writer_queue(a->databases[i].writer), &rows, &since, &is);
        away += is;
    }
    return away;
}

/* Ready while one database is there: a balancer that takes all servers out helps nobody. */
static void route_readyz(struct call *c)
{
    struct app *a = c->ctx->app;
    char reason[96] = "";
    const size_t away = databases_away(a);
    if (atomic_load(&a->draining)) {
        problem_reply(c->r, PROBLEM_NOT_READY, "the service is going to end");
        return;
    }
    if (away == a->databases_n) {
        problem_reply(c->r, PROBLEM_NOT_READY, "no database answers; the log says why");
        return;
    }
    if (away > 0)
        snprintf(reason, sizeof reason, "%zu of %zu databases do not answer", away, a->databases_n);
    reply_begin(c->r, 200, JSON_FIELDS);
    json_begin(c->r->out, NULL, '{');
    about_ready(c->r->out, away > 0 ? reason : NULL);
    json_end(c->r->out, '}');
    buf_add(c->r->out, "\n", 1);
    reply_end(c->r);
}

static void route_metrics(struct call *c)
{
    struct metrics m = { .out = c->r->out,
                         .open = http_names_type(c->req->accept, ABOUT_OPENMETRICS_TYPE) };
    reply_begin(c->r, 200, m.open ? ABOUT_OPENMETRICS_FIELDS : ABOUT_METRICS_FIELDS);
    metrics_write(c->ctx->app, &m);
    reply_end(c->r);
}

static void route_openapi(struct call *c)
{
    reply_http(c->r, 200, "Content-Type: application/json\r\n" ABOUT_CACHED,
               web_auditlog_openapi_json, web_auditlog_openapi_json_len);
}

/* ---- routes ---- */

struct route {
    const char *path; /* {} is one segment, the argument */
    uint8_t method, ports;
    void (*run)(struct call *c);
};

enum { AT_HTTP = 1 << PORT_HTTP, AT_ADMIN = 1 << PORT_ADMIN };

static const struct route routes[] = {
    { "/v1/users/{}/logs", ALLOW_POST, AT_HTTP, route_write },
    { "/v1/users/{}/logs", ALLOW_GET, AT_HTTP, route_list },
    { "/v1/logs/{}", ALLOW_GET, AT_HTTP, route_entry },
    { "/openapi.json", ALLOW_GET, AT_HTTP, route_openapi },
    { "/healthz", ALLOW_GET, AT_HTTP | AT_ADMIN, route_healthz },
    { "/readyz", ALLOW_GET, AT_HTTP | AT_ADMIN, route_readyz },
    { "/metrics", ALLOW_GET, AT_ADMIN, route_metrics },
};

static bool match(const char *pattern, struct slice path, struct slice *arg)
{
    struct slice want = { pattern, strlen(pattern) }, a, b;
    for (;;) {
        const bool more = url_path_next(&want, &a);
        if (url_path_next(&path, &b) != more)
            return false;
        if (!more)
            return true;
        if (slice_is(a, "{}"))
            *arg = b;
        else if (a.len != b.len || memcmp(a.p, b.p, a.len) != 0)
            return false;
    }
}

void http_handle(struct service_ctx *ctx, const struct http_request *req, struct reply *r)
{
    struct call c = { .ctx = ctx, .req = req, .r = r };
    const uint8_t method = req->method == METHOD_GET || req->method == METHOD_HEAD ? ALLOW_GET
                           : req->method == METHOD_POST                            ? ALLOW_POST
                                                                                   : 0;
    const uint8_t port = (uint8_t)(1 << (r->peer ? r->peer->tag : PORT_HTTP));
    bool path = false;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        const struct route *route = &routes[i];
        if (!(route->ports & port) || !match(route->path, req->path, &c.arg))
            continue;
        path = true;
        if (route->method == method) {
            route->run(&c);
            return;
        }
    }
    if (path)
        problem_reply(r, PROBLEM_METHOD, "this path takes GET, and /v1/users/USER/logs POST too");
    else
        problem_reply(r, PROBLEM_ROUTE,
                      "entries are at /v1/users/USER/logs and /v1/logs/ID; /openapi.json has the "
                      "whole API");
}

bool http_vital(const struct http_request *req)
{
    return slice_is(req->path, "/healthz") || slice_is(req->path, "/readyz") ||
           slice_is(req->path, "/metrics");
}

/* ---- for all routes ---- */

bool call_allowed(struct call *c, uint32_t scope, struct slice *tenant)
{
    switch (auth_check(&c->ctx->app->config->tokens, c->req->authorization, scope, tenant)) {
    case AUTH_OK:
        return true;
    case AUTH_NO_TOKEN:
        problem_reply(c->r, PROBLEM_NO_TOKEN, "send Authorization: Bearer TOKEN");
        return false;
    case AUTH_BAD_TOKEN:
        problem_reply(c->r, PROBLEM_BAD_TOKEN, "the configuration has no such token");
        return false;
    case AUTH_SCOPE:
        problem_reply(c->r, PROBLEM_SCOPE, "the token lacks the scope %s",
                      scope == SCOPE_WRITE  ? "write"
                      : scope == SCOPE_READ ? "read"
                                            : "admin");
        return false;
    }
    return false;
}

bool call_user(struct call *c, char out[USER_BYTES_MAX + 1], size_t *out_len)
{
    if (entry_user_read(c->arg, out, out_len) == 0)
        return true;
    problem_reply(c->r, PROBLEM_PARAMETER,
                  "the user in the path must be 1 to %d bytes of UTF-8 without control characters, "
                  "percent-encoded",
                  USER_BYTES_MAX);
    return false;
}

void call_refused(struct service_ctx *ctx, struct reply *r, int error)
{
    latency__more(error == FIRN_EAGAIN ? &ctx->full : &ctx->closed, 1);
    if (error == FIRN_EAGAIN)
        problem_reply(r, PROBLEM_BUSY,
                      "as much waits for the database of this shard as may; try again");
    else if (error == FIRN_EIO)
        problem_reply(r, PROBLEM_AWAY,
                      "the database of this shard does not answer; others do; try again");
    else
        problem_reply(r, PROBLEM_NOT_READY, "the service is going to end");
    reply_done(r);
}

void answer_outcome(struct reply *r, const struct job *j)
{
    static const struct {
        enum problem problem;
        const char *text;
    } rows[OUTCOMES] = {
        [OUTCOME_DONE] = { PROBLEM_INTERNAL, "" },
        [OUTCOME_REPEATED] = { PROBLEM_INTERNAL, "" },
        [OUTCOME_REUSED] = { PROBLEM_KEY_REUSED,
                             "the Idempotency-Key stands for another request of this tenant; use a "
                             "new one" },
        [OUTCOME_DUPLICATE] = { PROBLEM_DUPLICATE, "another entry has this ID already" },
        [OUTCOME_REFUSED] = { PROBLEM_REFUSED, "" },
        [OUTCOME_AWAY] = { PROBLEM_AWAY, "the database of this shard does not answer; nothing was "
                                         "written; try again" },
        [OUTCOME_UNKNOWN] = { PROBLEM_UNKNOWN,
                              "the database was lost while it committed; try again with the same "
                              "Idempotency-Key, if you sent one" },
        [OUTCOME_NO_ID] = { PROBLEM_NO_ID, "" },
        [OUTCOME_LATE] = { PROBLEM_BUSY, "it waited too long; nothing was written; try again" },
        [OUTCOME_NO_MEMORY] = { PROBLEM_INTERNAL, "out of memory" },
    };
    problem_reply(r, rows[j->outcome].problem, "%s%s", rows[j->outcome].text, j->why);
}
