/*
 * Addresses and URLs. The parts of a URL lie in it, in order, and spell it again with what
 * separates them; an address that was read is read the same way when it is written again.
 */
#include "store/url.h"
#include "wire/url.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok)
{
    if (!ok)
        abort();
}

static void address(struct slice text)
{
    struct host_port h, again;
    char out[HOST_BYTES_MAX + 16];
    enum host_error e = host_port_read(text, &h);
    check(e != HOST_OK || h.host[0]);
    if (e != HOST_OK || memchr(text.p, 0, text.len))
        return;
    int n = snprintf(out, sizeof out, h.brackets ? "[%s]" : "%s", h.host);
    if (h.has_port)
        n += snprintf(out + n, sizeof out - (size_t)n, ":%u", h.port);
    check(host_port_read((struct slice){ out, (size_t)n }, &again) == HOST_OK);
    check(strcmp(h.host, again.host) == 0 && h.port == again.port);
    check(h.has_port == again.has_port && h.brackets == again.brackets);
    (void)host_is_loopback(h.host);
}

static void url(struct slice text)
{
    struct url_parts p;
    struct slice one, name, value;
    if (!url_split(text, &p))
        return;
    check(p.scheme.p == text.p && p.hosts.p + p.hosts.len == p.target.p);
    check(p.target.p + p.target.len == text.p + text.len);
    check(!p.password.p || p.user.p);
    size_t front = p.scheme.len + 3 + (p.user.p ? p.user.len + 1 : 0) +
                   (p.password.p ? p.password.len + 1 : 0);
    check(p.hosts.p == text.p + front);
    check(!p.path.p || p.path.p == p.target.p + 1);
    check(!p.query.p || p.query.p + p.query.len == text.p + text.len);
    for (size_t n = 0; url_host_next(&p.hosts, &one); n++)
        address(one);
    while (url_query_next(&p.query, &name, &value)) {
        char out[32];
        size_t len;
        check(name.len + value.len > 0 || value.p);
        if (url_decode(value, true, out, sizeof out, &len) == 0)
            check(len < sizeof out && strlen(out) == len && len <= value.len);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store_url u;
    struct host_port h;
    struct firn_diag d;
    char out[64];
    char *p = malloc(size + 1), *exact = malloc(size ? size : 1);
    check(p && exact);
    memcpy(p, data, size);
    memcpy(exact, data, size); /* so that ASan sees a read past the end */
    p[size] = '\0';
    address((struct slice){ exact, size });
    url((struct slice){ exact, size });
    if (store_url_parse(p, 2379, "tls ca", &u, &d) == 0)
        check(u.host_n > 0 && u.host_n <= STORE_HOSTS_MAX && u.param_n <= STORE_PARAMS_MAX);
    store_url_redact(p, out, sizeof out);
    check(strlen(out) < sizeof out);
    if (host_port_full(p, &h))
        check(h.host[0] && h.port > 0);
    free(p);
    free(exact);
    return 0;
}
