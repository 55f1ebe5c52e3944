/*
 * The link `json`: bodies are collected up to json_max_bytes, changed by json_map.h, and sent on
 * with their new length.
 *
 * A rule that drops a member may protect something, so nothing passes around it. A request's body
 * must be JSON whatever its Content-Type says: 400, 413 or 415 otherwise. An answer is changed if
 * it says that it is JSON or says nothing; if it then cannot be changed (not JSON after all, too
 * large, compressed, a part of a whole), the client gets 502. Answers of other types pass as they
 * are. The head of an answer waits for its body, so an answer that breaks off can still be tried
 * again. Tested in tests/integration/gateway_bodies.py.
 */
#include "proxy/bodies.h"
#include "proxy/collect.h"
#include "proxy/held.h"
#include "proxy/worker.h"

#include <stdlib.h>

enum { GROWTH = 4 }; /* of a body by renaming */

void body_changed(struct call *c, struct fields *f)
{
    static const char *const digests[] = { "Content-MD5", "Digest", "Content-Digest", "Repr-Digest",
                                           "Accept-Ranges" };
    for (size_t i = 0; i < sizeof digests / sizeof digests[0]; i++)
        fields_remove(f, slice_of(digests[i]));
    struct slice etag = fields_get(f, "etag");
    if (!etag.p || (etag.len > 1 && etag.p[0] == 'W'))
        return;
    char *weak = call_text(c, etag.len + 2);
    fields_remove(f, slice_of("ETag"));
    if (!weak)
        return;
    memcpy(weak, "W/", 2);
    memcpy(weak + 2, etag.p, etag.len);
    fields_add(f, slice_of("ETag"), (struct slice){ weak, etag.len + 2 });
}

/* --- requests --- */

static const char *keep(struct call *c, const char *text)
{
    struct slice s = call_copy(c, slice_of(text));
    return s.p ? s.p : "the body cannot be changed";
}

static void on_whole(struct call *c)
{
    const struct json_rules *j = &c->rules->request_json;
    struct buf out, *in = &c->collected->bytes;
    struct firn_diag d = { 0, "" };
    if (in->len == 0) {
        call_resume(c);
        return;
    }
    buf_init(&out, GROWTH * in->max);
    int e = json_map(j->v, j->n, in->p, in->len, &out, &d);
    if (e == 0) {
        buf_done(in);
        *in = out;
        held_set(c->worker, &c->collected->held, in->len);
        call_resume(c);
        return;
    }
    buf_done(&out);
    if (e == FIRN_EFORMAT)
        call_problem(c, 400, keep(c, d.text[0] ? d.text : "the body is not JSON"));
    else
        call_problem(c, 413, "the body is too large when its members are renamed");
}

static bool encoded(const struct fields *f)
{
    struct slice v = fields_get(f, "content-encoding");
    return v.p && !http_word_is(v, "identity");
}

/* --- answers --- */

struct json_filter {
    struct call_filter f;
    struct answer a; /* the head, until the body is there */
    struct buf in, out;
    struct alarm give_up;
    size_t held;       /* of `in` and `out`, by held.h */
    const char *wrong; /* NULL: not yet */
    bool busy;         /* it is that too much is held */
};

static void fail(struct json_filter *j)
{
    struct call *c = j->f.call;
    c->why = j->wrong;
    call_problem(c, j->busy ? 503 : 502, j->wrong); /* frees j */
}

static void on_give_up(struct alarm *a)
{
    fail((struct json_filter *)((char *)a - offsetof(struct json_filter, give_up)));
}

/* From within the source's call: later, and no more bytes until then. */
static bool fail_soon(struct json_filter *j, const char *wrong)
{
    j->wrong = wrong;
    /* Without memory for the alarm the rest is read and dropped. */
    return alarm_set(j->f.call->worker->loop, &j->give_up, 0, on_give_up) != 0;
}

static void filter_head(struct call_filter *f, struct answer *a)
{
    struct json_filter *j = (struct json_filter *)f;
    struct call *c = f->call;
    j->a = *a;
    j->a.reason = a->reason.p ? call_copy(c, a->reason) : a->reason;
    for (size_t i = 0; i < a->fields.n; i++) {
        j->a.fields.v[i].name = call_copy(c, a->fields.v[i].name);
        j->a.fields.v[i].value = call_copy(c, a->fields.v[i].value);
        if (!j->a.fields.v[i].name.p || !j->a.fields.v[i].value.p)
            j->a.fields.failed = true;
    }
    if (j->a.fields.failed)
        fail_soon(j, "the gateway is out of memory");
    else if (encoded(&a->fields))
        fail_soon(j, "the service's answer is compressed, though the gateway asked for plain JSON");
    else if (a->status == 206)
        fail_soon(j, "the service answered a part, though the gateway asked for the whole");
    else if (a->body_len > (int64_t)j->in.max)
        fail_soon(j, "the service's answer is larger than json_max_bytes");
}

static bool filter_body(struct call_filter *f, const char *p, size_t len)
{
    struct json_filter *j = (struct json_filter *)f;
    if (j->wrong)
        return !j->give_up.prev;
    j->busy = !held_take(f->call->worker, &j->held, len);
    if (j->busy)
        return fail_soon(j, HELD_REFUSED);
    buf_add(&j->in, p, len);
    return j->in.failed ? fail_soon(j, "the service's answer is larger than json_max_bytes") : true;
}

static void filter_end(struct call_filter *f, struct slice trailers)
{
    struct json_filter *j = (struct json_filter *)f;
    const struct json_rules *rules = &f->call->rules->answer_json;
    struct firn_diag d = { 0, "" };
    (void)trailers; /* they may say something about a body that is another one now */
    buf_init(&j->out, GROWTH * j->in.max);
    if (!j->wrong && j->in.len > 0 &&
        json_map(rules->v, rules->n, j->in.p, j->in.len, &j->out, &d) != 0)
        j->wrong = "the service's answer is not JSON that the gateway can change";
    if (j->wrong) {
        fail(j);
        return;
    }
    held_set(f->call->worker, &j->held, j->in.len + j->out.len);
    j->a.body_len = (int64_t)j->out.len;
    call_next_head(f, &j->a);
    if (j->out.len > 0)
        call_next_body(f, j->out.p, j->out.len);
    call_next_end(f, (struct slice){ NULL, 0 });
}

static void filter_reset(struct call_filter *f)
{
    struct json_filter *j = (struct json_filter *)f;
    alarm_clear(&j->give_up);
    buf_done(&j->in);
    buf_done(&j->out);
    held_set(f->call->worker, &j->held, 0);
    j->wrong = NULL;
    j->busy = false;
}

static const struct call_filter_ops ops = { filter_head, filter_body, filter_end, filter_reset };

static bool is_json(const struct fields *f)
{
    struct slice type = fields_get(f, "content-type");
    if (!type.p)
        return true;
    const char *semicolon = type.len ? memchr(type.p, ';', type.len) : NULL;
    size_t n = semicolon ? (size_t)(semicolon - type.p) : type.len;
    while (n > 0 && (type.p[n - 1] == ' ' || type.p[n - 1] == '\t'))
        n--;
    struct slice end = { type.p + (n > 5 ? n - 5 : 0), n > 5 ? 5 : n };
    return http_word_is((struct slice){ type.p, n }, "application/json") ||
           http_word_is((struct slice){ type.p, n }, "text/json") || http_word_is(end, "+json");
}

/* --- the link --- */

enum link_result json_request(struct call *c)
{
    struct fields *f = &c->request;
    if (c->rules->answer_json.n > 0) {        /* what comes must be whole and readable */
        c->json = calloc(1, sizeof *c->json); /* now: an answer must not pass for lack of memory */
        if (!c->json) {
            call_problem(c, 503, "the gateway is out of memory");
            return LINK_DONE;
        }
        fields_remove(f, slice_of("Accept-Encoding"));
        fields_remove(f, slice_of("Range"));
        fields_remove(f, slice_of("If-Range"));
    }
    if (c->rules->request_json.n == 0 || call_body_done(c))
        return LINK_NEXT;
    if (encoded(f)) {
        call_problem(c, 415, "send the body without Content-Encoding: the gateway changes it");
        return LINK_DONE;
    }
    body_changed(c, f);
    return collect_begin(c, c->route->json_max_bytes, on_whole);
}

void json_answer(struct call *c, struct answer *a)
{
    if (c->rules->answer_json.n == 0 || a->own || a->status == 101 || a->status == 204 ||
        !is_json(&a->fields))
        return;
    body_changed(c, &a->fields);
    if (a->status == 304 || slice_is(c->head->method, "HEAD")) {
        a->body_len = -1;
        return;
    }
    buf_init(&c->json->in, c->route->json_max_bytes);
    call_filter(c, &c->json->f, &ops);
}

void json_done(struct call *c)
{
    free(c->json);
}
