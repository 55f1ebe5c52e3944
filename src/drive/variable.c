/* Runs the steps of coord/variable.h on a store. */
#include "drive/variable.h"
#include "drive/real.h"
#include "platform/assert.h"

enum { PAUSE_MS = 50 }; /* after a write whose outcome is unknown */

static int read_variable(struct firn_store *store, const char *name, struct firn_record *rec,
                         struct firn_diag *d)
{
    char key[RECORD_KEY_BUF];
    size_t len = variable_key(name, strlen(name), key);
    return firn_store_read(store, firn_slice(key, len), true, rec, d);
}

int variable_get(struct firn_store *store, const char *name, struct variable *out,
                 struct firn_diag *d)
{
    struct firn_record rec;
    int r = record_user_name_check(name, d);
    if (r == 0)
        r = read_variable(store, name, &rec, d);
    return r ? r : variable_parse(rec.value, rec.len, out, d);
}

int variable_set(struct firn_store *store, const struct variable_write *w, struct variable *out,
                 struct firn_diag *d)
{
    struct variable_change c;
    struct firn_record rec;
    struct nonce fresh;
    char key[RECORD_KEY_BUF];
    int r, result = variable_change_init(&c, w, d);
    if (result != 0)
        return result;
    size_t key_len = variable_key(w->name, strlen(w->name), key);
    for (;;) {
        real_random(NULL, fresh.b, sizeof fresh.b);
        r = read_variable(store, w->name, &rec, d);
        if (!variable_change_read(&c, r, rec.value, r ? 0 : rec.len, &fresh, out, &result, d))
            return result;
        firn_assert(c.len > 0 && c.len <= sizeof c.text, "%zu bytes", c.len);
        struct firn_cas cas = { firn_slice(key, key_len),
                                r ? firn_slice(NULL, 0) : firn_slice(rec.value, rec.len),
                                firn_slice(c.text, c.len) };
        r = firn_store_cas(store, &cas, d);
        if (!variable_change_written(&c, r, out, &result))
            return result;
        if (r == FIRN_EUNKNOWN)
            real_sleep(NULL, PAUSE_MS);
    }
}

int variable_wait(struct firn_store *store, const char *name, const struct variable *known,
                  uint32_t timeout_ms, struct variable *out, struct firn_diag *d)
{
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_record rec;
    struct firn_slice old = { NULL, 0 };
    int r = record_user_name_check(name, d);
    if (r != 0)
        return r;
    if (known)
        old = firn_slice(text, variable_encode(known, text));
    struct firn_slice k = firn_slice(key, variable_key(name, strlen(name), key));
    r = firn_store_wait(store, k, old, timeout_ms, &rec, d);
    return r ? r : variable_parse(rec.value, rec.len, out, d);
}
