/*
 * tls_context.h - certificate, key and trusted authorities that TLS connections begin with.
 * A context is shared by all connections of one role and may be loaded anew by any thread at any
 * time: open connections keep the files that they began with.
 */
#ifndef FIRN_WIRE_TLS_CONTEXT_H
#define FIRN_WIRE_TLS_CONTEXT_H

#include <stdbool.h>

#include "firn/error.h"

enum tls_role {
    /* Accepts TLS 1.2 and 1.3, with ALPN "http/1.1" where the client offers protocols. With `ca`,
     * clients must show a certificate that it signed. */
    TLS_SERVER,
    /* Connects with TLS 1.2 or 1.3 and checks the server's certificate and name. Without `ca` it
     * trusts the system's authorities. `cert` and `key` are shown to a server that asks. */
    TLS_CLIENT,
    /* Both ends of a cluster's peer port: TLS 1.3, and either side must show a certificate that
     * `ca` signed. The connecting side checks the name too. */
    TLS_MEMBER,
};

/* PEM files; borrowed for the call. */
struct tls_files {
    const char *cert; /* our certificate, then its chain */
    const char *key;  /* its private key, not encrypted */
    const char *ca;   /* certificates of the authorities that sign the peers' certificates */
    const char *area; /* of the settings that errors name: "cluster.tls_" for cluster.tls_cert */
};

struct tls_context;

/* Off until tls_context_load(). */
FIRN_MUSTUSE int tls_context_new(enum tls_role role, struct tls_context **out);
void tls_context_free(struct tls_context *c); /* connections may outlive it; NULL is fine */

/* Read the files and use them for connections from now on. A server without `cert` is off. On error
 * everything stays as it was, and `d` names the file: FIRN_EIO: it cannot be read or is not what it
 * should be; FIRN_ENOMEM. */
FIRN_MUSTUSE int tls_context_load(struct tls_context *c, const struct tls_files *f,
                                  struct firn_diag *d);

/* Both in one step, for contexts that must not be off. */
FIRN_MUSTUSE int tls_context_open(enum tls_role role, const struct tls_files *f,
                                  struct tls_context **out, struct firn_diag *d);

/* Whether files are loaded. NULL: no. */
bool tls_context_on(const struct tls_context *c);

/* For tls.c: an OpenSSL connection with the files of this moment; NULL when off or out of
 * memory. */
struct ssl_st *tls_context_ssl(struct tls_context *c, int *out_error);

#endif
