/*
 * raft_world.h - three libraft nodes, A, B and C, in one process, with a simulated clock, disks and
 * network.
 *
 * libraft asks for all of these through struct raft_io. Time is virtual and moves from one event to
 * the next; a write to a disk and a message take a fixed time; all randomness comes from a seed. A
 * node that is killed loses writes that its disk had not finished, and starts again from its disk
 * as a process would. The settings are those of firnd (raft/node.c): time-outs of 150 to 300 ms,
 * heartbeats of 30 ms, pre-vote. Callbacks report every message and every change that a node makes.
 * One thread.
 */
#ifndef FIRN_CLI_LAB_RAFT_WORLD_H
#define FIRN_CLI_LAB_RAFT_WORLD_H

#include <raft.h>
#include <stdbool.h>
#include <stdint.h>

enum { WORLD_NODES = 3, WORLD_COMMAND_BUF = 24, WORLD_ENTRIES_MAX = 64, WORLD_EVENTS_MAX = 256 };
enum { WORLD_ELECTION_MS = 150, WORLD_HEARTBEAT_MS = WORLD_ELECTION_MS / 5 };

struct raft_world;

struct world_entry {
    raft_term term;
    unsigned short type;
    struct raft_buffer buf; /* on the heap */
};

struct world_disk { /* survives its node */
    raft_term term;
    raft_id vote;
    struct world_entry entry[WORLD_ENTRIES_MAX];
    size_t n, durable; /* the first `durable` survive a crash */
};

struct world_node {
    struct raft_world *world;
    unsigned i;
    bool up, closed;
    struct world_disk disk;
    char variable['z' - 'a' + 1][8]; /* the state machine: what `set x = 5` set */
    raft_index set_index;            /* of the last entry that it applied */
    struct raft_io io;
    struct raft_fsm fsm;
    struct raft raft;
    raft_io_tick_cb tick;
    raft_io_recv_cb recv;
    unsigned tick_ms;
};

/* A copy of a message, without the memory that its receiver takes. */
struct world_message {
    unsigned from, to;
    bool lost;
    unsigned short type; /* RAFT_IO_* */
    raft_term term;
    raft_index prev_index, leader_commit; /* AppendEntries */
    raft_term prev_term;
    unsigned entries;
    unsigned short entry_type;       /* of the first one */
    char command[WORLD_COMMAND_BUF]; /* of the first one */
    raft_index rejected, last_index; /* AppendEntries' result; last_index also RequestVote */
    raft_term last_term;             /* RequestVote */
    bool granted, pre_vote;          /* RequestVote and its result */
};

struct world_watch { /* all called after libraft has processed the event; `user` comes first */
    void *user;
    void (*message)(void *user, const struct world_message *m);
    void (*stored)(void *user, unsigned node, raft_index index);
    void (*ticked)(void *user, unsigned node);
    /* The exceptions: called in the middle of one of the above. */
    void (*applied)(void *user, unsigned node, raft_index index, const char *command);
    void (*answered)(void *user, unsigned node, int status);
};

struct world_event; /* private */

struct raft_world {
    uint64_t now_ms, rng;
    bool pre_vote, failed;
    int quick; /* this node's time-outs are the shortest, all others' the longest; -1: random */
    bool cut[WORLD_NODES][WORLD_NODES];                           /* from, to */
    bool (*lose)(void *lose_user, const struct world_message *m); /* or NULL */
    void *lose_user;
    struct world_watch watch;
    struct world_node node[WORLD_NODES];
    struct world_event *event;
    size_t events;
    uint64_t sequence;
    raft_index asked; /* of the client's last command */
};

/* Make three voters with empty disks and one configuration; false: failed. Call done() in both
 * cases. */
bool world_init(struct raft_world *w, uint64_t seed, bool pre_vote, int quick);
void world_done(struct raft_world *w);

/* The next event; false: there is none, or something failed. */
bool world_step(struct raft_world *w);

/* Give a command to a node; false: it does not lead. */
bool world_ask(struct raft_world *w, unsigned node, const char *command);
bool world_transfer(struct raft_world *w, unsigned from, unsigned to);
void world_kill(struct raft_world *w, unsigned node);
bool world_start(struct raft_world *w, unsigned node);

/* The node that leads in the highest term, or -1. */
int world_leader(const struct raft_world *w);

#endif
