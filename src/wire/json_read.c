#include "wire/json_read.h"
#include "wire/utf8.h"

#include <stdio.h>
#include <string.h>

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
    return fail_code(j, FIRN_EFORMAT, j->p == j->end ? "it ends too early" : why);
}

static void skip_space(struct json_reader *j)
{
    while (j->p < j->end && (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r'))
        j->p++;
}

static bool take(struct json_reader *j, char c)
{
    skip_space(j);
    if (j->p == j->end || *j->p != c)
        return false;
    j->p++;
    return true;
}

void json_start(struct json_reader *j, const char *p, size_t len, struct firn_diag *diag)
{
    *j = (struct json_reader){ .start = p, .p = p, .end = p + len, .diag = diag };
}

int json_object(struct json_reader *j)
{
    if (!take(j, '{'))
        return fail(j, "an object {...} is expected here");
    if (j->depth == JSON_DEPTH_MAX)
        return fail(j, "objects lie too deep in each other");
    j->fresh[j->depth++] = true;
    return 0;
}

/* Four hex digits behind \u. */
static int unit(struct json_reader *j, uint32_t *out)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++, j->p++) {
        if (j->p == j->end)
            return fail(j, "");
        char c = *j->p, low = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            v = v << 4 | (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            v = v << 4 | (uint32_t)(low - 'a' + 10);
        else
            return fail(j, "\\u needs four hex digits");
    }
    *out = v;
    return 0;
}

/* What \uXXXX, or a pair of them, stands for. */
static int code_point(struct json_reader *j, uint32_t *out)
{
    uint32_t high, low;
    int r = unit(j, &high);
    if (r)
        return r;
    *out = high;
    if (high == 0)
        return fail_code(j, FIRN_EFORMAT, "\\u0000 is not taken");
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

static size_t utf8_put(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[n] | c);
    return n;
}

/* The next character of a string, as UTF-8 bytes; 0 bytes at the closing quote. */
static int next_char(struct json_reader *j, char out[4], size_t *out_n)
{
    if (j->p == j->end)
        return fail(j, "");
    uint8_t c = (uint8_t)*j->p;
    if (c == '"') {
        j->p++;
        *out_n = 0;
        return 0;
    }
    if (c < 0x20)
        return fail(j, "a control character in a string must be written as an escape");
    if (c != '\\') {
        size_t n = utf8_next(j->p, (size_t)(j->end - j->p));
        if (n == 0)
            return fail(j, "the text is not UTF-8");
        memcpy(out, j->p, n);
        j->p += n;
        *out_n = n;
        return 0;
    }
    if (++j->p == j->end)
        return fail(j, "");
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    c = (uint8_t)*j->p;
    const char *hit = c ? strchr(from, c) : NULL;
    if (hit) {
        j->p++;
        out[0] = to[hit - from];
        *out_n = 1;
        return 0;
    }
    if (c != 'u')
        return fail(j, "no such escape");
    j->p++;
    uint32_t point;
    int r = code_point(j, &point);
    if (r == 0)
        *out_n = utf8_put(point, out);
    return r;
}

int json_string(struct json_reader *j, char *out, size_t cap, size_t *out_len)
{
    if (!take(j, '"'))
        return fail(j, "a string is expected here");
    size_t len = 0;
    for (;;) {
        char c[4];
        size_t n;
        int r = next_char(j, c, &n);
        if (r)
            return r;
        if (n == 0)
            break;
        if (len + n >= cap)
            return fail_code(j, FIRN_ENOSPC, "the string is too long");
        memcpy(out + len, c, n);
        len += n;
    }
    if (len >= cap)
        return fail_code(j, FIRN_ENOSPC, "the string is too long");
    out[len] = '\0';
    if (out_len)
        *out_len = len;
    return 0;
}

int json_member(struct json_reader *j, char *name, size_t cap)
{
    if (j->depth == 0)
        return FIRN_EINVAL;
    bool *fresh = &j->fresh[j->depth - 1];
    if (take(j, '}')) {
        j->depth--;
        return 0;
    }
    if (!*fresh && !take(j, ','))
        return fail(j, "a comma or } is expected here");
    *fresh = false;
    int r = json_string(j, name, cap, NULL);
    if (r)
        return r;
    return take(j, ':') ? 1 : fail(j, "a colon is expected here");
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

int json_finish(struct json_reader *j)
{
    skip_space(j);
    return j->p == j->end ? 0 : fail(j, "something follows the value");
}
