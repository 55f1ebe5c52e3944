/*
 * upstream_line.h - the insides of a pool of connections (upstream.h): what upstream.c, which reads
 * answers and tells owners, and upstream_line.c, which keeps the lists, share. No callback of an
 * owner happens in here. On the loop's thread.
 */
#ifndef FIRN_NET_UPSTREAM_LINE_H
#define FIRN_NET_UPSTREAM_LINE_H

#include "net/alarm.h"
#include "net/stream.h"
#include "net/upstream.h"
#include "wire/http_body.h"
#include "wire/proxy_protocol.h"
#include "wire/url.h"

struct line { /* a connection */
    struct stream *stream;
    struct upstream *pool;
    struct exchange *x, **last; /* in order; NULL: idle */
    uint32_t n;                 /* exchanges */
    bool connected, idle;
    bool busy, dead; /* in a callback of its stream, after which it is freed */
    uint32_t served;
    struct line *next, **prev; /* in pool->lines or pool->idle */
};

struct exchange {
    struct upstream *pool;
    struct line *line; /* NULL: it waits for one */
    const struct exchange_calls *calls;
    void *user;
    struct buf head; /* of the request, until it is sent */
    bool is_head, chunked, upgrade, counted, fresh;
    uint64_t left; /* of the request's body, counted */
    bool sent;     /* the head, and ready() was called */
    bool ended;    /* the request is complete */
    bool heard;    /* a byte of the answer came */
    bool answered; /* head() was called */
    bool paused, keep, tunnel, throttled;
    bool pipes;            /* may share a connection */
    bool dropped;          /* cancelled, but its answer has to be read */
    bool orphan;           /* waits to be told `end` */
    enum exchange_end end; /* with orphan */
    size_t dropped_bytes;
    unsigned interim;
    uint64_t wait_until_ms;      /* of the loop's clock */
    char proxy[PROXY_WRITE_MAX]; /* a PROXY header for its connection */
    uint8_t proxy_len;           /* 0: none */
    struct http_body in;
    struct exchange *next, **prev; /* in pool->waiting or line->x */
};

struct upstream {
    struct loop *loop;
    struct upstream_opts opts;
    struct sockaddr_storage to;
    char host[HOST_BYTES_MAX + 1];
    struct line *lines, *idle; /* idle: the last used first */
    struct line *filling;      /* or NULL: takes further requests, none of its own is sent */
    uint64_t rest_until_ms;    /* no pipelining before */
    struct exchange *waiting, **waiting_last; /* orphans first */
    struct alarm crowded; /* when the first of those that wait has waited for too long */
    bool crowded_set;
    bool starved; /* a connection was wanted while the loop had as many as it may have */
    struct upstream *next, **prev; /* pools of the loop */
    struct upstream_stats stats;
    bool freeing;
    unsigned depth; /* in callbacks of its streams: it is freed when the last one returns */
};

void line_link(struct line *c, struct line **list);
void line_unlink(struct line *c);
void line_close(struct line *c); /* it has no exchange */
void line_deadline(struct line *c);

/* Whether an exchange of the connection still has an owner. */
bool line_wanted(const struct line *c);

/* Those behind `x`, or with NULL all, are not answered on this connection: they go to the front of
 * those that wait, where upstream.c's pump() tells them. */
void line_orphan(struct line *c, struct exchange *x);

void exchange_unlink(struct exchange *x); /* from the list that it is on */
void exchange_free(struct exchange *x);   /* it is on none */

/* At the end of the connection's queue. */
void exchange_attach(struct exchange *x, struct line *c);

/* Takes the exchange off its connection, which is used again or closed, or off those that wait. */
void exchange_detach(struct exchange *x, bool reuse);

#endif
