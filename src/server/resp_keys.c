/*
 * RESP commands about sequences as keys: EXISTS, TTL, SETNX, DEL and what is refused, EXPIRE. Each
 * name is asked for when the answer about the one before has come, so that a command with many
 * names waits with one job. Tested in tests/integration/clients.py.
 */
#include "server/audit.h"
#include "server/resp_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum walk_kind { WALK_EXISTS, WALK_DELETE, WALK_TTL };

struct walk {
    struct job job;
    struct service_ctx *ctx;
    struct reply *reply;
    enum walk_kind kind;
    struct audit audit; /* WALK_DELETE */
    int64_t count;
    char *next;   /* of the names in `names`, each with a NUL; an empty one is the last */
    char names[]; /* those that a sequence may have */
};

static void walk_on(struct walk *w);

static void walked(struct job *j)
{
    struct walk *w = j->user;
    struct service_ctx *ctx = w->ctx;
    if (w->kind == WALK_DELETE && j->result != FIRN_ENOENT) {
        snprintf(w->audit.target, sizeof w->audit.target, "%s", j->name);
        audit_end(&w->audit, j->result, j->diag.text);
    }
    if (j->result == 0) {
        w->count++;
    } else if (j->result != FIRN_ENOENT) { /* the names before this one are done: as in Redis */
        resp_trouble(w->reply, j->result, j->diag.text);
        reply_done(w->reply);
        free(w);
        return;
    }
    walk_on(w);
    ticket_desk_turn(ctx->desk); /* no request came in this turn of the loop, which would do it */
}

static void walk_on(struct walk *w)
{
    if (*w->next) {
        w->job = (struct job){ .what = w->kind == WALK_DELETE ? JOB_DELETE : JOB_DESCRIBE,
                               .done = walked,
                               .user = w,
                               .name_len = strlen(w->next) };
        memcpy(w->job.name, w->next, w->job.name_len);
        w->next += w->job.name_len + 1;
        ticket_submit(w->ctx->desk, &w->job);
        return;
    }
    resp_int(w->reply->out, w->kind != WALK_TTL ? w->count : w->count ? -1 : -2);
    reply_done(w->reply);
    free(w);
}

static void walk(struct service_ctx *ctx, const struct resp_request *q, struct reply *r, size_t n,
                 enum walk_kind kind)
{
    size_t room = 1;
    for (size_t i = 1; i <= n; i++) {
        bool ok = record_user_name_ok(q->argv[i].p, q->argv[i].len);
        if (!resp_allowed(ctx, r, kind == WALK_DELETE ? GUARD_DELETE : GUARD_SEQUENCE, q->argv[i]))
            return;
        room += ok ? q->argv[i].len + 1 : 0;
    }
    struct walk *w = calloc(1, sizeof *w + room);
    if (w)
        w->reply = reply_defer(r, DEFER_PIPELINED);
    if (!w || !w->reply) {
        resp_error(r->out, "TRYAGAIN too many requests are waiting");
        free(w);
        return;
    }
    w->ctx = ctx;
    w->kind = kind;
    w->next = w->names;
    if (kind == WALK_DELETE)
        audit_begin(&w->audit, ctx, r->peer, (struct slice){ NULL, 0 }, "delete", q->argv[1]);
    char *to = w->names;
    for (size_t i = 1; i <= n; i++)
        if (record_user_name_ok(q->argv[i].p, q->argv[i].len)) {
            memcpy(to, q->argv[i].p, q->argv[i].len);
            to += q->argv[i].len + 1;
        }
    walk_on(w);
}

void run_exists(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    walk(ctx, q, r, q->argc - 1, WALK_EXISTS);
}

void run_del(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    walk(ctx, q, r, q->argc - 1, WALK_DELETE);
}

void run_ttl(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    walk(ctx, q, r, 1, WALK_TTL);
}

void run_expire(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    resp_error(r->out, "ERR a sequence does not expire: its numbers would come again");
}

static void made(struct job *j)
{
    struct resp_wait *w = j->user;
    bool there = j->result == FIRN_ECONFLICT && !seq_deleted(&j->record);
    if (j->result && !there)
        resp_errorf(w->reply->out, "ERR %s",
                    j->diag.text[0] ? j->diag.text : firn_error_message(j->result));
    else
        resp_int(w->reply->out, j->result == 0);
    reply_done(w->reply);
    resp_wait_free(w);
}

/* A range sequence whose first number is behind the value, as INCR goes on from it in Redis. */
void run_setnx(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    int64_t value;
    if (!resp_name_ok(q->argv[1], r))
        return;
    if (resp_i64(q->argv[2], &value) != 0 || value < 0 || value >= (int64_t)SEQ_NUMBER_MAX) {
        resp_error(r->out, "ERR value is not an integer or out of range");
        return;
    }
    if (!resp_allowed(ctx, r, GUARD_ADMIN, q->argv[1]))
        return;
    struct resp_wait *w = resp_wait_begin(ctx, r);
    if (!w)
        return;
    struct job *j = &w->ticket.job;
    j->what = JOB_CREATE;
    j->spec = (struct seq_spec){ .mode = SEQ_RANGE, .start = (uint64_t)value + 1 };
    j->note[0] = '\0';
    j->scope_max = resp_scope(ctx, r, q->argv[1], j->scope);
    j->done = made;
    j->user = w;
    j->name_len = q->argv[1].len;
    memcpy(j->name, q->argv[1].p, j->name_len);
    j->name[j->name_len] = '\0';
    ticket_submit(ctx->desk, j);
}
