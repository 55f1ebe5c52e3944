/*
 * Requests of web pages. The rule for a request that changes something is that of Sec-Fetch-Site
 * where the browser sends it, else that of Origin: the same origin passes, any other must be in
 * http.origins. The ports of one machine are one site but different origins, so "same-site" is
 * foreign, too: any program may have a page on localhost.
 */
#include "server/browser.h"
#include "id/diag.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char browser_preflight[] =
    "Access-Control-Allow-Methods: GET, HEAD, POST, DELETE\r\n"
    "Access-Control-Allow-Headers: Authorization, Content-Type, Idempotency-Key, *\r\n"
    "Access-Control-Allow-Private-Network: true\r\n"
    "Access-Control-Max-Age: 7200\r\n";

#define EXPOSE "Access-Control-Expose-Headers: *\r\n"

static bool add(struct config_strings *to, const char *text)
{
    char **grown = realloc(to->v, (to->n + 1) * sizeof *grown);
    if (!grown)
        return false;
    to->v = grown;
    to->v[to->n] = strdup(text);
    return to->v[to->n] && ++to->n;
}

static char *fields_for(const char *origin)
{
    char *fields;
    bool any = strcmp(origin, "*") == 0;
    int n = asprintf(&fields, "Access-Control-Allow-Origin: %s\r\n%s" EXPOSE, origin,
                     any ? "" : "Vary: Origin\r\n");
    return n < 0 ? NULL : fields;
}

int browser_init(struct browser *b, const char *own, const struct config_strings *hosts,
                 const struct config_strings *origins)
{
    *b = (struct browser){ .everywhere = hosts->n > 0 };
    bool ok = !own[0] || add(&b->hosts, own);
    for (size_t i = 0; i < hosts->n; i++)
        ok = ok && add(&b->hosts, hosts->v[i]);
    b->fields = calloc(origins->n + 1, sizeof *b->fields);
    for (size_t i = 0; i < origins->n && ok; i++)
        ok = b->fields && add(&b->origins, origins->v[i]) &&
             (b->fields[i] = fields_for(origins->v[i]));
    return ok && b->fields ? 0 : FIRN_ENOMEM;
}

void browser_done(struct browser *b)
{
    for (size_t i = 0; b->fields && i < b->origins.n; i++)
        free(b->fields[i]);
    free(b->fields);
    config_strings_free(&b->origins);
    config_strings_free(&b->hosts);
    *b = (struct browser){ 0 };
}

static bool same(struct slice s, const char *text)
{
    return s.len == strlen(text) && strncasecmp(s.p, text, s.len) == 0;
}

enum host_rank browser_host(const struct browser *b, struct slice host)
{
    enum host_rank rank = origin_host(host);
    for (size_t i = 0; rank != HOST_OWN && i < b->hosts.n; i++)
        if (same(origin_host_name(host), b->hosts.v[i]))
            return HOST_OWN;
    return rank;
}

const char *browser_allowed(const struct browser *b, struct slice origin)
{
    for (size_t i = 0; origin.p && i < b->origins.n; i++)
        if (strcmp(b->origins.v[i], "*") == 0 || same(origin, b->origins.v[i]))
            return b->fields[i];
    return NULL;
}

const char *browser_others(const struct browser *b)
{
    return b->origins.n > 0 ? "Vary: Origin\r\n" : NULL;
}

bool browser_foreign(const struct browser *b, const struct http_request *req)
{
    return !origin_is_own(req) && !browser_allowed(b, req->origin);
}

int browser_check_host(const char *value, struct firn_diag *why)
{
    char shown[CONFIG_SHOWN_BUF];
    size_t n = strlen(value);
    bool ok = n > 0 && n <= 253 && value[0] != '.' && value[n - 1] != '.';
    for (size_t i = 0; i < n; i++)
        ok &= isalnum((unsigned char)value[i]) || strchr("-_.", value[i]);
    return ok ? 0
              : firn__diag(why, FIRN_EFORMAT, 0,
                           "'%s' is no host name; give it without scheme and port, as in "
                           "ids.example.com",
                           config_shown(value, shown));
}

int browser_check_origin(const char *value, struct firn_diag *why)
{
    char shown[CONFIG_SHOWN_BUF];
    const char *host = strstr(value, "://");
    bool ok = host && host > value && host[3];
    for (const char *p = host ? host + 3 : ""; *p; p++)
        ok &= isalnum((unsigned char)*p) || strchr("-_.:[]", *p);
    for (const char *p = value; host && p < host; p++)
        ok &= isalnum((unsigned char)*p) || strchr("+-.", *p);
    return ok || strcmp(value, "*") == 0
               ? 0
               : firn__diag(why, FIRN_EFORMAT, 0,
                            "'%s' is no origin; give scheme, host and port as the browser does, as "
                            "in https://app.example.com or http://localhost:3000, or '*' for all",
                            config_shown(value, shown));
}
