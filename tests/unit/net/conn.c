/* Requests and their answers: in order, each once, however they come. */
#include "conn_world.h"

T_TEST(conn_pipelined_and_in_pieces)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/n/1") GET("/n/2") GET("/n/3"));
    for (unsigned i = 1; i <= 3; i++)
        hear_number(fd, i);
    static const char text[] = GET(
        "/n/4") "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n5"
                "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n6\r\n0\r\n\r\n";
    for (size_t i = 0; i < sizeof text - 1; i++) {
        say_n(fd, text + i, 1);
        if (i % 16 == 0)
            usleep(200); /* so that the pieces are not joined on the way */
    }
    for (unsigned i = 4; i <= 6; i++)
        hear_number(fd, i);
    say(fd, "HEAD /n/77 HTTP/1.1\r\nHost: a\r\n\r\n" GET_LAST("/n/8") GET("/n/9"));
    char head[2048] = "";
    for (size_t at = 0; !strstr(head, "\r\n\r\n"); at++)
        T_EQ(recv(fd, head + at, 1, 0), 1);
    T_OK(strstr(head, "Content-Length: 3\r\n"), "HEAD says what GET would send: %s", head);
    hear_number(fd, 8);
    hear_end(fd);
    world_stop(&w);
    T_EQ(w.ctx.closed, 1);
    T_OK(w.ctx.turns > 0);
}

T_TEST(conn_http_10)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, "GET /n/1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    hear(fd, "HTTP/1.1 200 OK\r\nDate: ");
    char rest[512];
    usleep(20000);
    ssize_t n = recv(fd, rest, sizeof rest - 1, 0);
    T_OK(n > 0);
    rest[n] = 0;
    T_OK(strstr(rest, "Connection: keep-alive\r\n"), "%s", rest);
    say(fd, "GET /n/2 HTTP/1.0\r\n\r\n");
    hear_number(fd, 2);
    hear_end(fd);
    world_stop(&w);
}

T_TEST(conn_resp)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd,
        "*1\r\n$4\r\nPING\r\n*2\r\n$1\r\nN\r\n$2\r\n-1\r\n\r\nPING\r\n*0\r\n*1\r\n$7\r\nunknown\r\n");
    hear(fd, "+PONG\r\n:4294967295\r\n+PONG\r\n-ERR the handler gave no answer\r\n");
    say(fd, "*1\r\n$4\r\nQUIT\r\n*1\r\n$4\r\nPING\r\n");
    hear(fd, "+OK\r\n");
    hear_end(fd);

    fd = dial(&w); /* inline from the first byte on, in pieces */
    for (const char *p = "ping\r\n"; *p; p++) {
        say_n(fd, p, 1);
        usleep(1000);
    }
    hear(fd, "+PONG\r\n");
    say(fd, "*1\r\n$-5\r\n");
    hear(fd, "-ERR Protocol error: invalid bulk length\r\n");
    hear_end(fd);

    /* A first line with a command in front is RESP unless it says HTTP. */
    static const struct {
        const char *text, *answer;
    } first[] = {
        { "N 7\r\n", ":7\r\n" },
        { "n 7\n", ":7\r\n" },
        { "N\t7\r\nPING\r\n", ":7\r\n+PONG\r\n" },
        { "FIRN.NEXT snowflake\r\n", "-ERR the handler gave no answer\r\n" },
        { "get orders\r\n", "-ERR the handler gave no answer\r\n" },
        { "GETSET a b\r\n", "-ERR the handler gave no answer\r\n" },
        { "N 7 HTTP/1.1\r\n\r\n", "HTTP/1.1 501 " },
        { "BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 501 " },
        { "GET orders\r\n\r\n", "HTTP/1.1 400 " },
        { "EHLO mail.example\r\n", "HTTP/1.1 501 " },
        { "NN\r\n", "HTTP/1.1 400 " },
        { " PING\r\n", "HTTP/1.1 400 " },
    };
    for (size_t i = 0; i < T_LEN(first); i++) {
        fd = dial(&w);
        say(fd, first[i].text);
        hear(fd, first[i].answer);
        close(fd);
        fd = dial(&w); /* the same byte by byte */
        for (const char *p = first[i].text; *p; p++)
            say_n(fd, p, 1);
        hear(fd, first[i].answer);
        close(fd);
    }
    char line[400]; /* too long to look for more, but a command */
    memset(line, ' ', sizeof line);
    line[0] = 'N';
    memcpy(line + 380, " 7\r\n", 5);
    fd = dial(&w);
    say(fd, line);
    hear(fd, ":7\r\n");
    close(fd);

    fd = dial(&w); /* POST begins like PING */
    say(fd, "P");
    usleep(2000);
    say(fd, "OST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n3");
    hear_number(fd, 3);
    close(fd);
    world_stop(&w);
}

T_TEST(conn_refusals_reach_the_peer)
{
    static const struct {
        const char *text;
        int status;
    } bad[] = {
        { "GET / HTTP/1.1\r\n\r\n", 400 },
        { "GET / HTTP/9.9\r\nHost: a\r\n\r\n", 505 },
        { "\x16\x03\x01\x02\x03\x04\x05", 400 },
        { "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 999999\r\n\r\n", 413 },
    };
    static struct world w;
    static char junk[300000];
    world_start(&w, NULL);
    memset(junk, 'x', sizeof junk);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char body[4096];
        int fd = dial(&w);
        say(fd, GET("/n/1"));
        say(fd, bad[i].text);
        send(fd, junk, sizeof junk,
             MSG_NOSIGNAL | MSG_DONTWAIT); /* unread input must not kill it */
        hear_number(fd, 1);
        T_EQ(hear_http(fd, body, sizeof body), bad[i].status, "%s", body);
        T_OK(strstr(body, "\"detail\":\""), "%s", body);
        hear_end(fd);
    }
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.http_errors, T_LEN(bad));
    world_stop(&w);
}

T_TEST(conn_expect_continue)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    for (int i = 0; i < 2; i++) {
        say(fd,
            "POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
        hear(fd, "HTTP/1.1 100 Continue\r\n\r\n");
        say(fd, "1");
        usleep(2000);
        say(fd, "2");
        hear_number(fd, 12);
    }
    close(fd);
    world_stop(&w);
}

/* Whichever is done first, answers leave in the order of their requests. */
T_TEST(conn_deferred_keep_their_order)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w), other = dial(&w);
    say(fd, GET("/n/1") GET("/d/2") GET("/n/3") GET("/d/4")
                GET("/n/5") "GET /none HTTP/1.1\r\nHost: a\r\n\r\n");
    say(other, "*2\r\n$1\r\nD\r\n$1\r\n6\r\n*1\r\n$4\r\nPING\r\n");
    wait_deferred(&w, 3);
    hear_number(fd, 1);
    T_OK(silent(fd, 20) && silent(other, 0));
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 2; i <= 5; i++)
        hear_number(fd, i);
    T_EQ(hear_http(fd, NULL, 0), 500);
    hear(other, ":6\r\n+PONG\r\n");
    /* A last request that is deferred, with another behind it that must not be answered. */
    say(fd, GET("/d/7") GET_LAST("/d/8") GET("/n/9"));
    wait_deferred(&w, 2);
    ask(&w, release_all_backwards, NULL);
    hear_number(fd, 7);
    hear_number(fd, 8);
    hear_end(fd);
    /* Errors wait their turn too. */
    say(other, "*2\r\n$1\r\nD\r\n$2\r\n10\r\n*1\r\n!");
    wait_deferred(&w, 1);
    T_OK(silent(other, 20));
    ask(&w, release_all_backwards, NULL);
    hear(other, ":10\r\n-ERR Protocol error: expected '$', got '!'\r\n");
    hear_end(other);
    world_stop(&w);
}

/* Answers that will be long are not collected by the thousand: the next requests wait for them. */
T_TEST(conn_expected_answers_count)
{
    static struct world w;
    world_start(&w, NULL); /* 256 KiB unsent are enough */
    int fd = dial(&w), other = dial(&w);
    say(fd, GET("/e/1") GET("/e/2") GET("/e/3") GET("/e/4") GET("/e/5") GET("/e/6") GET("/n/7"));
    wait_deferred(&w, 3);
    say(other, GET("/n/1"));
    hear_number(other, 1);
    wait_deferred(&w, 3);
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 1; i <= 3; i++)
        hear_number(fd, i);
    wait_deferred(&w, 3);
    say(fd, GET("/n/8"));
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 4; i <= 8; i++)
        hear_number(fd, i);
    /* Nor do those count for ever whose reader is gone. */
    say(fd, GET("/e/1") GET("/e/2") GET("/e/3"));
    wait_deferred(&w, 3);
    close(fd);
    ask(&w, release_all_backwards, NULL);
    say(other, GET("/e/9"));
    wait_deferred(&w, 1);
    ask(&w, release_all_backwards, NULL);
    hear_number(other, 9);
    close(other);
    world_stop(&w);
}

T_TEST(conn_serial_waits)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/s/1") GET("/s/2") GET("/n/3"));
    for (unsigned i = 1; i <= 2; i++) {
        wait_deferred(&w, 1);
        ask(&w, release_all_backwards, NULL);
        hear_number(fd, i);
    }
    hear_number(fd, 3);
    close(fd);
    world_stop(&w);
}

static void count_closed(struct world *w, void *arg)
{
    *(unsigned *)arg = w->ctx.closed;
}

T_TEST(conn_peer_gone_before_the_answer)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/d/1") GET("/d/2") GET("/n/3"));
    wait_deferred(&w, 2);
    struct linger reset = { 1, 0 };
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    close(fd);
    unsigned closed = 0;
    for (int i = 0; i < 5000 && closed == 0; i++, usleep(500))
        ask(&w, count_closed, &closed);
    T_EQ(closed, 1);
    ask(&w, release_all_backwards, NULL);
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.deferred, 0);
    world_stop(&w);
}

T_TEST(conn_half_closed_peer_is_answered)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    say(fd, GET("/n/1") GET("/d/2") GET("/n/3") "GET /unfinished");
    shutdown(fd, SHUT_WR);
    wait_deferred(&w, 1);
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 1; i <= 3; i++)
        hear_number(fd, i);
    hear_end(fd);
    world_stop(&w);
}

/* Some of what is deferred, in any order. */
static void release_some(struct world *w, void *arg)
{
    struct service_ctx *x = &w->ctx;
    uint64_t n = arg ? x->deferred_len : t_random_below(x->deferred_len + 1);
    while (n-- > 0) {
        size_t i = (size_t)t_random_below(x->deferred_len);
        release_one(w, &i);
        x->deferred_len--;
        x->deferred[i] = x->deferred[x->deferred_len];
        x->numbers[i] = x->numbers[x->deferred_len];
    }
}

/* Requests of all kinds, cut anywhere, done in any order: the answers come in order, each once. */
T_TEST(conn_random_pipelines)
{
    static struct world w;
    world_start(&w, NULL);
    for (uint64_t round = 0, rounds = t_scale(400); round < rounds; round++) {
        bool http = t_random_below(2);
        unsigned n = 1 + (unsigned)t_random_below(60);
        struct buf text;
        buf_init(&text, 1 << 20);
        for (unsigned i = 0; i < n; i++) {
            char kind = "nd"[t_random_below(2)];
            if (http && t_random_below(10) == 0)
                kind = 's';
            if (http)
                buf_addf(&text, "GET /%c/%u HTTP/1.1\r\nHost: a\r\n\r\n", kind, 1000 + i);
            else
                buf_addf(&text, "*2\r\n$1\r\n%c\r\n$4\r\n%u\r\n", kind, 1000 + i);
        }
        int fd = dial(&w);
        for (size_t at = 0; at < text.len;) {
            size_t part = 1 + (size_t)t_random_below(t_random_below(3) ? 200 : text.len);
            part = part < text.len - at ? part : text.len - at;
            say_n(fd, text.p + at, part);
            at += part;
            if (t_random_below(4) == 0)
                ask(&w, release_some, NULL);
        }
        for (unsigned i = 0; i < n; i++) {
            while (silent(fd, 1)) /* a serial one may be in the way of others */
                ask(&w, release_some, &w);
            if (http) {
                hear_number(fd, 1000 + i);
            } else {
                char expect[16];
                snprintf(expect, sizeof expect, ":%u\r\n", 1000 + i);
                hear(fd, expect);
            }
        }
        T_OK(silent(fd, 0));
        close(fd);
        buf_done(&text);
    }
    world_stop(&w);
}

T_TEST(listen_addresses)
{
    int fds[3], more;
    char name[PEER_ADDRESS_BUF];
    struct firn_diag diag;
    static const char *const bad[] = { "",
                                       "9001",
                                       "127.0.0.1",
                                       "127.0.0.1:",
                                       "127.0.0.1:65536",
                                       "127.0.0.1:x",
                                       "example.com:80",
                                       "[::1:80",
                                       "[]:80",
                                       "1.2.3:80",
                                       "::1:80" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(listen_open(bad[i], fds, 1, &diag), FIRN_EINVAL, "%s", bad[i]);
    T_EQ(listen_open("127.0.0.1:0", fds, 3, &diag), 0, "%s", diag.text);
    listen_name(fds[2], name);
    T_OK(strncmp(name, "127.0.0.1:", 10) == 0 && strcmp(name + 10, "0") != 0, "%s", name);
    T_EQ(listen_open(name, &more, 1, &diag), FIRN_EIO, "somebody listens there");
    T_OK(strstr(diag.text, name), "%s", diag.text);
    int shared[2];
    T_EQ(listen_open(name, shared, 2, &diag), FIRN_EIO, "also when both would share");
    for (int i = 0; i < 3; i++)
        close(fds[i]);
    T_EQ(listen_open(name, &more, 1, &diag), 0, "%s", diag.text);
    close(more);
}

static void forget_resp(struct world *w, void *arg)
{
    (void)arg;
    w->service.resp = NULL;
}

/* A service without resp(): HTTP as ever, RESP gets an error in its own words and the end. */
T_TEST(conn_service_without_resp)
{
    static struct world w;
    world_start(&w, NULL);
    ask(&w, forget_resp, NULL);
    int fd = dial(&w);
    say(fd, "*1\r\n$4\r\nPING\r\n");
    hear(fd, "-ERR this port speaks HTTP, not the Redis protocol\r\n");
    hear_end(fd);
    fd = dial(&w);
    say(fd, "PING\r\n");
    hear(fd, "-ERR this port speaks HTTP, not the Redis protocol\r\n");
    hear_end(fd);
    fd = dial(&w);
    say(fd, GET("/n/5"));
    hear_number(fd, 5);
    close(fd);
    struct loop_stats s;
    loop_stats(w.loop, &s);
    T_EQ(s.resp_errors, 2);
    T_EQ(s.resp_requests, 0);
    world_stop(&w);
}

static void count_retries(struct world *w, void *arg)
{
    *(unsigned *)arg = w->ctx.retries;
}

/* Requests that were counted, less those that were timed. */
static void count_untimed(struct world *w, void *arg)
{
    struct loop_stats s;
    int64_t *left = arg;
    loop_stats(w->loop, &s);
    left[0] = (int64_t)s.http_requests;
    left[1] = (int64_t)s.resp_requests;
    for (unsigned i = 0; i < 2 * LATENCY_KINDS; i++) {
        struct latency l = { 0 };
        loop_latency(w->loop, i >= LATENCY_KINDS, i % LATENCY_KINDS, &l);
        for (size_t k = 0; k <= LATENCY_BOUNDS; k++)
            left[i >= LATENCY_KINDS] -= (int64_t)l.bucket[k];
    }
}

/* A request that is handed over again keeps its place; what is behind it waits, also behind
 * deferred replies; other connections are served meanwhile. */
T_TEST(conn_handed_over_again)
{
    static struct world w;
    unsigned retries = 0;
    world_start(&w, NULL);
    int fd = dial(&w), other = dial(&w), redis = dial(&w);
    say(fd, GET("/n/1") GET("/r/2") GET("/n/3") GET("/r/4") GET("/r/5"));
    say(other, GET("/n/6"));
    hear_number(other, 6);
    for (unsigned i = 1; i <= 5; i++)
        hear_number(fd, i);
    ask(&w, count_retries, &retries);
    T_EQ(retries, 12);
    say(redis, "N 1\r\n*2\r\n$1\r\nR\r\n$1\r\n2\r\nN 3\r\n");
    hear(redis, ":1\r\n:2\r\n:3\r\n");
    say(fd, GET("/d/7") GET("/r/8") GET("/d/9"));
    wait_deferred(&w, 2);
    ask(&w, release_all_backwards, NULL);
    for (unsigned i = 7; i <= 9; i++)
        hear_number(fd, i);
    ask(&w, count_retries, &retries);
    T_EQ(retries, 20);
    /* Chunks are joined in place, inline commands unescaped: these cannot wait. */
    say(redis, "O 1\r\n");
    hear(redis, ":0\r\n");
    say(fd, "POST /once HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            "1\r\n6\r\n0\r\n\r\n");
    hear_number(fd, 0);
    int64_t untimed[2] = { -1, -1 };
    ask(&w, count_untimed, untimed); /* at once, deferred, handed over again: each once */
    T_EQ(untimed[0], 0);
    T_EQ(untimed[1], 0);
    say(fd, GET("/r/10")); /* gone while it waits */
    close(fd);
    say(other, GET("/n/11"));
    hear_number(other, 11);
    close(other);
    close(redis);
    world_stop(&w);
    T_EQ(w.ctx.closed, 3);
}
