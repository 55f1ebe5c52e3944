/* cuid2_hash.h - the part of CUID2 that its inputs decide, so that tests can compare it with
 * others. */
#ifndef FIRN_ID_CUID2_HASH_H
#define FIRN_ID_CUID2_HASH_H

#include <stddef.h>

#include "firn/cuid2.h"

/* What goes into one CUID2. The salt has as many base 36 digits as the ID has characters. */
struct cuid2_input {
    uint64_t unix_ms, counter;
    char letter;
    const char *salt;
    size_t len;
};

void firn__cuid2_fingerprint(const void *host, size_t host_len,
                             const char entropy[FIRN_CUID2_LEN_MAX], char out[FIRN_CUID2_LEN_MAX]);
void firn__cuid2_hash(const struct cuid2_input *in, const char fingerprint[FIRN_CUID2_LEN_MAX],
                      char *out);

#endif
