/*
 * The links that look at the head of a request: id, route, transform. Tested in
 * tests/integration/gateway.py.
 */
#include "proxy/links.h"
#include "platform/mono.h"
#include "proxy/capture.h"
#include "proxy/client.h"
#include "proxy/path.h"
#include "proxy/worker.h"

#include <stdio.h>
#include <stdlib.h>

/* --- log --- */

void log_done(struct call *c)
{
    access_log(c);
    capture_free(c->capture);
    c->capture = NULL;
}

/* --- id --- */

static bool id_ok(struct slice id)
{
    for (size_t i = 0; i < id.len; i++)
        if (!http_is(id.p[i], HTTP_TOKEN) && id.p[i] != ':' && id.p[i] != '/' && id.p[i] != '=')
            return false;
    return id.len > 0 && id.len < CALL_ID_BUF;
}

enum link_result id_request(struct call *c)
{
    struct service_ctx *w = c->worker;
    client_find(c);
    const char *cert = edge_cert_name(c->q);
    if (cert)
        c->cert = call_copy(c, slice_of(cert));
    struct slice given = c->trusted ? http_head_value(c->head, "x-request-id")
                                    : (struct slice){ NULL, 0 };
    if (given.p && id_ok(given)) {
        memcpy(c->id, given.p, given.len);
        c->id[given.len] = '\0';
        return LINK_NEXT;
    }
    struct firn_ulid id;
    uint64_t ms = clock_read_ns(CLOCK_REALTIME) / 1000000;
    if (firn_ulid_next(&w->ulid, ms, firn_rng_thread(), &id) != 0 &&
        firn_ulid_make(ms, firn_rng_thread(), &id) != 0)
        memset(&id, 0, sizeof id); /* a clock beyond the year 10889 */
    firn_ulid_format(&id, c->id);
    return LINK_NEXT;
}

void id_answer(struct call *c, struct answer *a)
{
    fields_set(&a->fields, slice_of("X-Request-ID"), slice_of(c->id));
}

/* --- route --- */

static enum link_result refuse(struct call *c, unsigned status, const char *why)
{
    call_problem(c, status, why);
    return LINK_DONE;
}

static enum link_result refuse_method(struct call *c, const struct plan *p,
                                      const struct route_query *q)
{
    char allow[ROUTE_ALLOW_BUF], fields[ROUTE_ALLOW_BUF + sizeof "Allow: \r\n"];
    route_allow(p->routes, p->config.routes.n, q, allow);
    snprintf(fields, sizeof fields, "Allow: %s\r\n", allow);
    call_problem_with(c, 405, fields, "no route takes this method for this path");
    return LINK_DONE;
}

/* The path as the server gets it, and the query behind it. */
static bool make_target(struct call *c)
{
    const struct config_route *r = c->route;
    struct slice query = c->head->query;
    size_t to = r->rewrite ? strlen(r->rewrite) : 0, cap = c->path.len + to + 1, len = c->path.len;
    char *out = call_text(c, cap + (query.p ? 1 + query.len : 0));
    if (!out)
        return false;
    if (!r->rewrite)
        memcpy(out, c->path.p, len);
    else if (path_rewrite(c->path, slice_of(r->path), (struct slice){ r->rewrite, to }, out, cap,
                          &len) != 0)
        return false;
    if (query.p) {
        out[len++] = '?';
        memcpy(out + len, query.p, query.len);
        len += query.len;
    }
    c->target = (struct slice){ out, len };
    return true;
}

enum link_result route_request(struct call *c)
{
    const struct http_head *h = c->head;
    const struct plan *p = c->view->plan;
    const char *why = "the path cannot be read";
    bool method_is_wrong;
    size_t len;
    if (slice_is(h->path, "*"))
        return refuse(c, 400, "OPTIONS * is not passed on: ask for a path");
    if (!route_host_ok(h->host))
        return refuse(c, 400, "the host is no name or address, or its port is no number");
    char *path = call_text(c, h->path.len);
    if (!path || path_canonical(h->path, path, h->path.len, &len, &why) != 0)
        return refuse(c, path ? 400 : 503, path ? why : "the gateway is out of memory");
    c->path = (struct slice){ path, len };
    struct route_query q = { .host = h->host,
                             .path = c->path,
                             .method = h->method,
                             .headers = h->header,
                             .headers_n = h->headers };
    c->route = route_find(p->routes, p->config.routes.n, &q, &method_is_wrong);
    if (!c->route)
        return method_is_wrong ? refuse_method(c, p, &q)
                               : refuse(c, 404, "no route takes this host and path");
    size_t backend = p->route_backend[c->route - p->config.routes.v];
    if (backend != PLAN_NONE)
        c->backend = &p->backends[backend];
    c->rules = &p->rules[c->route - p->config.routes.v];
    return make_target(c) ? LINK_NEXT : refuse(c, 503, "the gateway is out of memory");
}

/* --- transform --- */

/* Fields in which servers believe the gateway. One that ends with a dash is all names that begin
 * with it. */
static bool is_claim(struct slice name, const char *claim, bool *exact)
{
    size_t n = strlen(claim);
    if (name.len < n || (name.len > n && claim[n - 1] != '-'))
        return false;
    name.len = n;
    *exact = http_word_is(name, claim);
    return *exact || field_alike(name, slice_of(claim));
}

/* A trusted proxy may tell about clients, but it may also pass on what it does not know: a name
 * that is only alike is nobody's. */
static void drop_claims(struct fields *f, bool trusted, const struct guards *g)
{
    static const char *const always[] = { "x-user-id", "host", "transfer-encoding",
                                          "content-length" };
    static const char *const others[] = { "x-forwarded-", "x-real-ip", "forwarded",
                                          "x-request-id" };
    size_t kept = 0;
    for (size_t i = 0; i < f->n; i++) {
        bool drop = false, exact;
        for (size_t k = 0; k < sizeof always / sizeof always[0]; k++)
            drop |= is_claim(f->v[i].name, always[k], &exact);
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            drop |= is_claim(f->v[i].name, others[k], &exact) && !(trusted && exact);
        for (size_t k = 0; k < g->claims_n; k++)
            drop |= is_claim(f->v[i].name, g->claim[k], &exact);
        if (!drop)
            f->v[kept++] = f->v[i];
    }
    f->n = kept;
}

static void change(struct fields *f, const struct config_strings *remove,
                   const struct config_fields *set, const struct config_fields *add)
{
    for (size_t i = 0; i < remove->n; i++)
        fields_remove(f, slice_of(remove->v[i]));
    for (size_t i = 0; i < set->n; i++)
        fields_set(f, slice_of(set->v[i].name), slice_of(set->v[i].value));
    for (size_t i = 0; i < add->n; i++)
        fields_add(f, slice_of(add->v[i].name), slice_of(add->v[i].value));
}

enum link_result transform_request(struct call *c)
{
    const struct http_head *h = c->head;
    fields_take(&c->request, h->header, h->headers, true);
    drop_claims(&c->request, c->trusted, c->view->plan->guards);
    client_tell(c);
    fields_set(&c->request, slice_of("X-Request-ID"), slice_of(c->id));
    jwt_add_fields(c);
    change(&c->request, &c->route->request_remove, &c->route->request_set, &c->route->request_add);
    return LINK_NEXT;
}

void transform_answer(struct call *c, struct answer *a)
{
    change(&a->fields, &c->route->answer_remove, &c->route->answer_set, &c->route->answer_add);
}

/* What is removed or set in the head does not come back behind the body. */
static bool is_changed(const struct config_route *r, struct slice name)
{
    for (size_t i = 0; i < r->answer_remove.n; i++)
        if (field_alike(name, slice_of(r->answer_remove.v[i])))
            return true;
    for (size_t i = 0; i < r->answer_set.n; i++)
        if (field_alike(name, slice_of(r->answer_set.v[i].name)))
            return true;
    return false;
}

struct slice transform_trailers(const struct call *c, struct slice lines,
                                char to[HTTP_TRAILERS_BYTES_MAX])
{
    struct slice name, value;
    const char *why;
    size_t n = 0;
    firn_assert(lines.len <= HTTP_TRAILERS_BYTES_MAX, "len=%zu", lines.len);
    for (size_t at = 0; at < lines.len;) {
        const char *p = lines.p + at,
                   *next = http_field(p, lines.p + lines.len, &name, &value, &why);
        firn_assert(next, "trailers that were not checked");
        if (!c->route || !is_changed(c->route, name)) {
            memcpy(to + n, p, (size_t)(next - p));
            n += (size_t)(next - p);
        }
        at += (size_t)(next - p);
    }
    return (struct slice){ to, n };
}
