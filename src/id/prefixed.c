/* Business prefixes: ord_... splits at its first '_', because a prefix has none. */
#include "firn/prefixed.h"

#include <stdbool.h>
#include <string.h>

#include "id/diag.h"

static bool is_prefix_byte(char c, size_t at)
{
    return (c >= 'a' && c <= 'z') || (at > 0 && c >= '0' && c <= '9');
}

static bool is_visible(char c)
{
    return c > ' ' && c <= '~';
}

/* A byte as a message can show it: itself, or its number. */
static int refuse_byte(struct firn_diag *diag, char c, size_t column, const char *rule)
{
    if (is_visible(c) && c != '\'')
        return firn__diag(diag, FIRN_EFORMAT, column, "'%c' is not allowed here: %s", c, rule);
    return firn__diag(diag, FIRN_EFORMAT, column, "byte 0x%02x is not allowed here: %s",
                      (unsigned)(unsigned char)c, rule);
}

int firn_prefix_check(const char *prefix, size_t len, struct firn_diag *diag)
{
    if (!prefix)
        return FIRN_EINVAL;
    if (len == 0)
        return firn__diag(diag, FIRN_EFORMAT, 1, "the prefix is empty");
    for (size_t i = 0; i < len && i < FIRN_PREFIX_LEN_MAX; i++)
        if (!is_prefix_byte(prefix[i], i))
            return refuse_byte(diag, prefix[i], i + 1,
                               i == 0 ? "a prefix begins with a letter a-z"
                                      : "a prefix has only a-z and 0-9");
    if (len > FIRN_PREFIX_LEN_MAX)
        return firn__diag(diag, FIRN_EFORMAT, FIRN_PREFIX_LEN_MAX + 1,
                          "the prefix is longer than %d characters", FIRN_PREFIX_LEN_MAX);
    return 0;
}

/* `column` is where the rest begins in the text that the caller speaks of. */
static int rest_check(const char *rest, size_t len, size_t column, struct firn_diag *diag)
{
    if (len == 0)
        return firn__diag(diag, FIRN_EFORMAT, column, "nothing follows the prefix");
    for (size_t i = 0; i < len; i++)
        if (!is_visible(rest[i]))
            return refuse_byte(diag, rest[i], column + i, "an ID has visible ASCII only");
    return 0;
}

int firn_prefixed_split(const char *p, size_t len, struct firn_prefixed *out,
                        struct firn_diag *diag)
{
    if (!p || !out)
        return FIRN_EINVAL;
    /* Look no further than a prefix can reach: the message is about the prefix then. */
    size_t reach = len < FIRN_PREFIX_LEN_MAX + 1 ? len : FIRN_PREFIX_LEN_MAX + 1;
    const char *bar = reach ? memchr(p, '_', reach) : NULL;
    int r = firn_prefix_check(p, bar ? (size_t)(bar - p) : reach, diag);
    if (r != 0)
        return r;
    if (!bar)
        return firn__diag(diag, FIRN_EFORMAT, len + 1, "no '_' ends the prefix");

    struct firn_prefixed split = { p, (size_t)(bar - p), bar + 1, (size_t)(p + len - bar - 1) };
    r = rest_check(split.rest, split.rest_len, split.prefix_len + 2, diag);
    if (r != 0)
        return r;
    *out = split;
    return 0;
}

int firn_prefixed_strip(const char *p, size_t len, const char *prefix, size_t prefix_len,
                        const char **out_rest, size_t *out_rest_len, struct firn_diag *diag)
{
    if (!p || !out_rest || !out_rest_len || !prefix)
        return FIRN_EINVAL;
    if (firn_prefix_check(prefix, prefix_len, diag) != 0)
        return FIRN_EINVAL;

    struct firn_prefixed split;
    int r = firn_prefixed_split(p, len, &split, diag);
    if (r != 0)
        return r;
    if (split.prefix_len != prefix_len || memcmp(split.prefix, prefix, prefix_len) != 0)
        return firn__diag(diag, FIRN_EFORMAT, 1, "this is an ID of '%.*s', '%.*s' is expected",
                          (int)split.prefix_len, split.prefix, (int)prefix_len, prefix);
    *out_rest = split.rest;
    *out_rest_len = split.rest_len;
    return 0;
}

int firn_prefixed_join(const char *prefix, size_t prefix_len, const char *rest, size_t rest_len,
                       char *out, size_t cap, size_t *out_len, struct firn_diag *diag)
{
    if (!prefix || !rest || !out || !out_len)
        return FIRN_EINVAL;
    int r = firn_prefix_check(prefix, prefix_len, diag);
    if (r == 0)
        r = rest_check(rest, rest_len, 1, diag);
    if (r != 0)
        return r;
    size_t bar_and_nul = prefix_len + 2; /* a prefix is short: only rest_len could overflow */
    if (cap < bar_and_nul || cap - bar_and_nul < rest_len)
        return firn__diag(diag, FIRN_ENOSPC, 0, "the buffer has %zu bytes, %zu are needed", cap,
                          bar_and_nul + rest_len);

    memcpy(out, prefix, prefix_len);
    out[prefix_len] = '_';
    memcpy(out + prefix_len + 1, rest, rest_len);
    out[prefix_len + 1 + rest_len] = '\0';
    *out_len = prefix_len + 1 + rest_len;
    return 0;
}
