/*
 * call.h - one request on its way through the gateway, and the chain of links that it passes.
 *
 * A link looks at a call, changes it, answers it or lets it wait:
 *
 *     request()   in the order of the table: LINK_NEXT, LINK_WAIT (call_resume() goes on),
 *                 LINK_DONE (it was answered: the call is gone)
 *     answer()    in the reverse order, for the links that request() has passed, when the head of
 *                 the answer is there, whether a server or a link gave it
 *     done()      in the reverse order, once, when the call ends, also when its client went away
 *
 * A new feature is a file with these functions and a row in chain.c. All on the call's loop.
 */
#ifndef FIRN_PROXY_CALL_H
#define FIRN_PROXY_CALL_H

#include "net/alarm.h"
#include "net/edge.h"
#include "net/upstream.h"
#include "proxy/fields.h"
#include "proxy/plan.h"

enum { CALL_ID_BUF = 65 };

struct app;
struct call;
struct call_trace;
struct capture;
struct call_try;
struct metrics; /* daemon/metrics.h */
struct view;

enum link_result { LINK_NEXT, LINK_WAIT, LINK_DONE };

struct answer { /* the head of an answer, before it is sent */
    unsigned status;
    struct slice reason; /* absent: the usual one */
    struct fields fields;
    int64_t body_len; /* as in edge_head() */
    bool own;         /* the gateway's, not a server's */
};

struct link {
    const char *name;
    enum link_result (*request)(struct call *c); /* each may be NULL */
    void (*answer)(struct call *c, struct answer *a);
    void (*done)(struct call *c);

    /* For /metrics: whole families, named firn_proxy_*. For /status: members of the object
     * links.<name>. On any thread, so counters are kept as service_ctx and backend have theirs:
     * written by one loop and summed up here, or atomic. `p` is the plan in force. */
    void (*metrics)(struct app *a, const struct plan *p, struct metrics *m);
    void (*status)(struct app *a, const struct plan *p, struct buf *b);
};

extern const struct link chain[];
extern const size_t chain_n;

/* Where an answer goes: to a client, or to the call that asked for it (call_inner()). `to` is the
 * call's. After end() or abort() the call is gone. */
struct call_sink {
    void (*head)(void *to, const struct answer *a);
    bool (*body)(void *to, const char *p, size_t len); /* false: no more until forward_writable() */
    void (*end)(void *to, struct slice trailers);
    void (*abort)(void *to, const char *why); /* it cannot be completed */
};

/* Between the source of an answer and its sink: sees or changes head, body and end, each once and
 * in this order, and passes them on with call_next_*(), at once or later. Links add theirs in
 * answer(); the first one gets what the server sent. Where no link adds one there is no cost. A
 * filter must not end the call in head() or body(): an alarm may, or end(). */
struct call_filter { /* the begin of the filter's own struct */
    const struct call_filter_ops *ops;
    struct call *call;
    struct call_filter *next;
};

struct call_filter_ops {
    void (*head)(struct call_filter *f, struct answer *a); /* NULL: passed on */
    bool (*body)(struct call_filter *f, const char *p, size_t len);
    void (*end)(struct call_filter *f, struct slice trailers); /* call_next_end() comes last */
    void (*free)(struct call_filter *f); /* once: after end(), or when the answer is given up */
};

struct call {
    struct service_ctx *worker;
    struct view *view;            /* the plan under which it began */
    struct edge_request *q;       /* NULL: the client is gone, or it is an inner call */
    const struct http_head *head; /* the request's; until the end of done() */
    const struct call_sink *sink;
    void *to;
    struct call *outer;          /* of an inner call: the call that it is a part of, or NULL */
    size_t first, link, reached; /* in the chain */
    uint64_t began_ns;

    /* from the link `id` on */
    char id[CALL_ID_BUF];
    char peer[PEER_ADDRESS_BUF];   /* "127.0.0.1:51234" */
    char client[PEER_ADDRESS_BUF]; /* the address alone, as trusted proxies tell it */
    bool trusted;                  /* the peer may tell us about clients */
    struct slice cert; /* the name in the client's certificate; absent: it showed none */

    /* from the link `route` on */
    const struct config_route *route;
    struct route_rules *rules; /* the route's */
    struct backend *backend;
    struct slice path;     /* canonical, as the client asked */
    struct slice target;   /* what the server is asked: rewritten, with the query */
    struct fields request; /* the fields that it gets, without Host */

    /* the links `limit`, `jwt` and `limit_user` */
    struct slice user;                   /* as its token names it; absent: none */
    const struct jwt_identity *identity; /* what the token says, or NULL */
    size_t rate_at, rate_end;            /* in the rates of the route */
    struct question *question;           /* to Redis, under way; or NULL */
    const struct rate *tightest;         /* of the rates, the one with the fewest requests left */
    struct limit_answer tightest_answer;

    /* the links `breaker` and `forward` */
    bool asked, idempotent, body_begun, stale, bodiless;
    struct breaker_pass pass;
    enum breaker_outcome outcome;
    struct exchange *x;
    size_t server;           /* in backend; backend->n: none */
    const char *last_server; /* its address, or NULL */
    uint64_t tried;
    unsigned tries;
    struct alarm deadline;
    struct call_trace *trace; /* proxy/tracing.h; NULL: none */
    struct call_try *attempt;

    struct compose *compose; /* the link `compose`: NULL, or its state */
    struct query *query;     /* the same of `graphql` */
    unsigned parts;          /* calls that were made for this one */
    struct alarm fault;      /* of the link `fault`: a delay, and what then is answered or 0 */
    unsigned fault_status;

    struct cache_call *cache; /* of the link `cache`, and what became of the request */
    enum cache_outcome cached;
    const char *cache_result; /* for the log; NULL: the route has no cache */

    struct json_filter *json;       /* of the link `json` */
    struct call_filter *filters;    /* of the answer, in the order in which they see it */
    struct collected *collected;    /* the request's body, where a link wanted the whole of it */
    void (*resume)(struct call *c); /* instead of an exchange: the sink has room again */

    struct capture *capture; /* proxy/capture.h; NULL: none */

    /* for the log */
    bool answered;   /* a head was sent */
    unsigned status; /* of the answer; 499: the client went away before it */
    uint64_t bytes_in, bytes_out, first_byte_ns;
    const char *why;            /* what went wrong, or NULL; lives as long as the call */
    const char *verdict, *rate; /* why its token was refused; the rate that refused it; or NULL */

    struct call_piece *pieces; /* memory: call_text() */
    struct call *next;
};

/* By the edge, for each request. */
void call_begin(struct service_ctx *w, struct edge_request *q);

/* A request of the gateway's own as a part of `outer`, without a body: it passes the chain from the
 * link `from` on ("breaker") and has the route, client and ID of `outer`. The caller fills in
 * backend, target and request (fields), then calls call_start(). `head` is borrowed until its end:
 * method and host count. NULL: no memory. */
struct call *call_inner(struct call *outer, const char *from, const struct http_head *head,
                        const struct call_sink *sink, void *to);
/* The sink may be called before this returns. */
void call_start(struct call *c);
/* An inner call's answer is of no use any more: the sink is not called. */
void call_cancel(struct call *c);

/* After LINK_WAIT: go on with the next link. */
void call_resume(struct call *c);

/* Answer with this body; `fields`: whole lines, or "". The call is gone afterwards. */
void call_reply(struct call *c, unsigned status, const char *fields, struct slice body);

/* The same with application/problem+json, from a table by status. */
void call_problem(struct call *c, unsigned status, const char *detail);
/* ... with more fields: whole lines, at most 256 bytes. */
void call_problem_with(struct call *c, unsigned status, const char *fields, const char *detail);

/* A server's head: the links' answer() look at it, then it is sent. */
void call_head(struct call *c, struct answer *a);
/* A piece of its body. False: no more until forward_writable(). */
bool call_body(struct call *c, const char *p, size_t len);
/* The answer is complete; the call is gone. */
void call_done(struct call *c, struct slice trailers);
/* It cannot be completed; the call is gone. */
void call_abort(struct call *c, const char *why);

/* In answer(). */
void call_filter(struct call *c, struct call_filter *f, const struct call_filter_ops *ops);
/* Pass on what may have been changed. After call_next_end() filter and call are gone. */
void call_next_head(struct call_filter *f, struct answer *a);
bool call_next_body(struct call_filter *f, const char *p, size_t len);
void call_next_end(struct call_filter *f, struct slice trailers);

/* Whether the whole request has arrived. */
static inline bool call_body_done(const struct call *c)
{
    return !c->q || c->q->body_done;
}

/* Memory that lives as long as the call; a copy of the text with a NUL. NULL: none left. */
char *call_text(struct call *c, size_t len);
struct slice call_copy(struct call *c, struct slice text);

/* Tells forward.c about the client's side. */
bool forward_body(struct call *c, const char *p, size_t len);
void forward_body_end(struct call *c);
/* Tells the source of the answer, whoever it is. */
void forward_writable(struct call *c);

#endif
