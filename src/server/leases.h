/*
 * leases.h - slots that this server holds for clients, which make IDs in their own processes. Each
 * is a whole lease of the store (drive/lease.h), taken and extended by the same state machine as
 * the server's own. A client is told exactly the slot and the window [from, until) that the store
 * has confirmed. So docs/coordination.md holds for clients as for nodes, and no safety depends on
 * this table: when kill -9 loses it, clients use up their windows, which no other process gets, and
 * ask for new ones.
 *
 * Two rules are this file's own. The store's `until` of a client's slot never falls, because only
 * the client knows which ticks it has stamped: a slot is given back without the ticks that are left
 * (lease_params.keep_unused). And a window is extended only when the client asks, so the slot of a
 * client that has vanished becomes free by itself.
 *
 * For the coordinator's thread, because every call may block in the store.
 */
#ifndef FIRN_SERVER_LEASES_H
#define FIRN_SERVER_LEASES_H

#include <stdatomic.h>

#include "drive/lease.h"

enum {
    LEASE_ID_LEN = 32, /* hexadecimal digits: 128 bits that the client draws anew for each lease */
    LEASES_MAX = SLOTS_MAX - 1,
};

struct lease_terms { /* for the client; ticks of the lease */
    struct slot_grant grant;
    uint64_t now, window;  /* F; the window's length */
    uint64_t floor, drift; /* stamps may run ahead of the clock: up to max(F, floor) + drift */
};

struct leases_stats {
    _Atomic uint64_t held, granted, extended, refused, expired, returned;
};

/* A client's request. It belongs to the table from leases_ask() until done() is called. */
struct lease_ask {
    enum { LEASE_TAKE, LEASE_EXTEND, LEASE_RETURN } what;
    char id[LEASE_ID_LEN + 1];
    uint64_t last; /* highest tick that the client has stamped, as it says; 0: it does not say */
    uint64_t deadline_ms;
    void (*done)(struct lease_ask *a, int result);
    struct lease_terms terms; /* TAKE, EXTEND: when result is 0 */
    struct firn_diag diag;    /* else */
    struct lease_ask *next;
};

struct leases_opts {
    uint32_t max;          /* leases at once */
    const char *lock_path; /* of a store that is a file: its slots have lock bytes; else NULL */
    struct lease_params params;      /* as the server's own lease */
    const struct lease_world *world; /* NULL: the real one; for tests */
};

struct leases;

FIRN_MUSTUSE int leases_new(const struct leases_opts *o, struct leases **out);

/* When the store was first used at this boot: not the slots that clients had before. */
void leases_since(struct leases *l, uint64_t since_ms);

/* Gives all slots back, unless the store is too slow. Open requests get FIRN_ECLOSED. With `store`
 * NULL nothing is given back: as after kill -9. */
void leases_free(struct leases *l, struct firn_store *store);

/* TAKE: a new lease, or the one that this id was given before: the answer may have been lost.
 * EXTEND: of one that is held; FIRN_ENOENT otherwise. RETURN: 0 also if it is not known.
 * FIRN_ENOSLOT: the table is full, or all slots of the store are taken; FIRN_EAGAIN: not before the
 * deadline. */
void leases_ask(struct leases *l, struct firn_store *store, struct lease_ask *a);

/* Continue with requests that wait for the store, and drop leases that expired. Returns when to
 * call again, CLOCK_MONOTONIC ms. */
uint64_t leases_step(struct leases *l, struct firn_store *store);

const struct leases_stats *leases_stats(const struct leases *l);

#endif
