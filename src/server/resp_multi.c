/*
 * Transactions of RESP: MULTI, EXEC, DISCARD. The commands between MULTI and EXEC are checked and
 * kept as they would be sent in a pipeline; EXEC runs them one after the other without reading
 * anything else of the connection. Its answer is an array, and an array is its head with the
 * answers behind it, so each command answers by itself, at once or later (reply_more()). Nothing is
 * rolled back, as in Redis; numbers that were taken stay taken. Tested in
 * tests/integration/clients.py.
 */
#include "server/resp_call.h"

#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_COMMANDS_MAX = REPLIES_MORE_MAX,
    QUEUE_BYTES_MAX = 256 * 1024,
    ANSWER_BYTES_MAX = 4 * 1024 * 1024, /* the commands of a transaction that come later fail */
};

struct resp_session *resp_session(struct peer *p)
{
    if (!p->user && (p->user = calloc(1, sizeof(struct resp_session))))
        buf_init(&((struct resp_session *)p->user)->queue, QUEUE_BYTES_MAX);
    return p->user;
}

void resp_session_free(struct peer *p)
{
    struct resp_session *s = p->user;
    if (!s)
        return;
    free(s->name);
    buf_done(&s->queue);
    free(s);
    p->user = NULL;
}

static void leave(struct resp_session *s)
{
    s->multi = false;
    buf_done(&s->queue);
    buf_init(&s->queue, QUEUE_BYTES_MAX);
    s->queued = 0;
    s->dirty = false;
}

void resp_multi_spoil(struct reply *r)
{
    if (resp_in_multi(r->peer))
        ((struct resp_session *)r->peer->user)->dirty = true;
}

void resp_multi_queue(const struct resp_request *q, struct reply *r)
{
    struct resp_session *s = r->peer->user;
    if (!s->dirty && s->queued < QUEUE_COMMANDS_MAX) {
        resp_array(&s->queue, q->argc);
        for (size_t i = 0; i < q->argc; i++)
            resp_bulk(&s->queue, q->argv[i].p, q->argv[i].len);
        s->queued++;
    } else {
        s->queue.failed |= !s->dirty;
    }
    if (!s->queue.failed) {
        resp_simple(r->out, "QUEUED");
        return;
    }
    s->dirty = true;
    s->queue.failed = false;
    resp_errorf(r->out,
                "ERR a transaction has at most %d commands and %d KiB: send fewer, or a pipeline "
                "without MULTI",
                QUEUE_COMMANDS_MAX, QUEUE_BYTES_MAX / 1024);
}

void run_multi(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    struct resp_session *s = resp_session(r->peer);
    if (resp_in_multi(r->peer)) {
        resp_error(r->out, "ERR MULTI calls can not be nested");
    } else if (!s) {
        resp_error(r->out, "TRYAGAIN out of memory");
    } else {
        s->multi = true;
        resp_simple(r->out, "OK");
    }
}

void run_discard(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    if (!resp_in_multi(r->peer)) {
        resp_error(r->out, "ERR DISCARD without MULTI");
        return;
    }
    leave(r->peer->user);
    resp_simple(r->out, "OK");
}

void run_watch(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    resp_error(r->out, resp_in_multi(r->peer)
                           ? "ERR WATCH inside MULTI is not allowed"
                           : "ERR WATCH is not supported: firn has no values to compare; INCR is "
                             "atomic without it");
}

void run_unwatch(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    resp_simple(r->out, "OK"); /* nothing is ever watched */
}

/* All commands in `queue`, behind the head of the array in `r`. */
static void run_queue(struct service_ctx *ctx, struct buf *queue, struct resp_request *q,
                      struct reply *r)
{
    char err[RESP_ERROR_BUF];
    size_t bytes = 0;
    for (size_t at = 0; at < queue->len;) {
        ssize_t used = resp_parse(queue->p + at, queue->len - at, q, err);
        firn_assert(used > 0 && q->argc > 0, "used=%zd", used); /* as resp_multi_queue() wrote it */
        struct reply spot, *m = reply_more(r, &spot);
        if (!m) { /* out of memory: an array cannot end early, the connection must */
            r->close = true;
            return;
        }
        size_t start = m->out->len;
        q->self = (struct slice){ queue->p + at, (size_t)used };
        q->rest = (struct slice){ q->self.p + used, queue->len - at - (size_t)used };
        if (bytes < ANSWER_BYTES_MAX)
            resp_run(ctx, q, m);
        else
            resp_error(m->out, "TRYAGAIN the answers of this transaction are too long: the command "
                               "was not run, ask for fewer IDs at once");
        if (!m->deferred && m->out->len == start && !m->out->failed)
            resp_error(m->out, "ERR the handler gave no answer");
        bytes += m->out->len - start;
        at += (size_t)used * (1 + m->repeats);
        reply_more_done(r, m);
    }
}

void run_exec(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)q;
    struct resp_session *s = r->peer->user;
    if (!resp_in_multi(r->peer)) {
        resp_error(r->out, "ERR EXEC without MULTI");
        return;
    }
    bool dirty = s->dirty;
    size_t n = s->queued;
    struct buf queue = s->queue;
    buf_init(&s->queue, QUEUE_BYTES_MAX);
    leave(s);
    struct resp_request *each = dirty ? NULL : malloc(sizeof *each);
    if (dirty) {
        resp_error(r->out, "EXECABORT Transaction discarded because of previous errors.");
    } else if (!each) {
        resp_error(r->out, "EXECABORT out of memory");
    } else {
        resp_array(r->out, n);
        run_queue(ctx, &queue, each, r);
    }
    free(each);
    buf_done(&queue);
}
