/*
 * loop.h - one event loop of the server: a thread, its listeners, its connections.
 * loop_new() and loop_listen() may be called by any thread before loop_run(); then the loop belongs
 * to the thread in loop_run(), and other threads may only use loop_call(), loop_leave(),
 * loop_drain() and loop_stats().
 */
#ifndef FIRN_NET_LOOP_H
#define FIRN_NET_LOOP_H

#include "firn/error.h"
#include "net/places.h"
#include "net/service.h"
#include "wire/latency.h"

#include <stdatomic.h>
#include <sys/socket.h>

struct tls_context; /* wire/tls_context.h */

struct loop_opts {           /* zero means the default */
    uint32_t header_ms;      /* from a request's first byte to the end of its head; 10 s */
    uint32_t body_ms;        /* ... to the end of its body; 30 s */
    uint32_t idle_http_ms;   /* between requests; 60 s */
    uint32_t idle_resp_ms;   /* 0: never, Redis clients hold connections open; TCP keepalive guards.
                            * Where service.may_idle() says no, idle_http_ms counts, from the
                            * connection's begin */
    uint32_t write_ms;       /* without the peer taking a byte; 30 s */
    uint32_t drain_ms;       /* what loop_drain() gives those that are in the middle; 10 s */
    uint32_t out_high_bytes; /* a peer with so much unsent is not read from; 256 KiB */
    uint32_t out_low_bytes;  /* ... until it is down to this; 64 KiB */
    uint32_t out_max_bytes;  /* hard bound on one connection's unsent bytes; 16 MiB */
    uint64_t loop_out_max_bytes; /* ... on those of all connections of a loop; 256 MiB */
    uint32_t outgoing_max;       /* connections to servers of all pools (upstream.h); 0: no bound */
    struct tls_context
        *tls; /* borrowed; NULL: no TLS. While it has a certificate, plaintext is refused */
};

/* Counted by the loop, read by any thread. */
struct loop_stats {
    uint64_t conns; /* now open */
    uint64_t accepted, refused;
    uint64_t crowded; /* of those refused: their network had too many connections */
    uint64_t http_requests, resp_requests;
    uint64_t http_errors, resp_errors; /* refused by the parsers */
    uint64_t timeouts;                 /* header, body, idle and write deadlines */
    uint64_t overruns;                 /* closed because of the bounds on unsent bytes */
    uint64_t deferred;                 /* now waiting for reply_done() */
    uint64_t bytes_in, bytes_out;
    uint64_t tls_handshakes, tls_errors; /* completed; broken off, in a handshake or later */
};

struct loop;

/* `places` is shared by all loops of the process; borrowed, as is `service` (one per loop, since
 * its ctx is). */
FIRN_MUSTUSE int loop_new(const struct loop_opts *opts, const struct service *service,
                          struct places *places, struct loop **out);

/* Frees a loop that does not run (any more), after the last loop_call(). NULL is fine. */
void loop_free(struct loop *l);

/* Takes connections from the listening socket `fd` (transferred, also on error). `shared`: another
 * process or loop listens on the same socket, and goes on when this loop ends. */
FIRN_MUSTUSE int loop_listen(struct loop *l, int fd, int tag, bool shared);

/* Serves until loop_drain() has finished. */
FIRN_MUSTUSE int loop_run(struct loop *l);

/* Any thread: go on serving as before, but end each HTTP connection with its next answer, which
 * says so (Connection: close). A balancer that keeps connections open then loses no request to a
 * close that crosses it on the way. loop_drain() follows. */
void loop_leave(struct loop *l);

/* Any thread: answer the requests that have arrived, stop listening, close connections that wait
 * for none; loop_run() returns when no connection is left, or after drain_ms. Deferred replies hold
 * it open until they are done or drain_ms is over; later ones may still come by loop_call(), and
 * loop_free() takes them. */
void loop_drain(struct loop *l);

/* Any thread: run `fn` on the loop's thread, in the order of the calls. The task is borrowed until
 * fn is called and may be used again from then on. */
struct loop_task {
    void (*fn)(struct loop_task *t);
    struct loop_task *next; /* private */
};
void loop_call(struct loop *l, struct loop_task *t);

/* On the loop's thread: its clock in ms, as of this turn; only differences mean anything. */
uint64_t loop_now_ms(const struct loop *l);

/* On the loop's thread: the libuv loop under it, for clients of other protocols (proxy/redis.h).
 * What they open must be closed before loop_free(). */
struct uv_loop_s *loop_uv(struct loop *l);

void loop_stats(const struct loop *l, struct loop_stats *out);

/* Any thread: adds how long requests of a kind (reply.timed_as) took, to `into`. From when the loop
 * saw that there was something to read to when the answer was given to the socket. A request that
 * waited for others of the loop is counted with that wait. */
void loop_latency(const struct loop *l, bool resp, unsigned kind, struct latency *into);

/* Listening sockets, one for each of `n` loops, all on `address` ("127.0.0.1:9001", "[::1]:9001",
 * ":9001" for all interfaces; port 0: the system's choice, the same for all), or on "unix:/path",
 * where all have the same socket (loop_listen() with `shared`). FIRN_EINVAL: not an
 * address; FIRN_EIO: the system refused, *diag says why. On error no socket is open. */
FIRN_MUSTUSE int listen_open(const char *address, int *fds, size_t n, struct firn_diag *diag);

/* "127.0.0.1:9001" of a listening socket. */
void listen_name(int fd, char out[PEER_ADDRESS_BUF]);

#endif
