/*
 * peers.h - other firnds whose IDs meet this one's although their stores know nothing of each
 * other. Each is asked for /v1/node at the start and from then on; a slot that one of them uses is
 * not taken, and of two that use one slot, one takes another (coord/clash.h).
 * A thread of its own. Servers that share a store need none of this.
 */
#ifndef FIRN_SERVER_PEERS_H
#define FIRN_SERVER_PEERS_H

#include <stdatomic.h>

#include "coord/clash.h"
#include "coord/slot.h"
#include "daemon/config.h"

struct peers_opts {
    const struct config_addrs *at; /* copied */
    const char *cert, *key, *ca;   /* of TLS, NULL: without; borrowed for peers_new() */
    /* This node as it is now; and what is to be done. From the thread of peers. */
    void (*face)(void *user, struct node_face *out);
    void (*avoid)(void *user, const struct slot_avoid *slots, bool yield);
    void *user;
};

struct peers_stats {
    _Atomic uint32_t up;       /* of the last round */
    _Atomic uint64_t failures; /* requests without a good answer */
    _Atomic uint64_t clashes;  /* times that a peer was found on this node's slot */
};

struct peers;

/* FIRN_ENOMEM; FIRN_EIO, FIRN_EFORMAT: the files of TLS. */
FIRN_MUSTUSE int peers_new(const struct peers_opts *o, struct peers **out, struct firn_diag *d);

/* Before there is a slot: those that the peers use, of this layout. Takes up to 1 s. */
void peers_slots(struct peers *p, const char *layout, struct slot_avoid *out);

FIRN_MUSTUSE int peers_start(struct peers *p);
void peers_free(struct peers *p); /* ends the thread; NULL is fine */

const struct peers_stats *peers_stats(const struct peers *p);

/* The answer to /v1/node. FIRN_EFORMAT: it is something else. */
FIRN_MUSTUSE int peer_read(const char *p, size_t len, struct node_face *out);

#endif
