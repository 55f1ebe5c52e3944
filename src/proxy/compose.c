/*
 * Composed answers. A part starts as soon as the parts whose values it needs are there, all others
 * at once; when all are over, or the deadline has passed, the answer is written. A part that failed
 * is absent from the shape, which makes null of it, and has an entry in `errors`. Tested in
 * tests/integration/gateway_compose.py.
 */
#include "proxy/compose.h"
#include "daemon/metrics.h"
#include "proxy/composition.h"
#include "proxy/gather.h"
#include "proxy/json_pick.h"
#include "proxy/path.h"
#include "proxy/worker.h"
#include "wire/json_write.h"
#include "wire/url.h"

#include <stdlib.h>

struct compose {
    struct call *c;
    const struct composition *what;
    struct gather gather;
    struct gather_part part[COMPOSITION_PARTS_MAX];
    struct slice value[COMPOSITION_PARTS_MAX]; /* the JSON of a part that is there */
    struct slice rest[COMPOSITION_REST_MAX];
    uint32_t started, ended; /* a bit per part */
    bool pumping;
};

/* --- values of targets --- */

static bool put_decoded(struct slice text, bool plus, struct buf *out)
{
    size_t len;
    char *to = buf_room(out, text.len + 1);
    if (!to || url_decode(text, plus, to, text.len + 1, &len) != 0)
        return false;
    buf_commit(out, len);
    return true;
}

static bool put_query(const struct call *c, struct slice want, struct buf *out)
{
    struct slice query = c->head->query, name, value;
    while (query.p && url_query_next(&query, &name, &value))
        if (name.len == want.len && memcmp(name.p, want.p, name.len) == 0)
            return value.p && put_decoded(value, true, out);
    return false;
}

static bool put_header(const struct call *c, struct slice want, struct buf *out)
{
    for (size_t i = 0; i < c->request.n; i++) {
        const struct http_header *h = &c->request.v[i];
        if (h->name.len == want.len && strncasecmp(h->name.p, want.p, want.len) == 0) {
            if (h->value.len > 0)
                buf_add(out, h->value.p, h->value.len);
            return true;
        }
    }
    return false;
}

static bool put_part(struct slice value, struct slice path, struct buf *out)
{
    while (value.p && path.len > 0) {
        char name[TEMPLATE_BYTES_MAX];
        const char *dot = memchr(path.p, '.', path.len);
        size_t n = dot ? (size_t)(dot - path.p) : path.len;
        memcpy(name, path.p, n);
        name[n] = '\0';
        value = json_pick(value, name);
        n += dot != NULL;
        path = (struct slice){ path.p + n, path.len - n };
    }
    return value.p && json_as_text(value, out);
}

/* A parameter is the client's to leave out; without any other value a part would ask for more than
 * it is meant to, such as everybody's orders. */
static enum template_value put_value(void *user, struct slice name, struct buf *out)
{
    const struct compose *m = user;
    struct composition_source s;
    bool there = false;
    if (composition_source(m->what, name, &s) != 0)
        return TEMPLATE_MISSING;
    switch (s.from) {
    case COMPOSITION_QUERY:
        return put_query(m->c, s.name, out) ? TEMPLATE_THERE : TEMPLATE_ABSENT;
    case COMPOSITION_REST:
        there = put_decoded(m->rest[s.index], false, out);
        break;
    case COMPOSITION_HEADER:
        there = put_header(m->c, s.name, out);
        break;
    case COMPOSITION_PART:
        there = put_part(m->value[s.index], s.name, out);
        break;
    }
    return there ? TEMPLATE_THERE : TEMPLATE_MISSING;
}

/* --- the answer --- */

static void write_errors(const struct compose *m, struct buf *b)
{
    bool begun = false;
    for (size_t i = 0; i < m->what->n; i++) {
        const struct gather_part *p = &m->part[i];
        if (!p->why)
            continue;
        if (!begun)
            json_begin(b, "errors", '[');
        begun = true;
        json_begin(b, NULL, '{');
        json_text(b, "part", m->what->part[i].name);
        json_count(b, "status", p->status);
        json_text(b, "message", p->why);
        json_end(b, '}');
    }
    if (begun)
        json_end(b, ']');
}

static void write_parts(const struct compose *m, struct buf *b)
{
    for (size_t i = 0; i < m->what->n; i++) {
        json_key(b, m->what->part[i].name);
        if (m->value[i].p)
            buf_add(b, m->value[i].p, m->value[i].len);
        else
            buf_add_str(b, "null");
    }
}

/* A client's own mistake stays one; all else is the gateway's side. */
static unsigned status_of(unsigned part)
{
    return part == 400 || part == 401 || part == 403 || part == 404 || part == 429 || part == 503 ||
                   part == 504
               ? part
               : 502;
}

/* The call is gone afterwards. */
static void answer(struct compose *m)
{
    struct call *c = m->c;
    struct buf b;
    for (size_t i = 0; i < m->what->n; i++)
        if (m->what->part[i].required && m->part[i].why) {
            call_problem(c, status_of(m->part[i].status), m->part[i].why);
            return;
        }
    buf_init(&b, m->what->conf->answer_bytes);
    json_begin(&b, NULL, '{');
    if (m->what->shape.child)
        shape_write(&m->what->shape, m->value, &b);
    else
        write_parts(m, &b);
    write_errors(m, &b);
    json_end(&b, '}');
    buf_add(&b, "\n", 1);
    if (b.failed)
        call_problem(c, 502, "the composed answer is too large");
    else
        call_reply(c, 200, gather_fields(&m->gather), (struct slice){ b.p, b.len });
    buf_done(&b);
}

/* --- parts --- */

static void fail(struct gather_part *p, unsigned status, const char *why)
{
    p->status = status;
    p->why = why;
}

static void start(struct compose *m, size_t i)
{
    const struct composition_part *what = &m->what->part[i];
    const struct plan *plan = m->c->view->plan;
    struct firn_diag d = { 0, "" };
    struct buf target;
    buf_init(&target, 2 * TEMPLATE_TARGET_MAX);
    m->started |= UINT32_C(1) << i;
    int e = template_write(&what->target, put_value, m, &target, &d);
    struct slice text = call_copy(m->c, (struct slice){ target.p, target.len });
    buf_done(&target);
    if (e == FIRN_ENOENT)
        fail(&m->part[i], 400, "a value that it needs is missing");
    else if (e)
        fail(&m->part[i], 400, "a value that it needs cannot stand in a path, or is too long");
    else if (!text.p)
        fail(&m->part[i], 503, "the gateway is out of memory");
    if (m->part[i].why)
        m->ended |= UINT32_C(1) << i;
    else
        gather_start(&m->gather, &m->part[i], &plan->backends[what->backend], text);
}

/* Starts what can start, and answers when all is over. */
static void pump(struct compose *m)
{
    const uint32_t all = (UINT32_C(1) << m->what->n) - 1;
    uint32_t before;
    if (m->pumping)
        return;
    m->pumping = true;
    do {
        before = m->started;
        for (size_t i = 0; i < m->what->n; i++)
            if (!(m->started >> i & 1) && !(m->what->part[i].needs & ~m->ended))
                start(m, i);
    } while (before != m->started);
    m->pumping = false;
    if (m->ended == all)
        answer(m);
}

static void on_over(struct gather *g, struct gather_part *p)
{
    struct compose *m = (struct compose *)((char *)g - offsetof(struct compose, gather));
    size_t i = (size_t)(p - m->part);
    m->ended |= UINT32_C(1) << i;
    if (!p->why && p->status != 204) {
        m->value[i] = json_whole(p->body.p, p->body.len);
        if (!m->value[i].p)
            fail(p, 502, "the service's answer is not JSON");
    }
    pump(m);
}

static void on_deadline(struct alarm *a)
{
    struct call *c = (struct call *)((char *)a - offsetof(struct call, deadline));
    struct compose *m = c->compose;
    for (size_t i = 0; i < m->what->n; i++) {
        if (m->ended >> i & 1)
            continue;
        if (m->part[i].c)
            gather_stop(&m->part[i], 504, "it was not there in time");
        else
            fail(&m->part[i], 504, "it was not there in time");
    }
    answer(m);
}

enum link_result compose_request(struct call *c)
{
    if (!c->route->compose)
        return LINK_NEXT;
    const struct composition *what = plan_composition(c->view->plan, c->route);
    if (!slice_is(c->head->method, "GET") && !slice_is(c->head->method, "HEAD")) {
        call_problem_with(c, 405, "Allow: GET, HEAD\r\n",
                          "a composed answer can be read alone: GET or HEAD");
        return LINK_DONE;
    }
    struct slice rest[COMPOSITION_REST_MAX];
    size_t prefix = path_taken(c->path, slice_of(c->route->path));
    if (prefix > 0 && c->path.p[prefix - 1] == '/')
        prefix--;
    if (!composition_rest(what, (struct slice){ c->path.p + prefix, c->path.len - prefix }, rest)) {
        call_problem(c, 404, "nothing is composed for this path");
        return LINK_DONE;
    }
    struct compose *m = calloc(1, sizeof *m);
    const uint32_t ms = c->route->timeout_ms ? c->route->timeout_ms : what->conf->timeout_ms;
    if (!m || alarm_set(c->worker->loop, &c->deadline, ms, on_deadline) != 0) {
        free(m);
        call_problem(c, 503, "the gateway is out of memory");
        return LINK_DONE;
    }
    c->compose = m;
    m->c = c;
    m->what = what;
    memcpy(m->rest, rest, sizeof rest);
    gather_init(&m->gather, c, what->conf->part_bytes, on_over);
    latency__more(&c->worker->composed, 1);
    pump(m);
    return LINK_WAIT;
}

void compose_done(struct call *c)
{
    struct compose *m = c->compose;
    if (!m)
        return;
    for (size_t i = 0; i < m->what->n; i++)
        gather_part_done(&m->part[i]);
    free(m);
    c->compose = NULL;
}

void compose_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    uint64_t composed = 0, parts[2] = { 0, 0 };
    (void)p;
    for (size_t i = 0; i < a->workers_n; i++) {
        composed += __atomic_load_n(&a->workers[i].composed, __ATOMIC_RELAXED);
        for (size_t k = 0; k < 2; k++)
            parts[k] += __atomic_load_n(&a->workers[i].parts[k], __ATOMIC_RELAXED);
    }
    metric(m, "firn_proxy_composed_total", "Requests that were answered from parts.",
           (double)composed);
    metric_head(m, "firn_proxy_parts_total", "Requests to services as parts of others, by result.");
    metric_value(m, "firn_proxy_parts_total", "result", "ok", parts[0]);
    metric_value(m, "firn_proxy_parts_total", "result", "failed", parts[1]);
}
