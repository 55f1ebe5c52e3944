/* RESP commands that mint and read IDs: FIRN.NEXT, FIRN.INSPECT. Tested in
 * tests/integration/clients.py. */
#include "server/draw.h"
#include "server/resp_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct next_args {
    const struct firn_kind *kind;
    uint64_t count, shard;
    bool many;
    struct slice seq, key;
    const struct firn_codec *codec;
};

/* As NEXT_USAGE says. False: the error is written. */
static bool parse_next(struct service_ctx *ctx, const struct resp_request *q, struct reply *r,
                       struct next_args *a)
{
    *a = (struct next_args){ .count = 1, .seq = { DEFAULT_SEQUENCE, strlen(DEFAULT_SEQUENCE) } };
    a->kind = firn_kind_find(q->argv[1].p, q->argv[1].len);
    if (!a->kind || !(a->kind->flags & FIRN_KIND_MAKES)) {
        resp_errorf(r->out, "ERR no kind '%.*s' can be minted; GET /v1/kinds lists them",
                    (int)(q->argv[1].len < 64 ? q->argv[1].len : 64), q->argv[1].p);
        return false;
    }
    for (size_t i = 2; i < q->argc; i += 2) {
        int64_t n = -1;
        if (i + 1 == q->argc) {
            resp_error(r->out, "ERR syntax error: " NEXT_USAGE);
            return false;
        }
        struct slice value = q->argv[i + 1];
        if (resp_is(q, i, "count")) {
            uint64_t max = ctx->numbers_max;
            if (resp_i64(value, &n) != 0 || n < 1 || (uint64_t)n > max) {
                resp_errorf(r->out, "ERR COUNT must be 1 to %llu", (unsigned long long)max);
                return false;
            }
            a->count = (uint64_t)n;
            a->many = true;
        } else if (resp_is(q, i, "seq")) {
            a->seq = value;
        } else if (resp_is(q, i, "key")) {
            a->key = value;
        } else if (resp_is(q, i, "shard")) {
            if (resp_i64(value, &n) != 0 || n < 0) {
                resp_error(r->out, "ERR SHARD must be a number");
                return false;
            }
            a->shard = (uint64_t)n;
        } else if (resp_is(q, i, "encoding")) {
            a->codec = firn_codec_find(value.p, value.len);
            if (!a->codec || !(a->kind->flags & FIRN_KIND_NUMBER)) {
                resp_error(r->out, "ERR no such ENCODING, or this kind has a text of its own");
                return false;
            }
        } else {
            resp_errorf(r->out, "ERR unknown option '%.*s' of FIRN.NEXT",
                        (int)(q->argv[i].len < 32 ? q->argv[i].len : 32), q->argv[i].p);
            return false;
        }
    }
    return true;
}

static void write_number(struct reply *r, enum leased which, const struct firn_codec *codec,
                         uint64_t id)
{
    char text[FIRN_CODEC_TEXT_BUF];
    size_t len = 0;
    if (which == LEASED_TSID) {
        struct firn_tsid tsid = firn_tsid_from_u64(id);
        firn_tsid_format(&tsid, text);
        len = FIRN_TSID_TEXT_LEN;
    } else if (!codec) {
        len = firn_u64_format(id, text);
    } else if (firn_codec_encode64(codec, id, text, sizeof text, &len) != 0) {
        len = 0; /* cannot be: the buffer holds every codec's text */
    }
    resp_bulk(r->out, text, len);
}

/* a->count numbers in ctx->numbers, and up to `repeats` more, *out_n in all. False: the error is
 * written, or the request will come again. */
static bool draw(struct service_ctx *ctx, struct reply *r, const struct next_args *a,
                 enum leased which, size_t repeats, size_t *out_n)
{
    struct draw d = { .which = which, .shard = a->shard, .n = a->count, .more = repeats };
    bool again;
    int e = draw_numbers(ctx, r, &d, out_n, &again);
    if (e && !again)
        resp_errorf(r->out, "%s %s", e == FIRN_ERANGE ? "ERR" : "TRYAGAIN",
                    mint_trouble(ctx->app, e));
    return e == 0;
}

/* `repeats`: so many more requests for one number may be answered with this one. */
static void next_numbers(struct service_ctx *ctx, struct reply *r, const struct next_args *a,
                         enum leased which, size_t repeats)
{
    size_t got;
    if (!draw(ctx, r, a, which, repeats, &got))
        return;
    minter_count(ctx->minter, a->kind, got);
    if (repeats)
        r->repeats = (uint32_t)got - 1;
    if (a->many)
        resp_array(r->out, got);
    for (size_t i = 0; i < got; i++)
        write_number(r, which, a->codec, ctx->numbers[i]);
}

static void next_texts(struct service_ctx *ctx, struct reply *r, const struct next_args *a)
{
    struct firn_mint *m = minter_mint(ctx->minter, a->kind);
    char text[FIRN_MINT_TEXT_BUF];
    size_t len;
    if (!m) {
        resp_errorf(r->out, "ERR %s needs options that only HTTP takes: GET /v1/ids/%s",
                    a->kind->name, a->kind->name);
        return;
    }
    int e = firn_mint_text(m, text, &len);
    if (e) {
        resp_errorf(r->out, "TRYAGAIN %s", firn_error_message(e));
        return;
    }
    size_t from = r->out->len;
    if (a->many)
        resp_array(r->out, a->count);
    resp_bulk(r->out, text, len);
    for (uint64_t i = 1; i < a->count; i++) {
        e = firn_mint_text(m, text, &len);
        if (e) { /* all or nothing: an array cannot be shorter than it said */
            r->out->len = from;
            resp_errorf(r->out, "TRYAGAIN %s", firn_error_message(e));
            return;
        }
        resp_bulk(r->out, text, len);
    }
    minter_count(ctx->minter, a->kind, a->count);
}

/* --- IDs under a key: minted first, answered when they, or earlier ones, are kept --- */

static void kept(struct job *j)
{
    struct resp_wait *w = j->user;
    struct reply *r = w->reply;
    enum leased which = minter_leased(w->kind);
    struct slice text;
    uint64_t id;
    if (j->result) {
        resp_trouble(r, j->result, j->diag.text);
    } else {
        if (!j->keyed->replayed)
            minter_count(w->ctx->minter, w->kind, j->keyed->idem.count);
        if (!w->one)
            resp_array(r->out, j->keyed->idem.count);
        for (size_t at = 0; request_key_next(j->keyed, &at, &text);) {
            if (which != LEASED_N && http_u64(text, UINT64_MAX, &id) == 0)
                write_number(r, which, w->codec, id);
            else
                resp_bulk(r->out, text.p, text.len);
        }
    }
    reply_done(r);
    resp_wait_free(w);
}

/* The IDs as texts in `k`. False: the error is written. */
static bool mint_into(struct service_ctx *ctx, struct reply *r, const struct next_args *a,
                      struct keyed *k)
{
    enum leased which = minter_leased(a->kind);
    struct firn_mint *m = which == LEASED_N ? minter_mint(ctx->minter, a->kind) : NULL;
    char text[FIRN_MINT_TEXT_BUF];
    size_t len;
    int e = 0;
    if (a->count > REQUEST_KEY_IDS_MAX) {
        resp_errorf(r->out, "ERR with a KEY at most %d IDs are kept", REQUEST_KEY_IDS_MAX);
        return false;
    }
    if (which == LEASED_N && !m) {
        resp_errorf(r->out, "ERR %s needs options that only HTTP takes: GET /v1/ids/%s",
                    a->kind->name, a->kind->name);
        return false;
    }
    size_t drawn;
    if (!m && !draw(ctx, r, a, which, 0, &drawn))
        return false;
    for (uint64_t i = 0; i < a->count && e == 0; i++) {
        if (m)
            e = firn_mint_text(m, text, &len);
        else
            len = firn_u64_format(ctx->numbers[i], text);
        if (e == 0)
            e = request_key_add(k, text, len);
    }
    if (e == FIRN_ENOSPC)
        resp_errorf(r->out, "ERR with a KEY at most %d bytes of IDs are kept: ask for fewer",
                    IDEM_IDS_MAX);
    else if (e)
        resp_errorf(r->out, "TRYAGAIN %s", firn_error_message(e));
    return e == 0;
}

static void next_keyed(struct service_ctx *ctx, struct reply *r, const struct next_args *a)
{
    struct request_args args = { .kind = a->kind->name, .n = a->count, .shard = a->shard };
    struct keyed *k = resp_key(ctx, r, a->key, &args);
    if (!k)
        return;
    struct resp_wait *w = NULL;
    if (mint_into(ctx, r, a, k) && !(w = resp_wait_new(ctx)))
        resp_error(r->out, "TRYAGAIN out of memory");
    if (!w) {
        free(k);
        return;
    }
    struct job *j = &w->ticket.job;
    j->keyed = k;
    if (!resp_wait_defer(w, r))
        return;
    w->kind = a->kind;
    w->codec = a->codec;
    w->one = !a->many;
    j->what = JOB_KEEP;
    j->done = kept;
    j->user = w;
    ticket_submit(ctx->desk, j);
}

void run_next(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    struct next_args a;
    if (!parse_next(ctx, q, r, &a))
        return;
    if (a.kind == ctx->ticket_kind || strcmp(a.kind->name, "dated") == 0) {
        if (resp_may_take(ctx, r, a.seq))
            resp_take(ctx, r, a.seq, a.count, 0, false, ANSWER_LIST, !a.many, a.key);
        return;
    }
    if (!resp_allowed(ctx, r, GUARD_MINT_KIND,
                      (struct slice){ a.kind->name, strlen(a.kind->name) }))
        return;
    guard_charge(ctx, a.count);
    if (a.key.p) {
        next_keyed(ctx, r, &a);
        return;
    }
    enum leased which = minter_leased(a.kind);
    if (which == LEASED_N) {
        next_texts(ctx, r, &a);
        return;
    }
    size_t most = ctx->numbers_max - 1 < RUN_MAX ? ctx->numbers_max - 1 : RUN_MAX;
    bool run = !a.many && !guard_on(&ctx->guard);
    next_numbers(ctx, r, &a, which, run ? resp_repeats(q, most) : 0);
}

void run_inspect(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    struct firn_reading reading[8];
    struct timespec now;
    size_t n = 0;
    clock_gettime(CLOCK_REALTIME, &now);
    if (firn_detect(q->argv[1].p, q->argv[1].len, now.tv_sec * 1000, reading, 8, &n) != 0 ||
        n == 0) {
        resp_error(r->out, "ERR this is no ID that firn can read");
        return;
    }
    resp_array(r->out, n);
    for (size_t i = 0; i < n; i++) {
        const struct firn_reading *f = &reading[i];
        resp_map(r->out, resp_proto(r), 3 + f->fields_n);
        resp_bulk_str(r->out, "kind");
        resp_bulk_str(r->out, f->kind->name);
        resp_bulk_str(r->out, "layout");
        resp_bulk_str(r->out, f->layout);
        resp_bulk_str(r->out, "score");
        resp_int(r->out, f->score);
        for (uint32_t k = 0; k < f->fields_n; k++) {
            resp_bulk_str(r->out, f->field[k].name);
            resp_bulk_str(r->out, f->field[k].value);
        }
    }
}
