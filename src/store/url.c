/* Reads the URL of a store into the parts that its engine needs. */
#include "store/url.h"
#include "id/diag.h"
#include "wire/url.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool decode(struct slice in, char *out, size_t size)
{
    return url_decode(in, false, out, size, NULL) == 0;
}

static int bad(struct firn_diag *d, const char *text, const char *at, const char *what)
{
    return firn__diag(d, FIRN_EFORMAT, (size_t)(at - text) + 1, "the store's URL has %s", what);
}

static const char *parse_host(struct store_url *u, struct slice text, uint16_t default_port)
{
    static const char *const trouble[] = {
        [HOST_OPEN_BRACKET] = "an address without its closing bracket",
        [HOST_AFTER_BRACKET] = "something between an address and its port",
        [HOST_BAD_PORT] = "no port between 1 and 65535 behind a ':'",
        [HOST_LONG] = "an empty or broken host name",
        [HOST_COLONS] = "an IPv6 address without brackets: write [::1]",
        [HOST_EMPTY] = "an empty or broken host name",
    };
    struct host_port h;
    if (u->host_n == STORE_HOSTS_MAX)
        return "too many hosts";
    enum host_error e = host_port_read(text, &h);
    if (e != HOST_OK)
        return trouble[e];
    if (h.has_port && h.port == 0)
        return trouble[HOST_BAD_PORT];
    if (!decode((struct slice){ h.host, strlen(h.host) }, u->host[u->host_n].name,
                sizeof u->host[0].name))
        return trouble[HOST_EMPTY];
    u->host[u->host_n++].port = h.has_port ? h.port : default_port;
    return NULL;
}

/* Whether `word` is one of the space-separated names. */
static bool listed(const char *names, const char *word)
{
    size_t len = strlen(word);
    for (const char *p = names; *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (n == len && memcmp(p, word, n) == 0)
            return true;
        p += n;
    }
    return false;
}

static int parse_params(struct store_url *u, const char *text, struct slice query,
                        const char *params, struct firn_diag *d)
{
    struct slice name, value;
    while (url_query_next(&query, &name, &value)) {
        if (u->param_n == STORE_PARAMS_MAX)
            return bad(d, text, name.p, "too many parameters");
        if (!value.p || !decode(name, u->param[u->param_n].name, sizeof u->param[0].name) ||
            !decode(value, u->param[u->param_n].value, sizeof u->param[0].value))
            return bad(d, text, name.p, "a parameter that is not name=value");
        if (!listed(params, u->param[u->param_n].name))
            return firn__diag(d, FIRN_EFORMAT, (size_t)(name.p - text) + 1,
                              "%s:// has no parameter '%s'; it takes: %s", u->scheme,
                              u->param[u->param_n].name, *params ? params : "none");
        u->param_n++;
    }
    return 0;
}

int store_url_parse(const char *text, uint16_t default_port, const char *params,
                    struct store_url *out, struct firn_diag *d)
{
    struct store_url u = { .host_n = 0 };
    struct url_parts p;
    struct slice host;
    if (!url_split((struct slice){ text, strlen(text) }, &p) ||
        !decode(p.scheme, u.scheme, sizeof u.scheme))
        return bad(d, text, text, "no scheme, as in etcd://host:2379");
    if (!decode(p.user, u.user, sizeof u.user) ||
        !decode(p.password, u.password, sizeof u.password))
        return bad(d, text, p.user.p, "a user or password that is too long or badly escaped");
    while (url_host_next(&p.hosts, &host)) {
        const char *wrong = parse_host(&u, host, default_port);
        if (wrong)
            return bad(d, text, host.p, wrong);
    }
    if (!decode(p.path, u.path, sizeof u.path))
        return bad(d, text, p.path.p, "a path that is too long or badly escaped");
    const char *behind = p.path.p ? p.path.p + p.path.len : p.target.p;
    if (*behind == '#')
        return bad(d, text, behind, "a '#': escape it as %23");
    int r = parse_params(&u, text, p.query, params, d);
    if (r == 0)
        *out = u;
    return r;
}

const char *store_url_param(const struct store_url *u, const char *name)
{
    for (size_t i = 0; i < u->param_n; i++)
        if (strcmp(u->param[i].name, name) == 0)
            return u->param[i].value;
    return NULL;
}

static void redact_one(const char *text, size_t len, char *out, size_t size)
{
    struct url_parts p;
    if (url_split((struct slice){ text, len }, &p) && p.password.p) {
        const char *at = p.password.p + p.password.len;
        snprintf(out, size, "%.*s***%.*s", (int)(p.password.p - text), text, (int)(text + len - at),
                 at);
    } else {
        snprintf(out, size, "%.*s", (int)len, text);
    }
}

void store_url_redact(const char *text, char *out, size_t size)
{
    bool many = strncmp(text, "quorum:", 7) == 0;
    for (size_t used = 0; used < size;) {
        size_t len = many ? strcspn(text, "|") : strlen(text);
        redact_one(text, len, out + used, size - used);
        used += strlen(out + used);
        text += len;
        if (*text == '\0' || used + 1 >= size)
            return;
        out[used++] = *text++;
        out[used] = '\0';
    }
}
