/*
 * service.h - where the server room plugs in: what a network loop calls for each request, and how
 * the answer gets back. Everything here happens on the loop's own thread; nothing is locked.
 *
 * The way of a request: the loop parses it and calls http() or resp() with a struct reply. The
 * handler appends its answer and returns: done. Or it calls reply_defer(), keeps the struct reply
 * that this returns, and later, on the same thread (loop_call() brings one there), appends the
 * answer and calls reply_done(). Answers leave in the order of their requests whatever the order of
 * reply_done(). When the peer went away in between, everything works the same and goes nowhere.
 */
#ifndef FIRN_NET_SERVICE_H
#define FIRN_NET_SERVICE_H

#include "net/places.h"
#include "wire/buf.h"
#include "wire/http.h"
#include "wire/resp.h"

struct conn;
struct loop;

enum { LATENCY_KINDS = 8 }; /* of requests, for latencies; what they mean is the service's */
struct service_ctx;         /* the server room's, one per loop; net only hands it back */

/* The other end of a connection, as the service sees it. Lives as long as the connection. */
struct peer {
    uint64_t id;    /* of the connection; unique in the process, from 1 */
    int tag;        /* of the listener it came in by: loop_listen() */
    uint8_t proto;  /* 0: not known yet, 1: HTTP, 2 or 3: RESP; the service sets 3 after HELLO 3 */
    bool authed;    /* the service's own, false at first */
    uint32_t flags; /* the service's own, 0 at first */
    void *user;     /* the service's own, NULL at first; give it back in closed() */
    uint64_t key;   /* the service's own, 0 at first */
    struct network network; /* where it is */
    bool tls;               /* it speaks TLS */
    const char *cert_name;  /* in the certificate it proved to own, see tls_peer_name(); or NULL */
};

/* "127.0.0.1:51234", "[::1]:51234"; "?" when the peer is gone already. A system call: not for every
 * request. */
enum { PEER_ADDRESS_BUF = 64 };
void peer_address(const struct peer *p, char out[PEER_ADDRESS_BUF]);

struct reply {
    struct buf *out;   /* append here (RESP: the writers of resp.h; HTTP: after reply_head()) */
    struct peer *peer; /* NULL once a deferred reply's connection is gone */
    bool close;        /* set it to end the connection after this answer (QUIT) */
    uint32_t repeats; /* set it if the answer also holds those of so many resp_ or http_repeats() */
    bool follows;     /* set it before an HTTP answer that is not the last of those */
    const char *fields; /* more header lines of the HTTP answer, or NULL; they outlive the reply */
    uint32_t waited_ms; /* 0, or since when this request is handed over again: reply_retry() */
    void *user;         /* the service's own, NULL at first; a deferred reply has it, too */
    uint8_t timed_as;   /* set it: which of LATENCY_KINDS the time of this request counts as; 0 is
                         * for the most frequent requests of each protocol */

    /* private */
    bool head, keep_alive, deferred, done, serial;
    uint8_t minor;
    uint16_t status;   /* of the head; 0: none yet, or reply_ok()'s */
    bool once;         /* its bytes are not what they were: it cannot be parsed again */
    uint32_t retry_ms; /* 0: no */
    size_t run_bytes;  /* of each request of a run */
    uint32_t served;   /* of a reply in the queue: the requests that it answers, for latencies */
    uint64_t began_ns; /* and when they were read */
    struct loop *loop;
    size_t body_at; /* where the body begins in `out` */
    size_t held;    /* bytes that count as unsent: expected, or done */
    struct buf own; /* `out` of a deferred reply */
    struct reply *next;
};

enum { COMMAND_BYTES_MAX = 32 }; /* of a command's name */

struct service {
    struct service_ctx *ctx;

    /* The request's slices are borrowed until the handler returns: a deferred answer copies what it
     * needs. HEAD arrives as METHOD_HEAD; answer it like GET, the body is left out on the way. A
     * handler that appends nothing answers HTTP with 500 and RESP with an error. Without resp() the
     * service speaks HTTP alone: RESP is refused with an error that says so. */
    void (*http)(struct service_ctx *ctx, const struct http_request *req, struct reply *r);
    void (*resp)(struct service_ctx *ctx, const struct resp_request *req, struct reply *r);

    /* Optional. After a turn of the loop in which requests were handed over, before it sleeps: one
     * wake-up of another thread for all that was deferred. */
    void (*turn)(struct service_ctx *ctx);

    /* Optional. A deferred reply with a `user` is done, also when its peer is gone; the last look
     * at both. One that was answered in http() or resp() has no such call. */
    void (*answered)(struct service_ctx *ctx, struct reply *r);

    /* Optional. The connection is gone; free what peer->user names. */
    void (*closed)(struct service_ctx *ctx, struct peer *p);

    /* Optional. Whether the word, in any case, is a command of resp(): then a connection may begin
     * with a line of text instead of an array. */
    bool (*command)(const char *p, size_t len);

    /* Optional. Whether a connection above the limit may ask this; without it, none may ask
     * anything. Its connection is closed after the answer. */
    bool (*vital)(const struct http_request *req);

    /* Optional. Whether a RESP connection may stay open without a request for idle_resp_ms; without
     * it, every one may. */
    bool (*may_idle)(struct service_ctx *ctx, const struct peer *p);
};

/* The head of an HTTP answer: status line, Date, `fields` (whole lines, each with its CRLF; may be
 * ""), Connection where it is needed, Content-Length: exactly that many bytes must be appended to
 * r->out. 204 and 304 carry neither length nor body. */
void reply_head(struct reply *r, unsigned status, const char *fields, uint64_t len);

/* Head and body at once. */
void reply_http(struct reply *r, unsigned status, const char *fields, const void *body, size_t len);

/* The same for the hot path: status 200, `fields_len` known, a body below 1,000 bytes. */
void reply_ok(struct reply *r, const char *fields, size_t fields_len, const char *body, size_t len);

/* For a body whose length is known only afterwards: begin, append to r->out, end. */
void reply_begin(struct reply *r, unsigned status, const char *fields);
void reply_end(struct reply *r);

/* Earlier requests of this connection still wait for their answers. */
static inline bool reply_behind(const struct reply *r)
{
    return r->out == &r->own;
}

/* Whether the handler has answered: it neither deferred the reply nor asked for another time. */
static inline bool reply_answered(const struct reply *r)
{
    return !r->deferred && r->retry_ms == 0;
}

/* The status of an HTTP answer that was begun. */
static inline unsigned reply_status(const struct reply *r)
{
    return r->status ? r->status : 200;
}

/* For RESP, an array whose elements are answered one by one: append its head to `r`, then for each
 * element call reply_more(), answer or defer what it returns (`spot`, or a reply behind those that
 * wait), and call reply_more_done(). At most REPLIES_MORE_MAX elements. NULL: no memory. */
enum { REPLIES_MORE_MAX = 1024 };
struct reply *reply_more(struct reply *r, struct reply *spot);
void reply_more_done(struct reply *r, struct reply *more);

enum defer_mode {
    DEFER_PIPELINED, /* the connection's next requests may be handed over meanwhile */
    DEFER_SERIAL,    /* nothing more of this connection before reply_done() */
};

/* Call it in the handler before anything is appended. The reply that it returns takes the place of
 * `r` and belongs to the caller until reply_done(). NULL: no room; answer at once, with a refusal.
 */
struct reply *reply_defer(struct reply *r, enum defer_mode mode);

/* Instead of an answer: hand the same request over again after about `ms`, and nothing of its
 * connection before it. Others are served meanwhile. False: it cannot wait, answer it. */
FIRN_MUSTUSE bool reply_retry(struct reply *r, uint32_t ms);

/* How long a deferred answer will be, about. It counts as unsent from now on, so that a peer that
 * asks for a lot at once is not read from until that is on its way. */
void reply_expect(struct reply *r, size_t len);

/* The answer is complete. Every deferred reply is done exactly once, also when r->peer is NULL. */
void reply_done(struct reply *r);

#endif
