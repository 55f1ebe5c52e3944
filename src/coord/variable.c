/*
 * Configuration values as records, and the decisions of a change (variable.h has the argument).
 * Tests: tests/unit/coord/variable.c, tests/unit/drive/variable.c.
 */
#include "coord/variable.h"
#include "coord/record_form.h"
#include "id/diag.h"
#include "platform/assert.h"

static const struct record_field variable_field[] = {
    F(struct variable, revision, NUMBER), F(struct variable, at, NUMBER),
    FT(struct variable, by, TEXT),        F(struct variable, req, NONCE),
    F(struct variable, length, NUMBER),
};

/* The value follows the lines unescaped: it may hold anything, newlines too. */
static const struct record_form variable_form = {
    "firn=config 1\n", variable_field, sizeof variable_field / sizeof variable_field[0]
};

_Static_assert(14 + 9 + 19 + 1 + 3 + 19 + 1 + 3 + RECORD_NAME_MAX + 1 + 4 + 32 + 1 + 7 + 3 + 1 +
                       VARIABLE_VALUE_MAX <=
                   RECORD_TEXT_MAX,
               "the longest variable fits");

size_t variable_encode(const struct variable *v, char out[RECORD_TEXT_MAX])
{
    size_t n = record_encode(&variable_form, v, out);
    firn_assert(v->revision > 0);
    firn_assert(v->length <= VARIABLE_VALUE_MAX && n + v->length <= RECORD_TEXT_MAX);
    memcpy(out + n, v->value, v->length);
    return n + v->length;
}

int variable_parse(const char *p, size_t len, struct variable *out, struct firn_diag *d)
{
    struct variable v = { 0 };
    size_t used = 0;
    int r = record_parse_head(&variable_form, p, len, &v, &used, d);
    if (r != 0)
        return r;
    if (v.revision == 0 || v.length > VARIABLE_VALUE_MAX || len - used != v.length ||
        memchr(p + used, '\0', v.length))
        return firn__diag(d, FIRN_EFORMAT, 0, "the config record contradicts itself");
    memcpy(v.value, p + used, v.length);
    *out = v;
    return 0;
}

size_t variable_key(const char *name, size_t len, char out[RECORD_KEY_BUF])
{
    return record_name_key(VARIABLE_PREFIX, name, len, out);
}

int variable_change_init(struct variable_change *c, const struct variable_write *w,
                         struct firn_diag *d)
{
    if (w->value_len > VARIABLE_VALUE_MAX)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "a value has at most %d bytes, this one has %zu: keep it elsewhere and "
                          "set its address",
                          VARIABLE_VALUE_MAX, w->value_len);
    if (memchr(w->value, '\0', w->value_len))
        return firn__diag(d, FIRN_EINVAL, 0, "a value is text: no NUL byte");
    c->write = w;
    c->rounds = 0;
    c->open_revision = 0;
    return record_user_name_check(w->name, d);
}

/* The revision after `old`; `old` zeroed is none. */
static void build(struct variable_change *c, const struct variable *old, const struct nonce *req)
{
    const struct variable_write *w = c->write;
    c->next = (struct variable){
        .revision = old->revision + 1, .at = w->unix_ms, .length = w->value_len, .req = *req
    };
    memcpy(c->next.by, w->by, strnlen(w->by, RECORD_NAME_MAX));
    memcpy(c->next.value, w->value, w->value_len);
    c->len = variable_encode(&c->next, c->text);
    c->mine[c->rounds++] = *req;
}

static bool over(int result, int *out_result)
{
    *out_result = result;
    return false;
}

/* An error; a write before it may have landed. */
static bool failed(const struct variable_change *c, int error, int *out_result)
{
    return over(c->open_revision ? FIRN_EUNKNOWN : error, out_result);
}

bool variable_change_read(struct variable_change *c, int result, const char *p, size_t len,
                          const struct nonce *fresh, struct variable *out, int *out_result,
                          struct firn_diag *d)
{
    struct variable old = { 0 };
    firn_assert(c->rounds < VARIABLE_ROUNDS_MAX);
    if (result == 0)
        result = variable_parse(p, len, &old, d);
    if (result != 0 && result != FIRN_ENOENT)
        return failed(c, result, out_result);
    for (uint32_t i = 0; result == 0 && i < c->rounds; i++)
        if (nonce_eq(&c->mine[i], &old.req)) {
            *out = old;
            return over(0, out_result);
        }
    if (c->open_revision && old.revision > c->open_revision)
        return over(firn__diag(d, FIRN_EUNKNOWN, 0,
                               "the store did not say whether it was written, and it has been "
                               "changed since: read it, then decide"),
                    out_result);
    if (old.revision == c->open_revision)
        c->open_revision = 0; /* another write has that revision: ours never landed */
    if (c->write->if_revision != VARIABLE_ANY_REVISION && old.revision != c->write->if_revision) {
        *out = old;
        return over(firn__diag(d, FIRN_ECONFLICT, 0, "it has another revision"), out_result);
    }
    build(c, &old, fresh);
    firn_assert(c->next.revision == old.revision + 1);
    return true;
}

bool variable_change_written(struct variable_change *c, int result, struct variable *out,
                             int *out_result)
{
    firn_assert(c->rounds > 0 && c->rounds <= VARIABLE_ROUNDS_MAX);
    if (result == 0) {
        *out = c->next;
        return over(0, out_result);
    }
    if (result == FIRN_EUNKNOWN)
        c->open_revision = c->next.revision;
    else if (result != FIRN_ECONFLICT)
        return failed(c, result, out_result);
    return c->rounds < VARIABLE_ROUNDS_MAX || failed(c, result, out_result);
}
