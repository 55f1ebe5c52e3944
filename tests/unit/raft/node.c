/* A node's thread, and what other threads ask of it while it ends. */
#include "raft/node.h"
#include "store/raft_frame.h"

#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct node *node;
    char frame[FRAME_HEAD];
    size_t len;
    unsigned asked, answered;
} world;

/* As a server does that serves on while its member ends. */
static void on_done(void *user, const char *reply, size_t len)
{
    (void)user, (void)len;
    T_OK(!reply, "there was no leader yet");
    world.answered++;
    if (world.asked < 2) {
        world.asked++;
        node_submit(world.node, world.frame, world.len, on_done, NULL);
    }
}

T_TEST(every_request_is_answered)
{
    char top[] = "/tmp/firn-node-XXXXXX", dir[64], command[64];
    struct firn_diag d = { 0 };
    struct frame_out o = { .p = world.frame, .cap = sizeof world.frame };
    T_OK(mkdtemp(top));
    snprintf(dir, sizeof dir, "%s/raft", top);
    struct node_opts opts = { .dir = dir, .listen = "127.0.0.1:0", .init = true };
    T_EQ(node_start(&opts, &world.node, &d), 0);
    frame_begin(&o, FRAME_IDENTITY, 0, 60000, 1);
    frame_end(&o);
    world.len = o.len;
    world.asked = 1;
    node_submit(world.node, world.frame, world.len, on_done, NULL);
    node_stop(world.node);
    T_EQ(world.answered, 2);
    snprintf(command, sizeof command, "rm -rf %s", top);
    T_EQ(system(command), 0);
}
