/*
 * gather.h - requests of the gateway's own that are parts of a client's call: started one by one,
 * each with its answer's body in memory up to a bound, and told when it is over. Parts pass the
 * chain from the breaker on, with the fields that the client's call has after its transformation
 * but for those that belong to its own body, range or cached copy. All on the call's loop.
 */
#ifndef FIRN_PROXY_GATHER_H
#define FIRN_PROXY_GATHER_H

#include "proxy/call.h"

struct gather_part {
    struct gather *g;
    struct call *c; /* NULL: it is over, or was not started */
    struct alarm stop;
    bool too_large, busy, stopping; /* busy: the loop holds too much already */
    size_t held;                    /* of the body, by held.h */

    /* When it is over. */
    unsigned status; /* of the answer; 0: there was none */
    bool own;        /* the gateway made it up */
    const char *why; /* NULL: the body counts. Otherwise what went wrong, a constant */
    struct buf body;
};

struct gather {
    struct call *outer;
    size_t part_bytes; /* of one body */
    /* Also from inside of gather_start(). */
    void (*over)(struct gather *g, struct gather_part *p);
    struct http_head head; /* of all parts */
    bool minted;           /* a part may have minted an ID */
};

void gather_init(struct gather *g, struct call *outer, size_t part_bytes,
                 void (*over)(struct gather *g, struct gather_part *p));

/* GET `target` (borrowed until it is over). `p` is zeroed and stays where it is. */
void gather_start(struct gather *g, struct gather_part *p, struct backend *b, struct slice target);

/* Whether each answer of the service to `target` (canonical) may hold a new ID: `mints` says so, or
 * its path is one that mints. Such requests are never merged. */
bool gather_mints(const struct backend *b, struct slice target);

/* The header lines of the answer that is made of the parts. One with a new ID says that no cache
 * may keep it. */
const char *gather_fields(const struct gather *g);

/* Ends it, with `why` if it still ran; over() is not called. */
void gather_stop(struct gather_part *p, unsigned status, const char *why);

/* Frees the body of a part that is over. */
void gather_drop(struct gather_part *p);

/* The same; a part that runs is ended. */
void gather_part_done(struct gather_part *p);

#endif
