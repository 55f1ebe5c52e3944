/*
 * The socket never blocks; poll() waits, with what is left of the time. TLS works on memory: OpenSSL
 * would write to the socket without MSG_NOSIGNAL, and a server that went away must not end us.
 */
#include "store/link.h"
#include "id/diag.h"
#include "store/now.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { CHUNK_BYTES = 16 * 1024 };

struct link_tls {
    SSL_CTX *ctx;
};

struct link {
    int fd;
    SSL *ssl; /* NULL: plain */
    char peer[80];
};

static int broken(const struct link *l, struct firn_diag *d, const char *why)
{
    return firn__diag(d, FIRN_EIO, 0, "%s: %.100s", l->peer, why);
}

static int wait_for(const struct link *l, short events, int64_t until_ms, struct firn_diag *d)
{
    for (;;) {
        int64_t left = until_ms - store_now_ms();
        if (left <= 0)
            return broken(l, d, "did not answer in time");
        struct pollfd p = { .fd = l->fd, .events = events };
        int n = poll(&p, 1, left < INT_MAX ? (int)left : INT_MAX);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return broken(l, d, strerror(errno));
    }
}

static int plain_send(struct link *l, const char *p, size_t len, int64_t until_ms,
                      struct firn_diag *d)
{
    while (len > 0) {
        ssize_t n = send(l->fd, p, len, MSG_NOSIGNAL);
        if (n >= 0) {
            p += n;
            len -= (size_t)n;
        } else if (errno == EAGAIN) {
            int r = wait_for(l, POLLOUT, until_ms, d);
            if (r != 0)
                return r;
        } else if (errno != EINTR) {
            return broken(l, d, strerror(errno));
        }
    }
    return 0;
}

static int plain_recv(struct link *l, char *p, size_t cap, size_t *out_n, int64_t until_ms,
                      struct firn_diag *d)
{
    for (;;) {
        ssize_t n = recv(l->fd, p, cap, 0);
        if (n > 0) {
            *out_n = (size_t)n;
            return 0;
        }
        if (n == 0)
            return broken(l, d, "closed the connection");
        if (errno == EAGAIN) {
            int r = wait_for(l, POLLIN, until_ms, d);
            if (r != 0)
                return r;
        } else if (errno != EINTR) {
            return broken(l, d, strerror(errno));
        }
    }
}

/* ---- TLS ---- */

static int tls_error(const struct link *l, struct firn_diag *d)
{
    long verify = SSL_get_verify_result(l->ssl);
    unsigned long e = ERR_peek_last_error();
    const char *why = verify != X509_V_OK ? X509_verify_cert_error_string(verify)
                      : e                 ? ERR_reason_error_string(e)
                                          : NULL;
    ERR_clear_error();
    return firn__diag(d, FIRN_EIO, 0, "%s: TLS: %.100s", l->peer, why ? why : "broken off");
}

/* What OpenSSL wants to say goes out. */
static int tls_flush(struct link *l, int64_t until_ms, struct firn_diag *d)
{
    char some[CHUNK_BYTES];
    int n, r = 0;
    while (r == 0 && (n = BIO_read(SSL_get_wbio(l->ssl), some, sizeof some)) > 0)
        r = plain_send(l, some, (size_t)n, until_ms, d);
    return r;
}

/* After an SSL_ call that returned `said`: send what it made and get what it wants. 0: call it again, if
 * it did not succeed. */
static int tls_turn(struct link *l, int said, int64_t until_ms, struct firn_diag *d)
{
    int want = SSL_get_error(l->ssl, said);
    int r = tls_flush(l, until_ms, d);
    if (r != 0 || said > 0)
        return r;
    if (want != SSL_ERROR_WANT_READ)
        return tls_error(l, d);
    char some[CHUNK_BYTES];
    size_t n = 0;
    r = plain_recv(l, some, sizeof some, &n, until_ms, d);
    if (r == 0 && BIO_write(SSL_get_rbio(l->ssl), some, (int)n) != (int)n)
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    return r;
}

static int tls_start(struct link *l, const struct link_tls *tls, const char *host, int64_t until_ms,
                     struct firn_diag *d)
{
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    unsigned char address[16];
    bool literal = inet_pton(AF_INET, host, address) == 1 ||
                   inet_pton(AF_INET6, host, address) == 1;
    l->ssl = SSL_new(tls->ctx);
    if (!l->ssl || !in || !out) {
        BIO_free(in);
        BIO_free(out);
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    }
    SSL_set_bio(l->ssl, in, out);
    if (literal ? !X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(l->ssl), host)
                : !SSL_set1_host(l->ssl, host) || !SSL_set_tlsext_host_name(l->ssl, host))
        return tls_error(l, d);
    for (int said = 0; said != 1;) {
        ERR_clear_error();
        said = SSL_connect(l->ssl);
        int r = tls_turn(l, said, until_ms, d);
        if (r != 0)
            return r;
    }
    return 0;
}

int link_tls_new(const char *ca, const char *cert, const char *key, struct link_tls **out,
                 struct firn_diag *d)
{
    struct link_tls *t = calloc(1, sizeof *t);
    int r = 0;
    if (!t || !(t->ctx = SSL_CTX_new(TLS_client_method())))
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    else if (!SSL_CTX_set_min_proto_version(t->ctx, TLS1_2_VERSION))
        r = firn__diag(d, FIRN_ENOTSUP, 0, "OpenSSL has no TLS 1.2");
    else if (ca ? !SSL_CTX_load_verify_file(t->ctx, ca) : !SSL_CTX_set_default_verify_paths(t->ctx))
        r = firn__diag(d, FIRN_EIO, 0, "ca=%.120s is no readable PEM file of certificates",
                       ca ? ca : "(the system's)");
    else if (!cert != !key)
        r = firn__diag(d, FIRN_EFORMAT, 0, "cert= and key= belong together: give both or none");
    else if (cert && SSL_CTX_use_certificate_chain_file(t->ctx, cert) != 1)
        r = firn__diag(d, FIRN_EIO, 0, "cert=%.120s is no readable PEM certificate", cert);
    else if (key && SSL_CTX_use_PrivateKey_file(t->ctx, key, SSL_FILETYPE_PEM) != 1)
        r = firn__diag(d, FIRN_EIO, 0, "key=%.120s is no readable PEM key for cert=", key);
    ERR_clear_error();
    if (r != 0) {
        link_tls_free(t);
        return r;
    }
    SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
    *out = t;
    return 0;
}

void link_tls_free(struct link_tls *t)
{
    if (t)
        SSL_CTX_free(t->ctx);
    free(t);
}

/* ---- the link ---- */

static int connect_to(struct link *l, const struct addrinfo *a, int64_t until_ms,
                      struct firn_diag *d)
{
    int error = 0, on = 1;
    socklen_t size = sizeof error;
    l->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
    if (l->fd < 0)
        return broken(l, d, strerror(errno));
    (void)setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    int r = 0;
    if (connect(l->fd, a->ai_addr, a->ai_addrlen) != 0) {
        error = errno;
        if (error == EINPROGRESS || error == EINTR) {
            r = wait_for(l, POLLOUT, until_ms, d);
            if (r == 0 && getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
                error = errno;
        }
    }
    if (r == 0 && error != 0)
        r = broken(l, d, strerror(error));
    if (r != 0) {
        close(l->fd);
        l->fd = -1;
    }
    return r;
}

int link_open(const char *host, uint16_t port, const struct link_tls *tls, int64_t until_ms,
              struct link **out, struct firn_diag *d)
{
    struct addrinfo want = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *found, *a;
    struct link *l = calloc(1, sizeof *l);
    char service[8];
    if (!l)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    l->fd = -1;
    snprintf(l->peer, sizeof l->peer, "%.70s:%u", host, port);
    snprintf(service, sizeof service, "%u", port);
    int error = getaddrinfo(host, service, &want, &found);
    int r = error ? broken(l, d, gai_strerror(error)) : FIRN_EIO, left = 0;
    for (a = error ? NULL : found; a; a = a->ai_next)
        left++;
    for (a = error ? NULL : found; a && r != 0; a = a->ai_next, left--) {
        int64_t now = store_now_ms(); /* each address has its share of the time */
        r = connect_to(l, a, now + (until_ms - now) / left, d);
    }
    if (!error)
        freeaddrinfo(found);
    if (r == 0 && tls)
        r = tls_start(l, tls, host, until_ms, d);
    if (r != 0) {
        link_close(l);
        return r;
    }
    *out = l;
    return 0;
}

void link_close(struct link *l)
{
    if (!l)
        return;
    SSL_free(l->ssl);
    if (l->fd >= 0)
        close(l->fd);
    free(l);
}

int link_send(struct link *l, const char *p, size_t len, int64_t until_ms, struct firn_diag *d)
{
    if (!l->ssl)
        return plain_send(l, p, len, until_ms, d);
    while (len > 0) {
        int some = len < CHUNK_BYTES ? (int)len : CHUNK_BYTES;
        ERR_clear_error();
        int said = SSL_write(l->ssl, p, some);
        int r = tls_turn(l, said, until_ms, d);
        if (r != 0)
            return r;
        if (said > 0) {
            p += said;
            len -= (size_t)said;
        }
    }
    return 0;
}

int link_recv(struct link *l, char *p, size_t cap, size_t *out_n, int64_t until_ms,
              struct firn_diag *d)
{
    if (!l->ssl)
        return plain_recv(l, p, cap, out_n, until_ms, d);
    for (;;) {
        ERR_clear_error();
        int said = SSL_read(l->ssl, p, cap < INT_MAX ? (int)cap : INT_MAX);
        int r = tls_turn(l, said, until_ms, d);
        if (r != 0)
            return r;
        if (said > 0) {
            *out_n = (size_t)said;
            return 0;
        }
    }
}

bool link_quiet(const struct link *l)
{
    struct pollfd p = { .fd = l->fd, .events = POLLIN };
    return poll(&p, 1, 0) == 0;
}
