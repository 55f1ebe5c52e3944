/*
 * member_in.h - struct member and what its files call of each other. One thread. No clock, random
 * source, disk or network but what member.h names: now_ms and wall_ms are set from outside.
 */
#ifndef FIRN_RAFT_MEMBER_IN_H
#define FIRN_RAFT_MEMBER_IN_H

#include "platform/assert.h"
#include "raft/fsm.h"
#include "raft/member.h"
#include "raft/pace.h"
#include "raft/write_turn.h"
#include "wire/buf.h"

enum {
    PROPOSALS_MAX = 2, /* entries under way: one is written while the next one collects writes */
    RETRY_MS = 20,     /* pause after "this member does not lead" */
    HEARD_MS = 1000,   /* a member that was heard from longer ago counts as not seen */
    SNAPSHOT_EVERY = 8192,
    SNAPSHOT_KEEP = 2048,
    ELECTION_MS = 150,
    PEERS_MAX = 2 * CORE_MEMBERS_MAX, /* members, and processes that speak as one */
    /* Before a cluster is begun, so that members of an old one that know this address can connect:
     * they try every RECONNECT_MS, or after WIRE_SILENT_MS where the machine was off. */
    FOUND_MS = 3000,
    FOUND_FRESH_MS = 300,
    GONE_MAX = 64, /* removed members that are remembered */
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
    /* All of now_ms: arrival, deadline, and not to be tried before. */
    uint64_t since_ms, deadline_ms, retry_ms;
    uint64_t number;     /* this member's own, also for the leader that it is forwarded to */
    bool maybe;          /* it was in a log or sent to a leader, and its outcome is not known */
    bool begun;          /* a change: one step of it is committed */
    const char *waiting; /* a change: what it waits for; NULL: for nothing in particular */
    struct wire
        *wire; /* the client's connection; NULL: this process asked, or the client is gone */
    void (*done)(void *user, const char *reply, size_t len);
    void *user;
    size_t len;
    char bytes[];
};

struct state_check {  /* comparison of register digests (state_check.c) */
    uint64_t term;    /* the last term in which its digest was compared by the members */
    uint64_t until;   /* the comparison is valid until this many requests are applied */
    uint64_t index;   /* of that term's first entry with a digest */
    bool under_way;   /* the digest is in the log, and not yet applied */
    uint64_t differs; /* the last term whose leader has another digest; 0: none */
    uint64_t said_ms; /* of now_ms: when that was logged last */
};

struct member_identity {
    uint64_t id;
    char *address; /* under which the other members reach it */
    bool newcomer; /* see member.h; until it applies an entry that has it */
};

struct member_health {
    bool stalled;          /* the disk cannot be written: nothing is acknowledged meanwhile */
    bool stopped;          /* the state cannot go on: this member takes no part any more */
    uint64_t hand_over_ms; /* of now_ms: when to hand over the lead the next time */
};

struct member_applied {
    struct {
        uint64_t index, sum;
    } digest;           /* of the registers as of `index`, for status requests that repeat */
    uint64_t snapshots; /* taken or received since the start */
};

struct member_requests { /* of clients, of other members and of this process */
    struct request *first, *last;
    size_t count, bytes;  /* bytes: of all together */
    uint64_t last_number; /* that a request was given */
    char *room;           /* FRAME_RAFT_MAX bytes, for the frame that is being written */
};

enum proposal_kind {
    PROPOSAL_WRITES,
    PROPOSAL_NAME,  /* names the cluster */
    PROPOSAL_CHECK, /* the leader's digest */
    PROPOSAL_CHANGE /* of the members */
};

struct proposal { /* an entry that this member appended as the leader, until applied or lost */
    struct proposal *next;
    enum proposal_kind kind;
    uint64_t index, term; /* of the entry */
    uint64_t entry;       /* WRITES: its number, for turns */
    uint32_t count;       /* WRITES: requests in the entry */
    struct {
        uint64_t number; /* of the request, which may have ended meanwhile */
        uint32_t writes;
    } part[]; /* WRITES: FSM_REQUESTS_MAX; CHANGE: one */
};

struct member_proposals {
    struct proposal *first, **last; /* in the order of their indexes */
    unsigned under_way;             /* of kind WRITES */
    bool naming;                    /* one of kind NAME is under way */
    uint64_t begun;                 /* entries with writes, ever: their numbers */
    struct turns turns;
    uint64_t entries, writes; /* proposed since the start */
};

struct member_reads { /* reads that must be current */
    bool under_way;
    uint64_t question, index, term; /* see core_ask() */
    bool caught_up; /* since the start it once had every entry that the leader had */
};

struct member_change { /* of the members or of the leader, one at a time */
    bool under_way, transferring;
    uint64_t number; /* of the request that a transfer is for; 0: of none */
    bool removes;    /* the transfer is the first step of this leader's removal */
};

struct member_election {    /* the leader, as this member sees it */
    uint64_t logged;        /* the leader that was logged last */
    uint64_t leaderless_ms; /* of now_ms: since when there is none; 0: there is one */
    uint64_t changes;       /* of the leader, since the start */
    uint64_t counted_term;  /* with counted_id: the leader that was counted last */
    uint64_t counted_id;
    struct pace pace;       /* of the time-out */
    uint64_t paused_ms;     /* in which this process did not run, since the start */
    uint64_t heard_ms;      /* of core_ms(): the last message of a leader */
    bool silent;            /* that is seconds ago, and there is no election */
    bool led, handing_over; /* at the last tick */
    uint64_t led_term, led_since_ms;
    uint64_t lost; /* times that this member lost the lead, since the start */
};

struct member_forward { /* requests that the leader answers */
    struct wire *wire;
    bool up;
    char address[FRAME_ADDRESS_MAX + 1];
    unsigned other;       /* the member to ask next where no leader can be named */
    uint64_t requests[2]; /* since the start; [1] writes */
};

struct member_join { /* asking to become a member */
    char **members;
    size_t next;
    struct wire *wire;
    uint64_t retry_ms; /* of now_ms */
    bool founding;     /* asks first whether there is a cluster; see cluster.init */
    uint64_t none;     /* a bit for each of `members` that has answered that it knows none */
    bool waits;        /* was logged */
    uint64_t found_ms; /* of now_ms: begins a cluster then, unless a member connects; 0: does not */
};

struct member_history { /* of committed configurations */
    struct core_config last;
    uint64_t gone[GONE_MAX]; /* a ring: members before, and not in `last`; 0: none */
    unsigned next;
};

struct member_removal { /* asking whether this member was removed */
    bool removed;
    struct wire *wire;
    uint64_t ask_ms; /* of now_ms: when to ask, or to give up */
};

struct peer {          /* another process that speaks Raft */
    uint64_t id;       /* 0: unused */
    struct wire *out;  /* the connection that this member made; NULL: none */
    struct wire *in;   /* the one that the peer made; NULL: none */
    bool up;           /* of `out`: the peer has welcomed this member */
    uint64_t cluster;  /* of `in`: the name that the peer gave; 0: none */
    uint64_t retry_ms; /* of now_ms: when to connect again */
};

struct member {
    struct member_opts opts;
    uint64_t now_ms, wall_ms;
    struct core *core;
    bool dirty; /* something happened that requests may wait for */
    struct member_identity self;
    struct member_health health;
    struct fsm fsm;
    struct member_applied applied;
    struct state_check check;
    struct member_requests requests;
    struct member_proposals proposals;
    struct member_reads reads;
    struct member_change change;
    struct member_election election;
    struct member_forward forward;
    struct member_join join;
    struct member_history history;
    struct member_removal removal;
    struct peer peer[PEERS_MAX];
    uint64_t cluster;    /* the last membership_cluster(), as the peers were told it */
    uint64_t foreign;    /* the peer of another cluster that was logged last */
    uint64_t impossible; /* core_impossible(), as it was logged last */
    struct core_message_room message_room;
    struct node_view view;
};

/* The core's clock: that of the member, less the time in which this process did not run. */
static inline uint64_t core_ms(const struct member *m)
{
    return m->now_ms - m->election.paused_ms;
}

/* ---- member.c ---- */

void member_say(const struct member *m, enum node_level level, const char *event, const char *fmt,
                ...) __attribute__((format(printf, 4, 5)));

/* Give out what the core has to save, to apply and to send: after each input to it. */
void member_drain(struct member *m);

void member_message(struct member *m, const struct frame *f, uint64_t from); /* a FRAME_RAFT */
void member_found(struct member *m); /* begin a cluster of this member alone */

/* ---- watch.c ---- */

void watch_begin(struct member *m, uint32_t base_ms);
void watch_time(struct member *m, uint64_t now_ms); /* before now_ms becomes m->now_ms */
void watch_heard(struct member *m, const struct core_message *msg); /* before the core sees it */
void watch_tick(struct member *m);

/* ---- peers.c ---- */

void peers_tick(struct member *m); /* connect to the members of the configuration */
void peers_send(struct member *m, const struct core_message *msg);
void peers_forget(struct member *m, const struct wire *w);
uint64_t peers_id(const struct member *m, const struct wire *w); /* that came in; 0: none */
/* False: not to be let in. */
bool peers_greet(struct member *m, struct wire *w, const struct frame_greeting *g);
bool peers_up(const struct member *m, uint64_t id); /* it answers on this member's connection */
void peers_close(struct member *m);

/* ---- request.c ---- */

void request_take(struct member *m, const char *bytes, size_t len, struct wire *wire,
                  void (*done)(void *user, const char *reply, size_t len), void *user);
void member_pump(struct member *m);      /* advance every request that can be advanced now */
void member_read_done(struct member *m); /* after each input to the core: reads that it has shown */
const char *member_any_other(
    const struct member *m); /* address of another member; NULL: there is none */
void member_forget(struct member *m, const struct wire *w); /* that client is gone */
void member_greet(struct wire *w);         /* send HELLO as a client; wire_events.up */
void member_leader_lost(struct member *m); /* the connection to the leader is gone */
void member_answer(struct member *m, struct request *q, const char *reply, size_t len);
void member_refuse(struct member *m, struct request *q, int result, const char *why);
void member_expire(struct member *m);
void member_end_requests(struct member *m);
struct request *member_request(struct member *m, uint64_t number); /* NULL: it has ended */

/* The outcome of a write is not known. If this member took it from its client, it asks the next
 * leader; else the member that forwarded it does. */
void member_ask_again(struct member *m, struct request *q, const char *why);

/* Begin a reply; end and send it. */
struct frame_out member_reply(struct member *m, const struct request *q, uint64_t index);
void member_reply_send(struct member *m, struct request *q, struct frame_out *o);

static inline bool request_due(const struct member *m, const struct request *q)
{
    return q->state == REQUEST_WAITING && q->retry_ms <= m->now_ms;
}

/* Every request waits between two attempts. */
static inline void request_move(struct request *q, enum request_state next)
{
    firn_assert((q->state == REQUEST_WAITING) != (next == REQUEST_WAITING), "state=%d next=%d",
                (int)q->state, (int)next);
    q->state = next;
}

static inline void request_wait(const struct member *m, struct request *q, uint64_t pause_ms)
{
    if (q->state != REQUEST_WAITING)
        request_move(q, REQUEST_WAITING);
    q->retry_ms = m->now_ms + pause_ms;
}

/* ---- propose.c ---- */

void member_propose(
    struct member *m); /* append the writes that wait and may be written now, as one entry */
bool member_may_write(struct member *m); /* is there such a write? */
/* The client has seen a higher index than this leader's log has. */
bool member_forgot(struct member *m, const struct request *q);
enum turn_of member_turn(struct member *m, const struct request *q);
/* A cluster gets its incarnation from its first leader, and another one when it is restored. */
void member_name_cluster(struct member *m);

/* Append an entry of the state machine, as the leader. `p` is transferred on success. False: not
 * appended. */
bool proposal_append(struct member *m, struct proposal *p, char *entry, size_t len);
void proposal_begun(struct member *m, struct proposal *p, uint64_t index);
void proposals_applied(struct member *m, const struct core_entry *e);
void proposals_watch(struct member *m); /* they are lost when the lead is */
void proposals_free(struct member *m);

/* ---- membership.c ---- */

void membership_change(struct member *m, struct request *q);
/* Committed configurations in their order: who was a member once? */
void membership_begin(struct member *m); /* those that the log has before its snapshot */
void membership_committed(struct member *m, const struct core_config *c);
void membership_stepped(struct member *m, const struct proposal *p, bool applied);
void membership_watch(struct member *m); /* after each input to the core: a transfer may be over */
/* The name of the cluster, from its committed entries; 0: not known, or not one of its members. */
uint64_t membership_cluster(const struct member *m);
void membership_met(struct member *m, const struct frame_greeting *g); /* a member has connected */
void membership_join(struct member *m);      /* at each tick, until this process is a member */
bool membership_hand_over(struct member *m); /* the lead, to any voter; for no request */

static inline const struct core_member *membership_self(const struct member *m)
{
    return config_member(core_config(m->core), m->self.id);
}

/* ---- removed.c ---- */

void removed_tick(struct member *m);

/* What the status of another member says. */
struct status_seen {
    char cluster[17], id[17]; /* of this member, as the status writes them */
    bool ours, leads, listed; /* the same cluster; it leads; its members contain this one */
    bool cluster_known;       /* it has members, or a cluster's registers */
};
bool status_read(const struct member *m, const struct frame *f, struct status_seen *out);
void status_ask(struct wire *w, enum frame_status what, uint32_t budget_ms);

/* ---- status.c ---- */

bool status_heard(const struct member *m, uint64_t id); /* as the leader, within HEARD_MS */
void member_status(struct member *m, bool lines, struct buf *to);

/* ---- view.c ---- */

enum node_state view_state(const struct member *m);
void view_tick(struct member *m);

/* ---- state_check.c ---- */

bool check_passed(const struct member *m); /* as the leader: it may write */
void check_propose(struct member *m);      /* append the digest, if nothing else is under way */
bool check_proved(const struct member *m); /* a majority of the members has agreed */
void check_said(struct member *m, uint64_t index, bool applied); /* that entry is over, or lost */
void check_applied(struct member *m);       /* a leader's digest was compared with this one */
bool check_differs(const struct member *m); /* from the leader of this term */

#endif
