/*
 * cluster.h - firnd as a member of a Raft cluster (raft/node.h), as its settings say. A build
 * with FIRN_STORE_RAFT off has neither clusters nor the store raft:.
 */
#ifndef FIRN_SERVER_CLUSTER_H
#define FIRN_SERVER_CLUSTER_H

#include "server/config.h"
#include "store/store.h"

struct node;

/* Whether the settings ask for it. */
bool cluster_wanted(const struct config *c);

/* If the settings ask for a cluster, whether they fit together: as node_check(). */
FIRN_MUSTUSE int cluster_check(const struct config *c, struct firn_diag *d);

/* FIRN_ENOTSUP: not in this build; else as node_start(). */
FIRN_MUSTUSE int cluster_start(const struct config *c, struct node **out, struct firn_diag *d);
void cluster_stop(struct node *n); /* NULL is fine */

/* Load the certificates for peers again, from the files that the settings name now. As
 * node_renew_tls(). */
FIRN_MUSTUSE int cluster_renew_tls(struct node *n, const struct config *c, struct firn_diag *d);

/* The registers; `node` as in coordinator_opts.open_user. FIRN_EIO: no leader yet. */
FIRN_MUSTUSE int cluster_store(void *node, uint32_t timeout_ms, struct firn_store **out,
                               struct firn_diag *d);

#endif
