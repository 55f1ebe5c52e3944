/*
 * OpenSSL's own socket BIO writes in a way that may raise SIGPIPE, which is the program's, not ours; so there is
 * a BIO here that sends with MSG_NOSIGNAL.
 */
#include "client/channel.h"
#include "id/diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024, IN_MAX = 80 * 1024 * 1024 };

/* --- TLS --- */

static int bio_write(BIO *b, const char *p, int len)
{
    int fd = (int)(intptr_t)BIO_get_data(b);
    ssize_t n = send(fd, p, (size_t)len, MSG_NOSIGNAL);
    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_write(b);
    return (int)n;
}

static int bio_read(BIO *b, char *p, int len)
{
    int fd = (int)(intptr_t)BIO_get_data(b);
    ssize_t n = recv(fd, p, (size_t)len, 0);
    BIO_clear_retry_flags(b);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        BIO_set_retry_read(b);
    return (int)n;
}

static long bio_ctrl(BIO *b, int what, long n, void *p)
{
    (void)b;
    (void)n;
    (void)p;
    return what == BIO_CTRL_FLUSH; /* nothing is kept back */
}

static BIO_METHOD *quiet_method;

static void make_method(void)
{
    quiet_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "quiet socket");
    if (!quiet_method)
        return;
    BIO_meth_set_write(quiet_method, bio_write);
    BIO_meth_set_read(quiet_method, bio_read);
    BIO_meth_set_ctrl(quiet_method, bio_ctrl);
}

static const char *tls_error(void)
{
    unsigned long e = ERR_get_error();
    const char *text = e ? ERR_reason_error_string(e) : NULL;
    ERR_clear_error();
    return text ? text : "TLS failed";
}

int channel_tls_new(const struct client_opts *o, SSL_CTX **out, struct firn_diag *d)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    SSL_CTX *t = SSL_CTX_new(TLS_client_method());
    if (!t || !quiet_method)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    SSL_CTX_set_min_proto_version(t, TLS1_2_VERSION);
    SSL_CTX_set_mode(t, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(t, SSL_VERIFY_PEER, NULL);
    const char *bad = NULL;
    if (o->ca[0] ? !SSL_CTX_load_verify_locations(t, o->ca, NULL)
                 : !SSL_CTX_set_default_verify_paths(t))
        bad = o->ca;
    if (!bad && o->cert[0] && SSL_CTX_use_certificate_chain_file(t, o->cert) != 1)
        bad = o->cert;
    if (!bad && o->key[0] && SSL_CTX_use_PrivateKey_file(t, o->key, SSL_FILETYPE_PEM) != 1)
        bad = o->key;
    if (bad) {
        SSL_CTX_free(t);
        return firn__diag(d, FIRN_EIO, 0, "%.100s cannot be used: %s", bad, tls_error());
    }
    *out = t;
    return 0;
}

static int greet(struct channel *c, char why[WHY_BUF])
{
    int r = SSL_do_handshake(c->ssl);
    if (r == 1) {
        c->state = CHANNEL_OPEN;
        return 0;
    }
    int e = SSL_get_error(c->ssl, r);
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
        c->wants = e == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return FIRN_EAGAIN;
    }
    long verify = SSL_get_verify_result(c->ssl);
    snprintf(why, WHY_BUF, "TLS: %s",
             verify != X509_V_OK ? X509_verify_cert_error_string(verify) : tls_error());
    return FIRN_EIO;
}

static int begin_tls(struct channel *c, char why[WHY_BUF])
{
    unsigned char address[16];
    bool numeric = inet_pton(AF_INET, c->host, address) == 1 ||
                   inet_pton(AF_INET6, c->host, address) == 1;
    BIO *b = BIO_new(quiet_method);
    if (!b)
        return FIRN_ENOMEM;
    BIO_set_data(b, (void *)(intptr_t)c->fd);
    BIO_set_init(b, 1);
    SSL_set_bio(c->ssl, b, b);
    SSL_set_connect_state(c->ssl);
    X509_VERIFY_PARAM *v = SSL_get0_param(c->ssl);
    int ok = numeric ? X509_VERIFY_PARAM_set1_ip_asc(v, c->host)
                     : SSL_set1_host(c->ssl, c->host) && SSL_set_tlsext_host_name(c->ssl, c->host);
    if (!ok) {
        snprintf(why, WHY_BUF, "TLS: the name cannot be checked");
        return FIRN_EIO;
    }
    c->state = CHANNEL_GREETING;
    return greet(c, why);
}

/* --- connecting --- */

/* Try the addresses from c->at on. 0: connected, FIRN_EAGAIN: on the way. */
static int connect_next(struct channel *c, char why[WHY_BUF])
{
    for (; c->at; c->at = c->at->ai_next) {
        if (c->fd >= 0)
            close(c->fd);
        c->fd = socket(c->at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (c->fd < 0) {
            snprintf(why, WHY_BUF, "no socket: %s", strerror(errno));
            continue;
        }
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        if (connect(c->fd, c->at->ai_addr, c->at->ai_addrlen) == 0)
            return 0;
        if (errno == EINPROGRESS) {
            c->wants = POLLOUT;
            return FIRN_EAGAIN;
        }
        snprintf(why, WHY_BUF, "%s", strerror(errno));
    }
    return FIRN_EIO;
}

static int connected(struct channel *c, char why[WHY_BUF])
{
    freeaddrinfo(c->found);
    c->found = c->at = NULL;
    if (c->ssl)
        return begin_tls(c, why);
    c->state = CHANNEL_OPEN;
    return 0;
}

int channel_ready(struct channel *c, char why[WHY_BUF])
{
    if (c->state == CHANNEL_OPEN)
        return 0;
    if (c->state == CHANNEL_GREETING)
        return greet(c, why);
    struct pollfd p = { c->fd, POLLOUT, 0 };
    if (poll(&p, 1, 0) <= 0)
        return FIRN_EAGAIN;
    int e = 0;
    socklen_t len = sizeof e;
    getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &e, &len);
    if (e == 0)
        return connected(c, why);
    snprintf(why, WHY_BUF, "%s", strerror(e));
    c->at = c->at->ai_next;
    int r = connect_next(c, why);
    return r ? r : connected(c, why);
}

int channel_open(const struct server_name *to, SSL_CTX *tls, struct channel **out,
                 char why[WHY_BUF])
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
    char port[8];
    struct channel *c = calloc(1, sizeof *c);
    if (!c)
        return FIRN_ENOMEM;
    c->fd = c->watch = -1;
    snprintf(c->host, sizeof c->host, "%s", to->host);
    snprintf(port, sizeof port, "%u", to->port);
    int r = getaddrinfo(to->host, port, &hints, &c->found);
    if (r) {
        snprintf(why, WHY_BUF, "the name is not known: %s", gai_strerror(r));
        free(c);
        return FIRN_EIO;
    }
    c->at = c->found;
    if (tls && !(c->ssl = SSL_new(tls))) {
        channel_close(c);
        return FIRN_ENOMEM;
    }
    r = connect_next(c, why);
    if (r == 0)
        r = connected(c, why);
    if (r && r != FIRN_EAGAIN) {
        channel_close(c);
        return r;
    }
    *out = c;
    return 0;
}

void channel_close(struct channel *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    if (c->found)
        freeaddrinfo(c->found);
    if (c->watch >= 0)
        epoll_ctl(c->watch, EPOLL_CTL_DEL, c->fd, NULL);
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    free(c);
}

/* --- bytes --- */

static int tls_waits(struct channel *c, int r, char why[WHY_BUF])
{
    int e = SSL_get_error(c->ssl, r);
    if (e == SSL_ERROR_WANT_READ || e == SSL_ERROR_WANT_WRITE) {
        c->wants = e == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return FIRN_EAGAIN;
    }
    if (e == SSL_ERROR_ZERO_RETURN)
        return FIRN_ECLOSED;
    snprintf(why, WHY_BUF, "TLS: %s", tls_error());
    return FIRN_EIO;
}

long channel_send(struct channel *c, const char *p, size_t len, char why[WHY_BUF])
{
    if (c->ssl) {
        ERR_clear_error();
        int r = SSL_write(c->ssl, p, (int)len);
        return r > 0 ? r : tls_waits(c, r, why);
    }
    ssize_t n = send(c->fd, p, len, MSG_NOSIGNAL);
    if (n >= 0)
        return n;
    c->wants = POLLOUT;
    if (errno == EAGAIN || errno == EINTR)
        return FIRN_EAGAIN;
    snprintf(why, WHY_BUF, "%s", strerror(errno));
    return FIRN_EIO;
}

int channel_recv(struct channel *c, char why[WHY_BUF])
{
    if (c->in_cap - c->in_len < READ_BYTES) {
        size_t cap = c->in_cap ? c->in_cap * 2 : READ_BYTES * 2;
        char *grown = cap <= IN_MAX * (size_t)2 ? realloc(c->in, cap) : NULL;
        if (!grown)
            return FIRN_ENOMEM;
        c->in = grown;
        c->in_cap = cap;
    }
    size_t room = c->in_cap - c->in_len;
    ssize_t n;
    c->wants = POLLIN;
    if (c->ssl) {
        ERR_clear_error();
        n = SSL_read(c->ssl, c->in + c->in_len, room < INT32_MAX ? (int)room : INT32_MAX);
        if (n <= 0)
            return tls_waits(c, (int)n, why);
    } else {
        n = recv(c->fd, c->in + c->in_len, room, 0);
        if (n == 0)
            return FIRN_ECLOSED;
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return FIRN_EAGAIN;
        if (n < 0) {
            snprintf(why, WHY_BUF, "%s", strerror(errno));
            return FIRN_EIO;
        }
    }
    c->in_len += (size_t)n;
    return 0;
}

bool channel_is_quiet(struct channel *c)
{
    struct pollfd p = { c->fd, POLLIN, 0 };
    if (poll(&p, 1, 0) == 0)
        return true;
    if (!c->ssl || p.revents != POLLIN)
        return false;
    char byte, why[WHY_BUF]; /* TLS 1.3 sends tickets when it likes */
    int r = SSL_peek(c->ssl, &byte, 1);
    return r <= 0 && tls_waits(c, r, why) == FIRN_EAGAIN;
}
