/* Reads, makes and removes the register that holds the sequences of a restored backup (hold.h).
 * Tests: tests/unit/drive/hold.c, tests/integration/wal.py. */
#include "drive/hold.h"

#include <stdio.h>
#include <string.h>

#define HOLD_KEY "hold"

int hold_read(struct firn_store *s, bool *out_held, struct firn_diag *d)
{
    struct firn_record rec;
    int r = firn_store_read(s, firn_slice(HOLD_KEY, sizeof HOLD_KEY - 1), true, &rec, d);
    *out_held = r != FIRN_ENOENT; /* in doubt it is held; whatever it says */
    return r == FIRN_ENOENT ? 0 : r;
}

int hold_lift(struct firn_store *s, struct firn_diag *d)
{
    struct firn_record rec;
    struct firn_slice key = firn_slice(HOLD_KEY, sizeof HOLD_KEY - 1);
    int r = firn_store_read(s, key, true, &rec, d);
    if (r != 0)
        return r == FIRN_ENOENT ? 0 : r;
    struct firn_cas cas = { key, firn_slice(rec.value, rec.len), firn_slice(NULL, 0) };
    r = firn_store_cas(s, &cas, d);
    return r == FIRN_ECONFLICT ? FIRN_EAGAIN : r;
}

int hold_backup(const struct setup *e, struct firn_diag *d)
{
    struct meta_record m;
    struct firn_record old;
    struct nonce req;
    char text[RECORD_TEXT_MAX], hold[64], *at = hold;
    e->random(e->user, req.b, sizeof req.b);
    at += sprintf(at, "firn=hold 1\nreq=");
    for (size_t i = 0; i < sizeof req.b; i++)
        at += sprintf(at, "%02x", req.b[i]);
    *at++ = '\n';
    struct firn_cas cas = { firn_slice(HOLD_KEY, sizeof HOLD_KEY - 1), firn_slice(NULL, 0),
                            firn_slice(hold, (size_t)(at - hold)) };
    int r = firn_store_cas(e->store, &cas, d);
    if (r == FIRN_ECONFLICT) /* the original is a restored backup itself */
        r = 0;
    if (r == 0)
        r = setup_read_meta(e->store, &m, &old, d);
    if (r != 0)
        return r == FIRN_ENOENT ? 0 : r; /* without meta there is nothing to fence */
    strcpy(m.store_inc, "backup"); /* the identity of no store: it is fenced when it is opened */
    e->random(e->user, m.req.b, sizeof m.req.b);
    cas = (struct firn_cas){ firn_slice(META_KEY, META_KEY_LEN), firn_slice(old.value, old.len),
                             firn_slice(text, meta_encode(&m, text)) };
    return firn_store_cas(e->store, &cas, d);
}
