/*
 * breaker.h - the circuit breaker of a service: stops sending requests to it while it fails.
 *
 *   closed ── too many failures in a row, or too large a share of them ──▶ open
 *   open ── open_ms are over; doubled each time it opens again ──▶ half open
 *   half open ── one request at a time as a probe: enough succeed ──▶ closed; one fails ──▶ open
 *
 * Pure: time comes in, a plain struct is the state. One thread, or a lock of the caller. Whoever is
 * refused gets 503 with BREAKER_BODY.
 */
#ifndef FIRN_PROXY_BREAKER_H
#define FIRN_PROXY_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define BREAKER_BODY "{\"error\": \"Service temporarily unavailable\"}"

enum { BREAKER_SLICES = 10 }; /* of the window in which the share is counted */

struct breaker_rules {
    uint32_t consecutive;   /* failures in a row that open it; 0: no such rule */
    uint32_t error_percent; /* share of failures in the window that opens it; 0: no such rule */
    uint32_t volume_min;    /* ... if the window has at least so many answers */
    uint32_t window_ms;
    uint32_t open_ms, open_max_ms; /* how long it stays open at first, and at most */
    uint32_t probes;               /* successes in a row that close it again; at least 1 */
    uint32_t probe_ms;             /* a probe without answer for so long counts as failed */
};
#define BREAKER_RULES_INIT                                                           \
    {                                                                                \
        .consecutive = 5, .error_percent = 50, .volume_min = 20, .window_ms = 10000, \
        .open_ms = 5000, .open_max_ms = 60000, .probes = 1, .probe_ms = 30000        \
    }

/* NULL if the rules can be used, else what is wrong with them. */
const char *breaker_rules_wrong(const struct breaker_rules *r);

enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };
const char *breaker_state_name(enum breaker_state s);

struct breaker { /* zeroed: closed. All private but state and opened */
    enum breaker_state state;
    uint64_t opened;       /* times that it opened */
    uint32_t era;          /* counts changes of state: answers to older requests say nothing new */
    uint32_t in_a_row;     /* closed: failures. half open: successes */
    uint32_t reopened;     /* times that it opened without closing in between */
    uint64_t retry_ms;     /* open: when it half opens */
    uint64_t probe_end_ms; /* half open: when the probe under way is given up; 0: none is */
    uint32_t probe;        /* counts probes: which one is under way */
    uint64_t slice_at;     /* number of the newest slice of the window */
    uint32_t good[BREAKER_SLICES], bad[BREAKER_SLICES];
};

/* What a request carries from breaker_ask() to breaker_answer(). */
struct breaker_pass {
    bool pass, probes; /* probes: the breaker waits for this request's status */
    uint32_t era, probe;
};

/* May a request be sent? Each one that may is followed by one breaker_answer(). Refused:
 * breaker_retry_ms() says when it may be worth asking again. */
struct breaker_pass breaker_ask(struct breaker *b, const struct breaker_rules *r, uint64_t now_ms);

/* How the request ended. BREAKER_UNKNOWN: it says nothing about the service (the client went away,
 * the request was not sent). A 4xx answer is a success: the service is there. */
enum breaker_outcome { BREAKER_GOOD, BREAKER_BAD, BREAKER_UNKNOWN };
void breaker_answer(struct breaker *b, const struct breaker_rules *r, struct breaker_pass pass,
                    enum breaker_outcome how, uint64_t now_ms);

/* Milliseconds until a refused request may pass; at least 1. */
uint64_t breaker_retry_ms(const struct breaker *b, uint64_t now_ms);

#endif
