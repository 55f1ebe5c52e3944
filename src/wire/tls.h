/*
 * tls.h - TLS 1.2 and 1.3 for connections, without a socket: bytes of the network in, plaintext out, and
 * the reverse. A struct tls_server holds the certificate that new connections get. It is shared by all
 * loops and may be loaded anew by any thread at any time: connections that exist keep the one they began
 * with. A struct tls belongs to its connection's thread.
 */
#ifndef FIRN_WIRE_TLS_H
#define FIRN_WIRE_TLS_H

#include "firn/error.h"
#include "wire/buf.h"

enum {
    /* What one call of tls_read() may take in. With a record that was begun before (16 KiB at most)
     * it never makes more than TLS_PLAIN_BYTES. */
    TLS_READ_BYTES = 15 * 1024,
    TLS_PLAIN_BYTES = 32 * 1024,
    TLS_FIRST_BYTE = 0x16, /* of a handshake record; begins neither HTTP nor RESP */
};

/* PEM files; borrowed for the call. */
struct tls_files {
    const char *cert; /* our certificate, then its chain; NULL: TLS is off */
    const char *key;  /* its private key, not encrypted */
    const char
        *client_ca; /* clients must show a certificate that these signed; NULL: they need none */
};

struct tls_server;

/* Off until tls_server_load(). */
FIRN_MUSTUSE int tls_server_new(struct tls_server **out);
void tls_server_free(struct tls_server *s); /* connections may outlive it; NULL is fine */

/* Read the files and use them for connections from now on. On error everything stays as it was, and
 * `d` names the file: FIRN_EIO: it cannot be read or is not what it should be; FIRN_ENOMEM. */
FIRN_MUSTUSE int tls_server_load(struct tls_server *s, const struct tls_files *f,
                                 struct firn_diag *d);

/* Whether there is a certificate. NULL: no. */
bool tls_server_on(const struct tls_server *s);

struct tls;

/* FIRN_ENOENT: TLS is off (by now). */
FIRN_MUSTUSE int tls_open(struct tls_server *s, struct tls **out);
void tls_free(struct tls *t);

/* Takes all of `in` (at most TLS_READ_BYTES), writes the plaintext that it completes to `plain` (room
 * for `cap`, at least TLS_PLAIN_BYTES) and appends to `sealed` what must be sent in return.
 * FIRN_ECLOSED: the peer said that it will send no more; *out_len counts here too. FIRN_EFORMAT: no
 * TLS, or no acceptable one; what `sealed` holds is to be sent and the connection to be closed. */
FIRN_MUSTUSE int tls_read(struct tls *t, const char *in, size_t in_len, char *plain, size_t cap,
                          size_t *out_len, struct buf *sealed);

/* Appends plaintext as records to `sealed`. FIRN_EINVAL: the handshake is not over. FIRN_EFORMAT:
 * broken. Whether `sealed` took it all is for the caller to see, as with every buffer. */
FIRN_MUSTUSE int tls_write(struct tls *t, const char *p, size_t len, struct buf *sealed);

/* Appends our last words, once. */
void tls_bye(struct tls *t, struct buf *sealed);

/* The handshake is over. */
bool tls_ready(const struct tls *t);

/* The common name in the certificate that the peer has proved to own; NULL: it showed none, or it has
 * not exactly one printable name. Lives as long as `t`. */
const char *tls_peer_name(const struct tls *t);

#endif
