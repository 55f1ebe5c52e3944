/*
 * firn/mint.h - IDs of any kind by name, as text.
 * A mint holds the state that the kinds need (a generator for snowflakes, counters for the
 * monotonic ones) on a page that is wiped in the child of a fork(): there it answers FIRN_EFORKED.
 * One thread at a time may use it, not always the same. For the fastest way to one kind use that
 * kind's own header.
 */
#ifndef FIRN_MINT_H
#define FIRN_MINT_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"
#include "firn/gen.h"
#include "firn/read.h"
#include "firn/text.h"

#ifdef __cplusplus
extern "C" {
#endif

struct firn_mint;

/* Start from FIRN_MINT_OPTS_INIT: a `size` that is not set is refused (FIRN_EINVAL). Zero or NULL
 * means the default. */
struct firn_mint_opts {
    uint32_t size;                    /* sizeof as the caller compiled it */
    uint32_t slot;                    /* snowflake: the slot; no other process may use it */
    uint32_t policy;                  /* snowflake: enum firn_policy */
    uint32_t length;                  /* nanoid, cuid2: characters; dated: digits of the counter */
    const struct firn_layout *layout; /* snowflake, copied; NULL: the preset `firn` */
    const struct firn_codec *codec;   /* numbers: how they are written, borrowed; NULL: decimal */
    const char *prefix;     /* typeid: its type; others: a business prefix ord_…; borrowed */
    const char *alphabet;   /* nanoid, borrowed */
    const char *name_space; /* uuidv3, uuidv5: dns, url, oid, x500 or a UUID; borrowed */
    const char *name;       /* uuidv3, uuidv5: borrowed */
    uint64_t first;         /* ticket, dated: the first number; default 1 */
    uint64_t shard;         /* snowflake: the shard, for layouts that carry one */
    uint32_t reset;         /* dated: enum firn_dated_reset */
    uint32_t reserved;
};
#define FIRN_MINT_OPTS_INIT                                                  \
    {                                                                        \
        sizeof(struct firn_mint_opts), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/* A mint for one kind (one with FIRN_KIND_MAKES; otherwise FIRN_ENOTSUP). FIRN_EINVAL, FIRN_ERANGE:
 * an option does not fit; the diag says which and how it should be. Give it back with
 * firn_mint_free(). */
FIRN_API FIRN_MUSTUSE int firn_mint_new(const struct firn_kind *kind,
                                        const struct firn_mint_opts *opts, struct firn_mint **out,
                                        struct firn_diag *diag);
FIRN_API void firn_mint_free(struct firn_mint *m);

#define FIRN_MINT_TEXT_BUF 320 /* the longest text (a NanoID of 255 behind a prefix) with its NUL */

/* The next ID as text with a NUL, its length in `*out_len`. Errors are those of the kind's
 * generator. */
FIRN_API FIRN_MUSTUSE int firn_mint_text(struct firn_mint *m, char out[FIRN_MINT_TEXT_BUF],
                                         size_t *out_len);

/* Up to `n` IDs, each followed by `end` (such as '\n'), into `out` as long as `cap` has room for
 * the longest. `*out_len` bytes hold `*out_n` IDs. 0 if there was at least one, or none
 * was asked for; FIRN_ENOSPC: `cap`
 * is below FIRN_MINT_TEXT_BUF + 1. Much faster than one by one. */
FIRN_API FIRN_MUSTUSE int firn_mint_lines(struct firn_mint *m, size_t n, char end, char *out,
                                          size_t cap, size_t *out_n, size_t *out_len);

#ifdef __cplusplus
}
#endif
#endif
