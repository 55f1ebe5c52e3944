#include "drive/variable.h"
#include "coord/record_form.h"
#include "id/diag.h"
#include "id/rng_take.h"

#include <time.h>

enum { ROUNDS_MAX = 16, PAUSE_MS = 50 };

static const struct record_field variable_field[] = {
    F(struct variable, revision, NUMBER), F(struct variable, at, NUMBER),
    FT(struct variable, by, TEXT),        F(struct variable, req, NONCE),
    F(struct variable, length, NUMBER),
};

/* The value stands behind the lines as it is: it may hold anything, lines too. */
static const struct record_form variable_form = {
    "firn=config 1\n", variable_field, sizeof variable_field / sizeof variable_field[0]
};

_Static_assert(14 + 9 + 19 + 1 + 3 + 19 + 1 + 3 + RECORD_NAME_MAX + 1 + 4 + 32 + 1 + 7 + 3 + 1 +
                       VARIABLE_VALUE_MAX <=
                   RECORD_TEXT_MAX,
               "the longest variable fits");

size_t variable_encode(const struct variable *s, char out[RECORD_TEXT_MAX])
{
    size_t n = record_encode(&variable_form, s, out);
    memcpy(out + n, s->value, s->length);
    return n + s->length;
}

int variable_parse(const char *p, size_t len, struct variable *out, struct firn_diag *d)
{
    struct variable s = { 0 };
    size_t used = 0;
    int r = record_parse_head(&variable_form, p, len, &s, &used, d);
    if (r != 0)
        return r;
    if (s.revision == 0 || s.length > VARIABLE_VALUE_MAX || len - used != s.length ||
        memchr(p + used, '\0', s.length))
        return firn__diag(d, FIRN_EFORMAT, 0, "the config record contradicts itself");
    memcpy(s.value, p + used, s.length);
    *out = s;
    return 0;
}

size_t variable_key(const char *name, size_t len, char out[RECORD_KEY_BUF])
{
    return record_name_key(VARIABLE_PREFIX, name, len, out);
}

static int check_name(const char *name, struct firn_diag *d)
{
    if (record_user_name_ok(name, strlen(name)))
        return 0;
    return firn__diag(d, FIRN_EINVAL, 0, "a name is 1 to %d of A-Z a-z 0-9 . _ : and -",
                      RECORD_NAME_MAX);
}

static int read_variable(struct firn_store *store, const char *name, struct firn_record *rec,
                         struct variable *out, struct firn_diag *d)
{
    char key[RECORD_KEY_BUF];
    size_t len = variable_key(name, strlen(name), key);
    int r = firn_store_read(store, firn_slice(key, len), true, rec, d);
    return r ? r : variable_parse(rec->value, rec->len, out, d);
}

int variable_get(struct firn_store *store, const char *name, struct variable *out,
                 struct firn_diag *d)
{
    struct firn_record rec;
    int r = check_name(name, d);
    return r ? r : read_variable(store, name, &rec, out, d);
}

/* The revision after `old`; `old` zeroed is none. */
static void build(const struct variable_write *w, const struct variable *old, struct variable *out)
{
    *out = (struct variable){ .revision = old->revision + 1,
                              .at = w->unix_ms,
                              .length = w->value_len };
    size_t by = strnlen(w->by, RECORD_NAME_MAX);
    memcpy(out->by, w->by, by);
    memcpy(out->value, w->value, w->value_len);
    firn__entropy(out->req.b, sizeof out->req.b);
}

static int check_write(const struct variable_write *w, struct firn_diag *d)
{
    if (w->value_len > VARIABLE_VALUE_MAX)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "a value has at most %d bytes, this one has %zu: keep it elsewhere and "
                          "set where",
                          VARIABLE_VALUE_MAX, w->value_len);
    if (memchr(w->value, '\0', w->value_len))
        return firn__diag(d, FIRN_EINVAL, 0, "a value is text: no NUL byte");
    return check_name(w->name, d);
}

/*
 * One write at a time, each with a nonce, as everywhere. A write that may have landed can only be the
 * successor of the value that it named; so if that value is gone and its successor is not ours, ours
 * never was there and may be sent again. If even the successor is gone, nobody can tell.
 */
int variable_set(struct firn_store *store, const struct variable_write *w, struct variable *out,
                 struct firn_diag *d)
{
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_record rec;
    struct nonce mine[ROUNDS_MAX];
    uint64_t open_revision = 0; /* that writes of unknown outcome would have */
    int r = check_write(w, d);
    if (r != 0)
        return r;
    size_t key_len = variable_key(w->name, strlen(w->name), key);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        struct variable old = { 0 }, next;
        r = read_variable(store, w->name, &rec, &old, d);
        if (r != 0 && r != FIRN_ENOENT)
            return open_revision ? FIRN_EUNKNOWN : r;
        for (int i = 0; r == 0 && i < round; i++)
            if (nonce_eq(&mine[i], &old.req)) {
                *out = old;
                return 0;
            }
        if (open_revision && old.revision > open_revision)
            return firn__diag(d, FIRN_EUNKNOWN, 0,
                              "the store did not say whether it was written, and it has been "
                              "changed since: look at it, then decide");
        if (open_revision && old.revision == open_revision)
            open_revision = 0;
        if (w->if_revision != VARIABLE_ANY_REVISION && old.revision != w->if_revision) {
            *out = old;
            return firn__diag(d, FIRN_ECONFLICT, 0, "it has another revision");
        }
        build(w, &old, &next);
        mine[round] = next.req;
        struct firn_cas cas = { firn_slice(key, key_len),
                                r ? firn_slice(NULL, 0) : firn_slice(rec.value, rec.len),
                                firn_slice(text, variable_encode(&next, text)) };
        r = firn_store_cas(store, &cas, d);
        if (r == 0) {
            *out = next;
            return 0;
        }
        if (r == FIRN_EUNKNOWN) {
            struct timespec t = { 0, PAUSE_MS * 1000000L };
            open_revision = next.revision;
            nanosleep(&t, NULL);
        } else if (r != FIRN_ECONFLICT) {
            return open_revision ? FIRN_EUNKNOWN : r;
        }
    }
    return open_revision ? FIRN_EUNKNOWN : r;
}

int variable_wait(struct firn_store *store, const char *name, const struct variable *known,
                  uint32_t timeout_ms, struct variable *out, struct firn_diag *d)
{
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_record rec;
    struct firn_slice old = { NULL, 0 };
    int r = check_name(name, d);
    if (r != 0)
        return r;
    if (known)
        old = firn_slice(text, variable_encode(known, text));
    struct firn_slice k = firn_slice(key, variable_key(name, strlen(name), key));
    r = firn_store_wait(store, k, old, timeout_ms, &rec, d);
    return r ? r : variable_parse(rec.value, rec.len, out, d);
}
