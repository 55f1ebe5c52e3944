/*
 * job.h - what a loop hands to the thread of a database and gets back: a request to write rows, or
 * to read some. A job belongs to the thread that has it; nothing in it is locked. The way of a
 * write: the loop parses it (http_write.c) and queues it (queue.h); the writer (writer.h) gives its
 * rows IDs, commits them with what else waits, and hands it back (outbox.h); the loop answers.
 */
#ifndef FIRN_AUDITLOG_JOB_H
#define FIRN_AUDITLOG_JOB_H

#include "firn/error.h"
#include "wire/buf.h"

enum outcome {
    OUTCOME_DONE,      /* committed, or read */
    OUTCOME_REPEATED,  /* the key's first request was committed: the answer is that one's */
    OUTCOME_REUSED,    /* the key stands for another request */
    OUTCOME_DUPLICATE, /* another row has the ID of one of these */
    OUTCOME_REFUSED,   /* PostgreSQL does not take the values */
    OUTCOME_AWAY,      /* the database does not answer; nothing was written */
    OUTCOME_UNKNOWN,   /* the answer to a commit is lost: the rows may be there or come yet */
    OUTCOME_NO_ID,     /* no generator makes IDs; nothing was written */
    OUTCOME_LATE,      /* it waited too long; nothing was written */
    OUTCOME_NO_MEMORY,
    OUTCOMES
};

struct outbox;
struct reply;
struct service_ctx;
struct span;

struct job {
    struct job *next;
    struct outbox *back;
    void (*done)(struct job *j); /* on the loop's thread; frees it */
    size_t rows, bytes;          /* what it counts in the queue */
    uint64_t began_ns, until_ns; /* of the monotonic clock */
    enum outcome outcome;
    char why[160]; /* for OUTCOME_REFUSED and OUTCOME_NO_ID */
};

struct row {
    uint64_t id; /* 0: none yet */
    struct slice actor, action, detail;
};

enum { DIGEST_BYTES = 32 };

struct write_job {
    struct job base;
    struct service_ctx *ctx;
    struct reply *reply; /* NULL: it has been answered */
    struct span *span;   /* tracing.h; or NULL */
    /* For its parts: when the writer took it, its rows had IDs, and the commit of so many rows
     * began; 0: it did not come to that. */
    uint64_t taken_ns, numbered_ns, sent_ns, batch_rows;
    uint32_t shard;
    bool list; /* the answer is a list of IDs */
    int64_t at_us;
    struct slice tenant, user, key; /* key.p NULL: none */
    uint8_t digest[DIGEST_BYTES];   /* of user and body, for the key */
    uint64_t *ids;                  /* of the answer, one for each row; for OUTCOME_REPEATED: */
    size_t ids_n;
    size_t rows_n;
    struct row *rows;
    char text[]; /* what the slices borrow */
};

struct read_job {
    struct job base;
    struct service_ctx *ctx;
    struct reply *reply;
    struct span *span; /* tracing.h; or NULL */
    uint64_t id;       /* of the row; 0: rows of a user */
    struct slice tenant, user;
    struct slice again;         /* parameters for the next page */
    int64_t since_us, until_us; /* `at` of the rows; the second is exclusive */
    uint64_t from, before;      /* their IDs, likewise */
    uint32_t limit;
    bool lines;     /* the answer is NDJSON */
    struct buf out; /* the rows as JSON, a line each */
    uint32_t found;
    uint64_t last; /* the smallest ID among them */
    bool more;     /* there are older ones */
    char text[];
};

#endif
