/* The exporter against a collector on loopback: what it sends, when it tries again, what it counts,
 * and how it ends. Nothing here depends on how long anything takes. */
#include "t.h"

#include "daemon/log.h"
#include "daemon/span_export.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Answers request number i with the statuses in turn, the last one for all that follow. */
struct collector {
    int fd;
    uint16_t port;
    const unsigned *status;
    const char *body; /* of an answer with 200 */
    bool hang_up;     /* after each answer, without saying so */
    const char *head; /* of every answer instead, and 64 KiB of body behind it if it is `large` */
    bool large;
    pthread_t thread;
    atomic_uint requests, connections, spans;
    atomic_bool bad; /* a request was not as it should be */
};

static unsigned count_spans(const char *body)
{
    unsigned n = 0;
    for (const char *p = body; (p = strstr(p, "\"spanId\"")); p += 8)
        n++;
    return n;
}

static void answer(struct collector *c, int fd, const char *body)
{
    unsigned n = atomic_fetch_add(&c->requests, 1), status = c->status[0];
    for (unsigned i = 0; i <= n && c->status[i]; i++)
        status = c->status[i];
    if (status == 200)
        atomic_fetch_add(&c->spans, count_spans(body));
    char out[512];
    if (c->head) {
        static const char some[1024];
        T_EQ(send(fd, c->head, strlen(c->head), MSG_NOSIGNAL), (ssize_t)strlen(c->head));
        for (int i = 0; i < 64 && c->large; i++)
            if (send(fd, some, sizeof some, MSG_NOSIGNAL) < 0)
                break; /* it has seen enough */
        return;
    }
    int len = snprintf(out, sizeof out,
                       "HTTP/1.1 %u X\r\nContent-Type: application/json\r\n%s"
                       "Content-Length: %zu\r\n\r\n%s",
                       status, status == 503 ? "Retry-After: 1\r\n" : "",
                       status == 200 ? strlen(c->body) : 0, status == 200 ? c->body : "");
    T_EQ(send(fd, out, (size_t)len, MSG_NOSIGNAL), len);
}

/* A whole request at the start of `in`; its body, or NULL when it is not whole. */
static const char *whole(struct collector *c, const char *in, size_t len)
{
    static const char line[] = "POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:";
    const char *end = strstr(in, "\r\n\r\n"), *length = strstr(in, "\r\nContent-Length: ");
    if (!end)
        return NULL;
    if (strncmp(in, line, sizeof line - 1) != 0 || !length || length > end ||
        !strstr(in, "\r\nContent-Type: application/json\r\n"))
        atomic_store(&c->bad, true);
    size_t body = length ? strtoul(length + 18, NULL, 10) : 0, have = len - (size_t)(end + 4 - in);
    if (have > body)
        atomic_store(&c->bad, true);
    return have < body ? NULL : end + 4;
}

static void talk(struct collector *c, int fd)
{
    static char in[1 << 20];
    size_t len = 0;
    for (ssize_t n; (n = recv(fd, in + len, sizeof in - 1 - len, 0)) > 0;) {
        len += (size_t)n;
        in[len] = '\0';
        const char *body = whole(c, in, len);
        if (!body)
            continue;
        answer(c, fd, body);
        len = 0;
        if (c->hang_up)
            return;
    }
}

static void *serve(void *arg)
{
    struct collector *c = arg;
    for (int fd; (fd = accept(c->fd, NULL, NULL)) >= 0; close(fd)) {
        atomic_fetch_add(&c->connections, 1);
        talk(c, fd);
    }
    return NULL;
}

static void listen_on(struct collector *c)
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t size = sizeof a;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_OK(c->fd >= 0 && bind(c->fd, (struct sockaddr *)&a, size) == 0 && listen(c->fd, 8) == 0);
    T_EQ(getsockname(c->fd, (struct sockaddr *)&a, &size), 0);
    c->port = ntohs(a.sin_port);
}

static void collector_start(struct collector *c)
{
    listen_on(c);
    if (!c->body)
        c->body = "{\"partialSuccess\":{}}";
    T_EQ(pthread_create(&c->thread, NULL, serve, c), 0);
}

static void collector_end(struct collector *c)
{
    shutdown(c->fd, SHUT_RDWR);
    pthread_join(c->thread, NULL);
    close(c->fd);
    T_OK(!atomic_load(&c->bad));
}

static struct span_export *start(uint16_t port, uint32_t queue)
{
    char endpoint[64];
    struct span_export *e = NULL;
    struct firn_diag d = { 0, "" };
    snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", port);
    struct span_export_opts o = { .endpoint = endpoint, .queue = queue, .timeout_ms = 60000 };
    o.resource = (struct span_resource){ "test", "1", "i", "n" };
    log_to(open("/dev/null", O_WRONLY | O_CLOEXEC));
    T_EQ(span_export_start(&o, &e, &d), 0, "%s", d.text);
    return e;
}

static void give(struct span_export *e, unsigned n)
{
    struct span s;
    for (unsigned i = 0; i < n; i++) {
        span_init_root(&s, SPAN_SERVER);
        span_number(&s, "i", i);
        (void)span_export_add(e, &s);
    }
}

static void wait_for(const _Atomic uint64_t *count, uint64_t value)
{
    for (int i = 0; i < 120 * 1000 && atomic_load(count) < value; i++)
        usleep(1000);
    T_EQ(atomic_load(count), value);
}

T_TEST(spans_arrive)
{
    static const unsigned status[] = { 200, 0 };
    struct collector c = { .status = status };
    collector_start(&c);
    struct span_export *e = start(c.port, 4096);
    const struct span_export_stats *s = span_export_stats(e);
    give(e, 3);
    wait_for(&s->exported, 3);
    give(e, 1000); /* several batches */
    wait_for(&s->exported, 1003);
    T_EQ(atomic_load(&c.connections), 1, "the connection stays open");
    T_EQ(atomic_load(&s->dropped) + atomic_load(&s->failed), 0);
    T_EQ(span_export_waiting(e), 0);
    give(e, 300);
    span_export_stop(e);
    T_EQ(atomic_load(&c.spans), 1303, "what waited was sent at the end");
    collector_end(&c);
}

T_TEST(spans_are_sent_again)
{
    static const unsigned status[] = { 503, 429, 502, 200, 504, 200, 0 };
    struct collector c = { .status = status, .hang_up = true };
    collector_start(&c);
    struct span_export *e = start(c.port, 64);
    const struct span_export_stats *s = span_export_stats(e);
    give(e, 5);
    wait_for(&s->exported, 5);
    give(e, 5);
    wait_for(&s->exported, 10);
    T_OK(atomic_load(&c.requests) >= 6, "a connection that was closed costs nothing");
    T_EQ(atomic_load(&c.spans), 10);
    T_EQ(atomic_load(&s->failed), 0);
    span_export_stop(e);
    collector_end(&c);
}

T_TEST(spans_that_are_refused)
{
    static const unsigned status[] = { 400, 200, 0 };
    struct collector c = { .status = status,
                           .body = "{\"partialSuccess\":{\"rejectedSpans\":\"2\"}}" };
    collector_start(&c);
    struct span_export *e = start(c.port, 64);
    const struct span_export_stats *s = span_export_stats(e);
    give(e, 5);
    wait_for(&s->failed, 5);
    T_EQ(atomic_load(&c.requests), 1, "400 means: not this way");
    give(e, 5);
    wait_for(&s->exported, 3);
    wait_for(&s->failed, 7);
    span_export_stop(e);
    collector_end(&c);
}

/* What becomes of a batch is in the head of the answer. */
T_TEST(answers_of_all_lengths)
{
    static const unsigned status[] = { 200, 0 };
    static const struct {
        const char *head;
        bool large, taken;
    } rows[] = {
        { "HTTP/1.0 200 OK\r\n\r\n", false, true },
        { "HTTP/1.1 200 OK\r\n\r\n{}", false, true },
        { "HTTP/1.1 202 Accepted\r\nContent-Length: 65536\r\n\r\n", true, true },
        { "HTTP/1.1 404 Not Found\r\nContent-Length: 65536\r\n\r\n", true, false },
        { "HTTP/1.1 404 Not Found\r\n\r\n", true, false },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct collector c = {
            .status = status, .hang_up = true, .head = rows[i].head, .large = rows[i].large
        };
        collector_start(&c);
        struct span_export *e = start(c.port, 64);
        const struct span_export_stats *s = span_export_stats(e);
        give(e, 2);
        wait_for(rows[i].taken ? &s->exported : &s->failed, 2);
        T_EQ(atomic_load(&c.requests), 1, "%s", rows[i].head);
        span_export_stop(e);
        collector_end(&c);
    }
}

/* It takes connections and says nothing: the queue fills, and whoever gives spans goes on. */
T_TEST(spans_that_find_no_room)
{
    struct collector c = { .fd = -1 };
    listen_on(&c);
    struct span_export *e = start(c.port, 16);
    const struct span_export_stats *s = span_export_stats(e);
    give(e, 500);
    uint64_t dropped = atomic_load(&s->dropped);
    T_OK(dropped >= 500 - 16 * 2 && dropped <= 500 - 16, "%llu", (unsigned long long)dropped);
    close(c.fd); /* which resets what waits for an answer, and refuses what follows */
    span_export_stop(e);
}

T_TEST(no_collector)
{
    struct collector c = { .fd = -1 };
    listen_on(&c);
    close(c.fd);
    struct span_export *e = start(c.port, 1000);
    give(e, 1000);
    span_export_stop(e); /* each batch is tried once */
}

T_TEST(endpoints)
{
    static const char *const good[] = { "http://127.0.0.1", "http://otel.example:4318/",
                                        "https://[::1]:4318/v1/traces",
                                        "https://c/custom/path?x=y" };
    static const struct {
        const char *text, *says;
    } bad[] = {
        { "127.0.0.1:4318", "http:// or https://" },
        { "grpc://127.0.0.1:4317", "http:// or https://" },
        { "http://", "no host" },
        { "http://:4318", "no host" },
        { "http://a:0", "no host" },
        { "http://a:x", "no host" },
        { "http://a,b", "no host" },
        { "http://a\r\nX: y", "no host" },
        { "http://me:secret@a", "user and password" },
        { "http://a/b c", "the path" },
        { "http://a/#x", "the path" },
        { "http://a?x", "the path" },
    };
    struct firn_diag d;
    for (size_t i = 0; i < T_LEN(good); i++)
        T_EQ(span_export_check(good[i], NULL), 0, "%s", good[i]);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_EQ(span_export_check(bad[i].text, &d), FIRN_EFORMAT, "%s", bad[i].text);
        T_OK(strstr(d.text, bad[i].says), "%s: %s", bad[i].text, d.text);
    }
    struct span_export *e;
    struct span_export_opts o = { .endpoint = "https://a", .tls_ca = "/nonexistent", .queue = 16 };
    T_EQ(span_export_start(&o, &e, &d), FIRN_EIO);
    T_OK(strstr(d.text, "tracing.tls_ca"), "%s", d.text);
}
