/*
 * OpenSSL contexts for the three roles of tls_context.h. Tested by tests/unit/wire/tls.c.
 *
 * Sessions of a server resume by tickets only. A cache on this side would be a lock and memory for
 * every client that ever came. The ticket keys live in the SSL_CTX, so no session resumes across a
 * reload, when the authority that clients are checked against may be another one.
 */
#include "wire/tls_context.h"
#include "id/diag.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Forward secrecy and authenticated encryption, also for 1.2; the suites of 1.3 all have both. */
#define SERVER_CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

struct tls_context {
    enum tls_role role;
    pthread_mutex_t mutex; /* guards `ctx`, for the moment of taking a reference */
    SSL_CTX *ctx;
    atomic_bool on;
};

int tls_context_new(enum tls_role role, struct tls_context **out)
{
    struct tls_context *c = calloc(1, sizeof *c);
    if (!c || pthread_mutex_init(&c->mutex, NULL) != 0) {
        free(c);
        return FIRN_ENOMEM;
    }
    c->role = role;
    *out = c;
    return 0;
}

void tls_context_free(struct tls_context *c)
{
    if (!c)
        return;
    SSL_CTX_free(c->ctx);
    pthread_mutex_destroy(&c->mutex);
    free(c);
}

bool tls_context_on(const struct tls_context *c)
{
    return c && atomic_load_explicit(&c->on, memory_order_relaxed);
}

/* OpenSSL would ask at the terminal for the password of a key. */
static int no_password(char *buf, int size, int writing, void *user)
{
    (void)buf;
    (void)size;
    (void)writing;
    (void)user;
    return 0;
}

/* A client that offers protocols must offer ours (RFC 7301); Redis clients offer none. */
static int choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *found;
    (void)ssl;
    (void)user;
    if (SSL_select_next_proto(&found, out_len, ours, sizeof ours - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = found;
    return SSL_TLSEXT_ERR_OK;
}

static bool set_options(SSL_CTX *ctx, enum tls_role role)
{
    static const unsigned char id[] = "firnd"; /* without one, no session with `ca` resumes */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    if (role == TLS_MEMBER) /* a connecting member that only writes would never read tickets */
        return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) &&
               SSL_CTX_set_num_tickets(ctx, 0);
    if (!SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION))
        return false;
    if (role == TLS_CLIENT)
        return true;
    SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
    return SSL_CTX_set_cipher_list(ctx, SERVER_CIPHERS_1_2) &&
           SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
}

/* The end of a long path says more than its beginning. */
static const char *tail(const char *path)
{
    size_t len = strlen(path);
    return len > 80 ? path + len - 80 : path;
}

static int unusable(struct firn_diag *d, const char *area, const char *setting, const char *file)
{
    unsigned long e = ERR_peek_error(); /* the first is the cause, what follows is where it led */
    const char *why = ERR_SYSTEM_ERROR(e) ? strerror(ERR_GET_REASON(e))
                                          : ERR_reason_error_string(e);
    return firn__diag(d, FIRN_EIO, 0, "%s%s=%s cannot be used: %s", area, setting, tail(file),
                      why ? why : "it is not the PEM file it should be");
}

static int load_own(SSL_CTX *ctx, const struct tls_files *f, struct firn_diag *d)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
        return unusable(d, f->area, "cert", f->cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(ctx) == 1)
        return 0;
    if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
        return firn__diag(d, FIRN_EIO, 0, "%skey=%s cannot be used: it does not belong to %s",
                          f->area, tail(f->key), tail(f->cert));
    return unusable(d, f->area, "key", f->key);
}

static int load_authorities(SSL_CTX *ctx, enum tls_role role, const struct tls_files *f,
                            struct firn_diag *d)
{
    const char *setting = role == TLS_SERVER ? "client_ca" : "ca";
    if (!f->ca && role == TLS_CLIENT)
        return SSL_CTX_set_default_verify_paths(ctx)
                   ? 0
                   : unusable(d, f->area, setting, "(the system's)");
    if (SSL_CTX_load_verify_file(ctx, f->ca) != 1)
        return unusable(d, f->area, setting, f->ca);
    if (role != TLS_SERVER)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(f->ca);
    if (!names)
        return unusable(d, f->area, setting, f->ca);
    SSL_CTX_set_client_CA_list(ctx, names); /* transferred */
    return 0;
}

static int load(SSL_CTX *ctx, enum tls_role role, const struct tls_files *f, struct firn_diag *d)
{
    int r = f->cert ? load_own(ctx, f, d) : 0;
    if (r || (role == TLS_SERVER && !f->ca))
        return r;
    /* A client checks its server in any case; the second flag concerns accepting sides alone. */
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return load_authorities(ctx, role, f, d);
}

int tls_context_load(struct tls_context *c, const struct tls_files *f, struct firn_diag *d)
{
    SSL_CTX *ctx = NULL;
    if (f->cert || c->role == TLS_CLIENT) {
        ERR_clear_error();
        ctx = SSL_CTX_new(TLS_method());
        int r = !ctx || !set_options(ctx, c->role)
                    ? firn__diag(d, FIRN_ENOMEM, 0,
                                 "OpenSSL cannot set up TLS: out of memory, or "
                                 "it was built without TLS 1.3")
                    : load(ctx, c->role, f, d);
        ERR_clear_error();
        if (r) {
            SSL_CTX_free(ctx);
            return r;
        }
    }
    pthread_mutex_lock(&c->mutex);
    SSL_CTX *old = c->ctx;
    c->ctx = ctx;
    atomic_store_explicit(&c->on, ctx != NULL, memory_order_relaxed);
    pthread_mutex_unlock(&c->mutex);
    SSL_CTX_free(old); /* lives on while connections have it */
    return 0;
}

int tls_context_open(enum tls_role role, const struct tls_files *f, struct tls_context **out,
                     struct firn_diag *d)
{
    struct tls_context *c = NULL;
    int r = tls_context_new(role, &c);
    if (r)
        return firn__diag(d, r, 0, "out of memory");
    r = tls_context_load(c, f, d);
    if (r)
        tls_context_free(c);
    else
        *out = c;
    return r;
}

struct ssl_st *tls_context_ssl(struct tls_context *c, int *out_error)
{
    pthread_mutex_lock(&c->mutex);
    SSL_CTX *ctx = c->ctx;
    if (ctx)
        SSL_CTX_up_ref(ctx);
    pthread_mutex_unlock(&c->mutex);
    SSL *ssl = ctx ? SSL_new(ctx) : NULL; /* has a reference of its own from here on */
    SSL_CTX_free(ctx);
    *out_error = ctx ? FIRN_ENOMEM : FIRN_ENOENT;
    return ssl;
}
