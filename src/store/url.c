#include "store/url.h"
#include "id/diag.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Copy with escapes decoded; false: too long, a broken escape, or a NUL inside. */
static bool decode(const char *p, size_t len, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        char c = p[i];
        if (c == '%') {
            int a = i + 1 < len ? hex(p[i + 1]) : -1, b = i + 2 < len ? hex(p[i + 2]) : -1;
            if (a < 0 || b < 0 || (a == 0 && b == 0))
                return false;
            c = (char)(a << 4 | b);
            i += 2;
        }
        if (n + 1 >= size)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

static int bad(struct firn_diag *d, const char *text, const char *at, const char *what)
{
    return firn__diag(d, FIRN_EFORMAT, (size_t)(at - text) + 1, "the store's URL has %s", what);
}

static bool parse_port(const char *p, size_t len, uint16_t *out)
{
    unsigned v = 0;
    for (size_t i = 0; i < len; i++) {
        if (p[i] < '0' || p[i] > '9' || (v = v * 10 + (unsigned)(p[i] - '0')) > 65535)
            return false;
    }
    *out = (uint16_t)v;
    return len > 0 && v > 0;
}

/* host, host:port, [::1] or [::1]:port */
static const char *parse_host(struct store_url *u, const char *p, size_t len, uint16_t default_port)
{
    if (u->host_n == STORE_HOSTS_MAX)
        return "too many hosts";
    const char *name = p, *end = p + len, *colon;
    size_t name_len;
    if (len > 0 && *p == '[') {
        const char *close = memchr(p, ']', len);
        if (!close)
            return "an address without its closing bracket";
        name = p + 1;
        name_len = (size_t)(close - name);
        colon = close + 1;
        if (colon < end && *colon != ':')
            return "something between an address and its port";
    } else {
        colon = memchr(p, ':', len);
        colon = colon ? colon : end;
        name_len = (size_t)(colon - p);
    }
    uint16_t port = default_port;
    if (colon < end && !parse_port(colon + 1, (size_t)(end - colon) - 1, &port))
        return "no port between 1 and 65535 behind a ':'";
    if (name_len == 0 || !decode(name, name_len, u->host[u->host_n].name, sizeof u->host[0].name))
        return "an empty or broken host name";
    u->host[u->host_n++].port = port;
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

static int parse_params(struct store_url *u, const char *text, const char *p, const char *params,
                        struct firn_diag *d)
{
    while (*p) {
        size_t len = strcspn(p, "&"), name = strcspn(p, "=&");
        if (u->param_n == STORE_PARAMS_MAX)
            return bad(d, text, p, "too many parameters");
        if (name == len || !decode(p, name, u->param[u->param_n].name, sizeof u->param[0].name) ||
            !decode(p + name + 1, len - name - 1, u->param[u->param_n].value,
                    sizeof u->param[0].value))
            return bad(d, text, p, "a parameter that is not name=value");
        if (!listed(params, u->param[u->param_n].name))
            return firn__diag(d, FIRN_EFORMAT, (size_t)(p - text) + 1,
                              "%s:// has no parameter '%s'; it takes: %s", u->scheme,
                              u->param[u->param_n].name, *params ? params : "none");
        u->param_n++;
        p += len + (p[len] == '&');
    }
    return 0;
}

int store_url_parse(const char *text, uint16_t default_port, const char *params,
                    struct store_url *out, struct firn_diag *d)
{
    struct store_url u = { .host_n = 0 };
    const char *p = strstr(text, "://");
    if (!p || !decode(text, (size_t)(p - text), u.scheme, sizeof u.scheme))
        return bad(d, text, text, "no scheme, as in etcd://host:2379");
    p += 3;
    const char *end = p + strcspn(p, "/?#"), *at = memrchr(p, '@', (size_t)(end - p));
    if (at) {
        const char *colon = memchr(p, ':', (size_t)(at - p));
        const char *user_end = colon ? colon : at;
        if (!decode(p, (size_t)(user_end - p), u.user, sizeof u.user) ||
            (colon && !decode(colon + 1, (size_t)(at - colon) - 1, u.password, sizeof u.password)))
            return bad(d, text, p, "a user or password that is too long or badly escaped");
        p = at + 1;
    }
    for (const char *host = p; host <= end;) {
        size_t len = 0;
        while (host + len < end && host[len] != ',')
            len++;
        const char *wrong = parse_host(&u, host, len, default_port);
        if (wrong)
            return bad(d, text, host, wrong);
        host += len + 1;
    }
    p = end;
    if (*p == '/') {
        size_t len = strcspn(++p, "?#");
        if (!decode(p, len, u.path, sizeof u.path))
            return bad(d, text, p, "a path that is too long or badly escaped");
        p += len;
    }
    if (*p == '#')
        return bad(d, text, p, "a '#': escape it as %23");
    int r = *p == '?' ? parse_params(&u, text, p + 1, params, d) : 0;
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
    const char *p = memmem(text, len, "://", 3), *at = NULL, *colon = NULL;
    if (p) {
        p += 3;
        size_t rest = (size_t)(text + len - p), n = strcspn(p, "/?#");
        at = memrchr(p, '@', n < rest ? n : rest);
        colon = at ? memchr(p, ':', (size_t)(at - p)) : NULL;
    }
    if (colon)
        snprintf(out, size, "%.*s:***%.*s", (int)(colon - text), text, (int)(text + len - at), at);
    else
        snprintf(out, size, "%.*s", (int)len, text);
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
