/* A follower that hears nothing, as its loop's ticks count it. */
#include "raft/shield/silent_leader.c"

#include "t.h"

static struct {
    int state, errors, heard;
    struct raft_server me;
    bool removed;
} world;

int raft_state(struct raft *r)
{
    (void)r;
    return world.state;
}

raft_index raft_last_index(struct raft *r)
{
    (void)r;
    return 7;
}

const struct raft_server *node_member(const struct node *n, uint64_t id)
{
    (void)n, (void)id;
    return world.removed ? NULL : &world.me;
}

void node_say(const struct node *n, enum node_level level, const char *event, const char *fmt, ...)
{
    (void)n, (void)fmt;
    world.errors += level == NODE_ERROR && strcmp(event, "leader_silent") == 0;
    world.heard += level == NODE_INFO && strcmp(event, "leader_heard") == 0;
}

static struct node node;

static void begin(void)
{
    memset(&node, 0, sizeof node);
    memset(&world, 0, sizeof world);
    world.state = RAFT_FOLLOWER;
    node.raft.election_timeout = 150;
    node.raft.configuration.n = 3;
}

static void ticks(unsigned ms)
{
    for (unsigned i = 0; i < ms / NODE_TICK_MS; i++)
        silent_leader_tick(&node);
}

T_TEST(it_is_told_once_and_ends)
{
    begin();
    ticks(SILENT_MS + 1490);
    T_EQ(world.errors, 0);
    ticks(60000);
    T_EQ(world.errors, 1);
    T_OK(node.shield.leader.silent);
    node.shield.leader.spoke = true;
    ticks(10);
    T_OK(!node.shield.leader.silent);
    T_EQ(world.heard, 1);
    ticks(60000);
    T_EQ(world.errors, 2);
}

T_TEST(who_hears_or_stands_or_is_alone_is_not_silent)
{
    begin();
    for (int i = 0; i < 1000; i++) {
        node.shield.leader.spoke = true;
        ticks(150);
    }
    world.state = RAFT_CANDIDATE;
    ticks(60000);
    world.state = RAFT_FOLLOWER;
    node.raft.configuration.n = 1;
    ticks(60000);
    node.raft.configuration.n = 3;
    world.removed = true;
    ticks(60000);
    world.removed = false;
    node.health.stalled = true; /* that has been told already */
    ticks(60000);
    T_EQ(world.errors, 0);
    T_EQ(world.heard, 0);
}
