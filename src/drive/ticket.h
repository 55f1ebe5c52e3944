/*
 * ticket.h - sequences in a store: blocking calls for the coordinator thread.
 * ticket_commit() is the group commit; coord/batch.h decides, this room makes the calls.
 */
#ifndef FIRN_DRIVE_TICKET_H
#define FIRN_DRIVE_TICKET_H

#include "coord/batch.h"
#include "drive/keyed.h"

struct tickets {
    struct firn_store *store; /* borrowed */
    void (*random)(void *user, void *out, size_t len);
    void *random_user;
    struct seq_table *table;
    bool own;       /* the table is freed with it */
    uint64_t now_s; /* Unix time, set by the caller before a commit with keys */
};

/* A table for `max` registers; free() it. NULL: no memory. */
struct seq_table *tickets_table_new(size_t max);

/* random NULL: the kernel's. tickets_init() makes a table of its own: FIRN_ENOMEM. */
void tickets_init_table(struct tickets *t, struct firn_store *store, struct seq_table *table,
                        void (*random)(void *user, void *out, size_t len), void *user);
FIRN_MUSTUSE int tickets_init(struct tickets *t, struct firn_store *store,
                              void (*random)(void *user, void *out, size_t len), void *user);
void tickets_done(struct tickets *t);

/* Up to TICKET_JOBS_MAX jobs, no name twice. Every job gets a result. Returns 0 when at least one
 * was granted, else the first error; with FIRN_EUNKNOWN call it again with the same wants, as
 * `waited`: numbers of a write that landed meanwhile are found by its nonce and handed out then, so
 * a full disk loses no number. */
int ticket_commit(struct tickets *t, struct ticket_job *job, size_t count, struct firn_diag *d);

/* Create the missing registers of the keys in the list of that sequence's record, if the list is
 * not older than `since_s`. 0 also if there is no such sequence. */
FIRN_MUSTUSE int ticket_flush(struct tickets *t, const char *name, size_t name_len,
                              uint64_t since_s, struct firn_diag *d);

/* At a clean end, when no thread gives numbers any more: what is in hand goes back, one
 * compare-and-swap per sequence, until a write fails or `until_ms` (CLOCK_MONOTONIC) has passed.
 * Returns how many numbers went back; the others become gaps, as after a crash. */
uint64_t ticket_give_back(struct tickets *t, uint64_t until_ms);

/* FIRN_ECONFLICT: it exists (then *out, if not NULL, is the existing one), or it was deleted and
 * cannot be created again like this (seq_deleted(out)). */
FIRN_MUSTUSE int ticket_create(struct tickets *t, const char *name, size_t name_len,
                               const struct seq_spec *spec, struct seq_record *out,
                               struct firn_diag *d);
/* The record stays, marked (seq_delete). FIRN_ENOENT: there is none, or it is deleted: then *out is
 * its record, else *out has step 0. FIRN_EUNKNOWN: done, or not. */
FIRN_MUSTUSE int ticket_delete(struct tickets *t, const char *name, size_t name_len,
                               struct seq_record *out, struct firn_diag *d);

/* FIRN_ENOENT. The record may be a deleted one's. */
FIRN_MUSTUSE int ticket_describe(struct tickets *t, const char *name, size_t name_len,
                                 struct seq_record *out, struct firn_diag *d);

/* Pass over the next n numbers, which will never be given, or over all that are left. For a store
 * that was restored: numbers given since the backup must not be given again. FIRN_ENOENT;
 * FIRN_EUNKNOWN: done, or not. */
FIRN_MUSTUSE int ticket_skip(struct tickets *t, const char *name, size_t name_len, uint64_t n,
                             struct seq_record *out, struct firn_diag *d);

/* All registers of sequences, the counters of dated ones' periods among them. */
typedef int ticket_each_fn(void *user, const char *name, size_t len, const struct seq_record *r);
FIRN_MUSTUSE int ticket_list(struct tickets *t, ticket_each_fn *each, void *user,
                             struct firn_diag *d);

/* How many sequences there are whose names begin with `prefix`; it stops counting at `max`. */
FIRN_MUSTUSE int ticket_count(struct tickets *t, const char *prefix, size_t len, uint64_t max,
                              uint64_t *out, struct firn_diag *d);

/* A page of the sequences that were created, by name: up to `max` of those behind the cursor `at`
 * ("" for the first page). Deleted ones and the counters of a dated sequence's periods are passed
 * over, all of them at once. The work is bounded whatever there is: TICKET_PAGE_LOOKS registers,
 * TICKET_PAGE_JUMPS scans. *out_more: `at` is the cursor for more; a page may be shorter than
 * `max`. */
enum { TICKET_PAGE_LOOKS = 4000, TICKET_PAGE_JUMPS = 64 };
FIRN_MUSTUSE int ticket_page(struct tickets *t, char at[TICKET_CURSOR_MAX + 1], size_t max,
                             ticket_each_fn *each, void *user, bool *out_more, struct firn_diag *d);

#endif
