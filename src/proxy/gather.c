/* Parts of a call. Tested in tests/integration/gateway_compose.py. */
#include "proxy/gather.h"
#include "proxy/held.h"
#include "proxy/worker.h"

static const char *const own_trouble[] = { [0] = "the gateway refused the request",
                                           [2] = "the service's answer broke off or is not HTTP",
                                           [3] = "the service is unavailable",
                                           [4] = "the service did not answer in time" };

/* What a status says to a client; NULL: the body counts. */
static const char *trouble(unsigned status, bool own)
{
    if (own && status >= 400)
        return own_trouble[status >= 502 && status <= 504 ? status % 10 : 0];
    return status >= 500   ? "the service failed"
           : status >= 400 ? "the service refused the request"
           : status >= 300 ? "the service answered with a redirection"
                           : NULL;
}

void gather_drop(struct gather_part *p)
{
    if (p->held)
        held_set(p->g->outer->worker, &p->held, 0);
    buf_done(&p->body);
}

static void over(struct gather_part *p)
{
    p->c = NULL;
    alarm_clear(&p->stop);
    if (p->busy) {
        p->status = 503;
        p->why = HELD_REFUSED;
    } else if (p->too_large || p->body.failed) {
        p->status = 502;
        p->why = "the service's answer is too large";
    }
    if (p->why && p->status < 300)
        p->status = 502;
    if (p->why)
        gather_drop(p);
    struct service_ctx *w = p->g->outer->worker;
    latency__more(&w->parts[p->why != NULL], 1);
    p->g->over(p->g, p);
}

/* Not inside of the call's own callback. */
static void on_stop(struct alarm *a)
{
    struct gather_part *p = (struct gather_part *)((char *)a - offsetof(struct gather_part, stop));
    call_cancel(p->c);
    over(p);
}

static void give_up(struct gather_part *p)
{
    if (p->too_large)
        return;
    p->too_large = true;
    /* Without memory for the alarm its bytes are dropped until its end. */
    p->stopping = alarm_set(p->g->outer->worker->loop, &p->stop, 0, on_stop) == 0;
}

static void on_head(void *to, const struct answer *a)
{
    struct gather_part *p = to;
    struct slice coding = fields_get(&a->fields, "content-encoding");
    p->status = a->status;
    p->own = a->own;
    p->why = trouble(a->status, a->own);
    if (!p->why && coding.p && !http_word_is(coding, "identity"))
        p->why = "the service's answer is compressed, unasked";
    if (!p->why && a->body_len > (int64_t)p->body.max)
        give_up(p);
}

static bool on_body(void *to, const char *text, size_t len)
{
    struct gather_part *p = to;
    if (!p->why && !p->too_large) {
        p->busy = !held_take(p->g->outer->worker, &p->held, len);
        if (!p->busy)
            buf_add(&p->body, text, len);
    }
    if (p->busy || p->body.failed)
        give_up(p);
    return !p->stopping;
}

static void on_end(void *to, struct slice trailers)
{
    (void)trailers;
    over(to);
}

static void on_abort(void *to, const char *why)
{
    struct gather_part *p = to;
    (void)why;
    p->status = 502;
    p->why = "the service's answer broke off";
    over(p);
}

static const struct call_sink sink = { on_head, on_body, on_end, on_abort };

void gather_init(struct gather *g, struct call *outer, size_t part_bytes,
                 void (*ended)(struct gather *g, struct gather_part *p))
{
    g->outer = outer;
    g->part_bytes = part_bytes;
    g->over = ended;
    g->head.method = slice_of("GET");
    g->head.host = outer->head->host;
    g->head.minor = 1;
    g->head.headers = 0;
}

bool gather_mints(const struct backend *b, struct slice target)
{
    const char *end = memchr(target.p, '?', target.len);
    size_t n = end ? (size_t)(end - target.p) : target.len;
    return b->conf->mints || path_mints((struct slice){ target.p, n });
}

const char *gather_fields(const struct gather *g)
{
    return g->minted ? "Content-Type: application/json\r\nCache-Control: no-store\r\n"
                     : "Content-Type: application/json\r\n";
}

void gather_start(struct gather *g, struct gather_part *p, struct backend *b, struct slice target)
{
    static const char *const not_ours[] = {
        "accept",        "accept-encoding",   "content-type",       "content-encoding", "range",
        "if-match",      "if-modified-since", "if-none-match",      "if-range",         "expect",
        "content-range", "content-language",  "if-unmodified-since"
    };
    struct call *outer = g->outer;
    p->g = g;
    buf_init(&p->body, g->part_bytes);
    outer->parts++;
    g->minted |= gather_mints(b, target);
    struct call *c = call_inner(outer, "breaker", &g->head, &sink, p);
    if (!c) {
        p->status = 503;
        p->why = "the gateway is out of memory";
        over(p);
        return;
    }
    const char *end = memchr(target.p, '?', target.len);
    c->backend = b;
    c->target = target;
    c->path = (struct slice){ target.p, end ? (size_t)(end - target.p) : target.len };
    c->request.failed = outer->request.failed;
    for (size_t i = 0; i < outer->request.n; i++) {
        bool keep = true;
        for (size_t k = 0; k < sizeof not_ours / sizeof not_ours[0] && keep; k++)
            keep = !http_word_is(outer->request.v[i].name, not_ours[k]);
        if (keep)
            fields_add(&c->request, outer->request.v[i].name, outer->request.v[i].value);
    }
    fields_add(&c->request, slice_of("Accept"), slice_of("application/json"));
    p->c = c;
    call_start(c);
}

void gather_stop(struct gather_part *p, unsigned status, const char *why)
{
    if (!p->c)
        return;
    call_cancel(p->c);
    p->c = NULL;
    alarm_clear(&p->stop);
    gather_drop(p);
    p->status = status;
    p->why = why;
    latency__more(&p->g->outer->worker->parts[1], 1);
}

void gather_part_done(struct gather_part *p)
{
    gather_stop(p, 499, "the client went away");
    gather_drop(p);
}
