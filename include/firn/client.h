/*
 * firn/client.h - IDs from firnd servers, at the price that you choose.
 *
 *     struct firn_client *c;
 *     if (firn_client_open("firn://a:9001,b:9001,c:9001/?mode=prefetch", &c, &diag) != 0) ...
 *     if (firn_client_next(c, &id, &diag) != 0) fprintf(stderr, "%s\n", diag.text);
 *     firn_client_close(c);
 *
 * Three modes behind one call:
 *   remote    one request per call, over kept connections: an ID is made when it is asked for
 *   prefetch  blocks of Snowflake IDs or range tickets, fetched ahead: a call takes nanoseconds
 *   leased    a server lends this process a worker slot and a window of timestamps: IDs are made
 *             in the process
 * A server may die as long as another one answers: calls continue on the next, and servers that
 * fail are avoided for a while. No ID is ever returned twice, whatever servers, networks, clocks
 * and fork() do (docs/client.md has the argument).
 *
 * Every function but firn_client_close() may be called from any thread. The library starts no
 * thread unless the URL says background=1: blocks and windows are renewed by the calls that use
 * them. In a child of fork() the handle keeps working, with its own connections, blocks and lease.
 *
 * The URL: firn://HOST[:PORT][,HOST[:PORT]...][/][?OPTION=VALUE[&...]], or firns:// for TLS. PORT
 * is 9001 unless said otherwise. libfirn-client(3) lists the options.
 */
#ifndef FIRN_CLIENT_H
#define FIRN_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct firn_client; /* opaque */

/* Reads the URL; no server is asked yet, so one may be started later. FIRN_EINVAL, FIRN_EFORMAT,
 * FIRN_ERANGE: the URL; diag says what is wrong and where. FIRN_EIO: a file that the URL names
 * cannot be read. */
FIRN_API FIRN_MUSTUSE int firn_client_open(const char *url, struct firn_client **out,
                                           struct firn_diag *diag);

/* One attempt of a request, as the hooks below see it: what a trace shows as a span. A request has
 * one attempt after the other, each on another server as long as there is one. Texts are borrowed
 * for the time of the call, and "" where there is none. */
struct firn_client_attempt {
    uint32_t size;    /* sizeof as the library has it */
    uint32_t number;  /* 1, 2 ... of the request, also of servers that cannot be reached */
    void *user;       /* of the ask; NULL for requests of the client's own, such as blocks */
    const char *what; /* "id", "block", or the path of another request: "/v1/leases" */
    const char *host; /* the server's, as the URL has it */
    uint32_t port;
    uint32_t shard;
    const char *request_id;      /* of the ask, also of one that a block is fetched for */
    const char *parent;          /* its traceparent */
    const char *traceparent;     /* the one that is sent to the server */
    uint64_t began_ns, ended_ns; /* of CLOCK_MONOTONIC; ended_ns is 0 in attempt_begin() */
    int error; /* 0: the server answered. Else FIRN_E..., and text says what happened */
    const char *text;
};
#define FIRN_CLIENT_TRACEPARENT_BUF 56

/* Start from FIRN_CLIENT_OPTS_INIT: a `size` that is not set is refused (FIRN_EINVAL). Zero means
 * the default. */
struct firn_client_opts {
    uint32_t size;
    void *user; /* for the hooks */
    /* NULL, or called before and after each attempt, in the thread that goes on with the request,
     * from several threads at once if several use the client. They return soon, and call no
     * function of the client: its locks may be held. attempt_begin() may write another text to
     * `traceparent`, FIRN_CLIENT_TRACEPARENT_BUF bytes with the ask's or "" in them: then the
     * server's spans are children of the attempt's span. What is no traceparent is not sent. Each
     * beginning has its end. */
    void (*attempt_begin)(void *user, const struct firn_client_attempt *a, char *traceparent);
    void (*attempt_end)(void *user, const struct firn_client_attempt *a);
};
#define FIRN_CLIENT_OPTS_INIT                             \
    {                                                     \
        sizeof(struct firn_client_opts), NULL, NULL, NULL \
    }

/* As firn_client_open(), with more options than fit into a URL; they are copied, and may be NULL.
 * FIRN_EINVAL also: opts->size. FIRN_ENOTSUP: the options are newer than the library. */
FIRN_API FIRN_MUSTUSE int firn_client_open_with(const char *url,
                                                const struct firn_client_opts *opts,
                                                struct firn_client **out, struct firn_diag *diag);

/* Gives a lease back if a server answers within half a second. No other thread may be in a call.
 * NULL does nothing. */
FIRN_API void firn_client_close(struct firn_client *c);

/* --- calls that wait --- */

/* The next ID, in any mode. Errors come after all retries, or at the deadline; diag (may be NULL)
 * says which servers were tried and what each answered:
 * FIRN_EIO        no server could be reached, or none answered in time
 * FIRN_EUNKNOWN   a server may have taken a number of a gapless sequence, and the answer is lost:
 *                 another request could leave a hole. Use firn_client_next_keyed()
 * FIRN_EAGAIN     the servers answer, but cannot make an ID at the moment
 * FIRN_EAUTH      the token, or its scope
 * FIRN_ENOENT     no such kind or sequence;  FIRN_EOVERFLOW  the sequence has no number left
 * FIRN_ENOSLOT    leased: all slots are taken
 * FIRN_ENOTSUP    this kind is not a number: use firn_client_next_text() */
FIRN_API FIRN_MUSTUSE int firn_client_next(struct firn_client *c, uint64_t *out_id,
                                           struct firn_diag *diag);

/* The next `n` IDs, all or none. */
FIRN_API FIRN_MUSTUSE int firn_client_next_n(struct firn_client *c, uint64_t *ids, size_t n,
                                             struct firn_diag *diag);

/* The number that `key` stands for: the same each time, on every server, for as long as the
 * servers keep keys (a day). One request in every mode. FIRN_EREUSED: the key was used for
 * something else. */
FIRN_API FIRN_MUSTUSE int firn_client_next_keyed(struct firn_client *c, const char *key,
                                                 uint64_t *out_id, struct firn_diag *diag);

/* One ID of any kind as text (UUID, ULID, dated ...), NUL-terminated. `key` may be NULL.
 * FIRN_ENOSPC: `cap` is too small; FIRN_CLIENT_TEXT_BUF always suffices. */
#define FIRN_CLIENT_TEXT_BUF 320
FIRN_API FIRN_MUSTUSE int firn_client_next_text(struct firn_client *c, const char *key, char *out,
                                                size_t cap, struct firn_diag *diag);

/* --- calls that wait, with all that can be asked for --- */

/* Start from FIRN_CLIENT_ASK_INIT: a `size` that is not set is refused (FIRN_EINVAL). */
struct firn_client_ask {
    uint32_t size;
    uint32_t text;   /* 1: the ID as text */
    const char *key; /* NULL, or as in firn_client_next_keyed(); copied */
    void *user;      /* comes back with the answer */
    /* NULL, or the request that the ID is for: X-Request-ID and the W3C traceparent, which the
     * server's spans and log lines then have. They go with a request of the ask's own (mode=remote
     * or a key), and with that for a block which this ask finds missing; over HTTP, RESP has no
     * place for them. Copied. */
    const char *request_id, *traceparent;
    /* The shard that the ID carries, of Snowflake IDs whose layout has a field for it. Blocks in
     * hand are kept for each shard, of at most 1,024 shards. */
    uint32_t shard;
    uint32_t deadline_ms; /* of the whole call, all attempts and pauses; 0: that of the URL */
};
#define FIRN_CLIENT_ASK_INIT                                            \
    {                                                                   \
        sizeof(struct firn_client_ask), 0, NULL, NULL, NULL, NULL, 0, 0 \
    }

/* `n` IDs, all or none, as firn_client_next_n() gets them and with its errors; with a key one, as
 * firn_client_next_keyed() does. ask->text must be 0. FIRN_ERANGE: the layout has no such shard.
 * FIRN_EINVAL also: the ask; a shard for a kind that has none. FIRN_ENOTSUP: the ask is newer than
 * the library. */
FIRN_API FIRN_MUSTUSE int firn_client_mint(struct firn_client *c, const struct firn_client_ask *ask,
                                           uint64_t *ids, size_t n, struct firn_diag *diag);

/* One ID as text, as firn_client_next_text() does; ask->text may be 0. */
FIRN_API FIRN_MUSTUSE int firn_client_mint_text(struct firn_client *c,
                                                const struct firn_client_ask *ask, char *out,
                                                size_t cap, struct firn_diag *diag);

/* --- calls that do not wait, for event loops --- */

struct firn_client_answer {
    uint32_t size; /* as in the ask; set it before firn_client_take() */
    int error;     /* 0 or FIRN_E...: then `text` says why */
    void *user;
    uint64_t id;
    char text[FIRN_CLIENT_TEXT_BUF];
};

/* Asks for one ID. FIRN_EAGAIN: too many calls are under way, take answers first. */
FIRN_API FIRN_MUSTUSE int firn_client_submit(struct firn_client *c,
                                             const struct firn_client_ask *ask,
                                             struct firn_diag *diag);

/* Takes an answer that is ready, in no particular order. FIRN_EAGAIN: none is. */
FIRN_API FIRN_MUSTUSE int firn_client_take(struct firn_client *c, struct firn_client_answer *out);

/* A descriptor for poll(), epoll, libuv ...: when it has firn_client_events(), call
 * firn_client_pump(), then take. It stays the same until firn_client_close(); a child of fork()
 * gets another one. Negative: FIRN_E... */
FIRN_API int firn_client_fd(struct firn_client *c);
FIRN_API short firn_client_events(const struct firn_client *c);

/* Does what needs no waiting. Returns how many answers are ready, or FIRN_E... */
FIRN_API int firn_client_pump(struct firn_client *c);

/* --- statistics --- */

struct firn_client_stats {         /* counters since the handle was opened, and the state now */
    uint32_t size;                 /* set it before the call */
    uint32_t servers, servers_out; /* known; avoided at the moment */
    uint64_t requests, retries, failures; /* attempts; of those not the first; calls that failed */
    uint64_t blocks, block_ids;           /* prefetch: fetched */
    uint64_t stale_ids;                   /* prefetch: discarded because they were too old */
    uint64_t leases, extensions;          /* leased: slots lent; windows extended */
    uint32_t slot;                        /* leased: the slot now, or UINT32_MAX */
    uint32_t window_ms;                   /* leased: what is left of the window */
    uint64_t clashes; /* times that two servers were found on one slot, in different stores: IDs may
                       * have come twice. One of them is avoided since; give them one store */
};

/* Fills the first out->size bytes of the struct. */
FIRN_API void firn_client_stats(struct firn_client *c, struct firn_client_stats *out);

#ifdef __cplusplus
}
#endif
#endif
