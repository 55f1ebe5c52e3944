/* Targets with places for values. Tested in tests/unit/proxy/template.c. */
#include "proxy/template.h"
#include "id/diag.h"
#include "proxy/path.h"
#include "wire/http_line.h"

#include <ctype.h>

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == ':';
}

/* The path with "x" for every value must be as requests are compared. */
static int check_path(const char *path, size_t len, struct firn_diag *why)
{
    char out[TEMPLATE_BYTES_MAX];
    const char *cause = "";
    size_t n;
    if (len == 0 || path[0] != '/')
        return firn__diag(why, FIRN_EFORMAT, 0, "a target begins with '/'");
    if (path_canonical((struct slice){ path, len }, out, sizeof out, &n, &cause) != 0)
        return firn__diag(why, FIRN_EFORMAT, 0, "%s", *cause ? cause : "the path is too long");
    return n == len && memcmp(path, out, n) == 0
               ? 0
               : firn__diag(why, FIRN_EFORMAT, 0, "the path is not canonical; write %.*s", (int)n,
                            out);
}

int template_read(struct slice text, struct template *out, struct firn_diag *why)
{
    char path[TEMPLATE_BYTES_MAX];
    size_t len = 0;
    bool query = false;
    *out = (struct template){ .text = text };
    if (text.len >= TEMPLATE_BYTES_MAX)
        return firn__diag(why, FIRN_EFORMAT, 0, "the target has more than %d bytes",
                          TEMPLATE_BYTES_MAX - 1);
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] == '{') {
            size_t from = ++i;
            while (i < text.len && is_name(text.p[i]))
                i++;
            if (i == text.len || text.p[i] != '}' || i == from)
                return firn__diag(why, FIRN_EFORMAT, i + 1,
                                  "in braces stands one name of letters, digits and . : _ -");
            if (out->n == TEMPLATE_NAMES_MAX)
                return firn__diag(why, FIRN_EFORMAT, i + 1, "there are more than %d values",
                                  TEMPLATE_NAMES_MAX);
            out->name[out->n++] = (struct slice){ text.p + from, i - from };
            path[len++] = 'x';
        } else if (!http_is(text.p[i], HTTP_TARGET)) {
            return firn__diag(why, FIRN_EFORMAT, i + 1, "a target has no such character here");
        } else {
            query |= text.p[i] == '?';
            path[len++] = text.p[i];
        }
    }
    const char *end = query ? memchr(path, '?', len) : path + len;
    return check_path(path, (size_t)(end - path), why);
}

static void encode(struct buf *out, const char *p, size_t len)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)p[i];
        if (c < 0x80 && (isalnum(c) || strchr("-._~", c)) && c)
            buf_add(out, &p[i], 1);
        else
            buf_add(out, (char[3]){ '%', hex[c >> 4], hex[c & 15] }, 3);
    }
}

/* The path that was written must be its own canonical form. */
static bool path_stays(const char *p, size_t len)
{
    char out[TEMPLATE_TARGET_MAX];
    const char *cause;
    size_t n;
    return path_canonical((struct slice){ p, len }, out, sizeof out, &n, &cause) == 0 && n == len &&
           memcmp(out, p, n) == 0;
}

struct writing {
    struct buf *out;
    size_t begin;     /* of the target in out */
    bool query, kept; /* in the query; a parameter was written before */
    size_t param;     /* where the parameter in hand begins, with the '?' or '&' in front of it */
    bool absent;      /* it has no value */
};

static void end_param(struct writing *w)
{
    if (w->absent)
        w->out->len = w->param;
    else
        w->kept = true;
    w->absent = false;
}

static void begin_param(struct writing *w)
{
    w->query = true;
    w->param = w->out->len;
    buf_add(w->out, w->kept ? "&" : "?", 1);
}

static int write_value(struct writing *w, struct slice name, template_value_fn *value, void *user,
                       struct firn_diag *why)
{
    struct buf v;
    buf_init(&v, TEMPLATE_TARGET_MAX);
    const enum template_value is = value(user, name, &v);
    const bool failed = v.failed, empty = v.len == 0;
    if (is == TEMPLATE_THERE && !failed)
        encode(w->out, v.p, v.len);
    buf_done(&v);
    if (failed)
        return firn__diag(why, FIRN_ENOSPC, 0, "the value of {%.*s} is too long", (int)name.len,
                          name.p);
    w->absent |= is == TEMPLATE_ABSENT;
    if (is == TEMPLATE_MISSING || (!w->query && (is == TEMPLATE_ABSENT || empty)))
        return firn__diag(why, FIRN_ENOENT, 0, "there is no value for {%.*s}", (int)name.len,
                          name.p);
    return 0;
}

int template_write(const struct template *t, template_value_fn *value, void *user, struct buf *out,
                   struct firn_diag *why)
{
    struct writing w = { .out = out, .begin = out->len };
    size_t name = 0, path_end = 0;
    for (size_t i = 0; i < t->text.len && !out->failed; i++) {
        char c = t->text.p[i];
        if (c == '{') {
            int e = write_value(&w, t->name[name], value, user, why);
            if (e)
                return e;
            i += t->name[name++].len + 1;
        } else if (c == '?' && !w.query) {
            path_end = out->len;
            begin_param(&w);
        } else if (c == '&' && w.query) {
            end_param(&w);
            begin_param(&w);
        } else {
            buf_add(out, &c, 1);
        }
    }
    if (w.query)
        end_param(&w);
    else
        path_end = out->len;
    if (out->failed || out->len - w.begin > TEMPLATE_TARGET_MAX)
        return firn__diag(why, FIRN_ENOSPC, 0, "the target is too long");
    return path_stays(out->p + w.begin, path_end - w.begin)
               ? 0
               : firn__diag(why, FIRN_EFORMAT, 0, "a value cannot stand in a path");
}
