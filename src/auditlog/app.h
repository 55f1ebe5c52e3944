/*
 * app.h - the audit log as a process: what its loops share, and what each of them has. Constant
 * after the start but for what is atomic or has a lock of its own.
 */
#ifndef FIRN_AUDITLOG_APP_H
#define FIRN_AUDITLOG_APP_H

#include "auditlog/config.h"
#include "auditlog/outbox.h"
#include "auditlog/reader.h"
#include "auditlog/shard_map.h"
#include "auditlog/writer.h"
#include "net/loop.h"

enum port { PORT_HTTP, PORT_ADMIN, PORTS };

struct database {
    struct writer *writer;
    struct reader *reader;
};

struct app {
    const struct config *config;
    struct shard_map map;
    struct ids *ids; /* NULL with `id: legacy` */
    struct database *databases;
    size_t databases_n;
    struct places places;
    struct tls_context *tls;
    struct span_export *spans; /* or NULL */
    double sample;             /* tracing.sample */
    struct service_ctx *ctx;
    size_t loops;
    uint64_t started_ms;
    atomic_bool draining;
};

struct service_ctx { /* of a loop */
    struct app *app;
    struct loop *loop;
    struct outbox *outbox;
    uint64_t outcomes[OUTCOMES]; /* of writes; relaxed atomics */
    uint64_t full, closed;       /* refused before they were queued */
    uint64_t unsampled;          /* requests until the next one that is traced by the share */
};

/* Where the entries of a shard are now. */
static inline struct database *app_database(struct app *a, uint32_t shard)
{
    return &a->databases[shard_map_database(&a->map, shard)];
}

/* http.c: the service of each loop. */
void http_handle(struct service_ctx *ctx, const struct http_request *req, struct reply *r);
bool http_vital(const struct http_request *req);

/* metrics.c */
struct metrics;
void metrics_write(struct app *a, struct metrics *m);

#endif
