/*
 * The pool of requests that wait for the coordinator. It grows with demand up to WAITS_MAX; beyond
 * that requests are refused. http_done() frees all of it, also requests whose job never came back
 * because the server ended first. Tested in tests/unit/server/http.c.
 */
#include "server/http_call.h"
#include "server/tracing.h"

#include <stdlib.h>

enum { WAITS_MAX = 64 * 1024 }; /* of one loop; about a kilobyte each */

static struct http_wait *wait_take(struct service_ctx *ctx)
{
    struct http_wait *w = ctx->http_idle;
    if (w) {
        ctx->http_idle = w->next;
        return w;
    }
    if (ctx->http_waits >= WAITS_MAX || !(w = calloc(1, sizeof *w)))
        return NULL;
    ctx->http_waits++;
    w->ctx = ctx;
    w->all = ctx->http_all;
    ctx->http_all = w;
    return w;
}

struct http_wait *http_wait_new(struct call *c, const char *name, size_t len)
{
    struct http_wait *w = wait_take(c->ctx);
    if (!w) {
        call_fail(c, PROBLEM_BUSY, "too many requests wait for the store: ask again in a moment");
        return NULL;
    }
    struct job *j = &w->ticket.job;
    *j = (struct job){ .want = 1, .name_len = len };
    memcpy(j->name, name, len);
    w->reply = NULL;
    w->repeats = 0;
    w->route = c->route;
    w->answer = (struct answer){ .format = ANSWER_JSON };
    return w;
}

void http_wait_free(struct http_wait *w)
{
    free(w->ticket.job.keyed);
    w->ticket.job.keyed = NULL;
    free(w->text);
    w->text = NULL;
    w->next = w->ctx->http_idle;
    w->ctx->http_idle = w;
}

void http_done(struct service_ctx *ctx)
{
    tracing_done(ctx);
    while (ctx->http_all) {
        struct http_wait *w = ctx->http_all;
        ctx->http_all = w->all;
        free(w->ticket.job.keyed);
        free(w->text);
        free(w);
    }
    ctx->http_idle = NULL;
}

static void job_came(struct job *j)
{
    struct http_wait *w = (struct http_wait *)(void *)j;
    tracing_resume(w->ctx, w->reply, j);
    w->done(w);
    tracing_pause();
}

bool http_wait_submit(struct call *c, struct http_wait *w, void (*done)(struct http_wait *w))
{
    w->reply = reply_defer(c->r, DEFER_PIPELINED);
    if (!w->reply) {
        call_fail(c, PROBLEM_BUSY, "no memory to wait with: ask again in a moment");
        http_wait_free(w);
        return false;
    }
    w->ticket.job.done = job_came;
    w->done = done;
    ticket_submit(c->ctx->desk, &w->ticket.job);
    return true;
}

void http_wait_fail(struct http_wait *w, struct reply *r)
{
    static const struct {
        int error;
        enum problem problem;
    } rows[] = {
        { FIRN_ENOENT, PROBLEM_SEQUENCE },    { FIRN_EOVERFLOW, PROBLEM_EXHAUSTED },
        { FIRN_EINVAL, PROBLEM_PARAMETER },   { FIRN_ERANGE, PROBLEM_PARAMETER },
        { FIRN_ECLOCK, PROBLEM_NOT_READY },   { FIRN_ECLOSED, PROBLEM_NOT_READY },
        { FIRN_EUNKNOWN, PROBLEM_STORE },     { FIRN_EIO, PROBLEM_STORE },
        { FIRN_ECONFLICT, PROBLEM_STORE },    { FIRN_EAGAIN, PROBLEM_STORE },
        { FIRN_ENOMEM, PROBLEM_BUSY },        { FIRN_ESTORE, PROBLEM_NOT_READY },
        { FIRN_EREUSED, PROBLEM_KEY_REUSED }, { FIRN_ENOSPC, PROBLEM_SEQUENCES },
        { FIRN_ENOSLOT, PROBLEM_NOT_READY },
    };
    const struct job *j = &w->ticket.job;
    enum problem p = PROBLEM_INTERNAL;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].error == j->result)
            p = rows[i].problem;
    const char *text = j->diag.text[0] ? j->diag.text : firn_error_message(j->result);
    call_count_error(w->ctx, w->route);
    problem_reply(r, p, "", "%s%s", text,
                  p == PROBLEM_STORE ? "; no number was lost, ask again in a moment" : "");
}

void http_wait_audit(struct call *c, struct http_wait *w, const char *action, struct slice target)
{
    audit_begin(&w->audit, c->ctx, c->r->peer, c->req->authorization, action, target);
}

void http_wait_done(struct http_wait *w)
{
    reply_done(w->reply);
    http_wait_free(w);
}

void http_wait_list(struct call *c, enum job_what what, const char *name,
                    void (*done)(struct http_wait *w))
{
    struct http_wait *w = call_allowed(c, GUARD_LIST, name, strlen(name)) ? http_wait_new(c, "", 0)
                                                                          : NULL;
    if (!w)
        return;
    w->ticket.job.what = what;
    http_wait_submit(c, w, done);
}
