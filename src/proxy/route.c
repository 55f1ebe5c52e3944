/* The route of a request. */
#include "proxy/route.h"
#include "proxy/path.h"

#include <stdio.h>
#include <stdlib.h>

/* A host without its port and without the dot that a full name may end with. */
static struct slice bare_host(struct slice h)
{
    const char *end = h.len > 0 && h.p[0] == '[' ? memchr(h.p, ']', h.len) : NULL;
    if (end) {
        h.len = (size_t)(end + 1 - h.p);
    } else {
        const char *colon = h.len > 0 ? memchr(h.p, ':', h.len) : NULL;
        h.len = colon ? (size_t)(colon - h.p) : h.len;
    }
    if (h.len > 1 && h.p[h.len - 1] == '.')
        h.len--;
    return h;
}

static bool is_of_host(char c, bool address)
{
    bool digit = c >= '0' && c <= '9';
    char low = (char)(c | 0x20), last = address ? 'f' : 'z';
    return digit || (low >= 'a' && low <= last) || c == '.' ||
           (address ? c == ':' : c == '-' || c == '_');
}

bool route_host_ok(struct slice h)
{
    size_t i = 0;
    bool address = h.len > 0 && h.p[0] == '[';
    for (i = address; i < h.len && is_of_host(h.p[i], address); i++)
        continue;
    if (address && (i == h.len || h.p[i++] != ']'))
        return false;
    if (i < h.len && h.p[i++] != ':')
        return false;
    size_t port = i;
    while (i < h.len && h.p[i] >= '0' && h.p[i] <= '9')
        i++;
    return i == h.len && i - port <= 5;
}

/* `want` is lower case. */
static bool host_is(struct slice host, const char *want)
{
    size_t n = strlen(want);
    if (n > 2 && want[0] == '*') { /* "*.example.org" */
        if (host.len < n)
            return false;
        host = (struct slice){ host.p + host.len - (n - 1), n - 1 };
        want++;
    }
    return http_word_is(host, want);
}

static bool has_header(const struct route_query *q, const struct config_field *want)
{
    size_t n = strlen(want->name);
    for (size_t i = 0; i < q->headers_n; i++) {
        struct slice name = q->headers[i].name, value = q->headers[i].value;
        if (name.len == n && strncasecmp(name.p, want->name, n) == 0 &&
            (strcmp(want->value, "*") == 0 || slice_is(value, want->value)))
            return true;
    }
    return false;
}

static bool matches(const struct config_route *r, struct slice host, const struct route_query *q)
{
    bool ok = r->hosts.n == 0;
    for (size_t i = 0; i < r->hosts.n && !ok; i++)
        ok = host_is(host, r->hosts.v[i]);
    ok = ok && path_below(q->path, (struct slice){ r->path, strlen(r->path) });
    for (size_t i = 0; i < r->headers.n && ok; i++)
        ok = has_header(q, &r->headers.v[i]);
    return ok;
}

const struct config_route *route_find(const struct config_route *const *order, size_t n,
                                      const struct route_query *q, bool *method_is_wrong)
{
    struct slice host = bare_host(q->host);
    *method_is_wrong = false;
    for (size_t i = 0; i < n; i++) {
        const struct config_route *r = order[i];
        if (!matches(r, host, q))
            continue;
        bool ok = r->methods.n == 0;
        for (size_t k = 0; k < r->methods.n && !ok; k++)
            ok = slice_is(q->method, r->methods.v[k]);
        if (ok)
            return r;
        *method_is_wrong = true;
    }
    return NULL;
}

/* Whether a list like "GET, POST" has the method. */
static bool lists(const char *list, const char *method)
{
    for (const char *p = list; *p; p += strspn(p, ", ")) {
        size_t n = strcspn(p, ",");
        if (n == strlen(method) && memcmp(p, method, n) == 0)
            return true;
        p += n;
    }
    return false;
}

void route_allow(const struct config_route *const *order, size_t n, const struct route_query *q,
                 char out[ROUTE_ALLOW_BUF])
{
    size_t len = 0;
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        const struct config_route *r = order[i];
        for (size_t k = 0; k < r->methods.n && matches(r, bare_host(q->host), q); k++) {
            const char *method = r->methods.v[k];
            if (len + strlen(method) + 3 <= ROUTE_ALLOW_BUF && !lists(out, method))
                len += (size_t)snprintf(out + len, ROUTE_ALLOW_BUF - len, "%s%s", len ? ", " : "",
                                        method);
        }
    }
}

/* 2: an exact host, 1: a wildcard, 0: every host. */
static int host_rank(const struct config_route *r)
{
    int rank = r->hosts.n > 0 ? 2 : 0;
    for (size_t i = 0; i < r->hosts.n; i++)
        if (r->hosts.v[i][0] == '*')
            rank = 1;
    return rank;
}

static int compare(const void *a, const void *b)
{
    const struct config_route *x = *(const struct config_route *const *)a;
    const struct config_route *y = *(const struct config_route *const *)b;
    size_t px = strlen(x->path), py = strlen(y->path);
    if (host_rank(x) != host_rank(y))
        return host_rank(y) - host_rank(x);
    if (px != py)
        return px > py ? -1 : 1;
    if (x->headers.n != y->headers.n)
        return x->headers.n > y->headers.n ? -1 : 1;
    if ((x->methods.n > 0) != (y->methods.n > 0))
        return x->methods.n > 0 ? -1 : 1;
    return x < y ? -1 : x > y; /* both are in the configuration's array */
}

void route_sort(const struct config_route *routes, size_t n, const struct config_route **order)
{
    for (size_t i = 0; i < n; i++)
        order[i] = &routes[i];
    if (n > 1)
        qsort(order, n, sizeof *order, compare);
}
