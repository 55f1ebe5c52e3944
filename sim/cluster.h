/* cluster.h - worlds of a cluster: raft/core, its disk and its state machine. See cluster.c. */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include "world.h"

void cluster_world_run(struct world *w, struct plan *plan);

#endif
