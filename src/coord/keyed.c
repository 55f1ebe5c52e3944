/*
 * What a client's key stands for: register contents, and the outcome of creating them.
 * Tests: tests/unit/coord/keyed.c, tests/unit/drive/ticket.c, tests/property/drive/keyed_world.c.
 */
#include "coord/keyed.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>

/* A list's registers hold numbers, no texts. */
_Static_assert(sizeof(((struct keyed_text *)0)->value) >= 12 + 8 * 8 + 6 * 19 + 32, "a value fits");

int keyed_reused(struct firn_diag *d)
{
    return firn__diag(d, FIRN_EREUSED, 0,
                      "this key was used for another request (the count or the options differ): a "
                      "new request needs a new key");
}

int keyed_check(const struct idem_record *kept, uint64_t args, uint64_t want, struct firn_diag *d)
{
    bool fits = want == 0 || (kept->count > 0 && kept->count <= want);
    return kept->args == args && fits ? 0 : keyed_reused(d);
}

void keyed_listed(const struct seq_record *r, const struct seq_keys *keys,
                  const struct seq_keyed *key, uint64_t period, struct idem_record *out)
{
    firn_assert(key->count > 0 && key->args <= RECORD_ARGS_MAX);
    firn_assert(key->first + key->count * r->step <= r->next,
                "first=%" PRIu64 " count=%" PRIu64 " next=%" PRIu64, key->first, key->count,
                r->next);
    out->args = key->args;
    out->first = key->first;
    out->step = r->step;
    out->count = key->count;
    out->period = period;
    out->at = keys->at;
    out->ids[0] = '\0';
    out->req = r->req;
}

uint64_t keyed_period(const char *name, size_t len)
{
    const char *at = memchr(name, RECORD_INNER, len);
    uint64_t period = 0;
    for (const char *p = at ? at + 1 : name + len; p < name + len && *p >= '0' && *p <= '9'; p++)
        period = period * 10 + (uint64_t)(*p - '0');
    return period;
}

void keyed_creates(const struct seq_record *r, const struct seq_keys *keys, uint64_t period,
                   struct firn_cas *cas, struct keyed_text *text)
{
    struct idem_record idem;
    char value[RECORD_TEXT_MAX];
    firn_assert(keys->n <= SEQ_KEYS_MAX);
    for (uint32_t i = 0; i < keys->n; i++) {
        keyed_listed(r, keys, &keys->key[i], period, &idem);
        size_t key_len = idem_key(&keys->key[i].key, text[i].key);
        size_t len = idem_encode(&idem, value);
        firn_assert(len <= sizeof text[i].value);
        memcpy(text[i].value, value, len);
        cas[i] = (struct firn_cas){ firn_slice(text[i].key, key_len),
                                    { NULL, 0 },
                                    firn_slice(text[i].value, len) };
    }
}

void keyed_keep_build(struct keyed_keep *k, struct keyed *const *request, size_t n)
{
    k->n = 0;
    for (size_t i = 0; i < n && i < KEYED_KEEP_MAX; i++) {
        struct keyed *y = request[i];
        bool twice = false;
        for (size_t m = 0; m < k->n; m++)
            twice |= nonce_eq(&k->request[m]->ask.key, &y->ask.key);
        y->result = FIRN_EAGAIN;
        if (twice)
            continue;
        size_t m = k->n++;
        k->request[m] = y;
        k->cas[m] = (struct firn_cas){ firn_slice(k->key[m], idem_key(&y->ask.key, k->key[m])),
                                       { NULL, 0 },
                                       firn_slice(k->value[m],
                                                  idem_encode(&y->idem, k->value[m])) };
    }
}

bool keyed_keep_written(struct keyed_keep *k, size_t i, int result)
{
    firn_assert(i < k->n);
    k->request[i]->result = result;
    k->request[i]->kept = result == 0;
    return result == FIRN_ECONFLICT;
}

/* Another request was faster, or our own write of an earlier attempt landed. */
void keyed_keep_read(struct keyed_keep *k, size_t i, int result, const struct idem_record *kept,
                     struct firn_diag *d)
{
    firn_assert(i < k->n && k->request[i]->result == FIRN_ECONFLICT);
    struct keyed *y = k->request[i];
    if (result == FIRN_ENOENT)
        result = FIRN_EAGAIN; /* it was removed in this very moment */
    if (result == 0)
        result = keyed_check(kept, y->idem.args, y->idem.count > 0 ? y->ask.want : 0, d);
    y->result = result;
    y->kept = result == 0;
    if (result != 0)
        return;
    y->replayed |= !nonce_eq(&kept->req, &y->idem.req);
    y->idem = *kept;
}

bool keyed_sweep_add(struct keyed_sweep *w, struct firn_slice key, struct firn_slice value)
{
    struct idem_record idem;
    if (key.len >= RECORD_KEY_BUF || value.len > RECORD_TEXT_MAX ||
        idem_parse(value.p, value.len, &idem, NULL) != 0 || idem.at >= w->before_s)
        return true;
    if (w->n == KEYED_SWEEP_MAX)
        return false;
    size_t i = w->n++;
    firn_assert(w->n <= KEYED_SWEEP_MAX);
    memcpy(w->key[i], key.p, key.len);
    memcpy(w->value[i], value.p, value.len);
    w->cas[i] = (struct firn_cas){ firn_slice(w->key[i], key.len),
                                   firn_slice(w->value[i], value.len),
                                   { NULL, 0 } };
    return true;
}
