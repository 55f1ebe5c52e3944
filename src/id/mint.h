/* mint.h - the inside of firn/mint.h: everything a mint keeps, and how one is set up in place. */
#ifndef FIRN_ID_MINT_H
#define FIRN_ID_MINT_H

#include "firn/cuid2.h"
#include "firn/dated.h"
#include "firn/gen.h"
#include "firn/mint.h"
#include "firn/nanoid.h"
#include "firn/objectid.h"
#include "firn/random.h"
#include "firn/typeid.h"
#include "firn/ulid.h"
#include "firn/uuid.h"
#include "firn/prefixed.h"
#include "firn/ticket.h"
#include "firn/xid.h"

enum { MINT_BATCH = 512 }; /* numbers drawn at once; 4 KiB stay in the nearest cache */

typedef int mint_maker(struct firn_mint *m, char *out, size_t *out_len);

struct firn_mint {
    mint_maker *make; /* NULL on a page wiped by fork() */
    const struct firn_clock *clock;
    struct firn_rng *(*rng_of)(void); /* of the thread that calls, which may be any */
    struct firn_rng *rng;             /* for the call under way */
    const struct firn_codec *codec;
    int has_gen; /* a kind that gen draws numbers for: they can be made many at a time */
    struct firn_gen gen;
    uint64_t shard, ticket;
    uint32_t length;
    char prefix[64]; /* "ord_", or a TypeID's type */
    size_t prefix_len;
    struct firn_uuid_v7_gen v7;
    struct firn_uuid_gregorian_gen gregorian;
    struct firn_uuid name_based;
    struct firn_ulid_gen ulid;
    struct firn_xid_gen xid;
    struct firn_objectid_gen objectid;
    struct firn_cuid2_gen cuid2;
    struct firn_nanoid_alphabet alphabet;
    struct firn_dated_gen dated;
    uint64_t batch[MINT_BATCH];
};

/* `clock` is borrowed; `rng_of` gives the calling thread's generator. */
int firn__mint_init(struct firn_mint *m, const struct firn_kind *kind,
                    const struct firn_mint_opts *opts, const struct firn_clock *clock,
                    struct firn_rng *(*rng_of)(void), struct firn_diag *diag);

#endif
