/*
 * The HTTP client: one exchange connects if there is no connection, sends, and reads until the
 * answer is complete. An exchange that fails is tried again after a pause, on a new connection. A
 * kept connection that the server has closed in the meantime is no failure: it is opened again at
 * once.
 */
#include "cli/http_client.h"
#include "wire/http_response.h"
#include "wire/json_read.h"
#include "wire/link.h"
#include "platform/mono.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 16 * 1024, STALE = 1 };

__attribute__((format(printf, 3, 4))) static int fail(struct http_client *c, int error,
                                                      const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, args);
    va_end(args);
    return error;
}

static void hang_up(struct http_client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    link_close(c->link);
    c->link = NULL;
    c->len = c->taken = 0;
}

int http_client_init(struct http_client *c, const char *url)
{
    return http_client_init_tls(c, url, NULL);
}

int http_client_init_tls(struct http_client *c, const char *url, struct tls_context *tls)
{
    *c = (struct http_client){ .fd = -1, .tls = tls };
    const char *wrong = url_parse(url, &c->url);
    if (!wrong && c->url.https && !tls)
        wrong = URL_NO_HTTPS;
    if (wrong)
        return fail(c, FIRN_EFORMAT, "%s", wrong);
    struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
    int r = c->url.https ? 0 : getaddrinfo(c->url.host, c->url.port, &hints, &c->where);
    if (r != 0)
        return fail(c, FIRN_ENOENT, "%s", gai_strerror(r));
    c->room = READ_BYTES;
    c->buf = malloc(c->room);
    return c->buf ? 0 : fail(c, FIRN_ENOMEM, "out of memory");
}

void http_client_done(struct http_client *c)
{
    if (!c->buf && !c->where)
        return; /* 0 would be standard input */
    hang_up(c);
    if (c->where)
        freeaddrinfo(c->where);
    free(c->buf);
    *c = (struct http_client){ .fd = -1 };
}

/* Wait for `events` until the deadline. */
static int wait_for(struct http_client *c, short events, uint64_t deadline_ns, const char *what)
{
    for (;;) {
        uint64_t now = mono_ns();
        if (now >= deadline_ns)
            return fail(c, FIRN_EIO, "%s within %d s", what, HTTP_CLIENT_TIMEOUT_MS / 1000);
        struct pollfd p = { .fd = c->fd, .events = events };
        int r = poll(&p, 1, (int)((deadline_ns - now + 999999) / 1000000));
        if (r > 0)
            return 0;
        if (r < 0 && errno != EINTR)
            return fail(c, FIRN_EIO, "%s", strerror(errno));
    }
}

static int try_address(struct http_client *c, const struct addrinfo *a, uint64_t deadline_ns)
{
    c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        return fail(c, FIRN_EIO, "%s", strerror(errno));
    int on = 1, error = 0, r = 0;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(c->fd, a->ai_addr, a->ai_addrlen) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        socklen_t len = sizeof error;
        r = wait_for(c, POLLOUT, deadline_ns, "no connection");
        error = 0;
        if (r == 0)
            getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    }
    if (r == 0 && error)
        r = fail(c, FIRN_EIO, "%s", strerror(error));
    if (r != 0)
        hang_up(c);
    return r;
}

/* The reason of a link, whose server the caller names. */
static int link_failed(struct http_client *c, int error, const struct firn_diag *d)
{
    size_t len = strlen(c->url.host);
    const char *text = d->text;
    if (strncmp(text, c->url.host, len) == 0 && text[len] == ':' && strstr(text, ": "))
        text = strstr(text, ": ") + 2;
    return fail(c, error, "%s", text);
}

static int64_t until_ms(uint64_t deadline_ns)
{
    return (int64_t)(deadline_ns / 1000000);
}

static int dial(struct http_client *c, uint64_t deadline_ns)
{
    int r = FIRN_EIO;
    if (c->url.https) {
        struct firn_diag d = { 0 };
        uint16_t port = (uint16_t)strtoul(c->url.port, NULL, 10);
        r = link_open(c->url.host, port, c->tls, until_ms(deadline_ns), &c->link, &d);
        return r ? link_failed(c, r, &d) : 0;
    }
    for (const struct addrinfo *a = c->where; a; a = a->ai_next)
        if ((r = try_address(c, a, deadline_ns)) == 0)
            return 0;
    return r;
}

/* A link says that it failed, and not how: before the deadline the server has ended it. */
static int link_ended(struct http_client *c, int error, const struct firn_diag *d,
                      uint64_t deadline_ns)
{
    link_failed(c, error, d);
    return error == FIRN_EIO && mono_ns() < deadline_ns ? STALE : error;
}

static int send_request(struct http_client *c, uint64_t deadline_ns)
{
    char text[URL_TARGET_MAX + URL_HOST_MAX + 2048];
    size_t body = c->post ? strlen(c->post) : 0;
    int n = snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n",
                     c->post ? "POST" : "GET", c->url.target, c->url.authority,
                     c->accept ? c->accept : "application/json");
    if (c->token)
        n += snprintf(text + n, sizeof text - (size_t)n, "Authorization: Bearer %.512s\r\n",
                      c->token);
    if (c->post)
        n += snprintf(text + n, sizeof text - (size_t)n,
                      "Content-Type: application/json\r\nContent-Length: %zu\r\n", body);
    n += snprintf(text + n, sizeof text - (size_t)n, "\r\n%.1024s", c->post ? c->post : "");
    size_t len = (size_t)n;
    if (c->link) {
        struct firn_diag d = { 0 };
        int r = link_send(c->link, text, len, until_ms(deadline_ns), &d);
        return r ? link_ended(c, r, &d, deadline_ns) : 0;
    }
    for (size_t at = 0; at < len;) {
        ssize_t sent = send(c->fd, text + at, len - at, MSG_NOSIGNAL);
        if (sent >= 0) {
            at += (size_t)sent;
        } else if (errno == EAGAIN) {
            int r = wait_for(c, POLLOUT, deadline_ns, "the request could not be sent");
            if (r != 0)
                return r;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return STALE;
        } else if (errno != EINTR) {
            return fail(c, FIRN_EIO, "%s", strerror(errno));
        }
    }
    return 0;
}

/* More bytes of the answer: 0, STALE at the end of the stream, or an error. */
static int more(struct http_client *c, uint64_t deadline_ns)
{
    if (c->room - c->len < READ_BYTES) {
        if (c->room > (size_t)HTTP_RESPONSE_BODY_MAX + HTTP_RESPONSE_HEAD_MAX)
            return fail(c, FIRN_EFORMAT, "the answer is too long");
        char *bigger = realloc(c->buf, 2 * c->room);
        if (!bigger)
            return fail(c, FIRN_ENOMEM, "out of memory");
        c->buf = bigger;
        c->room *= 2;
    }
    if (c->link) {
        struct firn_diag d = { 0 };
        size_t n = 0;
        int r = link_recv(c->link, c->buf + c->len, c->room - c->len, &n, until_ms(deadline_ns),
                          &d);
        c->len += n;
        return r ? link_ended(c, r, &d, deadline_ns) : 0;
    }
    for (;;) {
        ssize_t n = recv(c->fd, c->buf + c->len, c->room - c->len, 0);
        if (n > 0) {
            c->len += (size_t)n;
            return 0;
        }
        if (n == 0 || errno == ECONNRESET)
            return STALE;
        if (errno != EAGAIN && errno != EINTR)
            return fail(c, FIRN_EIO, "%s", strerror(errno));
        int r = wait_for(c, POLLIN, deadline_ns, "no answer");
        if (r != 0)
            return r;
    }
}

/* Reads one complete answer; STALE only if no byte of it arrived. */
static int read_answer(struct http_client *c, uint64_t deadline_ns, struct http_response *out)
{
    for (bool eof = false;;) {
        ssize_t n = http_response_read(c->buf, c->len, eof, out);
        if (n >= 0) {
            c->taken = (size_t)n;
            return 0;
        }
        if (n != FIRN_EAGAIN)
            return fail(c, FIRN_EFORMAT, "the answer is not HTTP/1.1");
        if (eof)
            return c->len == 0 ? STALE : fail(c, FIRN_EIO, "the connection ended within an answer");
        int r = more(c, deadline_ns);
        if (r == STALE)
            eof = true;
        else if (r != 0)
            return r;
    }
}

static void take_detail(void *user, const char *path, const char *value, bool quoted)
{
    struct http_client *c = user;
    if (!quoted || strcmp(path, "detail") != 0)
        return;
    snprintf(c->why, sizeof c->why, "%s", value);
    for (char *p = c->why; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = ' '; /* a terminal shows it on one line */
}

/* The detail of a problem+json, as firnd sends it. */
static int refused(struct http_client *c, unsigned status, const char *body, size_t len)
{
    int error = status == 503 ? FIRN_EAGAIN : FIRN_ENOTSUP;
    c->why[0] = '\0';
    if (json_each(body, len, take_detail, c) == 0 && c->why[0])
        return error;
    return fail(c, error, "status %u", status);
}

static int exchange(struct http_client *c, const char **out_body, size_t *out_len)
{
    struct http_response got;
    int r = STALE;
    if (c->taken < c->len)
        hang_up(c); /* more bytes than the answer has: the connection cannot be trusted */
    if (c->link && !link_quiet(c->link))
        hang_up(c);
    c->len = c->taken = 0;
    for (bool kept = c->fd >= 0 || c->link; r == STALE; kept = false) {
        uint64_t start = mono_ns();
        uint64_t timeout_ms = c->timeout_ms ? c->timeout_ms : HTTP_CLIENT_TIMEOUT_MS;
        uint64_t deadline_ns = start + timeout_ms * UINT64_C(1000000);
        if (c->fd < 0 && !c->link && (r = dial(c, deadline_ns)) != 0)
            return r;
        if ((r = send_request(c, deadline_ns)) == 0)
            r = read_answer(c, deadline_ns, &got);
        c->answer_ns = mono_ns() - start;
        if (r != 0)
            hang_up(c);
        if (r == STALE && !kept && c->url.https) /* in TLS 1.3 a refused certificate, too */
            return FIRN_EIO;
        if (r == STALE && !kept)
            return fail(c, FIRN_EIO, "the server closed the connection without an answer");
    }
    if (r != 0)
        return r;
    if (got.close) {
        size_t taken = c->taken; /* the body stays in the buffer */
        hang_up(c);
        c->len = c->taken = taken;
    }
    if (got.status != 200 && !(c->post && got.status == 201))
        return refused(c, got.status, got.body.p, got.body.len);
    *out_body = got.body.p;
    *out_len = got.body.len;
    return 0;
}

int http_client_get(struct http_client *c, const char **out_body, size_t *out_len)
{
    int r;
    for (c->retries = 0;; c->retries++) {
        r = exchange(c, out_body, out_len);
        if ((r != FIRN_EIO && r != FIRN_EAGAIN) || c->once || c->retries == HTTP_CLIENT_RETRIES)
            break;
        struct timespec pause = { .tv_sec = HTTP_CLIENT_PAUSE_MS / 1000 };
        while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
            ;
    }
    return r == FIRN_EAGAIN ? FIRN_ENOTSUP : r;
}

int http_client_get_once(struct http_client *c, const char **out_body, size_t *out_len)
{
    return http_client_post(c, out_body, out_len);
}

int http_client_post(struct http_client *c, const char **out_body, size_t *out_len)
{
    c->retries = 0;
    int r = exchange(c, out_body, out_len);
    return r == FIRN_EAGAIN ? FIRN_ENOTSUP : r;
}
