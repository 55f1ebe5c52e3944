/*
 * balance.h - chooses the server for a request: of two picked at random the less busy one.
 * A server that fails is avoided for a while, longer after each failure, and then gets one call to
 * show that it is back. Pure: time and randomness are arguments.
 */
#ifndef FIRN_CLIENT_BALANCE_H
#define FIRN_CLIENT_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUT_FIRST_MS = 500, /* how long a server is avoided first; doubled up to OUT_MAX_MS */
    OUT_MAX_MS = 30000,
    SLIPS_MAX = 2, /* failures in a row that may be chance, such as a broken connection */
};

struct health {            /* zeroed: a server that nothing is known about */
    uint32_t busy;         /* calls under way */
    uint32_t slips;        /* failures since the last success */
    uint32_t outs;         /* times it was put out since the last success */
    uint64_t out_until_ms; /* 0: it is in */
    uint32_t latency_us;   /* moving average of its answers */
    bool clash;            /* another server uses its slot: only if no other answers */
};

enum verdict {
    SERVER_FINE,
    SERVER_SLIPPED, /* failed in a way that says little: out after SLIPS_MAX in a row */
    SERVER_DOWN,    /* refused, silent, or says itself that it is not ready: out at once */
};

/* The server for the next attempt, or `n` if all are among `tried` (a bit each). Servers that
 * are out come last, first the one that comes back soonest: a poor server is better than none. */
size_t balance_pick(const struct health *h, size_t n, uint64_t tried, uint64_t now_ms,
                    uint64_t random);

/* Whether it is avoided while there is another one. */
bool balance_is_out(const struct health *h, uint64_t now_ms);

void balance_begin(struct health *h);
void balance_end(struct health *h, enum verdict v, uint64_t took_us, uint64_t now_ms);

#endif
