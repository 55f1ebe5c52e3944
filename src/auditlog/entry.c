/* Reads entries of an audit log. Tested in tests/unit/auditlog/entry.c and tests/fuzz/entry.c. */
#include "auditlog/entry.h"
#include "id/diag.h"
#include "wire/json_read.h"
#include "wire/url.h"
#include "wire/utf8.h"

enum { ACTOR = 1, ACTION = 2, DETAIL = 4, NAME_BUF = 32 };

/* UTF-8 without control characters. */
static bool is_name(const char *p, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_next(p + i, len - i);
        if (n == 0 || utf8_is_control(p + i, n))
            return false;
    }
    return len > 0;
}

/* Whether every number of well-formed JSON has an exponent that a jsonb number stands. */
static bool numbers_fit(struct slice json)
{
    const char *p = json.p, *end = json.p + json.len;
    while (p < end) {
        if (*p == '"') {
            for (p++; *p != '"'; p++)
                p += *p == '\\';
            p++;
        } else if ((*p == 'e' || *p == 'E') && p > json.p && p[-1] >= '0' && p[-1] <= '9') {
            unsigned n = 0;
            p += p[1] == '+' || p[1] == '-' ? 2 : 1;
            for (; p < end && *p >= '0' && *p <= '9'; p++)
                n = n > EXPONENT_MAX ? n : n * 10 + (unsigned)(*p - '0');
            if (n > EXPONENT_MAX)
                return false;
        } else {
            p++;
        }
    }
    return true;
}

static int read_name(struct json_reader *j, const char *name, char *out, size_t cap, size_t *len,
                     struct firn_diag *d)
{
    int r = json_string(j, out, cap, len);
    if (r == FIRN_ENOSPC)
        return firn__diag(d, r, 0, "%s is longer than %zu bytes", name, cap - 1);
    if (r)
        return r;
    if (!is_name(out, *len))
        return firn__diag(d, FIRN_EFORMAT, 0, "%s is empty or has control characters in it", name);
    return 0;
}

static int read_detail(struct json_reader *j, struct slice *out, struct firn_diag *d)
{
    if (json_next(j) != JSON_OBJECT)
        return firn__diag(d, FIRN_EFORMAT, 0, "detail must be an object: {...}");
    const char *from = j->p;
    int r = json_skip(j);
    if (r)
        return r;
    *out = (struct slice){ from, (size_t)(j->p - from) };
    return numbers_fit(*out) ? 0
                             : firn__diag(d, FIRN_EFORMAT, 0,
                                          "detail has a number with an exponent above %d; send it "
                                          "as a string",
                                          EXPONENT_MAX);
}

static int read_member(struct json_reader *j, const char *name, unsigned *seen, struct entry *e,
                       struct firn_diag *d)
{
    unsigned which = strcmp(name, "actor") == 0    ? ACTOR
                     : strcmp(name, "action") == 0 ? ACTION
                     : strcmp(name, "detail") == 0 ? DETAIL
                                                   : 0;
    if (which == 0)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "an entry has actor, action and detail; put more into detail");
    if (*seen & which)
        return firn__diag(d, FIRN_EFORMAT, 0, "%s is there twice", name);
    *seen |= which;
    if (which == DETAIL)
        return read_detail(j, &e->detail, d);
    return which == ACTOR ? read_name(j, name, e->actor, sizeof e->actor, &e->actor_len, d)
                          : read_name(j, name, e->action, sizeof e->action, &e->action_len, d);
}

int entry_read(struct slice json, struct entry *out, struct firn_diag *diag)
{
    struct json_reader j;
    char name[NAME_BUF];
    unsigned seen = 0;
    out->detail = (struct slice){ "{}", 2 };
    json_start(&j, json.p, json.len, diag);
    int r = json_object(&j);
    while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0)
        r = read_member(&j, name, &seen, out, diag);
    if (r == FIRN_ENOSPC && !(seen & (ACTOR | ACTION)))
        r = firn__diag(diag, FIRN_EFORMAT, 0,
                       "an entry has actor, action and detail; put more into detail");
    if (r == 0)
        r = json_finish(&j);
    if (r == 0 && (seen & (ACTOR | ACTION)) != (ACTOR | ACTION))
        r = firn__diag(diag, FIRN_EFORMAT, 0, "%s is missing", seen & ACTOR ? "action" : "actor");
    return r;
}

bool entry_line_next(struct slice *rest, struct slice *line)
{
    while (rest->len > 0) {
        const char *end = memchr(rest->p, '\n', rest->len);
        size_t len = end ? (size_t)(end - rest->p) : rest->len, used = end ? len + 1 : len;
        *line = (struct slice){ rest->p, len };
        *rest = (struct slice){ rest->p + used, rest->len - used };
        if (line->len > 0 && line->p[line->len - 1] == '\r')
            line->len--;
        for (size_t i = 0; i < line->len; i++)
            if (line->p[i] != ' ' && line->p[i] != '\t')
                return true;
    }
    return false;
}

int entry_user_read(struct slice segment, char out[USER_BYTES_MAX + 1], size_t *out_len)
{
    int r = url_decode(segment, false, out, USER_BYTES_MAX + 1, out_len);
    if (r == 0 && !is_name(out, *out_len))
        r = FIRN_EFORMAT;
    return r;
}

bool entry_key_valid(struct slice key)
{
    for (size_t i = 0; i < key.len; i++)
        if (key.p[i] <= 0x20 || key.p[i] >= 0x7f)
            return false;
    return key.len >= 1 && key.len <= KEY_BYTES_MAX;
}
