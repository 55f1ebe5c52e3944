/*
 * conn.h - a connection and its loop, for the files of src/net alone.
 */
#ifndef FIRN_NET_CONN_H
#define FIRN_NET_CONN_H

#include "net/loop.h"
#include "platform/assert.h"
#include "wire/tls.h"

#include <uv.h>

enum {
    READ_BYTES = 32 * 1024,                 /* most that one read takes */
    READS_PER_TURN = 32,                    /* of one connection, as long as there is more */
    IN_BYTES_MAX = READ_BYTES + 128 * 1024, /* behind the longest unfinished request */
    REQUESTS_PER_WAKE = 2048,               /* then other connections have their turn */
    DEFERRED_PER_CONN = 1024, /* replies that wait on one connection; reply_more() adds to them */
    GATHER_MAX = 32,          /* connections whose answers are sent together */
    GATHER_BYTES_MAX = 4096,  /* of one connection: longer answers are sent at once */
    LINGER_MS = 2000,         /* for the peer to read our last words before we close */
    /* While draining: for a request that may be on its way on an open HTTP connection. */
    DRAIN_GRACE_MS = 100,
    DRAIN_FIRST_MS =
        2000, /* after that: for the first request of a connection that has sent none */
};

_Static_assert(IN_BYTES_MAX >= READ_BYTES + (int)HTTP_REQUEST_BYTES_MAX, "");
_Static_assert(IN_BYTES_MAX >= READ_BYTES + (int)RESP_REQUEST_BYTES_MAX, "");
_Static_assert(READ_BYTES >= (int)TLS_PLAIN_BYTES, "room behind what was left over");

enum conn_state {
    CONN_READING,  /* requests are parsed as they come */
    CONN_WAITING,  /* a deferred reply must be done before the next request is looked at */
    CONN_DRAINING, /* the last reply is queued; send it, then wait for the peer to close */
    CONN_CLOSED,
};

/* Which deadline runs: one at a time, see conn_deadline(). */
enum wait_kind { WAIT_NOTHING, WAIT_IDLE, WAIT_HEAD, WAIT_BODY, WAIT_WRITE, WAIT_LINGER };

struct sending { /* bytes that libuv has until its callback */
    uv_write_t req;
    struct buf b;
};

struct conn {
    uv_tcp_t tcp;
    uv_os_fd_t fd; /* of `tcp`, which owns it */
    struct loop *loop;
    struct peer peer;
    enum conn_state state;
    enum wait_kind wait;
    uint32_t slot; /* in loop->slots */
    enum place place;
    bool reading, eof, throttled, continued, shut, last_request;
    bool in_todo, gathered;
    bool may_idle;       /* for idle_resp_ms: it speaks RESP, and the service lets it */
    uint64_t unknown_ms; /* since when it may not: it began, or lost its token */
    bool begun;          /* its first byte has been looked at: TLS or not */
    bool plain;          /* it was not TLS, but had to be */
    struct tls *tls;     /* or NULL */

    struct buf in; /* what a read left over: an unfinished request, or requests that wait */
    size_t in_at;  /* how much of it is used already */
    bool in_partial, in_body;
    bool pumping;  /* requests are being handed over, out of a buffer */
    size_t behind; /* bytes of it behind the request in hand */

    bool paused;              /* its next request is handed over again at resume_ms */
    uint64_t resume_ms;       /* of the loop's clock */
    uint64_t paused_since_ms; /* when that request was first handed over; 0: it was not yet */
    struct conn *pause_next, **pause_prev;

    struct buf out; /* answers behind `sending` */
    struct sending *sending;
    size_t
        queue_seen; /* libuv's queue when WAIT_WRITE was last set: did the peer take any since? */

    struct reply *first, **last; /* deferred, in the order of their requests */
    uint32_t waiting;            /* how many */
    size_t held;                 /* their bytes: those that are done, and what is expected */

    struct conn *todo_next, **todo_prev;
};

struct slot {
    struct conn *conn;
    uint64_t deadline_ms; /* 0: none */
};

/* A request of HTTP that came lately, without a body and without secrets: its bytes, and what they
 * mean. `req` borrows from `bytes`. */
enum { HEAD_KNOWN_BYTES_MAX = 512, HEAD_LEARN_EVERY = 16 };
struct known_head {
    size_t len; /* 0: none */
    unsigned misses;
    struct http_request req;
    char bytes[HEAD_KNOWN_BYTES_MAX];
};

/* Answers in loop.out that are sent when the poll is over. */
struct gathered {
    struct conn *conn; /* NULL: it was closed meanwhile */
    size_t at, len;
    bool progress; /* for conn_rest() */
};

struct listener {
    uv_tcp_t tcp;
    struct loop *loop;
    int tag;
    bool open, shared;
    bool stuck; /* no memory for a connection, tried again by the sweep */
    /* Whose the connections are; NULL: the loop's own, conn_accept(). */
    void (*accept)(struct listener *from, int fd);
    void *user;
    struct listener *next;
};

struct loop {
    uv_loop_t uv;
    struct loop_opts opts;
    const struct service *service;
    struct places *places;
    struct loop_stats stats; /* written by this thread, with relaxed atomics */

    /* Latencies. The clock is read when a turn begins to read, and when its answers were sent; what
     * was answered in between is timed then, all at once. Most requests are of kind 0 and answered
     * at once: they are those in `stats` that are not in `timed`, and cost nothing more. */
    uint64_t turn_ns;   /* when this turn began; 0: it has not begun to read */
    uint64_t settle_ns; /* when it began to flush deferred replies */
    uint64_t timed[2];  /* HTTP, RESP: requests that `latency`, `answered` or a reply has */
    uint32_t answered[2 * LATENCY_KINDS]; /* of other kinds, in this turn; RESP behind HTTP */
    uint32_t answered_set;                /* bit k: answered[k] is not 0 */
    struct latency latency[2 * LATENCY_KINDS];

    uv_async_t wake;
    uv_prepare_t prepare;
    uv_check_t polled;
    uv_idle_t busy; /* runs while `todo` is not empty, so that the loop does not sleep */
    uv_timer_t sweep;
    uv_timer_t retry;                   /* runs while connections are paused */
    struct conn *paused, **paused_last; /* in the order in which they were */
    struct listener *listeners;
    struct loop_task *_Atomic tasks; /* newest first */
    atomic_bool leave_asked, drain_asked;
    unsigned drain_turns; /* turns until draining begins, which read what has arrived */
    bool leaving;         /* HTTP answers end their connections */
    bool draining, stopped, handed_over;
    bool ports_open; /* while draining: the listeners wait for handshakes to end */
    uint64_t drain_until_ms;
    uv_timer_t grace; /* while draining: until idle HTTP connections are closed, see on_grace() */

    struct streams *streams; /* of a proxy: stream.h; or NULL */
    struct edge *edge;       /* the same: edge.h */
    struct upstream *pools;  /* the same: upstream.h */
    uint32_t outgoing;       /* connections of all pools */
    struct alarms *alarms;   /* the same: alarm.h */

    struct slot *slots; /* dense: the sweep reads nothing else */
    uint32_t slots_len, slots_cap;
    struct conn *todo; /* connections with replies to flush or requests left */

    struct reply *spare; /* deferred replies to use again */
    uint32_t spares;
    uint64_t held_bytes; /* in the connections' `out`, `sending` and done replies */

    char in[IN_BYTES_MAX]; /* shared: a connection owns input only between reads */
    char cipher
        [READ_BYTES];  /* shared: what a TLS connection reads, before it is plaintext in `in` */
    struct buf out;    /* shared: gathered answers, then those of the connection in hand */
    size_t out_from;   /* where the latter begin */
    struct buf sealed; /* shared: what a TLS connection sends, among it those answers */
    struct gathered gathered[GATHER_MAX];
    unsigned gathered_n;
    struct known_head known;
    struct resp_request resp;
    char date[40]; /* "Date: ...\r\n" */
    size_t date_len;
};

static inline void stat_add(uint64_t *counter, uint64_t n)
{
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + n, __ATOMIC_RELAXED);
}

static inline struct conn *peer_conn(const struct peer *p)
{
    return (struct conn *)((char *)(uintptr_t)p - offsetof(struct conn, peer));
}

/* Bytes in `in` that no request has used yet. */
static inline size_t conn_kept(const struct conn *c)
{
    return c->in.len - c->in_at;
}

static inline size_t conn_unsent(const struct conn *c)
{
    return c->tcp.write_queue_size + c->out.len;
}

/* Backpressure: a peer that does not read its replies is not read from. Two marks stop flapping. */
static inline bool conn_full(struct conn *c, size_t fresh)
{
    const struct loop_opts *o = &c->loop->opts;
    c->throttled = conn_unsent(c) + c->held + fresh >=
                   (c->throttled ? o->out_low_bytes : o->out_high_bytes);
    return c->throttled;
}

/* Above the limit: it may ask for the server's health, once, and nothing else. */
static inline bool conn_above(const struct conn *c)
{
    return c->place != PLACE_OPEN;
}

static inline unsigned latency_index(const struct conn *c, unsigned kind)
{
    return kind % LATENCY_KINDS + (c->peer.proto > 1 ? LATENCY_KINDS : 0);
}

/* loop.c */
FIRN_MUSTUSE int loop_listen_for(struct loop *l, int fd, int tag, bool shared,
                                 void (*accept)(struct listener *from, int fd), void *user);

/* conn.c */
void conn_accept(struct listener *from, int fd); /* fd < 0: the one that libuv has; else this one */
void conn_expire(struct conn *c);                /* its deadline has passed */
void conn_settle(struct conn *c); /* flush done replies, go on with left-over requests */
void conn_flush(struct loop *l);  /* send what was gathered */
void conn_time(struct loop *l);   /* the answers counted so far are sent: note how long they took */
void conn_drain(struct conn *c);  /* the loop drains: finish when nothing is in flight */
void conn_close(struct conn *c);
void conn_todo(struct conn *c);
void conn_pause(struct conn *c, uint32_t ms);
void conn_resume(struct conn *c); /* does nothing if it is not paused */
void conn_move(struct conn *c, enum conn_state next);
void conn_finish(struct conn *c); /* after the reply that is queued now, nothing more */

/* pump.c: answers the whole requests in p; returns how many bytes they were. The rest is an
 * unfinished request (in_partial), or waits for this connection's turn. */
size_t conn_pump(struct conn *c, char *p, size_t len);
/* The last answer, in the protocol that it speaks. */
void conn_refuse(struct conn *c, unsigned status, const char *http, const char *resp);

/* reply.c */
struct reply *reply_new(struct conn *c);
void reply_free(struct loop *l, struct reply *r);
void reply_take_back(struct conn *c, struct reply *r); /* the newest in the queue */
void reply_problem(struct reply *r, unsigned status, const char *detail);

#endif
