/* The page that sent a request (origin.h). Tested in tests/unit/server/browser.c. */
#include "daemon/origin.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static bool same(struct slice s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.p, text, s.len) == 0;
}

static bool ends_with(struct slice s, const char *end)
{
    size_t n = strlen(end);
    return s.len >= n && strncasecmp(s.p + s.len - n, end, n) == 0;
}

struct slice origin_host_name(struct slice host)
{
    const char *colon = memrchr(host.p, ':', host.len);
    if (colon)
        host.len = (size_t)(colon - host.p);
    if (host.len > 1 && host.p[host.len - 1] == '.')
        host.len--;
    return host;
}

enum host_rank origin_host(struct slice host)
{
    if (host.len == 0 || host.p[0] == '[')
        return HOST_OWN; /* every browser sends Host; IPv6 is no name that could change */
    host = origin_host_name(host);
    bool number = true, dot = false;
    for (size_t i = 0; i < host.len; i++) {
        dot |= host.p[i] == '.';
        number &= host.p[i] == '.' || isdigit((unsigned char)host.p[i]);
    }
    if (number || same(host, "localhost") || ends_with(host, ".localhost"))
        return HOST_OWN;
    return dot ? HOST_FOREIGN : HOST_SHORT;
}

/* The scheme does not count: a proxy in front may speak TLS for us. */
static bool same_origin(struct slice origin, struct slice host)
{
    static const char *const schemes[] = { "http://", "https://" };
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(schemes[i]);
        if (origin.len > n && strncasecmp(origin.p, schemes[i], n) == 0)
            return host.len == origin.len - n && strncasecmp(origin.p + n, host.p, host.len) == 0;
    }
    return false; /* "null": a file, or a page in a sandbox */
}

bool origin_is_own(const struct http_request *req)
{
    struct slice site = req->fetch_site;
    return site.p          ? same(site, "same-origin") || same(site, "none")
           : req->origin.p ? same_origin(req->origin, req->host)
                           : true;
}
