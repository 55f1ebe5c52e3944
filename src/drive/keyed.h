/*
 * keyed.h - blocking calls on the registers of clients' keys (coord/keyed.h).
 * For the coordinator thread.
 */
#ifndef FIRN_DRIVE_KEYED_H
#define FIRN_DRIVE_KEYED_H

#include "coord/keyed.h"
#include "store/store.h"

/* The key's answer. FIRN_ENOENT: it has none (any more). */
FIRN_MUSTUSE int keyed_read(struct firn_store *s, const struct nonce *key, struct idem_record *out,
                            struct firn_diag *d);

/* Create the registers of a list that are missing. 0: every key has one; else some may not. */
FIRN_MUSTUSE int keyed_flush(struct firn_store *s, const struct seq_record *r,
                             const struct seq_keys *keys, uint64_t period, struct firn_diag *d);

/* Create the registers of up to KEYED_KEEP_MAX requests with the content in `idem`, which
 * afterwards holds the key's answer. One transaction where the store has them. A key that comes
 * twice gets FIRN_EAGAIN the second time. After an error of the store keep it again, as it was. */
void keyed_keep(struct firn_store *s, struct keyed *const *keep, size_t n, struct firn_diag *d);

/* Remove registers that were made before `before_s`: up to KEYED_SWEEP_MAX of one of the
 * KEYED_PARTS parts of all keys, so that a call takes little time. True in *out_more: the part has
 * more of them. */
FIRN_MUSTUSE int keyed_sweep(struct firn_store *s, uint32_t part, uint64_t before_s,
                             size_t *out_removed, bool *out_more, struct firn_diag *d);

#endif
