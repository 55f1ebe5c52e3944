/* Tokens of GraphQL. Tested in tests/unit/proxy/graphql/lexer.c. */
#include "proxy/graphql/lexer.h"
#include "id/hex.h"
#include "wire/utf8.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

int gql_blame(struct gql_errors *e, struct gql_place at, const char *fmt, ...)
{
    char text[256];
    va_list args;
    if (e->n == GQL_ERRORS_MAX)
        return -1;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct gql_error *n = arena_get(e->a, sizeof *n);
    struct slice kept = arena_copy(e->a, (struct slice){ text, strlen(text) });
    e->n++; /* counts also without memory: the document is not taken */
    if (!n || !kept.p)
        return -1;
    n->text = kept.p;
    n->place = at;
    if (e->last)
        e->last->next = n;
    else
        e->first = n;
    e->last = n;
    return -1;
}

bool gql_may_compare(struct gql_errors *e, size_t n, struct slice name, struct gql_place at)
{
    enum { BYTES = 64 }; /* of a name, that are compared in the time of a short one */
    if (e->compares > GQL_COMPARES_MAX)
        return false;
    e->compares += n * (1 + name.len / BYTES);
    if (e->compares > GQL_COMPARES_MAX)
        gql_blame(e, at,
                  "the document has too many names to compare: fewer members, arguments, "
                  "variables or operations are needed");
    return e->compares <= GQL_COMPARES_MAX;
}

const struct gql_value *gql_named(const struct gql_value *list, const char *name)
{
    while (list && !slice_is(list->name, name))
        list = list->next;
    return list;
}

void gql_lexer_init(struct gql_lexer *l, const char *p, size_t len, struct gql_errors *errors)
{
    *l = (struct gql_lexer){ p, p + len, p, 1, 0, errors };
}

static struct gql_place here(const struct gql_lexer *l)
{
    return (struct gql_place){ l->line, (unsigned)(l->p - l->line_start) + 1 };
}

static bool newline(struct gql_lexer *l)
{
    if (*l->p != '\n' && *l->p != '\r')
        return false;
    if (*l->p == '\r' && l->p + 1 < l->end && l->p[1] == '\n')
        l->p++;
    l->p++;
    l->line++;
    l->line_start = l->p;
    return true;
}

static void skip(struct gql_lexer *l)
{
    while (l->p < l->end) {
        if (newline(l))
            continue;
        if (*l->p == '#')
            while (l->p < l->end && *l->p != '\n' && *l->p != '\r')
                l->p++;
        else if (*l->p == ' ' || *l->p == '\t' || *l->p == ',')
            l->p++;
        else if (l->end - l->p >= 3 && memcmp(l->p, "\xef\xbb\xbf", 3) == 0)
            l->p += 3; /* a byte order mark */
        else
            return;
    }
}

static bool is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static size_t digits(struct gql_lexer *l)
{
    const char *from = l->p;
    while (l->p < l->end && isdigit((unsigned char)*l->p))
        l->p++;
    return (size_t)(l->p - from);
}

static bool at(const struct gql_lexer *l, char c)
{
    return l->p < l->end && *l->p == c;
}

static int number(struct gql_lexer *l, struct gql_token *t)
{
    const char *from = l->p;
    t->kind = GQL_TOKEN_INT;
    if (at(l, '-'))
        l->p++;
    const char *first = l->p;
    size_t n = digits(l);
    bool bad = n == 0 || (n > 1 && *first == '0');
    if (!bad && at(l, '.')) {
        l->p++;
        t->kind = GQL_TOKEN_FLOAT;
        bad = digits(l) == 0;
    }
    if (!bad && (at(l, 'e') || at(l, 'E'))) {
        l->p++;
        t->kind = GQL_TOKEN_FLOAT;
        if (at(l, '+') || at(l, '-'))
            l->p++;
        bad = digits(l) == 0;
    }
    if (bad || (l->p < l->end && (is_name(*l->p) || *l->p == '.')))
        return gql_blame(l->errors, t->place, "this is no number");
    t->text = (struct slice){ from, (size_t)(l->p - from) };
    return 0;
}

/* --- strings --- */

static int hex_of(struct gql_lexer *l, size_t n, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        int d = l->p < l->end ? hex_digit(*l->p) : -1;
        if (d < 0)
            return -1;
        *out = *out << 4 | (uint32_t)d;
        l->p++;
    }
    return 0;
}

/* Behind "\u": four digits, a pair of them, or {...}. */
static int code_point(struct gql_lexer *l, uint32_t *out)
{
    uint32_t low;
    if (at(l, '{')) {
        size_t n = 0;
        l->p++;
        while (l->p + n < l->end && hex_digit(l->p[n]) >= 0)
            n++;
        if (n == 0 || n > 8 || hex_of(l, n, out) != 0 || !at(l, '}'))
            return -1;
        l->p++;
        return *out < 0xd800 || (*out > 0xdfff && *out < 0x110000) ? 0 : -1;
    }
    if (hex_of(l, 4, out) != 0)
        return -1;
    if (*out < 0xd800 || *out > 0xdfff)
        return 0;
    if (*out > 0xdbff || l->end - l->p < 2 || l->p[0] != '\\' || l->p[1] != 'u')
        return -1;
    l->p += 2;
    if (hex_of(l, 4, &low) != 0 || low < 0xdc00 || low > 0xdfff)
        return -1;
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    return 0;
}

static int escape(struct gql_lexer *l, char *out, size_t *out_n)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    uint32_t point;
    l->p++;
    const char *hit = l->p < l->end && *l->p ? strchr(from, *l->p) : NULL;
    if (hit) {
        l->p++;
        out[0] = to[hit - from];
        *out_n = 1;
        return 0;
    }
    if (!at(l, 'u'))
        return -1;
    l->p++;
    if (code_point(l, &point) != 0 || point == 0)
        return -1;
    *out_n = utf8_put(point, out);
    return 0;
}

static int plain_string(struct gql_lexer *l, struct gql_token *t)
{
    const char *quote = ++l->p;
    while (quote < l->end && *quote != '"' && *quote != '\n' && *quote != '\r')
        quote += *quote == '\\' ? 2 : 1;
    size_t cap = quote < l->end ? (size_t)(quote - l->p) + 1 : 0, len = 0;
    char *out = arena_get(l->errors->a, cap + 1);
    if (cap == 0 || *quote != '"' || !out)
        return gql_blame(l->errors, t->place, "the string does not end");
    while (*l->p != '"') {
        size_t n = utf8_next(l->p, (size_t)(l->end - l->p));
        if (*l->p == '\\') {
            if (escape(l, out + len, &n) != 0)
                return gql_blame(l->errors, here(l), "there is no such escape");
            len += n;
            continue;
        }
        if (n == 0 || ((unsigned char)*l->p < 0x20 && *l->p != '\t'))
            return gql_blame(l->errors, here(l), "a string has no such character");
        memcpy(out + len, l->p, n);
        len += n;
        l->p += n;
    }
    l->p++;
    t->text = (struct slice){ out, len };
    return 0;
}

/* A line of a block string without its end; *next is where the next one begins, or NULL. */
static struct slice block_line(const char *p, const char *end, const char **next)
{
    const char *q = p;
    while (q < end && *q != '\n' && *q != '\r')
        q++;
    *next = q == end ? NULL : q + (*q == '\r' && q + 1 < end && q[1] == '\n' ? 2 : 1);
    return (struct slice){ p, (size_t)(q - p) };
}

static size_t indent_of(struct slice line)
{
    size_t n = 0;
    while (n < line.len && (line.p[n] == ' ' || line.p[n] == '\t'))
        n++;
    return n;
}

/* Takes the common indentation and the blank lines around it away (October 2021, 2.9.4). */
static size_t dedent(char *text, size_t len)
{
    size_t common = SIZE_MAX, out = 0, kept = 0;
    const char *next;
    bool first = true, begun = false;
    for (const char *p = text; p; p = next) {
        struct slice line = block_line(p, text + len, &next);
        size_t n = indent_of(line);
        if (!first && n < line.len && n < common)
            common = n;
        first = false;
    }
    first = true;
    for (const char *p = text; p; p = next) {
        struct slice line = block_line(p, text + len, &next);
        bool blank = indent_of(line) == line.len;
        size_t cut = first || common == SIZE_MAX ? 0 : common < line.len ? common : line.len;
        first = false;
        if (blank && !begun)
            continue;
        if (begun)
            text[out++] = '\n';
        begun = true;
        memmove(text + out, line.p + cut, line.len - cut);
        out += line.len - cut;
        if (!blank)
            kept = out;
    }
    return kept;
}

static int block_string(struct gql_lexer *l, struct gql_token *t)
{
    size_t len = 0;
    l->p += 3;
    const char *from = l->p;
    char *out = NULL;
    for (int pass = 0; pass < 2; pass++) { /* its length, then its text */
        const struct gql_lexer begin = *l;
        len = 0;
        for (;;) {
            size_t left = (size_t)(l->end - l->p), n = 1;
            if (left < 3)
                return gql_blame(l->errors, t->place, "the string does not end");
            if (memcmp(l->p, "\"\"\"", 3) == 0)
                break;
            const char *what = l->p;
            if (left >= 4 && memcmp(l->p, "\\\"\"\"", 4) == 0) {
                what++;
                n = 3;
                l->p += 4;
            } else if (newline(l)) {
                n = (size_t)(l->p - what);
            } else {
                n = utf8_next(what, left);
                if (n == 0 || ((unsigned char)*what < 0x20 && *what != '\t'))
                    return gql_blame(l->errors, here(l), "a string has no such character");
                l->p += n;
            }
            if (out)
                memcpy(out + len, what, n);
            len += n;
        }
        if (pass == 0) {
            *l = begin;
            l->p = from;
            out = arena_get(l->errors->a, len + 1);
            if (!out)
                return gql_blame(l->errors, t->place, "out of memory");
        }
    }
    l->p += 3;
    t->text = (struct slice){ out, dedent(out, len) };
    return 0;
}

int gql_lexer_next(struct gql_lexer *l, struct gql_token *t)
{
    skip(l);
    *t = (struct gql_token){ .kind = GQL_TOKEN_END, .place = here(l) };
    if (l->p >= l->end)
        return 0;
    if (++l->tokens > GQL_TOKENS_MAX)
        return gql_blame(l->errors, t->place, "the document has more than %d words",
                         GQL_TOKENS_MAX);
    size_t left = (size_t)(l->end - l->p);
    if (isalpha((unsigned char)*l->p) || *l->p == '_') {
        const char *from = l->p;
        while (l->p < l->end && is_name(*l->p))
            l->p++;
        t->kind = GQL_TOKEN_NAME;
        t->text = (struct slice){ from, (size_t)(l->p - from) };
        return 0;
    }
    if (isdigit((unsigned char)*l->p) || *l->p == '-')
        return number(l, t);
    if (*l->p == '"') {
        t->kind = GQL_TOKEN_STRING;
        return left >= 3 && memcmp(l->p, "\"\"\"", 3) == 0 ? block_string(l, t)
                                                           : plain_string(l, t);
    }
    size_t n = left >= 3 && memcmp(l->p, "...", 3) == 0 ? 3
                                                        : *l->p && strchr("!$&()=:@[]{|}", *l->p);
    if (n == 0)
        return gql_blame(l->errors, t->place, "there is no such character outside of strings");
    t->kind = GQL_TOKEN_PUNCTUATION;
    t->text = (struct slice){ l->p, n };
    l->p += n;
    return 0;
}
