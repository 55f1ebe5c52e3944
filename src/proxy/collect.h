/*
 * collect.h - the whole body of a request in memory, for a link that must see it before a server
 * does. What is sent on is `bytes`, which the link may replace; a request that has its body here
 * can be sent again. On the call's loop.
 */
#ifndef FIRN_PROXY_COLLECT_H
#define FIRN_PROXY_COLLECT_H

#include "proxy/call.h"

struct collected {
    struct buf bytes;
    size_t held; /* of them, by held.h */
    bool whole;
    size_t sent; /* to the server that is asked now */
    void (*then)(struct call *c);
};

/* In a link's request(): returns what it returns. LINK_NEXT: the request has no body, and
 * c->collected is NULL. LINK_WAIT: `then` is called when the body is here, and goes on with
 * call_resume() or answers. LINK_DONE: it was answered with 413 or 503, which may also happen
 * later. */
enum link_result collect_begin(struct call *c, size_t max, void (*then)(struct call *c));

/* --- by call.c and forward.c --- */

bool collect_more(struct call *c, const char *p, size_t len);
void collect_end(struct call *c);
void collect_send(struct call *c); /* to c->x, which is ready */
void collect_free(struct call *c);

#endif
