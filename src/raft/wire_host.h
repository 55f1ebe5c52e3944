/*
 * wire_host.h - what wire.c makes connections with: a libuv loop and, with TLS, certificates.
 * Everything belongs to the loop's thread.
 */
#ifndef FIRN_RAFT_WIRE_HOST_H
#define FIRN_RAFT_WIRE_HOST_H

#include <uv.h>

#include "raft/wire.h"

struct tls_context; /* wire/tls_context.h, with the role TLS_MEMBER; outlives its wires */

struct wire_host {
    uv_loop_t *loop;
    struct tls_context *tls;   /* NULL: without TLS */
    void (*enter)(void *user); /* called before each event of a wire; or NULL */
    void *user;
};

/* Accept the next connection of a listening handle; its first frame must arrive within
 * WIRE_GREETING_MS. NULL: it could not be accepted. *out_waits: for want of memory; it must be
 * tried again, since the handle takes no other connection before. */
struct wire *wire_accept(struct wire_host *h, uv_stream_t *listener, const struct wire_events *e,
                         void *user, bool *out_waits);

/* Close all wires of the loop, which has to run until they are closed. */
void wire_close_all(struct wire_host *h);

#endif
