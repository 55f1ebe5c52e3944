/* Two wires that meet on a loop. */
#include <stdbool.h>
#include <stdlib.h>

static bool no_memory;

static void *some(size_t n, size_t size)
{
    return no_memory ? NULL : calloc(n, size);
}

#define calloc(n, size) some(n, size)
#include "raft/wire.c"
#undef calloc

#include "t.h"

static struct {
    uv_loop_t loop;
    uv_tcp_t listener;
    struct wire_host host;
    struct wire *guest;
    bool up, waits;
    unsigned entered, frames;
    size_t bytes;
} world;

static void on_up(struct wire *w)
{
    (void)w;
    world.up = true;
}

static void on_frame(struct wire *w, const struct frame *f)
{
    (void)w;
    T_EQ(world.entered > 0, true);
    world.frames++;
    world.bytes += f->len;
}

static void on_enter(void *user)
{
    T_OK(user == &world);
    world.entered++;
}

static void on_gone(struct wire *w, const char *why)
{
    (void)w;
    T_OK(false, "the wire is gone: %s", why);
}

static const struct wire_events events = { on_up, on_frame, on_gone };

static void on_guest(uv_stream_t *listener, int status)
{
    T_EQ(status, 0);
    world.guest = wire_accept(&world.host, listener, &events, NULL, &world.waits);
}

static unsigned user_timeout(const struct wire *w)
{
    unsigned ms = 0;
    socklen_t len = sizeof ms;
    uv_os_fd_t fd;
    T_EQ(uv_fileno((const uv_handle_t *)&w->tcp, &fd), 0);
    T_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &len), 0);
    return ms;
}

static struct wire *meet(void)
{
    struct sockaddr_in any;
    struct sockaddr_storage bound;
    char address[32];
    int len = sizeof bound;
    memset(&world, 0, sizeof world);
    T_EQ(uv_loop_init(&world.loop), 0);
    world.host = (struct wire_host){ .loop = &world.loop, .enter = on_enter, .user = &world };
    T_EQ(uv_ip4_addr("127.0.0.1", 0, &any), 0);
    uv_tcp_init(&world.loop, &world.listener);
    T_EQ(uv_tcp_bind(&world.listener, (struct sockaddr *)&any, 0), 0);
    T_EQ(uv_listen((uv_stream_t *)&world.listener, 4, on_guest), 0);
    T_EQ(uv_tcp_getsockname(&world.listener, (struct sockaddr *)&bound, &len), 0);
    snprintf(address, sizeof address, "127.0.0.1:%u",
             ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port));
    struct wire *w = wire_connect(&world.host, address, &events, NULL);
    T_OK(w);
    T_OK(!w->resolving, "a number needs no resolver");
    while (!world.up || !world.guest)
        uv_run(&world.loop, UV_RUN_ONCE);
    return w;
}

static void part(void)
{
    wire_close_all(&world.host);
    uv_close((uv_handle_t *)&world.listener, NULL);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(&world.loop), 0);
}

/* Whatever is sent and not taken: in both directions the kernel gives up, and a new connection can
 * be made. */
T_TEST(a_peer_that_acknowledges_nothing_is_given_up)
{
    struct wire *w = meet();
    T_EQ(user_timeout(w), WIRE_SILENT_MS);
    T_EQ(user_timeout(world.guest), WIRE_SILENT_MS);
    part();
}

/* The connection waits until there is memory, and others behind it are taken then. */
T_TEST(a_lack_of_memory_does_not_deafen)
{
    struct wire *w = meet();
    struct sockaddr_storage bound;
    int len = sizeof bound;
    char address[32];
    uv_tcp_getsockname(&world.listener, (struct sockaddr *)&bound, &len);
    snprintf(address, sizeof address, "127.0.0.1:%u",
             ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port));
    T_OK(w && wire_connect(&world.host, address, &events, NULL));
    T_OK(wire_connect(&world.host, address, &events, NULL));
    no_memory = true;
    while (!world.waits)
        uv_run(&world.loop, UV_RUN_ONCE);
    no_memory = false;
    world.guest = NULL;
    on_guest((uv_stream_t *)&world.listener, 0);
    T_OK(world.guest && !world.waits);
    world.guest = NULL;
    while (!world.guest)
        uv_run(&world.loop, UV_RUN_ONCE);
    part();
}

/* The longest frame of members, several times, and small ones between them. */
T_TEST(frames_arrive_whole)
{
    enum { TIMES = 12 };
    char *room = calloc(1, FRAME_RAFT_MAX);
    struct frame_out o = { .p = room, .cap = FRAME_RAFT_MAX };
    struct wire *w = meet();
    for (int i = 0; i < TIMES; i++) {
        frame_begin(&o, FRAME_WELCOME, 0, 0, 0);
        frame_end(&o);
        wire_send(w, o.p, o.len);
        frame_begin(&o, FRAME_RAFT, 0, 0, 0);
        o.len = FRAME_RAFT_MAX;
        frame_end(&o);
        wire_send(w, o.p, o.len);
    }
    T_OK(wire_unsent(w) > 0, "the kernel does not take all of it at once");
    while (world.frames < 2 * TIMES)
        uv_run(&world.loop, UV_RUN_ONCE);
    T_EQ(world.bytes, TIMES * (FRAME_RAFT_MAX - FRAME_HEAD));
    while (wire_unsent(w) > 0)
        uv_run(&world.loop, UV_RUN_ONCE);
    T_EQ(world.entered, 1 + 2 * TIMES);
    part();
    free(room);
}
