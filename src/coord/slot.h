/*
 * slot.h - the node's side of the window lease (docs/protocol.md 4 and 5) as a state machine;
 * models/window_lease.pml is the same, checked exhaustively.
 * Pure: it reads no clock, no entropy, no store. The driver (lease.h, or a simulation) asks
 * slot_next() what to do, does it, and tells the outcome with the matching slot_..._done().
 *
 * What it protects: `grant` only ever holds timestamps that the store confirmed to this incarnation
 * by the nonce of the very request, and nothing confirmed is used twice. A grant is irrevocable;
 * a generator needs only `grant`. One write is outstanding at a time.
 */
#ifndef FIRN_COORD_SLOT_H
#define FIRN_COORD_SLOT_H

#include "coord/record.h"

#define SLOTS_MAX 1024 /* the default layout's; a node remembers each slot of a scan */
#define SLOT_MINE 64   /* own writes remembered, so that a late one is known when it turns up */

enum slot_state {
    SLOT_START,      /* looking for a slot, never had one */
    SLOT_ACTIVE,     /* granted; renews */
    SLOT_DRY,        /* granted, but no confirmed tick is left: callers wait */
    SLOT_FENCED,     /* another node has the slot: finishes its confirmed ticks, acquires another */
    SLOT_NO_SLOT,    /* all slots are held or ahead of the clock: waits for the nearest */
    SLOT_WAIT_CLOCK, /* the clock lies far behind every slot: waits for it to be set */
    SLOT_TWIN,       /* another process runs this incarnation: closed; needs slot_reborn() */
    SLOT_REGRESSED,  /* the store forgot a confirmed write: finishes, and waits for a FENCE */
    SLOT_HALTED,     /* an operator has to repair `why`; finishes its confirmed ticks */
    SLOT_RELEASING,  /* closed; the RELEASE has not landed yet */
    SLOT_CLOSED,     /* closed and released */
};

const char *slot_state_name(enum slot_state s);

#define SLOT_AVOID_MAX 64
struct slot_avoid { /* slots that nodes of other stores use (coord/clash.h): they are not taken */
    uint32_t n;
    uint32_t slot[SLOT_AVOID_MAX];
};

struct slot_params {
    struct nonce cluster;
    uint32_t slot_lo, slot_hi;
    uint64_t window, max_drift, quarantine; /* ticks */
    uint64_t ts_end;                        /* 2^ts_bits: no grant reaches beyond */
    uint64_t renew_every_ms;
    uint64_t backoff_min_ms, backoff_max_ms;
    bool use_lock;  /* a lock byte tells a dead holder at once; else until + quarantine <= F does */
    bool give_back; /* RELEASE returns unused ticks */
    bool pinned;    /* slot_lo is the only one, by the operator's choice */
    struct slot_avoid avoid;
    uint64_t since; /* slots of this name that were written before this tick may be another's */
    char name[RECORD_NAME_MAX +
              1]; /* the slot last held under this name is taken again if it can be */
};

struct slot_now {     /* the time; given with every call */
    uint64_t f;       /* clock F in ticks */
    uint64_t last;    /* highest tick emitted so far by any generator of this node, 0 for none */
    uint64_t mono_ms; /* for timers only */
};

/* What may be emitted: ticks [from, until) of `slot`. `gen` changes when the slot does, or `from`:
 * then every generator starts at max(from, its own last + 1). `until` alone only rises. With
 * `closed` nothing may be emitted any more. from >= until is an empty grant, soon to be
 * extended. */
struct slot_grant {
    uint64_t gen; /* 0: none yet */
    uint32_t slot;
    uint64_t from, until;
    bool closed;
};

enum slot_do {
    SLOT_DO_WAIT, /* until mono_ms; or until something changes (release, fence) */
    SLOT_DO_SCAN, /* slot_scan_begin, meta -> slot_scan_meta, slot/ -> slot_scan_add, _done */
    SLOT_DO_LOCK, /* let go of any other slot's lock byte, then try this one's -> slot_lock_done */
    SLOT_DO_READ, /* slot/<slot> -> slot_read_done; `fresh` as in store.h */
    SLOT_DO_CAS,  /* slot/<slot>: old -> value -> slot_cas_done */
};

struct slot_action {
    enum slot_do what;
    uint32_t slot;
    bool fresh;
    uint64_t mono_ms;
    const char *old, *value; /* borrowed from the node until the reply */
    size_t old_len, value_len;
};

/* Private from here on but for `state`, `why`, `diag`, `grant` and `seen`. */
enum slot_kind { SLOT_ACQUIRE, SLOT_EXTEND, SLOT_RELEASE };

struct slot_write { /* one write that this incarnation sent */
    struct nonce req;
    uint64_t serial; /* 1.. in the order of sending; 0: empty */
    uint32_t slot;
    enum slot_kind kind;
    uint64_t epoch, from, until;
};

struct slot_seen { /* a slot as the last scan showed it */
    uint64_t until;
    uint8_t state; /* enum slot_hold */
    bool present, mine_by_name, skip;
    bool strange; /* of this name, but of another boot: perhaps an original's, of which this is a
                   * clone */
};

struct slot_node {
    struct slot_params params;
    struct nonce me;
    enum slot_state state;
    int why;               /* HALTED: the error; else 0 */
    struct firn_diag diag; /* and its text */
    struct slot_grant grant;
    uint64_t floor; /* meta.floor */

    enum {
        SLOT_AT_SCAN,
        SLOT_AT_LOCK,
        SLOT_AT_READ,
        SLOT_AT_WRITE,
        SLOT_AT_RENEW,
        SLOT_AT_REST
    } at_;
    enum slot_kind doing_; /* what the write in hand is for */
    bool outcome_;         /* the read in hand decides the outcome of a write */
    uint32_t target_;      /* the slot in hand */
    uint64_t due_ms_;      /* nothing to do before */
    uint64_t backoff_ms_;
    uint64_t patience_ms_; /* until when to wait for the slot held last; 0: not asked yet */
    uint16_t jitter_;
    struct slot_record base_; /* the record the write replaces, and its text */
    char base_text_[RECORD_TEXT_MAX], value_[RECORD_TEXT_MAX];
    size_t base_len_, value_len_;
    struct slot_write
        confirmed_; /* the last confirmed write of the slot held; outside the ring, which
                                   * failed writes may wrap */
    struct slot_write mine_[SLOT_MINE];
    uint64_t serial_;
    uint32_t seen_count_;
    char holder[RECORD_NAME_MAX + 1]; /* pinned: who held the slot when it was last seen */
    struct slot_seen seen[SLOTS_MAX]; /* by slot - slot_lo */
};

/* FIRN_EINVAL: parameters that make no sense. */
FIRN_MUSTUSE int slot_init(struct slot_node *n, const struct slot_params *params,
                           const struct nonce *incarnation, struct firn_diag *d);

/* What to do now. `fresh` is a new nonce from the kernel for each call. */
void slot_next(struct slot_node *n, const struct slot_now *now, const struct nonce *fresh,
               struct slot_action *out);

void slot_scan_begin(struct slot_node *n);
void slot_scan_meta(struct slot_node *n, const struct meta_record *meta);
void slot_scan_add(struct slot_node *n, uint32_t slot, const char *p, size_t len);
void slot_scan_done(struct slot_node *n, const struct slot_now *now, int result);
void slot_lock_done(struct slot_node *n, const struct slot_now *now, int result);
void slot_read_done(struct slot_node *n, const struct slot_now *now, int result, const char *p,
                    size_t len);
void slot_cas_done(struct slot_node *n, const struct slot_now *now, int result);

/* Give the slot back. Every generator must be closed before, `now->last` be exact and stay so: the
 * grant is closed from here on, whatever the store answers. */
void slot_release(struct slot_node *n, const struct slot_now *now);

/* From now on these slots are not taken. With `yield`, one of them that the node holds is closed at
 * once, as for TWIN: the state is then TWIN. */
void slot_set_avoid(struct slot_node *n, const struct slot_avoid *avoid, bool yield);

/* After TWIN, or after REGRESSED and a FENCE: go on as a new incarnation. */
void slot_reborn(struct slot_node *n, const struct nonce *incarnation);

/* The state as users see it: ACTIVE with no confirmed tick left is DRY. */
enum slot_state slot_state_at(const struct slot_node *n, const struct slot_now *now);

/* Confirmed ticks left from now on: max(F, last+1) .. until. */
uint64_t slot_left(const struct slot_node *n, const struct slot_now *now);

/* limit = max(F, min(floor, F + window)) + max_drift: no tick above it is emitted, no grant begins
 * above it. The floor counts just after a FENCE only, that is while it is near: to a clock that is
 * months behind it would be a leave to stamp the future. slot_floor is 0 when it does not count. */
uint64_t slot_floor(const struct slot_node *n, uint64_t f);
uint64_t slot_limit(const struct slot_node *n, uint64_t f);

/* INIT and FENCE: the record that a slot gets. `old` NULL creates one. */
void slot_fenced_record(const struct nonce *cluster, const struct slot_record *old, uint64_t floor,
                        uint64_t f, const struct nonce *req, struct slot_record *out);

/* RETIRE: the record of a slot that is taken out of use for good. `out` may be `old`. */
void slot_retired_record(const struct slot_record *old, uint64_t f, const struct nonce *req,
                         struct slot_record *out);

/* floor = max(now, old floor), but at most now + window, and then + window + max_drift + 2 *
 * skew_max, where now is max(F, S); always above the old floor (docs/protocol.md section 5). */
uint64_t slot_fence_floor(const struct meta_record *m, uint64_t f, uint64_t s);

#endif
