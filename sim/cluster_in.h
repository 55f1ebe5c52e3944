/* cluster_in.h - internals of a cluster's world: one at a time, all of it in `k`. */
#ifndef SIM_CLUSTER_IN_H
#define SIM_CLUSTER_IN_H

#include "cluster.h"

#include "linear.h"
#include "raft/core/core.h"
#include "mutant.h"
#include "raft/fsm.h"
#include "raft/log_store.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    MACHINES = 7,
    CLIENTS = 4,
    REGISTERS = 3,
    OPS_MAX = 400,
    IDS_MAX = 64,     /* members that ever were */
    ERRANDS_MAX = 32, /* of the operator */
    PENDING_MAX = 64,
    QUEUE_MAX = 512, /* saves of one member that are not on its disk */
    INDEX_MAX = 4096,
    TERM_MAX = 1024,
    ENTRIES_MAX = 1 << 14,         /* (index, term) that ever were; a hash table */
    TICKETS_MAX = 8 * OPS_MAX + 1, /* a history may begin again */
    TICK_US = 10000,
    FILES_MAX = 12, /* of a member's folder */
};

/* ---- the disk's twin (cluster_disk.c) ---- */

struct stored { /* an entry */
    uint64_t index, term;
    enum core_type type;
    char *bytes;
    size_t len;
};

struct image_of_disk { /* what a start would find */
    uint64_t term, vote;
    struct core_snapshot snapshot; /* index 0: none */
    uint64_t first;                /* index of entry[0] */
    struct stored *entry;
    size_t entries, room;
};

struct save { /* one core_save(), copied */
    struct core_save s;
    struct core_snapshot *snapshot; /* NULL: none */
    struct stored *entry;
    struct log_save *real; /* for the log store */
};

enum disk_stage { DISK_IDLE, DISK_WRITING, DISK_SYNCING, DISK_REPORTING };

/* ---- a member on its machine (cluster_member.c) ---- */

struct request { /* of a client: a read of a register, or from old to new */
    bool read, again;
    unsigned reg;
    uint32_t old, new;
    uint64_t call, nonce[2], since;
};

struct waiting { /* a client's call at a leader */
    struct request r;
    uint64_t index, term, number; /* number: of core_ask() */
    unsigned client;
};

struct kmember {
    uint64_t id;       /* 0: the machine has no member */
    struct side *side; /* the cluster that it belongs to, or asks to join */
    uint32_t life;     /* counts starts and ends */
    bool up, retired, dying;
    struct core *core;
    struct fsm fsm;
    uint64_t applied;

    struct image_of_disk disk; /* synced */
    struct save queue[QUEUE_MAX];
    size_t queued, batch; /* batch: the first so many are being written */
    enum disk_stage stage;
    int64_t full_until, slow_until, slow_us;
    struct kfolder *files; /* NULL: the disk is only the image above */
    struct log_store *store;
    int64_t stops_in; /* calls; 0: does not */

    int64_t clock_pm, clock_at; /* local = clock_was + (now - clock_at) * clock_pm / 1000 */
    int64_t clock_was;
    int64_t paused_until;
    int64_t dies_in; /* steps of I/O; 0: it does not */

    struct waiting wait[PENDING_MAX];
    size_t waits;
    uint64_t check_term, check_index; /* the digest that this leader proposed, and where */

    enum core_state state; /* as of the last look */
    uint64_t term, looked; /* looked: committed entries up to here were compared */

    /* In worlds of whole members (member_in.h): `core` is then the member's own. */
    struct member *whole;
    struct disk *twin;
    struct wire_host *wires;
    uint64_t saved, name; /* saved: what the disk has reported; name: of the cluster, as noted */
    bool full, founder, standby, settles;
    bool was_in;     /* it was told that it is a member */
    bool restores;   /* it goes on alone, and has not noted that yet: */
    bool restored;   /* it could */
    bool id_noted;   /* its new id will outlive it */
    bool restarts;   /* the member, and not its process */
    bool corrupt;    /* its registers are not what its log says */
    int64_t wall_us; /* the wall clock is so far ahead */
};

/* ---- events and messages (cluster_net.c) ---- */

enum kevent_kind {
    K_TICK,
    K_DELIVER, /* a message between members */
    K_DISK,    /* the next stage */
    K_BOOT,
    K_ASK,   /* a client's call arrives at a member */
    K_REPLY, /* its answer */
    K_BEGIN, /* a client's next call */
    K_RETRY,
    K_SETTLE,  /* of a whole member, and on: */
    K_CONNECT, /* a connection reaches its peer */
    K_WIRE,    /* what is on its way may have arrived */
    K_SILENT,  /* the first frame should have */
    K_TAKE,    /* a request of the member's own process */
    K_ANSWER,  /* its answer */
    K_WAKE,    /* a coroutine goes on */
    K_OPERATE,
    K_FAULT,
};

enum { TOO_OLD = -1000 }; /* the result is no longer remembered */

struct letter {             /* what an event carries */
    unsigned from;          /* a machine or a client */
    struct request request; /* K_ASK */
    int result;             /* K_REPLY, and on: */
    uint64_t value, requests;
    unsigned machine; /* that may lead */
    size_t len;       /* K_DELIVER */
    char bytes[];
};

struct kevent {
    int64_t at;
    uint64_t order;
    enum kevent_kind kind;
    unsigned who;
    uint64_t token;
    struct letter *letter;
};

/* ---- clients (cluster_client.c) ---- */

struct client {
    bool busy, doubt, refused; /* doubt: an attempt may have been applied */
    struct request r;
    unsigned target;
    bool knows[REGISTERS];
    uint32_t last[REGISTERS];
    uint64_t call, attempt, since[REGISTERS];
    int64_t deadline;
    size_t op;
};

/* ---- the operator (cluster_operator.c) ---- */

enum errand_kind { ERRAND_ADD, ERRAND_PROMOTE, ERRAND_DEMOTE, ERRAND_REMOVE, ERRAND_TRANSFER };

struct errand {
    enum errand_kind kind;
    uint64_t id;
    int64_t until;
    struct side *at; /* the cluster whose members are asked */
};

/* ---- ground truth (cluster_oracle.c) ---- */

struct truth { /* of an index */
    bool set, summed;
    enum core_type type;
    uint64_t term, sum, leader_term, fsm;
};

struct entry_truth { /* of an index and a term */
    uint32_t epoch;
    const struct side *side;
    uint64_t index, term, sum, before; /* before: the term of the entry before it */
};

struct id_truth {            /* of a member */
    bool dead;               /* its folder is lost */
    uint64_t term;           /* the highest that it ever told */
    uint8_t voted[TERM_MAX]; /* ids are below 256 */
};

struct side { /* a cluster: there may be two in a world (`meets`) */
    struct truth truth[INDEX_MAX];
    uint64_t committed;               /* highest index that ever was */
    struct core_config begun, config; /* the first one, the newest committed one */
    uint64_t config_index;
    uint64_t leader[TERM_MAX];
    uint64_t name;             /* its incarnation; 0: none yet */
    bool joined[IDS_MAX];      /* was a member, as was committed; */
    unsigned removed[IDS_MAX]; /* and was removed so often */
    uint64_t healed_index;
};

/* A majority is lost for good, and one member goes on alone (firn cluster remove --force). */
struct disaster {
    struct kmember *survivor; /* NULL: there was none */
    struct kmember *returns;  /* comes back with its old folder; NULL: none does */
    const struct fsm *fsm;    /* the survivor's, as it gets its new name */
    bool over;                /* the cluster has its new name, and the survivor has noted it */
    bool averted;             /* it leads: a change that was under way left it as the only voter */
    uint64_t old_id, old_name;
    unsigned tries;
};

struct cluster_config {
    unsigned members, loss_pm, repeat_pm, late_pm; /* per mille of the messages */
    bool alone, sweep; /* alone: one member begins, the others are added */
    bool files;        /* the log store as shipped, on a folder in memory */
    bool whole, lazy;  /* whole members; which settle once for several inputs */
    bool firnds;       /* with leases and tickets */
    bool meets;        /* another cluster, and an operator who mistakes its members for his own */
    bool disaster;     /* see struct disaster */
    bool corrupts;     /* registers change in the memory of a follower */
    bool repeats;      /* removals are asked for again, and all members start again */
    bool full_end;     /* the leader's disk is full when the other faults are over */
    unsigned others;   /* meets: machines of the other cluster, the last ones */
    int64_t latency_us, sync_us, election_ms, call_us, think_us, end_us;
    uint64_t snapshot_every, snapshot_keep;
    uint64_t seed;
};

struct cluster_world {
    struct world *w;
    struct cluster_config c;
    uint64_t rng, order, next_id;
    uint64_t again;      /* a stream of its own, for requests that change nothing */
    bool healing, stuck; /* stuck: a majority of the machines is lost for good */
    int64_t healing_since;
    unsigned first; /* so many members begin the cluster */
    struct kmember member[MACHINES];
    struct kevent *event; /* a heap */
    size_t events, events_room;
    int64_t cut_until[MACHINES][MACHINES]; /* from, to */
    unsigned lose[MACHINES];
    int64_t late_us[MACHINES], repeat_us[MACHINES];

    struct client client[CLIENTS];
    struct lin_op history[OPS_MAX];
    size_t ops, ops_max;
    uint32_t value[REGISTERS]; /* before the history */
    uint8_t given[REGISTERS][TICKETS_MAX], maybe[REGISTERS][TICKETS_MAX];
    uint64_t healed_writes;

    struct errand errand[ERRANDS_MAX];
    size_t errands;

    struct side main, other; /* other: of another cluster */
    struct disaster disaster;
    struct kmember *full; /* of full_end; NULL: none (any more) */
    struct entry_truth entry[ENTRIES_MAX];
    uint32_t epoch;
    struct id_truth id[IDS_MAX];
};

extern struct cluster_world k;

static inline int64_t k_now(void)
{
    return k.w->now / 1000;
}

/* cluster_plan.c */
void cluster_configure(struct cluster_config *c, const struct config *of);

/* cluster_net.c */
void k_at(int64_t us, enum kevent_kind kind, unsigned who, uint64_t token, struct letter *letter);
struct kevent k_take(void);
void k_clear(void);
void k_send(struct kmember *from, const struct core_message *m);
void k_deliver(struct kmember *to, struct letter *letter);
int64_t k_way(void); /* how long a message takes */

/* cluster_disk.c */
void k_disk_take(struct kmember *m, const struct core_save *s);
void k_disk_step(struct kmember *m);
void k_disk_crash(struct kmember *m, bool power);
/* What a start finds; false: the disk cannot be written, or the machine lost its power again. */
bool k_disk_open(struct kmember *m, struct core_saved_state *s, struct disk_loaded *loaded);
void k_disk_loaded_done(struct kmember *m, struct disk_loaded *loaded);
void k_disk_clear(struct kmember *m);
uint64_t k_disk_last(const struct kmember *m);
/* Whether the synced log (or snapshot) has this entry. */
bool k_disk_has(const struct kmember *m, uint64_t index, uint64_t term);

/* cluster_folder.c */
extern const struct folder_calls k_folder_calls;
void k_folder_new(struct kmember *m);
void k_folder_free(struct kmember *m);
void k_folder_crash(struct kmember *m, bool power);
void k_folder_clear(struct kmember *m);

/* cluster_member.c */
struct kmember *k_member(uint64_t id); /* NULL: not on any machine */
unsigned k_machine(const struct kmember *m);
uint64_t k_local_ms(const struct kmember *m);
void k_clock(struct kmember *m, int64_t rate_pm);
void k_boot(struct kmember *m);
void k_crash(struct kmember *m, bool power, int64_t again_us);
bool k_io(struct kmember *m);    /* a step of I/O; false: it dies here */
void k_after(struct kmember *m); /* takes the output of the last input */
void k_asked(struct kmember *m, const struct letter *l);
void k_forget(struct kmember *m); /* the folder */
bool k_running(const struct kmember *m);

/* cluster_client.c */
void k_begin(unsigned client);
void k_retry(unsigned client);
void k_reply(const struct letter *l);
void k_check_history(bool whole); /* not whole: acknowledged calls may be lost */
void k_answer(struct kmember *m, const struct waiting *x, int result);
uint32_t k_value(const struct fsm *f, unsigned reg);
struct firn_slice k_key(unsigned reg);
const struct fsm *k_fsm(const struct kmember *m);

/* cluster_operator.c */
void k_operate(void);
void k_errand(struct side *at, enum errand_kind kind, uint64_t id);
void k_operator_fault(const struct fault *f);
bool k_errand_done(const struct errand *e);
bool k_survives(uint64_t without); /* every configuration keeps a majority without this member */

/* member_lost.c: worlds in which more goes wrong than a cluster is made for */
void lost_fault(const struct fault *f);
void lost_operate(void);
void lost_begin_healing(void);
void lost_named(struct kmember *m);
void lost_noted(struct kmember *m);
const char *lost_not_healed(void);

/* cluster_oracle.c */
void k_oracle_reset(void);
void k_look(struct kmember *m);
void k_look_save(struct kmember *m, const struct core_save *s);
void k_look_send(struct kmember *m, const struct core_message *msg);
void k_look_applied(struct kmember *m, const struct core_entry *e);
void k_look_restored(struct kmember *m, const struct core_snapshot *s);
void k_look_started(struct kmember *m);
void k_look_state(struct kmember *m); /* after an entry was applied */
void k_look_snapshot(struct kmember *m, const struct core_snapshot *s);
uint64_t k_entry_sum(const struct core_entry *e);

#endif
