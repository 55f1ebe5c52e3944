/*
 * Requests and responses as HTTP/1.1. Tested in tests/unit/client/answers.c.
 * Tickets are requested by POST: a proxy may repeat a GET, and a number of a gapless sequence that
 * no client gets is a hole.
 */
#include "client/http1.h"
#include "id/bytes.h"
#include "wire/http_response.h"
#include "wire/json_read.h"
#include "wire/text.h"
#include "wire/url.h"

#include <stdio.h>
#include <string.h>

#define RUNS_TYPE "application/vnd.firn.runs"

/* --- writing --- */

/* A list needs ?n=, and is requested as runs, the shortest form. */
static void put_mint(struct text *w, const struct client_opts *o, const struct request *q)
{
    bool ticket = o->seq[0] != '\0', many = q->kind == REQUEST_NUMBERS && q->n > 1;
    if (ticket)
        text_addf(w, "POST /v1/sequences/%s/next", o->seq);
    else
        text_addf(w, "GET /v1/ids/%s", o->kind);
    if (many)
        text_addf(w, "?n=%llu", (unsigned long long)q->n);
    if (q->shard)
        text_addf(w, "%cshard=%u", many ? '&' : '?', q->shard);
    text_addf(w, " HTTP/1.1\r\nAccept: %s\r\n",
              many ? RUNS_TYPE ", text/plain;q=0.5" : "text/plain");
    if (ticket)
        text_addf(w, "Content-Length: 0\r\n");
    if (q->key[0])
        text_addf(w, "Idempotency-Key: %s\r\n", q->key);
}

size_t http1_write(const struct client_opts *o, const struct server_name *to,
                   const struct request *q, char *out, size_t cap)
{
    static const char *const methods[] = {
        [REQUEST_GET] = "GET", [REQUEST_POST] = "POST", [REQUEST_DELETE] = "DELETE"
    };
    char host[HOST_PORT_BUF];
    struct text w = { .p = out, .cap = cap };
    if (request_is_http(q)) {
        text_addf(&w, "%s %s HTTP/1.1\r\nAccept: application/json\r\n", methods[q->kind], q->path);
        if (q->kind == REQUEST_POST)
            text_addf(&w, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                      strlen(q->body));
    } else {
        put_mint(&w, o, q);
    }
    text_addf(&w, "Host: %s\r\n", host_port_write(to->host, to->port, host));
    if (o->token[0])
        text_addf(&w, "Authorization: Bearer %s\r\n", o->token);
    if (q->id[0])
        text_addf(&w, "X-Request-ID: %s\r\n", q->id);
    if (q->traceparent[0])
        text_addf(&w, "traceparent: %s\r\n", q->traceparent);
    text_addf(&w, "\r\n%s", q->kind == REQUEST_POST ? q->body : "");
    return w.truncated ? 0 : w.len;
}

/* --- reading --- */

/* Triples of first, step, count. */
static int read_runs(const char *p, size_t len, uint64_t want, struct runs *out)
{
    if (len % 24 != 0)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < len; i += 24) {
        struct run run = { load_be64(p + i), load_be64(p + i + 8), load_be64(p + i + 16) };
        uint64_t span;
        if (run.count == 0 || run.count > want - out->numbers || run.step == 0 ||
            __builtin_mul_overflow(run.step, run.count - 1, &span) ||
            __builtin_add_overflow(span, run.first, &span))
            return FIRN_EFORMAT;
        int r = runs_add_run(out, run);
        if (r)
            return r;
    }
    return 0;
}

static int read_lines(const char *p, size_t len, uint64_t want, struct runs *out)
{
    const char *end = p + len;
    while (p < end) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        uint64_t n;
        stop = stop ? stop : end;
        if (out->numbers == want ||
            http_u64((struct slice){ p, (size_t)(stop - p) }, UINT64_MAX, &n) != 0)
            return FIRN_EFORMAT;
        int r = runs_add(out, n);
        if (r)
            return r;
        p = stop + 1;
    }
    return 0;
}

static void copy_text(struct response *out, const char *p, size_t len)
{
    while (len && (p[len - 1] == '\n' || p[len - 1] == '\r'))
        len--;
    if (len >= sizeof out->text)
        len = sizeof out->text - 1;
    memcpy(out->text, p, len);
    out->text[len] = '\0';
}

/* The status, and the "detail" of problem+json if there is one. */
static void copy_detail(struct response *out, struct slice body, unsigned status)
{
    struct json_reader j;
    char detail[1024];
    json_start(&j, body.p, body.len, NULL);
    if (json_object(&j) != 0 || json_find(&j, "detail") != 1 ||
        json_string(&j, detail, sizeof detail, NULL) != 0) {
        snprintf(out->text, sizeof out->text, "%u", status);
        return;
    }
    for (char *c = detail; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    snprintf(out->text, sizeof out->text, "%u: %.300s", status, detail);
}

static void read_refusal(const struct http_response *h, struct response *out)
{
    static const struct {
        unsigned status;
        int error;
        bool again;
    } rows[] = {
        { 400, FIRN_EINVAL, false },  { 401, FIRN_EAUTH, false },   { 403, FIRN_EAUTH, false },
        { 404, FIRN_ENOENT, false },  { 406, FIRN_ENOTSUP, false }, { 409, FIRN_EOVERFLOW, false },
        { 422, FIRN_EREUSED, false }, { 429, FIRN_EAGAIN, true },   { 503, FIRN_EAGAIN, true },
    };
    out->error = h->status >= 500 ? FIRN_EIO : FIRN_EINVAL;
    out->again = h->status >= 500;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == h->status) {
            out->error = rows[i].error;
            out->again = rows[i].again;
        }
    /* A server that is not ready refuses all clients; a slow store is another error. */
    out->busy = h->status == 503 && memmem(h->body.p, h->body.len, "not-ready", 9);
    if (h->status == 503 && memmem(h->body.p, h->body.len, "no-slot", 7)) {
        out->error = FIRN_ENOSLOT;
        out->busy = false;
    }
    if (h->status == 400 && memmem(h->body.p, h->body.len, SHARD_REFUSED, sizeof SHARD_REFUSED - 1))
        out->error = FIRN_ERANGE;
    copy_detail(out, h->body, h->status);
}

long http1_read(char *p, size_t len, const struct request *q, struct response *out)
{
    struct http_response h;
    ssize_t used = http_response_read(p, len, false, &h);
    if (used == FIRN_EAGAIN && h.status && h.framing == FRAMED_BY_CLOSE)
        return FIRN_EFORMAT; /* firnd, and the proxies in front of it, frame what they send */
    if (used < 0)
        return used;
    out->close = h.close;
    int r = 0;
    if (h.status > 299) {
        read_refusal(&h, out);
    } else if (q->kind == REQUEST_NUMBERS) {
        bool runs = slice_is(http_response_header(&h, "content-type"), RUNS_TYPE);
        r = runs ? read_runs(h.body.p, h.body.len, q->n, &out->numbers)
                 : read_lines(h.body.p, h.body.len, q->n, &out->numbers);
        if (r == 0 && out->numbers.numbers == 0)
            r = FIRN_EFORMAT;
    } else if (q->kind == REQUEST_TEXT) {
        copy_text(out, h.body.p, h.body.len);
    } else {
        out->body = h.body.p;
        out->body_len = h.body.len;
    }
    return r ? r : used;
}
