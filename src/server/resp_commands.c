/*
 * The Redis protocol: one table of commands. Any Redis client is a firn client: INCR takes a ticket,
 * FIRN.NEXT mints any kind. IDs are bulk strings, because many clients read integers as doubles; only
 * INCR and INCRBY answer with integers, as every Redis user expects.
 */
#include "server/app.h"
#include "server/request_key.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

typedef void handler(struct service_ctx *ctx, const struct resp_request *q, struct reply *r);

struct command {
    const char *name; /* lower case, as COMMAND lists them */
    int arity;        /* as Redis counts: the command included; negative: at least */
    handler *run;
    const char *flag; /* readonly, write or fast */
    const char *group, *summary;
};

static const struct command *find_command(const char *p, size_t len);

static int proto(const struct reply *r)
{
    return r->peer && r->peer->proto == 3 ? 3 : 2;
}

static bool arg_equals(struct slice arg, const char *word)
{
    return arg.len == strlen(word) && strncasecmp(arg.p, word, arg.len) == 0;
}

/* Whether the guard lets it pass; if not, that is answered. */
static bool allowed(struct service_ctx *ctx, struct reply *r, enum guard_what what,
                    struct slice name)
{
    struct guard_refusal why;
    if (guard_check(ctx, r->peer, (struct slice){ NULL, 0 }, what, name, &why) == 0)
        return true;
    guard_refuse_resp(r, &why, name);
    return false;
}

/* --- connection --- */

static void run_ping(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    if (q->argc > 2)
        resp_error(r->out, "ERR wrong number of arguments for 'ping' command");
    else if (q->argc == 2)
        resp_bulk(r->out, q->argv[1].p, q->argv[1].len);
    else
        resp_simple(r->out, "PONG");
}

static void run_echo(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    resp_bulk(r->out, q->argv[1].p, q->argv[1].len);
}

static void run_quit(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    resp_simple(r->out, "OK");
    r->close = true;
}

static void run_select(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    if (arg_equals(q->argv[1], "0"))
        resp_simple(r->out, "OK");
    else
        resp_error(r->out, "ERR DB index is out of range");
}

static void run_auth(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    struct guard_refusal why;
    struct slice user = { NULL, 0 };
    if (q->argc > 3) {
        resp_error(r->out, "ERR syntax error");
        return;
    }
    if (q->argc == 3)
        user = q->argv[1];
    int e = guard_auth(ctx, r->peer, user, q->argv[q->argc - 1], &why);
    if (e == 0)
        resp_simple(r->out, "OK");
    else if (e == FIRN_EAUTH)
        guard_refuse_resp(r, &why, user);
    else
        resp_error(r->out,
                   "ERR AUTH <password> called without any password configured for the default "
                   "user. Are you sure your configuration is correct?");
}

/* Names the connection; "" takes its name away. False: the name is bad, which is answered. */
static bool set_name(struct reply *r, struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.p[i] < '!' || name.p[i] > '~') {
            resp_error(r->out,
                       "ERR Client names cannot contain spaces, newlines or special characters.");
            return false;
        }
    if (r->peer) {
        free(r->peer->user);
        r->peer->user = name.len ? strndup(name.p, name.len) : NULL;
    }
    return true;
}

static void run_hello(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    size_t at = 1, auth = 0, name = 0;
    int version = proto(r);
    if (q->argc > 1) {
        if (!arg_equals(q->argv[1], "2") && !arg_equals(q->argv[1], "3")) {
            resp_error(r->out, "NOPROTO unsupported protocol version");
            return;
        }
        version = q->argv[1].p[0] - '0';
        at = 2;
    }
    for (; at < q->argc; at++) {
        if (arg_equals(q->argv[at], "setname") && at + 1 < q->argc) {
            name = ++at;
        } else if (arg_equals(q->argv[at], "auth") && at + 2 < q->argc) {
            auth = at + 1;
            at += 2;
        } else {
            resp_errorf(r->out, "ERR Syntax error in HELLO option '%.*s'", (int)q->argv[at].len,
                        q->argv[at].p);
            return;
        }
    }
    struct guard_refusal why;
    if (auth && guard_auth(ctx, r->peer, q->argv[auth], q->argv[auth + 1], &why) == FIRN_EAUTH) {
        guard_refuse_resp(r, &why, q->argv[auth]);
        return;
    }
    if (name && !set_name(r, q->argv[name]))
        return;
    if (r->peer)
        r->peer->proto = (uint8_t)version;
    resp_map(r->out, version, 7);
    resp_bulk_str(r->out, "server");
    resp_bulk_str(r->out, "firn");
    resp_bulk_str(r->out, "version");
    resp_bulk_str(r->out, FIRN_VERSION);
    resp_bulk_str(r->out, "proto");
    resp_int(r->out, version);
    resp_bulk_str(r->out, "id");
    resp_int(r->out, r->peer ? (int64_t)r->peer->id : 0);
    resp_bulk_str(r->out, "mode");
    resp_bulk_str(r->out, "standalone");
    resp_bulk_str(r->out, "role");
    resp_bulk_str(r->out, "master");
    resp_bulk_str(r->out, "modules");
    resp_array(r->out, 0);
}

static void run_client(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    struct slice sub = q->argv[1];
    if (arg_equals(sub, "id")) {
        resp_int(r->out, r->peer ? (int64_t)r->peer->id : 0);
    } else if (arg_equals(sub, "getname")) {
        const char *name = r->peer ? r->peer->user : NULL;
        if (name)
            resp_bulk_str(r->out, name);
        else
            resp_null(r->out, proto(r));
    } else if (arg_equals(sub, "setname") && q->argc == 3) {
        if (set_name(r, q->argv[2]))
            resp_simple(r->out, "OK");
    } else if (arg_equals(sub, "setinfo") || arg_equals(sub, "no-evict") ||
               arg_equals(sub, "no-touch")) {
        resp_simple(r->out, "OK");
    } else {
        resp_errorf(r->out,
                    "ERR unknown subcommand '%.*s'. Try CLIENT ID, GETNAME, SETNAME or SETINFO.",
                    (int)(sub.len < 64 ? sub.len : 64), sub.p);
    }
}

/* What tools ask for before they start; redis-benchmark warns when the first two are not told. */
static void run_config(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    static const char *const told[][2] = { { "save", "" },
                                           { "appendonly", "yes" },
                                           { "databases", "1" } };
    enum { TOLD = sizeof told / sizeof told[0] };
    (void)ctx;
    if (!arg_equals(q->argv[1], "get") || q->argc < 3) {
        resp_error(r->out,
                   "ERR only CONFIG GET is supported; firnd's settings are in firnd.yaml(5)");
        return;
    }
    bool wanted[TOLD] = { false };
    size_t n = 0;
    for (size_t i = 2; i < q->argc; i++)
        for (size_t k = 0; k < TOLD; k++)
            if (arg_equals(q->argv[i], told[k][0]) && !wanted[k]) {
                wanted[k] = true;
                n++;
            }
    resp_map(r->out, proto(r), n);
    for (size_t k = 0; k < TOLD; k++)
        if (wanted[k]) {
            resp_bulk_str(r->out, told[k][0]);
            resp_bulk_str(r->out, told[k][1]);
        }
}

static void run_info(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)q;
    struct app *app = ctx->app;
    struct lease_view v;
    struct timespec now;
    const char *why;
    char text[1024];
    uint64_t ids = 0;
    size_t kinds;
    firn_kinds(&kinds);
    for (size_t i = 0; i < app->loops; i++)
        for (size_t k = 0; k < kinds; k++)
            ids += minter_counted(app->ctx[i].minter, k);
    clock_gettime(CLOCK_REALTIME, &now);
    board_copy(&app->board, &v);
    bool ready = app_ready(app, &why);
    int n = snprintf(text, sizeof text,
                     "# Server\r\nredis_version:7.0.0\r\nfirn_version:" FIRN_VERSION
                     "\r\nprocess_id:%d\r\nuptime_in_seconds:%llu\r\n"
                     "# Clients\r\nconnected_clients:%u\r\n"
                     "# Stats\r\nids_total:%llu\r\ntickets_total:%llu\r\n"
                     "# Firn\r\nready:%d\r\nready_reason:%s\r\nslot:%u\r\nslot_state:%s\r\n",
                     (int)getpid(),
                     (unsigned long long)((uint64_t)now.tv_sec - app->started_ms / 1000),
                     (unsigned)atomic_load(&app->conns_open), (unsigned long long)ids,
                     (unsigned long long)atomic_load(&coordinator_stats(app->coordinator)->tickets),
                     ready, why, v.grant.slot, slot_state_name(v.state));
    resp_verbatim(r->out, proto(r), "txt", text, (size_t)n);
}

/* --- tickets --- */

enum ticket_answer { ANSWER_LAST, ANSWER_LIST, ANSWER_NEXT };

struct resp_wait { /* a command that waits for the coordinator */
    struct ticket_wait ticket;
    struct service_ctx *ctx;
    struct reply *reply;
    enum ticket_answer answer;
    bool one;                       /* ANSWER_LIST: a single number, not an array */
    uint32_t repeats;               /* ANSWER_LAST: an answer each for so many more requests */
    const struct firn_kind *kind;   /* IDs that are kept under a key */
    const struct firn_codec *codec; /* of these */
    struct resp_wait *next;         /* in the pool */
};

static struct resp_wait *wait_new(struct service_ctx *ctx)
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

static void wait_free(struct resp_wait *w)
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

static void write_trouble(struct reply *r, int error, const char *text)
{
    const char *code = error == FIRN_EUNKNOWN || error == FIRN_EIO ? "TRYAGAIN" : "ERR";
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
            write_trouble(r, j->result, j->diag.text);
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

/* Sequences that this loop knows to be gapless (a mode never changes), by a hash of the name. */
static char *gapless_place(struct service_ctx *ctx, const char *name, size_t len)
{
    return ctx->gapless[record_name_hash(name, len) % GAPLESS_KNOWN];
}

static bool is_gapless(struct service_ctx *ctx, struct slice name)
{
    const char *known = gapless_place(ctx, name.p, name.len);
    return strncmp(known, name.p, name.len) == 0 && known[name.len] == '\0';
}

static void ticket_came(struct ticket_wait *t)
{
    struct resp_wait *w = (struct resp_wait *)(void *)t;
    const struct job *j = &w->ticket.job;
    if (j->result == 0 && j->record.mode == SEQ_GAPLESS && !j->period)
        memcpy(gapless_place(w->ctx, j->name, j->name_len), j->name, j->name_len + 1);
    if (w->reply) {
        write_numbers(w->reply, w);
        reply_done(w->reply);
    }
    wait_free(w);
}

static void described(struct job *j)
{
    struct resp_wait *w = j->user;
    if (j->result == FIRN_ENOENT) /* as Redis answers for a key that is not there */
        resp_null(w->reply->out, proto(w->reply));
    else if (j->result == 0 && strncmp(j->record.note, "dated:", 6) == 0)
        resp_error(w->reply->out, "ERR a dated sequence has a next number only when it is taken");
    else {
        /* Numbers in hand come before what the store would give next. */
        ranges_peek(coordinator_ranges(w->ctx->app->coordinator), j->name, j->name_len,
                    &j->record.next);
        write_numbers(w->reply, w);
    }
    reply_done(w->reply);
    wait_free(w);
}

static bool name_ok(struct slice name, struct reply *r)
{
    if (record_user_name_ok(name.p, name.len))
        return true;
    resp_error(r->out, "ERR a sequence's name has 1 to 64 of A-Z a-z 0-9 . _ : -");
    return false;
}

/* Defer the reply and give the wait its place in it. */
static bool defer(struct resp_wait *w, struct reply *r)
{
    w->reply = reply_defer(r, DEFER_PIPELINED);
    if (w->reply)
        return true;
    resp_error(r->out, "TRYAGAIN too many requests are waiting");
    wait_free(w);
    return false;
}

enum {
    NUMBER_BYTES = 24, /* of a long number with what is around it */
    RUN_MAX = 1023,    /* requests that are answered together with the first of them */
};

/* The key of a request. NULL: the error is written. */
static struct keyed *read_key(struct service_ctx *ctx, struct reply *r, struct slice key,
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

static bool may_take(struct service_ctx *ctx, struct reply *r, struct slice name)
{
    return name_ok(name, r) && allowed(ctx, r, GUARD_SEQUENCE, name);
}

/* `repeats` (ANSWER_LAST only): the answers of so many more requests for a number go with this one's. */
static void take(struct service_ctx *ctx, struct reply *r, struct slice name, uint64_t n,
                 uint32_t repeats, bool create, enum ticket_answer answer, bool one,
                 struct slice key)
{
    if (n > SEQ_TAKE_MAX) {
        resp_errorf(r->out, "ERR at most %d numbers can be taken at once", SEQ_TAKE_MAX);
        return;
    }
    struct resp_wait *w = wait_new(ctx);
    if (!w) {
        resp_error(r->out, "TRYAGAIN out of memory");
        return;
    }
    struct job *j = &w->ticket.job;
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
    j->plain = answer == ANSWER_LAST;
    struct request_args args = { .seq = name, .n = n };
    if (key.p && !(j->keyed = read_key(ctx, r, key, &args))) {
        wait_free(w);
        return;
    }
    int e = ticket_take(ctx->desk, &w->ticket, reply_behind(r), loop_now_ms(ctx->loop));
    if (e == FIRN_EAGAIN) {
        /* The job is on its way. Without memory to wait for it, its numbers are lost, not repeated. */
        w->reply = reply_defer(r, DEFER_PIPELINED);
        for (uint32_t i = 0; !w->reply && i <= repeats; i++)
            resp_error(r->out, "TRYAGAIN out of memory");
        if (w->reply && (!one || repeats))
            reply_expect(w->reply, j->want * NUMBER_BYTES);
        return;
    }
    if (e)
        j->result = e;
    write_numbers(r, w);
    wait_free(w);
}

static const struct slice no_key;

/* The numbers that INCR and INCRBY answer with, from those in hand if there are any. Several INCRs in a row
 * are answered together; rates are counted one by one, so not where there may be some. A range sequence with
 * too few in hand is asked one by one: asking for many would pass over those few. */
static void take_last(struct service_ctx *ctx, const struct resp_request *q, struct reply *r,
                      uint64_t n)
{
    struct slice name = q->argv[1];
    struct seq_range range;
    if (!may_take(ctx, r, name))
        return;
    bool run = n == 1 && !guard_on(&ctx->guard);
    uint32_t repeats = run ? (uint32_t)resp_repeats(q, RUN_MAX) : 0;
    if (!reply_behind(r) && ticket_in_hand(ctx->desk, name.p, name.len, n + repeats, run,
                                           loop_now_ms(ctx->loop), &range) == 0) {
        minter_count(ctx->minter, ctx->ticket_kind, range.count);
        if (run) {
            r->repeats = (uint32_t)range.count - 1;
            write_run(r, &range);
        } else {
            resp_int(r->out, (int64_t)seq_range_last(&range));
        }
        return;
    }
    take(ctx, r, name, n, is_gapless(ctx, name) ? repeats : 0, true, ANSWER_LAST, true, no_key);
}

static void run_incr(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    take_last(ctx, q, r, 1);
}

static void run_incrby(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
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

static void run_get(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    struct slice name = q->argv[1];
    if (!name_ok(name, r) || !allowed(ctx, r, GUARD_SEQUENCE, name))
        return;
    uint64_t next;
    if (ranges_peek(coordinator_ranges(ctx->app->coordinator), name.p, name.len, &next) == 0) {
        char text[FIRN_U64_TEXT_BUF];
        resp_bulk(r->out, text, firn_u64_format(next, text));
        return;
    }
    struct resp_wait *w = wait_new(ctx);
    if (!w || !defer(w, r)) {
        if (!w)
            resp_error(r->out, "TRYAGAIN out of memory");
        return;
    }
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

/* --- IDs --- */

struct next_args {
    const struct firn_kind *kind;
    uint64_t count, shard;
    bool many;
    struct slice seq, key;
    const struct firn_codec *codec;
};

#define NEXT_USAGE "FIRN.NEXT kind [COUNT n] [SEQ name] [SHARD s] [ENCODING e] [KEY k]"

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

/* a->count numbers in ctx->numbers, and up to `repeats` more; *out_n of them. False: the error is written. */
static bool draw_numbers(struct service_ctx *ctx, struct reply *r, const struct next_args *a,
                         enum leased which, size_t repeats, size_t *out_n)
{
    size_t got = 0, n = 0, want = a->count + repeats;
    int e = 0;
    while (got < want && e == 0) {
        e = minter_numbers(ctx->minter, which, a->shard, ctx->numbers + got, want - got, &n);
        got += e ? 0 : n;
    }
    if (e && (got == 0 || repeats == 0)) {
        resp_errorf(r->out, "%s %s", e == FIRN_ERANGE ? "ERR" : "TRYAGAIN",
                    mint_trouble(ctx->app, e));
        return false;
    }
    *out_n = got;
    return true;
}

/* `repeats`: so many more requests for one number may be answered with this one. */
static void next_numbers(struct service_ctx *ctx, struct reply *r, const struct next_args *a,
                         enum leased which, size_t repeats)
{
    size_t got;
    if (!draw_numbers(ctx, r, a, which, repeats, &got))
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

/* --- IDs under a key: minted first, answered when they are kept or others are found --- */

static void kept(struct job *j)
{
    struct resp_wait *w = j->user;
    struct reply *r = w->reply;
    enum leased which = minter_leased(w->kind);
    struct slice text;
    uint64_t id;
    if (j->result) {
        write_trouble(r, j->result, j->diag.text);
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
    wait_free(w);
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
    if (!m && !draw_numbers(ctx, r, a, which, 0, &drawn))
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
    struct keyed *k = read_key(ctx, r, a->key, &args);
    if (!k)
        return;
    struct resp_wait *w = NULL;
    if (mint_into(ctx, r, a, k) && !(w = wait_new(ctx)))
        resp_error(r->out, "TRYAGAIN out of memory");
    if (!w) {
        free(k);
        return;
    }
    struct job *j = &w->ticket.job;
    j->keyed = k;
    if (!defer(w, r))
        return;
    w->kind = a->kind;
    w->codec = a->codec;
    w->one = !a->many;
    j->what = JOB_KEEP;
    j->done = kept;
    j->user = w;
    ticket_submit(ctx->desk, j);
}

static void run_next(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    struct next_args a;
    if (!parse_next(ctx, q, r, &a))
        return;
    if (a.kind == ctx->ticket_kind || strcmp(a.kind->name, "dated") == 0) {
        if (may_take(ctx, r, a.seq))
            take(ctx, r, a.seq, a.count, 0, false, ANSWER_LIST, !a.many, a.key);
        return;
    }
    if (!allowed(ctx, r, GUARD_MINT_KIND, (struct slice){ a.kind->name, strlen(a.kind->name) }))
        return;
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

static void run_inspect(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
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
        resp_map(r->out, proto(r), 3 + f->fields_n);
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

/* --- the table --- */

static handler run_command;

static const struct command commands[] = {
    { "auth", -2, run_auth, "fast", "connection", "Show a token" },
    { "client", -2, run_client, "fast", "connection", "Name and number of this connection" },
    { "command", -1, run_command, "readonly", "server", "The commands that there are" },
    { "config", -2, run_config, "readonly", "server",
      "Settings that tools ask for: CONFIG GET name" },
    { "echo", 2, run_echo, "fast", "connection", "Say it again" },
    { "firn.inspect", 2, run_inspect, "readonly", "firn", "What an ID says" },
    { "firn.next", -2, run_next, "write", "firn",
      "Mint: " NEXT_USAGE "; a retry with the same key gets the same again" },
    { "get", 2, run_get, "readonly", "string", "The next number of a sequence, not taken" },
    { "hello", -1, run_hello, "fast", "connection", "Choose the protocol's version" },
    { "incr", 2, run_incr, "write", "string", "Take the next number of a sequence" },
    { "incrby", 3, run_incrby, "write", "string", "Take n numbers; the answer is the last" },
    { "info", -1, run_info, "readonly", "server", "The state of this server" },
    { "ping", -1, run_ping, "fast", "connection", "Is anybody there?" },
    { "quit", -1, run_quit, "fast", "connection", "Close the connection" },
    { "select", 2, run_select, "fast", "connection", "Only database 0 exists" },
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

static const struct command *find_command(const char *p, size_t len)
{
    char first = len ? (char)(p[0] | 0x20) : 0; /* most rows are passed by their first letter */
    for (size_t i = 0; i < COMMANDS; i++)
        if (commands[i].name[0] == first && strlen(commands[i].name) == len &&
            strncasecmp(commands[i].name, p, len) == 0)
            return &commands[i];
    return NULL;
}

/* One entry as COMMAND INFO gives it: name, arity, flags, first key, last key, step, and four more. */
static void write_command(struct reply *r, const struct command *c)
{
    int key = strcmp(c->group, "string") == 0;
    resp_array(r->out, 10);
    resp_bulk_str(r->out, c->name);
    resp_int(r->out, c->arity);
    resp_set(r->out, proto(r), 1);
    resp_simple(r->out, c->flag);
    resp_int(r->out, key);
    resp_int(r->out, key);
    resp_int(r->out, key);
    for (int i = 0; i < 4; i++)
        resp_array(r->out, 0);
}

static void write_docs(struct reply *r, const struct command *c)
{
    resp_bulk_str(r->out, c->name);
    resp_map(r->out, proto(r), 2);
    resp_bulk_str(r->out, "summary");
    resp_bulk_str(r->out, c->summary);
    resp_bulk_str(r->out, "group");
    resp_bulk_str(r->out, c->group);
}

static void run_command(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    bool docs = resp_is(q, 1, "docs"), info = resp_is(q, 1, "info");
    if (resp_is(q, 1, "count")) {
        resp_int(r->out, COMMANDS);
    } else if (resp_is(q, 1, "list")) {
        resp_array(r->out, COMMANDS);
        for (size_t i = 0; i < COMMANDS; i++)
            resp_bulk_str(r->out, commands[i].name);
    } else if ((docs || info) && q->argc > 2) {
        size_t known = 0;
        for (size_t i = 2; i < q->argc; i++)
            known += find_command(q->argv[i].p, q->argv[i].len) != NULL;
        if (docs)
            resp_map(r->out, proto(r), known);
        else
            resp_array(r->out, q->argc - 2);
        for (size_t i = 2; i < q->argc; i++) {
            const struct command *c = find_command(q->argv[i].p, q->argv[i].len);
            if (c && docs)
                write_docs(r, c);
            else if (c)
                write_command(r, c);
            else if (info)
                resp_null(r->out, proto(r));
        }
    } else if (q->argc == 1 || docs || info) {
        if (docs)
            resp_map(r->out, proto(r), COMMANDS);
        else
            resp_array(r->out, COMMANDS);
        for (size_t i = 0; i < COMMANDS; i++) {
            if (docs)
                write_docs(r, &commands[i]);
            else
                write_command(r, &commands[i]);
        }
    } else {
        resp_error(r->out,
                   "ERR unknown subcommand. Try COMMAND, COMMAND COUNT, LIST, INFO or DOCS.");
    }
}

/* An unknown command answers as Redis does, its first arguments included. */
static void unknown(const struct resp_request *q, struct reply *r)
{
    char args[160] = "";
    size_t at = 0;
    for (size_t i = 1; i < q->argc && at < 128; i++) {
        size_t len = q->argv[i].len < 128 - at ? q->argv[i].len : 128 - at;
        at += (size_t)snprintf(args + at, sizeof args - at, "'%.*s' ", (int)len, q->argv[i].p);
        if (at >= sizeof args)
            break;
    }
    resp_errorf(r->out, "ERR unknown command '%.*s', with args beginning with: %s",
                (int)(q->argv[0].len < 128 ? q->argv[0].len : 128), q->argv[0].p, args);
}

void resp_handle(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    const struct command *c = find_command(q->argv[0].p, q->argv[0].len);
    if (!c) {
        unknown(q, r);
        return;
    }
    size_t least = (size_t)(c->arity < 0 ? -c->arity : c->arity);
    if (q->argc < least || (c->arity > 0 && q->argc > least)) {
        resp_errorf(r->out, "ERR wrong number of arguments for '%s' command", c->name);
        return;
    }
    c->run(ctx, q, r);
}
