/*
 * tls.h - one TLS connection without a socket: bytes of the network in, plaintext out, and the
 * reverse, for the accepting and the connecting side. A struct tls belongs to its connection's
 * thread. The caller carries the bytes; contexts are in tls_context.h.
 */
#ifndef FIRN_WIRE_TLS_H
#define FIRN_WIRE_TLS_H

#include "firn/error.h"
#include "wire/buf.h"
#include "wire/tls_context.h"

enum {
    /* Bytes that one call of tls_read() takes at most. With a record that was begun before (16
     * KiB at most) it never makes more than TLS_PLAIN_BYTES. */
    TLS_READ_BYTES = 15 * 1024,
    TLS_PLAIN_BYTES = 32 * 1024,
    TLS_FIRST_BYTE = 0x16, /* of a handshake record; begins neither HTTP nor RESP */
};

struct tls;

/* The accepting side. FIRN_ENOENT: the context is off (by now). FIRN_ENOMEM. */
FIRN_MUSTUSE int tls_accept(struct tls_context *c, struct tls **out);

/* The connecting side: the server's certificate must be valid for `host`, a name or an IP address.
 * A call of tls_read() with no bytes begins the handshake. FIRN_EINVAL: such a host cannot be
 * checked. FIRN_ENOENT, FIRN_ENOMEM as above. */
FIRN_MUSTUSE int tls_connect(struct tls_context *c, const char *host, struct tls **out);
void tls_free(struct tls *t);

/* Takes all of `in` (at most TLS_READ_BYTES), writes the plaintext that it completes to `plain`
 * (room for `cap`, at least TLS_PLAIN_BYTES) and appends to `sealed` what must be sent in
 * return. FIRN_ECLOSED: the peer said that it will send no more; *out_len counts here too.
 * FIRN_EFORMAT: no TLS, or no acceptable one, as tls_why() says; what `sealed` holds is to be
 * sent and the connection to be closed. */
FIRN_MUSTUSE int tls_read(struct tls *t, const char *in, size_t in_len, char *plain, size_t cap,
                          size_t *out_len, struct buf *sealed);

/* Appends plaintext as records to `sealed`. FIRN_EINVAL: the handshake is not over. FIRN_EFORMAT:
 * broken. The caller checks, as with every buffer, whether `sealed` took it all. */
FIRN_MUSTUSE int tls_write(struct tls *t, const char *p, size_t len, struct buf *sealed);

/* Appends a close_notify, once. */
void tls_bye(struct tls *t, struct buf *sealed);

/* The handshake is over. */
bool tls_ready(const struct tls *t);

/* The common name in the certificate that the peer has proved to own; NULL: it showed none, or
 * it has not exactly one printable name. Lives as long as `t`. */
const char *tls_peer_name(const struct tls *t);

/* Why a call returned FIRN_EFORMAT; a static text. */
const char *tls_why(const struct tls *t);

#endif
