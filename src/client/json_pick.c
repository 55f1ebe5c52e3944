#include "client/parts.h"

#include <stdio.h>
#include <string.h>

const char *json_pick(const char *p, size_t len, const char *name, size_t *out_len)
{
    char quoted[64];
    const char *end = p + len;
    int n = snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = memmem(p, len, quoted, (size_t)n);
    if (!at)
        return NULL;
    at += n;
    bool text = at < end && *at == '"';
    at += text;
    const char *stop = at;
    while (stop < end && (text ? *stop != '"' : !strchr(",}] \n", *stop)))
        stop++;
    if (stop == end)
        return NULL;
    *out_len = (size_t)(stop - at);
    return at;
}

int json_pick_u64(const char *p, size_t len, const char *name, uint64_t *out)
{
    size_t n;
    const char *at = json_pick(p, len, name, &n);
    uint64_t v = 0;
    if (!at || n == 0)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < n; i++)
        if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, at[i] - '0', &v))
            return FIRN_EFORMAT;
    *out = v;
    return 0;
}
