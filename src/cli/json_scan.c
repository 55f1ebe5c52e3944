#include "cli/json_scan.h"

#include <stdio.h>
#include <string.h>

struct scan {
    const char *p, *end;
    json_scan_fn *each;
    void *user;
    unsigned depth;
    size_t path_len;
    char path[JSON_SCAN_PATH_MAX + 1];
    char text[JSON_SCAN_TEXT_MAX + 1];
};

static bool value(struct scan *s);

static void blanks(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\r' || *s->p == '\t'))
        s->p++;
}

static bool mark(struct scan *s, char c)
{
    blanks(s);
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool code_unit(struct scan *s, unsigned *out)
{
    unsigned u = 0;
    if (s->end - s->p < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        int h = hex(*s->p++);
        if (h < 0)
            return false;
        u = u << 4 | (unsigned)h;
    }
    *out = u;
    return true;
}

/* \uXXXX, or two of them, as UTF-8 at `out`; 0: not allowed. */
static size_t unicode(struct scan *s, char out[4])
{
    unsigned u, low;
    if (!code_unit(s, &u) || (u >= 0xdc00 && u < 0xe000))
        return 0;
    if (u >= 0xd800 && u < 0xdc00) {
        if (s->end - s->p < 2 || s->p[0] != '\\' || s->p[1] != 'u')
            return 0;
        s->p += 2;
        if (!code_unit(s, &low) || low < 0xdc00 || low >= 0xe000)
            return 0;
        u = 0x10000 + ((u - 0xd800) << 10 | (low - 0xdc00));
    }
    if (u == 0)
        return 0; /* the callback's texts end with a NUL */
    if (u < 0x80) {
        out[0] = (char)u;
        return 1;
    }
    size_t n = u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, u >>= 6)
        out[i] = (char)(0x80 | (u & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xff) | u);
    return n;
}

/* A string into s->text. */
static bool string(struct scan *s)
{
    static const char escape[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    size_t n = 0;
    if (!mark(s, '"'))
        return false;
    while (s->p < s->end && *s->p != '"') {
        char c = *s->p++, more[4] = { c };
        size_t len = 1;
        if ((unsigned char)c < ' ')
            return false;
        if (c == '\\') {
            if (s->p == s->end)
                return false;
            c = *s->p++;
            const char *at = c ? strchr(escape, c) : NULL;
            if (at)
                more[0] = meaning[at - escape];
            else if (c != 'u' || (len = unicode(s, more)) == 0)
                return false;
        }
        if (n + len > JSON_SCAN_TEXT_MAX)
            return false;
        memcpy(s->text + n, more, len);
        n += len;
    }
    s->text[n] = '\0';
    return s->p < s->end && *s->p++ == '"';
}

static bool digits(struct scan *s)
{
    const char *from = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return s->p > from;
}

static bool number(struct scan *s)
{
    if (s->p < s->end && *s->p == '-')
        s->p++;
    const char *first = s->p;
    if (!digits(s) || (*first == '0' && s->p - first > 1))
        return false;
    if (s->p < s->end && *s->p == '.') {
        s->p++;
        if (!digits(s))
            return false;
    }
    if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
        s->p++;
        if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
            s->p++;
        return digits(s);
    }
    return true;
}

static bool word(struct scan *s)
{
    static const char *const words[] = { "true", "false", "null" };
    const char *from = s->p;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i], n) == 0) {
            s->p += n;
            s->each(s->user, s->path, words[i], false);
            return true;
        }
    }
    size_t len = number(s) ? (size_t)(s->p - from) : 0;
    if (len == 0 || len > JSON_SCAN_TEXT_MAX)
        return false;
    memcpy(s->text, from, len);
    s->text[len] = '\0';
    s->each(s->user, s->path, s->text, false);
    return true;
}

/* A step further down, and what is there. */
static bool below(struct scan *s, const char *name)
{
    size_t before = s->path_len;
    int n = snprintf(s->path + before, sizeof s->path - before, "%s%s", before ? "." : "", name);
    if (n < 0 || (size_t)n >= sizeof s->path - before)
        return false;
    s->path_len += (size_t)n;
    bool good = value(s);
    s->path_len = before;
    s->path[before] = '\0';
    return good;
}

static bool object(struct scan *s)
{
    if (mark(s, '}'))
        return true;
    do {
        if (!string(s) || !mark(s, ':') || !below(s, s->text))
            return false;
    } while (mark(s, ','));
    return mark(s, '}');
}

static bool array(struct scan *s)
{
    char name[24];
    unsigned i = 0;
    if (mark(s, ']'))
        return true;
    do {
        snprintf(name, sizeof name, "%u", i++);
        if (!below(s, name))
            return false;
    } while (mark(s, ','));
    return mark(s, ']');
}

static bool value(struct scan *s)
{
    blanks(s);
    if (s->p == s->end)
        return false;
    if (*s->p == '{' || *s->p == '[') {
        bool braces = *s->p++ == '{';
        if (++s->depth > JSON_SCAN_DEPTH_MAX || !(braces ? object(s) : array(s)))
            return false;
        s->depth--;
        return true;
    }
    if (*s->p != '"')
        return word(s);
    if (!string(s))
        return false;
    s->each(s->user, s->path, s->text, true);
    return true;
}

int json_scan(const char *p, size_t len, json_scan_fn *each, void *user)
{
    struct scan s = { .p = p, .end = p + len, .each = each, .user = user };
    if (!value(&s))
        return FIRN_EFORMAT;
    blanks(&s);
    return s.p == s.end ? 0 : FIRN_EFORMAT;
}
