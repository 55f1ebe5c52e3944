/*
 * link.h - a client's byte stream to a server: TCP, with TLS where asked for, every call with a
 * deadline on the monotonic clock. For engines whose client library cannot give up in time, and for
 * what servers send to each other and to collectors. One thread at a time. Names are resolved by
 * the system, whose limits are its own; addresses avoid that.
 */
#ifndef FIRN_WIRE_LINK_H
#define FIRN_WIRE_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

struct link;
struct tls_context; /* wire/tls_context.h */

/* A client's context (TLS_CLIENT) from the parameters of a store's URL, NULL where not given.
 * FIRN_EFORMAT: `cert` without `key` or the reverse. FIRN_EIO: a file cannot be used, `d` names
 * it. */
FIRN_MUSTUSE int link_tls_new(const char *ca, const char *cert, const char *key,
                              struct tls_context **out, struct firn_diag *d);

/* Connect, and shake hands when `tls` is given (borrowed); the certificate must be valid for
 * `host`. FIRN_EIO: no server there, not in time, or not trusted. */
FIRN_MUSTUSE int link_open(const char *host, uint16_t port, struct tls_context *tls,
                           int64_t until_ms, struct link **out, struct firn_diag *d);
void link_close(struct link *l);

/* All of it, or FIRN_EIO: then some of it may have been sent, and the link cannot be used again. */
FIRN_MUSTUSE int link_send(struct link *l, const char *p, size_t len, int64_t until_ms,
                           struct firn_diag *d);

/* At least one byte, their number in *out_n; FIRN_EIO as above. */
FIRN_MUSTUSE int link_recv(struct link *l, char *p, size_t cap, size_t *out_n, int64_t until_ms,
                           struct firn_diag *d);

/* Whether the other side is silent, as it should be between two requests; else it has closed. */
bool link_quiet(const struct link *l);

#endif
