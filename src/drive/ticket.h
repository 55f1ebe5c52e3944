/*
 * ticket.h - sequences in a store: blocking calls for the coordinator thread.
 * ticket_commit() is the group commit: everything that waits, on any number of sequences, in one
 * durable transaction. It keeps the last record of each sequence, so the usual commit reads nothing; a
 * key costs one read.
 */
#ifndef FIRN_DRIVE_TICKET_H
#define FIRN_DRIVE_TICKET_H

#include "drive/keyed.h"

#define TICKET_OPEN_MAX 256 /* sequences whose record is kept; the one unused longest makes room */

struct ticket_job { /* one sequence's part of a commit */
    const char *name;
    size_t name_len;
    uint64_t want;          /* in: how many numbers, for all that wait on it */
    uint64_t least;         /* in: fewer in one piece are of no use; 0 means 1 */
    uint64_t waited;        /* in: how many of them a call before this one could not get */
    bool once;              /* in: FIRN_ECONFLICT where another was faster: more may wait by now */
    int result;             /* out: 0, or why not: FIRN_ENOENT, FIRN_EOVERFLOW, FIRN_EIO, ... */
    struct seq_range range; /* out: at least `least`, at most `want`, in order */
    bool more;              /* out: there are numbers beyond these, ask again for the rest */

    /* Numbers for keys; `want` may be 0 then, and `result` is about what was wanted without a key. Each
     * gets a result of its own; one that found no room in this commit gets FIRN_EAGAIN. */
    struct keyed *const *keyed;
    size_t keyed_n;
};

struct ticket_entry;
struct tickets {
    struct firn_store *store; /* borrowed */
    void (*random)(void *user, void *out, size_t len);
    void *random_user;
    struct ticket_entry *entry; /* TICKET_OPEN_MAX */
    uint64_t clock;
    uint64_t now_s; /* Unix time, by the caller before a commit with keys */
};

/* random NULL: the kernel's. FIRN_ENOMEM. */
FIRN_MUSTUSE int tickets_init(struct tickets *t, struct firn_store *store,
                              void (*random)(void *user, void *out, size_t len), void *user);
void tickets_done(struct tickets *t);

/* Up to TICKET_JOBS_MAX jobs, no name twice. Every job gets a result. Returns 0 when at least one was
 * granted, else the first error; with FIRN_EUNKNOWN call it again with the same wants, as `waited`: what
 * landed meanwhile is found by its nonce and handed out then, so a full disk loses no number. */
#define TICKET_JOBS_MAX 64
int ticket_commit(struct tickets *t, struct ticket_job *job, size_t count, struct firn_diag *d);

/* See to it that the keys in the list of that sequence's record have their registers, if the list is not
 * older than `since_s`. 0 also if there is no such sequence. */
FIRN_MUSTUSE int ticket_flush(struct tickets *t, const char *name, size_t name_len,
                              uint64_t since_s, struct firn_diag *d);

/* Numbers of a grant that nobody took: the next commit of that sequence takes them first, unless
 * another process has taken higher ones by then. */
void ticket_return(struct tickets *t, const char *name, size_t name_len, struct seq_range rest);

/* FIRN_ECONFLICT: it exists (then *out, if not NULL, is what exists). */
FIRN_MUSTUSE int ticket_create(struct tickets *t, const char *name, size_t name_len,
                               const struct seq_spec *spec, struct seq_record *out,
                               struct firn_diag *d);
/* FIRN_ENOENT. */
FIRN_MUSTUSE int ticket_describe(struct tickets *t, const char *name, size_t name_len,
                                 struct seq_record *out, struct firn_diag *d);

/* Pass over the next n numbers, which will never be given, or over all that are left. For a store that was
 * restored: numbers given since then must not come again. FIRN_ENOENT; FIRN_EUNKNOWN: done, or not. */
FIRN_MUSTUSE int ticket_skip(struct tickets *t, const char *name, size_t name_len, uint64_t n,
                             struct seq_record *out, struct firn_diag *d);

typedef int ticket_each_fn(void *user, const char *name, size_t len, const struct seq_record *r);
FIRN_MUSTUSE int ticket_list(struct tickets *t, ticket_each_fn *each, void *user,
                             struct firn_diag *d);

#endif
