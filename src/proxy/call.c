/* Calls: from the edge through the chain to an answer, and their end. Tested in
 * tests/integration/gateway.py. */
#include "daemon/problem.h"
#include "platform/mono.h"
#include "proxy/capture.h"
#include "proxy/collect.h"
#include "proxy/links.h"
#include "proxy/worker.h"

#include <stdio.h>
#include <stdlib.h>

enum { SPARES_MAX = 64, HEAD_BYTES_MAX = 1024 * 1024 };

struct call_piece {
    struct call_piece *next;
    char text[];
};

char *call_text(struct call *c, size_t len)
{
    struct call_piece *p = malloc(sizeof *p + len + 1);
    if (!p)
        return NULL;
    p->next = c->pieces;
    c->pieces = p;
    p->text[len] = '\0';
    return p->text;
}

struct slice call_copy(struct call *c, struct slice text)
{
    char *to = call_text(c, text.len);
    if (!to)
        return (struct slice){ NULL, 0 };
    memcpy(to, text.p, text.len);
    return (struct slice){ to, text.len };
}

static struct call *call_new(struct service_ctx *w)
{
    struct call *c = w->spare;
    if (c) {
        w->spare = c->next;
        w->spares--;
    } else if (!(c = malloc(sizeof *c))) {
        return NULL;
    }
    struct fields *f = &c->request; /* large, and set by its owner: not zeroed */
    memset(c, 0, offsetof(struct call, request));
    f->n = 0;
    f->failed = false;
    memset((char *)f + sizeof *f, 0, (size_t)((char *)(c + 1) - (char *)(f + 1)));
    return c;
}

static void call_free(struct call *c)
{
    struct service_ctx *w = c->worker;
    for (struct call_piece *p = c->pieces, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    view_unref(w, c->view);
    if (w->spares == SPARES_MAX) {
        free(c);
        return;
    }
    c->next = w->spare;
    w->spare = c;
    w->spares++;
}

static void run(struct call *c)
{
    while (c->link < chain_n) {
        const struct link *l = &chain[c->link];
        c->reached = c->link + 1;
        enum link_result r = l->request ? l->request(c) : LINK_NEXT;
        if (r != LINK_NEXT)
            return;
        c->link++;
    }
    firn_assert(false, "the last link must answer");
}

void call_resume(struct call *c)
{
    c->link++;
    run(c);
}

static const struct call_sink edge_sink;

void call_begin(struct service_ctx *w, struct edge_request *q)
{
    struct call *c = call_new(w);
    if (!c) {
        static const char body[] = "{\"error\":\"out of memory\"}\n";
        edge_head(q, 503, (struct slice){ NULL, 0 }, edge_date(q), sizeof body - 1);
        edge_body(q, body, sizeof body - 1);
        edge_end(q, (struct slice){ NULL, 0 });
        return;
    }
    c->worker = w;
    c->view = w->view;
    c->view->refs++;
    c->q = q;
    c->head = &q->head;
    c->sink = &edge_sink;
    c->to = q;
    c->began_ns = mono_ns();
    c->outcome = BREAKER_UNKNOWN;
    q->user = c;
    latency__more(&w->calls, 1);
    run(c);
}

struct call *call_inner(struct call *outer, const char *from, const struct http_head *head,
                        const struct call_sink *sink, void *to)
{
    struct call *c = call_new(outer->worker);
    if (!c)
        return NULL;
    c->worker = outer->worker;
    c->view = outer->view;
    c->view->refs++;
    c->head = head;
    c->sink = sink;
    c->to = to;
    c->outer = outer;
    while (c->first < chain_n && strcmp(chain[c->first].name, from) != 0)
        c->first++;
    c->link = c->reached = c->first;
    c->began_ns = mono_ns();
    c->outcome = BREAKER_UNKNOWN;
    memcpy(c->id, outer->id, sizeof c->id);
    memcpy(c->peer, outer->peer, sizeof c->peer);
    memcpy(c->client, outer->client, sizeof c->client);
    c->trusted = outer->trusted;
    c->route = outer->route;
    c->rules = outer->rules;
    c->path = outer->path;
    c->user = outer->user;
    return c;
}

void call_start(struct call *c)
{
    run(c);
}

static void free_filters(struct call *c)
{
    for (struct call_filter *f = c->filters, *next; f; f = next) {
        next = f->next;
        f->ops->free(f);
    }
    c->filters = NULL;
}

/* The call is over; `why`: NULL, or what went wrong. */
static void call_end(struct call *c, const char *why)
{
    if (why && !c->why)
        c->why = why;
    if (c->q)
        c->q->user = NULL;
    c->q = NULL;
    alarm_clear(&c->deadline);
    free_filters(c);
    for (size_t i = c->reached; i-- > c->first;)
        if (chain[i].done)
            chain[i].done(c);
    collect_free(c);
    call_count(c);
    call_free(c);
}

static void finish(struct call *c, struct slice trailers)
{
    const struct call_sink *sink = c->sink;
    void *to = c->to;
    char lines[HTTP_TRAILERS_BYTES_MAX];
    trailers = transform_trailers(c, trailers, lines);
    call_end(c, NULL);
    sink->end(to, trailers);
}

void call_done(struct call *c, struct slice trailers)
{
    if (c->filters)
        c->filters->ops->end(c->filters, trailers);
    else
        finish(c, trailers);
}

void call_abort(struct call *c, const char *why)
{
    const struct call_sink *sink = c->sink;
    void *to = c->to;
    if (!c->status)
        c->status = 499;
    char text[128];
    snprintf(text, sizeof text, "%s", why); /* it may be the call's own memory */
    call_end(c, why);
    sink->abort(to, text);
}

void call_cancel(struct call *c)
{
    if (!c->status)
        c->status = 499;
    call_end(c, "the whole was given up");
}

/* --- answers --- */

static void to_edge_head(void *to, const struct answer *a)
{
    struct edge_request *q = to;
    struct buf lines;
    buf_init(&lines, HEAD_BYTES_MAX);
    if (!fields_get(&a->fields, "date").p) {
        struct slice date = edge_date(q);
        buf_add(&lines, date.p, date.len);
    }
    fields_write(&a->fields, &lines);
    /* A head of a server and what the configuration adds fit; without memory there are no fields.
     */
    struct slice text = { lines.p, a->fields.failed || lines.failed ? 0 : lines.len };
    if (a->status == 101)
        edge_tunnel(q, a->reason, text);
    else
        edge_head(q, a->status, a->reason, text, a->body_len);
    buf_done(&lines);
}

static bool to_edge_body(void *to, const char *p, size_t len)
{
    return edge_body(to, p, len);
}

static void to_edge_end(void *to, struct slice trailers)
{
    edge_end(to, trailers);
}

static void to_edge_abort(void *to, const char *why)
{
    (void)why;
    edge_abort(to);
}

static const struct call_sink edge_sink = { to_edge_head, to_edge_body, to_edge_end,
                                            to_edge_abort };

static void send_head(struct call *c, const struct answer *a)
{
    c->answered = true;
    c->status = a->status;
    if (c->first_byte_ns == 0)
        c->first_byte_ns = mono_ns();
    c->sink->head(c->to, a);
}

static bool send_body(struct call *c, const char *p, size_t len)
{
    c->bytes_out += slice_is(c->head->method, "HEAD") ? 0 : len; /* its body is not sent */
    return c->sink->body(c->to, p, len);
}

void call_head(struct call *c, struct answer *a)
{
    free_filters(c); /* of an answer that was given up before its head was sent */
    for (size_t i = c->reached; i-- > c->first;)
        if (chain[i].answer)
            chain[i].answer(c, a);
    if (!c->filters)
        send_head(c, a);
    else if (c->filters->ops->head)
        c->filters->ops->head(c->filters, a);
    else
        call_next_head(c->filters, a);
}

bool call_body(struct call *c, const char *p, size_t len)
{
    return c->filters ? c->filters->ops->body(c->filters, p, len) : send_body(c, p, len);
}

void call_filter(struct call *c, struct call_filter *f, const struct call_filter_ops *ops)
{
    struct call_filter **at = &c->filters;
    while (*at)
        at = &(*at)->next;
    *f = (struct call_filter){ ops, c, NULL };
    *at = f;
}

void call_next_head(struct call_filter *f, struct answer *a)
{
    struct call *c = f->call;
    while ((f = f->next))
        if (f->ops->head) {
            f->ops->head(f, a);
            return;
        }
    send_head(c, a);
}

bool call_next_body(struct call_filter *f, const char *p, size_t len)
{
    return f->next ? f->next->ops->body(f->next, p, len) : send_body(f->call, p, len);
}

void call_next_end(struct call_filter *f, struct slice trailers)
{
    if (f->next)
        f->next->ops->end(f->next, trailers);
    else
        finish(f->call, trailers);
}

void call_reply(struct call *c, unsigned status, const char *fields, struct slice body)
{
    struct answer a = { .status = status, .own = true, .body_len = (int64_t)body.len };
    const char *why;
    for (const char *q = fields, *end = fields + strlen(fields); q && q < end;) {
        struct slice name, value;
        q = http_field(q, end, &name, &value, &why);
        if (q)
            fields_add(&a.fields, name, value);
    }
    call_head(c, &a);
    call_body(c, body.p, body.len);
    call_done(c, (struct slice){ NULL, 0 });
}

static const struct problem_kind problems[] = {
    { 400, "urn:firn:problem:bad-request", "Bad request" },
    { 401, "urn:firn:problem:not-authenticated", "Not authenticated" },
    { 403, "urn:firn:problem:not-allowed", "Not allowed" },
    { 404, "urn:firn:problem:no-route", "No route" },
    { 405, "urn:firn:problem:method-not-allowed", "Method not allowed" },
    { 413, "urn:firn:problem:too-large", "Too large" },
    { 415, "urn:firn:problem:unsupported-encoding", "Unsupported content encoding" },
    { 429, "urn:firn:problem:too-many-requests", "Too many requests" },
    { 431, "urn:firn:problem:headers-too-large", "Headers too large" },
    { 502, "urn:firn:problem:bad-gateway", "Bad gateway" },
    { 503, "urn:firn:problem:unavailable", "Service unavailable" },
    { 504, "urn:firn:problem:gateway-timeout", "Gateway timeout" },
    { 500, "urn:firn:problem:internal", "Internal error" },
};

void call_problem(struct call *c, unsigned status, const char *detail)
{
    call_problem_with(c, status, "", detail);
}

void call_problem_with(struct call *c, unsigned status, const char *more, const char *detail)
{
    char fields[PROBLEM_FIELDS_BUF];
    struct buf b;
    size_t i = 0;
    while (i + 1 < sizeof problems / sizeof problems[0] && problems[i].status != status)
        i++;
    buf_init(&b, 4096);
    problem_fields(&problems[i], more, fields);
    problem_write(&b, &problems[i], detail);
    if (!c->why)
        c->why = detail;
    call_reply(c, problems[i].status, fields, (struct slice){ b.p, b.len });
    buf_done(&b);
}

/* --- the edge's calls --- */

static void on_request(void *ctx, struct edge_request *q)
{
    call_begin(ctx, q);
}

static bool on_body(void *ctx, struct edge_request *q, const char *p, size_t len)
{
    struct call *c = q->user;
    (void)ctx;
    if (!c) /* it was answered; the rest is of no use */
        return true;
    c->bytes_in += len;
    if (c->capture)
        capture_body(c, p, len);
    return c->collected ? collect_more(c, p, len) : forward_body(c, p, len);
}

static void on_body_end(void *ctx, struct edge_request *q)
{
    struct call *c = q->user;
    (void)ctx;
    if (c && c->collected)
        collect_end(c);
    else if (c)
        forward_body_end(c);
}

static void on_writable(void *ctx, struct edge_request *q)
{
    (void)ctx;
    if (q->user)
        forward_writable(q->user);
}

static void on_gone(void *ctx, struct edge_request *q, unsigned status, const char *why)
{
    struct call *c = q->user;
    (void)ctx;
    if (!c)
        return;
    if (!c->status)
        c->status = status ? status : 499;
    char *text = call_text(c, strlen(why));
    call_end(c, text ? strcpy(text, why) : "the client went away");
}

static void on_refused(void *ctx, const char *address, unsigned status, const char *why)
{
    struct service_ctx *w = ctx;
    /* 501 and 505 are what scanners get: mistakes of clients, that must wake nobody. */
    if (status)
        latency__more(&w->status[status == 503 ? 5 : 4], 1);
    access_log_refused(w, address, status, why);
}

static bool on_trusts(void *ctx, const struct sockaddr *peer)
{
    const struct service_ctx *w = ctx;
    return plan_trusts(w->view->plan, peer);
}

const struct edge_calls worker_calls = {
    .request = on_request,
    .body = on_body,
    .body_end = on_body_end,
    .writable = on_writable,
    .gone = on_gone,
    .trusts = on_trusts,
    .refused = on_refused,
};
