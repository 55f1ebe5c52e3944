/*
 * Minting over HTTP. The request is read and checked into a struct order; then it takes one of
 * three ways: numbers from this loop's generators, texts from a mint, or tickets of a sequence,
 * which may have to wait for the store. Tested in tests/unit/server/http.c.
 */
#include "server/http_call.h"
#include "firn/dated.h"
#include "firn/prefixed.h"
#include "firn/tsid.h"
#include "server/draw.h"
#include "server/request_key.h"
#include "server/tracing.h"

#include <stdio.h>
#include <stdlib.h>

struct order {
    const struct firn_kind *kind;
    struct answer answer;
    uint64_t n, shard, length;
    const char *seq;
    size_t seq_len;
};

/* --- reading the request --- */

/* Parameters that a kind takes, besides n and prefix. */
static uint32_t kind_params(const struct firn_kind *kind)
{
    static const struct {
        const char *kind;
        uint32_t params;
    } rows[] = {
        { "snowflake", PARAM(SHARD) | PARAM(ENCODING) },
        { "sonyflake", PARAM(ENCODING) },
        { "uuidv3", PARAM(NAMESPACE) | PARAM(NAME) },
        { "uuidv5", PARAM(NAMESPACE) | PARAM(NAME) },
        { "nanoid", PARAM(LENGTH) },
        { "cuid2", PARAM(LENGTH) },
        { "ticket", PARAM(SEQ) | PARAM(ENCODING) },
        { "dated", PARAM(SEQ) },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].kind, kind->name) == 0)
            return rows[i].params | PARAM(N) | PARAM(KIND) | PARAM(PREFIX);
    return PARAM(N) | PARAM(KIND) | PARAM(PREFIX);
}

static bool params_fit(struct call *c, const struct firn_kind *kind)
{
    uint32_t fit = kind_params(kind);
    for (int i = 0; i < PARAMS_N; i++)
        if (c->q.value[i].p && !(fit >> i & 1)) {
            call_fail(c, PROBLEM_PARAMETER, "%s means nothing for kind %s: leave it out",
                      http_params[i].name, kind->name);
            return false;
        }
    return true;
}

static bool read_number(struct call *c, enum param which, uint64_t min, uint64_t max, uint64_t *out)
{
    struct slice v = c->q.value[which];
    if (!v.p)
        return true;
    uint64_t n;
    int r = http_u64(v, UINT64_MAX, &n);
    if (r == 0 && n >= min && n <= max) {
        *out = n;
        return true;
    }
    const char *name = http_params[which].name;
    if (r == FIRN_EFORMAT)
        call_fail(c, PROBLEM_PARAMETER, "%s must be a whole number from %llu to %llu, digits only",
                  name, (unsigned long long)min, (unsigned long long)max);
    else if (which == PARAM_N && (r || n > max))
        call_fail(c, PROBLEM_TOO_MANY,
                  "n may be at most %llu: split the request, or raise limits.ids_per_request",
                  (unsigned long long)max);
    else
        call_fail(c, PROBLEM_PARAMETER, "%s must be from %llu to %llu", name,
                  (unsigned long long)min, (unsigned long long)max);
    return false;
}

static bool read_kind(struct call *c, const char *name, size_t len, const struct firn_kind **out)
{
    const struct firn_kind *kind = firn_kind_find(name, len);
    if (kind && (kind->flags & FIRN_KIND_MAKES)) {
        *out = kind;
        return true;
    }
    size_t n;
    const struct firn_kind *all = firn_kinds(&n);
    const char *near = nearest_row(name, len, all, n, sizeof *all);
    int shown = (int)(len < 40 ? len : 40);
    if (kind)
        call_fail(c, PROBLEM_KIND, "%s can be read (/v1/inspect) but not made; /v1/kinds lists all",
                  kind->name);
    else
        call_fail(c, PROBLEM_KIND, "there is no kind '%.*s'%s%s (/v1/kinds lists all)", shown, name,
                  near ? "; did you mean " : "", near ? near : "");
    return false;
}

static bool read_encoding(struct call *c, struct answer *a)
{
    struct slice v = c->q.value[PARAM_ENCODING];
    if (!v.p)
        return true;
    a->codec = firn_codec_find(v.p, v.len);
    if (a->codec) {
        if (strcmp(a->codec->name, "decimal") == 0)
            a->codec = NULL; /* there is a faster way */
        return true;
    }
    size_t n;
    const struct firn_codec *all = firn_codec_list(&n);
    const char *near = nearest_row(v.p, v.len, all, n, sizeof *all);
    call_fail(c, PROBLEM_PARAMETER, "there is no encoding '%.*s'%s%s (/v1/kinds lists them)",
              (int)(v.len < 40 ? v.len : 40), v.p, near ? "; did you mean " : "", near ? near : "");
    return false;
}

static bool read_prefix(struct call *c, struct order *o)
{
    struct slice v = c->q.value[PARAM_PREFIX];
    struct firn_diag d = { 0, "" };
    if (!v.p || v.len == 0)
        return true;
    if (v.len > 63 || strcmp(o->kind->name, "typeid") == 0) {
        if (v.len <= 63)
            return true; /* the type is the mint's to check */
        call_fail(c, PROBLEM_PARAMETER, "the prefix has at most 63 characters");
        return false;
    }
    if (firn_prefix_check(v.p, v.len, &d) != 0) {
        call_fail(c, PROBLEM_PARAMETER, "prefix: %s", d.text);
        return false;
    }
    o->answer.prefix = v.p;
    o->answer.prefix_len = v.len;
    return true;
}

/* Can the answer be written in the format that Accept asks for, and is it within bounds? */
static bool check_format(struct call *c, const struct order *o)
{
    const struct answer *a = &o->answer;
    if (answer_is_binary(a->format) && o->kind->bits != 64) {
        call_fail(c, PROBLEM_ACCEPT,
                  "octets and runs are for 64-bit IDs (snowflake, sonyflake, tsid, ticket), "
                  "not for %s; ask for text/plain or application/json",
                  o->kind->name);
        return false;
    }
    if (answer_is_binary(a->format) && (a->codec || a->prefix)) {
        call_fail(c, PROBLEM_ACCEPT,
                  "octets have no encoding and no prefix: leave them out, or ask for text/plain");
        return false;
    }
    size_t prefix = c->q.value[PARAM_PREFIX].len;
    size_t text_max = o->length ? o->length + prefix + 1 : 40 + prefix + 1;
    uint64_t bytes = answer_bytes(a, o->n, text_max);
    if (bytes > ANSWER_BYTES_MAX) {
        call_fail(
            c, PROBLEM_TOO_MANY,
            "that would be an answer of up to %llu bytes, the limit is %d: ask for n=%llu at a time",
            (unsigned long long)bytes, ANSWER_BYTES_MAX,
            (unsigned long long)(o->n * (ANSWER_BYTES_MAX - 4096) / bytes));
        return false;
    }
    return true;
}

static bool read_order(struct call *c, struct order *o)
{
    const struct query *q = &c->q;
    o->answer = (struct answer){ .format = answer_format(c->req->accept),
                                 .list = q->value[PARAM_N].p != NULL };
    o->n = 1;
    o->shard = o->length = 0;
    struct slice seq = q->value[PARAM_SEQ];
    o->seq = seq.p ? seq.p : DEFAULT_SEQUENCE;
    o->seq_len = seq.p ? seq.len : sizeof DEFAULT_SEQUENCE - 1;
    return params_fit(c, o->kind) && read_number(c, PARAM_N, 1, c->ctx->numbers_max, &o->n) &&
           read_number(c, PARAM_SHARD, 0, UINT32_MAX, &o->shard) &&
           read_number(c, PARAM_LENGTH, 1, 255, &o->length) && read_encoding(c, &o->answer) &&
           read_prefix(c, o) && check_format(c, o);
}

/* --- keys --- */

/* The request's key, or NULL without one. False: the problem is answered. */
static bool read_key(struct call *c, const struct order *o, bool counted, struct keyed **out)
{
    struct slice key = c->req->idempotency_key, prefix = c->q.value[PARAM_PREFIX];
    struct firn_diag d = { 0, "" };
    *out = NULL;
    if (!key.p)
        return true;
    struct request_args args = { .n = o->n };
    if (counted) {
        args.seq = (struct slice){ o->seq, o->seq_len };
    } else {
        args.kind = o->kind->name;
        args.shard = o->shard;
        args.length = o->length;
        args.name_space = c->q.value[PARAM_NAMESPACE];
        args.name = c->q.value[PARAM_NAME];
        if (minter_leased(o->kind) == LEASED_N)
            args.prefix = prefix; /* a part of the texts; before a number it is only written */
    }
    struct request_who who = { c->r->peer, c->req->authorization };
    int r = request_key_new(c->ctx, who, key, &args, out, &d);
    if (r == 0)
        return true;
    call_fail(c, r == FIRN_EINVAL ? PROBLEM_PARAMETER : PROBLEM_BUSY, "Idempotency-Key: %s",
              d.text);
    return false;
}

/* --- numbers --- */

struct tsid_texts {
    const struct answer *answer;
    const uint64_t *ids;
};

static int tsid_text(void *user, size_t i, char out[FIRN_MINT_TEXT_BUF])
{
    const struct tsid_texts *t = user;
    const struct answer *a = t->answer;
    struct firn_tsid tsid = firn_tsid_from_u64(t->ids[i]);
    size_t at = 0;
    if (a->prefix) {
        memcpy(out, a->prefix, a->prefix_len);
        at = a->prefix_len;
        out[at++] = '_';
    }
    firn_tsid_format(&tsid, out + at);
    return (int)(at + FIRN_TSID_TEXT_LEN);
}

/* Into ctx->numbers. False: the problem is answered, or the request will come again. */
static bool draw(struct call *c, const struct order *o, enum leased which)
{
    struct draw d = {
        .which = which, .shard = o->shard, .n = o->n, .authorization = c->req->authorization
    };
    size_t n;
    bool again;
    int r = draw_numbers(c->ctx, c->r, &d, &n, &again);
    if (r == FIRN_ERANGE)
        call_fail(c, PROBLEM_PARAMETER, "shard: %s", mint_trouble(c->ctx->app, r));
    else if (r && !again)
        call_fail(c, PROBLEM_NOT_READY, "%s", mint_trouble(c->ctx->app, r));
    return r == 0;
}

/* A TSID always has room: the answer cannot fail. */
static void write_numbers(struct reply *r, const struct answer *a, enum leased which,
                          const uint64_t *ids, size_t n)
{
    struct tsid_texts t = { a, ids };
    if (which != LEASED_TSID || answer_is_binary(a->format))
        answer_numbers(r, a, ids, n);
    else if (answer_texts(r, a, n, tsid_text, &t) != 0)
        problem_reply(r, PROBLEM_INTERNAL, "", "a TSID could not be written");
}

static void mint_numbers(struct call *c, const struct order *o, enum leased which)
{
    if (!draw(c, o, which))
        return;
    minter_count(c->ctx->minter, o->kind, o->n);
    write_numbers(c->r, &o->answer, which, c->ctx->numbers, o->n);
}

/* --- texts --- */

static int mint_text(void *user, size_t i, char out[FIRN_MINT_TEXT_BUF])
{
    (void)i;
    size_t len;
    int r = firn_mint_text(user, out, &len);
    return r ? r : (int)len;
}

/* A mint with options of this request, or the loop's own. NULL: the problem is answered. */
static struct firn_mint *open_mint(struct call *c, const struct order *o, bool *own)
{
    const struct query *q = &c->q;
    struct firn_mint *m = NULL;
    if (o->n > 1 && (kind_params(o->kind) & PARAM(NAME))) {
        call_fail(c, PROBLEM_PARAMETER, "a name has one %s: leave n out", o->kind->name);
        return NULL;
    }
    *own = q->value[PARAM_PREFIX].len || q->value[PARAM_LENGTH].p || q->value[PARAM_NAME].p ||
           q->value[PARAM_NAMESPACE].p || (kind_params(o->kind) & PARAM(NAME));
    if (!*own) {
        m = minter_mint(c->ctx->minter, o->kind);
        if (!m)
            call_fail(c, PROBLEM_BUSY, "no memory to mint with: ask again in a moment");
        return m;
    }
    struct firn_mint_opts opts = FIRN_MINT_OPTS_INIT;
    struct firn_diag d = { 0, "" };
    opts.prefix = q->value[PARAM_PREFIX].p;
    opts.name = q->value[PARAM_NAME].p;
    opts.name_space = q->value[PARAM_NAMESPACE].p;
    opts.length = (uint32_t)o->length;
    int r = firn_mint_new(o->kind, &opts, &m, &d);
    if (r == 0)
        return m;
    call_fail(c, r == FIRN_ENOMEM ? PROBLEM_BUSY : PROBLEM_PARAMETER, "%s: %s", o->kind->name,
              d.text[0] ? d.text : firn_error_message(r));
    return NULL;
}

static void mint_texts(struct call *c, const struct order *o)
{
    bool own;
    struct firn_mint *m = open_mint(c, o, &own);
    if (!m)
        return;
    int r = answer_texts(c->r, &o->answer, o->n, mint_text, m);
    if (r)
        call_fail(c, PROBLEM_NOT_READY, "%s: %s", o->kind->name, firn_error_message(r));
    else
        minter_count(c->ctx->minter, o->kind, o->n);
    if (own)
        firn_mint_free(m);
}

/* --- IDs under a key: minted first, answered when they, or earlier ones, are kept --- */

/* The request is gone when the answer is written. */
static void keep_prefix(struct http_wait *w, const struct order *o)
{
    if (!o->answer.prefix)
        return;
    memcpy(w->prefix, o->answer.prefix, o->answer.prefix_len);
    w->answer.prefix = w->prefix;
}

struct kept_texts {
    const struct keyed *keyed;
    size_t at;
};

static int kept_text(void *user, size_t i, char out[FIRN_MINT_TEXT_BUF])
{
    struct kept_texts *t = user;
    struct slice text;
    (void)i;
    if (!request_key_next(t->keyed, &t->at, &text) || text.len >= FIRN_MINT_TEXT_BUF)
        return FIRN_EFORMAT;
    memcpy(out, text.p, text.len);
    return (int)text.len;
}

static int write_kept(struct http_wait *w)
{
    const struct keyed *k = w->ticket.job.keyed;
    uint64_t ids[REQUEST_KEY_IDS_MAX];
    size_t n = 0, at = 0;
    struct slice text;
    enum leased which = minter_leased(w->kind);
    if (which == LEASED_N) {
        struct kept_texts t = { k, 0 };
        return answer_texts(w->reply, &w->answer, k->idem.count, kept_text, &t);
    }
    while (n < REQUEST_KEY_IDS_MAX && request_key_next(k, &at, &text))
        if (http_u64(text, UINT64_MAX, &ids[n++]) != 0)
            return FIRN_EFORMAT;
    if (n == 0)
        return FIRN_EFORMAT;
    write_numbers(w->reply, &w->answer, which, ids, n);
    return 0;
}

static void kept(struct http_wait *w)
{
    struct job *j = &w->ticket.job;
    if (j->result == 0) {
        w->answer.replayed = j->keyed->replayed;
        if (!w->answer.replayed)
            minter_count(w->ctx->minter, w->kind, j->keyed->idem.count);
        j->result = write_kept(w);
    }
    if (j->result)
        http_wait_fail(w, w->reply);
    http_wait_done(w);
}

/* The IDs as texts in `k`. False: the problem is answered. */
static bool mint_into(struct call *c, const struct order *o, struct keyed *k)
{
    enum leased which = minter_leased(o->kind);
    char text[FIRN_MINT_TEXT_BUF];
    size_t len;
    bool own = false;
    int r = 0;
    struct firn_mint *m = NULL;
    if (which != LEASED_N ? !draw(c, o, which) : !(m = open_mint(c, o, &own)))
        return false;
    for (size_t i = 0; i < o->n && r == 0; i++) {
        if (m)
            r = firn_mint_text(m, text, &len);
        else
            len = firn_u64_format(c->ctx->numbers[i], text);
        if (r == 0)
            r = request_key_add(k, text, len);
    }
    if (own)
        firn_mint_free(m);
    if (r == FIRN_ENOSPC)
        call_fail(c, PROBLEM_TOO_MANY,
                  "with an Idempotency-Key at most %d IDs, or fewer long ones (%d bytes in all), "
                  "are kept: leave the key out, or ask for fewer",
                  REQUEST_KEY_IDS_MAX, IDEM_IDS_MAX);
    else if (r)
        call_fail(c, PROBLEM_NOT_READY, "%s: %s", o->kind->name, firn_error_message(r));
    return r == 0;
}

static void mint_keyed(struct call *c, const struct order *o, struct keyed *k)
{
    struct order few = *o;
    if (o->n > REQUEST_KEY_IDS_MAX)
        few.n = REQUEST_KEY_IDS_MAX + 1; /* enough to find out that it is too many */
    struct http_wait *w = mint_into(c, &few, k) ? http_wait_new(c, "", 0) : NULL;
    if (!w) {
        free(k);
        return;
    }
    w->answer = o->answer;
    keep_prefix(w, o);
    w->kind = o->kind;
    w->ticket.job.what = JOB_KEEP;
    w->ticket.job.keyed = k;
    http_wait_submit(c, w, kept);
}

/* --- tickets --- */

struct dated_texts {
    const struct answer *answer;
    const struct seq_range *range;
    struct firn_dated id;
};

static int dated_text(void *user, size_t i, char out[FIRN_MINT_TEXT_BUF])
{
    struct dated_texts *t = user;
    const struct answer *a = t->answer;
    size_t at = 0;
    if (a->prefix) {
        memcpy(out, a->prefix, a->prefix_len);
        at = a->prefix_len;
        out[at++] = '_';
    }
    t->id.number = t->range->first + i * t->range->step;
    size_t len = firn_dated_format(&t->id, out + at);
    return len ? (int)(at + len) : FIRN_ERANGE;
}

/* A run of requests for a number: an answer each. */
static void answer_run(struct http_wait *w, struct reply *r)
{
    struct job *j = &w->ticket.job;
    uint64_t got = j->result ? 0 : j->range.count;
    for (uint64_t i = 0; i <= w->repeats; i++) {
        struct seq_range one = { j->range.first + i * j->range.step, 1, 1 };
        r->follows = i < w->repeats;
        if (i == got && !j->result) { /* fewer than were asked for */
            j->result = j->more ? FIRN_EAGAIN : FIRN_EOVERFLOW;
            snprintf(j->diag.text, sizeof j->diag.text, "sequence %s %s", j->name,
                     j->more ? "could not be served at once" : "has reached its last number");
        }
        if (i < got)
            answer_range(r, &w->answer, &one);
        else
            http_wait_fail(w, r);
    }
    minter_count(w->ctx->minter, w->ctx->ticket_kind, got);
}

/* The numbers came, or an error. */
static void answer_ticket(struct http_wait *w, struct reply *r)
{
    struct job *j = &w->ticket.job;
    if (w->repeats) {
        answer_run(w, r);
        return;
    }
    if (j->result) {
        http_wait_fail(w, r);
        return;
    }
    struct dated_texts t = { .answer = &w->answer, .range = &j->range };
    w->answer.replayed = j->keyed && j->keyed->replayed;
    if (!w->answer.replayed)
        minter_count(w->ctx->minter, w->ctx->ticket_kind, j->range.count);
    if (!j->period || dated_note_parse(j->record.note, &t.id.reset, &t.id.digits) != 0) {
        answer_range(r, &w->answer, &j->range);
        return;
    }
    t.id.period = j->period;
    j->result = answer_texts(r, &w->answer, j->range.count, dated_text, &t);
    if (j->result)
        http_wait_fail(w, r);
}

static void ticket_came(struct ticket_wait *t)
{
    struct http_wait *w = (struct http_wait *)(void *)t;
    if (w->reply) {
        tracing_resume(w->ctx, w->reply, &w->ticket.job);
        answer_ticket(w, w->reply);
        reply_done(w->reply);
        tracing_pause();
    }
    http_wait_free(w);
}

/* Octets and encodings are for plain numbers: refuse a dated sequence before a number is taken. */
static void described(struct http_wait *w)
{
    struct job *j = &w->ticket.job;
    uint32_t reset, digits;
    if (j->result) {
        http_wait_fail(w, w->reply);
    } else if (dated_note_parse(j->record.note, &reset, &digits) == 0) {
        call_count_error(w->ctx, w->route);
        problem_reply(w->reply, PROBLEM_ACCEPT, "",
                      "sequence %s is dated: its IDs are texts; ask for text/plain or "
                      "application/json, without encoding",
                      j->name);
    } else {
        w->ticket.done = ticket_came;
        ticket_queue(w->ctx->desk, &w->ticket);
        ticket_desk_turn(w->ctx->desk); /* no request may follow in this turn of the loop */
        return;
    }
    http_wait_done(w);
}

enum {
    NUMBER_BYTES = 24,  /* of a long number with what is around it */
    ANSWER_BYTES = 192, /* of an answer with one, about */
};

/* How many equal requests follow that one job can serve: none with a key or another format, and
 * none under a rate, which counts requests one by one. */
static uint32_t run_of(const struct call *c, const struct order *o, const struct keyed *k)
{
    if (o->n != 1 || k || o->answer.format == ANSWER_OCTETS || o->answer.codec ||
        guard_on(&c->ctx->guard))
        return 0;
    uint64_t max = c->ctx->unsampled < RUN_MAX ? c->ctx->unsampled : RUN_MAX;
    return c->r->user ? 0 : (uint32_t)http_repeats(c->req, max); /* a trace has one request */
}

static void take(struct call *c, const struct order *o)
{
    c->r->timed_as = HTTP_TICKETS;
    if (!record_user_name_ok(o->seq, o->seq_len)) {
        call_fail(c, PROBLEM_PARAMETER, "a sequence's name has 1 to %d of A-Z a-z 0-9 . _ : -",
                  RECORD_NAME_MAX);
        return;
    }
    if (!call_allowed(c, GUARD_SEQUENCE, o->seq, o->seq_len))
        return;
    guard_charge(c->ctx, o->n);
    if (o->n > SEQ_TAKE_MAX) {
        call_fail(c, PROBLEM_TOO_MANY, "at most %d numbers can be taken at once", SEQ_TAKE_MAX);
        return;
    }
    struct keyed *k;
    if (!read_key(c, o, true, &k))
        return;
    struct http_wait *w = http_wait_new(c, o->seq, o->seq_len);
    if (!w) {
        free(k);
        return;
    }
    w->answer = o->answer;
    keep_prefix(w, o);
    w->ticket.job.keyed = k;
    if (k)
        k->ask.partial = true;
    struct job *j = &w->ticket.job;
    j->want = o->n;
    j->partial = true; /* the last numbers of a sequence shall not be lost */
    w->ticket.done = ticket_came;
    if (answer_is_binary(o->answer.format) || o->answer.codec) {
        j->what = JOB_DESCRIBE;
        if (http_wait_submit(c, w, described))
            reply_expect(w->reply, o->n * NUMBER_BYTES);
        return;
    }
    switch (ticket_in_hand(c->ctx->desk, o->seq, o->seq_len, k || reply_behind(c->r) ? 0 : o->n,
                           false, loop_now_ms(c->ctx->loop), &j->range, &j->record)) {
    case SEQ_HAND_TAKEN:
        answer_ticket(w, c->r);
        http_wait_free(w);
        return;
    case SEQ_HAND_GAPLESS:
        w->repeats = run_of(c, o, k);
        j->want += w->repeats;
        break;
    case SEQ_HAND_SHORT:
    case SEQ_HAND_UNKNOWN:
    case SEQ_HAND_DATED:
        break;
    }
    ticket_queue(c->ctx->desk, &w->ticket);
    w->reply = reply_defer(c->r, DEFER_PIPELINED);
    if (!w->reply) { /* the number that comes is lost, not repeated */
        call_fail(c, PROBLEM_BUSY, "no memory to wait with: ask again in a moment");
        return;
    }
    call_repeats(c, w->repeats);
    reply_expect(w->reply, o->n * NUMBER_BYTES + w->repeats * ANSWER_BYTES);
}

/* --- routes --- */

static void mint(struct call *c, struct order *o)
{
    bool counted = o->kind == c->ctx->ticket_kind || strcmp(o->kind->name, "dated") == 0;
    if (!counted && !call_allowed(c, GUARD_MINT_KIND, o->kind->name, strlen(o->kind->name)))
        return;
    if (!read_order(c, o))
        return;
    if (!counted)
        guard_charge(c->ctx, o->n);
    enum leased which = minter_leased(o->kind);
    struct keyed *k = NULL;
    if (!counted && !read_key(c, o, false, &k))
        return;
    if (k)
        mint_keyed(c, o, k);
    else if (which != LEASED_N)
        mint_numbers(c, o, which);
    else if (o->kind == c->ctx->ticket_kind)
        take(c, o);
    else if (!counted)
        mint_texts(c, o);
    else if (c->q.value[PARAM_SEQ].p)
        take(c, o);
    else
        call_fail(c, PROBLEM_PARAMETER,
                  "dated IDs are counted by a sequence: create one with POST /v1/sequences and "
                  "\"dated\", then add seq=NAME");
}

void route_generate(struct call *c)
{
    struct order o;
    struct slice kind = c->q.value[PARAM_KIND];
    bool tickets = c->q.value[PARAM_SEQ].p || (c->r->peer && c->r->peer->tag == PORT_TICKET);
    o.kind = tickets ? c->ctx->ticket_kind : c->ctx->snowflake_kind;
    if (!kind.p || read_kind(c, kind.p, kind.len, &o.kind))
        mint(c, &o);
}

void route_ids(struct call *c)
{
    struct order o;
    if (read_kind(c, c->arg, c->arg_len, &o.kind))
        mint(c, &o);
}

void route_sequence_next(struct call *c)
{
    struct order o = { .kind = c->ctx->ticket_kind };
    if (!read_order(c, &o))
        return;
    o.seq = c->arg;
    o.seq_len = c->arg_len;
    take(c, &o);
}
