/*
 * ranges.h - the table of sequences (coord/seq_table.h) as all loops share it, so that the numbers
 * of one server rise whichever loop answers. Calls are short and may come from any thread.
 */
#ifndef FIRN_SERVER_RANGES_H
#define FIRN_SERVER_RANGES_H

#include "coord/seq_table.h"

#include <pthread.h>

struct ranges {
    pthread_mutex_t mutex; /* the lock of seq_table.h */
    struct seq_table *table;
};

/* FIRN_ENOMEM. */
FIRN_MUSTUSE int ranges_init(struct ranges *r);
void ranges_done(struct ranges *r);

/* seq_table_take() and seq_table_peek() with the lock. */
FIRN_MUSTUSE enum seq_hand ranges_take(struct ranges *r, const char *name, size_t len,
                                       uint64_t want, bool some, uint64_t now_ms,
                                       struct seq_range *out, struct seq_record *out_record,
                                       bool *out_fetch);
int ranges_peek(struct ranges *r, const char *name, size_t len, uint64_t *out);

/* For the coordinator. `ranges` is a struct ranges. */
void ranges_lock(void *ranges);
void ranges_unlock(void *ranges);

/* seq_table_forget() with the lock. */
void ranges_close(struct ranges *r, const char *name, size_t len);

#endif
