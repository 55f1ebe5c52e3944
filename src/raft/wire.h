/*
 * wire.h - a connection of the peer port on a libuv loop: frames in, frames out, with TLS where both sides
 * show a certificate. A connection between members greets in frames and then becomes a plain stream for
 * libraft (wire_hand_over). Everything belongs to the loop's thread.
 */
#ifndef FIRN_RAFT_WIRE_H
#define FIRN_RAFT_WIRE_H

#include <uv.h>

#include "store/raft_frame.h"

struct wire;
struct tls_context; /* wire/tls_context.h, with the role TLS_MEMBER; outlives its wires */

struct wire_events {
    /* A wire that was to be connected stands: from now on frames can be sent. NULL for accepted ones. */
    void (*up)(struct wire *w);
    /* A frame came, borrowed for the call. The wire may be closed or handed over in here. */
    void (*frame)(struct wire *w, const struct frame *f);
    /* The wire is of no more use: not connected, ended or broken. It frees itself afterwards. */
    void (*gone)(struct wire *w, const char *why);
};

/* Connect to "host:port". It ends when it does not stand, with a first frame from there, after
 * WIRE_SILENT_MS. NULL: no memory, or no address. */
struct wire *wire_connect(uv_loop_t *loop, const char *address, struct tls_context *tls,
                          const struct wire_events *e, void *user);

/* Take the next connection of a listening handle; it has WIRE_GREETING_MS for its first frame. NULL: there
 * is none after all. */
struct wire *wire_accept(uv_stream_t *listener, struct tls_context *tls,
                         const struct wire_events *e, void *user);

void *wire_user(const struct wire *w);

/* Whether something that is sent now could arrive. */
bool wire_works(const struct wire *w);

/* Only in `frame`: whether that is the first one of this wire. */
bool wire_first(const struct wire *w);

/* Copies. What cannot be sent ends the wire, by an event; so does a peer that takes nothing, when
 * WIRE_OUT_BYTES_MAX wait for it. */
void wire_send(struct wire *w, const char *p, size_t len);

/* No event comes any more; what was sent before still goes out if the peer takes it at once. */
void wire_close(struct wire *w);

/* The stream for libraft, which closes it and gives the memory back with raft_free(). The wire is gone, or
 * goes on unseen to seal what the stream carries. NULL: it cannot be, the wire is closed. Only in `frame`,
 * and after a frame that the peer sends nothing behind. */
uv_stream_t *wire_hand_over(struct wire *w);

/* Close all wires that still are there, for the end; the loop has to run until they are gone. */
void wire_close_all(uv_loop_t *loop);

enum { WIRE_SILENT_MS = 2000, WIRE_GREETING_MS = 5000, WIRE_OUT_BYTES_MAX = 16 << 20 };

#endif
