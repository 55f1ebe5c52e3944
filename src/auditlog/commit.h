/*
 * commit.h - one batch of writes as one transaction, and what became of each of its requests. The
 * same batch with the same IDs may be given again after a commit of unknown outcome: what is there
 * already is left alone. The thread of the session.
 */
#ifndef FIRN_AUDITLOG_COMMIT_H
#define FIRN_AUDITLOG_COMMIT_H

#include "auditlog/job.h"
#include "auditlog/session.h"
#include "auditlog/statement.h"

enum commit_end {
    COMMIT_DONE,         /* the outcome of each job is set */
    COMMIT_AGAIN,        /* nothing was written; another try may succeed at once */
    COMMIT_NO_PARTITION, /* the same; a partition is missing */
    COMMIT_DIVIDE,       /* the same; a value in one of the rows is not accepted */
    COMMIT_DUPLICATE,    /* the same; another row has the ID of one of these */
    COMMIT_AWAY,         /* the same; the database takes nothing */
    COMMIT_UNKNOWN,      /* the connection ended: it may have been written */
};

struct commit_opts {
    uint64_t map_version;
    bool legacy;
    bool repeated; /* the outcome of an earlier try is unknown */
    int64_t until_ms;
};

/* `batch`: at least one job, by base.next. */
enum commit_end commit_batch(struct session *s, struct columns *c, struct write_job *batch,
                             const struct commit_opts *o, struct session_why *why);

/* What a refusal by PostgreSQL means for the batch. Pure. */
enum commit_end commit_end_of(const char *sqlstate);

#endif
