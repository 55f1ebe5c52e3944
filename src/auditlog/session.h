/*
 * session.h - a connection to PostgreSQL in pipeline mode: statements are sent together and
 * answered in one round trip, with a deadline for the whole. No named statements and no session
 * settings, so that a pooler in transaction mode may stand in between. One thread.
 */
#ifndef FIRN_AUDITLOG_SESSION_H
#define FIRN_AUDITLOG_SESSION_H

#include "auditlog/pg_array.h"
#include "firn/error.h"

#include <libpq-fe.h>

enum { QUERY_PARAMS_MAX = 12, QUERIES_MAX = 32 };

struct query { /* parameters and answers are in binary form */
    const char *sql;
    int n; /* parameters */
    Oid type[QUERY_PARAMS_MAX];
    const char *value[QUERY_PARAMS_MAX];
    int len[QUERY_PARAMS_MAX];
};

enum session_end {
    SESSION_OK,      /* every statement has its result */
    SESSION_REFUSED, /* a statement failed: the server did nothing of this pipeline that a
                      * transaction of it would have to commit */
    SESSION_LOST,    /* the connection is gone: nobody knows what the server did */
};

struct session_why {
    char sqlstate[6], text[200];
};

struct session;

/* Connects; the deadline is of mono_now_ms(). FIRN_EIO: `why` says why. */
FIRN_MUSTUSE int session_open(const char *url, int64_t until_ms, struct session **out,
                              struct session_why *why);
void session_close(struct session *s);

/* Whether the server closed the connection while it was not used. */
bool session_broken(struct session *s);

/* Runs the statements. SESSION_OK: results[0..n) are the caller's, session_clear() frees them.
 * Otherwise there are none; after SESSION_REFUSED a transaction that was open is rolled back, after
 * SESSION_LOST the session can only be closed. */
enum session_end session_run(struct session *s, const struct query *q, int n, PGresult **results,
                             int64_t until_ms, struct session_why *why);
void session_clear(PGresult **results, int n);

/* "host:port/database", without user and password. */
const char *session_name(const struct session *s);

#endif
