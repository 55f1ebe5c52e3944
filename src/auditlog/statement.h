/*
 * statement.h - the SQL of the audit log, and the parameters for it: writes as one array for each
 * column. Pure; a struct columns belongs to one thread.
 */
#ifndef FIRN_AUDITLOG_STATEMENT_H
#define FIRN_AUDITLOG_STATEMENT_H

#include "auditlog/job.h"
#include "auditlog/session.h"

struct columns { /* zeroed is empty; memory for parameters, used again */
    struct buf v[16];
};
void columns_init(struct columns *c);
void columns_done(struct columns *c);

/* Begins the transaction of a batch: the role that may only append, and no commit that is answered
 * before it is on disk. */
struct query statement_begin(void);
struct query statement_role(void);
struct query statement_commit(void);

/* The keys of the writes `w` (by base.next) that have one, in the order of the writes: inserted
 * where they are new, then looked up. Returns how many there are; with 0 there is no statement. */
size_t statement_keys(struct columns *c, const struct write_job *w, struct query out[2]);

/* The rows. Those of a write whose key belongs to another request are left out by the database. The
 * answer has the IDs of the rows that were inserted. `legacy`: into the table of legacy stamps.
 * `repeated`: IDs that are there are left alone; else they are an error. */
struct query statement_rows(struct columns *c, const struct write_job *w, uint64_t map_version,
                            bool legacy, bool repeated);

/* The IDs of the rows that are in the database exactly as they are here. */
struct query statement_present(struct columns *c, const struct write_job *w, bool legacy);

/* Rows as READ_ID .. READ_VERSION; of one ID, or of a user. `number` keeps the parameters. */
enum { READ_ID, READ_USER, READ_ACTOR, READ_ACTION, READ_AT, READ_DETAIL, READ_VERSION };
struct read_params {
    char v[6][8];
};
struct query statement_read(const struct read_job *r, struct read_params *p, bool legacy);

/* What a session must know before it is used: CHECK_SCHEMA .. CHECK_PLACE ("0/3") as text. $1 is the
 * number of days that there must be partitions for, and they are made. */
enum { CHECK_SCHEMA, CHECK_FSYNC, CHECK_STANDBY, CHECK_PLACE, CHECK_MADE };
struct query statement_check(const char days[4]);

#endif
