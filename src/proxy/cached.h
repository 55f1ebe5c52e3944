/*
 * cached.h - an answer as it lies in a cache, in memory and in Redis: one value with a version, a
 * checksum and what it is an answer to. What does not read back exactly is not used: a value that
 * was cut, changed, written by another version or by someone else is a miss. Pure; any thread.
 */
#ifndef FIRN_PROXY_CACHED_H
#define FIRN_PROXY_CACHED_H

#include "proxy/cache_memory.h"

struct cached {            /* slices are borrowed from the value */
    struct slice identity; /* all that it depends on: the key in memory, see cache_link.h */
    unsigned status;
    uint64_t stored_ms, until_ms; /* Unix ms: when it was fetched, until when it is fresh */
    uint32_t age_s;               /* how old it was when it was fetched */
    struct slice lines, body;     /* header lines, each with its CR LF */
};

/* NULL: no memory. */
struct cache_value *cached_write(const struct cached *m);

/* FIRN_EFORMAT: not a value of this version, or not whole. */
FIRN_MUSTUSE int cached_read(struct slice value, struct cached *out);

/* The same for a value that this process wrote or read before: without the checksum. */
FIRN_MUSTUSE int cached_view(struct slice value, struct cached *out);

/* Whether it is fresh by this clock. Gateways share values, so a clock may be somewhat behind the
 * one that stored it; a value from further ahead is not believed. */
bool cached_fresh(const struct cached *m, uint64_t now_ms);
uint64_t cached_age_s(const struct cached *m, uint64_t now_ms);

/* Whether If-None-Match names the ETag (weak comparison, RFC 9110, 13.1.2). */
bool cached_etag_in(struct slice list, struct slice etag);

#endif
