/* Two wires that meet on a loop. */
#include "raft/wire.c"

#include "t.h"

static struct {
    uv_loop_t loop;
    uv_tcp_t listener;
    struct wire *guest;
    bool up;
} world;

static void on_up(struct wire *w)
{
    (void)w;
    world.up = true;
}

static void on_frame(struct wire *w, const struct frame *f)
{
    (void)w, (void)f;
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
    world.guest = wire_accept(listener, NULL, &events, NULL);
}

static unsigned user_timeout(const struct wire *w)
{
    unsigned ms = 0;
    socklen_t len = sizeof ms;
    uv_os_fd_t fd;
    T_EQ(uv_fileno((uv_handle_t *)w->tcp, &fd), 0);
    T_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, &len), 0);
    return ms;
}

/* Whatever is sent and not taken: in both directions the kernel gives up, and a new connection can
 * be made. */
T_TEST(a_peer_that_acknowledges_nothing_is_given_up)
{
    struct sockaddr_in any;
    struct sockaddr_storage bound;
    char address[32];
    int len = sizeof bound;
    T_EQ(uv_loop_init(&world.loop), 0);
    T_EQ(uv_ip4_addr("127.0.0.1", 0, &any), 0);
    uv_tcp_init(&world.loop, &world.listener);
    T_EQ(uv_tcp_bind(&world.listener, (struct sockaddr *)&any, 0), 0);
    T_EQ(uv_listen((uv_stream_t *)&world.listener, 4, on_guest), 0);
    T_EQ(uv_tcp_getsockname(&world.listener, (struct sockaddr *)&bound, &len), 0);
    snprintf(address, sizeof address, "127.0.0.1:%u",
             ntohs(((struct sockaddr_in *)(void *)&bound)->sin_port));
    struct wire *w = wire_connect(&world.loop, address, NULL, &events, NULL);
    T_OK(w);
    while (!world.up || !world.guest)
        uv_run(&world.loop, UV_RUN_ONCE);
    T_EQ(user_timeout(w), WIRE_SILENT_MS);
    T_EQ(user_timeout(world.guest), WIRE_SILENT_MS);
    wire_close_all(&world.loop);
    uv_close((uv_handle_t *)&world.listener, NULL);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    T_EQ(uv_loop_close(&world.loop), 0);
}
