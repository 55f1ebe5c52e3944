/* Who is slow, asks for too much or reads too little. */
#include "conn_world.h"

T_TEST(conn_deadlines)
{
    static struct world w;
    struct loop_opts opts = { .header_ms = 600, .body_ms = 700, .idle_http_ms = 800 };
    char body[4096];
    world_start(&w, &opts);
    int never = dial(&w), idle = dial(&w), loris = dial(&w), half = dial(&w), redis = dial(&w);
    say(idle, GET("/n/1"));
    hear_number(idle, 1);
    say(half, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345");
    say(redis, "*1\r\n$4\r\nPING\r\n");
    hear(redis, "+PONG\r\n");
    for (int i = 0; i < 1000 && silent(loris, 10); i++) /* a byte now and then wins no time */
        if (send(loris, i < 5 ? &"GET /"[i] : "o", 1, MSG_NOSIGNAL) < 0)
            break;
    T_EQ(hear_http(loris, body, sizeof body), 408, "%s", body);
    hear_end(loris);
    T_EQ(hear_http(half, body, sizeof body), 408, "%s", body);
    hear_end(half);
    hear_end(idle);
    hear_end(never);
    T_OK(silent(redis, 300), "RESP may idle");
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.timeouts, 4);
    close(redis);
    world_stop(&w);
}

T_TEST(conn_too_many)
{
    static struct world w;
    char body[4096];
    world_start_limited(&w, NULL, 2, 0);
    int a = dial(&w), b = dial(&w);
    say(a, GET("/n/1"));
    hear_number(a, 1);
    say(b, GET("/n/2"));
    hear_number(b, 2);
    int c = dial(&w), d = dial(&w);
    say(c, GET("/n/3"));
    T_EQ(hear_http(c, body, sizeof body), 503, "%s", body);
    hear_end(c);
    say(d, "*1\r\n$4\r\nPING\r\n");
    hear(d, "-ERR max number of clients reached\r\n");
    hear_end(d);
    int health = dial(&w); /* a place is kept for it, for one answer */
    say(health, GET("/n/0") GET("/n/0"));
    hear_number(health, 0);
    hear_end(health);
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.refused, 2);
    close(a);
    for (int i = 0; i < 2000 && atomic_load(&w.places.open) > 1; i++)
        usleep(1000);
    a = dial(&w);
    say(a, GET("/n/4"));
    hear_number(a, 4);
    close(a);
    close(b);
    world_stop(&w);
}

/* The service decides whether a RESP connection may idle. */
T_TEST(conn_resp_without_a_right_to_idle)
{
    static struct world w;
    struct loop_opts opts = { .idle_http_ms = 200 };
    world_start(&w, &opts);
    int may = dial(&w), not = dial(&w);
    say(may, "*1\r\n$4\r\nPING\r\n");
    hear(may, "+PONG\r\n");
    say(not, "*2\r\n$1\r\nN\r\n$2\r\n-1\r\n");
    hear(not, ":4294967295\r\n");
    hear_end(not );
    say(may, "*1\r\n$4\r\nPING\r\n");
    hear(may, "+PONG\r\n");
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.timeouts, 1);
    close(may);
    world_stop(&w);
}

/* A peer that asks a lot and reads nothing costs the marks, not what it asked for; then it reads
 * and gets everything. */
T_TEST(conn_backpressure)
{
    static struct world w;
    enum { REQUESTS = 100000 };
    struct loop_opts opts = { .out_high_bytes = 32 * 1024, .out_low_bytes = 8 * 1024 };
    world_start(&w, &opts);
    int fd = dial(&w);
    static const char one[] = "*2\r\n$1\r\nN\r\n$1\r\n7\r\n";
    char *all = malloc(REQUESTS * (sizeof one - 1));
    T_OK(all != NULL);
    for (size_t i = 0; i < REQUESTS; i++)
        memcpy(all + i * (sizeof one - 1), one, sizeof one - 1);
    size_t sent = 0, total = REQUESTS * (sizeof one - 1), heard = 0;
    static char got[65536];
    while (heard < REQUESTS * 4u) {
        struct pollfd p = { .fd = fd, .events = (short)(sent < total ? POLLIN | POLLOUT : POLLIN) };
        T_OK(poll(&p, 1, 10000) == 1);
        if (p.revents & POLLOUT) {
            ssize_t n = send(fd, all + sent, total - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            T_OK(n > 0 || errno == EAGAIN);
            sent += n > 0 ? (size_t)n : 0;
        } else if (p.revents & POLLIN) { /* reads only when it cannot send */
            ssize_t n = recv(fd, got, sizeof got, 0);
            T_OK(n > 0);
            for (ssize_t i = 0; i < n; i++)
                T_EQ(got[i], ":7\r\n"[(heard + (size_t)i) % 4]);
            heard += (size_t)n;
        }
    }
    free(all);
    close(fd);
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.resp_requests, REQUESTS);
    T_EQ(stats.overruns, 0);
    world_stop(&w);
}

T_TEST(conn_big_answers)
{
    static struct world w;
    world_start(&w, NULL);
    int fd = dial(&w);
    static char body[BIG_BYTES + 1];
    for (int i = 0; i < 20; i++)
        say(fd, GET("/big"));
    usleep(50000);
    for (int i = 0; i < 20; i++) {
        T_EQ(hear_http(fd, body, sizeof body), 200);
        T_EQ(strlen(body), BIG_BYTES);
        T_OK(atoi(body + BIG_BYTES - 100) == BIG_BYTES / 100 - 1);
    }
    close(fd);
    world_stop(&w);
}

T_TEST(conn_bounds_on_unsent_bytes)
{
    static struct world w;
    struct loop_opts opts = { .out_max_bytes = 128 * 1024 };
    world_start(&w, &opts);
    int fd = dial(&w), other = dial(&w);
    say(fd, GET("/big")); /* one answer above the bound */
    hear_end(fd);
    say(other, GET("/n/1"));
    hear_number(other, 1);
    /* Answers that wait behind a deferred one are bounded too. */
    fd = dial(&w);
    say(fd, GET("/d/1") GET("/big") GET("/big"));
    wait_deferred(&w, 1);
    ask(&w, release_all_backwards, NULL);
    hear_end(fd);
    struct loop_stats stats;
    loop_stats(w.loop, &stats);
    T_EQ(stats.overruns, 2);
    close(other);
    world_stop(&w);
}

T_TEST(conn_silent_reader_is_dropped)
{
    static struct world w;
    struct loop_opts opts = { .write_ms = 150 };
    world_start(&w, &opts);
    int fd = dial(&w);
    for (int i = 0; i < 20; i++)
        say(fd, GET("/big"));
    struct loop_stats stats = { 0 };
    for (int i = 0; i < 5000 && stats.timeouts == 0; i++, usleep(1000))
        loop_stats(w.loop, &stats);
    T_EQ(stats.timeouts, 1);
    close(fd);
    world_stop(&w);
}
