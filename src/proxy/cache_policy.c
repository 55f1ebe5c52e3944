/*
 * The rules of RFC 9111 that a shared cache needs, read strictly: a directive that cannot be
 * understood forbids storing.
 */
#include "proxy/cache_policy.h"
#include "proxy/key.h"
#include "wire/http_line.h"

#include <string.h>
#include <strings.h>
#include <time.h>

const char *cache_outcome_name(enum cache_outcome o)
{
    static const char *const name[] = { "HIT", "MISS", "BYPASS" };
    return name[o];
}

const char *cache_route_wrong(const struct cache_route *r)
{
    if (!r->on)
        return NULL;
    if (r->mints)
        return "a route that hands out IDs cannot be cached: a cached ID is a duplicate ID";
    if (!r->name || !r->name[0])
        return "a cached route needs a name for its keys";
    if (r->ttl_s > CACHE_TTL_MAX_S || r->ttl_max_s > CACHE_TTL_MAX_S)
        return "a TTL may be at most 30 days";
    if (r->ignore_cache_control && r->ttl_s == 0)
        return "a route that ignores Cache-Control needs a TTL";
    return r->vary_n > CACHE_VARY_MAX ? "at most 8 headers may belong to a key" : NULL;
}

/* ---- directives ---- */

/* Takes what stands before the next comma outside quotes off *rest. */
static bool next_item(struct slice *rest, struct slice *item)
{
    size_t i = 0;
    bool quoted = false;
    if (!rest->p)
        return false;
    for (; i < rest->len && (quoted || rest->p[i] != ','); i++) {
        if (quoted && rest->p[i] == '\\' && i + 1 < rest->len)
            i++;
        else if (rest->p[i] == '"')
            quoted = !quoted;
    }
    *item = http_trim((struct slice){ rest->p, i });
    *rest = i < rest->len ? (struct slice){ rest->p + i + 1, rest->len - i - 1 }
                          : (struct slice){ NULL, 0 };
    return true;
}

struct directives {
    bool no_store, no_cache, private, only_if_cached;
    bool has_max_age, has_s_maxage, has_min_fresh, broken;
    uint64_t max_age, s_maxage, min_fresh;
};

/* Beyond 2^31 an age means "very long" (RFC 9111, 1.2.2). */
static void seconds(struct slice v, bool *has, uint64_t *out, bool *broken)
{
    uint64_t n = 0;
    if (v.len >= 2 && v.p[0] == '"' && v.p[v.len - 1] == '"')
        v = (struct slice){ v.p + 1, v.len - 2 };
    int r = http_u64(v, INT32_MAX, &n);
    if (r == FIRN_ERANGE)
        n = INT32_MAX;
    else if (r)
        *broken = true;
    if (*has && *out != n)
        *broken = true;
    *has = true;
    *out = n;
}

static struct directives directives_of(struct slice value)
{
    struct directives d = { .no_store = false };
    struct slice item;
    while (next_item(&value, &item)) {
        const char *eq = item.len ? memchr(item.p, '=', item.len) : NULL;
        struct slice name = { item.p, eq ? (size_t)(eq - item.p) : item.len };
        struct slice arg = { eq ? eq + 1 : "", eq ? item.len - name.len - 1 : 0 };
        d.no_store |= http_word_is(name, "no-store");
        /* with field names it is about those only; taken as if it were about all */
        d.no_cache |= http_word_is(name, "no-cache");
        d.private |= http_word_is(name, "private");
        d.only_if_cached |= http_word_is(name, "only-if-cached");
        if (http_word_is(name, "min-fresh"))
            seconds(arg, &d.has_min_fresh, &d.min_fresh, &d.broken);
        if (http_word_is(name, "max-age"))
            seconds(arg, &d.has_max_age, &d.max_age, &d.broken);
        if (http_word_is(name, "s-maxage"))
            seconds(arg, &d.has_s_maxage, &d.s_maxage, &d.broken);
    }
    return d;
}

/* ---- dates ---- */

static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

static bool number(const char *p, size_t n, int *out)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9')
            return false;
        v = v * 10 + (p[i] - '0');
    }
    *out = v;
    return true;
}

static bool month(const char *p, int *out)
{
    for (int i = 0; i < 12; i++)
        if (memcmp(p, months + 3 * i, 3) == 0) {
            *out = i;
            return true;
        }
    return false;
}

static bool clock_of(const char *p, struct tm *t)
{
    return number(p, 2, &t->tm_hour) && p[2] == ':' && number(p + 3, 2, &t->tm_min) &&
           p[5] == ':' && number(p + 6, 2, &t->tm_sec) && t->tm_hour < 24 && t->tm_min < 60 &&
           t->tm_sec < 61;
}

bool cache_date(struct slice s, int64_t *out_s)
{
    struct tm t = { 0 };
    const char *p = s.p, *comma = s.p ? memchr(s.p, ',', s.len) : NULL;
    bool good = false;
    if (s.len == 29 && comma == p + 3) { /* Sun, 06 Nov 1994 08:49:37 GMT */
        good = p[4] == ' ' && number(p + 5, 2, &t.tm_mday) && p[7] == ' ' &&
               month(p + 8, &t.tm_mon) && p[11] == ' ' && number(p + 12, 4, &t.tm_year) &&
               p[16] == ' ' && clock_of(p + 17, &t) && memcmp(p + 25, " GMT", 4) == 0;
    } else if (comma && s.len == (size_t)(comma - p) + 24) { /* Sunday, 06-Nov-94 08:49:37 GMT */
        p = comma;
        good = p[1] == ' ' && number(p + 2, 2, &t.tm_mday) && p[4] == '-' &&
               month(p + 5, &t.tm_mon) && p[8] == '-' && number(p + 9, 2, &t.tm_year) &&
               p[11] == ' ' && clock_of(p + 12, &t) && memcmp(p + 20, " GMT", 4) == 0;
        t.tm_year += t.tm_year < 70 ? 2000 : 1900;
    } else if (s.len == 24 && p[3] == ' ') { /* Sun Nov  6 08:49:37 1994 */
        good = month(p + 4, &t.tm_mon) && p[7] == ' ' &&
               (p[8] == ' ' ? number(p + 9, 1, &t.tm_mday) : number(p + 8, 2, &t.tm_mday)) &&
               p[10] == ' ' && clock_of(p + 11, &t) && p[19] == ' ' &&
               number(p + 20, 4, &t.tm_year);
    }
    if (!good || t.tm_mday < 1 || t.tm_mday > 31)
        return false;
    t.tm_year -= 1900;
    *out_s = timegm(&t);
    return true;
}

/* ---- decisions ---- */

static bool is_read(struct slice method)
{
    return slice_is(method, "GET") || slice_is(method, "HEAD");
}

enum cache_outcome cache_may_look(const struct cache_route *route, const struct cache_request *q)
{
    struct directives d = directives_of(q->cache_control);
    if (!route->on || route->mints || !is_read(q->method) || q->has_body || q->range.p ||
        q->upgrade.p || d.no_store || (q->authorization.p && !route->public_with_auth))
        return CACHE_BYPASS;
    if (route->ignore_cache_control)
        return CACHE_HIT;
    bool anew = d.no_cache || (d.has_max_age && d.max_age == 0) ||
                (!q->cache_control.p && q->pragma.p && http_word_is(q->pragma, "no-cache"));
    return anew ? CACHE_MISS : CACHE_HIT;
}

bool cache_may_use(const struct cache_route *route, const struct cache_request *q, uint64_t age_s,
                   uint64_t left_s)
{
    struct directives d = directives_of(q->cache_control);
    if (route->ignore_cache_control)
        return true;
    return (!d.has_max_age || age_s <= d.max_age) && (!d.has_min_fresh || left_s >= d.min_fresh);
}

bool cache_only(const struct cache_request *q)
{
    return directives_of(q->cache_control).only_if_cached;
}

/* Those whose answers say nothing about one request alone (RFC 9110, 15.1), but 206. */
static bool status_may(unsigned status)
{
    static const uint16_t may[] = { 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501 };
    for (size_t i = 0; i < sizeof may / sizeof may[0]; i++)
        if (may[i] == status)
            return true;
    return false;
}

/* Every header that Vary names is in the key. */
static bool vary_in_key(const struct cache_route *route, struct slice vary)
{
    struct slice item;
    while (next_item(&vary, &item)) {
        bool in = item.len == 0 || /* "a,,b" */
                  (route->plain && http_word_is(item, "accept-encoding"));
        for (size_t i = 0; i < route->vary_n; i++)
            in |= http_word_is(item, route->vary[i]);
        if (!in)
            return false;
    }
    return true;
}

/* How long it is fresh in all, and false if it does not say. */
static bool lifetime(const struct cache_answer *a, const struct directives *d, int64_t now_s,
                     int64_t *out)
{
    int64_t at, date;
    if (d->has_s_maxage || d->has_max_age) {
        *out = (int64_t)(d->has_s_maxage ? d->s_maxage : d->max_age);
        return true;
    }
    if (!a->expires.p)
        return false;
    if (!cache_date(a->expires, &at)) { /* "0": already past */
        *out = 0;
        return true;
    }
    *out = at - (cache_date(a->date, &date) ? date : now_s);
    return true;
}

/* How old it was when it arrived: what Age says, or what Date gives if that is more. */
static int64_t age_of(const struct cache_answer *a, int64_t now_s)
{
    uint64_t says = 0;
    int64_t date = now_s;
    if (a->age.p && http_u64(a->age, INT32_MAX, &says))
        says = INT32_MAX; /* not a number: too old to be of use */
    (void)cache_date(a->date, &date);
    int64_t apparent = now_s > date ? now_s - date : 0;
    return (int64_t)says > apparent ? (int64_t)says : apparent;
}

static const char *forbidden(const struct cache_route *route, const struct cache_request *q,
                             const struct cache_answer *a, const struct directives *d)
{
    if (cache_may_look(route, q) == CACHE_BYPASS)
        return "request";
    if (!slice_is(q->method, "GET"))
        return "method"; /* the answer to a HEAD has no body that a GET could get */
    if (!status_may(a->status) || a->content_range.p)
        return "status";
    if (a->set_cookie.p)
        return "set-cookie";
    if (d->no_store || d->private)
        return d->private ? "private" : "no-store";
    if (!vary_in_key(route, a->vary))
        return "vary";
    if (!route->ignore_cache_control && (d->no_cache || d->broken))
        return d->broken ? "cache-control" : "no-cache";
    if (!route->ignore_cache_control && !a->cache_control.p && a->pragma.p &&
        http_word_is(a->pragma, "no-cache"))
        return "pragma";
    return NULL;
}

uint32_t cache_may_store(const struct cache_route *route, const struct cache_request *q,
                         const struct cache_answer *a, int64_t now_s, const char **why)
{
    const struct directives d = directives_of(a->cache_control);
    const int64_t most = route->ttl_max_s ? route->ttl_max_s : CACHE_TTL_MAX_S;
    const char *no = forbidden(route, q, a, &d);
    int64_t fresh = 0;
    if (!no) {
        /* Not errors: one that a client brings about would be everybody's. */
        if (route->ignore_cache_control || !lifetime(a, &d, now_s, &fresh))
            fresh = a->status < 400 ? route->ttl_s : 0;
        else
            fresh -= age_of(a, now_s);
        if (fresh <= 0)
            no = "stale";
    }
    if (why)
        *why = no;
    if (no)
        return 0;
    return (uint32_t)(fresh < most ? fresh : most);
}

/* ---- the key ---- */

/* What follows the first segment if that is `name`; absent otherwise. */
static struct slice behind(struct slice path, const char *name)
{
    const size_t len = strlen(name) + 1;
    if (path.len < len || path.p[0] != '/' || memcmp(path.p + 1, name, len - 1) != 0 ||
        (path.len > len && path.p[len] != '/'))
        return (struct slice){ NULL, 0 };
    return (struct slice){ path.p + len, path.len - len };
}

/* '/', '*', '?', '=', '!' and ':' stand outside the encoded parts only, so each key is read back in
 * one way. */
void cache_key(struct buf *out, const struct cache_route *route, const struct cache_request *q)
{
    struct slice rest = behind(q->path, route->name);
    buf_add_str(out, "cache:");
    key_part(out, route->name, strlen(route->name));
    buf_add(out, ":", 1);
    if (!rest.p) {
        buf_add(out, "/", 1); /* a whole path */
        key_part(out, q->path.p, q->path.len);
    } else if (rest.len == 0) {
        buf_add(out, "*", 1); /* "/products" is not "/products/" */
    } else {
        key_part(out, rest.p + 1, rest.len - 1);
    }
    if (q->query.p) {
        buf_add(out, "?", 1);
        key_part(out, q->query.p, q->query.len);
    }
    for (size_t i = 0; i < route->vary_n; i++) {
        buf_add(out, ":", 1);
        key_part(out, route->vary[i], strlen(route->vary[i]));
        buf_add(out, q->vary[i].p ? "=" : "!", 1); /* empty is not absent */
        key_part(out, q->vary[i].p, q->vary[i].len);
    }
}
