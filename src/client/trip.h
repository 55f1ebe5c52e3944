/*
 * trip.h - one question, brought to servers until one answers it: attempts with a time-out, retries a while
 * apart, each on another server, under one deadline and the retry budget. It never waits: trip_step() goes as
 * far as it can, then says what it waits for. A trip belongs to one thread at a time.
 *
 * When the next server is asked at once, and when only after a pause:
 *  - a server that cannot be reached has not been asked: the next one is, at once, and no retry is spent
 *  - one that says that it is not ready, or whose kept connection broke before a byte of the answer came: a
 *    retry, at once, as long as there is a server that was not tried and is well
 *  - all else (time-outs, cut answers): a retry, after the pause
 * A question that must not be repeated once it may have been understood (`once`: a number of a gapless sequence
 * without a key) ends with FIRN_EUNKNOWN then: the caller must know that there may be a hole.
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
    size_t pin; /* only this server, or ANY_SERVER */
    bool once;  /* see above */
    uint64_t deadline_ms;

    bool polled; /* a thread waits for its descriptor, and takes the next step (waiting.c) */
    enum { TRIP_PICK, TRIP_OPENING, TRIP_SENDING, TRIP_READING, TRIP_PAUSING, TRIP_DONE } state;
    struct channel *channel;
    struct server_name name;
    size_t server; /* that is asked now, or was last */
    uint64_t tried;
    uint32_t attempts; /* that count: a server that could not be reached does not */
    uint64_t began_us, attempt_end_ms, pause_end_ms;
    bool asked; /* in this attempt: the server may have understood the question */
    size_t out_len, sent;

    int error; /* when done */
    struct response answer;
    char *body; /* of REQUEST_GET and below: a copy with a NUL behind it; the trip's */
    size_t body_len;
    char why
        [WHY_TEXT_BUF]; /* the servers that were tried and what each answered; "" without error */
    char out[REQUEST_BYTES_MAX];
};

/* Big: not for stacks that matter. The question is copied. */
void trip_start(struct trip *t, struct core *c, const struct request *q);
void trip_done(struct trip *t); /* also before its end; the server's answer is then lost */

/* Go as far as it goes. True: it is over, and t->error is 0 or says why. False: wait (trip_wants), then again. */
bool trip_step(struct trip *t);

/* What it waits for: a descriptor (-1: none) and its events, and until when, CLOCK_MONOTONIC ms. */
void trip_wants(const struct trip *t, int *out_fd, short *out_events, uint64_t *out_until_ms);

/* Step and wait until it is over; t->error. */
FIRN_MUSTUSE int trip_run(struct trip *t);

#endif
