/* Sends a request to servers, with retries, until one answers or the deadline. */
#include "client/trip.h"
#include "client/core.h"
#include "client/http1.h"
#include "client/resp2.h"
#include "platform/assert.h"
#include "platform/mono.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the caller's hooks --- */

static void describe(const struct trip *t, struct firn_client_attempt *a)
{
    *a = (struct firn_client_attempt){
        .size = sizeof *a,
        .number = t->number,
        .user = t->user,
        .what = t->what,
        .host = t->name.host,
        .port = t->name.port,
        .shard = t->request.shard,
        .request_id = t->request.id,
        .parent = t->parent,
        .traceparent = t->request.traceparent,
        .began_ns = t->began_us * 1000,
    };
}

static void show_begin(struct trip *t)
{
    const struct firn_client_opts *h = t->core->hooks;
    struct firn_client_attempt a;
    struct trace_parent own;
    char text[FIRN_CLIENT_TRACEPARENT_BUF];
    t->number++;
    memcpy(t->request.traceparent, t->parent, sizeof t->parent);
    if (!h || (!h->attempt_begin && !h->attempt_end))
        return;
    t->shown = true;
    if (!h->attempt_begin)
        return;
    describe(t, &a);
    memcpy(text, t->parent, sizeof t->parent);
    h->attempt_begin(h->user, &a, text);
    text[sizeof text - 1] = '\0';
    if (trace_parent_read((struct slice){ text, strlen(text) }, &own) == 0)
        trace_parent_write(&own, t->request.traceparent);
}

static void show_end(struct trip *t, int error, const char *said)
{
    const struct firn_client_opts *h = t->core->hooks;
    struct firn_client_attempt a;
    if (!t->shown)
        return;
    t->shown = false;
    if (!h->attempt_end)
        return;
    describe(t, &a);
    a.ended_ns = mono_ns();
    a.error = error;
    a.text = error ? said : "";
    h->attempt_end(h->user, &a);
}

/* --- trips --- */

void trip_start(struct trip *t, struct core *c, const struct request *q)
{
    memset(t, 0, offsetof(struct trip, out));
    t->core = c;
    t->request = *q;
    t->what = request_is_http(q) ? t->request.path : "id";
    memcpy(t->parent, q->traceparent, sizeof t->parent);
    t->pin = ANY_SERVER;
    t->deadline_ms = mono_ms() + c->opts->deadline_ms;
    core_earn(c);
}

void trip_done(struct trip *t)
{
    show_end(t, FIRN_ECLOSED, "the client gave up");
    if (t->channel)
        core_done(t->core, t->server, SERVER_SLIPPED, 0, NULL);
    channel_close(t->channel);
    t->channel = NULL;
    runs_free(&t->answer.numbers);
    free(t->body);
    t->body = NULL;
}

/* Appends a server's failure, once. Those that do not fit are left out: "..." stands for them. */
static void note_server(struct trip *t, const char *said)
{
    static const char more[] = "; ...";
    char piece[WHY_TEXT_BUF];
    size_t len = strlen(t->why), room = sizeof t->why - len - (sizeof more - 1);
    snprintf(piece, sizeof piece, "%.60s:%u: %.100s", t->name.host, t->name.port, said);
    if (strstr(t->why, piece))
        return;
    if (strlen(piece) + 2 < room)
        snprintf(t->why + len, room, "%s%s", len ? "; " : "", piece);
    else if (!strstr(t->why, more))
        snprintf(t->why + len, sizeof t->why - len, "%s", more);
}

/* The end of the sentence, which has its room whatever stands before it. */
static void note_end(struct trip *t, const char *text)
{
    size_t len = strlen(t->why), n = strlen(text) + 2;
    firn_assert(n < sizeof t->why);
    if (len > sizeof t->why - 1 - n)
        len = sizeof t->why - 1 - n;
    snprintf(t->why + len, sizeof t->why - len, "%s%s", len ? "; " : "", text);
}

static int finish(struct trip *t, int error)
{
    t->state = TRIP_DONE;
    t->error = error;
    if (error) {
        if (t->why[0] == '\0')
            note_end(t, firn_error_message(error));
        atomic_fetch_add_explicit(&t->core->stats.failures, 1, memory_order_relaxed);
    }
    return error;
}

/* The attempt failed: retries, or ends the trip with `error`. */
static int go_on(struct trip *t, int error, bool at_once)
{
    const struct client_opts *o = t->core->opts;
    t->tried |= UINT64_C(1) << t->server;
    if (t->once && t->asked) {
        note_end(t, "a number may have been taken: use firn_client_next_keyed() to ask again");
        return finish(t, FIRN_EUNKNOWN);
    }
    if (t->pin != ANY_SERVER)
        return finish(t, error);
    bool other = core_has_other(t->core, t->tried);
    if (!t->asked && other) { /* no server was asked yet: not a retry */
        t->state = TRIP_PICK;
        return 0;
    }
    if (t->attempts > o->retries)
        return finish(t, error);
    if (!core_may_retry(t->core)) {
        note_end(t, "no retry: too many calls fail, the retry budget is used up");
        return finish(t, error);
    }
    atomic_fetch_add_explicit(&t->core->stats.retries, 1, memory_order_relaxed);
    t->state = TRIP_PICK;
    if (!(at_once && other)) {
        t->pause_end_ms = mono_ms() + o->retry_delay_ms;
        t->state = TRIP_PAUSING;
    }
    return 0;
}

/* The server did not answer. */
static int attempt_failed(struct trip *t, enum verdict v, const char *said)
{
    struct channel *ch = t->channel;
    bool stale = t->asked && ch && ch->used && ch->in_len == 0 && v == SERVER_SLIPPED;
    note_server(t, said);
    show_end(t, FIRN_EIO, said);
    t->channel = NULL;
    channel_close(ch);
    core_done(t->core, t->server, v, 0, NULL);
    return go_on(t, FIRN_EIO, stale);
}

static bool speaks_resp(const struct trip *t)
{
    return t->core->opts->proto == PROTO_RESP && !request_is_http(&t->request);
}

static int pick(struct trip *t)
{
    struct core *c = t->core;
    uint64_t now = mono_ms();
    char why[WHY_BUF] = "";
    /* When all were tried there is another round: first all but the last one, then that one,
     * too. */
    const uint64_t rounds[] = { t->tried, UINT64_C(1) << t->server, 0 };
    bool found = false;
    for (size_t i = 0; i < 3 && !found; i++) {
        t->tried = rounds[i];
        found = core_pick(c, t->tried, t->pin, speaks_resp(t), &t->server, &t->name, &t->channel);
    }
    if (!found)
        return finish(t, FIRN_EIO);
    t->began_us = mono_us();
    t->attempt_end_ms = now + c->opts->timeout_ms;
    t->asked = false;
    t->sent = t->out_len = 0;
    runs_clear(&t->answer.numbers);
    t->answer = (struct response){ .numbers = t->answer.numbers };
    atomic_fetch_add_explicit(&c->stats.requests, 1, memory_order_relaxed);
    t->state = TRIP_OPENING;
    show_begin(t);
    if (t->channel)
        return 0;
    int r = channel_open(&t->name, c->tls, &t->channel, why);
    if (r == FIRN_ENOMEM) {
        core_done(c, t->server, SERVER_SLIPPED, 0, NULL);
        show_end(t, r, "out of memory");
        return finish(t, r);
    }
    if (r) {
        t->attempts += !core_has_other(c, t->tried | UINT64_C(1) << t->server);
        return attempt_failed(t, SERVER_DOWN, why);
    }
    return 0;
}

static int opening(struct trip *t)
{
    char why[WHY_BUF] = "";
    int r = channel_ready(t->channel, why);
    if (r == FIRN_EAGAIN)
        return r;
    if (r) {
        t->attempts += !core_has_other(t->core, t->tried | UINT64_C(1) << t->server);
        return attempt_failed(t, SERVER_DOWN, why);
    }
    const struct client_opts *o = t->core->opts;
    bool resp = t->channel->resp = speaks_resp(t);
    if (resp && !t->channel->greeted)
        t->out_len = resp2_write_auth(o, t->out, sizeof t->out);
    size_t room = sizeof t->out - t->out_len;
    size_t n = resp ? resp2_write(o, &t->request, t->out + t->out_len, room)
                    : http1_write(o, &t->name, &t->request, t->out, room);
    if (n == 0) {
        core_done(t->core, t->server, SERVER_FINE, 0, t->channel);
        t->channel = NULL;
        note_end(t, "the request is too long: use a shorter key or token");
        show_end(t, FIRN_ERANGE, "the request is too long");
        return finish(t, FIRN_ERANGE);
    }
    t->out_len += n;
    t->state = TRIP_SENDING;
    return 0;
}

static int sending(struct trip *t)
{
    char why[WHY_BUF] = "";
    while (t->sent < t->out_len) {
        long n = channel_send(t->channel, t->out + t->sent, t->out_len - t->sent, why);
        if (n == FIRN_EAGAIN)
            return FIRN_EAGAIN;
        if (n < 0) {
            t->attempts++;
            return attempt_failed(t, SERVER_SLIPPED, why);
        }
        t->sent += (size_t)n;
        t->asked = t->sent == t->out_len; /* before its last byte it is not a request */
    }
    t->state = TRIP_READING;
    return 0;
}

/* A complete response arrived. */
static int answered(struct trip *t, long used)
{
    struct channel *ch = t->channel;
    struct response *a = &t->answer;
    uint64_t took = mono_us() - t->began_us;
    if (a->error == 0 && request_is_http(&t->request)) {
        t->body = malloc(a->body_len + 1);
        if (!t->body)
            return attempt_failed(t, SERVER_FINE, "out of memory");
        memcpy(t->body, a->body, a->body_len);
        t->body[a->body_len] = '\0';
        t->body_len = a->body_len;
    }
    a->body = NULL;
    ch->used = true;
    ch->greeted = ch->resp;
    bool keep = !a->close && (size_t)used == ch->in_len;
    ch->in_len = 0;
    if (!keep)
        channel_close(ch);
    t->channel = NULL;
    core_done(t->core, t->server, a->busy ? SERVER_DOWN : SERVER_FINE, took, keep ? ch : NULL);
    show_end(t, a->error, a->text);
    if (a->error == 0)
        return finish(t, 0);
    note_server(t, a->text);
    t->asked = false; /* the server refused: it took no number */
    if (!a->again)
        return finish(t, a->error);
    t->asked = !t->once; /* the next attempt counts as a retry */
    return go_on(t, a->error, a->busy || a->error == FIRN_ENOSLOT);
}

static int reading(struct trip *t)
{
    const struct client_opts *o = t->core->opts;
    struct channel *ch = t->channel;
    char why[WHY_BUF] = "";
    for (;;) {
        int r = channel_recv(ch, why);
        if (r == FIRN_EAGAIN)
            return r;
        if (r) {
            t->attempts++;
            return attempt_failed(t, SERVER_SLIPPED,
                                  r == FIRN_ECLOSED  ? "closed without an answer"
                                  : r == FIRN_ENOMEM ? "out of memory"
                                                     : why);
        }
        struct response *a = &t->answer;
        long used = ch->resp ? resp2_read(ch->in, ch->in_len, !ch->greeted && o->token[0],
                                          &t->request, a)
                             : http1_read(ch->in, ch->in_len, &t->request, a);
        if (used == FIRN_EAGAIN)
            continue;
        t->attempts++;
        if (used < 0)
            return attempt_failed(t, SERVER_SLIPPED,
                                  used == FIRN_ENOMEM ? "out of memory" : "not an answer of firnd");
        return answered(t, used);
    }
}

/* Ends the attempt at its time-out, and the trip at its deadline. */
static int check_time(struct trip *t)
{
    uint64_t now = mono_ms();
    char said[64];
    bool attempt = t->state == TRIP_OPENING || t->state == TRIP_SENDING || t->state == TRIP_READING;
    if (now >= t->deadline_ms) {
        if (attempt) {
            t->pin = t->server; /* no other attempt */
            snprintf(said, sizeof said, "no answer until the deadline");
            return attempt_failed(t, SERVER_DOWN, said);
        }
        return finish(t, t->answer.error ? t->answer.error : FIRN_EIO);
    }
    if (attempt && now >= t->attempt_end_ms) {
        snprintf(said, sizeof said, "no answer within %llu ms",
                 (unsigned long long)t->core->opts->timeout_ms);
        t->attempts++;
        if (t->request.n > 1 && t->asked)
            t->request.n = (t->request.n + 3) /
                           4; /* a long answer may need more time than there is */
        return attempt_failed(t, SERVER_DOWN, said);
    }
    if (t->state == TRIP_PAUSING && now >= t->pause_end_ms) {
        t->state = TRIP_PICK;
        return 0;
    }
    return FIRN_EAGAIN;
}

bool trip_step(struct trip *t)
{
    static int (*const steps[])(struct trip *) = {
        [TRIP_PICK] = pick,       [TRIP_OPENING] = opening,    [TRIP_SENDING] = sending,
        [TRIP_READING] = reading, [TRIP_PAUSING] = check_time,
    };
    while (t->state != TRIP_DONE) {
        int r = steps[t->state](t); /* 0: the state has changed; FIRN_EAGAIN: not by itself */
        if (r == FIRN_EAGAIN && t->state != TRIP_DONE && check_time(t) == FIRN_EAGAIN &&
            t->state != TRIP_DONE)
            return false;
    }
    return true;
}

void trip_wants(const struct trip *t, int *out_fd, short *out_events, uint64_t *out_until_ms)
{
    *out_fd = t->channel ? t->channel->fd : -1;
    *out_events = t->channel ? t->channel->wants : 0;
    *out_until_ms = t->state == TRIP_PAUSING ? t->pause_end_ms : t->attempt_end_ms;
    if (*out_until_ms > t->deadline_ms)
        *out_until_ms = t->deadline_ms;
}

int trip_run(struct trip *t)
{
    while (!trip_step(t)) {
        struct pollfd p;
        uint64_t until, now = mono_ms();
        trip_wants(t, &p.fd, &p.events, &until);
        poll(&p, 1, until > now ? (int)(until - now < 60000 ? until - now : 60000) : 0);
    }
    return t->error;
}
