/* quorum.h - worlds of a Paxos quorum: coord/paxos.h, its messages and its acceptors. See
 * quorum.c. */
#ifndef SIM_QUORUM_H
#define SIM_QUORUM_H

#include "world.h"

void quorum_world_run(struct world *w, struct plan *plan);

#endif
