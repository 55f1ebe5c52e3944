/* The client without a server: addresses, an absent server, one that says nothing. With a real one:
 * tests/integration/proxy_redis.py. */
#include "proxy/redis.h"
#include "t.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct world {
    uv_loop_t loop;
    struct redis *r;
    int results[4], states;
    char why[200];
};

static void done(void *user, enum redis_result result, const struct redis_reply *reply)
{
    struct world *w = user;
    w->results[result]++;
    T_OK((result == REDIS_OK) == (reply != NULL));
}

static void changed(void *user, bool ready, const char *why)
{
    struct world *w = user;
    T_OK(!ready);
    w->states++;
    snprintf(w->why, sizeof w->why, "%s", why);
}

static void leave(struct world *w)
{
    redis_close(w->r);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(&w->loop), 0);
}

static const struct slice ping[] = { { "PING", 4 } };

/* A listening socket that nobody accepts from, or whose port is free again. */
static int listener(char address[32])
{
    struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    T_OK(fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, 8) == 0 &&
         getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    snprintf(address, 32, "127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

T_TEST(addresses)
{
    static const char *const bad[] = { "",      "localhost:6379", "127.0.0.1",
                                       "unix:", "unix:x",         "1.2.3:1" };
    struct world w = { 0 };
    uv_loop_init(&w.loop);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_diag why = { 0, "" };
        struct redis_opts o = { .address = bad[i] };
        T_EQ(redis_new(&w.loop, &o, NULL, NULL, &w.r, &why), FIRN_EINVAL, "%s", bad[i]);
        T_OK(strstr(why.text, "is not the address"), "%s", why.text);
    }
    T_EQ(uv_loop_close(&w.loop), 0);
}

T_TEST(no_server)
{
    struct world w = { 0 };
    char address[32];
    close(listener(address));
    struct redis_opts o = { .address = address };
    uv_loop_init(&w.loop);
    T_EQ(redis_new(&w.loop, &o, changed, &w, &w.r, NULL), 0);
    T_OK(redis_ready(w.r)); /* it does not know yet */
    T_EQ(redis_call(w.r, ping, 1, done, &w), 0);
    T_EQ(w.results[REDIS_LOST], 0);
    while (w.states == 0)
        uv_run(&w.loop, UV_RUN_ONCE);
    T_EQ(w.results[REDIS_LOST], 1);
    T_OK(strstr(w.why, "cannot connect"), "%s", w.why);
    T_OK(!redis_ready(w.r));
    T_EQ(redis_call(w.r, ping, 1, done, &w), FIRN_EAGAIN);
    leave(&w);
    T_EQ(w.results[REDIS_LOST], 1);
}

/* Calls time out, the next are refused at once, and after stall_ms the connection is given up. */
T_TEST(a_server_that_says_nothing)
{
    struct world w = { 0 };
    char address[32];
    int fd = listener(address);
    struct redis_opts o = { .address = address, .call_ms = 20, .connect_ms = 200 };
    uv_loop_init(&w.loop);
    T_EQ(redis_new(&w.loop, &o, changed, &w, &w.r, NULL), 0);
    for (int i = 0; i < 10; i++)
        T_EQ(redis_call(w.r, ping, 1, done, &w), 0);
    while (w.results[REDIS_TIMEOUT] < 10)
        uv_run(&w.loop, UV_RUN_ONCE);
    T_OK(!redis_ready(w.r));
    T_EQ(redis_call(w.r, ping, 1, done, &w), FIRN_EAGAIN);
    while (w.states == 0)
        uv_run(&w.loop, UV_RUN_ONCE);
    T_EQ(w.results[REDIS_TIMEOUT], 10);
    T_EQ(w.results[REDIS_LOST], 0); /* each call ends once */
    leave(&w);
    close(fd);
}

/* A server that sends something else than the protocol. */
T_TEST(another_protocol)
{
    struct world w = { 0 };
    char address[32];
    int fd = listener(address);
    struct redis_opts o = { .address = address };
    uv_loop_init(&w.loop);
    T_EQ(redis_new(&w.loop, &o, changed, &w, &w.r, NULL), 0);
    int peer = accept(fd, NULL, NULL);
    static const char greeting[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    T_EQ(send(peer, greeting, sizeof greeting - 1, 0), sizeof greeting - 1);
    while (w.states == 0)
        uv_run(&w.loop, UV_RUN_ONCE);
    T_OK(strstr(w.why, "not the Redis protocol"), "%s", w.why);
    leave(&w);
    close(peer);
    close(fd);
}

T_TEST(the_queue_is_bounded)
{
    struct world w = { 0 };
    char address[32];
    int fd = listener(address), taken = 0;
    struct redis_opts o = { .address = address, .queue_max = 100, .call_ms = 60000 };
    uv_loop_init(&w.loop);
    T_EQ(redis_new(&w.loop, &o, NULL, NULL, &w.r, NULL), 0);
    while (redis_call(w.r, ping, 1, done, &w) == 0)
        taken++;
    T_OK(taken > 50 && taken < 100, "%d", taken);
    leave(&w);
    T_EQ(w.results[REDIS_CLOSED], taken);
    close(fd);
}
