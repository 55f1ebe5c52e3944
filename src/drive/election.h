/*
 * election.h - an election or a lock over a store: runs coord/queue.h with this process's member.
 * For one thread, the one that owns the store and the member. The same code serves both: an
 * election is a lock that is held as long as its holder lives.
 *
 *     while (e.line.state != CANDIDATE_LEADING) election_step(&e, 500);
 *     work under e.line.token, and go on calling election_step(); stop at once when
 *     election_leads() is false, or when member_now_ms() reaches election_valid_until_ms()
 */
#ifndef FIRN_DRIVE_ELECTION_H
#define FIRN_DRIVE_ELECTION_H

#include "drive/member.h"
#include "coord/queue.h"

struct election {
    struct candidate line;
    struct member *member; /* borrowed */
    char key_[RECORD_KEY_BUF];
    size_t key_len_;
    int error; /* of the last call to the store, or the candidate's; 0: it makes progress */
    struct firn_diag diag;
};

/* `name` as record_user_name_ok() has it, else FIRN_EINVAL. Nothing is asked of the store yet.
 * next_least as in candidate_init(). */
FIRN_MUSTUSE int election_open(struct election *e, struct member *member, const char *name,
                               uint64_t next_least, struct firn_diag *d);

/* Do what is due, for the member too: at most one call to the store, or up to `wait_ms` in a wait
 * for the candidate before us. Returns in how many ms to call again, at most `wait_ms`. */
uint64_t election_step(struct election *e, uint32_t wait_ms);

/* It leads at this moment. Once false, it stays so until candidate_again() and a new token. */
bool election_leads(struct election *e);

/* Until when it leads, on the clock of member_now_ms(), if no further beat succeeds; 0: it does not
 * lead. */
uint64_t election_valid_until_ms(struct election *e);

/* Leave the line; the work has stopped. Tries for up to `timeout_ms`; FIRN_EAGAIN: it did not land,
 * and the place is free when the member is. */
FIRN_MUSTUSE int election_leave(struct election *e, uint64_t timeout_ms);

#endif
