/*
 * The JSON reader. Nesting is two bits per level in struct json_reader, so skipping a value needs
 * no recursion. The plain runs of a string are passed over at once; escapes are decoded one by one.
 */
#include "wire/json_read.h"
#include "id/hex.h"
#include "platform/assert.h"
#include "wire/utf8.h"

#include <stdio.h>

static int fail_code(struct json_reader *j, int code, const char *why)
{
    if (j->diag) {
        j->diag->column = (size_t)(j->p - j->start) + 1;
        snprintf(j->diag->text, sizeof j->diag->text, "JSON, byte %zu: %s", j->diag->column, why);
    }
    return code;
}

static int fail(struct json_reader *j, const char *why)
{
    return fail_code(j, FIRN_EFORMAT, j->p == j->end ? "the text ends too early" : why);
}

static inline void skip_space(struct json_reader *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r'))
        j->p++;
}

static inline bool take(struct json_reader *j, char c)
{
    skip_space(j);
    if (j->p == j->end || *j->p != c)
        return false;
    j->p++;
    return true;
}

void json_start(struct json_reader *j, const char *p, size_t len, struct firn_diag *diag)
{
    if (!p) /* an absent slice has no bytes */
        p = "";
    *j = (struct json_reader){ .start = p, .p = p, .end = p + len, .diag = diag };
}

enum json_type json_next(struct json_reader *j)
{
    skip_space(j);
    if (j->p == j->end)
        return JSON_OTHER;
    switch (*j->p) {
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case '"':
        return JSON_STRING;
    case 't':
    case 'f':
        return JSON_BOOL;
    case 'n':
        return JSON_NULL;
    default:
        return *j->p == '-' || (*j->p >= '0' && *j->p <= '9') ? JSON_NUMBER : JSON_OTHER;
    }
}

/* ---- objects and arrays ---- */

static int enter(struct json_reader *j, bool object)
{
    if (!take(j, object ? '{' : '['))
        return fail(j, object ? "an object {...} is expected here"
                              : "an array [...] is expected here");
    if (j->depth == JSON_DEPTH_MAX)
        return fail_code(j, FIRN_EFORMAT, "objects and arrays are nested too deep");
    uint32_t bit = 1u << j->depth++;
    j->fresh |= bit;
    j->objects = object ? j->objects | bit : j->objects & ~bit;
    return 0;
}

int json_object(struct json_reader *j)
{
    return enter(j, true);
}

int json_array(struct json_reader *j)
{
    return enter(j, false);
}

/* 1: an element or the name of a member is next. 0: the object or array ended. */
static inline int advance(struct json_reader *j, bool object)
{
    firn_assert(j->depth > 0 && j->depth <= JSON_DEPTH_MAX, "depth=%u", j->depth);
    uint32_t bit = 1u << (j->depth - 1);
    firn_assert(((j->objects & bit) != 0) == object, "depth=%u", j->depth);
    bool fresh = (j->fresh & bit) != 0;
    j->fresh &= ~bit;
    skip_space(j);
    if (j->p < j->end && *j->p == (object ? '}' : ']')) {
        j->p++;
        j->depth--;
        return 0;
    }
    if (!fresh && !take(j, ','))
        return fail(j, object ? "a comma or } is expected here" : "a comma or ] is expected here");
    return 1;
}

int json_member(struct json_reader *j, char *name, size_t cap)
{
    int r = advance(j, true);
    if (r <= 0)
        return r;
    r = json_string(j, name, cap, NULL);
    if (r)
        return r;
    return take(j, ':') ? 1 : fail(j, "a colon is expected here");
}

int json_element(struct json_reader *j)
{
    return advance(j, false);
}

int json_find(struct json_reader *j, const char *name)
{
    int r;
    while ((r = advance(j, true)) > 0) {
        struct slice s = { NULL, 0 };
        r = json_slice(j, &s);
        if (r == FIRN_ENOTSUP)
            r = json_skip(j); /* with an escape in it: another name */
        if (r)
            return r;
        if (!take(j, ':'))
            return fail(j, "a colon is expected here");
        if (s.p && s.len == strlen(name) && memcmp(s.p, name, s.len) == 0)
            return 1;
        r = json_skip(j);
        if (r)
            return r;
    }
    return r;
}

/* ---- strings ---- */

/* Four hex digits behind \u. */
static int unit(struct json_reader *j, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++, j->p++) {
        int digit = j->p < j->end ? hex_digit(*j->p) : -1;
        if (digit < 0)
            return fail(j, "\\u needs four hex digits");
        v = v << 4 | (uint32_t)digit;
    }
    *out = v;
    return 0;
}

/* The character of \uXXXX, or of a pair of them. */
static int code_point(struct json_reader *j, uint32_t *out)
{
    uint32_t high, low;
    int r = unit(j, &high);
    if (r)
        return r;
    *out = high;
    if (high == 0)
        return fail_code(j, FIRN_EFORMAT, "\\u0000 is not accepted");
    if (high < 0xd800 || high > 0xdfff)
        return 0;
    if (high > 0xdbff || j->end - j->p < 2 || j->p[0] != '\\' || j->p[1] != 'u')
        return fail(j, "half of a surrogate pair");
    j->p += 2;
    r = unit(j, &low);
    if (r)
        return r;
    if (low < 0xdc00 || low > 0xdfff)
        return fail(j, "half of a surrogate pair");
    *out = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    return 0;
}

/* The escape behind a backslash, as UTF-8. */
static int escape(struct json_reader *j, char out[4], size_t *out_n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (j->p == j->end)
        return fail(j, "");
    const char *hit = *j->p ? strchr(from, *j->p) : NULL;
    if (hit) {
        j->p++;
        out[0] = to[hit - from];
        *out_n = 1;
        return 0;
    }
    if (*j->p != 'u')
        return fail(j, "no such escape");
    j->p++;
    uint32_t point;
    int r = code_point(j, &point);
    if (r == 0)
        *out_n = utf8_put(point, out);
    return r;
}

#define ONES ((uint64_t)-1 / 255)

/* Whether none of eight bytes is a quote, a backslash, a control character or above ASCII. A borrow
 * may only turn a yes into a no, and then the bytes are looked at one by one. */
static inline bool is_plain_word(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    uint64_t quote = v ^ ONES * '"', slash = v ^ ONES * '\\';
    return ((v | (v - ONES * 0x20) | (quote - ONES) | (slash - ONES)) & ONES * 0x80) == 0;
}

/* Passes over the characters of a string that stand for themselves; it stops at a quote or a
 * backslash. */
static inline int plain(struct json_reader *j)
{
    while (j->end - j->p >= 8 && is_plain_word(j->p))
        j->p += 8;
    while (j->p < j->end) {
        uint8_t c = (uint8_t)*j->p;
        if (c == '"' || c == '\\')
            return 0;
        if (c < 0x20)
            return fail(j, "a control character in a string must be written as an escape");
        size_t n = c < 0x80 ? 1 : utf8_next(j->p, (size_t)(j->end - j->p));
        if (n == 0)
            return fail(j, "the text is not UTF-8");
        j->p += n;
    }
    return fail(j, "");
}

static inline int open_quote(struct json_reader *j)
{
    return take(j, '"') ? 0 : fail(j, "a string is expected here");
}

int json_slice(struct json_reader *j, struct slice *out)
{
    int r = open_quote(j);
    if (r)
        return r;
    const char *from = j->p;
    r = plain(j);
    if (r)
        return r;
    if (*j->p == '\\') {
        j->p = from - 1;
        return FIRN_ENOTSUP;
    }
    *out = (struct slice){ from, (size_t)(j->p++ - from) };
    return 0;
}

struct text { /* where a string goes; p == NULL: it is checked and dropped */
    char *p;
    size_t len, cap;
};

static int append(struct json_reader *j, struct text *t, const char *p, size_t n)
{
    if (!t->p)
        return 0;
    if (n >= t->cap - t->len)
        return fail_code(j, FIRN_ENOSPC, "the string is too long");
    memcpy(t->p + t->len, p, n);
    t->len += n;
    return 0;
}

static int string(struct json_reader *j, struct text *t)
{
    int r = open_quote(j);
    while (r == 0) {
        char c[4];
        size_t n = 0;
        const char *from = j->p;
        if ((r = plain(j)) != 0 || (r = append(j, t, from, (size_t)(j->p - from))) != 0)
            break;
        if (*j->p++ == '"')
            return 0;
        if ((r = escape(j, c, &n)) == 0)
            r = append(j, t, c, n);
    }
    return r;
}

static int skip_string(struct json_reader *j)
{
    return string(j, &(struct text){ 0 });
}

int json_string(struct json_reader *j, char *out, size_t cap, size_t *out_len)
{
    firn_assert(out && cap > 0);
    struct text t = { out, 0, cap };
    int r = string(j, &t);
    if (r)
        return r;
    firn_assert(t.len < cap, "len=%zu cap=%zu", t.len, cap);
    out[t.len] = '\0';
    if (out_len)
        *out_len = t.len;
    return 0;
}

/* ---- other scalars ---- */

static inline bool digits(struct json_reader *j)
{
    const char *from = j->p;
    while (j->p < j->end && *j->p >= '0' && *j->p <= '9')
        j->p++;
    return j->p > from;
}

static inline bool at(const struct json_reader *j, char c)
{
    return j->p < j->end && *j->p == c;
}

int json_numeral(struct json_reader *j, struct slice *out)
{
    skip_space(j);
    const char *from = j->p;
    if (at(j, '-'))
        j->p++;
    const char *first = j->p;
    if (!digits(j))
        return fail(j, "a number is expected here");
    if (*first == '0' && j->p - first > 1)
        return fail_code(j, FIRN_EFORMAT, "a number has a zero in front");
    if (at(j, '.')) {
        j->p++;
        if (!digits(j))
            return fail(j, "a digit is expected here");
    }
    if (at(j, 'e') || at(j, 'E')) {
        j->p++;
        if (at(j, '+') || at(j, '-'))
            j->p++;
        if (!digits(j))
            return fail(j, "a digit is expected here");
    }
    *out = (struct slice){ from, (size_t)(j->p - from) };
    return 0;
}

int json_u64(struct json_reader *j, uint64_t *out)
{
    bool quoted = take(j, '"');
    const char *from = j->p;
    uint64_t v = 0;
    bool over = false;
    for (; j->p < j->end && *j->p >= '0' && *j->p <= '9'; j->p++)
        over |= __builtin_mul_overflow(v, 10u, &v) ||
                __builtin_add_overflow(v, (unsigned)(*j->p - '0'), &v);
    if (j->p == from || (*from == '0' && j->p - from > 1))
        return fail(j, "a whole number is expected here, not negative and without a zero in front");
    if (quoted && (j->p == j->end || *j->p != '"'))
        return fail(j, "digits only are expected in this string");
    if (quoted)
        j->p++;
    else if (j->p < j->end && (*j->p == '.' || (*j->p | 0x20) == 'e'))
        return fail(j, "a whole number is expected here, without fraction or exponent");
    if (over)
        return fail_code(j, FIRN_ERANGE, "the number is above 18446744073709551615");
    *out = v;
    return 0;
}

static bool word(struct json_reader *j, const char *want)
{
    size_t n = strlen(want);
    skip_space(j);
    if ((size_t)(j->end - j->p) < n || memcmp(j->p, want, n) != 0)
        return false;
    j->p += n;
    return true;
}

int json_boolean(struct json_reader *j, bool *out)
{
    bool yes = word(j, "true");
    if (!yes && !word(j, "false"))
        return fail(j, "true or false is expected here");
    *out = yes;
    return 0;
}

static int null(struct json_reader *j)
{
    return word(j, "null") ? 0 : fail(j, "a value is expected here");
}

/* ---- whole values ---- */

/* A scalar, or the opening bracket of an object or array. */
static int skip_one(struct json_reader *j)
{
    struct slice s;
    bool b;
    switch (json_next(j)) {
    case JSON_OBJECT:
        return json_object(j);
    case JSON_ARRAY:
        return json_array(j);
    case JSON_STRING:
        return skip_string(j);
    case JSON_NUMBER:
        return json_numeral(j, &s);
    case JSON_BOOL:
        return json_boolean(j, &b);
    case JSON_NULL:
        return null(j);
    case JSON_OTHER:
        break;
    }
    return fail(j, "a value is expected here");
}

int json_skip(struct json_reader *j)
{
    unsigned floor = j->depth;
    int r = skip_one(j);
    while (r == 0 && j->depth > floor) {
        bool object = (j->objects >> (j->depth - 1) & 1) != 0;
        r = advance(j, object);
        if (r == 0)
            continue;
        if (r > 0)
            r = object ? skip_string(j) : 0;
        if (r == 0 && object && !take(j, ':'))
            r = fail(j, "a colon is expected here");
        if (r == 0)
            r = skip_one(j);
    }
    return r;
}

int json_finish(struct json_reader *j)
{
    skip_space(j);
    return j->p == j->end ? 0 : fail(j, "something follows the value");
}

/* ---- every scalar with its path ---- */

struct walk {
    struct json_reader j;
    json_each_fn *each;
    void *user;
    size_t path_len[JSON_DEPTH_MAX + 1]; /* of the path to the object or array at this depth */
    unsigned index[JSON_DEPTH_MAX + 1];  /* of the next element of the array at this depth */
    char path[JSON_PATH_MAX + 1];
    char text[JSON_TEXT_MAX + 1];
};

static int walk_path(struct walk *w, const char *name)
{
    size_t before = w->path_len[w->j.depth];
    int n = snprintf(w->path + before, sizeof w->path - before, "%s%s", before ? "." : "", name);
    return n < 0 || (size_t)n >= sizeof w->path - before ? FIRN_EFORMAT : 0;
}

/* One value; what it opens is read by the caller's loop. */
static int walk_value(struct walk *w)
{
    struct json_reader *j = &w->j;
    enum json_type type = json_next(j);
    const char *from = j->p;
    if (type == JSON_OBJECT || type == JSON_ARRAY) {
        int r = enter(j, type == JSON_OBJECT);
        if (r == 0) {
            w->path_len[j->depth] = strlen(w->path);
            w->index[j->depth] = 0;
        }
        return r;
    }
    if (type == JSON_STRING) {
        int r = json_string(j, w->text, sizeof w->text, NULL);
        if (r == 0)
            w->each(w->user, w->path, w->text, true);
        return r;
    }
    int r = skip_one(j);
    size_t len = (size_t)(j->p - from);
    if (r || len >= sizeof w->text)
        return FIRN_EFORMAT;
    memcpy(w->text, from, len);
    w->text[len] = '\0';
    w->each(w->user, w->path, w->text, false);
    return 0;
}

int json_each(const char *p, size_t len, json_each_fn *each, void *user)
{
    struct walk w = { .each = each, .user = user };
    struct json_reader *j = &w.j;
    json_start(j, p, len, NULL);
    int r = walk_value(&w);
    while (r == 0 && j->depth > 0) {
        bool object = (j->objects >> (j->depth - 1) & 1) != 0;
        char index[16];
        if (object)
            r = json_member(j, w.text, sizeof w.text);
        else if ((r = json_element(j)) > 0)
            snprintf(index, sizeof index, "%u", w.index[j->depth]++);
        if (r > 0)
            r = walk_path(&w, object ? w.text : index);
        else if (r == 0)
            continue;
        if (r == 0)
            r = walk_value(&w);
    }
    return r == 0 && json_finish(j) == 0 ? 0 : FIRN_EFORMAT;
}
