/*
 * wire.h - one connection of the peer port: frames in, frames out. A cluster member (member.h) sees
 * no more of the network than this; wire.c makes it of TCP and TLS on a libuv loop, the simulator
 * of nothing. Everything belongs to one thread. No function here calls an event.
 */
#ifndef FIRN_RAFT_WIRE_H
#define FIRN_RAFT_WIRE_H

#include "store/raft_frame.h"

struct wire;
struct wire_host; /* what connections are made with: wire_host.h, or the simulator's own */

struct wire_events {
    /* wire_connect() has succeeded: frames can be sent. NULL for accepted connections. */
    void (*up)(struct wire *w);
    /* A frame arrived, borrowed for the call. The wire may be closed in here. */
    void (*frame)(struct wire *w, const struct frame *f);
    /* The connection failed or ended. The wire frees itself afterwards. */
    void (*gone)(struct wire *w, const char *why);
};

/* Connect to "host:port". It fails unless the peer's first frame arrives within WIRE_SILENT_MS.
 * NULL: no memory, or no address. */
struct wire *wire_connect(struct wire_host *h, const char *address, const struct wire_events *e,
                          void *user);

void *wire_user(const struct wire *w);

/* False: the connection has failed or is closing. */
bool wire_works(const struct wire *w);

/* Only in `frame`: is it the first frame of this wire? */
bool wire_first(const struct wire *w);

/* Copies. A failure ends the wire, by an event, later; so does a peer that does not read, once
 * WIRE_OUT_BYTES_MAX wait for it. */
void wire_send(struct wire *w, const char *p, size_t len);

size_t wire_unsent(const struct wire *w); /* bytes that wait for the peer to read */

/* No event follows. Bytes that the kernel has taken are still sent. */
void wire_close(struct wire *w);

enum { WIRE_SILENT_MS = 2000, WIRE_GREETING_MS = 5000, WIRE_OUT_BYTES_MAX = 16 << 20 };

#endif
