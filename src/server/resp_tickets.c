/*
 * RESP commands that take numbers of sequences: INCR, INCRBY, GET. Numbers in hand are answered at
 * once; other requests wait for the coordinator. Several INCRs in a row are answered together.
 * Tested in tests/integration/tickets.py.
 */
#include "server/resp_call.h"

#include <stdlib.h>
#include <string.h>

struct resp_wait *resp_wait_new(struct service_ctx *ctx)
{
    struct resp_wait *w = ctx->resp_idle;
    if (w)
        ctx->resp_idle = w->next;
    else
        w = malloc(sizeof *w);
    if (w) {
        memset(&w->ticket, 0,
               offsetof(struct ticket_wait, job.result) + sizeof w->ticket.job.result);
        w->ticket.job.diag.text[0] = '\0';
        w->ticket.job.period = 0;
        w->ctx = ctx;
        w->repeats = 0;
    }
    return w;
}

void resp_wait_free(struct resp_wait *w)
{
    free(w->ticket.job.keyed);
    w->ticket.job.keyed = NULL;
    w->next = w->ctx->resp_idle;
    w->ctx->resp_idle = w;
}

void resp_waits_free(struct service_ctx *ctx)
{
    while (ctx->resp_idle) {
        struct resp_wait *w = ctx->resp_idle;
        ctx->resp_idle = w->next;
        free(w);
    }
}

void resp_trouble(struct reply *r, int error, const char *text)
{
    bool later = error == FIRN_EUNKNOWN || error == FIRN_EIO || error == FIRN_EAGAIN ||
                 error == FIRN_ECONFLICT;
    const char *code = later ? "TRYAGAIN" : "ERR";
    resp_errorf(r->out, "%s %s", code, text[0] ? text : firn_error_message(error));
}

/* A number of a sequence as text: plain, or with its date in front. */
static void write_ticket(struct reply *r, const struct job *j, uint64_t number)
{
    struct firn_dated d = { .period = j->period, .number = number };
    char text[FIRN_DATED_TEXT_BUF];
    if (j->period && dated_note_parse(j->record.note, &d.reset, &d.digits) == 0)
        resp_bulk(r->out, text, firn_dated_format(&d, text));
    else
        resp_bulk(r->out, text, firn_u64_format(number, text));
}

/* A run of INCRs: an answer each. */
static void write_run(struct reply *r, const struct seq_range *range)
{
    for (uint64_t i = 0; i < range->count; i++)
        resp_int(r->out, (int64_t)(range->first + i * range->step));
}

static void write_numbers(struct reply *r, const struct resp_wait *w)
{
    const struct job *j = &w->ticket.job;
    if (j->result) {
        for (uint32_t i = 0; i <= w->repeats; i++)
            resp_trouble(r, j->result, j->diag.text);
        return;
    }
    if (w->answer == ANSWER_NEXT) {
        write_ticket(r, j, j->record.next);
        return;
    }
    if (!j->keyed || !j->keyed->replayed)
        minter_count(w->ctx->minter, w->ctx->ticket_kind, j->range.count);
    if (w->answer == ANSWER_LAST && w->repeats == 0) {
        resp_int(r->out, (int64_t)seq_range_last(&j->range));
        return;
    }
    if (w->answer == ANSWER_LAST) {
        write_run(r, &j->range);
        for (uint64_t i = j->range.count; i <= w->repeats; i++)
            resp_errorf(r->out,
                        j->more ? "TRYAGAIN sequence %s could not be served at once"
                                : "ERR sequence %s has reached its last number",
                        j->name);
        return;
    }
    if (!w->one)
        resp_array(r->out, j->range.count);
    for (uint64_t i = 0; i < j->range.count; i++)
        write_ticket(r, j, j->range.first + i * j->range.step);
}

static void ticket_came(struct ticket_wait *t)
{
    struct resp_wait *w = (struct resp_wait *)(void *)t;
    if (w->reply) {
        write_numbers(w->reply, w);
        reply_done(w->reply);
    }
    resp_wait_free(w);
}

static void described(struct job *j)
{
    struct resp_wait *w = j->user;
    if (j->result == FIRN_ENOENT) /* as Redis answers for a key that is not there */
        resp_null(w->reply->out, resp_proto(w->reply));
    else if (j->result == 0 && strncmp(j->record.note, "dated:", 6) == 0)
        resp_error(w->reply->out, "ERR a dated sequence has a next number only when it is taken");
    else {
        /* Numbers in hand come before what the store would give next. */
        ranges_peek(coordinator_ranges(w->ctx->app->coordinator), j->name, j->name_len,
                    &j->record.next);
        write_numbers(w->reply, w);
    }
    reply_done(w->reply);
    resp_wait_free(w);
}

bool resp_name_ok(struct slice name, struct reply *r)
{
    if (record_user_name_ok(name.p, name.len))
        return true;
    resp_error(r->out, "ERR a sequence's name has 1 to 64 of A-Z a-z 0-9 . _ : -");
    return false;
}

bool resp_wait_defer(struct resp_wait *w, struct reply *r)
{
    w->reply = reply_defer(r, DEFER_PIPELINED);
    if (w->reply)
        return true;
    resp_error(r->out, "TRYAGAIN too many requests are waiting");
    resp_wait_free(w);
    return false;
}

struct resp_wait *resp_wait_begin(struct service_ctx *ctx, struct reply *r)
{
    struct resp_wait *w = resp_wait_new(ctx);
    if (!w)
        resp_error(r->out, "TRYAGAIN out of memory");
    return w && resp_wait_defer(w, r) ? w : NULL;
}

enum { NUMBER_BYTES = 24 }; /* of a long number with what is around it */

struct keyed *resp_key(struct service_ctx *ctx, struct reply *r, struct slice key,
                       const struct request_args *args)
{
    struct request_who who = { r->peer, { NULL, 0 } };
    struct keyed *k;
    struct firn_diag d = { 0, "" };
    int e = request_key_new(ctx, who, key, args, &k, &d);
    if (e == 0)
        return k;
    resp_errorf(r->out, "%s KEY: %s", e == FIRN_EINVAL ? "ERR" : "TRYAGAIN", d.text);
    return NULL;
}

bool resp_may_take(struct service_ctx *ctx, struct reply *r, struct slice name)
{
    return resp_name_ok(name, r) && resp_allowed(ctx, r, GUARD_SEQUENCE, name);
}

void resp_take(struct service_ctx *ctx, struct reply *r, struct slice name, uint64_t n,
               uint32_t repeats, bool create, enum ticket_answer answer, bool one, struct slice key)
{
    guard_charge(ctx, n);
    if (n > SEQ_TAKE_MAX) {
        resp_errorf(r->out, "ERR at most %d numbers can be taken at once", SEQ_TAKE_MAX);
        return;
    }
    struct resp_wait *w = resp_wait_new(ctx);
    if (!w) {
        resp_error(r->out, "TRYAGAIN out of memory");
        return;
    }
    struct job *j = &w->ticket.job;
    r->timed_as = RESP_TICKETS;
    w->ticket.done = ticket_came;
    w->answer = answer;
    w->one = one;
    w->repeats = r->repeats = repeats;
    memcpy(j->name, name.p, name.len);
    j->name[name.len] = '\0';
    j->name_len = name.len;
    j->want = n + repeats;
    j->partial = repeats > 0;
    j->create = create;
    if (create)
        j->scope_max = resp_scope(ctx, r, name, j->scope);
    j->plain = answer == ANSWER_LAST;
    struct request_args args = { .seq = name, .n = n };
    if (key.p && !(j->keyed = resp_key(ctx, r, key, &args))) {
        resp_wait_free(w);
        return;
    }
    /* INCR has looked for numbers in hand already. */
    if (answer != ANSWER_LAST && !j->keyed && !reply_behind(r) &&
        ticket_in_hand(ctx->desk, name.p, name.len, j->want, false, loop_now_ms(ctx->loop),
                       &j->range, &j->record) == SEQ_HAND_TAKEN) {
        write_numbers(r, w);
        resp_wait_free(w);
        return;
    }
    ticket_queue(ctx->desk, &w->ticket);
    /* The job was submitted. Without memory to wait, its numbers are lost, not repeated. */
    w->reply = reply_defer(r, DEFER_PIPELINED);
    for (uint32_t i = 0; !w->reply && i <= repeats; i++)
        resp_error(r->out, "TRYAGAIN out of memory");
    if (w->reply && (!one || repeats))
        reply_expect(w->reply, j->want * NUMBER_BYTES);
}

static const struct slice no_key;

/* The numbers of INCR and INCRBY, from those in hand if there are any. Several INCRs in a row are
 * answered together, but not under a rate, which counts requests one by one. */
static void take_last(struct service_ctx *ctx, const struct resp_request *q, struct reply *r,
                      uint64_t n)
{
    struct slice name = q->argv[1];
    struct seq_range range;
    if (!resp_may_take(ctx, r, name))
        return;
    bool run = n == 1 && !guard_on(&ctx->guard);
    uint32_t repeats = run ? (uint32_t)resp_repeats(q, RUN_MAX) : 0;
    enum seq_hand hand = ticket_in_hand(ctx->desk, name.p, name.len,
                                        reply_behind(r) ? 0 : n + repeats, run,
                                        loop_now_ms(ctx->loop), &range, NULL);
    if (hand == SEQ_HAND_TAKEN) {
        minter_count(ctx->minter, ctx->ticket_kind, range.count);
        if (run) {
            r->repeats = (uint32_t)range.count - 1;
            write_run(r, &range);
        } else {
            resp_int(r->out, (int64_t)seq_range_last(&range));
        }
        return;
    }
    if (hand != SEQ_HAND_GAPLESS)
        repeats = 0;
    resp_take(ctx, r, name, n, repeats, true, ANSWER_LAST, true, no_key);
}

void run_incr(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    take_last(ctx, q, r, 1);
}

void run_incrby(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    int64_t n;
    if (resp_i64(q->argv[2], &n) != 0)
        resp_error(r->out, "ERR value is not an integer or out of range");
    else if (n < 1 || n > SEQ_TAKE_MAX)
        resp_errorf(r->out, "ERR a sequence only rises: the increment must be 1 to %d",
                    SEQ_TAKE_MAX);
    else
        take_last(ctx, q, r, (uint64_t)n);
}

void run_get(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    struct slice name = q->argv[1];
    if (!resp_name_ok(name, r) || !resp_allowed(ctx, r, GUARD_SEQUENCE, name))
        return;
    uint64_t next;
    if (ranges_peek(coordinator_ranges(ctx->app->coordinator), name.p, name.len, &next) == 0) {
        char text[FIRN_U64_TEXT_BUF];
        resp_bulk(r->out, text, firn_u64_format(next, text));
        return;
    }
    struct resp_wait *w = resp_wait_begin(ctx, r);
    if (!w)
        return;
    struct job *j = &w->ticket.job;
    w->answer = ANSWER_NEXT;
    j->what = JOB_DESCRIBE;
    j->done = described;
    j->user = w;
    memcpy(j->name, name.p, name.len);
    j->name[name.len] = '\0';
    j->name_len = name.len;
    ticket_submit(ctx->desk, j);
}
