/*
 * wire.h - one connection of the peer port on a libuv loop: frames in, frames out.
 * With TLS both sides show a certificate. A connection between members starts with frames and then
 * becomes a plain stream for libraft (wire_hand_over). Everything belongs to the loop's thread.
 */
#ifndef FIRN_RAFT_WIRE_H
#define FIRN_RAFT_WIRE_H

#include <uv.h>

#include "store/raft_frame.h"

struct wire;
struct tls_context; /* wire/tls_context.h, with the role TLS_MEMBER; outlives its wires */

struct wire_events {
    /* wire_connect() has succeeded: frames can be sent. NULL for accepted connections. */
    void (*up)(struct wire *w);
    /* A frame arrived, borrowed for the call. The wire may be closed or handed over in here. */
    void (*frame)(struct wire *w, const struct frame *f);
    /* The connection failed or ended. The wire frees itself afterwards. */
    void (*gone)(struct wire *w, const char *why);
};

/* Connect to "host:port". It fails unless the peer's first frame arrives within WIRE_SILENT_MS.
 * NULL: no memory, or no address. */
struct wire *wire_connect(uv_loop_t *loop, const char *address, struct tls_context *tls,
                          const struct wire_events *e, void *user);

/* Accept the next connection of a listening handle; its first frame must arrive within
 * WIRE_GREETING_MS. NULL: it could not be accepted. */
struct wire *wire_accept(uv_stream_t *listener, struct tls_context *tls,
                         const struct wire_events *e, void *user);

void *wire_user(const struct wire *w);

/* False: the connection has failed or is closing. */
bool wire_works(const struct wire *w);

/* Only in `frame`: is it the first frame of this wire? */
bool wire_first(const struct wire *w);

/* Copies. A failure ends the wire, by an event; so does a peer that does not read, once
 * WIRE_OUT_BYTES_MAX wait for it. */
void wire_send(struct wire *w, const char *p, size_t len);

/* No event follows. Bytes that the kernel has taken are still sent. */
void wire_close(struct wire *w);

/* The stream for libraft, which closes it and frees it with raft_free(). Without TLS the wire ends;
 * with TLS it goes on in the background and encrypts what the stream carries. NULL: it failed, and
 * the wire is closed. Only in `frame`, and after a frame behind which the peer sends nothing. */
uv_stream_t *wire_hand_over(struct wire *w);

/* Close all wires of the loop, which has to run until they are closed. */
void wire_close_all(uv_loop_t *loop);

enum { WIRE_SILENT_MS = 2000, WIRE_GREETING_MS = 5000, WIRE_OUT_BYTES_MAX = 16 << 20 };

#endif
