/*
 * firn/node.h - unique IDs in your own process, with no worker number to set: a node leases one
 * from a store that all your processes share, and gives it back at the end.
 *
 *     struct firn_node *node;
 *     if (firn_node_open("etcd://10.0.0.1:2379,10.0.0.2:2379/firn", NULL, &node, &diag) != 0) ...
 *     firn_node_next(node, &id);
 *     firn_node_close(node);
 *
 * No two nodes on one store ever make the same ID, whatever clocks, networks and processes do
 * (docs/coordination.md). Making an ID takes no lock and needs no server: one background thread,
 * which firn_node_open() starts, keeps the window of timestamps ahead of the clock. While the store
 * is away a node goes on until its window ends, 40 to 60 s with the defaults.
 *
 * All functions but open and close may be called from any thread. In the child of a fork() the
 * first call leases a slot for the child, with a connection and a thread of its own, if the store
 * is one that machines share. On sqlite: and memory: a child gets FIRN_EFORKED: there, open the
 * node after the fork.
 */
#ifndef FIRN_NODE_H
#define FIRN_NODE_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct firn_node; /* opaque */

/* Start from FIRN_NODE_OPTS_INIT: a `size` that is not set is refused (FIRN_EINVAL). Zero means the
 * default. */
struct firn_node_opts {
    uint32_t size;         /* sizeof as the caller compiled it: lets the struct grow */
    uint32_t wait_ms;      /* how long a call waits when there is no ID at the moment; 5,000 */
    const char *layout;    /* a preset's name or a layout text; default "firn" */
    const char *name;      /* who this is, for operators: up to 63 of A-Z a-z 0-9 . _ : - */
    uint32_t timeout_ms;   /* for one call to the store; 2,000 */
    uint32_t init;         /* 1: make firn's records in a shared store that has none */
    uint32_t accept_clock; /* 1: start although the clock looks wrong */
    uint32_t manual_fence; /* 1: halt on a restored store instead of fencing it */
    uint64_t reserved_[4];
};
#define FIRN_NODE_OPTS_INIT                                 \
    {                                                       \
        sizeof(struct firn_node_opts), 0, 0, 0, 0, 0, 0, 0, \
        {                                                   \
            0, 0, 0, 0                                      \
        }                                                   \
    }

/* Open the store, lease a slot and wait for it, at most wait_ms. `url` as in firnd.yaml(5):
 * sqlite:FILE, etcd://, zookeeper://, postgres://, redis://, or memory: for tests. Texts are
 * copied; opts may be NULL. FIRN_EFORMAT: the URL, the layout or the name. FIRN_ENOTSUP: this build
 * lacks the engine. FIRN_EIO: the store does not answer. FIRN_ENOENT: it has no records of firn, or
 * no layout has that name. FIRN_ECLOCK: the clock cannot be right. FIRN_ENOSLOT: every slot is
 * taken. FIRN_ESTORE: it belongs to another layout. The diag says what to do. */
FIRN_API FIRN_MUSTUSE int firn_node_open(const char *url, const struct firn_node_opts *opts,
                                         struct firn_node **out, struct firn_diag *diag);

/* Give the slot back and end the thread. No other thread may be inside a call. NULL is fine. */
FIRN_API void firn_node_close(struct firn_node *n);

/* One ID; those that one thread gets rise. FIRN_EAGAIN: the layout's rate and what could be
 * borrowed are used up, and wait_ms did not help. FIRN_EWINDOW: no window of timestamps, because
 * the store has been away for long; firn_node_info() says why. FIRN_EFORKED: see above.
 * FIRN_EEXHAUSTED: the layout's time has run out. */
FIRN_API FIRN_MUSTUSE int firn_node_next(struct firn_node *n, uint64_t *out_id);

/* Up to `count` IDs, rising; their number goes to `*out_n`, at least 1 on success if
 * `count` is. */
FIRN_API FIRN_MUSTUSE int firn_node_fill(struct firn_node *n, uint64_t *ids, size_t count,
                                         size_t *out_n);

struct firn_node_info {
    uint32_t slot;          /* UINT32_MAX: none yet */
    uint32_t ready;         /* 0: the window is nearly used up, or there is none */
    int64_t window_unix_ms; /* its end */
    char state[16];         /* "active", "dry", "no_slot", "wait_clock", "halted", ... */
    int error;              /* 0, or what stands in the way */
    struct firn_diag diag;  /* and its text */
};

FIRN_API void firn_node_info(struct firn_node *n, struct firn_node_info *out);

#ifdef __cplusplus
}
#endif
#endif
