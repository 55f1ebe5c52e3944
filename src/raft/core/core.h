/*
 * core.h - Raft as pure steps: elections, replication, membership, snapshots, transfer of the lead.
 * It has no clock, disk, network, thread or random source: time, messages and the disk's answers
 * come in as arguments, and what has to happen outside is taken out after each step. So firnd and
 * the simulator run the same code. Belongs to one thread.
 *
 * A caller gives one input (core_tick, core_receive, core_propose, core_saved, ...), then takes all
 * output before the next input:
 *   core_save()   what must reach the disk. Saves go to the disk in their order; core_saved() says
 *                 how far it has come. Several may be under way.
 *   core_send()   the messages that may go out now. A promise (a vote, an acknowledged entry) is
 *                 only given out here after it was saved.
 *   core_apply()  the next committed entry or snapshot for the state machine.
 * What these return is borrowed until the next input.
 *
 * Rules beyond the Raft paper: a candidate asks first whether it could win (pre-vote), and a member
 * that hears its leader supports no other candidate; a leader that does not hear a majority steps
 * down; a leader counts its own entries only when they are on its disk; one member is changed at a
 * time, and only after the leader has committed an entry of its own term; the configuration is
 * always the newest one in the log, found again whenever the log is truncated or loaded.
 */
#ifndef FIRN_RAFT_CORE_CORE_H
#define FIRN_RAFT_CORE_CORE_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CORE_MEMBERS_MAX = 16,
    CORE_ADDRESS_MAX = 255,
    CORE_APPEND_BYTES_MAX = 256 * 1024, /* entries of one message, unless one entry is longer */
    CORE_ENTRY_BYTES_MAX = 1 << 20,
    CORE_CHUNK_BYTES = 256 * 1024, /* of a snapshot, in one message */
    CORE_SAVES_MAX = 64,           /* under way; core_save() gives no more until some are saved */
};

/* ---- members ---- */

enum core_role { CORE_STANDBY, CORE_VOTER }; /* a standby gets the log and has no vote */

struct core_member {
    uint64_t id; /* never 0 */
    enum core_role role;
    char address[CORE_ADDRESS_MAX + 1];
};

struct core_config {
    unsigned count;
    struct core_member member[CORE_MEMBERS_MAX];
};

const struct core_member *config_member(const struct core_config *c, uint64_t id); /* or NULL */

/* The bytes of an entry of type ENTRY_CONFIG. Returns their length; 0: they do not fit. */
size_t config_write(const struct core_config *c, char *to, size_t cap);
/* FIRN_EFORMAT: no configuration, or one without a voter, or with a member twice. */
FIRN_MUSTUSE int config_read(const char *p, size_t len, struct core_config *out);
enum { CORE_CONFIG_BYTES_MAX = 16 + CORE_MEMBERS_MAX * (16 + CORE_ADDRESS_MAX) };

/* ---- entries and snapshots ---- */

enum core_type {
    ENTRY_NOTHING = 1, /* a new leader's first entry */
    ENTRY_DATA,        /* for the state machine */
    ENTRY_CONFIG,      /* the members from here on */
};

struct core_entry {
    uint64_t index, term;
    enum core_type type;
    const char *bytes;
    size_t len;
};

struct core_snapshot { /* the state after the entry `index` */
    uint64_t index, term;
    struct core_config config; /* as of `index`: committed */
    const char *bytes;
    size_t len;
};

/* ---- messages ---- */

enum core_message_type {
    MESSAGE_VOTE = 1,
    MESSAGE_VOTE_RESULT,
    MESSAGE_APPEND, /* without entries: a heartbeat */
    MESSAGE_APPEND_RESULT,
    MESSAGE_SNAPSHOT, /* one chunk of it */
    MESSAGE_SNAPSHOT_RESULT,
    MESSAGE_TIMEOUT_NOW, /* stand for election at once: the leader hands over */
};

struct core_message {
    enum core_message_type type;
    uint64_t from, to, term;
    bool pre;      /* VOTE, VOTE_RESULT: only asked whether it could win; `term` is the one it would
                      have */
    bool transfer; /* VOTE: the leader asked for it, so it is granted although there is a leader */
    bool ok;       /* RESULT: granted, appended, chunk taken */
    /* VOTE: the candidate's last entry. APPEND: the entry before the first. APPEND_RESULT: ok: the
     * last entry known to be the leader's, and saved; else the next attempt should begin at most
     * behind this one. SNAPSHOT, SNAPSHOT_RESULT: the snapshot's. */
    uint64_t index, index_term;
    uint64_t commit; /* APPEND */
    uint64_t round;  /* APPEND, APPEND_RESULT: which question for the lead this (answers) is */
    /* APPEND: entries index + 1 and on. In a message from core_send(), entry[i] is borrowed from
     * the log. At most CORE_APPEND_ENTRIES_MAX. */
    const struct core_entry *entry;
    size_t entries;
    /* SNAPSHOT: bytes from `offset` of `total`. SNAPSHOT_RESULT: the offset that is wanted next;
     * == total: all of it is saved. */
    uint64_t offset, total;
    const char *bytes;
    size_t len;
    const struct core_config *config; /* SNAPSHOT */
};
enum { CORE_APPEND_ENTRIES_MAX = 256 };

/* The bytes of a message between two members. Returns their length; 0: they do not fit. A message
 * with one entry of CORE_ENTRY_BYTES_MAX fits into CORE_MESSAGE_BYTES_MAX. */
size_t message_write(const struct core_message *m, char *to, size_t cap);
struct core_message_room { /* what a message that was read points into, beside the bytes */
    struct core_entry entry[CORE_APPEND_ENTRIES_MAX];
    struct core_config config;
};
/* FIRN_EFORMAT. The message borrows `p` and `room`. */
FIRN_MUSTUSE int message_read(const char *p, size_t len, struct core_message *out,
                              struct core_message_room *room);
enum { CORE_MESSAGE_BYTES_MAX = CORE_ENTRY_BYTES_MAX + 64 * 1024 };

/* ---- life ---- */

struct core;

struct core_opts {
    uint64_t id;
    uint32_t election_ms;  /* a follower waits from once to twice as long */
    uint32_t heartbeat_ms; /* a leader sends at least so often; 0: a fifth of election_ms */
    uint64_t seed;         /* of the random election time-outs: different on each member */
};

struct core_saved_state { /* what the disk had */
    uint64_t term, vote;
    const struct core_snapshot *snapshot; /* NULL: none; copied */
    uint64_t first;                       /* index of entry[0]; at most the snapshot's index + 1 */
    const struct core_entry *entry;       /* copied */
    size_t entries;
};

/* FIRN_ENOMEM. FIRN_EFORMAT: indexes have a hole, terms go back, a configuration cannot be read.
 * FIRN_EINVAL: no id or time-out.
 * After it, core_apply() gives the snapshot, if there is one. Entries that do not fit the snapshot
 * (a crash while the disk stored it) are dropped. */
FIRN_MUSTUSE int core_new(const struct core_opts *o, const struct core_saved_state *s,
                          uint64_t now_ms, struct core **out);
void core_free(struct core *c);

/* The log of a new cluster: one configuration. What makes it is saved as everything else. Only on a
 * core without entries, snapshot and term. */
FIRN_MUSTUSE int core_bootstrap(struct core *c, const struct core_config *config);

/* ---- inputs; now_ms is a monotonic clock and never goes back ---- */

/* About every 10 ms. A gap of half an election time-out says that this process did not run: then it
 * judges nobody's silence before it had time to read what came meanwhile. */
void core_tick(struct core *c, uint64_t now_ms);

/* A message for another id, or of an impossible form, is dropped. */
void core_receive(struct core *c, const struct core_message *m, uint64_t now_ms);

/* Append to the log, as the leader. *out_index: where; it is done when core_apply() gives an entry
 * with this index and the term that is current now; another term there, or core_leads() false, and
 * its outcome is not known. FIRN_EAGAIN: does not lead, or hands over; FIRN_ENOMEM. */
FIRN_MUSTUSE int core_propose(struct core *c, const char *bytes, size_t len, uint64_t *out_index);

/* Make `config` the members: it differs from the newest configuration by one member added, removed
 * or with another role or address. FIRN_EAGAIN: does not lead, or hands over, or has not yet
 * committed an entry of its term, or another change is not committed. FIRN_ECONFLICT: a majority of
 * `config`'s voters was not heard from within the last election time-out, counting a voter that is
 * added as heard only when it has caught up. FIRN_EINVAL: not one difference, or no voter left. */
FIRN_MUSTUSE int core_change(struct core *c, const struct core_config *config, uint64_t *out_index);

/* Disaster: without asking anyone, as a member that has lost its majority for good, make `config`
 * the members by an entry of a new term. Only before the first core_tick(). */
FIRN_MUSTUSE int core_force(struct core *c, const struct core_config *config);

/* Hand the lead over; to 0: to the voter that is furthest. Ends within one election time-out:
 * core_transferring(). FIRN_EAGAIN: does not lead, or is at it. FIRN_ENOENT: no other such voter.
 */
FIRN_MUSTUSE int core_transfer(struct core *c, uint64_t to);

/* Begin to show that this member leads now. Returns the number of the question: when core_shown()
 * has reached it, and core_applied() the commit index of the moment when it did, what was applied
 * is current. Nothing is shown before core_settled(). With the commit index of the moment when it
 * was asked, the question must be asked again when the term has changed. 0: does not lead. */
uint64_t core_ask(struct core *c);
uint64_t core_shown(const struct core *c);

/* A snapshot of the state machine after core_applied(): copied, saved, and then the log up to
 * index - keep goes. FIRN_EAGAIN: another one is being saved. FIRN_EINVAL: nothing was applied
 * since the last. FIRN_ENOMEM. */
FIRN_MUSTUSE int core_snapshot(struct core *c, const char *bytes, size_t len, uint64_t keep);

void core_set_election(struct core *c, uint32_t election_ms);

/* ---- outputs ---- */

struct core_save {
    uint64_t number;                      /* 1, 2, 3, ... */
    uint64_t term, vote;                  /* always the ones to have with this save */
    uint64_t truncate;                    /* entries from this index on are removed, if there are
                                             any; 0: none */
    uint64_t first, entries;              /* appended, after that: core_entry_at() gives each */
    const struct core_snapshot *snapshot; /* to be stored, before the rest; NULL: none */
    uint64_t log_first; /* with a snapshot: entries before this one go. A leader's snapshot has
                           log_first == truncate == snapshot->index + 1: nothing of the log stays */
};
/* False: nothing (more) to save. */
bool core_save(struct core *c, struct core_save *out);
/* Every save up to `number` is on the disk. */
void core_saved(struct core *c, uint64_t number, uint64_t now_ms);

/* False: no (further) message may go now. */
bool core_send(struct core *c, struct core_message *out);

enum core_apply_kind { APPLY_NONE, APPLY_ENTRY, APPLY_SNAPSHOT };
struct core_applying {
    struct core_entry entry;              /* every type, so that none is missing */
    const struct core_snapshot *snapshot; /* replaces the whole state */
};
enum core_apply_kind core_apply(struct core *c, struct core_applying *out);

/* ---- looking ---- */

enum core_state { CORE_FOLLOWER, CORE_CANDIDATE, CORE_LEADER };
enum core_state core_state(const struct core *c);
bool core_leads(const struct core *c);   /* and is not handing over */
bool core_settled(const struct core *c); /* leads, and has committed an entry of its term */
bool core_transferring(const struct core *c);
uint64_t core_leader(const struct core *c); /* id; 0: none known */
uint64_t core_term(const struct core *c);
uint64_t core_vote(const struct core *c);
uint64_t core_last(const struct core *c); /* index of the last entry */
uint64_t core_last_saved(const struct core *c);
uint64_t core_first(const struct core *c); /* of the first entry that the log has */
uint64_t core_committed(const struct core *c);
uint64_t core_applied(const struct core *c);
uint64_t core_snapshot_index(const struct core *c);
bool core_snapshotting(const struct core *c); /* one is not saved yet: core_snapshot() waits */
/* Messages that no leader can have sent, dropped: a peer has a bug, or is no member. */
uint64_t core_impossible(const struct core *c);
uint32_t core_election_ms(const struct core *c);
bool core_entry_at(const struct core *c, uint64_t index, struct core_entry *out);
const struct core_config *core_config(const struct core *c); /* the newest in the log */
bool core_changing(const struct core *c);                    /* it is not committed */

struct core_peer {     /* another member, as the leader sees it */
    uint64_t match;    /* known to be on its disk */
    uint64_t heard_ms; /* when; 0: never in this term */
    bool snapshot;     /* it is being sent one */
};
bool core_peer(const struct core *c, uint64_t id, struct core_peer *out); /* false: not leading,
                                                                             or no such member */

#endif
