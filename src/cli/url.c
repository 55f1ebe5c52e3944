#include "cli/url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool port_ok(const char *p, size_t len)
{
    unsigned n = 0;
    if (len == 0 || len > 5)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        n = 10 * n + (unsigned)(p[i] - '0');
    }
    return n > 0 && n <= 65535;
}

static bool host_char(char c, bool v6)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           (v6 ? c == ':' : c == '-' || c == '_');
}

/* host[:port] of `len` bytes. */
static const char *authority(const char *p, size_t len, const char *port, struct url *out)
{
    bool v6 = len > 0 && p[0] == '[';
    const char *host = p + v6, *end = v6 ? memchr(p, ']', len) : memchr(p, ':', len);
    if (v6 && !end)
        return "the IPv6 address has no closing ]";
    size_t host_len = end ? (size_t)(end - host) : len;
    const char *rest = host + host_len + v6;
    size_t rest_len = len - (size_t)(rest - p);
    if (host_len == 0)
        return "the host is missing";
    if (host_len > URL_HOST_MAX)
        return "the host is too long";
    for (size_t i = 0; i < host_len; i++)
        if (!host_char(host[i], v6))
            return "the host has a character that hosts do not have";
    size_t port_len = port ? strlen(port) : 0;
    if (rest_len > 0) {
        if (rest[0] != ':' || !port_ok(rest + 1, rest_len - 1))
            return "the port must be a number from 1 to 65535";
        port = rest + 1;
        port_len = rest_len - 1;
    } else if (!port) {
        return "the port is missing: write host:port";
    }
    memcpy(out->host, host, host_len);
    out->host[host_len] = '\0';
    memcpy(out->port, port, port_len);
    out->port[port_len] = '\0';
    snprintf(out->authority, sizeof out->authority, v6 ? "[%s]:%s" : "%s:%s", out->host, out->port);
    return NULL;
}

const char *url_parse(const char *text, struct url *out)
{
    static const char scheme[] = "http://";
    struct url u = { .target = "/" };
    if (strncmp(text, "https://", 8) == 0)
        return "https is not spoken here: give an http:// address";
    if (strncmp(text, scheme, sizeof scheme - 1) != 0)
        return "it must begin with http://";
    text += sizeof scheme - 1;
    size_t len = strcspn(text, "/?#");
    const char *wrong = authority(text, len, "80", &u), *target = text + len;
    if (wrong)
        return wrong;
    size_t target_len = strlen(target), slash = target[0] == '?'; /* http://host?n=1 */
    if (target_len + slash > URL_TARGET_MAX)
        return "the path is too long";
    for (size_t i = 0; i < target_len; i++)
        if (target[i] <= ' ' || target[i] > '~' || target[i] == '#')
            return "the path has a blank, a # or a character that must be percent-encoded";
    if (target_len > 0)
        memcpy(u.target + slash, target, target_len + 1);
    *out = u;
    return NULL;
}

const char *url_parse_address(const char *text, struct url *out)
{
    struct url u = { .target = "" };
    const char *wrong = authority(text, strlen(text), NULL, &u);
    if (!wrong)
        *out = u;
    return wrong;
}
