/* Plans: made from a configuration, shared, let go. Tested in tests/integration/gateway.py. */
#include "proxy/plan.h"
#include "id/diag.h"
#include "id/fnv.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

/* An IP address stays; a name becomes the first address that it has now. */
static int look_up(const char *address, char out[HOST_PORT_BUF], struct firn_diag *diag)
{
    struct host_port h;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
    char host[NI_MAXHOST];
    (void)host_port_read((struct slice){ address, strlen(address) }, &h); /* it was checked */
    int e = getaddrinfo(h.host, NULL, &hints, &list);
    if (e == 0)
        e = getnameinfo(list->ai_addr, list->ai_addrlen, host, sizeof host, NULL, 0,
                        NI_NUMERICHOST);
    if (list)
        freeaddrinfo(list);
    if (e)
        return firn__diag(diag, FIRN_EINVAL, 0, "services: '%.80s' cannot be looked up: %s",
                          address, gai_strerror(e));
    host_port_write(host, h.port, out);
    return 0;
}

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
                s->bad_in_a_row = was->bad_in_a_row;
                s->ejections = was->ejections;
                s->ejected_until_ms = was->ejected_until_ms;
                atomic_store(&b->server[i].requests, atomic_load(&old->server[k].requests));
                atomic_store(&b->server[i].errors, atomic_load(&old->server[k].errors));
            }
    pthread_mutex_unlock(lock);
}

static int make_backend(struct backend *b, const struct config_service *s, const struct plan *old,
                        struct firn_diag *diag)
{
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
    for (; b->n < s->servers.n && e == 0; b->n++) {
        struct server *to = &b->server[b->n];
        e = look_up(s->servers.v[b->n].address, to->address, diag);
        b->balance[b->n].turn.weight = s->servers.v[b->n].weight;
        b->balance[b->n].id = fnv(FNV_BEGIN, to->address, strlen(to->address));
    }
    if (e == 0 && s->tls) {
        struct tls_files files = { s->tls_cert, s->tls_key, s->tls_ca, "services: tls_" };
        e = tls_context_open(TLS_CLIENT, &files, &b->tls, diag);
    }
    const struct backend *was = backend_named(old, s->name);
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
    free(p->routes);
    free(p->route_backend);
    for (size_t i = 0; p->splits && i < p->config.routes.n; i++)
        split_free(p->splits[i]);
    free(p->splits);
    free(p->trust);
    redis_settings_free(&p->redis);
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

int plan_new(struct config *config, const struct plan *old, struct plan **out,
             struct firn_diag *diag)
{
    struct plan *p = calloc(1, sizeof *p);
    if (!p) {
        config_free(&config->base);
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    }
    p->config = *config;
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
        e = make_backend(&p->backends[i], &c->services.v[i], old, diag);
    for (size_t i = 0; e == 0 && i < c->trust.n; i++)
        e = ip_network_parse(c->trust.v[i], &p->trust[i]);
    if (e == 0)
        e = redis_settings_read(c, &p->redis, diag);
    for (size_t i = 0; e == 0 && i < c->routes.n; i++)
        e = bind_route(p, i, old, diag);
    for (size_t i = 0; e == 0 && i < c->compositions.n; i++)
        e = make_composition(p, i, diag);
    if (e) {
        plan_free(p);
        return e;
    }
    route_sort(c->routes.v, c->routes.n, p->routes);
    *out = p;
    return 0;
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
