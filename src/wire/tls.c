/*
 * OpenSSL sees neither sockets nor buffers that outlive a call: its BIO reads from the bytes that came
 * in and writes to the buffer that goes out. OpenSSL's own memory BIOs would keep their largest size for
 * as long as the connection lives; with this one, and SSL_MODE_RELEASE_BUFFERS, an idle connection
 * holds the state of its keys and no buffer.
 *
 * Sessions resume by tickets only. A cache on this side would be a lock and memory for every client
 * that ever came; the keys of the tickets go with their SSL_CTX, so nothing resumes across a reload,
 * when the authority that clients are checked against may be another one.
 */
#include "wire/tls.h"
#include "id/diag.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { NAME_BYTES_MAX = 64 }; /* of a common name: what X.520 allows */

/* Forward secrecy and authenticated encryption, also for 1.2; those of 1.3 are all like that. */
#define CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

struct tls_server {
    pthread_mutex_t mutex; /* guards `ctx`, for the moment of taking a reference */
    SSL_CTX *ctx;
    atomic_bool on;
};

struct tls {
    SSL *ssl;
    const char *in; /* during a call: what the peer sent and OpenSSL has not seen */
    size_t in_len;
    struct buf *sealed; /* during a call: where output goes */
    bool ready, broken, said_bye;
    char *name;
};

/* --- the BIO --- */

static int bio_read(BIO *b, char *to, size_t n, size_t *done)
{
    struct tls *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    if (t->in_len == 0) {
        BIO_set_retry_read(b);
        return 0;
    }
    *done = n < t->in_len ? n : t->in_len;
    memcpy(to, t->in, *done);
    t->in += *done;
    t->in_len -= *done;
    return 1;
}

/* Never full: a buffer that fails drops its bytes and says so to the owner in the end. */
static int bio_write(BIO *b, const char *p, size_t n, size_t *done)
{
    struct tls *t = BIO_get_data(b);
    BIO_clear_retry_flags(b);
    buf_add(t->sealed, p, n);
    *done = n;
    return 1;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
    (void)b;
    (void)num;
    (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;
static pthread_once_t bio_once = PTHREAD_ONCE_INIT;

static void bio_method_make(void) /* one for the process, for ever */
{
    BIO_METHOD *m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "firn");
    if (m && BIO_meth_set_read_ex(m, bio_read) && BIO_meth_set_write_ex(m, bio_write) &&
        BIO_meth_set_ctrl(m, bio_ctrl))
        bio_method = m;
    else
        BIO_meth_free(m);
}

/* --- the server's side of it --- */

int tls_server_new(struct tls_server **out)
{
    struct tls_server *s = calloc(1, sizeof *s);
    pthread_once(&bio_once, bio_method_make);
    if (!s || !bio_method || pthread_mutex_init(&s->mutex, NULL) != 0) {
        free(s);
        return FIRN_ENOMEM;
    }
    *out = s;
    return 0;
}

void tls_server_free(struct tls_server *s)
{
    if (!s)
        return;
    SSL_CTX_free(s->ctx);
    pthread_mutex_destroy(&s->mutex);
    free(s);
}

bool tls_server_on(const struct tls_server *s)
{
    return s && atomic_load_explicit(&s->on, memory_order_relaxed);
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

/* A client that names protocols must name ours (RFC 7301); Redis clients name none. */
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

static int complain(struct firn_diag *d, const char *what, const char *file)
{
    size_t len = strlen(file);
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    if (len > 80) /* its end says more */
        file += len - 80;
    return firn__diag(d, FIRN_EIO, 0, "%s %s cannot be used: %s", what, file,
                      why ? why : "the file is not what it should be");
}

static bool ctx_options(SSL_CTX *ctx)
{
    static const unsigned char id[] = "firnd"; /* without one, nothing resumes with client_ca */
    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_alpn_select_cb(ctx, choose_alpn, NULL);
    SSL_CTX_set_default_passwd_cb(ctx, no_password);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) &&
           SSL_CTX_set_cipher_list(ctx, CIPHERS_1_2) &&
           SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
}

static int ctx_files(SSL_CTX *ctx, const struct tls_files *f, struct firn_diag *d)
{
    if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
        return complain(d, "the certificate", f->cert);
    if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_check_private_key(ctx) != 1)
        return complain(d, "the private key", f->key);
    if (!f->client_ca)
        return 0;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(f->client_ca);
    if (!names)
        return complain(d, "the authority of client certificates", f->client_ca);
    SSL_CTX_set_client_CA_list(ctx, names); /* transferred */
    if (SSL_CTX_load_verify_file(ctx, f->client_ca) != 1)
        return complain(d, "the authority of client certificates", f->client_ca);
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return 0;
}

int tls_server_load(struct tls_server *s, const struct tls_files *f, struct firn_diag *d)
{
    SSL_CTX *ctx = NULL;
    if (f->cert) {
        ERR_clear_error();
        ctx = SSL_CTX_new(TLS_server_method());
        int r = !ctx || !ctx_options(ctx) ? FIRN_ENOMEM : ctx_files(ctx, f, d);
        ERR_clear_error();
        if (r) {
            SSL_CTX_free(ctx);
            return r;
        }
    }
    pthread_mutex_lock(&s->mutex);
    SSL_CTX *old = s->ctx;
    s->ctx = ctx;
    atomic_store_explicit(&s->on, ctx != NULL, memory_order_relaxed);
    pthread_mutex_unlock(&s->mutex);
    SSL_CTX_free(old); /* lives on while connections have it */
    return 0;
}

/* --- a connection --- */

int tls_open(struct tls_server *s, struct tls **out)
{
    pthread_mutex_lock(&s->mutex);
    SSL_CTX *ctx = s->ctx;
    if (ctx)
        SSL_CTX_up_ref(ctx);
    pthread_mutex_unlock(&s->mutex);
    if (!ctx)
        return FIRN_ENOENT;

    struct tls *t = calloc(1, sizeof *t);
    BIO *bio = BIO_new(bio_method);
    SSL *ssl = SSL_new(ctx); /* has a reference of its own from here on */
    SSL_CTX_free(ctx);
    if (!t || !bio || !ssl) {
        SSL_free(ssl);
        BIO_free(bio);
        free(t);
        ERR_clear_error();
        return FIRN_ENOMEM;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    SSL_set_accept_state(ssl);
    t->ssl = ssl;
    *out = t;
    return 0;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl);
    OPENSSL_free(t->name);
    free(t);
}

/* NULL unless there is exactly one, of visible characters: two leave open whom to believe, and the
 * name goes into logs. */
static char *common_name(const X509 *cert)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0)
        return NULL;
    unsigned char *name;
    int len = ASN1_STRING_to_UTF8(&name,
                                  X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    if (len < 0)
        return NULL;
    bool ok = len > 0 && len <= NAME_BYTES_MAX;
    for (int i = 0; i < len && ok; i++)
        ok = name[i] >= ' ' && name[i] != 0x7f;
    if (ok)
        return (char *)name; /* with a NUL at the end, and none before */
    OPENSSL_free(name);
    return NULL;
}

static void handshake_over(struct tls *t)
{
    t->ready = true;
    X509 *cert = SSL_get1_peer_certificate(t->ssl); /* of a resumed session too */
    if (!cert)
        return;
    if (SSL_get_verify_result(t->ssl) == X509_V_OK)
        t->name = common_name(cert);
    X509_free(cert);
}

/* What a call of OpenSSL that did not succeed means. */
static int outcome(struct tls *t, int result)
{
    switch (SSL_get_error(t->ssl, result)) {
    case SSL_ERROR_WANT_READ:
        return FIRN_EAGAIN;
    case SSL_ERROR_ZERO_RETURN:
        return FIRN_ECLOSED;
    default:
        t->broken = true;
        ERR_clear_error();
        return FIRN_EFORMAT;
    }
}

static int take_in(struct tls *t, char *plain, size_t cap, size_t *len)
{
    if (!t->ready) {
        int result = SSL_do_handshake(t->ssl);
        if (result != 1)
            return outcome(t, result);
        handshake_over(t);
    }
    for (;;) {
        size_t n = 0;
        int result = SSL_read_ex(t->ssl, plain + *len, cap - *len, &n);
        if (result != 1)
            return outcome(t, result);
        *len += n;
        if (*len == cap && (t->in_len > 0 || SSL_pending(t->ssl) > 0)) {
            t->broken = true; /* cannot be, by TLS_PLAIN_BYTES */
            return FIRN_EFORMAT;
        }
        if (*len == cap)
            return 0;
    }
}

int tls_read(struct tls *t, const char *in, size_t in_len, char *plain, size_t cap, size_t *out_len,
             struct buf *sealed)
{
    size_t len = 0;
    if (t->broken)
        return FIRN_EFORMAT;
    if (cap < TLS_PLAIN_BYTES || in_len > TLS_READ_BYTES)
        return FIRN_EINVAL;
    ERR_clear_error();
    t->in = in;
    t->in_len = in_len;
    t->sealed = sealed;
    int r = take_in(t, plain, cap, &len);
    t->in = NULL;
    t->in_len = 0;
    t->sealed = NULL;
    if (r == FIRN_EFORMAT)
        return r;
    *out_len = len;
    return r == FIRN_ECLOSED ? r : 0;
}

int tls_write(struct tls *t, const char *p, size_t len, struct buf *sealed)
{
    size_t n;
    if (t->broken)
        return FIRN_EFORMAT;
    if (!t->ready || t->said_bye)
        return FIRN_EINVAL;
    if (len == 0)
        return 0;
    ERR_clear_error();
    t->sealed = sealed;
    int result = SSL_write_ex(t->ssl, p, len, &n); /* all of it: the BIO takes everything */
    t->sealed = NULL;
    return result == 1 ? 0 : (outcome(t, result), t->broken = true, FIRN_EFORMAT);
}

void tls_bye(struct tls *t, struct buf *sealed)
{
    if (t->said_bye || t->broken || !t->ready)
        return;
    t->said_bye = true;
    ERR_clear_error();
    t->sealed = sealed;
    SSL_shutdown(t->ssl); /* -1 would mean that nobody hears it */
    t->sealed = NULL;
    ERR_clear_error();
}

bool tls_ready(const struct tls *t)
{
    return t->ready;
}

const char *tls_peer_name(const struct tls *t)
{
    return t->name;
}
