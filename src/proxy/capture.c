/* Requests and answers for the access log (capture.h). Tested in
 * tests/integration/gateway_watch.py. */
#include "proxy/capture.h"
#include "proxy/gzip.h"
#include "proxy/redact.h"
#include "wire/json_write.h"

#include <stdlib.h>

enum { FIELDS_SHOWN_MAX = 64, VALUE_SHOWN_MAX = 512, TEXT_FACTOR = 4 };

struct part { /* a body */
    struct buf text;
    uint64_t len; /* of the whole */
    bool readable, json, form;
};

struct capture {
    struct call_filter filter; /* of the answer */
    struct part request, answer;
    struct buf answer_fields; /* "Name: value" as JSON strings, with commas */
};

/* --- what is kept --- */

static bool has_word(struct slice text, const char *word)
{
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.len; i++)
        if (http_same_word(text.p + i, word, n))
            return true;
    return false;
}

static void part_type(struct part *p, struct slice type, struct slice encoding)
{
    static const char *const texts[] = { "text/",
                                         "application/json",
                                         "application/xml",
                                         "application/javascript",
                                         "application/x-www-form-urlencoded",
                                         "application/x-ndjson",
                                         "application/graphql" };
    const bool suffix = has_word(type, "+json") || has_word(type, "+xml");
    p->readable = type.p && (!encoding.p || http_word_is(encoding, "identity")) &&
                  (suffix || gzip_type_in(type, texts, sizeof texts / sizeof texts[0]));
    p->json = has_word(type, "json");
    p->form = has_word(type, "form-urlencoded");
}

static void part_add(struct part *p, size_t max, const char *text, size_t len)
{
    size_t room = p->text.len < max ? max - p->text.len : 0;
    p->len += len;
    if (p->readable)
        buf_add(&p->text, text, len < room ? len : room);
}

static struct redact rules_of(const struct call *c)
{
    return (struct redact){ &c->route->log_redact };
}

/* A value without secrets: the query of a URL is looked at, too. */
static void add_field(const struct redact *r, struct buf *b, struct slice name, struct slice value)
{
    struct buf text;
    const char *query = value.len ? memchr(value.p, '?', value.len) : NULL;
    if (!query && value.len) /* of an answer to a login: "/#access_token=..." */
        query = memchr(value.p, '#', value.len);
    buf_init(&text, 8 * (VALUE_SHOWN_MAX + (size_t)HTTP_HEAD_BYTES_MAX));
    buf_add(&text, name.p, name.len);
    buf_add_str(&text, ": ");
    if (redact_field(r, name)) {
        buf_add_str(&text, REDACTED);
    } else if (query && memmem(value.p, (size_t)(query - value.p), "/", 1)) {
        buf_add(&text, value.p, (size_t)(query + 1 - value.p));
        redact_query(r, (struct slice){ query + 1, value.len - (size_t)(query + 1 - value.p) },
                     &text);
    } else {
        buf_add(&text, value.p, value.len);
    }
    if (!text.failed)
        json_bytes(b, NULL, text.p, text.len < VALUE_SHOWN_MAX ? text.len : VALUE_SHOWN_MAX);
    buf_done(&text);
}

/* --- the link --- */

enum link_result capture_request(struct call *c)
{
    const struct config_route *r = c->route;
    if (!r->log_headers && r->log_body_bytes == 0)
        return LINK_NEXT;
    struct capture *k = calloc(1, sizeof *k);
    if (!k)
        return LINK_NEXT;
    buf_init(&k->request.text, CAPTURE_BODY_MAX);
    buf_init(&k->answer.text, CAPTURE_BODY_MAX);
    buf_init(&k->answer_fields, CAPTURE_BODY_MAX);
    part_type(&k->request, http_head_value(c->head, "content-type"),
              http_head_value(c->head, "content-encoding"));
    c->capture = k;
    return LINK_NEXT;
}

void capture_body(struct call *c, const char *p, size_t len)
{
    part_add(&c->capture->request, c->route->log_body_bytes, p, len);
}

static bool filter_body(struct call_filter *f, const char *p, size_t len)
{
    struct capture *k = (struct capture *)f;
    part_add(&k->answer, f->call->route->log_body_bytes, p, len);
    return call_next_body(f, p, len);
}

static void filter_end(struct call_filter *f, struct slice trailers)
{
    call_next_end(f, trailers);
}

static void filter_free(struct call_filter *f)
{
    (void)f; /* it lives as long as what it keeps */
}

void capture_answer(struct call *c, struct answer *a)
{
    static const struct call_filter_ops ops = { .body = filter_body,
                                                .end = filter_end,
                                                .free = filter_free };
    struct capture *k = c->capture;
    if (!k)
        return;
    const struct redact r = rules_of(c);
    k->answer_fields.len = k->answer.text.len = 0; /* of an answer that was given up */
    k->answer.len = 0;
    if (c->route->log_headers) {
        json_begin(&k->answer_fields, NULL, '[');
        for (size_t i = 0; i < a->fields.n && i < FIELDS_SHOWN_MAX; i++)
            add_field(&r, &k->answer_fields, a->fields.v[i].name, a->fields.v[i].value);
        json_end(&k->answer_fields, ']');
    }
    part_type(&k->answer, fields_get(&a->fields, "content-type"),
              fields_get(&a->fields, "content-encoding"));
    if (c->route->log_body_bytes > 0 && a->status != 101)
        call_filter(c, &k->filter, &ops);
}

/* --- the log --- */

/* Whether it looks like JSON, whatever its type says: curl -d sends a form. */
static bool is_json(const struct part *p)
{
    size_t i = 0;
    while (i < p->text.len && memchr(" \t\r\n", p->text.p[i], 4))
        i++;
    return p->json || (i < p->text.len && (p->text.p[i] == '{' || p->text.p[i] == '['));
}

static void write_part(const struct call *c, struct buf *b, const char *key, const char *key_cut,
                       const struct part *p)
{
    const struct redact r = rules_of(c);
    const struct slice text = { p->text.p, p->text.len };
    struct buf clean;
    if (p->len == 0 || !p->readable || p->text.failed)
        return;
    buf_init(&clean, TEXT_FACTOR * (size_t)CAPTURE_BODY_MAX);
    if (is_json(p))
        redact_json(&r, text, &clean);
    else if (p->form)
        redact_query(&r, text, &clean);
    else
        buf_add(&clean, text.p, text.len);
    if (!clean.failed) {
        json_bytes(b, key, clean.p, clean.len);
        if (p->len > p->text.len)
            json_bool(b, key_cut, true);
    }
    buf_done(&clean);
}

void capture_write(const struct call *c, struct buf *b)
{
    const struct capture *k = c->capture;
    const struct redact r = rules_of(c);
    const struct http_head *h = c->head;
    if (c->route->log_headers) {
        struct buf query;
        buf_init(&query, 8 * (size_t)HTTP_HEAD_BYTES_MAX);
        redact_query(&r, h->query, &query);
        if (h->query.p && !query.failed)
            json_bytes(b, "query", query.p ? query.p : "", query.len);
        buf_done(&query);
        json_begin(b, "request_headers", '[');
        for (size_t i = 0; i < h->headers && i < FIELDS_SHOWN_MAX; i++)
            add_field(&r, b, h->header[i].name, h->header[i].value);
        json_end(b, ']');
        if (k->answer_fields.len > 0 && !k->answer_fields.failed) {
            json_key(b, "answer_headers");
            buf_add(b, k->answer_fields.p, k->answer_fields.len);
        }
    }
    write_part(c, b, "request_body", "request_body_cut", &k->request);
    write_part(c, b, "answer_body", "answer_body_cut", &k->answer);
}

void capture_free(struct capture *k)
{
    if (!k)
        return;
    buf_done(&k->request.text);
    buf_done(&k->answer.text);
    buf_done(&k->answer_fields);
    free(k);
}
