/*
 * firn/objectid.h - MongoDB's ObjectID: seconds, 5 random bytes of the process, a counter; 24 hex
 * digits. A struct firn_objectid_gen belongs to one thread, and a child of fork() starts its copy
 * anew; everything else keeps no state: call it from any thread.
 */
#ifndef FIRN_OBJECTID_H
#define FIRN_OBJECTID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"
#include "firn/random.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_OBJECTID_TEXT_LEN     24
#define FIRN_OBJECTID_TEXT_BUF     25
#define FIRN_OBJECTID_RANDOM_BYTES 5
#define FIRN_OBJECTID_COUNTER_MAX  0xffffffu

struct firn_objectid {
    uint8_t b[12]; /* high byte first: 4 seconds, 5 random, 3 counter */
};

/* All private: complete only so that it can live in your stack or struct. */
struct firn_objectid_gen {
    uint64_t random_; /* 40 bits, drawn once */
    uint32_t second_;
    uint32_t left_;    /* counters that this second still has */
    uint32_t counter_; /* the next one */
    uint32_t reserved_;
};

/* Draw the 5 bytes that tell this generator from all others, and where its counter begins. */
FIRN_API void firn_objectid_gen_init(struct firn_objectid_gen *g, struct firn_rng *rng);

/* The next ObjectID. The counter wraps to 0 after FIRN_OBJECTID_COUNTER_MAX, so IDs of one second
 * need not be in order. When the clock goes back the last second is kept. FIRN_EAGAIN: this
 * second's 2^24 counters are used up; ask again in the next. FIRN_ERANGE: the time is beyond 32
 * bits of seconds (2106). */
FIRN_API FIRN_MUSTUSE int firn_objectid_next(struct firn_objectid_gen *g, uint64_t unix_ms,
                                             struct firn_objectid *out);

/* 24 hex digits in either case. FIRN_EFORMAT: another length or character. */
FIRN_API FIRN_MUSTUSE int firn_objectid_parse(const char *p, size_t len, struct firn_objectid *out);

/* The same for a text that ends with a NUL. */
static inline FIRN_MUSTUSE int firn_objectid_parse_str(const char *text, struct firn_objectid *out)
{
    return firn_objectid_parse(text, text ? strlen(text) : 0, out);
}

/* Lower case, with a NUL. */
FIRN_API void firn_objectid_format(const struct firn_objectid *id,
                                   char out[FIRN_OBJECTID_TEXT_BUF]);

/* When it was made: whole seconds, as Unix milliseconds. */
FIRN_API uint64_t firn_objectid_unix_ms(const struct firn_objectid *id);

/* The 5 random bytes, borrowed from `id`. */
FIRN_API const uint8_t *firn_objectid_random(const struct firn_objectid *id);
FIRN_API uint32_t firn_objectid_counter(const struct firn_objectid *id);

/* Less than, equal to or greater than 0, as a is before, the same as or after b. */
FIRN_API int firn_objectid_cmp(const struct firn_objectid *a, const struct firn_objectid *b);

#ifdef __cplusplus
}
#endif
#endif
