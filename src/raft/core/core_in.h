/*
 * core_in.h - struct core and what its files call of each other.
 */
#ifndef FIRN_RAFT_CORE_CORE_IN_H
#define FIRN_RAFT_CORE_CORE_IN_H

#include "raft/core/core.h"

#include "id/minmax.h"
#include "platform/assert.h"
#include "raft/core/mutant.h"

#include <inttypes.h>
#include <string.h>

#define TERM_MAX           (UINT64_C(1) << 62) /* of terms and indexes */
#define SNAPSHOT_BYTES_MAX (UINT64_C(1) << 31)

enum {
    SAVES_MAX = CORE_SAVES_MAX, /* under way; what comes meanwhile is one save afterwards */
    REPLIES_MAX = 64,           /* more are dropped, as a network drops */
    INFLIGHT_MAX = 32,          /* appends to one peer without an answer */
    CAUGHT_UP_ENTRIES = 256,    /* a member that is so far behind at most may become a voter */
};

/* ---- config.c, message.c ---- */

bool config_votes(const struct core_config *c, uint64_t id);
unsigned config_voters(const struct core_config *c);
bool config_valid(const struct core_config *c);
unsigned config_differences(const struct core_config *a, const struct core_config *b);

bool message_valid(const struct core_message *m); /* of a form that a member sends */

/* ---- log.c ---- */

struct log { /* all zero is an empty one */
    struct core_entry *entry;
    size_t head, count, cap;
    uint64_t base, base_term; /* of the entry before the first */
};

static inline uint64_t log_last(const struct log *l)
{
    return l->base + l->count;
}

const struct core_entry *log_at(const struct log *l, uint64_t index);
uint64_t log_term(const struct log *l, uint64_t index); /* base is allowed */
bool log_has(const struct log *l, uint64_t index, uint64_t term);
FIRN_MUSTUSE int log_append(struct log *l, uint64_t term, enum core_type type, const char *bytes,
                            size_t len);
void log_truncate(struct log *l, uint64_t from);
void log_trim(struct log *l, uint64_t base);
void log_reset(struct log *l, uint64_t base, uint64_t base_term);
void log_done(struct log *l);

struct core_snapshot *snapshot_new(uint64_t index, uint64_t term, const struct core_config *config,
                                   size_t len);

/* ---- struct core ---- */

enum peer_mode {
    PEER_PROBE,    /* where its log differs is not known: one append at a time */
    PEER_PIPELINE, /* appends follow each other without waiting */
    PEER_SNAPSHOT,
};

struct peer { /* another member of the newest configuration */
    uint64_t id;
    /* of a candidate */
    bool asked, answered, granted;
    uint64_t asked_ms;
    /* of a leader */
    enum peer_mode mode;
    uint64_t match, next;
    bool due;         /* PROBE, SNAPSHOT: send at once */
    uint64_t sent_ms; /* the last append, also without entries */
    uint64_t round, round_sent;
    bool heard;
    uint64_t heard_ms;
    uint64_t inflight[INFLIGHT_MAX]; /* last index of each append without an answer */
    unsigned inflights;
    uint64_t snapshot, offset, chunk_ms; /* index of what is sent, and how far */
};

struct reply { /* goes out when the save `need` is done */
    uint64_t need;
    struct core_message m;
};

struct saving {
    uint64_t number;
    uint64_t last; /* the log has this prefix in common with the disk when it is done */
    bool snapshot; /* the waiting one is in it */
};

struct core {
    struct core_opts o;
    uint64_t now, random;
    uint64_t tick_ms; /* the last core_tick() */
    bool ticked;

    /* what is to be on the disk */
    uint64_t term, vote;
    struct log log;
    struct core_snapshot *snapshot; /* NULL: none */
    struct core_config config;      /* the newest */
    uint64_t config_index;

    /* saves (core.c) */
    uint64_t number, saved_number; /* given out, done */
    bool state_dirty;              /* term or vote are in no save yet */
    uint64_t term_save, vote_save; /* the saves that have them */
    uint64_t given;                /* last index that the disk has after the saves given out */
    uint64_t truncate;             /* of the next save; 0: none */
    uint64_t saved;                /* prefix of the log that is on the disk */
    struct saving saving[SAVES_MAX];
    unsigned saving_head, savings;
    struct core_snapshot *waiting; /* to become `snapshot` when it is saved; NULL: none */
    bool waiting_received;         /* it replaces the log */
    bool waiting_given;
    uint64_t waiting_base; /* of the log, afterwards */
    bool snapshot_again;   /* the disk's log does not match its snapshot: save it again */

    uint64_t commit, applied;
    uint64_t impossible; /* messages of that kind that were dropped */

    enum core_state state;
    bool pre, transferred; /* of a candidate: only asks; the leader told it to */
    uint64_t leader, term_leader;
    uint64_t heard_ms, deadline_ms;

    /* of a follower */
    uint64_t proved; /* last index known to equal the log of this term's leader */
    uint64_t acked, acked_ms, ack_round;
    bool ack_due;
    struct core_snapshot *collecting; /* NULL: none */
    size_t collected;

    /* of a leader */
    uint64_t since_ms;
    uint64_t round, shown;
    uint64_t transfer_to, transfer_ms; /* 0: none; when it began */
    uint64_t told_ms;                  /* TIMEOUT_NOW was sent; 0: not yet */

    struct peer peer[CORE_MEMBERS_MAX];
    unsigned peers;

    struct reply reply[REPLIES_MAX];
    unsigned replies;
};

/* ---- core.c ---- */

uint64_t core_heartbeat_ms(const struct core *c);
static inline bool core_votes(const struct core *c) /* a voter, as far as it knows */
{
    return config_votes(&c->config, c->o.id);
}
struct peer *core_find_peer(struct core *c, uint64_t id);
void core_set_state(struct core *c, uint64_t term, uint64_t vote);
void core_reply(struct core *c, uint64_t need, const struct core_message *m);
void core_commit_to(struct core *c, uint64_t index);
void core_truncate(struct core *c, uint64_t from);
/* Appends, and takes a configuration into force. The bytes of a configuration can be read. */
FIRN_MUSTUSE int core_append(struct core *c, uint64_t term, enum core_type type, const char *bytes,
                             size_t len);
/* The value that a majority of the voters has at least. `of` is asked for peers, `own` is ours. */
uint64_t core_majority(struct core *c, uint64_t (*of)(struct core *c, const struct peer *p),
                       uint64_t own);

/* ---- config_log.c: which configuration is in force ---- */

void core_config_at(const struct core *c, uint64_t index, struct core_config *out,
                    uint64_t *out_index);
void core_config_found(struct core *c); /* looks for the newest in the log, and makes it the one */
void core_config_set(struct core *c, const struct core_config *config, uint64_t index);

/* ---- election.c ---- */

void election_reset(struct core *c); /* a new random deadline */
void election_follow(struct core *c, uint64_t term, uint64_t leader);
void election_tick(struct core *c);
void election_stand(struct core *c, bool pre, bool transfer);
void election_count(struct core *c);
bool election_send(struct core *c, struct core_message *out);
void election_vote(struct core *c, const struct core_message *m);
void election_result(struct core *c, const struct core_message *m);

/* ---- lead.c: the leader's side ---- */

void lead_begin(struct core *c);
void lead_tick(struct core *c);
bool lead_send(struct core *c, struct core_message *out);
void lead_result(struct core *c, const struct core_message *m);
void lead_commit(struct core *c);
void lead_show(struct core *c);
bool lead_heard(const struct core *c, const struct peer *p);
void lead_peer_begin(struct core *c, struct peer *p);
void lead_heard_now(struct core *c, struct peer *p);

/* ---- follow.c: the follower's side ---- */

/* False: no leader of that term can have sent it: this term has another one, or it contradicts an
 * entry that is committed. The sender has a bug, or is a stranger who has the port. */
bool follow_possible(const struct core *c, const struct core_message *m);
void follow_append(struct core *c, const struct core_message *m);
bool follow_send(struct core *c, struct core_message *out);

/* ---- snapshot.c ---- */

void snapshot_receive(struct core *c, const struct core_message *m);
void snapshot_forget(struct core *c); /* what was collected */
void snapshot_saved(struct core *c);
bool snapshot_send(struct core *c, struct peer *p, struct core_message *out);
void snapshot_result(struct core *c, const struct core_message *m);

/* ---- transfer.c ---- */

void transfer_step(struct core *c);
void transfer_receive(struct core *c, const struct core_message *m);
void transfer_tell(struct core *c, uint64_t to);
const struct peer *transfer_furthest(const struct core *c); /* voter; NULL: none */

#endif
