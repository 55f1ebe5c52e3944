/*
 * The admin address: a page for people with its files, /status, /metrics, /healthz, /readyz, and
 * the actions of admin_actions.c. It is not for clients, so it listens on loopback by default; a
 * page of another origin may neither act (Sec-Fetch-Site, Origin) nor read by a name whose DNS it
 * controls (Host). Tested in tests/integration/gateway_watch.py and tests/browser/gateway.mjs.
 */
#include "proxy/admin.h"
#include "daemon/about.h"
#include "daemon/origin.h"
#include "proxy/web.h"

#include <strings.h>

static const char json_fields[] = "Content-Type: application/json\r\n" ABOUT_NO_STORE;

/* --- the page --- */

struct file {
    const char *path, *fields;
    const unsigned char *p;
    const size_t *len;
};

static const struct file files[] = {
    { "/", ABOUT_PAGE_FIELDS, web_gateway_html, &web_gateway_html_len },
    { "/web/dashboard.css", ABOUT_STYLE_FIELDS, web_dashboard_css, &web_dashboard_css_len },
    { "/web/words.js", ABOUT_SCRIPT_FIELDS, web_words_js, &web_words_js_len },
    { "/web/page.js", ABOUT_SCRIPT_FIELDS, web_page_js, &web_page_js_len },
    { "/web/gateway.js", ABOUT_SCRIPT_FIELDS, web_gateway_js, &web_gateway_js_len },
};

static const struct file *file_of(struct slice path)
{
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (slice_is(path, files[i].path))
            return &files[i];
    return NULL;
}

/* --- who may ask --- */

static bool is_vital(const struct http_request *req)
{
    return slice_is(req->path, "/healthz") || slice_is(req->path, "/readyz") ||
           slice_is(req->path, "/metrics");
}

/* A flood of clients is when the page, /status and drains are needed most: all of the address is
 * answered above limits.connections, in the places that net/places.h keeps for it. */
bool admin_vital(const struct http_request *req)
{
    (void)req;
    return true;
}

void admin_problem(struct reply *r, const struct problem_kind *k, const char *detail)
{
    char fields[PROBLEM_FIELDS_BUF];
    problem_fields(k, "", fields);
    reply_begin(r, k->status, fields);
    problem_write(r->out, k, detail);
    reply_end(r);
}

/* A page whose name was made to point here has that name in Host. */
static bool host_is_known(struct app *a, struct slice host)
{
    if (origin_host(host) != HOST_FOREIGN)
        return true;
    struct plan *p = app_plan(a);
    struct slice name = origin_host_name(host);
    const struct config_strings *known = &p->config.admin.hosts;
    bool found = false;
    for (size_t i = 0; i < known->n; i++)
        found |= strlen(known->v[i]) == name.len && strncasecmp(known->v[i], name.p, name.len) == 0;
    plan_unref(p);
    return found;
}

/* --- answers --- */

static void answer_metrics(struct app *a, const struct http_request *req, struct reply *r)
{
    struct metrics m = { .out = r->out,
                         .open = http_names_type(req->accept, ABOUT_OPENMETRICS_TYPE) };
    reply_begin(r, 200, m.open ? ABOUT_OPENMETRICS_FIELDS : ABOUT_METRICS_FIELDS);
    metrics_write(a, &m);
    reply_end(r);
}

static void answer_status(struct app *a, struct reply *r)
{
    reply_begin(r, 200, json_fields);
    status_write(a, r->out);
    reply_end(r);
}

static void answer_health(struct app *a, bool ready, struct reply *r)
{
    static const struct problem_kind unready = { 503, "urn:firn:problem:not-ready", "Not ready" };
    if (ready && atomic_load(&a->draining)) {
        admin_problem(r, &unready, "the gateway is going to end");
        return;
    }
    reply_begin(r, 200, json_fields);
    json_begin(r->out, NULL, '{');
    if (ready)
        about_ready(r->out, NULL);
    else
        about_healthy(r->out);
    json_end(r->out, '}');
    buf_add(r->out, "\n", 1);
    reply_end(r);
}

void admin_http(struct service_ctx *w, const struct http_request *req, struct reply *r)
{
    static const struct problem_kind none = { 404, "urn:firn:problem:no-such-page",
                                              "No such page" },
                                     wrong = { 405, "urn:firn:problem:method-not-allowed",
                                               "Method not allowed" },
                                     foreign = { 421, "urn:firn:problem:host", "Unknown host" };
    const bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;
    const struct file *file = file_of(req->path);
    struct app *a = w->app;
    if (!is_vital(req) && !host_is_known(a, req->host))
        admin_problem(r, &foreign,
                      "the admin page does not have this name; add it to admin.hosts if it is so");
    else if (req->method == METHOD_POST && admin_is_action(req->path))
        admin_act(w, req, r);
    else if (!reads)
        admin_problem(r, &wrong,
                      "POST is for /reload and /servers/SERVICE/ADDRESS/drain or enable, all else "
                      "takes GET and HEAD");
    else if (file)
        reply_http(r, 200, file->fields, file->p, *file->len);
    else if (slice_is(req->path, "/metrics"))
        answer_metrics(a, req, r);
    else if (slice_is(req->path, "/status"))
        answer_status(a, r);
    else if (slice_is(req->path, "/readyz") || slice_is(req->path, "/healthz"))
        answer_health(a, slice_is(req->path, "/readyz"), r);
    else
        admin_problem(r, &none, "here are /, /status, /metrics, /healthz and /readyz");
}
