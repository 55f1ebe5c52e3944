/*
 * firn/typeid.h - TypeID (specification 0.3): a type and a UUID in one text,
 * user_01h455vb4pex5vsknk084sn02q. The type is at most 63 of a-z and _, not beginning or ending
 * with _, and may be empty; the UUID is 26 digits of lower case Crockford base 32. All functions
 * may be called from any thread; generators belong to one.
 */
#ifndef FIRN_TYPEID_H
#define FIRN_TYPEID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"
#include "firn/random.h"
#include "firn/uuid.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_TYPEID_PREFIX_MAX 63
#define FIRN_TYPEID_SUFFIX_LEN 26
#define FIRN_TYPEID_TEXT_MAX   90 /* prefix, underscore, suffix; no prefix, no underscore */
#define FIRN_TYPEID_TEXT_BUF   91

struct firn_typeid {
    struct firn_uuid uuid;
    char prefix[FIRN_TYPEID_PREFIX_MAX + 1]; /* with a NUL */
};

/* FIRN_EFORMAT: not as the specification wants it. FIRN_ERANGE: the suffix is more than 128 bits,
 * its first digit more than 7. Any UUID is taken, as the specification asks. */
FIRN_API FIRN_MUSTUSE int firn_typeid_parse(const char *p, size_t len, struct firn_typeid *out);

/* The same for a text that ends with a NUL. */
static inline FIRN_MUSTUSE int firn_typeid_parse_str(const char *text, struct firn_typeid *out)
{
    return firn_typeid_parse(text, text ? strlen(text) : 0, out);
}

/* Write the text and a NUL; the length of the text is returned. */
FIRN_API size_t firn_typeid_format(const struct firn_typeid *id, char out[FIRN_TYPEID_TEXT_BUF]);

/* FIRN_EFORMAT: the prefix breaks the rules. It is copied. */
FIRN_API FIRN_MUSTUSE int firn_typeid_from_uuid(const char *prefix, size_t prefix_len,
                                                const struct firn_uuid *uuid,
                                                struct firn_typeid *out);

/* A new one, of a version 7 UUID. FIRN_EFORMAT: the prefix. FIRN_ERANGE: see firn_uuid_v7(). */
FIRN_API FIRN_MUSTUSE int firn_typeid_new(const char *prefix, size_t prefix_len,
                                          struct firn_uuid_v7_gen *g, uint64_t unix_ms,
                                          struct firn_rng *rng, struct firn_typeid *out);

/* By type, then by UUID. */
FIRN_API int firn_typeid_cmp(const struct firn_typeid *a, const struct firn_typeid *b);

#ifdef __cplusplus
}
#endif
#endif
