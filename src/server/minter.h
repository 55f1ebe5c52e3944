/*
 * minter.h - everything that one loop mints with. Numbers of leased layouts (snowflake, sonyflake,
 * tsid) come from the process's generators, which all loops share; texts come from the loop's own
 * mints; tickets from a block in hand or, later, from the coordinator. All calls are for the loop's
 * thread.
 */
#ifndef FIRN_SERVER_MINTER_H
#define FIRN_SERVER_MINTER_H

#include "firn/gen.h"
#include "firn/mint.h"
#include "server/coordinator.h"
#include "server/numbers.h"

struct minter;

/* Everything is borrowed. */
FIRN_MUSTUSE int minter_new(const struct stamp_plan *plan, struct board *board,
                            struct numbers *numbers, struct minter **out);
void minter_free(struct minter *m);

/* Once per turn of the loop. */
void minter_turn(struct minter *m);

/* One number, or up to n. They are for requests that have arrived already: a number that is kept
 * for a later one would be smaller than those given meanwhile. FIRN_EWINDOW: no window (the store
 * is away, or there is none yet). FIRN_EAGAIN: the layout's rate and what could be borrowed are
 * used up for the moment. FIRN_ERANGE: the shard. */
FIRN_MUSTUSE int minter_number(struct minter *m, enum leased which, uint64_t *out);
FIRN_MUSTUSE int minter_numbers(struct minter *m, enum leased which, uint64_t shard, uint64_t *ids,
                                size_t n, size_t *out_n);

/* Numbers of this layout are short: a request asks for its share first (draw.h). As of a few
 * numbers ago. */
bool minter_tight(const struct minter *m, enum leased which);
void minter_room(struct minter *m, enum leased which, struct stamps_room *out);

/* Which leased layout a kind is, or LEASED_N. */
enum leased minter_leased(const struct firn_kind *kind);

/* The mint of a kind that needs no lease and no options, made on first use; NULL: no memory. */
struct firn_mint *minter_mint(struct minter *m, const struct firn_kind *kind);

/* How many IDs of each kind this loop gave; index as in firn_kinds(). Read by any thread. */
void minter_count(struct minter *m, const struct firn_kind *kind, uint64_t n);
uint64_t minter_counted(const struct minter *m, size_t kind_index);

/* --- tickets --- */

/* A ticket request that may have to wait. The caller embeds it and keeps it until done(). */
struct ticket_wait {
    struct job job; /* in: name, name_len, want, create; out: result, diag, range, record, period */
    void (*done)(struct ticket_wait *w);
    struct ticket_desk *desk; /* private */
};

struct ticket_desk; /* this loop's jobs under way */

FIRN_MUSTUSE int ticket_desk_new(struct coordinator *c, struct outbox *back,
                                 struct ticket_desk **out);
void ticket_desk_free(struct ticket_desk *d);

/* What the sequence is, and exactly `want` numbers in hand, or with `some` 1 to `want`;
 * 0: only what it is. Numbers may be taken only where no earlier request of the connection waits
 * (reply_behind()), or they would not rise, and not for a key. Anything but SEQ_HAND_TAKEN: use
 * ticket_queue(). Equal requests may be combined into one that waits only for SEQ_HAND_GAPLESS; a
 * range sequence with too few numbers in hand would skip those few. `out_record` may be NULL. */
FIRN_MUSTUSE enum seq_hand ticket_in_hand(struct ticket_desk *d, const char *name, size_t len,
                                          uint64_t want, bool some, uint64_t now_ms,
                                          struct seq_range *out, struct seq_record *out_record);

/* done() will be called, on this thread, after ticket_desk_turn() has sent the job. */
void ticket_queue(struct ticket_desk *d, struct ticket_wait *w);

/* Any other job. done() will be called. */
void ticket_submit(struct ticket_desk *d, struct job *j);

/* Once per turn: hand all new jobs to the coordinator with one wake-up. */
void ticket_desk_turn(struct ticket_desk *d);

#endif
