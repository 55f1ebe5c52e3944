/*
 * seen.h - which IDs were seen before, and where: a set in bounded memory.
 * Exact until its memory is full; then the older half is forgotten; it counts how often this
 * happened. One thread.
 */
#ifndef FIRN_CLI_VERIFY_SEEN_H
#define FIRN_CLI_VERIFY_SEEN_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct seen_part { /* one half */
    struct seen_slot *slot;
    size_t slots, used; /* a power of two, and how many hold something */
    char *texts;
    size_t texts_len, texts_room;
};

struct seen {
    struct seen_part now, before;
    size_t bytes_max;   /* of each half */
    uint64_t forgotten; /* how many IDs, in all */
};

/* FIRN_ENOMEM only if even the first allocation fails. */
FIRN_MUSTUSE int seen_init(struct seen *s, size_t bytes_max);
void seen_done(struct seen *s);

/* 1: it is new, and known from now on. 0: it was seen at `*out_where`. FIRN_ENOMEM. `len` up to
 * 255. */
FIRN_MUSTUSE int seen_add(struct seen *s, const char *id, size_t len, uint64_t where,
                          uint64_t *out_where);

#endif
