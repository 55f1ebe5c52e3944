/*
 * ids.h - where the IDs of rows come from: libfirn-client, whose blocks for each logical shard are
 * fetched ahead by the calls that use them. Any thread may take IDs, but those of one shard one
 * thread at a time: that is the writer of its database.
 */
#ifndef FIRN_AUDITLOG_IDS_H
#define FIRN_AUDITLOG_IDS_H

#include "auditlog/shard_map.h"
#include "firn/error.h"

#include <stdatomic.h>

struct ids;
struct span_export;

/* `url` as in libfirn-client(3), without the mode, which is set here. `spans` may be NULL;
 * borrowed. FIRN_EINVAL, FIRN_EFORMAT, FIRN_ERANGE: the URL; FIRN_EIO: a file that it names cannot
 * be read. */
FIRN_MUSTUSE int ids_open(const char *url, struct span_export *spans, struct ids **out,
                          struct firn_diag *diag);
void ids_close(struct ids *s);

/* Whether ids_open() would take it; no server is asked. */
FIRN_MUSTUSE int ids_check(const char *url, struct firn_diag *diag);

/* `n` IDs of the shard, each above all that were taken for it before. An attempt to fetch a block
 * for them is a child of `traceparent`, "": none. FIRN_EIO and others: there are none within
 * `deadline_ms`, `diag` says why. */
FIRN_MUSTUSE int ids_take(struct ids *s, uint32_t shard, uint64_t *out, size_t n,
                          const char *traceparent, uint32_t deadline_ms, struct firn_diag *diag);

struct ids_stats {
    uint64_t fetched, stale, unordered, requests, failures;
};
void ids_look(const struct ids *s, struct ids_stats *out);

#endif
