/*
 * The byte pump of TLS connections. OpenSSL sees neither sockets nor buffers that outlive a call:
 * its BIO reads from the bytes that came in and writes to the buffer that goes out. OpenSSL's own
 * memory BIOs would keep their largest size for as long as the connection lives; with this one, and
 * SSL_MODE_RELEASE_BUFFERS, an idle connection holds the state of its keys and no buffer. A socket
 * BIO would write without MSG_NOSIGNAL, and a peer that went away would end the process.
 */
#include "wire/tls.h"
#include "platform/assert.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdlib.h>

enum { NAME_BYTES_MAX = 64 }; /* of a common name: what X.520 allows */

struct tls {
    SSL *ssl;
    const char *in; /* during a call: what the peer sent and OpenSSL has not seen */
    size_t in_len;
    struct buf *sealed; /* during a call: where output goes */
    bool ready, broken, said_bye;
    const char *why; /* it is broken: see tls_why() */
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

/* --- life --- */

static int open_side(struct tls_context *c, struct tls **out)
{
    int error = FIRN_ENOMEM;
    pthread_once(&bio_once, bio_method_make);
    struct tls *t = calloc(1, sizeof *t);
    SSL *ssl = tls_context_ssl(c, &error);
    BIO *bio = ssl && bio_method ? BIO_new(bio_method) : NULL;
    if (!t || !bio) {
        SSL_free(ssl);
        free(t);
        ERR_clear_error();
        return error;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl, bio, bio);
    t->ssl = ssl;
    *out = t;
    return 0;
}

int tls_accept(struct tls_context *c, struct tls **out)
{
    int r = open_side(c, out);
    if (r == 0)
        SSL_set_accept_state((*out)->ssl);
    return r;
}

int tls_connect(struct tls_context *c, const char *host, struct tls **out)
{
    struct tls *t;
    unsigned char address[16];
    bool literal = inet_pton(AF_INET, host, address) == 1 ||
                   inet_pton(AF_INET6, host, address) == 1;
    int r = open_side(c, &t);
    if (r)
        return r;
    SSL_set_connect_state(t->ssl);
    if (literal ? !X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(t->ssl), host)
                : !SSL_set1_host(t->ssl, host) || !SSL_set_tlsext_host_name(t->ssl, host)) {
        tls_free(t);
        ERR_clear_error();
        return FIRN_EINVAL;
    }
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

static int broken(struct tls *t)
{
    long verify = SSL_get_verify_result(t->ssl);
    unsigned long e = ERR_peek_last_error();
    t->broken = true;
    t->why = verify != X509_V_OK ? X509_verify_cert_error_string(verify)
             : e                 ? ERR_reason_error_string(e)
                                 : NULL;
    ERR_clear_error();
    return FIRN_EFORMAT;
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
        return broken(t);
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
        if (*len < cap)
            continue;
        firn_assert(t->in_len == 0 && SSL_pending(t->ssl) == 0, "cap=%zu in_len=%zu", cap,
                    t->in_len);
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
    firn_assert(result != 1 || n == len, "n=%zu len=%zu", n, len);
    return result == 1 ? 0 : broken(t);
}

void tls_bye(struct tls *t, struct buf *sealed)
{
    if (t->said_bye || t->broken || !t->ready)
        return;
    t->said_bye = true;
    ERR_clear_error();
    t->sealed = sealed;
    SSL_shutdown(t->ssl); /* an error would mean that the peer cannot be told */
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

const char *tls_why(const struct tls *t)
{
    return t->why ? t->why : "TLS was broken off";
}
