/* Entries and snapshots from a disk: applied whole or refused, and a snapshot of the result comes
 * back. */
#include "raft/fsm.h"

#include <openssl/sha.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As it would be with the right checksum, so that the fuzzer gets past it. */
static void restore(struct fsm *f, const uint8_t *data, size_t size)
{
    char *p = malloc(size + SHA256_DIGEST_LENGTH);
    if (!p)
        return;
    memcpy(p, data, size);
    SHA256(data, size, (unsigned char *)p + size);
    (void)!fsm_restore(f, p, size + SHA256_DIGEST_LENGTH);
    free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fsm f = { 0 }, g = { 0 };
    (void)!fsm_restore(&f, (const char *)data, size);
    restore(&f, data, size);
    (void)!fsm_apply(&f, (const char *)data, size);
    size_t len = fsm_snapshot_size(&f);
    char *p = malloc(len);
    if (!p || fsm_snapshot(&f, p, len) != 0 || fsm_restore(&g, p, len) != 0 ||
        g.map.count != f.map.count || g.incarnation != f.incarnation)
        abort();
    free(p);
    fsm_done(&f);
    fsm_done(&g);
    return 0;
}
