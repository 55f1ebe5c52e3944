/*
 * hash64.h - what MD5 and SHA-1 share: blocks of 64 bytes, then a one bit, zeros and the length in
 * bits. The message comes in two pieces, as a namespace and a name do, so that no caller has to
 * join them.
 */
#ifndef FIRN_ID_HASH64_H
#define FIRN_ID_HASH64_H

#include <stdint.h>
#include <string.h>

enum { HASH64_BLOCK = 64, HASH64_LENGTH_AT = 56 };

typedef void hash64_block_fn(uint32_t *state, const uint8_t block[HASH64_BLOCK]);

struct hash64_tail { /* bytes that do not fill a block yet */
    uint8_t block[HASH64_BLOCK];
    size_t used;
};

static inline void hash64_feed(struct hash64_tail *t, uint32_t *state, hash64_block_fn *block,
                               const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        size_t room = HASH64_BLOCK - t->used, part = len < room ? len : room;
        memcpy(t->block + t->used, p, part);
        t->used += part;
        p += part;
        len -= part;
        if (t->used == HASH64_BLOCK) {
            block(state, t->block);
            t->used = 0;
        }
    }
}

/* `length` is the message's length in bits, in the byte order of the hash. */
static inline void hash64_finish(struct hash64_tail *t, uint32_t *state, hash64_block_fn *block,
                                 const uint8_t length[8])
{
    t->block[t->used++] = 0x80;
    if (t->used > HASH64_LENGTH_AT) {
        memset(t->block + t->used, 0, HASH64_BLOCK - t->used);
        block(state, t->block);
        t->used = 0;
    }
    memset(t->block + t->used, 0, HASH64_LENGTH_AT - t->used);
    memcpy(t->block + HASH64_LENGTH_AT, length, 8);
    block(state, t->block);
}

#endif
