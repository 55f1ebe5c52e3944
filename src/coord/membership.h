/*
 * membership.h - one process's own register member/<n>, as a state machine.
 * Pure, like slot.h: the driver (drive/member.h, or a simulation) asks membership_next() what to
 * do, does it and tells the outcome. One write is outstanding at a time.
 *
 * Claiming takes the lowest register that is absent or free, or, when none is, one whose member is
 * dead by the roster. A dead one is first freed and then claimed like any other, so that "free, or
 * another epoch" is the one sign of a membership that is over. After a conflict the choice widens
 * to the lowest 2, 4, 8 ... so that processes that start at once do not chase each other from
 * number to number.
 *
 * What the owner may believe: its membership holds until `valid_until_ms`, one ttl after the
 * *sending* of the last write known to have landed. Why that is safe: an observer frees the
 * register by a compare-and-swap that names the very record j which it has seen unchanged for 1.5
 * ttl. If that succeeds, no later record landed before or can land after; so the last confirmed
 * write is j or older, was sent before the observer first saw j, and expired half a ttl before it
 * was freed. Neither fresh reads nor equal clocks are needed: only clock *rates* within a factor
 * 1.5 of each other.
 */
#ifndef FIRN_COORD_MEMBERSHIP_H
#define FIRN_COORD_MEMBERSHIP_H

#include "coord/roster.h"

#define MEMBERSHIP_MINE 16 /* own writes remembered, so that a late one is known when it turns up */

enum membership_state {
    MEMBERSHIP_OUT,     /* looking for a register */
    MEMBERSHIP_UP,      /* has one, and beats */
    MEMBERSHIP_LEAVING, /* membership_leave() was called; the register is not free yet */
    MEMBERSHIP_LEFT,
};

struct membership_params {
    struct nonce cluster;
    uint64_t ttl_ms;
    uint64_t backoff_min_ms, backoff_max_ms; /* after errors of the store */
    bool keep_house; /* free dead members: for processes that stay. The lowest live one does it */
    char kind[MEMBER_KIND_MAX + 1], name[RECORD_NAME_MAX + 1];
    char address[MEMBER_ADDRESS_MAX + 1], slots[MEMBER_SLOTS_MAX + 1];
    char version[MEMBER_VERSION_MAX + 1];
};

struct membership_now {
    uint64_t ms;      /* a steady clock that counts on while the machine sleeps; never 0 */
    uint64_t unix_ms; /* for people */
};

enum membership_do {
    MEMBERSHIP_DO_WAIT, /* until `ms` */
    MEMBERSHIP_DO_SCAN, /* roster_begin, roster_add for each of member/ -> membership_scan_done */
    MEMBERSHIP_DO_READ, /* member/<number> -> membership_read_done */
    MEMBERSHIP_DO_CAS,  /* member/<number>: old -> value -> membership_cas_done */
};

struct membership_action {
    enum membership_do what;
    uint32_t number;
    bool fresh;
    uint64_t ms;
    const char *old, *value; /* borrowed until the reply; old NULL: it must be absent */
    size_t old_len, value_len;
};

/* Private from here on but for `state`, `number`, `epoch`, `valid_until_ms`, `unbroken`, `lost` and
 * `full`. */
enum membership_write { MEMBERSHIP_CLAIM, MEMBERSHIP_BEAT, MEMBERSHIP_FREE, MEMBERSHIP_STRIKE };

struct membership_text { /* a record and its text; length 0: absent */
    struct member_record record;
    size_t len;
    char text[RECORD_TEXT_MAX];
};

struct membership {
    struct membership_params params;
    enum membership_state state;
    uint32_t number;
    uint64_t epoch;
    uint64_t valid_until_ms; /* only with UP */
    uint64_t unbroken;       /* changes whenever validity lapsed, even if a late beat renewed it */
    uint64_t lost;           /* how often it was taken away */
    bool full;               /* all registers are held by live members */

    struct roster *roster_;
    enum {
        MEMBERSHIP_AT_REST,
        MEMBERSHIP_AT_SCAN,
        MEMBERSHIP_AT_READ,
        MEMBERSHIP_AT_CLAIM,
        MEMBERSHIP_AT_STRIKE,
        MEMBERSHIP_AT_WRITE
    } at_;
    enum membership_write doing_; /* what the write in flight is for */
    bool outcome_;                /* the read in hand decides the outcome of a write */
    uint32_t target_;             /* the register in hand */
    uint64_t due_ms_, beat_due_ms_, house_due_ms_, backoff_ms_;
    uint32_t conflicts_, random_;
    struct membership_text own_, other_; /* own register as confirmed; the target as read */
    char value_[RECORD_TEXT_MAX];
    size_t value_len_;
    struct {
        struct nonce req;
        uint64_t sent_ms; /* 0: empty */
    } mine_[MEMBERSHIP_MINE];
    uint32_t mine_next_;
};

/* The roster is borrowed; the driver may show it around. FIRN_EINVAL: no ttl, or texts that a
 * record cannot hold. */
FIRN_MUSTUSE int membership_init(struct membership *m, const struct membership_params *p,
                                 struct roster *roster, struct firn_diag *d);

/* `fresh`: a new nonce from the kernel for each call. */
void membership_next(struct membership *m, const struct membership_now *now,
                     const struct nonce *fresh, struct membership_action *out);
void membership_scan_done(struct membership *m, const struct membership_now *now, int result);
void membership_read_done(struct membership *m, const struct membership_now *now, int result,
                          const char *p, size_t len);
void membership_cas_done(struct membership *m, const struct membership_now *now, int result);

/* New texts for address and slots (NULL: as it is); the next beat, which is soon, carries them.
 * Texts that a record cannot hold are left out. */
void membership_describe(struct membership *m, const char *address, const char *slots);

/* Beat now: it wakes the candidate that watches this register. */
void membership_touch(struct membership *m);

/* Free the register: once LEFT there is nothing more to do. */
void membership_leave(struct membership *m);

static inline bool membership_valid(const struct membership *m, uint64_t now_ms)
{
    return m->state == MEMBERSHIP_UP && now_ms < m->valid_until_ms;
}

#endif
