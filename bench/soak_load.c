/*
 * A load of clients that never give up an ID: for bench/soak and tests/deploy/run.
 *
 * Open loop: request number i is due at start + i / rate, whether or not the server keeps up, and its
 * latency counts from then to its answer, retry included. A connection has one request at a time. A
 * request that fails (the connection ends, the time is over, the answer is an error) is asked
 * again, on a new connection; one that fails ATTEMPTS times (2) is a failed request. Every ID that was answered goes to the
 * log, a line each, so that somebody can look for duplicates in all of them.
 *
 * Usage: soak_load ADDRESS:PORT http|resp WHAT RATE SECONDS CONNECTIONS LOG [TIMEOUT_MS [ATTEMPTS]]
 * WHAT is a path, or a command with its words separated by blanks. TIMEOUT_MS is for each attempt, 2000. SIGTERM and SIGINT end it early.
 * Prints one line of JSON a second (the totals so far) and a last one; status 0 unless it could not run.
 */
#include "wire/histogram.h"
#include "platform/mono.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS     UINT64_C(1000000)

enum {
    CONNS_MAX = 4096,
    IN_BYTES = 4096, /* an answer is one ID */
    CONNECT_MS = 2000,
    RECONNECT_MS = 20,    /* after a connection that could not be made */
    PACE_NS = 300 * 1000, /* sleeps are not shorter: requests go out a few at a time */
    SAMPLE_BYTES = 200,
};

enum state { DOWN, CONNECTING, IDLE, BUSY };

struct conn {
    int fd;
    enum state state;
    uint32_t failed; /* attempts of its request; above 0 when DOWN: there is one to ask again */
    uint64_t due_ns; /* of its request */
    uint64_t deadline_ns; /* of the attempt; in DOWN, when to connect */
    size_t in_len;
    char in[IN_BYTES];
};

static struct {
    struct sockaddr_in to;
    bool resp;
    char request[1024];
    size_t request_len;
    double interval_ns;
    uint64_t timeout_ns; /* of an attempt */
    uint32_t attempts;
    int epoll;
    struct conn *conn;
    uint32_t conns;
    uint32_t *idle, idle_n; /* a stack of numbers */
    uint64_t start_ns, end_ns, released, taken, unsent;
    FILE *log;

    uint64_t answered, retried, failed;
    struct histogram latency;
    char sample[SAMPLE_BYTES];
} load;

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

/* ---- connections ---- */

static void set_idle(struct conn *c)
{
    c->state = IDLE;
    c->in_len = 0;
    load.idle[load.idle_n++] = (uint32_t)(c - load.conn);
}

static void drop(struct conn *c, uint64_t now, unsigned wait_ms)
{
    if (c->state == IDLE) /* rare: look for it */
        for (uint32_t i = 0; i < load.idle_n; i++)
            if (load.idle[i] == (uint32_t)(c - load.conn))
                load.idle[i--] = load.idle[--load.idle_n];
    close(c->fd);
    c->fd = -1;
    c->state = DOWN;
    c->deadline_ns = now + wait_ms * MS_NS;
}

static void fail(const char *why)
{
    load.failed++;
    if (!load.sample[0])
        snprintf(load.sample, sizeof load.sample, "%s", why);
}

/* The connection ended, or is of no use any more; its request, if it has one, failed. */
static void broken(struct conn *c, uint64_t now, const char *why)
{
    bool was_busy = c->state == BUSY, was_connecting = c->state == CONNECTING;
    drop(c, now, was_connecting ? RECONNECT_MS : 0);
    if (!was_busy && c->failed == 0)
        return;
    if (++c->failed < load.attempts) {
        load.retried++;
    } else {
        fail(why);
        c->failed = 0;
    }
}

static void dial(struct conn *c, uint64_t now)
{
    int on = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct epoll_event e = { .events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c };
    if (c->fd < 0 || epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &e) != 0) {
        perror("socket");
        exit(2);
    }
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->state = CONNECTING;
    c->deadline_ns = now + CONNECT_MS * MS_NS;
    if (connect(c->fd, (const struct sockaddr *)&load.to, sizeof load.to) != 0 &&
        errno != EINPROGRESS)
        broken(c, now, strerror(errno));
}

static void ask(struct conn *c, uint64_t now, uint64_t due_ns)
{
    c->state = BUSY;
    c->due_ns = due_ns;
    c->in_len = 0;
    c->deadline_ns = now + load.timeout_ns;
    /* So short that a connection without anything unsent takes it whole. */
    if (send(c->fd, load.request, load.request_len, MSG_NOSIGNAL) != (ssize_t)load.request_len)
        broken(c, now, "cannot send");
}

/* ---- answers ---- */

/* 0: not whole yet; -1: an error or not an answer; else its length, and the ID in it. */
static int parse_http(struct conn *c, const char **id, size_t *id_len, bool *last)
{
    char *end = memmem(c->in, c->in_len, "\r\n\r\n", 4);
    if (!end)
        return 0;
    *end = '\0';
    const char *field = strcasestr(c->in, "\r\nContent-Length:");
    size_t len = field ? strtoul(field + 17, NULL, 10) : 0, head = (size_t)(end + 4 - c->in);
    *last = strcasestr(c->in, "\r\nConnection: close") != NULL;
    bool good = strncmp(c->in, "HTTP/1.1 200 ", 13) == 0;
    *end = '\r';
    if (!good || head + len > IN_BYTES)
        return -1;
    if (c->in_len < head + len)
        return 0;
    *id = c->in + head;
    *id_len = len > 0 && (*id)[len - 1] == '\n' ? len - 1 : len;
    return (int)(head + len);
}

static int parse_resp(struct conn *c, const char **id, size_t *id_len)
{
    char *end = memmem(c->in, c->in_len, "\r\n", 2);
    if (!end)
        return 0;
    size_t line = (size_t)(end + 2 - c->in);
    *id = c->in + 1;
    *id_len = line - 3;
    if (c->in[0] == ':')
        return (int)line;
    if (c->in[0] != '$')
        return -1;
    size_t len = strtoul(c->in + 1, NULL, 10);
    if (line + len + 2 > IN_BYTES)
        return -1;
    *id = c->in + line;
    *id_len = len;
    return c->in_len >= line + len + 2 ? (int)(line + len + 2) : 0;
}

static bool is_number(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] < '0' || p[i] > '9')
            return false;
    return len > 0;
}

static void answers(struct conn *c, uint64_t now)
{
    for (;;) {
        ssize_t n = recv(c->fd, c->in + c->in_len, IN_BYTES - c->in_len, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            broken(c, now, n == 0 ? "the connection ended without an answer" : strerror(errno));
            return;
        }
        c->in_len += (size_t)n;
        const char *id;
        size_t id_len;
        bool last = false;
        int r = load.resp ? parse_resp(c, &id, &id_len) : parse_http(c, &id, &id_len, &last);
        if (r == 0 && c->in_len < IN_BYTES)
            continue;
        if (r <= 0 || (size_t)r != c->in_len || c->state != BUSY || !is_number(id, id_len)) {
            char why[SAMPLE_BYTES];
            snprintf(why, sizeof why, "%.*s", (int)(c->in_len < 150 ? c->in_len : 150), c->in);
            broken(c, now, why);
            return;
        }
        fwrite(id, 1, id_len, load.log);
        putc('\n', load.log);
        load.answered++;
        histogram_add(&load.latency, now - c->due_ns, 1);
        c->failed = 0;
        if (last) {
            drop(c, now, 0);
            return;
        }
        set_idle(c);
    }
}

/* ---- the run ---- */

static void hand_out(uint64_t now, bool more)
{
    if (more)
        load.released = (uint64_t)((double)(now - load.start_ns) / load.interval_ns) + 1;
    while (load.idle_n > 0 && load.taken < load.released) {
        uint64_t due = load.start_ns + (uint64_t)((double)load.taken++ * load.interval_ns);
        ask(&load.conn[load.idle[--load.idle_n]], now, due);
    }
}

static void look_around(uint64_t now)
{
    for (uint32_t i = 0; i < load.conns; i++) {
        struct conn *c = &load.conn[i];
        if (c->state == IDLE || now < c->deadline_ns)
            continue;
        if (c->state == DOWN)
            dial(c, now);
        else
            broken(c, now, "no answer in time");
    }
}

static uint64_t in_flight(void)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < load.conns; i++)
        n += load.conn[i].state == BUSY || load.conn[i].failed > 0;
    return n;
}

static void print_text(const char *text)
{
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if (*text < 32 || *text > 126)
            putchar(' ');
        else
            putchar(*text);
}

static void report(uint64_t now, bool last)
{
    fflush(load.log);
    uint64_t unsent = last ? load.unsent : load.released - load.taken;
    printf("{\"seconds\":%.3f,\"sent\":%" PRIu64 ",\"unsent\":%" PRIu64 ",\"answered\":%" PRIu64
           ",\"retried\":%" PRIu64 ",\"failed\":%" PRIu64,
           (double)(now - load.start_ns) / 1e9, load.taken, unsent, load.answered, load.retried,
           load.failed);
    if (last) {
        static const struct {
            const char *name;
            uint32_t ppm;
        } points[] = {
            { "p50", 500000 }, { "p90", 900000 }, { "p99", 990000 }, { "p999", 999000 }
        };
        for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
            printf(",\"%s_ns\":%" PRIu64, points[i].name,
                   histogram_at(&load.latency, points[i].ppm));
        printf(",\"max_ns\":%" PRIu64 ",\"sample\":\"", histogram_at(&load.latency, 1000000));
        print_text(load.sample);
        printf("\"");
    }
    puts("}");
    fflush(stdout);
}

static void run(void)
{
    struct epoll_event events[256];
    uint64_t now = mono_ns(), report_ns = now + SECOND_NS, look_ns = now;
    bool more = true;
    load.start_ns = now;
    load.end_ns += now;
    for (;;) {
        if (more && (stop || now >= load.end_ns)) {
            more = false;
            load.unsent = load.released - load.taken; /* due, but no connection was free */
            load.released = load.taken;
            load.end_ns = now + 2 * load.timeout_ns + SECOND_NS;
        }
        if (!more && (in_flight() == 0 || now >= load.end_ns))
            break;
        if (now >= look_ns) {
            look_around(now);
            look_ns = now + 5 * MS_NS;
        }
        hand_out(now, more);
        if (now >= report_ns) {
            report(now, false);
            report_ns += SECOND_NS;
        }
        struct timespec pace = { 0, PACE_NS };
        int n = epoll_pwait2(load.epoll, events, 256, &pace, NULL);
        now = mono_ns();
        for (int i = 0; i < n; i++) {
            struct conn *c = events[i].data.ptr;
            if (c->state == CONNECTING && events[i].events & EPOLLOUT &&
                !(events[i].events & (EPOLLERR | EPOLLHUP))) {
                if (c->failed > 0)
                    ask(c, now, c->due_ns);
                else
                    set_idle(c);
            }
            if (c->state == CONNECTING && events[i].events & (EPOLLERR | EPOLLHUP))
                broken(c, now, "cannot connect");
            else if (c->state != DOWN && c->state != CONNECTING && events[i].events & ~EPOLLOUT)
                answers(c, now);
        }
    }
    load.failed += in_flight();
}

static void make_request(const char *what, const char *to)
{
    char *p = load.request, *end = p + sizeof load.request;
    if (!load.resp) {
        p += snprintf(p, (size_t)(end - p),
                      "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/plain\r\n\r\n", what, to);
    } else {
        unsigned words = 1;
        for (const char *q = what; *q; q++)
            words += *q == ' ';
        p += snprintf(p, (size_t)(end - p), "*%u\r\n", words);
        for (const char *q = what; words-- > 0 && p < end;) {
            int len = (int)strcspn(q, " ");
            p += snprintf(p, (size_t)(end - p), "$%d\r\n%.*s\r\n", len, len, q);
            q += len + 1;
        }
    }
    if (p >= end) {
        fputs("the request is too long\n", stderr);
        exit(2);
    }
    load.request_len = (size_t)(p - load.request);
}

int main(int argc, char **argv)
{
    if (argc < 8 || argc > 10) {
        fprintf(stderr,
                "usage: %s ADDRESS:PORT http|resp WHAT RATE SECONDS CONNECTIONS LOG [TIMEOUT_MS "
                "[ATTEMPTS]]\n",
                argv[0]);
        return 2;
    }
    char host[64];
    const char *colon = strrchr(argv[1], ':');
    snprintf(host, sizeof host, "%.*s", colon ? (int)(colon - argv[1]) : 0, argv[1]);
    load.to = (struct sockaddr_in){ .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)(colon ? atol(colon + 1) : 0)) };
    double rate = strtod(argv[4], NULL), seconds = strtod(argv[5], NULL);
    load.conns = (uint32_t)strtoul(argv[6], NULL, 10);
    load.resp = strcmp(argv[2], "resp") == 0;
    if (inet_pton(AF_INET, host, &load.to.sin_addr) != 1 || rate <= 0 || seconds <= 0 ||
        load.conns < 1 || load.conns > CONNS_MAX) {
        fputs("an address, the rate, the time or the connections make no sense\n", stderr);
        return 2;
    }
    make_request(argv[3], argv[1]);
    load.interval_ns = 1e9 / rate;
    load.timeout_ns = (argc > 8 ? strtoul(argv[8], NULL, 10) : 2000) * MS_NS;
    load.attempts = argc > 9 ? (uint32_t)strtoul(argv[9], NULL, 10) : 2;
    load.end_ns = (uint64_t)(seconds * 1e9);
    load.log = fopen(argv[7], "w");
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.conn = calloc(load.conns, sizeof *load.conn);
    load.idle = calloc(load.conns, sizeof *load.idle);
    if (!load.log || load.epoll < 0 || !load.conn || !load.idle) {
        perror(argv[7]);
        return 2;
    }
    for (uint32_t i = 0; i < load.conns; i++)
        load.conn[i].fd = -1;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    run();
    report(mono_ns(), true);
    if (fclose(load.log) != 0) {
        perror(argv[7]);
        return 2;
    }
    return 0;
}
