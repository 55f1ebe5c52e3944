/* Settings turned into the options of a cluster member. Tested in tests/integration/cluster.py. */
#include "server/cluster.h"
#include "id/diag.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cluster_wanted(const struct config *c)
{
    return strcmp(c->store, "raft:") == 0;
}

#ifdef FIRN_HAVE_RAFT
#include "raft/node.h"
#include "daemon/log.h"
#include "wire/url.h"

enum { TIMEOUT_MS = 2000 };

static void say(void *user, enum node_level level, const char *event, const char *text)
{
    (void)user;
    if (level == NODE_ERROR)
        log_error(event, "%s", text);
    else if (level == NODE_WARN)
        log_warn(event, "%s", text);
    else
        log_info(event, "%s", text);
}

/* All but the members to join, whose texts have to be made. */
static struct node_opts opts_of(const struct config *c)
{
    return (struct node_opts){ .dir = c->cluster.dir,
                               .listen = c->cluster.listen,
                               .address = c->cluster.address,
                               .init = c->cluster.init,
                               .fresh = c->cluster.fresh,
                               .restore = c->cluster.restore,
                               .join_n = c->cluster.join.n,
                               .standby = c->cluster.standby,
                               .election_ms = (uint32_t)c->cluster.election_ms,
                               .snapshot_every = (uint32_t)c->cluster.snapshot_every,
                               .snapshot_keep = (uint32_t)c->cluster.snapshot_keep,
                               .cert = c->cluster.tls_cert,
                               .key = c->cluster.tls_key,
                               .ca = c->cluster.tls_ca,
                               .plain = c->cluster.plain,
                               .say = say };
}

int cluster_check(const struct config *c, struct firn_diag *d)
{
    struct node_opts o = opts_of(c);
    return cluster_wanted(c) ? node_check(&o, d) : 0;
}

int cluster_start(const struct config *c, struct node **out, struct firn_diag *d)
{
    char address[CONFIG_SETTINGS_MAX][HOST_PORT_BUF];
    const char *join[CONFIG_SETTINGS_MAX];
    struct node_opts o = opts_of(c);
    const char *self = o.address ? o.address : o.listen;
    size_t n = 0;
    for (size_t i = 0; i < c->cluster.join.n && i < CONFIG_SETTINGS_MAX; i++) {
        const struct config_addr *a = &c->cluster.join.v[i];
        join[n] = host_port_write(a->host, a->port, address[n]);
        /* All members may have one list and cluster.init: the first of the list begins. */
        if (strcmp(join[n], self) == 0)
            o.init &= i == 0;
        else
            n++;
    }
    o.join = join;
    o.join_n = n;
    int r = node_start(&o, out, d);
    if (r == 0)
        log_info("member", "id=%016llx address=%s", (unsigned long long)node_id(*out), o.address);
    return r;
}

void cluster_stop(struct node *n)
{
    node_stop(n);
}

int cluster_renew_tls(struct node *n, const struct config *c, struct firn_diag *d)
{
    const char *cert = c->cluster.tls_cert, *key = c->cluster.tls_key, *ca = c->cluster.tls_ca;
    return n && (cert || key || ca) ? node_renew_tls(n, cert, key, ca, d) : 0;
}

int cluster_store(void *node, uint32_t timeout_ms, struct firn_store **out, struct firn_diag *d)
{
    struct raft_channel *c = node_channel(node);
    if (!c)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    return raft_store_new(c, "", timeout_ms ? timeout_ms : TIMEOUT_MS, out, d);
}

#else

int cluster_check(const struct config *c, struct firn_diag *d)
{
    (void)c, (void)d;
    return 0;
}

int cluster_start(const struct config *c, struct node **out, struct firn_diag *d)
{
    (void)c, (void)out;
    return firn__diag(d, FIRN_ENOTSUP, 0, "this firnd was built without raft:");
}

void cluster_stop(struct node *n)
{
    (void)n;
}

int cluster_renew_tls(struct node *n, const struct config *c, struct firn_diag *d)
{
    (void)n, (void)c, (void)d;
    return 0;
}

int cluster_store(void *node, uint32_t timeout_ms, struct firn_store **out, struct firn_diag *d)
{
    (void)node, (void)timeout_ms, (void)out;
    return firn__diag(d, FIRN_ENOTSUP, 0, "this firnd was built without raft:");
}
#endif
