#include "drive/keyed.h"
#include "id/diag.h"

#include <stdio.h>

/* A list's registers hold numbers, no texts. */
_Static_assert(sizeof(((struct keyed_text *)0)->value) >= 12 + 8 * 8 + 6 * 19 + 32, "a value fits");

int keyed_read(struct firn_store *s, const struct nonce *key, struct idem_record *out,
               struct firn_diag *d)
{
    char name[RECORD_KEY_BUF];
    struct firn_record rec;
    int r = firn_store_read(s, firn_slice(name, idem_key(key, name)), true, &rec, d);
    return r ? r : idem_parse(rec.value, rec.len, out, d);
}

int keyed_reused(struct firn_diag *d)
{
    return firn__diag(d, FIRN_EREUSED, 0,
                      "this key was used for another request (the count or the options differ): a "
                      "new request needs a new key");
}

int keyed_check(const struct idem_record *kept, uint64_t args, struct firn_diag *d)
{
    return kept->args == args ? 0 : keyed_reused(d);
}

void keyed_listed(const struct seq_record *r, const struct seq_keys *keys,
                  const struct seq_keyed *key, uint64_t period, struct idem_record *out)
{
    out->args = key->args;
    out->first = key->first;
    out->step = r->step;
    out->count = key->count;
    out->period = period;
    out->at = keys->at;
    out->ids[0] = '\0';
    out->req = r->req;
}

void keyed_creates(const struct seq_record *r, const struct seq_keys *keys, uint64_t period,
                   struct firn_cas *cas, struct keyed_text *text)
{
    struct idem_record idem;
    char value[RECORD_TEXT_MAX];
    for (uint32_t i = 0; i < keys->n; i++) {
        keyed_listed(r, keys, &keys->key[i], period, &idem);
        size_t key_len = idem_key(&keys->key[i].key, text[i].key);
        size_t len = idem_encode(&idem, value);
        memcpy(text[i].value, value, len);
        cas[i] = (struct firn_cas){ firn_slice(text[i].key, key_len),
                                    { NULL, 0 },
                                    firn_slice(text[i].value, len) };
    }
}

/* Each gets its own result; in one transaction where there are such. */
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

/* Another one was faster, or our own write of an earlier try was. */
static void take_kept(struct firn_store *s, struct keyed *k, struct firn_diag *d)
{
    struct idem_record kept;
    k->result = keyed_read(s, &k->ask.key, &kept, d);
    if (k->result == FIRN_ENOENT)
        k->result = FIRN_EAGAIN; /* it was removed in this very moment */
    if (k->result == 0)
        k->result = keyed_check(&kept, k->idem.args, d);
    if (k->result)
        return;
    k->replayed |= !nonce_eq(&kept.req, &k->idem.req);
    k->idem = kept;
}

void keyed_keep(struct firn_store *s, struct keyed *const *keep, size_t n, struct firn_diag *d)
{
    char value[KEYED_KEEP_MAX][RECORD_TEXT_MAX];
    char name[KEYED_KEEP_MAX][RECORD_KEY_BUF];
    struct firn_cas cas[KEYED_KEEP_MAX];
    int result[KEYED_KEEP_MAX];
    struct keyed *who[KEYED_KEEP_MAX];
    size_t m = 0;
    for (size_t i = 0; i < n && i < KEYED_KEEP_MAX; i++) {
        bool twice = false;
        for (size_t k = 0; k < m; k++)
            twice |= nonce_eq(&who[k]->ask.key, &keep[i]->ask.key);
        keep[i]->result = FIRN_EAGAIN;
        if (twice)
            continue;
        cas[m].key = firn_slice(name[m], idem_key(&keep[i]->ask.key, name[m]));
        cas[m].old = firn_slice(NULL, 0);
        cas[m].value = firn_slice(value[m], idem_encode(&keep[i]->idem, value[m]));
        who[m++] = keep[i];
    }
    if (m == 0)
        return;
    write_all(s, cas, m, result, d);
    for (size_t i = 0; i < m; i++) {
        who[i]->result = result[i];
        if (result[i] == FIRN_ECONFLICT)
            take_kept(s, who[i], d);
        who[i]->kept = who[i]->result == 0;
    }
}

struct sweep {
    uint64_t before_s;
    size_t n;
    char key[KEYED_SWEEP_MAX][RECORD_KEY_BUF], value[KEYED_SWEEP_MAX][RECORD_TEXT_MAX];
    struct firn_cas cas[KEYED_SWEEP_MAX];
};

enum { SWEEP_FULL = 1 };

static int look_at(void *user, struct firn_slice key, struct firn_slice value)
{
    struct sweep *w = user;
    struct idem_record idem;
    if (key.len >= RECORD_KEY_BUF || value.len > RECORD_TEXT_MAX ||
        idem_parse(value.p, value.len, &idem, NULL) != 0 || idem.at >= w->before_s)
        return 0; /* also what a newer firn made: not ours to judge */
    if (w->n == KEYED_SWEEP_MAX)
        return SWEEP_FULL;
    memcpy(w->key[w->n], key.p, key.len);
    memcpy(w->value[w->n], value.p, value.len);
    w->cas[w->n] = (struct firn_cas){ firn_slice(w->key[w->n], key.len),
                                      firn_slice(w->value[w->n], value.len),
                                      { NULL, 0 } };
    w->n++;
    return 0;
}

int keyed_sweep(struct firn_store *s, uint32_t part, uint64_t before_s, size_t *out_removed,
                bool *out_more, struct firn_diag *d)
{
    struct sweep w;
    int result[KEYED_SWEEP_MAX];
    char prefix[8];
    w.before_s = before_s;
    w.n = 0;
    int len = snprintf(prefix, sizeof prefix, "idem/%02x", part % KEYED_PARTS);
    int r = firn_store_scan(s, firn_slice(prefix, (size_t)len), look_at, &w, d);
    if (r < 0)
        return r;
    *out_removed = 0;
    *out_more = r == SWEEP_FULL;
    write_all(s, w.cas, w.n, result, d);
    for (size_t i = 0; i < w.n; i++) {
        if (result[i] != 0 && result[i] != FIRN_ECONFLICT)
            return result[i]; /* whatever became of it: the next time round tells */
        *out_removed += result[i] == 0;
    }
    return 0;
}
