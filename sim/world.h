/*
 * world.h - one run: processes with clocks of their own, a store that is not to be trusted, and a
 * list of events by time. Everything happens on one thread; a process's coordinator is a coroutine,
 * because lease.c blocks in the store, and the world goes on while it does.
 *
 * A process's memory (struct image) lies in a region. A clone is a second process in the same
 * region: the running one is copied in, the other one out, so that pointers stay valid and a call
 * that was under way when the snapshot was taken returns twice.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <ucontext.h>

#include "coord/stamp_source.h"
#include "drive/lease.h"
#include "drive/setup.h"
#include "drive/serve.h"
#include "drive/ticket.h"
#include "firn/gen.h"
#include "plan.h"
#include "rand.h"
#include "sometimes.h"

enum {
    LANES_MAX = 2,
    LOOPS = 3, /* of a firnd */
    HANDLES = 3,
    BATCH = 8,
    EXTRA_PROCS = 8, /* forks and clones */
    INCARNATIONS = 64,
    STACK_BYTES = 512 * 1024,
};

/* ---- text in registers, counted references ---- */

struct text {
    uint32_t refs, len;
    char p[];
};

struct text *text_new(const char *p, size_t len);
struct text *text_ref(struct text *t);
void text_unref(struct text *t);

/* ---- a process ---- */

struct region;

enum { INSTEAD_MAX = 2 }; /* as many as tickets.c writes at once */

struct handle { /* what the process has of the store */
    struct firn_store base;
    struct region *region;
    uint64_t identity; /* which store it was opened on, or last looked at */
    size_t refused;    /* of the last write of several registers: what they held instead */
    struct firn_record instead[INSTEAD_MAX];
};

struct f_clock { /* clock F as the generators read it */
    struct firn_clock base;
    struct region *region;
};

/* All that a process can remember. Copied as a whole when it is cloned. */
struct image {
    struct handle handle;
    struct f_clock clock;
    struct lease lease;
    struct lease_view view; /* as published to the generators */
    struct tickets tickets; /* only in worlds of tickets, which know no clones */
    struct ticket_node *tk; /* the same */
    bool release;           /* asked to give the slot back */
    bool fence, fencing;    /* asked to fence, as an operator does, and about it */

    /* firnd's numbers (server/numbers.c, server/minter.c). */
    uint64_t version;       /* of the view */
    struct lease_view seen; /* by the last loop that followed */
    struct stamp_source source;
    struct stamp_set set[LOOPS + 1];
    struct {
        struct stamps *stamps;
        uint64_t version;
    } loop[LOOPS];

    /* A program's generators and what is on their page, which fork() wipes. */
    struct {
        uint64_t forks; /* not 0; what batches are compared with */
        struct firn_gen gen[LANES_MAX];
    } page;
    uint64_t standing; /* the grant.gen that the generators stand on; 0: none */
    bool open, closed;
    uint64_t stamped[LANES_MAX]; /* last tick on earlier grants */
    uint64_t last;               /* as the coordinator is told, now and then */
    uint64_t batch[BATCH], batch_forks;
    size_t batch_count, batch_at;

    /* The coordinator's thread. */
    bool entered;
    jmp_buf jump;
    ucontext_t context;
    char *low; /* the stack is used from here up */
    _Alignas(64) char stack[STACK_BYTES];
};

struct region {
    struct image *image;
    struct world *world;
    int resident; /* the process whose memory is there now */
    int users;
};

/* One machine's: R = base_r + (t - base_t) * (1 + drift), and stands before base_t. */
struct host_clock {
    int64_t base_r, base_t; /* ns; true time */
    int64_t drift_pm;       /* per mille */
    int64_t slept_ns;       /* CLOCK_BOOTTIME - CLOCK_MONOTONIC, once it is awake */
    int64_t wakes_at;       /* true time */
};

struct msg;

struct proc {
    int id, node;
    bool up, ended, child, is_clone, leaving, wrong_layout;
    int64_t restart_ms;                            /* after it has left */
    enum { JOB_SERVE, JOB_INIT, JOB_RECOVER } job; /* an operator's command, or a node */
    uint64_t boot; /* counts lives, so that events of an earlier one are known */
    struct region *region;
    struct image *saved; /* the memory while another process is resident */
    uint64_t rng;
    struct host_clock clock;
    int64_t paused_until;
    uint64_t token; /* of the wait in hand */
    bool waiting;
    struct msg *reply;
    int64_t cut_until;
    struct {
        bool set;
        enum fault_kind kind;
        int64_t arg;
    } on_write, on_read;
    bool lock_lost;
    int64_t dies_in;  /* store calls; 0: it does not */
    bool dies_after;  /* that call was made, but before its answer */
    bool died, again; /* at one, as an operator's command; which is begun again */

    /* Ground truth that the process does not know. */
    struct nonce incarnation[INCARNATIONS];
    uint32_t incarnations;
    uint64_t handed[HANDLES]; /* the last ID of each handle: a lane, or a layout of a firnd */
    uint64_t ticked[HANDLES]; /* and the last tick stamped */
    uint64_t before[HANDLES]; /* the highest ID of its earlier lives */
    bool truly_closed;        /* Close is done: nothing may come any more */
    enum slot_state state;    /* as of the last look */
    int64_t state_since;
    int64_t f_seen, boot_seen;
    uint64_t fences_seen, twins_seen;
    uint32_t reborn; /* incarnations when it was last looked at */
    size_t zones_seen,
        zones_before;   /* losses there were when it last read meta, and the time before */
    size_t zones_fence; /* and when it began to fence */
    bool in_fence;
    bool outcome_read; /* its last call was the read that decides a write */
    uint64_t outcome_serial;
    uint32_t outcome_slot;
    bool changed;    /* was told that the store is another one */
    int64_t meta_at; /* its last call was a read of meta, sent then; else 0 */
    int64_t paused_at;
};

/* ---- the store ---- */

struct version {
    uint64_t serial; /* of the write */
    int64_t at;
    struct text *text; /* NULL: deleted */
    uint64_t number;   /* a version counter that restarts, for a mutant */
};

struct cell {
    char key[STORE_KEY_MAX];
    size_t key_len;
    int64_t slot; /* -1: no slot */
    struct version *history;
    size_t count, room, dropped;
};

enum msg_kind { MSG_READ, MSG_CAS, MSG_SCAN, MSG_IDENTITY };

struct change {
    char key[STORE_KEY_MAX];
    size_t key_len;
    struct text *old, *value;
    struct text *instead; /* where it was refused */
    int result;
    uint64_t number;  /* for the mutant: the version that `old` was */
    uint64_t applied; /* serial of the write it became; 0: none */
};

struct msg {
    enum msg_kind kind;
    int proc;
    uint64_t boot, token;
    uint64_t identity;
    bool fresh, many, release;
    int64_t meta_at; /* its sender's call before this one read meta, then; 0: it did not */
    int64_t stale_ns;
    int result;
    struct text *found;
    uint64_t as_of, store_ms;
    int64_t reply_after; /* ns; < 0: no process waits for an answer */
    size_t count;
    struct change change[];
};

struct store {
    struct cell *cell; /* by key */
    size_t count, room, keep;
    uint64_t serial, identity, made; /* made: serial when INIT was done */
    int64_t down_until;
    uint64_t ops, ops_this_s, ops_peak;
    int64_t ops_s;
};

/* ---- ground truth ---- */

struct grant { /* one owner's time on one slot, as the store has it */
    struct nonce owner;
    uint64_t epoch, from, until;
    uint64_t serial, written; /* of the write that made it, and of the last that extended it */
    uint64_t stamped;         /* highest tick stamped in it; 0: none */
    int64_t made_at;
    int proc;
};

enum { GRANTS_KEPT = 64 };

struct slot_truth {
    struct grant grant[GRANTS_KEPT]; /* ring */
    uint64_t grants;
};

/* Ticks that may be stamped twice, because the store forgot (A1) or a memory runs twice (A2). */
struct zone {
    bool clone;
    uint32_t slot;
    uint64_t lo, hi;
    uint64_t serial; /* of the loss */
    uint64_t closed; /* serial of the FENCE that ended it; 0: open */
    int64_t at;
};

enum { ZONES_MAX = 256, CALLS_MAX = 1 << 14 };

struct seen_id {
    uint64_t id, serial;
    int proc;
    uint32_t epoch; /* of the table: an older one is an empty place */
};

enum event_kind { EV_WAKE, EV_EMIT, EV_FAULT, EV_APPLY, EV_REPLY, EV_BOOT, EV_SLIP, EV_DIE };

struct event {
    int64_t at;
    uint64_t order, boot, token;
    enum event_kind kind;
    int who;
    void *p;
};

struct world {
    struct plan *plan;
    const struct config *config;
    int64_t now;
    uint64_t rng;
    bool healed, draining, scale, trace;
    struct event *heap;
    size_t events, events_room;
    uint64_t order;
    struct proc *proc;
    int procs;
    struct region *region;
    int *locked_by;
    struct store store;
    struct stamp_plan stamp_plan;
    struct slot_truth *truth;
    struct zone zone[ZONES_MAX];
    size_t zones;
    uint64_t zone_serial;
    struct seen_id *id;
    size_t id_room, id_count;
    uint32_t id_epoch;
    struct ticket_truth *ticket;
    bool clock_back;             /* a clock went back by more than a new store's floor allows for */
    bool lost, cloned;           /* A1, A2 were broken in this run */
    int fencer;                  /* the process that fenced last, and when */
    int64_t fenced_at, floor_at; /* floor_at: when meta last got a floor ahead of the clock */
    uint64_t highest;            /* until that ever was */
    uint64_t note;               /* the highest tick that was handed out */
    jmp_buf main_jump;
    ucontext_t main_context;

    /* The result. */
    bool failed;
    char oracle[24], what[400];
    int64_t failed_at;
    uint64_t ids, hash;
    uint64_t calls;       /* of the store, while faults last */
    uint8_t *call_writes; /* whether each was a write: CALLS_MAX of them, or NULL */
    int64_t node_ns;      /* lived by processes */
};

extern const char *only_oracle; /* judge this rule alone; NULL: all of them */

/* The first broken rule ends the run. */
__attribute__((format(printf, 3, 4))) void violate(struct world *w, const char *oracle,
                                                   const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void trace(struct world *w, const char *fmt, ...);
void fold(struct world *w, uint64_t v);

/* world.c */
void world_new(struct world *w, const struct config *max_config, int procs);
void world_begin(struct world *w, struct plan *plan);
void world_run(struct world *w, struct plan *plan);
void world_reset(struct world *w, struct plan *plan);
void world_until(struct world *w, int64_t end);
void world_free(struct world *w);
void post(struct world *w, int64_t at, enum event_kind kind, int who, uint64_t token, void *p);
void inject(struct world *w, const struct fault *f);

/* co.c: the coordinator's thread of control. */
void co_start(struct proc *p, struct world *w);
void co_resume(struct world *w, struct proc *p);
void co_wait(struct region *r); /* in the coroutine: until the next co_resume */

/* proc.c */
struct image *image_of(struct world *w, struct proc *p); /* its memory, in its place */
struct proc *resident(struct region *r);
void proc_boot(struct world *w, struct proc *p);
void proc_end(struct world *w, struct proc *p); /* as kill -9 does */
void proc_main(struct region *r);               /* the coroutine */
void proc_emit(struct world *w, struct proc *p, uint64_t count);
void proc_slip(struct world *w, struct proc *p, struct firn_gen *copy);
void proc_leave(struct world *w, struct proc *p);
void proc_publish_early(struct world *w, struct proc *p);
void proc_fork(struct world *w, struct proc *p);
void proc_clone(struct world *w, struct proc *p);
void region_random(void *user, void *out, size_t len);
void proc_kick(struct world *w, struct proc *p);
void clock_read(const struct world *w, const struct proc *p, struct clock_reading *out);
int64_t clock_real(const struct world *w, const struct proc *p);
void clock_rebase(struct world *w, struct proc *p);
int64_t f_now(const struct world *w, const struct proc *p, const struct image *m);

/* store.c */
void store_open(struct handle *h, struct region *r);
void store_reset(struct world *w);
void store_apply(struct world *w, struct msg *m);
void store_rewind(struct world *w, int64_t back_ns);
void store_delete(struct world *w, struct cell *c);
struct cell *store_find(struct world *w, const char *key, size_t len);
struct text *store_now(const struct cell *c);
void msg_free(struct msg *m);

/* oracle.c */
void oracle_reset(struct world *w);
void oracle_write(struct world *w, const struct msg *m, struct cell *c, const struct text *old,
                  const struct text *value);
void oracle_send(struct world *w, struct proc *p, const struct msg *m);
/* Returns the last tick of the lease that the ID's tick touches. */
uint64_t oracle_stamp(struct world *w, struct proc *p, unsigned handle, uint64_t id);
void oracle_hand(struct world *w, struct proc *p, unsigned handle, uint64_t id);
void oracle_proc(struct world *w, struct proc *p);
void oracle_lost(struct world *w, uint32_t slot, uint64_t kept_until);
void oracle_cloned(struct world *w, struct proc *p);
void oracle_answered(struct world *w, struct proc *p, const struct msg *m);
bool oracle_open_zones(const struct world *w);
void oracle_healed(struct world *w);
uint64_t oracle_highest(struct world *w);

/* tickets.c */
void tickets_reset(struct world *w);
void tickets_main(struct region *r);
void tickets_ask(struct world *w, struct proc *p);
void tickets_end(struct world *w, struct proc *p);
void tickets_lost(struct world *w);
void tickets_wrote(struct world *w, struct msg *m, struct change *c);
void tickets_answered(struct world *w, struct msg *m);
void tickets_healed(struct world *w);

#endif
