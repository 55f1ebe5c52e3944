/*
 * Reads, creates and removes the registers of clients' keys.
 * Tests: tests/unit/drive/ticket.c, tests/property/drive/keyed_world.c.
 */
#include "drive/keyed.h"
#include "platform/assert.h"

#include <stdio.h>

int keyed_read(struct firn_store *s, const struct nonce *key, struct idem_record *out,
               struct firn_diag *d)
{
    char name[RECORD_KEY_BUF];
    struct firn_record rec;
    int r = firn_store_read(s, firn_slice(name, idem_key(key, name)), true, &rec, d);
    return r ? r : idem_parse(rec.value, rec.len, out, d);
}

/* Each write gets its own result; one transaction where the store has them. */
static void write_all(struct firn_store *s, const struct firn_cas *cas, size_t n, int *result,
                      struct firn_diag *d)
{
    if (n > 1 && s->ops->cas_many) {
        int r = firn_store_cas_many(s, cas, n, result, d);
        for (size_t i = 0; r && i < n; i++)
            result[i] = r;
        return;
    }
    for (size_t i = 0; i < n; i++)
        result[i] = firn_store_cas(s, &cas[i], d);
}

int keyed_flush(struct firn_store *s, const struct seq_record *r, const struct seq_keys *keys,
                uint64_t period, struct firn_diag *d)
{
    struct firn_cas cas[SEQ_KEYS_MAX];
    struct keyed_text text[SEQ_KEYS_MAX];
    int result[SEQ_KEYS_MAX];
    keyed_creates(r, keys, period, cas, text);
    write_all(s, cas, keys->n, result, d);
    for (uint32_t i = 0; i < keys->n; i++)
        if (result[i] != 0 && result[i] != FIRN_ECONFLICT)
            return result[i];
    return 0;
}

void keyed_keep(struct firn_store *s, struct keyed *const *keep, size_t n, struct firn_diag *d)
{
    struct keyed_keep k;
    struct idem_record kept;
    int result[KEYED_KEEP_MAX];
    keyed_keep_build(&k, keep, n);
    write_all(s, k.cas, k.n, result, d);
    for (size_t i = 0; i < k.n; i++)
        if (keyed_keep_written(&k, i, result[i])) {
            int r = keyed_read(s, &k.request[i]->ask.key, &kept, d);
            keyed_keep_read(&k, i, r, &kept, d);
        }
}

enum { SWEEP_FULL = 1 };

static int sweep_one(void *user, struct firn_slice key, struct firn_slice value)
{
    return keyed_sweep_add(user, key, value) ? 0 : SWEEP_FULL;
}

int keyed_sweep(struct firn_store *s, uint32_t part, uint64_t before_s, size_t *out_removed,
                bool *out_more, struct firn_diag *d)
{
    struct keyed_sweep w;
    int result[KEYED_SWEEP_MAX];
    char prefix[8];
    w.before_s = before_s;
    w.n = 0;
    int len = snprintf(prefix, sizeof prefix, "idem/%02x", part % KEYED_PARTS);
    int r = firn_store_scan(s, firn_slice(prefix, (size_t)len), sweep_one, &w, d);
    if (r < 0)
        return r;
    firn_assert(w.n <= KEYED_SWEEP_MAX);
    *out_removed = 0;
    *out_more = r == SWEEP_FULL;
    write_all(s, w.cas, w.n, result, d);
    for (size_t i = 0; i < w.n; i++) {
        if (result[i] != 0 && result[i] != FIRN_ECONFLICT)
            return result[i]; /* removed or not: the next sweep shows */
        *out_removed += result[i] == 0;
    }
    return 0;
}
