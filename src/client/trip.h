/*
 * trip.h - one request, sent to servers until one answers it.
 * Attempts have a time-out, retries a delay; each goes to another server, under one deadline and
 * the retry budget. A trip never blocks: trip_step() goes as far as it can, then trip_wants() tells
 * what it waits for. It belongs to one thread at a time.
 *
 * The next server is asked at once, or after the delay:
 *  - a server that cannot be reached was not asked: the next one is asked at once, no retry is
 *    spent
 *  - a server that reports that it is not ready, or whose kept connection broke before a byte of
 *    the response arrived: a retry, at once while there is a healthy server that was not tried
 *  - everything else (time-outs, truncated responses): a retry after the delay
 * A request that must not be repeated once a server may have understood it (`once`: a number of a
 * gapless sequence without a key) then ends with FIRN_EUNKNOWN: the caller must know that there may
 * be a hole.
 */
#ifndef FIRN_CLIENT_TRIP_H
#define FIRN_CLIENT_TRIP_H

#include "client/request.h"

struct core;
struct channel;

enum { WHY_TEXT_BUF = sizeof(((struct firn_diag *)0)->text), ANY_SERVER = SERVERS_MAX };

struct trip {
    struct core *core;
    struct request request;
    const char *what;              /* for the caller's hooks: "id", "block", or a path of the API */
    void *user;                    /* of the ask, for the same */
    char parent[TRACE_PARENT_BUF]; /* the ask's traceparent; the request has the attempt's */
    size_t pin;                    /* the only server that is asked, or ANY_SERVER */
    bool once;                     /* see above */
    uint64_t deadline_ms;

    bool polled; /* a thread polls its descriptor and takes the next step (waiting.c) */
    enum { TRIP_PICK, TRIP_OPENING, TRIP_SENDING, TRIP_READING, TRIP_PAUSING, TRIP_DONE } state;
    struct channel *channel;
    struct server_name name;
    size_t server;     /* the server of this attempt, or of the last one */
    uint64_t tried;    /* a bit per server */
    uint32_t attempts; /* without those on servers that could not be reached */
    uint32_t number;   /* of this attempt: of all */
    bool shown;        /* the attempt's beginning was shown to the hooks, its end was not */
    uint64_t began_us, attempt_end_ms, pause_end_ms;
    bool asked; /* in this attempt: the server may have understood the request */
    size_t out_len, sent;

    int error; /* when done */
    struct response answer;
    char *body; /* REQUEST_GET and below: a copy with a NUL, owned by the trip */
    size_t body_len;
    char why[WHY_TEXT_BUF]; /* which servers were tried and what each answered */
    char out[REQUEST_BYTES_MAX];
};

/* A trip is large (6 KiB). The request is copied. */
void trip_start(struct trip *t, struct core *c, const struct request *q);
void trip_done(struct trip *t); /* also before its end: the response is then lost */

/* Goes as far as possible. True: it is over, see t->error. False: wait (trip_wants), call again. */
bool trip_step(struct trip *t);

/* A descriptor (-1: none), its events, and until when to wait for them, in mono_ms(). */
void trip_wants(const struct trip *t, int *out_fd, short *out_events, uint64_t *out_until_ms);

/* Steps and waits until it is over; returns t->error. */
FIRN_MUSTUSE int trip_run(struct trip *t);

#endif
