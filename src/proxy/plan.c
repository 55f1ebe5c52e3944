/* Plans: made from a configuration, shared, let go. Tested in tests/integration/gateway.py. */
#include "proxy/plan.h"
#include "id/diag.h"
#include "id/fnv.h"
#include "proxy/config_graphql.h"
#include "proxy/names.h"
#include "proxy/text_file.h"

#include <stdlib.h>
#include <string.h>

enum { TOKEN_BYTES_MIN = 16, TOKEN_BYTES_MAX = 1024 };

static const struct backend *backend_named(const struct plan *p, const char *name)
{
    for (size_t i = 0; p && i < p->config.services.n; i++)
        if (strcmp(p->config.services.v[i].name, name) == 0)
            return &p->backends[i];
    return NULL;
}

/* What is known about servers outlives a reload. */
static void inherit(struct backend *b, const struct backend *old)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&old->lock;
    pthread_mutex_lock(lock);
    b->breaker = old->breaker;
    b->budget.hundredths = old->budget.hundredths;
    atomic_store(&b->requests, atomic_load(&old->requests));
    atomic_store(&b->retries, atomic_load(&old->retries));
    atomic_store(&b->refused, atomic_load(&old->refused));
    atomic_store(&b->crowded, atomic_load(&old->crowded));
    for (size_t i = 0; i < b->n; i++)
        for (size_t k = 0; k < old->n; k++)
            if (strcmp(b->server[i].address, old->server[k].address) == 0) {
                struct balance_server *s = &b->balance[i];
                const struct balance_server *was = &old->balance[k];
                /* Without health checks nothing would say that it is up again. */
                s->down = was->down && b->conf->health_path;
                s->drained = was->drained;
                s->bad_in_a_row = was->bad_in_a_row;
                s->ejections = was->ejections;
                s->ejected_until_ms = was->ejected_until_ms;
                atomic_store(&b->server[i].requests, atomic_load(&old->server[k].requests));
                atomic_store(&b->server[i].errors, atomic_load(&old->server[k].errors));
            }
    pthread_mutex_unlock(lock);
}

struct making { /* of a plan */
    struct plan *plan;
    const struct plan *old;
    const struct lookups *looked_up; /* addresses that names have now; or NULL */
    struct firn_diag *diag;
};

/* The addresses that a name of a service has in a plan. */
static size_t known(const struct backend *b, const char *name, struct name_found *out)
{
    size_t i = 0;
    out->n = 0;
    while (b && i < b->n && strcmp(b->conf->servers.v[b->server[i].line].address, name) != 0)
        i++;
    for (size_t first = i; b && i < b->n && b->server[i].line == b->server[first].line; i++)
        memcpy(out->address[out->n++], b->server[i].address, HOST_PORT_BUF);
    return out->n;
}

/* An entry of `servers`, whose name may have several addresses. Only a name that is new is looked
 * up here: a reload must not wait for a name server. The others are looked up behind it. */
static int add_servers(const struct making *m, struct backend *b, const struct backend *was,
                       size_t line)
{
    const struct config_server *from = &b->conf->servers.v[line];
    const struct lookup *told = lookup_of(m->looked_up, from->address);
    struct name_found found;
    int e = 0;
    if (told && told->result == 0)
        found = told->found;
    else if (!known(was, from->address, &found))
        e = name_look_up(from->address, &found, m->diag);
    if (e)
        return e;
    for (size_t i = 0; i < found.n && b->n < CONFIG_SERVERS_MAX; i++, b->n++) {
        struct server *to = &b->server[b->n];
        memcpy(to->address, found.address[i], sizeof to->address);
        to->line = line;
        b->balance[b->n].turn.weight = from->weight;
        b->balance[b->n].id = fnv(FNV_BEGIN, to->address, strlen(to->address));
    }
    return 0;
}

static int make_backend(const struct making *p, struct backend *b, const struct config_service *s)
{
    struct firn_diag *diag = p->diag;
    int e = 0;
    b->conf = s;
    pthread_mutex_init(&b->lock, NULL);
    retry_budget_init(&b->budget, RETRY_PERCENT, RETRY_SAVED);
    b->breaker_rules = (struct breaker_rules)BREAKER_RULES_INIT;
    b->breaker_rules.consecutive = s->breaker_failures;
    b->breaker_rules.error_percent = s->breaker_percent;
    b->breaker_rules.open_ms = s->breaker_open_ms;
    if (b->breaker_rules.open_max_ms < s->breaker_open_ms)
        b->breaker_rules.open_max_ms = s->breaker_open_ms;
    b->outlier_rules = (struct outlier_rules)OUTLIER_RULES_INIT;
    b->outlier_rules.consecutive = s->eject_after;
    b->outlier_rules.base_ms = s->eject_ms;
    if (b->outlier_rules.max_ms < s->eject_ms)
        b->outlier_rules.max_ms = s->eject_ms;
    const struct backend *was = backend_named(p->old, s->name);
    for (size_t i = 0; i < s->servers.n && e == 0; i++)
        e = add_servers(p, b, was, i);
    if (e == 0 && s->tls) {
        struct tls_files files = { s->tls_cert, s->tls_key, s->tls_ca, "services: tls_" };
        e = tls_context_open(TLS_CLIENT, &files, &b->tls, diag);
    }
    if (e == 0 && was)
        inherit(b, was);
    return e;
}

/* Counters of a route go on under its name. */
static void inherit_counters(struct route_rules *to, const char *name, const struct plan *old)
{
    for (size_t i = 0; old && i < old->config.routes.n; i++) {
        struct route_rules *from = &old->rules[i];
        if (strcmp(old->config.routes.v[i].name, name) != 0)
            continue;
        for (size_t k = 0; k < sizeof to->cached / sizeof to->cached[0]; k++)
            atomic_store(&to->cached[k], atomic_load(&from->cached[k]));
        atomic_store(&to->delayed, atomic_load(&from->delayed));
        atomic_store(&to->aborted, atomic_load(&from->aborted));
    }
}

static int make_rules(struct plan *p, const struct plan *old)
{
    const char *key, *why; /* the configuration was checked with them */
    for (size_t i = 0; i < p->config.routes.n; i++) {
        int e = route_rules_make(&p->config.routes.v[i], &p->rules[i], &key, &why);
        if (e)
            return e;
        inherit_counters(&p->rules[i], p->config.routes.v[i].name, old);
    }
    return 0;
}

static void plan_free(struct plan *p)
{
    for (size_t i = 0; p->rules && i < p->config.routes.n; i++)
        route_rules_free(&p->rules[i]);
    free(p->rules);
    for (size_t i = 0; p->backends && i < p->config.services.n; i++) {
        tls_context_free(p->backends[i].tls);
        if (p->backends[i].conf)
            pthread_mutex_destroy(&p->backends[i].lock);
    }
    free(p->backends);
    for (size_t i = 0; p->compositions && i < p->config.compositions.n; i++)
        composition_free(&p->compositions[i]);
    free(p->compositions);
    gql_schema_free(&p->schema);
    free(p->routes);
    free(p->route_backend);
    for (size_t i = 0; p->splits && i < p->config.routes.n; i++)
        split_free(p->splits[i]);
    free(p->splits);
    free(p->trust);
    redis_settings_free(&p->redis);
    free(p->admin_token);
    guards_free(p->guards);
    if (p->origin)
        plan_unref(p->origin);
    else
        config_free(&p->config.base);
    free(p);
}

static size_t place_of(const struct plan *p, const char *service)
{
    return (size_t)(backend_named(p, service) - p->backends);
}

/* The backends of a route: its service, or those of its split, of which the first stands in until
 * one is chosen. */
static int bind_route(struct plan *p, size_t i, const struct plan *old, struct firn_diag *diag)
{
    const struct config_route *r = &p->config.routes.v[i];
    const struct split *was = NULL;
    const char *service = r->split.n > 0 ? r->split.v[0].service : r->service;
    p->route_backend[i] = service ? place_of(p, service) : PLAN_NONE;
    if (r->split.n == 0)
        return 0;
    for (size_t k = 0; old && k < old->config.routes.n; k++)
        if (strcmp(old->config.routes.v[k].name, r->name) == 0)
            was = old->splits[k];
    p->splits[i] = split_new(r, was);
    if (!p->splits[i])
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    for (size_t k = 0; k < r->split.n; k++)
        p->splits[i]->backend[k] = place_of(p, r->split.v[k].service);
    return 0;
}

/* What it needs was checked with the configuration. */
static int make_composition(struct plan *p, size_t i, struct firn_diag *diag)
{
    struct composition *c = &p->compositions[i];
    const char *key;
    int e = composition_make(&p->config.compositions.v[i], c, &key, diag);
    for (size_t k = 0; e == 0 && k < c->n; k++)
        c->part[k].backend = place_of(p, c->part[k].service);
    return e;
}

const struct composition *plan_composition(const struct plan *p, const struct config_route *r)
{
    size_t i = 0;
    while (strcmp(p->config.compositions.v[i].name, r->compose) != 0)
        i++;
    return &p->compositions[i];
}

int plan_token_read(const struct config *c, char **out, struct firn_diag *diag)
{
    size_t len;
    if (!c->admin.token_file)
        return 0;
    int e = text_file_read(c->admin.token_file, TOKEN_BYTES_MAX, out, &len, diag);
    if (e)
        return e;
    (*out)[strcspn(*out, "\r\n")] = '\0';
    return strlen(*out) >= TOKEN_BYTES_MIN
               ? 0
               : firn__diag(diag, FIRN_EINVAL, 0,
                            "admin.token_file: the first line of %.120s is too short; give at "
                            "least %d characters, as openssl rand -hex 16 does",
                            c->admin.token_file, TOKEN_BYTES_MIN);
}

/* Of p->config; on error p is gone. */
static int make(struct making *m, struct plan **out)
{
    struct plan *p = m->plan;
    const struct plan *old = m->old;
    struct firn_diag *diag = m->diag;
    struct config *c = &p->config;
    atomic_store(&p->refs, 1);
    p->number = old ? old->number + 1 : 1;
    p->backends = calloc(c->services.n + 1, sizeof *p->backends);
    p->routes = calloc(c->routes.n + 1, sizeof *p->routes);
    p->route_backend = calloc(c->routes.n + 1, sizeof *p->route_backend);
    p->splits = calloc(c->routes.n + 1, sizeof *p->splits);
    p->trust = calloc(c->trust.n + 1, sizeof *p->trust);
    p->compositions = calloc(c->compositions.n + 1, sizeof *p->compositions);
    p->rules = calloc(c->routes.n + 1, sizeof *p->rules);
    int e = p->backends && p->routes && p->route_backend && p->splits && p->trust &&
                    p->compositions && p->rules
                ? 0
                : FIRN_ENOMEM;
    if (e == 0)
        e = make_rules(p, old);
    for (size_t i = 0; e == 0 && i < c->services.n; i++)
        e = make_backend(m, &p->backends[i], &c->services.v[i]);
    for (size_t i = 0; e == 0 && i < c->trust.n; i++)
        e = ip_network_parse(c->trust.v[i], &p->trust[i]);
    if (e == 0)
        e = redis_settings_read(c, &p->redis, diag);
    for (size_t i = 0; e == 0 && i < c->routes.n; i++)
        e = bind_route(p, i, old, diag);
    for (size_t i = 0; e == 0 && i < c->compositions.n; i++)
        e = make_composition(p, i, diag);
    if (e == 0)
        e = plan_token_read(c, &p->admin_token, diag);
    if (e == 0)
        e = guards_new(c, old ? old->guards : NULL, &p->guards, diag);
    if (e == 0 && c->graphql.schema)
        e = config_schema(c, &p->schema, diag);
    if (e) {
        plan_free(p);
        return e;
    }
    route_sort(c->routes.v, c->routes.n, p->routes);
    *out = p;
    return 0;
}

int plan_new(struct config *config, const struct plan *old, struct plan **out,
             struct firn_diag *diag)
{
    struct making m = { .plan = calloc(1, sizeof *m.plan), .old = old, .diag = diag };
    if (!m.plan) {
        config_free(&config->base);
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    }
    m.plan->config = *config;
    return make(&m, out);
}

int plan_renew(struct plan *old, const struct lookups *found, struct plan **out,
               struct firn_diag *diag)
{
    struct making m = {
        .plan = calloc(1, sizeof *m.plan), .old = old, .looked_up = found, .diag = diag
    };
    if (!m.plan)
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    m.plan->config = old->config;
    m.plan->origin = plan_ref(old->origin ? old->origin : old);
    return make(&m, out);
}

bool plan_differs(const struct plan *p, const struct lookups *found)
{
    for (size_t i = 0; i < p->config.services.n; i++)
        for (size_t k = 0; k < p->config.services.v[i].servers.n; k++) {
            const char *name = p->config.services.v[i].servers.v[k].address;
            const struct lookup *l = lookup_of(found, name);
            struct name_found have;
            if (!l || l->result != 0)
                continue;
            size_t n = known(&p->backends[i], name, &have);
            bool full = p->backends[i].n == CONFIG_SERVERS_MAX;
            for (size_t a = 0; a < n && a < l->found.n; a++)
                if (strcmp(have.address[a], l->found.address[a]) != 0)
                    return true;
            if (n != l->found.n && !full)
                return true;
        }
    return false;
}

struct plan *plan_ref(struct plan *p)
{
    atomic_fetch_add(&p->refs, 1);
    return p;
}

void plan_unref(struct plan *p)
{
    if (p && atomic_fetch_sub(&p->refs, 1) == 1)
        plan_free(p);
}

bool plan_trusts(const struct plan *p, const struct sockaddr *sa)
{
    for (size_t i = 0; i < p->config.trust.n; i++)
        if (ip_network_has(&p->trust[i], sa))
            return true;
    return false;
}
