/* A snapshot that the leader sent, from its coming to the disk's answer. */
#include "raft/shield/install_snapshot.c"

#include "t.h"

enum { TIMEOUT = 150, RANDOM = 222, NOW = 7000 };

static struct {
    struct raft_io_snapshot_put *req;
    raft_io_snapshot_put_cb cb;
    unsigned told, errors;
    int status;  /* that libraft was told */
    int refuses; /* the disk, at once */
} world;

static struct node node;
static struct raft_io_snapshot_put theirs;
static const struct raft_snapshot taken; /* without members */

void node_say(const struct node *n, enum node_level level, const char *event, const char *fmt, ...)
{
    (void)n, (void)fmt;
    world.errors += level == NODE_ERROR && strcmp(event, "log_not_written") == 0;
}

static int fake_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                    const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    (void)io, (void)trailing, (void)snapshot;
    world.req = req;
    world.cb = cb;
    return world.refuses;
}

static int fake_random(struct raft_io *io, int min, int max)
{
    (void)io;
    T_EQ(min, TIMEOUT);
    T_EQ(max, 2 * TIMEOUT);
    return RANDOM;
}

static raft_time fake_time(struct raft_io *io)
{
    (void)io;
    return NOW;
}

static void told(struct raft_io_snapshot_put *req, int status)
{
    T_OK(req == &theirs);
    world.told++;
    world.status = status;
}

static unsigned election_timeout(void)
{
    return node.raft.follower_state.randomized_election_timeout;
}

/* One of the leader of term 4 comes, up to entry 90; the disk has it now. */
static void receive(void)
{
    memset(&world, 0, sizeof world);
    memset(&node, 0, sizeof node);
    node.raft.state = RAFT_FOLLOWER;
    node.raft.election_timeout = TIMEOUT;
    node.raft.follower_state.randomized_election_timeout = 180;
    node.io =
        (struct raft_io){ .snapshot_put = fake_put, .random = fake_random, .time = fake_time };
    install_snapshot_watch(&node);
    node.shield.shown = (struct match){ 4, 90 };
    T_EQ(node.io.snapshot_put(&node.io, 0, &theirs, &taken, told), 0);
    node.shield.shown = (struct match){ 5, 200 }; /* of another message */
}

static void stores(int status)
{
    world.cb(world.req, status);
    T_EQ(world.told, 1);
    T_EQ(world.status, status);
}

T_TEST(no_election_until_it_is_stored)
{
    receive();
    T_EQ(election_timeout(), UINT_MAX);
    T_EQ(match_answer(&node.shield.match, 4, 90), 0, "nor an answer for it");
    stores(0);
    T_EQ(election_timeout(), RANDOM);
    T_EQ(node.raft.election_timer_start, NOW);
    T_EQ(match_answer(&node.shield.match, 4, 90), 90);
    T_OK(!node.health.stalled);
}

T_TEST(one_that_cannot_be_stored_ends_the_writing)
{
    receive();
    stores(RAFT_NOSPACE);
    T_OK(node.health.stalled);
    T_EQ(world.errors, 1);
    T_EQ(match_answer(&node.shield.match, 4, 90), 0, "the leader must not count it");
}

T_TEST(closing_is_no_failure)
{
    receive();
    stores(RAFT_CANCELED);
    T_OK(!node.health.stalled);
    T_EQ(world.errors, 0);
    T_EQ(match_answer(&node.shield.match, 4, 90), 0);
}

T_TEST(whoever_leads_or_stands_by_then_has_a_time_of_its_own)
{
    receive();
    node.raft.state = RAFT_CANDIDATE;
    node.raft.candidate_state.randomized_election_timeout = 190;
    stores(0);
    T_EQ(node.raft.candidate_state.randomized_election_timeout, 190);
}

T_TEST(its_own_snapshot_is_libraft_s_affair)
{
    receive();
    stores(0);
    T_EQ(node.io.snapshot_put(&node.io, 2048, &theirs, &taken, told), 0);
    T_OK(world.req == &theirs && world.cb == told);
    T_EQ(election_timeout(), RANDOM);
}

T_TEST(one_that_is_refused_at_once_holds_nothing_up)
{
    receive();
    stores(0);
    world.refuses = RAFT_NOMEM;
    T_EQ(node.io.snapshot_put(&node.io, 0, &theirs, &taken, told), RAFT_NOMEM);
    T_EQ(election_timeout(), RANDOM);
    T_OK(!node.shield.install.theirs);
}
