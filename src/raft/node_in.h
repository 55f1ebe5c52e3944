/*
 * node_in.h - struct node and what its files call of each other.
 * Everything but struct node_inbox and struct node_published belongs to the loop's thread.
 */
#ifndef FIRN_RAFT_NODE_IN_H
#define FIRN_RAFT_NODE_IN_H

#include <pthread.h>
#include <raft.h>
#include <raft/uv.h>

#include "platform/assert.h"
#include "raft/fsm.h"
#include "raft/node.h"
#include "raft/pace.h"
#include "raft/shield/shield.h"
#include "raft/write_turn.h"
#include "raft/wire.h"
#include "wire/buf.h"

enum {
    NODE_TICK_MS = 10,
    PROPOSALS_MAX = 2, /* entries under way: one is written while the next one collects writes */
    MEMBERS_MAX = NODE_PEERS_MAX, /* members that status and metrics show */
    RETRY_MS = 20,                /* pause after "this member does not lead" */
    HEARD_MS = 1000,              /* a member that was heard from longer ago counts as not seen */
    SNAPSHOT_EVERY = 8192,
    SNAPSHOT_KEEP = 2048,
    SNAPSHOT_AGAIN_MS = 3000,
};

enum request_state {
    REQUEST_WAITING,   /* for a leader, or for its turn */
    REQUEST_PROPOSED,  /* a write in the log, or a membership change under way */
    REQUEST_BARRIER,   /* a read: waits until the leader has shown that it still leads */
    REQUEST_FORWARDED, /* sent to the leader */
};

struct request {
    struct request *next, *prev;
    enum request_state state;
    struct frame frame; /* its body is in `bytes` */
    /* All of uv_now(): arrival, deadline, and not to be tried before. */
    uint64_t since_ms, deadline_ms, retry_ms;
    uint64_t number; /* this member's own, also for the leader that it is forwarded to */
    bool maybe;      /* it was in a log or sent to a leader, and its outcome is not known */
    struct wire
        *wire; /* the client's connection; NULL: this process asked, or the client is gone */
    void (*done)(void *user, const char *reply, size_t len);
    void *user;
    size_t len;
    char bytes[];
};

struct hand_in { /* a request from another thread */
    struct hand_in *next;
    void (*done)(void *user, const char *reply, size_t len);
    void *user;
    size_t len;
    char bytes[];
};

struct state_check {   /* comparison of register digests (state_check.c) */
    raft_term settled; /* the last term in which this leader applied every earlier entry, */
    raft_term term;    /* and in which its digest was compared by the members */
    uint64_t until;    /* the comparison is valid until this many requests are applied */
    bool under_way;    /* the digest is in the log, and not yet applied */
    raft_term differs; /* the last term whose leader has another digest; 0: none */
    uint64_t said_ms;  /* of uv_now(): when that was logged last */
};

struct node_identity { /* of this member */
    uint64_t id;
    char *address; /* under which the other members reach it */
    char *dir;
    int lock_fd;
    bool newcomer; /* it was never a member: a log that arrives may be for another process */
    uint64_t boot; /* random, new with each start: with a request's number it is a nonce */
};

struct node_loop { /* libuv's loop, and the thread that runs it */
    uv_loop_t uv;
    pthread_t thread;
    uv_async_t wake;
    uv_timer_t tick;
    bool closing;
};

struct node_net {            /* the peer port, and libraft's transport on it */
    struct tls_context *tls; /* NULL: without TLS */
    uv_tcp_t listener;
    struct raft_uv_transport transport;
    raft_uv_accept_cb accept;
    struct dial *dials; /* connections that libraft asked for and that are not made yet */
};

struct node_health {
    bool raft_open; /* libraft is initialised */
    bool stalled;   /* the log cannot be written: nothing is written or applied any more */
    bool stopped;   /* libraft has given up */
};

struct node_applied { /* the state machine's side of libraft */
    struct raft_fsm hooks;
    int failed; /* why an entry was not applied; since then none is */
    struct {
        raft_index index;
        uint64_t sum;
    } digest;           /* of the registers as of `index`, for status requests that repeat */
    uint64_t snapshots; /* taken or received since the start */
};

struct node_requests { /* of clients, of other members and of this process */
    struct request *first, *last;
    size_t count, bytes;  /* bytes: of all together */
    uint64_t last_number; /* that a request was given */
    char *room;           /* FRAME_MAX bytes, for the frame that is being written */
};

struct node_proposals { /* what this member appends, as the leader */
    unsigned under_way;
    bool naming;    /* the entry that names the cluster is under way */
    uint64_t begun; /* entries with writes, ever: their numbers */
    struct turns turns;
    uint64_t entries, writes; /* proposed since the start */
};

struct node_reads { /* reads that must be current */
    bool under_way;
    struct raft_barrier barrier;
    bool caught_up; /* since the start it once had every entry that the leader had */
};

struct node_change { /* of the members or of the leader, one at a time */
    bool under_way, transferring;
    struct raft_transfer transfer;
};

struct node_election {      /* the leader, as this member sees it */
    raft_id logged;         /* the leader that was logged last */
    uint64_t leaderless_ms; /* of uv_now(): since when there is none; 0: there is one */
    uint64_t changes;       /* of the leader, since the start */
    raft_term counted_term; /* with counted_id: the leader that was counted last */
    raft_id counted_id;
    struct pace pace;       /* of the time-out */
    uint64_t ticked_ms;     /* of uv_now(): libraft's last tick */
    bool led, handing_over; /* at the last tick of the node */
    raft_term led_term;
    uint64_t lost; /* times that this member lost the lead, since the start */
};

struct node_forward { /* requests that the leader answers */
    struct wire *wire;
    bool up;
    char address[FRAME_ADDRESS_MAX + 1];
    unsigned other;       /* the member to ask next where no leader can be named */
    uint64_t requests[2]; /* since the start; [1] writes */
};

struct node_join { /* asking to become a member */
    char **members;
    size_t next;
    struct wire *wire;
    uint64_t retry_ms; /* of uv_now() */
};

struct node_removal { /* asking whether this member was removed */
    bool removed;
    struct wire *wire;
    uint64_t ask_ms; /* of uv_now(): when to ask, or to give up */
};

struct node_heard { /* when the leader last heard from a member */
    raft_id id;
    uint64_t ms; /* of uv_now(); 0: never */
};

struct node_published { /* for other threads */
    pthread_mutex_t mutex;
    struct node_view view; /* guarded by mutex */
};

struct node_inbox { /* from other threads; everything is guarded by mutex */
    pthread_mutex_t mutex;
    struct hand_in *first, **last;
    bool stop;
};

struct node {
    struct node_opts opts;
    struct node_identity self;
    struct node_loop loop;
    struct node_net net;
    struct raft raft;
    struct raft_io io;
    struct shield shield;
    struct node_health health;
    struct fsm fsm;
    struct node_applied applied;
    struct state_check check;
    struct node_requests requests;
    struct node_proposals proposals;
    struct node_reads reads;
    struct node_change change;
    struct node_election election;
    struct node_forward forward;
    struct node_join join;
    struct node_removal removal;
    struct node_heard heard[MEMBERS_MAX]; /* in the order of the configuration */
    struct node_published published;
    struct node_inbox inbox;
};

/* The node that libraft's I/O interface belongs to. */
static inline struct node *node_of(struct raft_io *io)
{
    return (struct node *)(void *)((char *)io - offsetof(struct node, io));
}

void node_say(const struct node *n, enum node_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- election.c ---- */

void election_begin(struct node *n, uint32_t base_ms);
void election_heard(struct node *n, const struct raft_message *m); /* before libraft sees it */
void election_tick(struct node *n);                                /* before libraft's */
void election_watch_lead(struct node *n);

/* ---- request.c ---- */

void node_take(struct node *n, const char *bytes, size_t len, struct wire *wire,
               void (*done)(void *user, const char *reply, size_t len), void *user);
void node_pump(struct node *n); /* advance every request that can be advanced now */

/* The same from inside a callback of libraft. libraft may be stepping down there, with half of its
 * leader state already freed, and must not be called. */
static inline void node_pump_soon(struct node *n)
{
    if (!n->loop.closing)
        uv_async_send(&n->loop.wake);
}

const char *node_any_other(
    const struct node *n); /* address of another member; NULL: there is none */
void node_forget(struct node *n, const struct wire *w); /* the client on that connection is gone */
void node_greet(struct wire *w);                        /* send HELLO as a client; wire_events.up */
void node_leader_lost(struct node *n);                  /* the connection to the leader is gone */
void node_answer(struct node *n, struct request *q, const char *reply, size_t len);
void node_refuse(struct node *n, struct request *q, int result, const char *why);
void node_expire(struct node *n);
void node_end_requests(struct node *n);
struct request *node_request(struct node *n, uint64_t number); /* NULL: it has ended */

/* The outcome of a write is not known. If this member took it from its client, it asks the next
 * leader; else the member that forwarded it does. */
void node_ask_again(struct node *n, struct request *q, const char *why);

/* Begin a reply; end and send it. */
struct frame_out node_reply(struct node *n, const struct request *q, uint64_t index);
void node_reply_send(struct node *n, struct request *q, struct frame_out *o);

static inline bool request_due(const struct node *n, const struct request *q)
{
    return q->state == REQUEST_WAITING && q->retry_ms <= uv_now(&n->loop.uv);
}

/* Every request waits between two attempts. */
static inline void request_move(struct request *q, enum request_state next)
{
    firn_assert((q->state == REQUEST_WAITING) != (next == REQUEST_WAITING), "state=%d next=%d",
                (int)q->state, (int)next);
    q->state = next;
}

static inline void request_wait(const struct node *n, struct request *q, uint64_t pause_ms)
{
    if (q->state != REQUEST_WAITING)
        request_move(q, REQUEST_WAITING);
    q->retry_ms = uv_now(&n->loop.uv) + pause_ms;
}

/* Append to the log, as the leader. */
static inline int node_append(struct node *n, struct raft_apply *req, struct raft_buffer *entry,
                              raft_apply_cb cb)
{
    firn_assert(entry->len > 0 && entry->len % 8 == 0, "len=%zu", entry->len);
    firn_assert(raft_last_index(&n->raft) >= raft_last_applied(&n->raft));
    fsm_entry_place(entry->base, raft_last_index(&n->raft) + 1);
    return raft_apply(&n->raft, req, entry, 1, cb);
}

/* ---- propose.c ---- */

void node_propose(
    struct node *n); /* append the writes that wait and may be written now, as one entry */
bool node_may_write(struct node *n); /* is there such a write? */
/* The client has seen a higher index than this leader's log has. */
bool node_forgot(struct node *n, const struct request *q);
enum turn_of node_turn(struct node *n, const struct request *q);
/* A cluster gets its incarnation from its first leader, and another one when it is restored. */
void node_name_cluster(struct node *n);

/* ---- membership.c ---- */

void membership_change(struct node *n, struct request *q);
void membership_join(struct node *n); /* at each tick, until this process is a member */
const struct raft_server *node_member(const struct node *n, uint64_t id); /* NULL: no such member */

/* ---- removed.c ---- */

void removed_tick(struct node *n);

/* ---- status.c ---- */

void status_note_heard(struct node *n); /* at each tick: which members the leader heard from */
bool status_heard(const struct node *n, unsigned i); /* from the member at i, within HEARD_MS */
void node_status(struct node *n, bool lines, struct buf *to);

/* ---- view.c ---- */

void view_publish(struct node *n);

/* ---- transport.c ---- */

void node_transport(struct node *n);
FIRN_MUSTUSE int node_listen(struct node *n, const char *address, struct firn_diag *d);

/* ---- state_check.c ---- */

bool check_passed(const struct node *n); /* as the leader: it may write */
void check_settle(struct node *n);       /* a barrier of this term is applied */
bool check_settled(const struct node *n);
void check_propose(struct node *n); /* append this leader's digest, if nothing else is under way */
void check_applied(struct node *n); /* a leader's digest was compared with this member's */
bool check_differs(const struct node *n); /* from the leader of this term */

/* ---- identity.c ---- */

FIRN_MUSTUSE int identity_open(struct node *n, struct firn_diag *d);
void identity_note_restore(struct node *n); /* cluster.restore is done, and not to be done again */
bool address_loopback(const char *address);

#endif
