/* Rules of routes, from their keys. Tested in tests/unit/proxy/config.c. */
#include "proxy/route_rules.h"
#include "proxy/fields.h"
#include "proxy/path.h"

#include <stdlib.h>

/* What firnd mints at (the table in src/server/http_routes.c), as prefixes of whole segments. */
static const char *const minting[] = { "/generate", "/v1/ids", "/v1/sequences", "/v1/leases" };
enum { MINTING = sizeof minting / sizeof minting[0] };

bool path_mints(struct slice path)
{
    for (size_t i = 0; i < MINTING; i++)
        if (path_below(path, slice_of(minting[i])))
            return true;
    return false;
}

/* Whether requests of the route are about minting: its prefix leads there or lies below. "/" leads
 * everywhere; there each request is looked at. */
static bool leads_to_minting(const struct config_route *r)
{
    const struct slice to = slice_of(r->rewrite ? r->rewrite : r->path);
    if (path_mints(to))
        return true;
    for (size_t i = 0; i < MINTING && to.len > 1; i++)
        if (path_below(slice_of(minting[i]), to))
            return true;
    return false;
}

static int make_cache(const struct config_route *r, struct route_rules *out, const char **key,
                      const char **why)
{
    struct cache_route *c = &out->cache;
    *key = "cache";
    if (r->cache_vary.n + r->cache_by_user > CACHE_VARY_MAX) {
        *key = "cache_vary";
        *why = "at most 8 headers may belong to a key";
        return FIRN_EFORMAT;
    }
    c->plain = true;
    for (size_t i = 0; i < r->cache_vary.n; i++) {
        out->vary[c->vary_n++] = r->cache_vary.v[i];
        c->plain &= strcmp(r->cache_vary.v[i], "accept-encoding") != 0;
    }
    if (r->cache_by_user)
        out->vary[c->vary_n++] = "x-user-id";
    c->vary = out->vary;
    c->on = r->cache != CONFIG_CACHE_OFF;
    c->name = r->cache_name ? r->cache_name : r->name;
    c->ttl_s = r->cache_ttl_s;
    c->ttl_max_s = r->cache_ttl_max_s;
    c->ignore_cache_control = r->cache_ignore_control;
    c->public_with_auth = r->cache_public || r->cache_by_user;
    c->mints = leads_to_minting(r);
    out->cache_redis = r->cache == CONFIG_CACHE_REDIS;
    out->cache_by_user = r->cache_by_user;
    if (c->on && !r->service && r->split.n == 0)
        *why = "answers of services can be cached, not composed ones";
    else if (r->cache_public && r->cache_by_user)
        *why = "cache_public shares answers between users, cache_by_user does not: keep one";
    else
        *why = cache_route_wrong(c);
    return *why ? FIRN_EFORMAT : 0;
}

static int make_json(const struct config_strings *rename, const struct config_strings *drop,
                     struct json_rules *out, const char **why)
{
    out->v = calloc(rename->n + drop->n + 1, sizeof *out->v);
    if (!out->v)
        return FIRN_ENOMEM;
    for (size_t i = 0; i < rename->n; i++) {
        const char *text = rename->v[i], *colon = strchr(text, ':');
        if (!colon) {
            *why = "write 'path.of.member: new_name'";
            return FIRN_EFORMAT;
        }
        char *copy = strdup(text);
        if (!copy)
            return FIRN_ENOMEM;
        char *to = copy + (colon - text);
        *to++ = '\0';
        to += strspn(to, " ");
        out->v[out->n++] = (struct json_map_rule){ copy, to };
        out->renames++;
    }
    for (size_t i = 0; i < drop->n; i++)
        out->v[out->n++] = (struct json_map_rule){ drop->v[i], NULL };
    *why = json_map_wrong(out->v, out->n);
    return *why ? FIRN_EFORMAT : 0;
}

static int make_fault(const struct config_route *r, struct route_rules *out, const char **why)
{
    struct fault_rule *f = &out->fault;
    f->delay_ms = r->fault_delay_ms;
    f->delay_share = r->fault_delay_percent * (FAULT_SHARE_ALL / 100);
    f->abort_status = (uint16_t)r->fault_abort_status;
    f->abort_share = r->fault_abort_percent * (FAULT_SHARE_ALL / 100);
    if (r->fault_header) {
        out->fault_header = strdup(r->fault_header);
        if (!out->fault_header)
            return FIRN_ENOMEM;
        char *colon = strchr(out->fault_header, ':');
        if (colon) {
            *colon++ = '\0';
            f->value = colon + strspn(colon, " ");
        }
        for (char *p = out->fault_header; *p; p++)
            *p = *p >= 'A' && *p <= 'Z' ? *p | 0x20 : *p;
        f->header = out->fault_header;
    }
    *why = fault_rule_wrong(f);
    return *why ? FIRN_EFORMAT : 0;
}

int route_rules_make(const struct config_route *r, struct route_rules *out, const char **key,
                     const char **why)
{
    *why = NULL;
    int e = make_cache(r, out, key, why);
    if (e)
        return e;
    *key = r->request_rename.n ? "request_rename" : "request_drop";
    if ((e = make_json(&r->request_rename, &r->request_drop, &out->request_json, why)))
        return e;
    *key = r->answer_rename.n ? "answer_rename" : "answer_drop";
    if ((e = make_json(&r->answer_rename, &r->answer_drop, &out->answer_json, why)))
        return e;
    *key = "fault_abort_status";
    return make_fault(r, out, why);
}

static void free_json(struct json_rules *j)
{
    for (size_t i = 0; i < j->renames; i++)
        free((char *)(uintptr_t)j->v[i].path);
    free(j->v);
}

void route_rules_free(struct route_rules *r)
{
    free_json(&r->request_json);
    free_json(&r->answer_json);
    free(r->fault_header);
}
