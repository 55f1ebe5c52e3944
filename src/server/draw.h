/*
 * draw.h - numbers for a request: its client's share of them, or a while to wait for it.
 * For the loop's thread.
 */
#ifndef FIRN_SERVER_DRAW_H
#define FIRN_SERVER_DRAW_H

#include "server/app.h"

struct draw {
    enum leased which;
    uint64_t shard;
    size_t n;                   /* numbers that the request needs */
    size_t more;                /* up to so many more, for requests like it that follow */
    struct slice authorization; /* of an HTTP request */
};

/* What clients took lately, for all loops. NULL: no memory. */
struct rate_table *draw_shares_new(void);

/* Puts d->n + d->more numbers, or at least d->n, into ctx->numbers; *out_n says how many. On error
 * *out_again tells whether the request will be handed over again (reply_retry()): then it gets no
 * answer now. Otherwise mint_trouble() has the words. */
FIRN_MUSTUSE int draw_numbers(struct service_ctx *ctx, struct reply *r, const struct draw *d,
                              size_t *out_n, bool *out_again);

#endif
