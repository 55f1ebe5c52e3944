/*
 * redis.h - an asynchronous client of Redis on a libuv loop: one connection, pipelined.
 *
 * The commands of one turn of the loop leave with one write, answers come in their order. A call
 * never waits longer than call_ms and never makes the queue longer than queue_max: the gateway's
 * requests go on without Redis, so knowing early that it is away matters more than an answer.
 *
 *   connecting  calls wait, as long as their call_ms
 *   ready       calls are sent
 *   overdue     an answer is late: new calls are refused at once until it has come. If it does not
 *               come within stall_ms, the connection is given up
 *   away        calls are refused at once; it connects again after a pause that doubles
 *
 * Belongs to the loop's thread. Tested with a real server by tests/integration/proxy_redis.py. No
 * TLS: put Redis on loopback, a Unix socket or a private network.
 */
#ifndef FIRN_PROXY_REDIS_H
#define FIRN_PROXY_REDIS_H

#include "firn/error.h"
#include "wire/resp_reply.h"

#include <uv.h>

enum { REDIS_VALUES_MAX = 16, REDIS_NAME_MAX = 107 };

struct redis_stats { /* counted by the loop's thread; single fields may be read by any */
    uint64_t calls, refused, timeouts, lost, connects, errors; /* errors: the server's */
    uint64_t queued;                                           /* now; by redis_stats() alone */
};

struct redis_opts {                  /* zero means the default; texts are copied */
    const char *address;             /* "127.0.0.1:6379", "[::1]:6379" or "unix:/run/redis.sock" */
    const char *user;                /* NULL: the default user */
    const char *password;            /* NULL: no AUTH */
    const char *script;              /* loaded at each connect, for redis_eval(); NULL: none */
    uint32_t database;               /* SELECT */
    uint32_t connect_ms;             /* with AUTH and SELECT; default 1,000 */
    uint32_t call_ms;                /* default 100 */
    uint32_t stall_ms;               /* default 2,000 */
    uint32_t queue_max;              /* calls under way; default 4,096 */
    uint32_t out_max;                /* unsent bytes; default 16 MiB */
    uint32_t reply_max;              /* bytes of one answer; default 8 MiB */
    uint32_t pause_ms, pause_max_ms; /* before it connects again; default 50 and 5,000 */
    struct redis_stats *stats;       /* borrowed: where to count, so that it outlives the client */
};

enum redis_result {
    REDIS_OK,      /* the answer is there; it may be an error of the server's (RESP_FAILURE) */
    REDIS_TIMEOUT, /* no answer within call_ms; the command may have had its effect */
    REDIS_LOST,    /* the connection ended first; the same */
    REDIS_CLOSED,  /* redis_close() */
};
const char *redis_result_name(enum redis_result r);

/* An answer, borrowed until the callback returns: its values from the outermost on, an array before
 * its members. Values beyond REDIS_VALUES_MAX are dropped. */
struct redis_reply {
    size_t n;
    struct resp_value value[REDIS_VALUES_MAX];
};

/* Called once for every call that was accepted, never before redis_call() has returned. `reply` is
 * NULL unless REDIS_OK. May call anything here. */
typedef void redis_done_fn(void *user, enum redis_result result, const struct redis_reply *reply);

/* Told when it becomes ready, when it stops being so with the reason, and when there is another
 * reason why it is not: for log and metrics. May be NULL. */
typedef void redis_state_fn(void *user, bool ready, const char *why);

struct redis;

/* Begins to connect. FIRN_EINVAL: not an address that needs no look-up. FIRN_ENOMEM. */
FIRN_MUSTUSE int redis_new(uv_loop_t *loop, const struct redis_opts *opts, redis_state_fn *state,
                           void *user, struct redis **out, struct firn_diag *d);

/* Ends every call with REDIS_CLOSED, now, and frees the client in a later turn of the loop. NULL is
 * fine. */
void redis_close(struct redis *r);

/* A command of `n` arguments, which are copied. FIRN_EAGAIN: refused, it is away, overdue or has
 * too much queued; nothing was sent and `done` is not called. FIRN_ENOMEM: the same. */
FIRN_MUSTUSE int redis_call(struct redis *r, const struct slice *args, size_t n,
                            redis_done_fn *done, void *user);

/* EVALSHA of the script with one key and these arguments. If the server forgot the script, this
 * call answers the server's error, and the script is loaded again. */
FIRN_MUSTUSE int redis_eval(struct redis *r, struct slice key, const struct slice *args, size_t n,
                            redis_done_fn *done, void *user);

/* GET and SET key value EX ttl_s. */
FIRN_MUSTUSE int redis_get(struct redis *r, struct slice key, redis_done_fn *done, void *user);
FIRN_MUSTUSE int redis_set(struct redis *r, struct slice key, struct slice value, uint32_t ttl_s,
                           redis_done_fn *done, void *user);

/* Whether a call would be accepted now (or waits for the connection). */
bool redis_ready(const struct redis *r);

void redis_stats(const struct redis *r, struct redis_stats *out);

#endif
