/*
 * queue.h - an election or a lock: the record queue/<name>, and one candidate's way through it.
 * Pure, like slot.h and membership.h: candidate_next() says what to do, the driver (election.h, or
 * a simulation) does it and tells the outcome.
 *
 * The record is the line of candidates, each (number, epoch, token): a membership (roster.h) and
 * the number that it drew on joining. Joining appends with token = next++, by compare-and-swap. The
 * head leads, and its token is the fencing token: a system that the leader writes to should refuse
 * a token below the highest that it has seen.
 *
 * Tokens rise from leader to leader. All records of a queue form one chain (each write names the
 * whole value it replaces) and every write appends with a token above all before it, or removes. So
 * the line is sorted by token in every record, and when a head goes, its successor's token is
 * higher, as is every one that comes later. Only heads lead, and a candidate never leads twice with
 * one token.
 *
 * At most one candidate believes to lead. A candidate is removed by itself, after its work has
 * stopped, or by its successor when its member register is free or of another epoch; the register
 * gets so only after the candidate's own validity ended (membership.h has that argument). Both
 * facts stay true for ever, so reads may be stale. A head stays the head until it is removed, so
 * that reading it once is enough.
 *
 * No herd: a candidate watches the member register of the one before it, and nothing else wakes it.
 * A candidate that leaves the line touches or frees that register, which wakes one successor. The
 * queue itself is read when that register changes, which is every third of a ttl, or after five
 * seconds.
 */
#ifndef FIRN_COORD_QUEUE_H
#define FIRN_COORD_QUEUE_H

#include "coord/membership.h"

/*
 * How many fit into a record of 1,024 bytes: the lines without candidates take at most 68, and one
 * candidate number.epoch.token with its comma 4 + 1 + 11 + 1 + 11 + 1 = 29, as tokens and epochs
 * have at most eleven digits (a thousand claims per second for three years). (1024 - 68) / 29 = 32.
 */
#define QUEUE_MAX       32
#define QUEUE_TOKEN_MAX 99999999999u
#define QUEUE_PREFIX    "queue/"

struct queue_place {
    uint32_t number; /* the member register */
    uint64_t epoch, token;
};

struct queue_record {
    uint64_t next; /* the next token */
    uint32_t count;
    struct queue_place place[QUEUE_MAX]; /* the head first */
    struct nonce req;
};

size_t queue_encode(const struct queue_record *r, char out[RECORD_TEXT_MAX]);
FIRN_MUSTUSE int queue_parse(const char *p, size_t len, struct queue_record *out,
                             struct firn_diag *d);
/* "queue/<name>" */
size_t queue_key(const char *name, size_t len, char out[RECORD_KEY_BUF]);

/* Where a membership stands; -1: not in line. */
int queue_find(const struct queue_record *r, uint32_t number, uint64_t epoch);
/* FIRN_ENOSLOT: QUEUE_MAX are in line. FIRN_EOVERFLOW: no token is left. */
FIRN_MUSTUSE int queue_append(struct queue_record *r, uint32_t number, uint64_t epoch);
void queue_remove(struct queue_record *r, int at);

enum candidate_state {
    CANDIDATE_OUT,     /* not in line yet, or the line is full (`full`) */
    CANDIDATE_WAITING, /* in line; `ahead` are before it */
    CANDIDATE_LEADING, /* head: `token` is its fencing token. As long as candidate_leads() says */
    CANDIDATE_LOST,    /* led, and cannot be sure any more: stop the work, then candidate_again() */
    CANDIDATE_LEAVING, /* candidate_leave() was called */
    CANDIDATE_LEFT,
};

enum candidate_do {
    CANDIDATE_DO_WAIT,       /* until `ms`, or until the membership changes */
    CANDIDATE_DO_READ,       /* the queue -> candidate_read_done */
    CANDIDATE_DO_CAS,        /* the queue: old -> value -> candidate_cas_done */
    CANDIDATE_DO_WATCH,      /* member/<number>: read it if old is NULL, else wait until it differs
                              * from old or it is `ms` -> candidate_watch_done */
    CANDIDATE_DO_CAS_MEMBER, /* member/<number>: old -> value -> candidate_strike_done */
};

struct candidate_action {
    enum candidate_do what;
    uint32_t number;
    bool fresh;
    uint64_t ms;
    const char *old, *value; /* borrowed until the reply; old NULL: absent */
    size_t old_len, value_len;
};

/* Private but for `state`, `token`, `ahead`, `full`, `error` and `next_seen`. */
struct candidate {
    enum candidate_state state;
    uint64_t token;
    uint32_t ahead;
    bool full;
    uint64_t next_seen; /* the highest token counter it ever saw in the queue */
    int error; /* 0, or why it is stuck: FIRN_EFORMAT (an unreadable record), FIRN_EOVERFLOW */

    enum {
        CANDIDATE_AT_READ,
        CANDIDATE_AT_BUILD,
        CANDIDATE_AT_CAS,
        CANDIDATE_AT_WATCH,
        CANDIDATE_AT_STRIKE,
        CANDIDATE_AT_CAS_MEMBER,
        CANDIDATE_AT_REST
    } at_;
    bool fresh_;
    uint32_t number_;           /* the membership it stands in line with */
    uint64_t epoch_, unbroken_; /* and, while leading, the unbroken stretch of it */
    uint64_t led_;              /* the highest token it led with: never again */
    uint64_t due_ms_, backoff_ms_;
    struct queue_record queue_;
    char text_[RECORD_TEXT_MAX], value_[RECORD_TEXT_MAX]; /* the queue as read; what to write */
    size_t len_, value_len_;                              /* len_ 0: absent */
    struct queue_place before_;                           /* the place it watches; token 0: none */
    bool gone_;                                           /* and its member is gone */
    struct membership_text seen_;                         /* its register as last seen */
    uint64_t watch_until_ms_;
    uint64_t since_ms_; /* since when */
};

/* Tokens begin at `next_least` or above: 0 at the first time; after candidate_leave(), or when the
 * store was opened again, the `next_seen` of before, so that an old read cannot bring back an old
 * place. */
void candidate_init(struct candidate *c, uint64_t next_least);

void candidate_next(struct candidate *c, const struct membership *m,
                    const struct membership_now *now, const struct nonce *fresh,
                    struct candidate_action *out);
void candidate_read_done(struct candidate *c, const struct membership *m,
                         const struct membership_now *now, int result, const char *p, size_t len);
void candidate_cas_done(struct candidate *c, const struct membership *m,
                        const struct membership_now *now, int result);
/* FIRN_EAGAIN: the time is over and it has not changed. */
void candidate_watch_done(struct candidate *c, const struct membership *m,
                          const struct membership_now *now, int result, const char *p, size_t len);
void candidate_strike_done(struct candidate *c, const struct membership_now *now, int result);

/* It leads now, and until m->valid_until_ms unless renewed. Asking is what makes it LOST. */
bool candidate_leads(struct candidate *c, const struct membership *m, uint64_t now_ms);

/* After LOST, or when LEADING and tired of it, when everything done under the token has stopped:
 * stand at the end of the line, for a new token. */
void candidate_again(struct candidate *c);

/* Give up the place; when LEADING, the work has stopped. Done when LEFT: then
 * membership_touch(). */
void candidate_leave(struct candidate *c);

#endif
