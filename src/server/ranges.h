/*
 * ranges.h - blocks of numbers in hand, for range sequences. All loops share them, so that the
 * numbers of one server rise whichever loop answers. The next block is fetched when half of the
 * last one is used; its size follows the demand. Calls are short and may come from any thread.
 */
#ifndef FIRN_SERVER_RANGES_H
#define FIRN_SERVER_RANGES_H

#include "coord/sequence.h"

#include <pthread.h>

enum {
    RANGES_MAX = 256
}; /* open sequences; one with the same hash replaces another, whose rest is a gap */

struct range_entry {
    char name[RECORD_NAME_MAX + 1]; /* empty: free */
    size_t name_len;
    struct seq_cache cache;
    struct seq_record record; /* what does not change of it */
};

struct ranges {
    pthread_mutex_t mutex;
    struct range_entry entry[RANGES_MAX];
};

void ranges_init(struct ranges *r);
void ranges_done(struct ranges *r);

/* `want` numbers in one piece, or with `some` up to as many. FIRN_ENOENT: this sequence is not open
 * here. FIRN_EAGAIN: there are not enough in hand. `out_record` may be NULL. Where *out_fetch
 * becomes true, the caller has the coordinator fetch the next block. */
FIRN_MUSTUSE int ranges_take(struct ranges *r, const char *name, size_t len, uint64_t want,
                             bool some, uint64_t now_ms, struct seq_range *out,
                             struct seq_record *out_record, bool *out_fetch);

/* The next number that would be given, without taking it. FIRN_ENOENT: none is in hand. */
int ranges_peek(struct ranges *r, const char *name, size_t len, uint64_t *out);

/* By the coordinator: the sequence is not open here any more; numbers in hand become a gap. */
void ranges_close(struct ranges *r, const char *name, size_t len);

/* By the coordinator: whether a block is still to be fetched ahead; another may have come since. */
bool ranges_asked(struct ranges *r, const char *name, size_t len);

/* By the coordinator: how many numbers to fetch beyond those that are waited for. */
uint64_t ranges_want(struct ranges *r, const char *name, size_t len);

/* By the coordinator: a block arrived (or, with count 0, none did). `fresh`: a job was given lower
 * numbers of this block, so older numbers in hand are dropped; otherwise numbers would fall. */
void ranges_put(struct ranges *r, const char *name, size_t len, const struct seq_record *record,
                const struct seq_range *block, bool fresh, uint64_t now_ms);

/* By the coordinator: forget the numbers in hand of all sequences: the store that granted them is
 * no longer known to be the one that is there. */
void ranges_drop(struct ranges *r);

#endif
