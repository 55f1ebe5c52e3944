/*
 * batch.h - the group commit of sequences: one durable transaction for all that waits on them.
 * Pure: batch_next() says what to do, the driver (drive/ticket.c) does it on a store and tells the
 * outcome with the matching function.
 *
 * A commit goes in rounds: read the records that are not known, build a write for each sequence,
 * send all of them in one transaction, look at the answers. Usually that is one round without a
 * read, because the table keeps the last record of each sequence; a client's key costs one read. A
 * write whose outcome is unknown stays in its entry, so that a later commit finds it by its nonce.
 */
#ifndef FIRN_COORD_BATCH_H
#define FIRN_COORD_BATCH_H

#include "coord/keyed.h"
#include "coord/seq_table.h"

#define TICKET_JOBS_MAX 64 /* sequences in one commit, and registers in one transaction */

struct ticket_job { /* one sequence's share of a commit */
    const char *name;
    size_t name_len;
    uint64_t want;          /* in: how many numbers, for all that wait on it */
    uint64_t least;         /* in: fewer in one piece are of no use; 0 means 1 */
    uint64_t waited;        /* in: how many of them a call before this one could not get */
    bool once;              /* in: FIRN_ECONFLICT where another was faster: more may wait by now */
    int result;             /* out: 0, or why not: FIRN_ENOENT, FIRN_EOVERFLOW, FIRN_EIO, ... */
    struct seq_range range; /* out: at least `least`, at most `want`, in order */
    bool more;              /* out: there are numbers beyond these, ask again for the rest */

    /* Numbers for keys; `want` may be 0 then, and `result` is about the numbers without a key. Each
     * gets a result of its own; one that found no room in this commit gets FIRN_EAGAIN. */
    struct keyed *const *keyed;
    size_t keyed_n;
};

/* The entry of a register, opened if need be; where other threads use the table, the driver opens
 * it before the commit. NULL: all are pinned. */
struct seq_entry *batch_entry(struct seq_table *t, const char *name, size_t len);

/* Read the record anew, and give no number that is in hand: it was deleted. */
void batch_forget(struct seq_table *t, const char *name, size_t len);

enum batch_do {
    BATCH_READ,      /* the register `key`, fresh: a sequence's record -> batch_read_done */
    BATCH_READ_KEY,  /* the register of *client_key, fresh -> batch_key_done */
    BATCH_KEEP_LIST, /* create the registers of *list of *record, of `period` -> batch_list_done */
    BATCH_DRAW,      /* a new nonce into `fresh` */
    BATCH_WRITE, /* cas: n + extra of them -> batch_answered for each of the first n, in order */
    BATCH_DONE,  /* *out_result of batch_next */
};

struct batch {
    /* For the driver, as batch_next() says. */
    char key[RECORD_KEY_BUF];
    size_t key_len;
    const struct nonce *client_key;
    const struct seq_record *record;
    const struct seq_keys *list;
    uint64_t period;
    struct nonce fresh;
    size_t n;     /* sequences in the write */
    size_t extra; /* registers for the lists that the write replaces; they need no answer */
    struct firn_cas cas[TICKET_JOBS_MAX];

    /* Private from here on. */
    struct seq_table *table_;
    bool many_;
    uint64_t now_s_;
    struct ticket_job *job_;
    size_t count_;
    enum {
        BATCH_AT_JOB,
        BATCH_AT_RECORD,
        BATCH_AT_KEYS,
        BATCH_AT_LIST,
        BATCH_AT_BUILD,
        BATCH_AT_ANSWER,
        BATCH_AT_END
    } at_;
    int rounds_;
    bool open_[TICKET_JOBS_MAX]; /* jobs that this round, or the next one, has to serve */
    size_t others_;              /* jobs that may still join this round */
    size_t i_, k_;               /* the job in hand; the next of its keys */
    struct seq_entry *e_;        /* and its entry */
    uint64_t want_;              /* numbers without a key that it takes */
    size_t asks_;                /* keys that it takes numbers for */
    struct seq_ask *ask_[SEQ_KEYS_MAX];
    int kept_;                                 /* the outcome of BATCH_KEEP_LIST */
    size_t answered_;                          /* of the writes */
    struct seq_entry *entry_[TICKET_JOBS_MAX]; /* of the writes */
    struct ticket_job *writer_[TICKET_JOBS_MAX];
    char name_[TICKET_JOBS_MAX][RECORD_KEY_BUF];
    struct firn_cas extra_[TICKET_JOBS_MAX];
    struct keyed_text text_[TICKET_JOBS_MAX];
};

/* Up to TICKET_JOBS_MAX jobs, no name twice; they and the table are borrowed to the end. `many`:
 * the store has transactions over several registers. `now_s`: Unix time, for keys. */
void batch_init(struct batch *b, struct seq_table *t, struct ticket_job *job, size_t count,
                bool many, uint64_t now_s);

/* What to do now. BATCH_DONE: every job has its result; *out_result is 0 when at least one was
 * granted, else the first error. */
enum batch_do batch_next(struct batch *b, int *out_result, struct firn_diag *d);

/* The outcome of each; `result` is the store's answer. */
void batch_read_done(struct batch *b, int result, const char *p, size_t len, struct firn_diag *d);
void batch_key_done(struct batch *b, int result, const struct idem_record *kept,
                    struct firn_diag *d);
void batch_list_done(struct batch *b, int result);

/* True: another process's record is there. Where the store can tell it without a read, call
 * batch_instead() before the next answer. */
FIRN_MUSTUSE bool batch_answered(struct batch *b, int result, struct firn_diag *d);
void batch_instead(struct batch *b, const char *p, size_t len, struct firn_diag *d);

#endif
