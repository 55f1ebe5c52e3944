/*
 * resp_call.h - shared by the files of RESP commands. A handler appends its answer or defers it;
 * the table of handlers is in resp_commands.c.
 */
#ifndef FIRN_SERVER_RESP_CALL_H
#define FIRN_SERVER_RESP_CALL_H

#include "server/app.h"
#include "server/request_key.h"

typedef void resp_handler(struct service_ctx *ctx, const struct resp_request *q, struct reply *r);

resp_handler run_incr, run_incrby, run_get;                            /* resp_tickets.c */
resp_handler run_next, run_inspect;                                    /* resp_ids.c */
resp_handler run_exists, run_del, run_ttl, run_expire, run_setnx;      /* resp_keys.c */
resp_handler run_multi, run_exec, run_discard, run_watch, run_unwatch; /* resp_multi.c */
resp_handler run_client, run_info, run_config, run_time, run_dbsize;   /* resp_server.c */

/* Runs a command that is known and has the right number of arguments, or answers that it has not.
 * resp_handle() queues it instead while the connection is in MULTI. */
void resp_run(struct service_ctx *ctx, const struct resp_request *q, struct reply *r);

struct resp_session { /* of a connection that needs one: peer->user */
    char *name;       /* as CLIENT SETNAME says; or NULL */
    struct buf queue; /* between MULTI and EXEC: the commands, as arrays */
    uint32_t queued;
    bool multi; /* between them */
    bool dirty; /* one of them was refused: EXEC will be, too */
};

struct resp_session *resp_session(struct peer *p); /* NULL: no memory */

static inline bool resp_in_multi(const struct peer *p)
{
    const struct resp_session *s = p ? p->user : NULL;
    return s && s->multi;
}

/* While the connection is in MULTI: keep the command for EXEC. */
void resp_multi_queue(const struct resp_request *q, struct reply *r);
void resp_multi_spoil(struct reply *r); /* a command was refused; also outside MULTI */

/* Names the connection; "" removes its name. False: the name is invalid, and that is answered. */
bool resp_set_name(struct reply *r, struct slice name);
/* The limit for creating it, as job.scope_max and job.scope have it. */
uint64_t resp_scope(struct service_ctx *ctx, struct reply *r, struct slice name,
                    char out[RECORD_NAME_MAX + 1]);
bool resp_name_ok(struct slice name, struct reply *r); /* of a sequence; if not, that is answered */

#define NEXT_USAGE "FIRN.NEXT kind [COUNT n] [SEQ name] [SHARD s] [ENCODING e] [KEY k]"

static inline int resp_proto(const struct reply *r)
{
    return r->peer && r->peer->proto == 3 ? 3 : 2;
}

/* Whether the guard lets it pass; if not, the refusal is answered. */
bool resp_allowed(struct service_ctx *ctx, struct reply *r, enum guard_what what,
                  struct slice name);

/* --- commands that wait for the coordinator: resp_tickets.c --- */

enum ticket_answer {
    ANSWER_LAST, /* the last of the numbers, as an integer */
    ANSWER_LIST, /* all of them */
    ANSWER_NEXT, /* what would come next */
};

struct resp_wait { /* a command that waits for the coordinator */
    struct ticket_wait ticket;
    struct service_ctx *ctx;
    struct reply *reply;
    enum ticket_answer answer;
    bool one;                       /* ANSWER_LIST: a single number, not an array */
    uint32_t repeats;               /* ANSWER_LAST: an answer each for so many more requests */
    const struct firn_kind *kind;   /* IDs that are kept under a key */
    const struct firn_codec *codec; /* of these */
    struct resp_wait *next;         /* in the pool */
};

struct resp_wait *resp_wait_new(struct service_ctx *ctx); /* NULL: no memory */
void resp_wait_free(struct resp_wait *w);

/* Defer the reply for this wait. False: the error is written, the wait is freed. */
bool resp_wait_defer(struct resp_wait *w, struct reply *r);
/* A new wait, deferred. NULL: the error is written. */
struct resp_wait *resp_wait_begin(struct service_ctx *ctx, struct reply *r);

/* The key of a request. NULL: the error is written. */
struct keyed *resp_key(struct service_ctx *ctx, struct reply *r, struct slice key,
                       const struct request_args *args);

void resp_trouble(struct reply *r, int error, const char *text);

/* Whether numbers of the sequence may be taken; if not, the refusal is answered. */
bool resp_may_take(struct service_ctx *ctx, struct reply *r, struct slice name);

/* Take n numbers. `repeats` (ANSWER_LAST only): so many equal requests that follow are answered,
 * too. `one`: a single number is no array. `key` with p NULL: none. */
void resp_take(struct service_ctx *ctx, struct reply *r, struct slice name, uint64_t n,
               uint32_t repeats, bool create, enum ticket_answer answer, bool one,
               struct slice key);

#endif
