/*
 * app.h - the server as its handlers see it: one struct app for the process, one struct service_ctx
 * for each loop. Handlers run on a loop's thread and touch only that loop's ctx; of the app they
 * read what is constant after the start, the board, and counters that are atomics.
 */
#ifndef FIRN_SERVER_APP_H
#define FIRN_SERVER_APP_H

#include "firn/dated.h"
#include "firn/tsid.h"
#include "net/loop.h"
#include "net/service.h"
#include "coord/clash.h"
#include "drive/board.h"
#include "server/browser.h"
#include "server/cluster.h"
#include "server/config.h"
#include "server/coordinator.h"
#include "server/guard.h"
#include "server/history.h"
#include "server/minter.h"

/* Which port a connection came in by (peer->tag). Every port serves everything; they differ in the
 * meaning of /generate, and only the home port has the start page. */
enum port { PORT_HOME, PORT_SNOWFLAKE, PORT_TICKET, PORTS };

struct app {
    struct config config;
    struct stamp_plan plan;
    struct board board;
    struct numbers *numbers;   /* all loops draw from it */
    struct rate_table *shares; /* what each client took of it lately; see draw.h */
    struct coordinator *coordinator;
    struct node *cluster; /* this process as a member; NULL with other stores */
    struct peers *peers;  /* NULL: none are named */
    struct guard *guard;
    struct tls_context *tls;
    struct browser browser;
    struct service_ctx *ctx; /* one for each loop */
    size_t loops;
    uint64_t started_ms; /* Unix ms */
    struct places places;
    struct span_export *spans;            /* NULL: none are recorded */
    double sample;                        /* tracing.sample */
    char service[CONFIG_SERVICE_MAX + 1]; /* tracing.service: settings may be freed by a reload */
    struct history *history;              /* the last hour, one row per second */
    _Atomic bool draining;
    char address[PORTS][PEER_ADDRESS_BUF]; /* the first of each port, as bound */
    char store_text[256];    /* which store, for people: settings may be freed by a reload */
    char name[65];           /* this node's */
    char start[FACE_ID_BUF]; /* random, of this process */
};

struct peers;
struct resp_wait;
struct http_wait;
struct rate_table;
struct span_export;
struct trace;

enum { HTTP_ROUTES_MAX = 32 };

struct http_counter { /* of one route on one loop; read by any thread */
    _Atomic uint64_t requests, errors;
};

/* What the time of a request counts as (reply.timed_as), by protocol. */
enum { HTTP_IDS, HTTP_TICKETS, HTTP_SEQUENCES, HTTP_LEASES, HTTP_OTHER, HTTP_KINDS };
enum { RESP_TICKETS, RESP_IDS, RESP_OTHER, RESP_KINDS };
_Static_assert((int)HTTP_KINDS <= (int)LATENCY_KINDS, "");

enum { RUN_MAX = 1023 }; /* requests that are answered together with the first of them */

struct service_ctx {
    struct app *app;
    struct loop *loop;
    struct minter *minter;
    struct ticket_desk *desk;
    struct outbox *outbox;
    struct guard_view guard;
    uint64_t *numbers;  /* room for numbers_max */
    size_t numbers_max; /* limits.ids_per_request at the start */
    size_t index;       /* of the loop */
    const struct firn_kind *ticket_kind;
    const struct firn_kind *snowflake_kind;
    struct resp_wait *resp_idle;            /* resp_commands.c's pool */
    struct http_wait *http_idle, *http_all; /* http_wait.c's pool, and all that it ever made */
    uint32_t http_waits;
    uint64_t unsampled; /* requests without a traceparent before the next one that is recorded */
    struct trace *trace_idle, *trace_all; /* tracing.c's pool, and all that there are */
    uint32_t traces, traces_idle;
    size_t host_len; /* of the Host header that was found good last */
    char host[64];
    struct http_counter
        http[HTTP_ROUTES_MAX]; /* index as in http_route_name(); the last: no route */
};

/* http_routes.c and resp_commands.c: the two tables. */
void http_handle(struct service_ctx *ctx, const struct http_request *req, struct reply *r);
void resp_handle(struct service_ctx *ctx, const struct resp_request *req, struct reply *r);
bool resp_is_command(const char *p, size_t len);
void resp_session_free(struct peer *p); /* when the connection is gone */

void resp_waits_free(struct service_ctx *ctx);

/* Before any loop starts, and after the coordinator ended. */
void http_init(struct service_ctx *ctx);
void http_done(struct service_ctx *ctx);

/* Whether a client above limits.connections may ask this: health and metrics. */
bool http_vital(const struct http_request *req);

/* "GET /v1/ids/{kind}" for the counters; NULL behind the last. */
const char *http_route_name(size_t i);

/* metrics.c: all metrics. */
struct metrics;
void metrics_write(struct app *app, struct metrics *m);

/* http_events.c: one more row of the history; by the main thread. */
void history_sample(struct app *app);

/* What the node says of itself, for others to compare (coord/clash.h). */
void app_face(struct app *app, struct node_face *out);

/* The same as a header's line, for answers about the node. */
enum { FACE_LINE_BUF = 160 };
const char *face_line(const struct node_face *f, char out[FACE_LINE_BUF]);

/* Whether IDs can be minted now, as /readyz says it. *why names the reason, until
 * this thread asks again. */
bool app_ready(struct app *app, const char **why);

/* One sentence for an error of minter_number(s), with what to do, and whether waiting helps. */
const char *mint_trouble(struct app *app, int error);

#endif
