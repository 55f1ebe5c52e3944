/*
 * Checks of firnd's configuration that need more than one setting, and questions about it.
 */
#include "server/config.h"
#include "coord/slot.h"
#include "daemon/span_sample.h"
#include "firn/layout.h"
#include "server/cluster.h"
#include "wire/url.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int check_addrs(const struct config *c, struct firn_diag *diag)
{
    static const char *const names[] = { "listen.home", "listen.snowflake", "listen.ticket" };
    const struct config_addrs *lists[] = { &c->listen.home, &c->listen.snowflake,
                                           &c->listen.ticket };
    if (c->listen.home.n + c->listen.snowflake.n + c->listen.ticket.n == 0)
        return config_fault(&c->base, "listen.home", FIRN_EINVAL, diag,
                            "every list of addresses is empty; the server needs one");
    for (size_t i = 0; i < 3 * CONFIG_ADDRS_MAX;
         i++) /* each address with all before it: there are few */
        for (size_t j = 0; j < i; j++) {
            const struct config_addrs *a = lists[i / CONFIG_ADDRS_MAX],
                                      *b = lists[j / CONFIG_ADDRS_MAX];
            if (i % CONFIG_ADDRS_MAX >= a->n || j % CONFIG_ADDRS_MAX >= b->n)
                continue;
            const struct config_addr *x = &a->v[i % CONFIG_ADDRS_MAX],
                                     *y = &b->v[j % CONFIG_ADDRS_MAX];
            if (x->port == 0 || x->port != y->port || strcasecmp(x->host, y->host) != 0)
                continue;
            char show[CONFIG_SHOWN_BUF];
            return config_fault(&c->base, names[i / CONFIG_ADDRS_MAX], FIRN_ECONFLICT, diag,
                                "%s port %u is also in %s; each needs its own",
                                config_shown(x->host, show), x->port, names[j / CONFIG_ADDRS_MAX]);
        }
    return 0;
}

const char *config_cluster_asked(const struct config *c)
{
    return c->cluster.init      ? "cluster.init"
           : c->cluster.join.n  ? "cluster.join"
           : c->cluster.restore ? "cluster.restore"
                                : NULL;
}

static int check_member(const struct config *c, struct firn_diag *diag)
{
    const char *asked = config_cluster_asked(c);
    if (!asked || cluster_wanted(c))
        return 0;
    return config_fault(&c->base, asked, FIRN_EINVAL, diag,
                        "is for a cluster of firnds, which keeps everything in itself; leave the "
                        "store out, or say store: \"raft:\"");
}

static int check_pin(const struct config *c, struct firn_diag *diag)
{
    struct firn_layout l;
    if (strcmp(c->worker_id, "auto") == 0 ||
        firn_layout_parse(c->layout, strlen(c->layout), 0, &l, NULL) != 0) /* checked before */
        return 0;
    uint64_t has = firn_layout_slots(&l), max = has < SLOTS_MAX ? has : SLOTS_MAX;
    if (strtoull(c->worker_id, NULL, 10) < max)
        return 0;
    return config_fault(&c->base, "worker_id", FIRN_ERANGE, diag,
                        "%s is too large; the layout has the slots 0 to %" PRIu64, c->worker_id,
                        max - 1);
}

static int check_peers(const struct config *c, struct firn_diag *diag)
{
    char show[CONFIG_SHOWN_BUF];
    for (size_t i = 0; i < c->peers.n; i++)
        if (c->peers.v[i].port == 0)
            return config_fault(&c->base, "peers", FIRN_ERANGE, diag,
                                "%s has port 0, which no server listens on; give the peer's home "
                                "port, 9000 by default",
                                config_shown(c->peers.v[i].host, show));
    return 0;
}

/* What would be ignored without a word. */
static int check_tracing(const struct config *c, struct firn_diag *diag)
{
    bool https = c->tracing.endpoint && strncmp(c->tracing.endpoint, "https:", 6) == 0;
    if (!c->tracing.endpoint && span_sample_read(c->tracing.sample) > 0)
        return config_fault(&c->base, "tracing.sample", FIRN_EINVAL, diag,
                            "needs tracing.endpoint too, the collector that spans are sent to");
    if (c->tracing.tls_ca && !https)
        return config_fault(&c->base, "tracing.tls_ca", FIRN_EINVAL, diag,
                            "needs an https:// URL in tracing.endpoint");
    return 0;
}

int config_check(const void *config, struct firn_diag *diag)
{
    const struct config *c = config;
    if (c->tls.cert && !c->tls.key)
        return config_fault(&c->base, "tls.cert", FIRN_EINVAL, diag,
                            "needs tls.key too, its private key");
    if (c->tls.key && !c->tls.cert)
        return config_fault(&c->base, "tls.key", FIRN_EINVAL, diag,
                            "needs tls.cert too, its certificate");
    if (c->tls.client_ca && !c->tls.cert)
        return config_fault(&c->base, "tls.client_ca", FIRN_EINVAL, diag,
                            "needs tls.cert and tls.key too");
    int r = check_addrs(c, diag);
    if (r == 0)
        r = check_member(c, diag);
    if (r == 0)
        r = check_pin(c, diag);
    if (r == 0)
        r = check_peers(c, diag);
    if (r == 0)
        r = check_tracing(c, diag);
    return r ? r : cluster_check(c, diag);
}

const char *config_exposed(const struct config *c)
{
    const struct config_addrs *lists[] = { &c->listen.home, &c->listen.snowflake,
                                           &c->listen.ticket };
    bool outside = false;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < lists[i]->n; k++)
            outside |= !host_is_loopback(lists[i]->v[k].host);
    if (outside && !c->auth.tokens.n && !c->tls.client_ca)
        return "every client that reaches these addresses can take numbers: set auth.tokens or "
               "tls.client_ca";
    if (outside && !c->tls.cert)
        return "tokens cross the network unencrypted: set tls.cert and tls.key";
    return NULL;
}

const char *config_scope_entry(const struct config_strings *scope, const char *p, size_t len)
{
    for (size_t i = 0; i < scope->n; i++) {
        const char *entry = scope->v[i];
        size_t n = strlen(entry);
        if (n && entry[n - 1] == '*' ? len >= n - 1 && memcmp(p, entry, n - 1) == 0
                                     : len == n && memcmp(p, entry, n) == 0)
            return entry;
    }
    return NULL;
}

bool config_scope_allows(const struct config_strings *scope, const char *p, size_t len)
{
    return config_scope_entry(scope, p, len) != NULL;
}
