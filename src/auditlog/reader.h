/*
 * reader.h - the thread that reads from one database: it takes what waits in its queue and asks for
 * all of it in one round trip. Separate from the writer, so that neither waits for the other.
 */
#ifndef FIRN_AUDITLOG_READER_H
#define FIRN_AUDITLOG_READER_H

#include "auditlog/queue.h"
#include "wire/latency.h"

struct reader_opts { /* borrowed as long as the reader */
    const char *url;
    size_t index;
    size_t queue_reads;
    bool legacy;
};

struct reader_stats {
    _Atomic uint64_t reads, rows, failed;
    struct latency trips;
};

struct reader;

FIRN_MUSTUSE int reader_start(const struct reader_opts *o, struct reader **out);
struct queue *reader_queue(struct reader *r);
const struct reader_stats *reader_stats(const struct reader *r);
void reader_stop(struct reader *r);
void reader_free(struct reader *r);

#endif
