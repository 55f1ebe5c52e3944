/*
 * ids.h - where the IDs of rows come from: blocks for each logical shard, fetched from firnds. A
 * firnd that does not answer within timeout_ms is tried no more; the next one is asked, retry_ms
 * later, `retries` times. Each writer has one of its own, and waits for it: one thread.
 */
#ifndef FIRN_AUDITLOG_IDS_H
#define FIRN_AUDITLOG_IDS_H

#include "auditlog/shard_map.h"
#include "firn/error.h"

#include <stdatomic.h>

struct host_port;
struct ids;

struct ids_opts { /* borrowed as long as the ids */
    const struct host_port *generators;
    size_t generators_n;
    const char *token; /* NULL: none */
    uint32_t timeout_ms, retries, retry_ms, fresh_ms, block;
    const atomic_bool *ending; /* set: give up */
};

struct ids_stats { /* any thread reads them */
    _Atomic uint64_t fetched, dropped, requests, failures;
};

FIRN_MUSTUSE int ids_new(const struct ids_opts *o, struct ids_stats *stats, struct ids **out);
void ids_free(struct ids *s);

/* `n` IDs of the shard, each above all that were taken for it before. FIRN_EIO: no generator made
 * them before `until_ms` of mono_now_ms(), `diag` says why; FIRN_ENOMEM. */
FIRN_MUSTUSE int ids_take(struct ids *s, uint32_t shard, uint64_t *out, size_t n, int64_t until_ms,
                          struct firn_diag *diag);

#endif
