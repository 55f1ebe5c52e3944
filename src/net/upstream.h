/*
 * upstream.h - the side of a proxy that talks to servers: pools of connections, requests sent on
 * them, and answers read from them while they still arrive.
 *
 * An interface without an implementation yet: the gateway (src/proxy) brings it, as
 * src/net/upstream.c and the files that it needs. It is written down here so that the rest of
 * src/net stays ready for it: a service may leave RESP out (service.h), and connections are not
 * tied to listeners.
 *
 * Threads: a pool belongs to one loop, as connections do. All calls and all callbacks happen on
 * that loop's thread; nothing is locked. A program with several loops has a pool per loop and
 * upstream.
 *
 * An exchange is one request and its answer:
 *
 *     exchange_begin() ── head of the request ─▶   exchange_write() ── body ─▶   exchange_end()
 *     head() ◀── status and fields ──   body() ◀── bytes as they come ──   done() ◀── the end
 *
 * Backpressure, both ways, and never by waiting: exchange_write() takes as many bytes as there is
 * room for, and writable() says when there is room again; body() takes as many bytes as it can pass
 * on, and exchange_resume() says when it can take more. Until then the upstream's socket is not
 * read. So a proxy holds at most window_bytes per direction of an exchange, however fast one side
 * is.
 *
 * Order: answers on one connection come in the order of its requests. With pipeline_max above 1
 * several exchanges share a connection, the requests of one turn of the loop leave with one write,
 * and an answer that stops taking bytes holds up those behind it; the gateway decides per service
 * if that is worth it.
 *
 * Requests are checked as strictly as those that firnd reads (wire/http.h), answers too: one
 * length, no folded lines, no bytes behind the last answer. What does not conform ends the exchange
 * with EXCHANGE_BAD_ANSWER and closes the connection, so that nothing can be smuggled from one
 * exchange into the next.
 */
#ifndef FIRN_NET_UPSTREAM_H
#define FIRN_NET_UPSTREAM_H

#include "firn/error.h"
#include "net/loop.h"

struct tls_context; /* wire/tls.h */
struct upstream;    /* a pool: the connections of one loop to one address */
struct exchange;    /* one request and its answer */

struct upstream_opts {       /* zero means the default */
    uint32_t conns_max;      /* of this pool; default 64. Beyond it requests wait in order */
    uint32_t waiting_max;    /* requests that wait for a connection; default 1,024 */
    uint32_t pipeline_max;   /* requests in flight on a connection; default 1 */
    uint32_t connect_ms;     /* with the TLS handshake; default 1,000 */
    uint32_t head_ms;        /* from the end of the request to the answer's head; default 2,000 */
    uint32_t body_ms;        /* between two pieces of a body; default 30,000 */
    uint32_t idle_ms;        /* before an unused connection is closed; default 30,000 */
    uint32_t window_bytes;   /* per direction of an exchange; default 64 KiB */
    struct tls_context *tls; /* borrowed; NULL: plaintext */
    const char *server_name; /* checked against the certificate; NULL: the host */
};

/* Counted by the loop, read by any thread. */
struct upstream_stats {
    uint64_t conns, in_flight, waiting; /* now */
    uint64_t connects, connect_errors, requests, bad_answers, timeouts;
    uint64_t bytes_in, bytes_out;
};

/* `address` is "host:port"; names are looked up by the caller, so this is an IP address. No
 * connection is made before the first exchange. FIRN_EINVAL: not an address. */
FIRN_MUSTUSE int upstream_new(struct loop *loop, const char *address,
                              const struct upstream_opts *opts, struct upstream **out);

/* Exchanges that are not done get EXCHANGE_CLOSED. NULL is fine. */
void upstream_free(struct upstream *u);

/* Begin no new exchange; connections close as theirs end. As loop_drain() for the other side. */
void upstream_drain(struct upstream *u);

void upstream_stats(const struct upstream *u, struct upstream_stats *out);

/* A header field. Proxies keep all of them, in their order and with their spelling; those that
 * belong to one connection (Connection, Keep-Alive, TE, Trailer, Transfer-Encoding, Upgrade and
 * what Connection names) are the pool's: it removes and writes them itself. */
struct http_field {
    struct slice name, value;
};

enum { EXCHANGE_LENGTH_UNKNOWN = -1 }; /* chunked, or to the end of the connection */

struct exchange_request {
    struct slice method, target;
    const struct http_field *fields; /* borrowed until exchange_begin() returns */
    size_t fields_n;
    int64_t body_len; /* 0: no body follows; EXCHANGE_LENGTH_UNKNOWN: it is sent in chunks */
    bool idempotent;  /* may be sent again when the connection ends before any byte of the answer */
};

struct exchange_answer { /* borrowed until head() returns */
    unsigned status;     /* never 1xx: those are passed over, but for 101, which is refused */
    const struct http_field *fields;
    size_t fields_n;
    int64_t body_len; /* EXCHANGE_LENGTH_UNKNOWN: until done() */
};

enum exchange_end {
    EXCHANGE_OK,         /* the whole answer was delivered */
    EXCHANGE_NO_CONNECT, /* nothing was sent: another upstream may be tried */
    EXCHANGE_BUSY,       /* nothing was sent: too many wait */
    EXCHANGE_UNSENT,     /* the connection ended before the upstream can have seen the request */
    EXCHANGE_BROKEN,     /* it ended later: the request may have had its effect */
    EXCHANGE_TIMEOUT,    /* the same, and which deadline it was is in the diag */
    EXCHANGE_BAD_ANSWER, /* bytes that are no HTTP/1.1 answer */
    EXCHANGE_CLOSED,     /* exchange_cancel() or upstream_free() */
};

struct exchange_calls {
    void (*head)(void *user, const struct exchange_answer *a);
    /* Returns how many of the bytes it took. Fewer than `len`: no more until exchange_resume(). */
    size_t (*body)(void *user, const char *p, size_t len);
    /* After exchange_write() took less than it was given: there is room for `room` bytes. */
    void (*writable)(void *user, size_t room);
    /* The last call, once for every exchange that began. The exchange is gone afterwards. */
    void (*done)(void *user, enum exchange_end end, const struct firn_diag *why);
};

/* Send the request's head, at once or when a connection is free. No callback happens before this
 * returns. `calls` is borrowed until done(). FIRN_EINVAL: a method, target or field that HTTP does
 * not allow. FIRN_ENOMEM. On error there is no exchange and done() is not called. */
FIRN_MUSTUSE int exchange_begin(struct upstream *u, const struct exchange_request *req,
                                const struct exchange_calls *calls, void *user,
                                struct exchange **out);

/* Send bytes of the body; returns how many were taken (copied). */
size_t exchange_write(struct exchange *x, const char *p, size_t len);

/* The body is complete. With a body_len, exactly that many bytes have been written. */
void exchange_end(struct exchange *x);

/* body() can take `room` bytes again. */
void exchange_resume(struct exchange *x, size_t room);

/* The client went away: the answer is of no use. done() is called before this returns. */
void exchange_cancel(struct exchange *x);

#endif
