/* Reads the http:// and https:// addresses that firn's own clients talk to. */
#include "cli/url.h"
#include "wire/url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool host_char(char c, bool v6)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           (v6 ? c == ':' : c == '-' || c == '_');
}

/* host[:port]; a `port` of 0: it must be given. */
static const char *authority(struct slice text, uint16_t port, struct url *out)
{
    struct host_port h;
    switch (host_port_read(text, &h)) {
    case HOST_OPEN_BRACKET:
        return "the IPv6 address has no closing ]";
    case HOST_AFTER_BRACKET:
    case HOST_BAD_PORT:
        return "the port must be a number from 1 to 65535";
    case HOST_EMPTY:
        return "the host is missing";
    case HOST_LONG:
        return "the host is too long";
    case HOST_COLONS:
    case HOST_OK:
        break;
    }
    for (const char *p = h.host; *p; p++)
        if (!host_char(*p, h.brackets))
            return "the host has an invalid character";
    if (h.has_port && h.port == 0)
        return "the port must be a number from 1 to 65535";
    if (!h.has_port && port == 0)
        return "the port is missing: write host:port";
    snprintf(out->host, sizeof out->host, "%s", h.host);
    snprintf(out->port, sizeof out->port, "%u", h.has_port ? h.port : port);
    snprintf(out->authority, sizeof out->authority, h.brackets ? "[%s]:%s" : "%s:%s", out->host,
             out->port);
    return NULL;
}

const char *url_parse(const char *text, struct url *out)
{
    struct url u = { .target = "/" };
    struct url_parts p;
    bool split = url_split((struct slice){ text, strlen(text) }, &p);
    u.https = split && slice_is(p.scheme, "https");
    if (!u.https && !(split && slice_is(p.scheme, "http")))
        return "it must begin with http:// or https://";
    if (p.user.p)
        return "the host has an invalid character";
    const char *wrong = authority(p.hosts, u.https ? 443 : 80, &u);
    if (wrong)
        return wrong;
    size_t slash = p.target.len > 0 && p.target.p[0] == '?'; /* http://host?n=1 */
    if (p.target.len + slash > URL_TARGET_MAX)
        return "the path is too long";
    for (size_t i = 0; i < p.target.len; i++)
        if (p.target.p[i] <= ' ' || p.target.p[i] > '~' || p.target.p[i] == '#')
            return "the path has a blank, a # or a character that must be percent-encoded";
    memcpy(u.target + slash, p.target.p, p.target.len); /* zeros follow */
    *out = u;
    return NULL;
}

const char *url_parse_address(const char *text, struct url *out)
{
    struct url u = { .target = "" };
    const char *wrong = authority((struct slice){ text, strlen(text) }, 0, &u);
    if (!wrong)
        *out = u;
    return wrong;
}
