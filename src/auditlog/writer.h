/*
 * writer.h - the thread that writes to one database. It takes what waits in its queue, gives the
 * rows IDs and commits them, one commit at a time and at most one each commit_ns; the answers go
 * back when the commit is confirmed.
 *
 * The database goes away: what waits is refused, and so is what comes (503); the others go on. A
 * commit was under way: its outcome is unknown. The same batch with the same IDs is committed again
 * before anything else once the database is back, and its clients hear when that is so, or after
 * wait_ms that nobody knows. A value is not accepted: the requests of the batch are tried one by
 * one, so that only the one to blame is refused.
 */
#ifndef FIRN_AUDITLOG_WRITER_H
#define FIRN_AUDITLOG_WRITER_H

#include "auditlog/ids.h"
#include "auditlog/queue.h"
#include "auditlog/schema.h"
#include "wire/latency.h"

struct writer_opts { /* borrowed as long as the writer */
    const char *url;
    struct schema_place place; /* of the database */
    size_t queue_rows, queue_bytes;
    struct batch_limits batch;
    uint64_t commit_ns;
    uint32_t wait_ms, ahead_days;
    uint64_t map_version;
    bool legacy;
    struct ids *ids; /* of all writers */
};

struct writer_stats { /* written by the thread; any thread reads them */
    _Atomic uint64_t rows, commits, repeated, failed, duplicates, unknown, refused;
    struct latency commit;
};

struct writer;

FIRN_MUSTUSE int writer_start(const struct writer_opts *o, struct writer **out);
struct queue *writer_queue(struct writer *w);
const struct writer_stats *writer_stats(const struct writer *w);

/* When the last commit was, in ns of the monotonic clock; 0: there was none. */
uint64_t writer_last_ns(const struct writer *w);

/* Ends the commit under way, gives back what waits, and joins the thread. */
void writer_stop(struct writer *w);
void writer_free(struct writer *w);

#endif
