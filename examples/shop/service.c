/*
 * A service of the shop; see service.h. Its paths:
 *
 *     GET  /orders, /orders/123     rows as JSON; ?member=value chooses among them
 *     POST /orders                  creates one with an ID of firnd; Idempotency-Key is obeyed
 *     GET  /headers                 the request's fields as the service got them
 *     GET  /healthz
 *     POST /admin/fail?status=503&delay_ms=200&count=20   the next 20 requests (0: all) fail, late
 *     POST /admin/heal
 *
 * A single request fails by ?fail=503 and waits by ?delay_ms=200. With X-User-ID, which the gateway
 * takes from a token, a client sees its own rows; a request without it comes from inside the shop.
 */
#include "service.h"
#include "firn/client.h"
#include "net/alarm.h"
#include "platform/mono.h"
#include "wire/http_head.h"
#include "wire/json_write.h"
#include "wire/trace.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <uv.h>

enum { WAITING_MAX = 512, DELAY_MAX_MS = 60 * 1000, TEXT_BUF = 160 };

static const char json_fields[] = "Content-Type: application/json\r\n";
static const char shared_fields[] =
    "Content-Type: application/json\r\nCache-Control: public, max-age=300\r\n";
static const char private_fields[] =
    "Content-Type: application/json\r\nCache-Control: private, no-store\r\n";

struct asked { /* of a request, what its log line and firnd get */
    const char *method;
    char id[REQUEST_ID_BYTES_MAX + 1], trace[TRACE_PARENT_BUF], user[TEXT_BUF], path[TEXT_BUF];
};

struct waiting {         /* a row whose ID is on the way */
    struct reply *reply; /* NULL: not in use */
    struct row *row;
    struct asked asked;
};

static struct {
    const struct catalog *catalog;
    const char *name;
    char served_by[TEXT_BUF]; /* a header line */
    struct firn_client *client;
    uv_poll_t poll; /* on the client's descriptor */
    bool polling;
    struct waiting waiting[WAITING_MAX];
    uint64_t fail_status, fail_delay_ms, fail_left; /* fail_left: UINT64_MAX for all, 0 for none */
} shop;

/* --- the log --- */

static void log_line(const struct asked *a, unsigned status)
{
    struct buf b;
    buf_init(&b, 4096);
    json_begin(&b, NULL, '{');
    json_time(&b, "time", (int64_t)(clock_read_ns(CLOCK_REALTIME) / 1000));
    json_text(&b, "service", shop.name);
    json_text(&b, "id", a->id[0] ? a->id : NULL);
    json_text(&b, "traceparent", a->trace[0] ? a->trace : NULL);
    json_text(&b, "user", a->user[0] ? a->user : NULL);
    json_text(&b, "method", a->method);
    json_text(&b, "path", a->path);
    json_count(&b, "status", status);
    json_end(&b, '}');
    buf_add(&b, "\n", 1);
    ssize_t n = b.failed ? 0 : write(STDOUT_FILENO, b.p, b.len);
    (void)n; /* a log that cannot be written has no place to say so */
    buf_done(&b);
}

/* --- what a request says --- */

static void keep(struct slice s, char *out, size_t cap)
{
    snprintf(out, cap, "%.*s", s.p ? (int)s.len : 0, s.p ? s.p : "");
}

static bool read_head(const struct http_request *req, struct http_head *out)
{
    struct http_error e;
    return http_head_read(req->self.p, req->self.len, out, &e) > 0;
}

static void read_asked(const struct http_request *req, const struct http_head *h, struct asked *a)
{
    struct trace_parent parent;
    *a = (struct asked){ .method = http_method_name(req->method) };
    keep(req->path, a->path, sizeof a->path);
    keep(http_head_value(h, "x-user-id"), a->user, sizeof a->user);
    if (request_id_ok(req->request_id))
        keep(req->request_id, a->id, sizeof a->id);
    if (trace_parent_read(req->traceparent, &parent) == 0)
        trace_parent_write(&parent, a->trace);
}

/* A number of the query, up to `max`; `otherwise` if it is not there or is no number. */
static uint64_t query_number(struct slice query, const char *want, uint64_t max, uint64_t otherwise)
{
    struct slice name, value;
    uint64_t n;
    while (url_query_next(&query, &name, &value))
        if (slice_is(name, want))
            return value.p && http_u64(value, max, &n) == 0 ? n : otherwise;
    return otherwise;
}

/* --- answers --- */

static void fail(struct reply *r, unsigned status, const char *why)
{
    reply_begin(r, status, json_fields);
    json_begin(r->out, NULL, '{');
    json_text(r->out, "error", why);
    json_end(r->out, '}');
    reply_end(r);
}

static void answer_row(struct reply *r, const struct row *row, unsigned status)
{
    reply_begin(r, status, shop.catalog->shared ? shared_fields : private_fields);
    row_write(row, r->out);
    reply_end(r);
}

static void answer_rows(struct reply *r, struct slice query, const char *user)
{
    reply_begin(r, 200, shop.catalog->shared ? shared_fields : private_fields);
    json_begin(r->out, NULL, '[');
    for (struct row *row = row_next(NULL); row; row = row_next(row))
        if (row->id && row_is_for(row, user) && row_fits(row, query))
            row_write(row, r->out);
    json_end(r->out, ']');
    reply_end(r);
}

static void answer_headers(struct reply *r, const struct http_head *h)
{
    char name[TEXT_BUF];
    reply_begin(r, 200, private_fields);
    json_begin(r->out, NULL, '{');
    json_text(r->out, "service", shop.name);
    for (size_t i = 0; i < h->headers; i++) {
        keep(h->header[i].name, name, sizeof name);
        json_bytes(r->out, name, h->header[i].value.p, h->header[i].value.len);
    }
    json_end(r->out, '}');
    reply_end(r);
}

/* --- new rows --- */

static void take_ids(uv_poll_t *p, int status, int events)
{
    (void)p;
    (void)status;
    (void)events;
    struct firn_client_answer a = { .size = sizeof a };
    if (firn_client_pump(shop.client) < 0)
        return;
    while (firn_client_take(shop.client, &a) == 0) {
        struct waiting *w = a.user;
        struct reply *r = w->reply;
        w->reply = NULL;
        if (a.error == 0) {
            w->row->id = a.id;
            answer_row(r, w->row, 201);
        } else {
            row_remove(w->row);
            fail(r, 503, a.text);
        }
        log_line(&w->asked, reply_status(r));
        reply_done(r);
    }
}

static struct waiting *waiting_new(void)
{
    for (size_t i = 0; i < WAITING_MAX; i++)
        if (!shop.waiting[i].reply)
            return &shop.waiting[i];
    return NULL;
}

/* Answers, or defers the answer until an ID comes from firnd. */
static void create(const struct http_request *req, const struct asked *a, struct reply *r)
{
    char key[KEY_BUF];
    const char *why;
    unsigned status;
    struct firn_diag d;
    keep(req->idempotency_key, key, sizeof key);
    struct row *row = row_of_key(key, a->user);
    if (row && row->id) { /* a repetition creates nothing */
        answer_row(r, row, 200);
        return;
    }
    struct waiting *w = waiting_new();
    if (row || !w || !shop.client) {
        fail(r, 503,
             row ? "this Idempotency-Key is being worked on: repeat it"
             : w ? "there is no ID service: start firn-shop with the URL of a firnd"
                 : "too many requests wait for an ID: repeat it");
        return;
    }
    if (!(row = row_new(req->body, a->user, key, &why, &status))) {
        fail(r, status, why);
        return;
    }
    *w = (struct waiting){ .row = row, .asked = *a };
    struct firn_client_ask ask = FIRN_CLIENT_ASK_INIT;
    ask.user = w;
    ask.request_id = a->id[0] ? w->asked.id : NULL;
    ask.traceparent = a->trace[0] ? w->asked.trace : NULL;
    struct reply *later = reply_defer(r, DEFER_PIPELINED);
    if (!later || firn_client_submit(shop.client, &ask, &d) != 0) {
        row_remove(row);
        fail(later ? later : r, 503, later ? d.text : "too many requests wait: repeat it");
        if (later) {
            log_line(a, reply_status(later));
            reply_done(later);
        }
        return;
    }
    w->reply = later;
}

/* --- faults --- */

static void set_fault(struct slice query, bool fails)
{
    uint64_t count = query_number(query, "count", UINT32_MAX, 0);
    shop.fail_delay_ms = fails ? query_number(query, "delay_ms", DELAY_MAX_MS, 0) : 0;
    /* 0 for a delay alone; 200 and the like are answered as they would be. */
    shop.fail_status = query_number(query, "status", 599, shop.fail_delay_ms ? 0 : 503);
    shop.fail_left = !fails ? 0 : count ? count : UINT64_MAX;
}

/* Whether a fault has taken the request: it failed, or comes again after a delay. */
static bool faulty(const struct http_request *req, struct reply *r)
{
    bool on = shop.fail_left > 0;
    uint64_t delay = query_number(req->query, "delay_ms", DELAY_MAX_MS,
                                  on ? shop.fail_delay_ms : 0);
    uint64_t status = query_number(req->query, "fail", 599, on ? shop.fail_status : 0);
    if (delay && r->waited_ms < delay && reply_retry(r, (uint32_t)(delay - r->waited_ms)))
        return true;
    if (on && shop.fail_left != UINT64_MAX)
        shop.fail_left--;
    if (status < 400)
        return false;
    fail(r, (unsigned)status, "a fault, as it was asked for");
    return true;
}

/* --- requests --- */

static void route(const struct http_request *req, const struct http_head *h, const struct asked *a,
                  struct reply *r)
{
    bool reads = req->method == METHOD_GET || req->method == METHOD_HEAD;
    struct slice rest = req->path, first, second;
    uint64_t id;
    bool one = url_path_next(&rest, &first), two = url_path_next(&rest, &second) && second.len > 0;
    if (!one || rest.len > 0) {
        fail(r, 404, "no such page");
    } else if (slice_is(first, "headers") && reads) {
        answer_headers(r, h);
    } else if (!slice_is(first, shop.catalog->name)) {
        fail(r, 404, "no such page");
    } else if (!reads && (req->method != METHOD_POST || two)) {
        fail(r, 405, "GET, or POST without an ID");
    } else if (!reads) {
        create(req, a, r);
    } else if (!two) {
        answer_rows(r, req->query, a->user);
    } else {
        struct row *row = http_u64(second, UINT64_MAX, &id) == 0 ? row_find(id) : NULL;
        if (row && row_is_for(row, a->user))
            answer_row(r, row, 200);
        else
            fail(r, 404, "no such row");
    }
}

static void on_http(struct service_ctx *ctx, const struct http_request *req, struct reply *r)
{
    (void)ctx;
    struct http_head head;
    struct asked a;
    bool fails = slice_is(req->path, "/admin/fail");
    r->fields = shop.served_by;
    if (slice_is(req->path, "/healthz")) { /* also while it fails: that is what breakers are for */
        reply_http(r, 200, json_fields, "{\"status\":\"ok\"}", 15);
        return;
    }
    if (req->method == METHOD_POST && (fails || slice_is(req->path, "/admin/heal"))) {
        set_fault(req->query, fails);
        reply_http(r, 200, json_fields, "{}", 2);
        return;
    }
    if (!read_head(req, &head)) {
        fail(r, 400, "the head cannot be read");
        return;
    }
    bool failed = faulty(req, r);
    if (failed && !reply_answered(r))
        return;
    read_asked(req, &head, &a);
    if (!failed)
        route(req, &head, &a, r);
    if (reply_answered(r))
        log_line(&a, reply_status(r));
}

/* --- begin and end --- */

int shop_begin(const struct catalog *c, const char *name, const char *ids, struct service *out,
               struct firn_diag *d)
{
    shop.catalog = c;
    shop.name = name;
    snprintf(shop.served_by, sizeof shop.served_by, "X-Served-By: %.100s\r\n", name);
    catalog_begin(c);
    *out = (struct service){ .http = on_http };
    return ids ? firn_client_open(ids, &shop.client, d) : 0;
}

int shop_use(struct loop *l)
{
    if (!shop.client)
        return 0;
    int fd = firn_client_fd(shop.client);
    if (fd < 0)
        return fd;
    if (uv_poll_init(loop_uv(l), &shop.poll, fd) != 0)
        return FIRN_EIO;
    shop.polling = true;
    if (uv_poll_start(&shop.poll, UV_READABLE, take_ids) != 0)
        return FIRN_EIO;
    uv_unref((uv_handle_t *)&shop.poll); /* the loop ends without it */
    return 0;
}

void shop_end(void)
{
    if (shop.polling)
        uv_close((uv_handle_t *)&shop.poll, NULL);
    firn_client_close(shop.client);
}
