/*
 * upstream.h - the side of a proxy that talks to servers: pools of connections, requests sent on
 * them, and answers read from them while they still arrive.
 *
 * Threads: a pool belongs to one loop, as connections do. All calls and all callbacks happen on
 * that loop's thread; nothing is locked. A program with several loops has a pool per loop and
 * server.
 *
 * An exchange is one request and its answer:
 *
 *     exchange_begin() ── head ─▶  ready()  exchange_write() ── body ─▶  exchange_end()
 *     head() ◀── status and fields ──   body() ◀── bytes as they come ──   done() ◀── the end
 *
 * Backpressure, both ways, and never by waiting: exchange_write() takes all bytes and says whether
 * to stop, ready() says when there is room again; body() says whether to go on, and
 * exchange_resume() when it can. Until then the socket is not read. So a proxy holds at most a
 * window and a read (net/stream.h) per direction of an exchange, however fast one side is.
 *
 * Answers are checked as strictly as the requests that firnd reads: one length, no folded lines, no
 * bytes behind the answer. What does not conform ends the exchange with EXCHANGE_BAD_ANSWER and
 * closes the connection, so that nothing can be smuggled from one exchange into the next. Interim
 * answers (1xx) are told to interim(); 101 only answers a request to upgrade. A connection is used
 * again only when request and answer were complete, in that order.
 *
 * Pipelining (upstream_opts.pipeline): requests of one turn of the loop that have no body and are
 * repeatable leave on one connection with one write, and answers are matched in order. A request is
 * put behind another one only before that one is sent, so that nobody joins a queue that already
 * waits. When the connection breaks, when an answer says that it ends, times out, or has to wait
 * for its reader, the exchanges behind it end with EXCHANGE_STALE at once: they are repeatable, and
 * `fresh` sends each on a connection of its own. head_ms counts from the end of the answer before.
 * A server that frames its answers wrongly mixes them up: only for servers that are trusted.
 */
#ifndef FIRN_NET_UPSTREAM_H
#define FIRN_NET_UPSTREAM_H

#include "firn/error.h"
#include "net/loop.h"
#include "wire/http_response.h"

struct tls_context; /* wire/tls_context.h */
struct upstream;    /* a pool: the connections of one loop to one address */
struct exchange;    /* one request and its answer */

struct upstream_opts {       /* zero means the default */
    uint32_t conns_max;      /* of this pool; default 256. Beyond it requests wait in order */
    uint32_t waiting_max;    /* requests that wait for a connection; default 1,024 */
    uint32_t wait_ms;        /* for a connection, while all are in use; default 3,000 */
    uint32_t connect_ms;     /* with the TLS handshake; default 1,000 */
    uint32_t head_ms;        /* from the end of the request to the answer's head; default 60,000 */
    uint32_t body_ms;        /* between two pieces of a body, either way; default 30,000 */
    uint32_t idle_ms;        /* before an unused connection is closed; default 30,000 */
    uint32_t pipeline;       /* requests on one connection at a time; default 1 */
    uint32_t rest_ms;        /* without pipelining, after a server closed it early; default 1,000 */
    uint32_t tunnel_ms;      /* a tunnel without a byte either way; default 1 h */
    uint32_t tunnel_end_ms;  /* the same after the client's end; default 10,000 */
    struct tls_context *tls; /* borrowed; NULL: plaintext */
    const char *server_name; /* checked against the certificate; copied. NULL: the address */
};

/* Counted by the loop, read by any thread. */
struct upstream_stats {
    uint64_t conns, in_flight, waiting; /* now */
    uint64_t connects, connect_errors, requests, reused, bad_answers, timeouts;
    uint64_t pipelined; /* requests that were put behind another one on its connection */
};

/* `address` is "host:port", "[v6]:port" or "unix:/path"; names are looked up by the caller, so it
 * has an IP address. No connection is made before the first exchange. FIRN_EINVAL: not one. */
FIRN_MUSTUSE int upstream_new(struct loop *loop, const char *address,
                              const struct upstream_opts *opts, struct upstream **out);

/* Exchanges that are not done get EXCHANGE_CLOSED. Also inside of a callback. NULL is fine. */
void upstream_free(struct upstream *u);
void upstream_stats(const struct upstream *u, struct upstream_stats *out);

enum { EXCHANGE_LENGTH_UNKNOWN = -1 }; /* chunked, or to the end of the connection */

struct exchange_request {
    struct slice method, target;
    struct slice
        fields;       /* whole lines, each with its CR LF; borrowed until exchange_begin() returns.
                          * Without those of framing and Connection, which are added */
    int64_t body_len; /* 0: no body follows; EXCHANGE_LENGTH_UNKNOWN: it is sent in chunks */
    bool repeatable;  /* harmless when the server sees it twice: an idle connection is used without
                          * asking the kernel whether the server has just closed it */
    bool fresh;       /* on a new connection: after EXCHANGE_STALE */
    bool upgrade;     /* 101 is an answer */
    /* A PROXY header: the connection is a new one, begins with it and serves this request alone,
     * because it belongs to one client. */
    struct slice proxy;
};

struct exchange_answer {              /* borrowed until head() returns */
    const struct http_response *head; /* all fields; never an interim one but 101 */
    int64_t body_len; /* EXCHANGE_LENGTH_UNKNOWN: until done(). To HEAD, or with 304:
                                        * what Content-Length says; body() is not called */
};

enum exchange_end {
    EXCHANGE_OK,         /* the whole answer was delivered */
    EXCHANGE_NO_CONNECT, /* nothing was sent: another server may be tried */
    EXCHANGE_STALE,      /* a connection that was idle before ended without a byte of an answer,
                          * or, pipelined, an answer before this one stopped those behind it */
    EXCHANGE_BROKEN,     /* it ended later: the request may have had its effect */
    EXCHANGE_TIMEOUT,    /* the same, by a deadline */
    EXCHANGE_BAD_ANSWER, /* bytes that are no HTTP/1.1 answer */
    EXCHANGE_CLOSED,     /* upstream_free() */
    EXCHANGE_CROWDED,    /* nothing was sent: no connection became free within wait_ms, or this
                          * machine has none left */
};

struct exchange_calls {
    /* The request's head is on a connection: bytes of the body can be written. Again after
     * exchange_write() returned false. Also called without a body. */
    void (*ready)(void *user);
    /* Optional. An interim answer (1xx but 101) before the head; borrowed until it returns. The
     * exchange must not be cancelled in it. */
    void (*interim)(void *user, const struct http_response *head);
    void (*head)(void *user, const struct exchange_answer *a);
    /* False: no more until exchange_resume(). The piece in hand is taken in any case. */
    bool (*body)(void *user, const char *p, size_t len);
    /* The last call, once for every exchange that began and was not cancelled. `trailers`: whole
     * lines. `why` is for people. The exchange is gone afterwards. */
    void (*done)(void *user, enum exchange_end end, const char *why, struct slice trailers);
};

/* Send the request's head, at once or when a connection is free. No callback happens before this
 * returns. `calls` is borrowed until done(). FIRN_EINVAL: a method, target or field with a byte
 * that HTTP does not allow. FIRN_EAGAIN: too many wait. FIRN_ENOMEM. On error there is no exchange
 * and done() is not called. */
FIRN_MUSTUSE int exchange_begin(struct upstream *u, const struct exchange_request *req,
                                const struct exchange_calls *calls, void *user,
                                struct exchange **out);

/* Send bytes of the body, after ready(). False: stop until ready() is called again. */
bool exchange_write(struct exchange *x, const char *p, size_t len);

/* The body is complete: with a body_len, exactly that many bytes have been written. After 101: half
 * of the tunnel ends. */
void exchange_end(struct exchange *x);

void exchange_resume(struct exchange *x);

/* In ready(): whether it was put behind another one on its connection. */
bool exchange_pipelined(const struct exchange *x);

/* Whether the server is what is waited for: not a free connection, the rest of the request's body,
 * or the reader of the answer. */
bool exchange_waits_for_server(const struct exchange *x);

/* The answer is of no use any more. done() is not called. exchange_late(): because a deadline of
 * the caller's has passed, which is counted as those of the pool are. */
void exchange_cancel(struct exchange *x);
void exchange_late(struct exchange *x);

#endif
