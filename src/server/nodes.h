/*
 * nodes.h - this server as a member of its store, and the list of all members, for /v1/nodes.
 * Driven by the coordinator's thread. It never delays the lease: at most one call to the store per
 * step, and no other part of firnd depends on it.
 */
#ifndef FIRN_SERVER_NODES_H
#define FIRN_SERVER_NODES_H

#include "drive/lease.h"
#include "drive/member.h"

struct node_listed { /* a member that has not left */
    uint32_t number;
    struct member_record record;
    const char *state; /* member_state_name() */
    bool self;
    uint64_t age_ms; /* since its last sign of life, by both clocks; for people */
};

struct nodes;

/* `addresses`: of the ports, with commas between; a longer text is truncated at a comma. Texts are
 * copied. FIRN_ENOMEM. */
FIRN_MUSTUSE int nodes_new(const char *name, const char *addresses, struct nodes **out);
void nodes_free(struct nodes *n);

/* Join once there is a slot, then keep the membership. Returns when to call again, CLOCK_MONOTONIC
 * ms. */
uint64_t nodes_step(struct nodes *n, struct firn_store *store, const struct lease *lease);

/* Leave, at the end. */
void nodes_leave(struct nodes *n);

/* *out is malloc'd, the caller frees it. */
FIRN_MUSTUSE int nodes_list(struct nodes *n, struct firn_store *store, struct node_listed **out,
                            size_t *out_n, struct firn_diag *d);

#endif
