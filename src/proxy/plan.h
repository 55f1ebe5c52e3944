/*
 * plan.h - what a configuration becomes: sorted routes, services with the state of their servers.
 * One plan is in force; a reload makes the next one, and the old one lives on while requests that
 * began under it last. Plans are shared by all loops; the state of a service has a lock.
 */
#ifndef FIRN_PROXY_PLAN_H
#define FIRN_PROXY_PLAN_H

#include "net/upstream_address.h"
#include "proxy/balance.h"
#include "proxy/breaker.h"
#include "proxy/composition.h"
#include "proxy/config.h"
#include "proxy/graphql/schema.h"
#include "proxy/names.h"
#include "proxy/guards.h"
#include "proxy/network.h"
#include "proxy/redis_settings.h"
#include "proxy/retry_budget.h"
#include "proxy/route.h"
#include "proxy/split.h"
#include "proxy/route_rules.h"
#include "wire/tls_context.h"
#include "wire/url.h"

#include <pthread.h>
#include <stdatomic.h>

struct server {                        /* beside its struct balance_server */
    char address[HOST_PORT_BUF];       /* an IP address and port, or unix:/path */
    _Atomic uint64_t requests, errors; /* exchanges that were begun, and that failed or gave 5xx */
    size_t line;              /* in the service's `servers`: a name may have several addresses */
    unsigned health_in_a_row; /* checks with the opposite result; by the loop that checks */
};

struct backend { /* a service */
    const struct config_service *conf;
    struct tls_context *tls; /* or NULL */
    pthread_mutex_t lock;    /* guards what follows, up to the counters */
    struct breaker breaker;
    struct retry_budget budget;
    struct balance_server balance[BALANCE_SERVERS_MAX];
    struct breaker_rules breaker_rules;
    struct outlier_rules outlier_rules;
    struct server server[CONFIG_SERVERS_MAX];
    size_t n; /* servers */
    _Atomic uint64_t requests, retries, refused;
    _Atomic uint64_t crowded; /* refused because no connection became free */
};

#define PLAN_NONE ((size_t)-1)

struct plan {
    _Atomic uint32_t refs;
    struct config config;
    struct plan *origin;      /* owns what config points to, after plan_renew(); or NULL */
    struct backend *backends; /* in the order of config.services */
    const struct config_route **routes;
    size_t *route_backend;    /* by the route's place in config.routes; PLAN_NONE: no service */
    struct split **splits;    /* the same: NULL, or of a route over several services */
    struct gql_schema schema; /* empty without graphql.schema */
    struct composition *compositions; /* in the order of config.compositions */
    struct route_rules *rules;        /* the same */
    struct ip_network *trust;
    struct redis_settings redis;
    struct guards *guards;
    char *admin_token; /* what a POST to the admin address must have, or NULL */
    uint64_t number;   /* from 1; one more with each reload */
};

/* The first line of admin.token_file, which the caller frees, also on error. FIRN_EINVAL: it is too
 * short; FIRN_EIO, FIRN_ERANGE: the file. */
FIRN_MUSTUSE int plan_token_read(const struct config *c, char **out, struct firn_diag *diag);

/* `config` is transferred, also on error. Servers that `old` (or NULL) has under the same service
 * and address keep their state. FIRN_EINVAL: an address that cannot be looked up; FIRN_EIO: TLS
 * files. */
FIRN_MUSTUSE int plan_new(struct config *config, const struct plan *old, struct plan **out,
                          struct firn_diag *diag);
/* The same configuration with other addresses for names; names that could not be looked up keep
 * theirs. */
FIRN_MUSTUSE int plan_renew(struct plan *old, const struct lookups *found, struct plan **out,
                            struct firn_diag *diag);
/* Whether names have other addresses than those of the plan. */
bool plan_differs(const struct plan *p, const struct lookups *found);
struct plan *plan_ref(struct plan *p);
void plan_unref(struct plan *p); /* NULL is fine */

/* Of a route with compose. */
const struct composition *plan_composition(const struct plan *p, const struct config_route *r);

/* The Host of a server, where neither the client nor the service names one. */
static inline const char *server_host(const struct server *s)
{
    return upstream_path(s->address) ? "localhost" : s->address;
}

bool plan_trusts(const struct plan *p, const struct sockaddr *sa);

#endif
