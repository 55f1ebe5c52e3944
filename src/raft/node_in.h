/* node_in.h - the node as its own files see it. Everything but `mutex` and what it guards belongs to the
 * loop's thread. */
#ifndef FIRN_RAFT_NODE_IN_H
#define FIRN_RAFT_NODE_IN_H

#include <pthread.h>
#include <raft.h>
#include <raft/uv.h>

#include "raft/fsm.h"
#include "raft/shield/match.h"
#include "raft/node.h"
#include "raft/write_turn.h"
#include "raft/shield/vote.h"
#include "raft/wire.h"

enum {
    NODE_TICK_MS = 10,
    PROPOSALS_MAX = 2, /* entries on their way: one is written while the next one collects */
    MEMBERS_MAX = NODE_PEERS_MAX, /* that the status tells about; more are no cluster any more */
    RETRY_MS = 20,                /* after "I do not lead" */
    HEARD_MS = 1000,              /* longer ago: it is not there */
    SNAPSHOT_EVERY = 8192,
    SNAPSHOT_KEEP = 2048,
    SNAPSHOT_AGAIN_MS = 3000,
};

enum request_state {
    REQUEST_WAITING,   /* for a leader, or for its turn */
    REQUEST_PROPOSED,  /* a write in the log, or a change of members under way */
    REQUEST_BARRIER,   /* a read, until the leader has shown that it is one */
    REQUEST_FORWARDED, /* the leader has it */
};

struct request {
    struct request *next, *prev;
    enum request_state state;
    struct frame frame;             /* its body is in `bytes` */
    uint64_t since_ms;              /* of uv_now(): when it came, */
    uint64_t deadline_ms, retry_ms; /* when it ends, and not to be tried before */
    uint64_t number;                /* its own, for the leader */
    bool maybe;        /* it was in a log or with a leader, and what became of it is not known */
    struct wire *wire; /* who asked; NULL: this process, or nobody any more */
    void (*done)(void *user, const char *reply, size_t len);
    void *user;
    size_t len;
    char bytes[];
};

struct hand_in { /* from another thread */
    struct hand_in *next;
    void (*done)(void *user, const char *reply, size_t len);
    void *user;
    size_t len;
    char bytes[];
};

struct io_order {                    /* of what the disk is asked for */
    struct io_order_item *first;     /* waits */
    struct io_order_item *cancelled; /* appends, the newest first */
    uint64_t begun;                  /* items, ever */
    raft_io_close_cb closed;
    unsigned appends; /* under way, */
    bool putting;     /* as a snapshot is */
    bool cut;        /* the end of the log was cut off, and no append behind that is acknowledged */
    raft_index next; /* to be appended: where the log ends, once all is done */
    int failed;      /* a cut did not work: nothing is written any more */
    /* libraft's own */
    int (*append)(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[],
                  unsigned n, raft_io_append_cb cb);
    int (*truncate)(struct raft_io *io, raft_index index);
    int (*put)(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
               const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb);
    void (*close)(struct raft_io *io, raft_io_close_cb cb);
};

struct state_check {   /* on what the registers are */
    raft_term settled; /* the last term in which all before it was applied here, as its leader, */
    raft_term term;    /* and in which the others were told what came of it, */
    uint64_t until;    /* which is good for requests up to this one */
    bool under_way;    /* they are being told */
    raft_term differs; /* the last one whose leader has other registers */
    uint64_t said_ms;  /* when that was told last, of uv_now() */
};

struct node {
    struct node_opts opts;
    char *address, *dir;
    uint64_t id;
    int lock_fd;
    struct wire_tls *tls;

    uv_loop_t loop;
    pthread_t thread;
    uv_async_t wake;
    uv_tcp_t listener;
    uv_timer_t tick;

    struct raft raft;
    struct raft_io io;
    struct io_order order;
    struct raft_fsm raft_fsm;
    struct raft_uv_transport transport;
    raft_uv_accept_cb accept;
    int (*set_term)(struct raft_io *io, raft_term term); /* libraft's own, behind ours */
    int (*set_vote)(struct raft_io *io, raft_id id);
    int (*load)(struct raft_io *io, raft_term *term, raft_id *voted_for,
                struct raft_snapshot **snapshot, raft_index *start_index,
                struct raft_entry *entries[], size_t *n_entries);
    int (*append)(struct raft_io *io, struct raft_io_append *req, const struct raft_entry entries[],
                  unsigned n, raft_io_append_cb cb);
    int (*put)(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
               const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb);
    int (*send)(struct raft_io *io, struct raft_io_send *req, const struct raft_message *message,
                raft_io_send_cb cb);
    int (*start)(struct raft_io *io, unsigned msecs, raft_io_tick_cb tick, raft_io_recv_cb recv);
    raft_io_recv_cb recv;
    raft_term lead_term;   /* the last one that it led in, */
    raft_index lead_first; /* and the first entry of its own there */
    struct state_check check;
    struct match match;     /* what the leader is known to have in common with us */
    struct match shows;     /* that of the message being received, if it fits */
    bool appended;          /* what is being received is written to the log */
    struct match put_shows; /* of the leader's snapshot that is under way */
    struct raft_io_snapshot_put put_req, *put_theirs;
    bool leader_spoke, silent; /* since the last tick; for long now it has not */
    unsigned silent_ticks;
    bool stalled; /* the log cannot be written */
    unsigned held;
    uint64_t flee_ms;
    struct raft_transfer flee_req;
    bool vote_damaged;
    struct vote vote;
    char vote_path[4200], cut_path[4200];
    struct dial *dials; /* of libraft, not yet connected */
    bool raft_open, closing;
    int broken; /* libraft's reason to stop; 0: it works */

    struct fsm fsm;
    int apply_failed; /* since then no entry is applied */
    struct {
        raft_index index;
        uint64_t sum;
    } summed; /* for who asks again and again */
    struct request *first, *last;
    size_t requests, request_bytes; /* how many, and how large together */
    uint64_t numbers, boot;         /* boot: random, so that with a number it is a nonce */
    unsigned proposals;
    struct turns turns; /* while it leads */
    uint64_t entries_begun;
    bool barrier, naming, changing, transferring;
    bool caught_up; /* since the start it once had all that the leader had */
    struct raft_barrier barrier_req;
    struct raft_transfer transfer_req;
    char *room; /* FRAME_MAX bytes for a reply */

    struct {
        uint64_t id, ms;    /* of uv_now() */
    } heard[MEMBERS_MAX];   /* when the leader last heard of each, in the order of the members */
    uint64_t leader;        /* as last told about */
    uint64_t leaderless_ms; /* of uv_now(), since when none is known; 0: there is one */
    bool removed;           /* the others have no such member any more */
    struct wire *to_ask;    /* whether it was */
    uint64_t ask_ms;        /* when to ask, or to give up */
    struct wire *to_leader;
    bool to_leader_up;
    unsigned other; /* member to ask where no leader is known any more */
    char leader_address[FRAME_ADDRESS_MAX + 1]; /* of to_leader */

    bool
        newcomer; /* has never been a member: the log it gets may be meant for who had its address before */
    struct wire *to_join;
    size_t join_next;
    uint64_t join_ms;
    char **join;

    uint64_t snapshots;                /* taken or received since the start */
    uint64_t entries, writes;          /* proposed */
    uint64_t forwarded[2];             /* [1] writes */
    uint64_t leader_changes, led_term; /* seen to begin */
    raft_id led_by;

    pthread_mutex_t view_mutex;
    struct node_view view; /* guarded by view_mutex */

    pthread_mutex_t mutex;
    struct hand_in *in_first, **in_last; /* guarded */
    bool stop;                           /* guarded */
    struct wire_tls *fresh_tls;          /* guarded: to be used from now on */
};

/* Whose that is, in what libraft calls. */
static inline struct node *node_of(struct raft_io *io)
{
    return (struct node *)(void *)((char *)io - offsetof(struct node, io));
}

void node_say(const struct node *n, enum node_level level, const char *event, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* request.c */
void node_take(struct node *n, const char *bytes, size_t len, struct wire *wire,
               void (*done)(void *user, const char *reply, size_t len), void *user);
void node_pump(struct node *n); /* do what can be done now */

/* The same from inside a callback of libraft: that may be in the middle of giving up the lead, with half of
 * what a leader has already freed, and must not be asked for anything then. */
static inline void node_pump_soon(struct node *n)
{
    if (!n->closing)
        uv_async_send(&n->wake);
}
const char *node_any_other(const struct node *n); /* address of a member; NULL: there is none */
void node_forget(struct node *n, const struct wire *w); /* nobody waits there any more */
void node_greet(struct wire *w);                        /* as one who asks; wire_events.up */
void node_leader_lost(struct node *n);                  /* to_leader is gone */
void node_answer(struct node *n, struct request *q, const char *reply, size_t len);
void node_refuse(struct node *n, struct request *q, int result, const char *why);
void node_expire(struct node *n);
void node_end_requests(struct node *n);
struct request *node_request(struct node *n, uint64_t number); /* NULL: it has ended */
/* It may have happened: the next leader is asked what became of it, if it is ours to ask. */
void node_ask_again(struct node *n, struct request *q, const char *why);
/* A reply that is begun, and its end. */
struct frame_out node_reply(struct node *n, const struct request *q, uint64_t index);
void node_reply_send(struct node *n, struct request *q, struct frame_out *o);

static inline bool request_due(const struct node *n, const struct request *q)
{
    return q->state == REQUEST_WAITING && q->retry_ms <= uv_now(&n->loop);
}

/* Into the log, as the leader. */
static inline int node_append(struct node *n, struct raft_apply *req, struct raft_buffer *entry,
                              raft_apply_cb cb)
{
    fsm_entry_place(entry->base, raft_last_index(&n->raft) + 1);
    return raft_apply(&n->raft, req, entry, 1, cb);
}

/* propose.c */
void node_propose(struct node *n); /* what waits and may be written now, as one entry */
bool node_forgot(struct node *n,
                 const struct request *q); /* it asks for more than this leader ever had */
bool node_may_write(
    struct node *n); /* there is something, and it need not wait for another's turn */
enum turn_of node_turn(struct node *n, const struct request *q);
void node_name_cluster(
    struct node *n); /* from its first leader, and another one when it is restored */

/* membership.c */
void membership_change(struct node *n, struct request *q);
void membership_join(struct node *n); /* called again and again until it is a member */
const struct raft_server *node_member(const struct node *n, uint64_t id);

/* removed.c */
void removed_tick(struct node *n);

/* status.c */
void status_note_heard(struct node *n);              /* notes whom the leader heard of */
bool status_heard(const struct node *n, unsigned i); /* of the member at i, of late */
size_t node_status(struct node *n, bool lines, char *to, size_t cap);

/* view.c */
void view_publish(struct node *n);

/* transport.c */
void node_transport(struct node *n);
FIRN_MUSTUSE int node_listen(struct node *n, const char *address, struct firn_diag *d);

/* state_check.c */
bool check_passed(const struct node *n); /* as the leader: it may write */
void check_settle(struct node *n);       /* a barrier of its term is applied */
bool check_settled(const struct node *n);
void check_propose(struct node *n);       /* once that is so, and nothing else is under way */
void check_applied(struct node *n);       /* what a leader said */
bool check_differs(const struct node *n); /* from this leader */

/* shield/io_order.c */
void io_order_watch(struct node *n); /* before libraft starts, and before the other watches */
void io_order_start(struct node *n, raft_index next); /* where the log that was loaded ends */
void io_order_run(struct node *n);                    /* begins what waits and may begin now */

/* shield/append_failure.c */
void append_failure_watch(struct node *n); /* before libraft starts */
void log_failed(struct node *n, const char *why,
                const char *cure); /* nothing more is written or applied */
void append_failure_hand_over(
    struct node *n); /* gives the lead away if the log cannot be written */

/* shield/committed_prefix.c */
void committed_prefix_drop(const struct node *n, struct raft_append_entries *a);

/* shield/install_snapshot.c, shield/append_result.c */
void install_snapshot_watch(struct node *n); /* before libraft starts */
void append_result_watch(struct node *n);

/* shield/silent_leader.c */
void silent_leader_tick(struct node *n); /* at each tick: whether the leader is heard */

/* shield/leader_commit.c */
void leader_commit_note(
    struct node *n); /* notes where a lead begins; before anything is appended in it */
void leader_commit_recv(struct node *n, struct raft_message *message); /* hands it to libraft */

/* identity.c */
FIRN_MUSTUSE int identity_open(struct node *n, struct firn_diag *d);
void identity_note_restore(struct node *n); /* once and for all */
bool address_loopback(const char *address);

#endif
