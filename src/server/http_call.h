/*
 * http_call.h - one HTTP request on its way: its route, its parameters, its reply. Included by the
 * http_*.c files only; everything belongs to the loop's thread.
 */
#ifndef FIRN_SERVER_HTTP_CALL_H
#define FIRN_SERVER_HTTP_CALL_H

#include "server/answer.h"
#include "server/app.h"
#include "server/audit.h"
#include "server/problem.h"

/* Every parameter of a query, once: name, JSON schema, help. */
#define PARAMS(X)                                                                              \
    X(N, "n", "{\"type\":\"integer\",\"minimum\":1,\"default\":1}",                            \
      "How many. With it the answer is a list, also for n=1.")                                 \
    X(KIND, "kind", "{\"type\":\"string\",\"examples\":[\"snowflake\",\"uuidv7\",\"ulid\"]}",  \
      "The kind of ID; /v1/kinds lists them.")                                                 \
    X(SEQ, "seq", "{\"type\":\"string\",\"examples\":[\"default\"]}",                          \
      "The sequence that a ticket is taken from; alone it implies kind=ticket.")               \
    X(SHARD, "shard", "{\"type\":\"integer\",\"minimum\":0}",                                  \
      "The shard number, for layouts that carry one beside the node.")                         \
    X(ENCODING, "encoding", "{\"type\":\"string\",\"examples\":[\"decimal\",\"base62\"]}",     \
      "How a number is written: decimal, hex, crockford, base58, base62 ...")                  \
    X(PREFIX, "prefix", "{\"type\":\"string\",\"examples\":[\"ord\"]}",                        \
      "A business prefix in front (ord_...); for a TypeID its type.")                          \
    X(NAMESPACE, "namespace", "{\"type\":\"string\",\"examples\":[\"dns\"]}",                  \
      "For uuidv3 and uuidv5: dns, url, oid, x500 or a UUID.")                                 \
    X(NAME, "name", "{\"type\":\"string\",\"examples\":[\"example.com\"]}",                    \
      "For uuidv3 and uuidv5: the name.")                                                      \
    X(LENGTH, "length", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":255}",                \
      "For nanoid and cuid2: how many characters.")                                            \
    X(LAYOUT, "layout", "{\"type\":\"string\",\"examples\":[\"twitter\"]}",                    \
      "A layout's name or text, to read a number by; `served` is this server's.")              \
    X(AFTER, "after", "{\"type\":\"string\",\"examples\":[\"orders\"]}",                       \
      "The list goes on behind this name: what the last answer gave as `next`.")               \
    X(LIMIT, "limit", "{\"type\":\"integer\",\"minimum\":1,\"maximum\":1000,\"default\":100}", \
      "At most so many in one answer.")

enum param {
#define X(name, text, schema, about) PARAM_##name,
    PARAMS(X)
#undef X
        PARAMS_N
};

#define PARAM(name) (1u << PARAM_##name)

struct param_row {
    const char *name, *schema, *about;
};
extern const struct param_row http_params[PARAMS_N];

struct query { /* decoded; a parameter that is absent has p == NULL */
    struct slice value[PARAMS_N];
    size_t used;
    char text[HTTP_TARGET_BYTES_MAX + 2 * PARAMS_N];
};

struct call;

enum route_flag {
    ROUTE_MINTS = 1,    /* answers in three formats */
    ROUTE_BODY = 2,     /* POST takes JSON; elsewhere a form is taken as a query */
    ROUTE_HOME = 4,     /* only on the home port */
    ROUTE_READY = 8,    /* may answer 503 */
    ROUTE_FINDS = 16,   /* may answer 404 */
    ROUTE_GUARDED = 32, /* asks call_allowed() */
    ROUTE_ADMIN = 64    /* administration: the Host header must be one of our own */
};

enum { ALLOW_GET = 1, ALLOW_POST = 2, ALLOW_DELETE = 4 };

struct route {
    uint8_t allow;
    uint8_t flags;
    uint16_t status;  /* of success, for the description; 0: 200 */
    const char *path; /* a segment in braces takes anything */
    void (*run)(struct call *c);
    uint32_t params;
    const char *id, *tag, *summary; /* OpenAPI's operationId and tag */
    const char *schema; /* of the answer, in openapi.c; or a media type if it has a '/' */
};

const struct route *http_routes(size_t *out_n);

enum { ARG_BYTES_MAX = 512 };

struct call {
    struct service_ctx *ctx;
    const struct http_request *req;
    struct reply *r;
    const struct route *route;
    size_t arg_len;
    char arg[ARG_BYTES_MAX]; /* the segment in braces, decoded */
    struct query q;
};

/* Answers with a problem and counts it. */
#define call_fail(c, which, ...)                       \
    do {                                               \
        call_count_error((c)->ctx, (c)->route);        \
        problem_reply((c)->r, which, "", __VA_ARGS__); \
    } while (0)

void call_count_error(struct service_ctx *ctx, const struct route *route);

/* So many more requests like this one are answered with it (reply.repeats). */
void call_repeats(struct call *c, uint32_t n);

/* Whether the guard lets it pass; if not, the refusal is answered. Every request that mints, takes
 * or looks at numbers asks once. */
bool call_allowed(struct call *c, enum guard_what what, const char *name, size_t len);

/* A whole JSON answer: call_json(), then members, then call_json_end(), which closes the object. */
struct buf *call_json(struct call *c, unsigned status, const char *fields);
void call_json_end(struct call *c);

/* For tests: the route of a path and its argument, or NULL; *allow are the path's methods. */
const struct route *http_route_find(enum http_method m, struct slice path, int port,
                                    struct slice *arg, unsigned *allow);

/* The path of the route that is most like `path`, its argument filled in; "" if none is. */
enum { SUGGEST_BUF = 256 };
void http_route_suggest(struct slice path, char out[SUGGEST_BUF]);

/* The name in a table (stride bytes apart) nearest to `p`, or NULL if none is near. */
const char *nearest_row(const char *p, size_t len, const void *rows, size_t n, size_t stride);

/* http_ids.c */
void route_generate(struct call *c);
void route_ids(struct call *c);
void route_sequence_next(struct call *c);

/* http_sequences.c */
void route_sequences(struct call *c);
void route_sequence_create(struct call *c);
void route_sequence(struct call *c);
void route_sequence_delete(struct call *c);

/* http_leases.c */
void route_lease_take(struct call *c);
void route_lease_extend(struct call *c);
void route_lease_return(struct call *c);

/* http_cluster.c */
void route_cluster(struct call *c);
void route_cluster_change(struct call *c);

/* http_about.c */
void route_home(struct call *c);
void route_lab(struct call *c);
void route_inspect(struct call *c);
void route_layouts(struct call *c);
void route_kinds(struct call *c);
void route_node(struct call *c);
void route_nodes(struct call *c); /* http_nodes.c */
void route_slots(struct call *c);
void route_healthz(struct call *c);
void route_readyz(struct call *c);
void route_metrics(struct call *c);
void route_web(struct call *c);

/* http_events.c */
void route_events(struct call *c);

/* openapi.c */
void route_openapi(struct call *c);

/* --- requests that wait for the coordinator: http_wait.c --- */

struct http_wait {
    struct ticket_wait ticket; /* first: leads back from both callbacks */
    struct service_ctx *ctx;
    struct reply *reply;
    void (*done)(struct http_wait *w); /* of http_wait_submit() */
    const struct route *route;
    struct answer answer;
    uint32_t repeats;             /* tickets: an answer each for so many more requests */
    struct seq_record want;       /* create: what the sequence should be like */
    const struct firn_kind *kind; /* keyed IDs */
    struct lease_job lease;       /* JOB_LEASE */
    struct audit audit;           /* create, delete, the cluster's members */
    char *text;                   /* the cluster's answer; malloc'd */
    size_t text_len;
    char prefix[64];
    struct http_wait *next; /* in the pool */
    struct http_wait *all;
};

/* Its job is zeroed but for what the caller sets. NULL: the problem is answered. */
struct http_wait *http_wait_new(struct call *c, const char *name, size_t len);
void http_wait_free(struct http_wait *w);

/* Defers the reply and submits the job; `done` gets the wait. False: the problem is answered. */
bool http_wait_submit(struct call *c, struct http_wait *w, void (*done)(struct http_wait *w));

/* The same for a list, called `name` where the guard refuses it. */
void http_wait_list(struct call *c, enum job_what what, const char *name,
                    void (*done)(struct http_wait *w));

/* Answers an error of the coordinator. */
void http_wait_fail(struct http_wait *w, struct reply *r);

/* `w` is an administrative action: its end is to be logged with audit_end(). */
void http_wait_audit(struct call *c, struct http_wait *w, const char *action, struct slice target);

/* The reply is complete. */
void http_wait_done(struct http_wait *w);

#endif
