/*
 * The admin address: /status, /metrics, /healthz, /readyz. Nothing here changes anything. Tested in
 * tests/integration/gateway.py.
 */
#include "daemon/about.h"
#include "daemon/problem.h"
#include "proxy/admin.h"

static const char json_fields[] = "Content-Type: application/json\r\n" ABOUT_NO_STORE;

static bool is_vital(const struct http_request *req)
{
    return slice_is(req->path, "/healthz") || slice_is(req->path, "/readyz") ||
           slice_is(req->path, "/metrics");
}

bool admin_vital(const struct http_request *req)
{
    return is_vital(req);
}

static void problem(struct reply *r, const struct problem_kind *k, const char *detail)
{
    char fields[PROBLEM_FIELDS_BUF];
    problem_fields(k, "", fields);
    reply_begin(r, k->status, fields);
    problem_write(r->out, k, detail);
    reply_end(r);
}

void admin_http(struct service_ctx *w, const struct http_request *req, struct reply *r)
{
    static const struct problem_kind none = { 404, "urn:firn:problem:no-such-page",
                                              "No such page" },
                                     wrong = { 405, "urn:firn:problem:method-not-allowed",
                                               "Method not allowed" },
                                     unready = { 503, "urn:firn:problem:not-ready", "Not ready" };
    struct app *a = w->app;
    if (req->method != METHOD_GET && req->method != METHOD_HEAD) {
        problem(r, &wrong, "GET and HEAD alone");
    } else if (slice_is(req->path, "/metrics")) {
        struct metrics m = { .out = r->out,
                             .open = http_names_type(req->accept, ABOUT_OPENMETRICS_TYPE) };
        reply_begin(r, 200, m.open ? ABOUT_OPENMETRICS_FIELDS : ABOUT_METRICS_FIELDS);
        metrics_write(a, &m);
        reply_end(r);
    } else if (slice_is(req->path, "/status")) {
        reply_begin(r, 200, json_fields);
        status_write(a, r->out);
        reply_end(r);
    } else if (slice_is(req->path, "/readyz") && atomic_load(&a->draining)) {
        problem(r, &unready, "the gateway is going to end");
    } else if (slice_is(req->path, "/readyz") || slice_is(req->path, "/healthz")) {
        reply_begin(r, 200, json_fields);
        json_begin(r->out, NULL, '{');
        if (req->path.p[1] == 'r')
            about_ready(r->out, NULL);
        else
            about_healthy(r->out);
        json_end(r->out, '}');
        buf_add(r->out, "\n", 1);
        reply_end(r);
    } else {
        problem(r, &none, "here are /status, /metrics, /healthz and /readyz");
    }
}
