/*
 * raft.h - the registers of a Raft cluster, as a store. How a request gets to the cluster is a
 * channel: over the network to any member (raft_link.c), or straight to the member inside this
 * process (raft/node.h). One thread at a time.
 */
#ifndef FIRN_STORE_RAFT_H
#define FIRN_STORE_RAFT_H

#include "store/raft_frame.h"
#include "store/url.h"

struct raft_channel {
    /* One request (a whole frame) and its reply: room for FRAME_MAX bytes, *out_len of them
     * used. `again`: it may be sent twice, since it changes nothing. FIRN_EIO: nothing was done
     * and nothing will be; FIRN_EUNKNOWN: it may have been sent; `d` says why. */
    int (*call)(struct raft_channel *c, const char *frame, size_t len, bool again, int64_t until_ms,
                char *reply, size_t *out_len, struct firn_diag *d);
    void (*close)(struct raft_channel *c);
};

enum { RAFT_SPACE_MAX = MAP_KEY_MAX - STORE_KEY_MAX - 1 };

/* `c` is transferred, also on error. `space` keeps several users of one cluster apart; firnd's
 * is "". Asks the cluster for its incarnation, so FIRN_EIO: no member answers. */
FIRN_MUSTUSE int raft_store_new(struct raft_channel *c, const char *space, uint32_t timeout_ms,
                                struct firn_store **out, struct firn_diag *d);

/* To the members that the URL names. Connects with the first call. */
FIRN_MUSTUSE int raft_link_new(const struct store_url *u, struct raft_channel **out,
                               struct firn_diag *d);

#endif
