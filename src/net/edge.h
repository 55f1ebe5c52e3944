/*
 * edge.h - the side of a proxy that clients talk to: requests whose bodies are streamed, of any
 * length, and answers likewise. (firnd's own connections, conn.c, take whole small requests and are
 * faster at that.) One edge per loop; everything happens on its thread.
 *
 * A request in hand, one at a time on a connection; those that are pipelined behind it wait in
 * order:
 *
 *     request() ── its head ─▶ edge_want_body() ─▶ body() ... body_end()
 *     edge_head() ─▶ edge_body() ... edge_end()           the next request
 *
 * Each request gets one answer or, where that cannot be completed, edge_abort(). When the client
 * goes away before, gone() is the last call. A body that was not wanted is passed over if it is
 * short, otherwise the connection ends with the answer. 100 Continue is sent by edge_want_body(),
 * so that a request can be refused before its body is sent.
 */
#ifndef FIRN_NET_EDGE_H
#define FIRN_NET_EDGE_H

#include "net/loop.h"
#include "wire/http_head.h"

struct edge;
struct tls_context;

struct edge_opts {         /* zero means the default */
    uint32_t header_ms;    /* from a request's first byte to the end of its head; 10 s */
    uint32_t body_ms;      /* for each EDGE_PROGRESS_BYTES of its body; 30 s */
    uint32_t idle_ms;      /* between requests; 60 s */
    uint32_t write_ms;     /* without the client taking a byte; 30 s */
    uint32_t requests_max; /* of one connection; 0: no limit */
    bool proxy_protocol;   /* each connection begins with a PROXY header, see trusts() */
};

enum { EDGE_PROGRESS_BYTES = 1024, EDGE_LENGTH_UNKNOWN = -1 };

struct edge_request { /* lives until its end: edge_end(), edge_abort() or after gone() */
    struct http_head head;
    void *user;     /* the owner's, NULL at first */
    bool tls;       /* it came in by TLS */
    int tag;        /* of the listener: edge_listen() */
    bool body_done; /* the whole request has arrived */
};

struct edge_calls {
    void (*request)(void *ctx, struct edge_request *q);
    /* False: no more until edge_resume(). The piece in hand is taken in any case. A request that
     * has no body has body_done from the start, and body_end() is not called. */
    bool (*body)(void *ctx, struct edge_request *q, const char *p, size_t len);
    void (*body_end)(void *ctx, struct edge_request *q);
    void (*writable)(void *ctx, struct edge_request *q); /* after edge_body() returned false */
    /* `status`: what the edge tells the client itself, whose request did not become whole; 0: it is
     * told nothing more. */
    void (*gone)(void *ctx, struct edge_request *q, unsigned status, const char *why);
    /* With proxy_protocol: whether this peer may tell for whom it connects; others are closed. */
    bool (*trusts)(void *ctx, const struct sockaddr *peer);
    /* Optional. A request that is no HTTP was answered with `status`, without request(). 0: it came
     * to none, because TLS failed. */
    void (*refused)(void *ctx, const char *address, unsigned status, const char *why);
};

/* Counted by the loop, read by any thread. */
struct edge_stats {
    uint64_t conns; /* now open */
    uint64_t accepted, refused, requests, errors, timeouts, aborted;
    uint64_t unproxied; /* without a PROXY header, or from a peer that is not trusted */
    uint64_t tls_errors;
};

FIRN_MUSTUSE int edge_new(struct loop *l, const struct edge_opts *opts,
                          const struct edge_calls *calls, void *ctx, struct edge **out);
void edge_free(struct edge *e); /* before its loop is; NULL is fine */
void edge_stats(const struct edge *e, struct edge_stats *out);

/* As loop_listen(). `tls`: NULL, or borrowed; while it has a certificate clients must use it. */
FIRN_MUSTUSE int edge_listen(struct edge *e, int fd, int tag, bool shared, struct tls_context *tls);

/* --- a request --- */

/* The client's address, and as a number for prefixes. */
void edge_address(const struct edge_request *q, char out[PEER_ADDRESS_BUF],
                  struct sockaddr_storage *sa);
/* The address that the client connected to. */
void edge_own_address(const struct edge_request *q, struct sockaddr_storage *sa);
const char *edge_cert_name(const struct edge_request *q); /* as tls_peer_name() */

/* Call body() and body_end() from now on, never before this returns. */
void edge_want_body(struct edge_request *q);
void edge_resume(struct edge_request *q);

/* An interim answer (1xx but 100 and 101) before the head; nothing to clients of HTTP/1.0, which do
 * not know it. `fields`: as of edge_head(). */
void edge_interim(struct edge_request *q, unsigned status, struct slice reason,
                  struct slice fields);

/* The head of the answer. `fields`: whole lines, each with its CR LF, without those of framing and
 * Connection, which are added. body_len: EDGE_LENGTH_UNKNOWN, or exactly so many bytes follow, but
 * not to HEAD, nor with 204 and 304, whose length (of what GET would send) is -1 if unknown. */
void edge_head(struct edge_request *q, unsigned status, struct slice reason, struct slice fields,
               int64_t body_len);
/* False: no more until writable(). */
bool edge_body(struct edge_request *q, const char *p, size_t len);
/* `trailers`: whole lines, sent where the client wants them and framing allows. */
void edge_end(struct edge_request *q, struct slice trailers);

/* 101: from now on bytes go both ways; body() gives what the client sends, body_end() says that it
 * sends no more, edge_body() sends, and edge_end() ends it when that is sent. */
void edge_tunnel(struct edge_request *q, struct slice reason, struct slice fields);

/* The answer cannot be completed: end the connection so that the client notices. Without a head
 * sent before, prefer an answer. */
void edge_abort(struct edge_request *q);

/* Whether edge_head() was called. */
bool edge_answered(const struct edge_request *q);

/* "Date: ...\r\n" of this second, for answers that have none. */
struct slice edge_date(const struct edge_request *q);

/* --- by loop.c; NULL is fine --- */

/* Close the connections that wait for no answer; while the loop's grace timer runs not those whose
 * first request may be on its way. */
void edge_drain(struct edge *e);
uint64_t edge_open(const struct edge *e);
void edge_close(struct edge *e); /* all connections, at once */

#endif
