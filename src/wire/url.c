/*
 * Addresses, URLs and percent-encoding. Parts are split first and decoded afterwards, so an encoded
 * '/', ',' or '&' is data and never structure.
 */
#include "wire/url.h"
#include "id/hex.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

/* --- host:port --- */

static bool read_port(struct slice s, uint16_t *out)
{
    uint32_t v = 0;
    for (size_t i = 0; i < s.len; i++)
        if (s.p[i] < '0' || s.p[i] > '9' || (v = v * 10 + (uint32_t)(s.p[i] - '0')) > 65535)
            return false;
    *out = (uint16_t)v;
    return s.len > 0 && s.len <= 5; /* 00000000 is no port */
}

enum host_error host_port_read(struct slice text, struct host_port *out)
{
    const char *end = text.p + text.len, *host = text.p, *host_end, *colon;
    *out = (struct host_port){ .brackets = text.len > 0 && *text.p == '[' };
    if (out->brackets) {
        host++;
        host_end = memchr(text.p, ']', text.len);
        if (!host_end)
            return HOST_OPEN_BRACKET;
        colon = host_end + 1;
        if (colon < end && *colon != ':')
            return HOST_AFTER_BRACKET;
    } else {
        colon = text.len > 0 ? memrchr(text.p, ':', text.len) : NULL;
        colon = host_end = colon ? colon : end;
    }
    out->has_port = colon < end;
    if (out->has_port &&
        !read_port((struct slice){ colon + 1, (size_t)(end - colon) - 1 }, &out->port))
        return HOST_BAD_PORT;
    size_t len = (size_t)(host_end - host);
    if (len > HOST_BYTES_MAX)
        return HOST_LONG;
    if (len == 0 || memchr(host, '\0', len))
        return HOST_EMPTY;
    memcpy(out->host, host, len); /* the struct is zeroed: a NUL follows */
    return !out->brackets && memchr(host, ':', len) ? HOST_COLONS : HOST_OK;
}

bool host_port_full(const char *text, struct host_port *out)
{
    size_t len = strlen(text);
    enum host_error e = host_port_read((struct slice){ text, len }, out);
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
            return false;
    return (e == HOST_OK || e == HOST_COLONS) && out->port > 0 && len <= HOST_BYTES_MAX;
}

char *host_port_write(const char *host, uint16_t port, char out[HOST_PORT_BUF])
{
    snprintf(out, HOST_PORT_BUF, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
    return out;
}

bool host_is_loopback(const char *host)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(host, "::1") == 0 || strcasecmp(host, "localhost") == 0;
}

/* --- URLs --- */

static struct slice between(const char *from, const char *to)
{
    return (struct slice){ from, (size_t)(to - from) };
}

/* The first of `marks` in [p, end), or `end`. */
static const char *find_any(const char *p, const char *end, const char *marks)
{
    while (p < end && !(*p && strchr(marks, *p)))
        p++;
    return p;
}

bool url_split(struct slice text, struct url_parts *out)
{
    const char *end = text.p + text.len;
    const char *p = text.len > 0 ? memmem(text.p, text.len, "://", 3) : NULL;
    if (!p)
        return false;
    *out = (struct url_parts){ .scheme = between(text.p, p) };
    p += 3;
    const char *hosts_end = find_any(p, end, "/?#"), *at = memrchr(p, '@', (size_t)(hosts_end - p));
    if (at) {
        const char *colon = memchr(p, ':', (size_t)(at - p));
        out->user = between(p, colon ? colon : at);
        if (colon)
            out->password = between(colon + 1, at);
        p = at + 1;
    }
    out->hosts = between(p, hosts_end);
    out->target = between(hosts_end, end);
    p = hosts_end;
    if (p < end && *p == '/') {
        const char *path_end = find_any(p, end, "?#");
        out->path = between(p + 1, path_end);
        p = path_end;
    }
    if (p < end && *p == '?')
        out->query = between(p + 1, end);
    return true;
}

/* Takes what stands before the next `mark` off *rest; *rest becomes absent with the last one. */
static bool next_before(struct slice *rest, char mark, struct slice *part)
{
    if (!rest->p)
        return false;
    const char *end = rest->p + rest->len, *stop = memchr(rest->p, mark, rest->len);
    *part = between(rest->p, stop ? stop : end);
    *rest = stop ? between(stop + 1, end) : (struct slice){ NULL, 0 };
    return true;
}

bool url_host_next(struct slice *rest, struct slice *host)
{
    return next_before(rest, ',', host);
}

bool url_path_next(struct slice *rest, struct slice *segment)
{
    if (rest->len == 0 || rest->p[0] != '/')
        return false;
    const char *from = rest->p + 1, *end = rest->p + rest->len;
    const char *q = memchr(from, '/', (size_t)(end - from));
    if (!q)
        q = end;
    *segment = between(from, q);
    *rest = between(q, end);
    return true;
}

bool url_query_next(struct slice *rest, struct slice *name, struct slice *value)
{
    struct slice pair = { NULL, 0 };
    while (pair.len == 0)
        if (!next_before(rest, '&', &pair))
            return false;
    const char *eq = memchr(pair.p, '=', pair.len), *end = pair.p + pair.len;
    *name = between(pair.p, eq ? eq : end);
    *value = eq ? between(eq + 1, end) : (struct slice){ NULL, 0 };
    return true;
}

/* --- percent-encoding --- */

int url_decode(struct slice in, bool plus_is_space, char *out, size_t cap, size_t *out_len)
{
    size_t n = 0;
    for (size_t i = 0; i < in.len; i++, n++) {
        char c = in.p[i];
        if (c == '+' && plus_is_space)
            c = ' ';
        if (c == '%') {
            if (in.len - i < 3 || hex_digit(in.p[i + 1]) < 0 || hex_digit(in.p[i + 2]) < 0)
                return FIRN_EFORMAT;
            c = (char)(hex_digit(in.p[i + 1]) << 4 | hex_digit(in.p[i + 2]));
            i += 2;
        }
        if (c == 0)
            return FIRN_EFORMAT;
        if (n + 1 >= cap)
            return FIRN_ENOSPC;
        out[n] = c;
    }
    if (n >= cap)
        return FIRN_ENOSPC;
    out[n] = 0;
    if (out_len)
        *out_len = n;
    return 0;
}
