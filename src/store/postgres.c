/*
 * The registers in a table of PostgreSQL 10 or later: firn(key, value), one row per register.
 *
 * A write is one explicit transaction in two steps. The first sends BEGIN, a look at the server and
 * the statement that compares and writes; the second sends COMMIT, and only when the first went
 * well. So a failure before COMMIT is FIRN_EIO: a transaction whose COMMIT was never sent cannot
 * happen. From COMMIT on it is FIRN_EUNKNOWN, and so is any notice with it: a cancelled wait for a
 * synchronous standby commits here, not there, and only warns. Nothing of ours cancels a COMMIT:
 * there is no PQcancel, and statement_timeout is 0 inside.
 *
 * READ COMMITTED is enough. UPDATE and DELETE that meet a row another transaction holds wait for
 * its end and compare again with what it left; INSERT .. ON CONFLICT DO NOTHING waits for an insert
 * of the same key. So of two writes that replace the same value one changes no row, whatever the
 * order. Several registers are locked in the order of their keys first, then the absent ones made
 * in that order, so two groups do not lock each other out; what still could is ended by
 * lock_timeout, with nothing written.
 *
 * The look at the server, in the same transaction: no standby, fsync=on, and the same
 * system_identifier, timeline, database and table as when the store was opened. The timeline comes
 * from the name of the current WAL file: pg_control_checkpoint() still shows the old one for a
 * while after a promotion. It cannot change under a transaction that writes. A data directory that
 * was restored from a copy has the same ones, but its log position is behind one that was confirmed
 * to us: that is FIRN_ESTORE too.
 *
 * libpq is used without blocking, with poll() and a deadline, so a stopped server costs one
 * time-out. The exception is names: libpq asks the system's resolver, which has limits of its own;
 * addresses avoid that. After every failure the connection is dropped; the next call opens one, at
 * the host that served last or the next that is read-write. Hosts are tried one by one, because
 * libpq would stay for ever with one that accepts and says nothing.
 *
 * What no client can see: an old primary that goes on accepting writes beside a promoted standby.
 * Let it be ended before a promotion, or give it a synchronous standby, without which its COMMITs
 * wait.
 *
 * Tested by tests/store/postgres.py.
 */
#include "store/check.h"
#include "store/engines.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"
#include "platform/poll.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PAGE_ROWS = 500, /* of a scan: half a megabyte at most */
    TABLE_BUF = 140, /* two names of 63 bytes, quoted, and a dot */
    SQL_BUF = 1536,
    PARAMS_MAX = 3,
    STATEMENTS_MAX = 4,
    SERVER_VERSION_MIN = 100000,
    OID_BYTEA = 17, /* of pg_type; these never change */
    OID_TEXT = 25,
};

struct postgres {
    struct firn_store base;
    PGconn *conn; /* NULL: open one before the next call */
    size_t host;  /* that served last */
    uint32_t timeout_ms;
    bool changed;               /* FIRN_ESTORE was noticed; until identity() */
    char notice[96];            /* the last one; empty: none */
    char id[STORE_ID_TEXT_BUF]; /* of the store that writes are for */
    uint64_t lsn;               /* a log position that a confirmed commit has passed; 0: none yet */
    char table[TABLE_BUF];      /* quoted */
    struct store_url url;
};

struct statement {
    const char *sql;
    int n; /* parameters */
    const char *value[PARAMS_MAX];
    int len[PARAMS_MAX];
};

/* ---- the connection ---- */

static int64_t deadline(const struct postgres *s)
{
    return mono_now_ms() + s->timeout_ms;
}

static void drop(struct postgres *s)
{
    PQfinish(s->conn);
    s->conn = NULL;
}

static void on_notice(void *user, const PGresult *res)
{
    struct postgres *s = user;
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    snprintf(s->notice, sizeof s->notice, "%.90s", text ? text : "a notice");
}

/* The first line of what libpq says about the connection. */
static int explain(struct postgres *s, int error, const char *doing, struct firn_diag *d)
{
    const char *text = s->conn ? PQerrorMessage(s->conn) : "out of memory";
    text = *text ? text : "the connection ended";
    int len = (int)strcspn(text, "\n");
    firn__diag(d, error, 0, "cannot %s PostgreSQL: %.*s", doing, len < 150 ? len : 150, text);
    drop(s);
    return error;
}

static int silent(struct postgres *s, struct firn_diag *d)
{
    drop(s);
    return firn__diag(d, FIRN_EIO, 0, "PostgreSQL at %.60s:%u did not answer in time",
                      s->url.host[s->host].name, s->url.host[s->host].port);
}

static int dial(struct postgres *s, size_t host, int64_t until, struct firn_diag *d)
{
    const struct store_url *u = &s->url;
    char port[8];
    snprintf(port, sizeof port, "%u", u->host[host].port);
    const char *name[16] = {
        "host", "port", "dbname", "application_name", "client_encoding", "target_session_attrs"
    };
    const char *value[16] = { u->host[host].name, port, u->path, "firn", "UTF8", "read-write" };
    static const char *const passed[] = { "sslmode", "sslrootcert", "sslcert", "sslkey" };
    size_t n = 6;
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        if (store_url_param(u, passed[i])) {
            name[n] = passed[i];
            value[n++] = store_url_param(u, passed[i]);
        }
    if (u->user[0]) {
        name[n] = "user";
        value[n++] = u->user;
    }
    if (u->password[0]) {
        name[n] = "password";
        value[n++] = u->password;
    }
    s->host = host;
    s->conn = PQconnectStartParams(name, value, 0);
    if (!s->conn || PQstatus(s->conn) == CONNECTION_BAD)
        return explain(s, FIRN_EIO, "reach", d);
    PQsetNoticeReceiver(s->conn, on_notice, s);
    for (PostgresPollingStatusType st = PGRES_POLLING_WRITING; st != PGRES_POLLING_OK;
         st = PQconnectPoll(s->conn)) {
        short got;
        if (st == PGRES_POLLING_FAILED)
            return explain(s, FIRN_EIO, "reach", d);
        if (!poll_until(PQsocket(s->conn), st == PGRES_POLLING_READING ? POLLIN : POLLOUT, until,
                        &got))
            return silent(s, d);
    }
    if (PQsetnonblocking(s->conn, 1) != 0 || PQenterPipelineMode(s->conn) != 1)
        return explain(s, FIRN_EIO, "use", d);
    return 0;
}

/* A connection with unexpected input is being closed by the server: take a new one. */
static int connected(struct postgres *s, int64_t until, struct firn_diag *d)
{
    if (s->conn) {
        struct pollfd p = { .fd = PQsocket(s->conn), .events = POLLIN };
        if (PQstatus(s->conn) == CONNECTION_OK && poll(&p, 1, 0) == 0)
            return 0;
        drop(s);
    }
    int r = FIRN_EIO;
    size_t first = s->host, n = s->url.host_n;
    for (size_t i = 0; i < n; i++) { /* each host has its share of the time that is left */
        int64_t now = mono_now_ms();
        r = dial(s, (first + i) % n, now + (until - now) / (int64_t)(n - i), d);
        if (r == 0)
            return 0;
    }
    s->host = (first + 1) % n;
    return r;
}

static int next_result(struct postgres *s, int64_t until, PGresult **out, struct firn_diag *d)
{
    for (;;) {
        int more = PQflush(s->conn);
        if (more < 0)
            return explain(s, FIRN_EIO, "write to", d);
        if (!PQisBusy(s->conn)) {
            *out = PQgetResult(s->conn);
            return 0;
        }
        short got;
        if (!poll_until(PQsocket(s->conn), (short)(POLLIN | (more ? POLLOUT : 0)), until, &got))
            return silent(s, d);
        if (got & ~POLLOUT && !PQconsumeInput(s->conn))
            return explain(s, FIRN_EIO, "read from", d);
    }
}

/* What the server says is wrong; 22 is bad data (a key that is no text), 42P01 a table that is
 * gone. */
static int refused(struct postgres *s, const PGresult *res, struct firn_diag *d)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    state = state ? state : "";
    int error = strncmp(state, "22", 2) == 0  ? FIRN_EINVAL
                : strcmp(state, "42P01") == 0 ? FIRN_ESTORE
                                              : FIRN_EIO;
    firn__diag(d, error, 0, "PostgreSQL refuses: %.130s (SQLSTATE %.5s)",
               text ? text : "the connection ended", state);
    drop(s);
    return error;
}

static void clear(PGresult **res, int n)
{
    for (int i = 0; i < n; i++) {
        PQclear(res[i]);
        res[i] = NULL;
    }
}

/* Send the statements together and collect a result of each. All answers are in binary form, and
 * their numbers are made text by the SQL. On error there are no results and no connection. */
static int run(struct postgres *s, const struct statement *st, int n, PGresult **res, int64_t until,
               struct firn_diag *d)
{
    static const int binary[PARAMS_MAX] = { 1, 1, 1 };
    for (int i = 0; i < n; i++)
        res[i] = NULL;
    for (int i = 0; i < n; i++)
        if (!PQsendQueryParams(s->conn, st[i].sql, st[i].n, NULL, st[i].value, st[i].len, binary,
                               1))
            return explain(s, FIRN_EIO, "ask", d);
    if (!PQpipelineSync(s->conn))
        return explain(s, FIRN_EIO, "ask", d);
    for (int got = 0;;) {
        PGresult *one = NULL;
        int r = next_result(s, until, &one, d);
        if (r == 0 && one) {
            ExecStatusType is = PQresultStatus(one);
            if (is == PGRES_PIPELINE_SYNC && got == n) {
                PQclear(one);
                return 0;
            }
            if ((is == PGRES_TUPLES_OK || is == PGRES_COMMAND_OK) && got < n) {
                res[got++] = one;
                continue;
            }
            r = refused(s, one, d);
            PQclear(one);
        } else if (r == 0 && PQstatus(s->conn) == CONNECTION_BAD) {
            r = explain(s, FIRN_EIO, "read from", d);
        }
        if (r != 0) {
            clear(res, n);
            return r;
        }
    }
}

/* ---- the look at the server ---- */

enum look { RECOVERY, FSYNC, SYSTEM, TIMELINE, DATABASE, TABLE, PERSISTENCE, LSN };

/* $1 the table, $2 how long to wait for a lock, ms. The settings are those of this transaction. One
 * whose client was stopped in between must not keep its row locks: hence the idle limit. */
static const char look_sql[] =
    "SELECT r::text, current_setting('fsync'),"
    " (SELECT system_identifier::text FROM pg_control_system()),"
    " CASE WHEN r THEN '' ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END,"
    " (SELECT oid::text FROM pg_database WHERE datname = current_database()),"
    " coalesce(c.oid::text, ''), coalesce(c.relpersistence::text, ''),"
    " CASE WHEN r THEN '0' ELSE (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text END,"
    " set_config('synchronous_commit', 'on', true), set_config('statement_timeout', '0', true),"
    " set_config('lock_timeout', $2::text, true),"
    " set_config('idle_in_transaction_session_timeout', '10s', true)"
    " FROM (SELECT pg_is_in_recovery() AS r) AS now"
    " LEFT JOIN pg_class c ON c.oid = to_regclass($1::text)";

static struct statement look_statement(const struct postgres *s, int64_t until, char lock_ms[16])
{
    int64_t left = until - mono_now_ms();
    int len = snprintf(lock_ms, 16, "%d", left < 1 ? 1 : left < INT32_MAX ? (int)left : INT32_MAX);
    return (struct statement){ look_sql, 2, { s->table, lock_ms }, { (int)strlen(s->table), len } };
}

/* FIRN_ENOTSUP: this server must not be used; `d` says why. FIRN_ENOENT, without a text: no
 * table. */
static int look(const PGresult *res, char id[STORE_ID_TEXT_BUF], uint64_t *lsn, struct firn_diag *d)
{
    const char *v[LSN + 1];
    if (PQntuples(res) != 1 || PQnfields(res) <= LSN)
        return firn__diag(d, FIRN_ENOTSUP, 0, "this server does not answer as PostgreSQL does");
    for (int i = 0; i <= LSN; i++)
        v[i] = PQgetvalue(res, 0, i);
    if (strcmp(v[RECOVERY], "false") != 0)
        return firn__diag(d, FIRN_ENOTSUP, 0, "this PostgreSQL is a standby: name the primary too");
    if (strcmp(v[FSYNC], "on") != 0)
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "PostgreSQL runs with fsync=off and may forget what it confirmed: set "
                          "fsync = on in postgresql.conf and reload it");
    if (v[TABLE][0] == '\0')
        return FIRN_ENOENT;
    if (v[PERSISTENCE][0] != 'p')
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "the table is not durable: ALTER TABLE ... SET LOGGED");
    snprintf(id, STORE_ID_TEXT_BUF, "postgres:%.20s:%.8s:%.10s.%.10s", v[SYSTEM], v[TIMELINE],
             v[DATABASE], v[TABLE]);
    *lsn = strtoull(v[LSN], NULL, 10);
    return 0;
}

static int gone(struct firn_diag *d)
{
    return firn__diag(d, FIRN_ESTORE, 0, "the table of the registers is gone from PostgreSQL");
}

/* The look of a write. */
static int same_store(struct postgres *s, const PGresult *res, uint64_t *lsn, struct firn_diag *d)
{
    char id[STORE_ID_TEXT_BUF];
    int r = look(res, id, lsn, d);
    if (r == FIRN_ENOTSUP)
        return FIRN_EIO;
    if (r == 0 && strcmp(id, s->id) == 0 && *lsn >= s->lsn)
        return 0;
    s->changed = true;
    if (r == FIRN_ENOENT)
        return gone(d);
    if (strcmp(id, s->id) == 0)
        return firn__diag(d, FIRN_ESTORE, 0, "PostgreSQL was restored to an older state");
    return firn__diag(d, FIRN_ESTORE, 0, "another PostgreSQL answers: %s is now %s", s->id, id);
}

static int look_now(struct postgres *s, int64_t until, char id[STORE_ID_TEXT_BUF],
                    struct firn_diag *d)
{
    char lock_ms[16];
    struct statement st = look_statement(s, until, lock_ms);
    PGresult *res;
    uint64_t lsn;
    int r = run(s, &st, 1, &res, until, d);
    if (r == 0) {
        r = look(res, id, &lsn, d);
        PQclear(res);
    }
    return r;
}

/* ---- registers ---- */

static int pg_read(struct firn_store *base, struct firn_slice key, bool fresh,
                   struct firn_record *out, struct firn_diag *d)
{
    (void)fresh; /* the primary answers, so it always is */
    struct postgres *s = (struct postgres *)base;
    int64_t until = deadline(s);
    char sql[SQL_BUF];
    int r = store_check_key(key, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    snprintf(sql, sizeof sql,
             "SELECT value, (extract(epoch FROM clock_timestamp()) * 1000)::bigint::text"
             " FROM %s WHERE key = $1::text",
             s->table);
    struct statement st = { sql, 1, { key.p }, { (int)key.len } };
    PGresult *res;
    r = connected(s, until, d);
    if (r == 0)
        r = run(s, &st, 1, &res, until, d);
    if (r != 0)
        return r;
    if (PQntuples(res) == 0) {
        r = FIRN_ENOENT;
    } else if (PQgetlength(res, 0, 0) > STORE_VALUE_MAX) {
        r = firn__diag(d, FIRN_EIO, 0, "%.*s holds %d bytes, which firn did not write",
                       (int)key.len, key.p, PQgetlength(res, 0, 0));
    } else {
        out->len = (size_t)PQgetlength(res, 0, 0);
        memcpy(out->value, PQgetvalue(res, 0, 0), out->len);
        out->store_ms = strtoull(PQgetvalue(res, 0, 1), NULL, 10);
    }
    PQclear(res);
    return r;
}

/* A binary array of one dimension: its header, then length and bytes of each; length -1 is NULL. */
static char *put32(char *p, uint32_t v)
{
    v = htonl(v);
    memcpy(p, &v, sizeof v);
    return p + sizeof v;
}

static struct firn_slice member(const struct firn_cas *want, int which)
{
    return which == 0 ? want->key : which == 1 ? want->old : want->value;
}

static int array(const struct firn_cas *want, size_t count, int which, char **out, int *out_len)
{
    size_t size = 20;
    for (size_t i = 0; i < count; i++)
        size += 4 + member(&want[i], which).len;
    char *p = *out = malloc(size);
    if (!p || size > INT32_MAX)
        return FIRN_ENOMEM;
    p = put32(put32(put32(p, 1), 1), which == 0 ? OID_TEXT : OID_BYTEA);
    p = put32(put32(p, (uint32_t)count), 1);
    for (size_t i = 0; i < count; i++) {
        struct firn_slice v = member(&want[i], which);
        p = put32(p, v.p ? (uint32_t)v.len : UINT32_MAX);
        if (v.p && v.len) {
            memcpy(p, v.p, v.len);
            p += v.len;
        }
    }
    firn_assert((size_t)(p - *out) == size, "used=%td size=%zu", p - *out, size);
    *out_len = (int)(p - *out);
    return 0;
}

/* Answers the numbers, from 1, of the entries that changed something. */
static const char cas_sql[] =
    "WITH w AS (SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[])"
    "  WITH ORDINALITY AS u(key, old, value, i)),"
    " made AS (INSERT INTO %1$s(key, value) SELECT key, value FROM w"
    "  WHERE old IS NULL AND value IS NOT NULL ORDER BY key COLLATE \"C\""
    "  ON CONFLICT (key) DO NOTHING RETURNING key),"
    " changed AS (UPDATE %1$s t SET value = w.value FROM w"
    "  WHERE t.key = w.key AND t.value = w.old AND w.value IS NOT NULL RETURNING t.key),"
    " removed AS (DELETE FROM %1$s t USING w"
    "  WHERE t.key = w.key AND t.value = w.old AND w.value IS NULL RETURNING t.key)"
    " SELECT i::text FROM w WHERE key IN"
    "  (SELECT key FROM made UNION ALL SELECT key FROM changed UNION ALL SELECT key FROM removed)";

/* One lock a register, in one order for all. The registers that are absent have nothing to lock. */
static const char lock_sql[] = "SELECT FROM %s WHERE key = ANY($1::text[]) ORDER BY key FOR UPDATE";

/* BEGIN to the write; 0 leaves the transaction open, with what changed in *out. */
static int prepare(struct postgres *s, const struct firn_cas *want, size_t count, int64_t until,
                   uint64_t *lsn, PGresult **out, struct firn_diag *d)
{
    struct statement st[STATEMENTS_MAX] = { { .sql = "BEGIN ISOLATION LEVEL READ COMMITTED "
                                                     "READ WRITE" } };
    PGresult *res[STATEMENTS_MAX];
    char *packed[PARAMS_MAX] = { NULL }, cas[SQL_BUF], lock[SQL_BUF];
    char lock_ms[16];
    int len[PARAMS_MAX], r = 0, n = 2;
    for (int i = 0; i < PARAMS_MAX && r == 0; i++)
        r = array(want, count, i, &packed[i], &len[i]);
    if (r != 0) {
        firn__diag(d, r, 0, "out of memory");
        goto free_arrays;
    }
    st[1] = look_statement(s, until, lock_ms);
    snprintf(lock, sizeof lock, lock_sql, s->table);
    snprintf(cas, sizeof cas, cas_sql, s->table);
    if (count > 1)
        st[n++] = (struct statement){ lock, 1, { packed[0] }, { len[0] } };
    firn_assert(n < STATEMENTS_MAX, "n=%d", n);
    st[n++] = (struct statement){
        cas, 3, { packed[0], packed[1], packed[2] }, { len[0], len[1], len[2] }
    };
    r = run(s, st, n, res, until, d);
    if (r == FIRN_ESTORE)
        s->changed = true;
    if (r != 0)
        goto free_arrays;
    r = same_store(s, res[1], lsn, d);
    if (r == 0) {
        *out = res[n - 1];
        res[n - 1] = NULL;
    } else {
        drop(s); /* which rolls back */
    }
    clear(res, n);
free_arrays:
    for (int i = 0; i < PARAMS_MAX; i++)
        free(packed[i]);
    return r;
}

static int commit(struct postgres *s, int64_t until, struct firn_diag *d)
{
    struct statement st = { .sql = "COMMIT" };
    PGresult *res;
    s->notice[0] = '\0';
    if (run(s, &st, 1, &res, until, d) != 0)
        return FIRN_EUNKNOWN;
    int r = 0;
    if (s->notice[0] != '\0' || strcmp(PQcmdStatus(res), "COMMIT") != 0) {
        r = firn__diag(d, FIRN_EUNKNOWN, 0, "PostgreSQL answered COMMIT with: %s",
                       s->notice[0] ? s->notice : PQcmdStatus(res));
        drop(s);
    }
    PQclear(res);
    return r;
}

static void roll_back(struct postgres *s, int64_t until)
{
    struct statement st = { .sql = "ROLLBACK" };
    PGresult *res;
    if (run(s, &st, 1, &res, until, NULL) == 0) /* else the connection is gone, and it with it */
        PQclear(res);
}

static int pg_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                       int *result, struct firn_diag *d)
{
    struct postgres *s = (struct postgres *)base;
    int64_t until = deadline(s);
    int r = store_check_writes(want, count, SIZE_MAX, d);
    if (r != 0)
        return r;
    if (s->changed)
        return firn__diag(d, FIRN_ESTORE, 0, "PostgreSQL is not the one that was opened");
    PGresult *done;
    uint64_t lsn;
    r = connected(s, until, d);
    if (r == 0)
        r = prepare(s, want, count, until, &lsn, &done, d);
    if (r != 0)
        return r;
    int n = PQntuples(done);
    if (n == 0) {
        roll_back(s, until);
    } else {
        r = commit(s, until, d);
        if (r == 0)
            s->lsn = lsn;
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        result[i] = FIRN_ECONFLICT;
    for (int i = 0; r == 0 && i < n; i++) {
        unsigned long long at = strtoull(PQgetvalue(done, i, 0), NULL, 10);
        if (at >= 1 && at <= count)
            result[at - 1] = 0;
    }
    PQclear(done);
    return r;
}

static int pg_scan(struct firn_store *base, struct firn_slice prefix, struct firn_slice after,
                   firn_record_fn *each, void *user, struct firn_diag *d)
{
    struct postgres *s = (struct postgres *)base;
    int64_t until = deadline(s);
    char sql[SQL_BUF], from[STORE_KEY_MAX];
    struct firn_slice begin = after.p ? after : prefix;
    int r = store_check_key(begin, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    int from_len = (int)begin.len, rows = PAGE_ROWS;
    memcpy(from, begin.p ? begin.p : "", begin.len);
    r = connected(s, until, d);
    for (bool first = !after.p; r == 0 && rows == PAGE_ROWS; first = false) {
        PGresult *res;
        snprintf(sql, sizeof sql,
                 "SELECT key, value FROM %s WHERE key %s $1::text ORDER BY key LIMIT %d", s->table,
                 first ? ">=" : ">", PAGE_ROWS);
        struct statement st = { sql, 1, { from }, { from_len } };
        r = run(s, &st, 1, &res, until, d);
        if (r != 0)
            return r;
        rows = PQntuples(res);
        for (int i = 0; i < rows && r == 0; i++) {
            struct firn_slice key = { PQgetvalue(res, i, 0), (size_t)PQgetlength(res, i, 0) };
            if (key.len < prefix.len || memcmp(key.p, from, prefix.len) != 0) {
                rows = 0; /* beyond the prefix: the end */
            } else if (key.len > STORE_KEY_MAX) {
                r = firn__diag(d, FIRN_EIO, 0, "a key of %zu bytes, which firn did not write",
                               key.len);
            } else {
                r = each(user, key,
                         firn_slice(PQgetvalue(res, i, 1), (size_t)PQgetlength(res, i, 1)));
                from_len = (int)key.len;
                memcpy(from, key.p, key.len);
            }
        }
        PQclear(res);
    }
    return r;
}

/* Looks anew: the writes from now on are for what is found. */
static int pg_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct postgres *s = (struct postgres *)base;
    int64_t until = deadline(s);
    char id[STORE_ID_TEXT_BUF];
    int r = connected(s, until, d);
    if (r == 0)
        r = look_now(s, until, id, d);
    if (r != 0)
        return r == FIRN_ENOENT ? gone(d) : r;
    if (s->changed || strcmp(id, s->id) != 0)
        s->lsn = 0;
    s->changed = false;
    memcpy(s->id, id, sizeof s->id);
    memcpy(out, id, sizeof id);
    return 0;
}

static int pg_check(struct firn_store *base, struct firn_diag *d)
{
    struct postgres *s = (struct postgres *)base;
    int64_t until = deadline(s);
    char lock_ms[16];
    PGresult *res;
    uint64_t lsn;
    if (s->changed)
        return firn__diag(d, FIRN_ESTORE, 0, "PostgreSQL is not the one that was opened");
    int r = connected(s, until, d);
    struct statement st = look_statement(s, until, lock_ms);
    if (r == 0)
        r = run(s, &st, 1, &res, until, d);
    if (r != 0)
        return r;
    r = same_store(s, res, &lsn, d);
    PQclear(res);
    return r;
}

static void pg_close(struct firn_store *base)
{
    struct postgres *s = (struct postgres *)base;
    PQfinish(s->conn);
    free(s);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "postgres",
    .shared = true,
    .read = pg_read,
    .cas_many = pg_cas_many,
    .scan_after = pg_scan,
    .identity = pg_identity,
    .close = pg_close,
    .check = pg_check,
};

/* ---- opening ---- */

/* [schema.]table of plain names, quoted as written. */
static bool quote_table(const char *name, char out[TABLE_BUF])
{
    size_t n = 0, part = 0, dots = 0;
    out[n++] = '"';
    for (; *name; name++) {
        bool dot = *name == '.';
        if (dot ? part == 0 || ++dots > 1
                : (!isalnum((unsigned char)*name) && *name != '_') || ++part > 63)
            return false;
        if (dot) {
            memcpy(out + n, "\".\"", 3);
            n += 3;
            part = 0;
        } else {
            out[n++] = *name;
        }
    }
    memcpy(out + n, "\"", 2);
    return part > 0;
}

/* Two that open a new store at once may both try: the loser of CREATE looks again. IF NOT EXISTS
 * does not prevent that, and asks for the right to create even where the table is there. */
static int create_table(struct postgres *s, int64_t until, struct firn_diag *d)
{
    char sql[SQL_BUF];
    snprintf(sql, sizeof sql,
             "CREATE TABLE %s (key text COLLATE \"C\" PRIMARY KEY, value bytea NOT NULL)",
             s->table);
    struct statement st = { .sql = sql };
    PGresult *res;
    int r = run(s, &st, 1, &res, until, d);
    if (r == 0)
        PQclear(res);
    return r;
}

static int set_up(struct postgres *s, struct firn_diag *d)
{
    int64_t until = deadline(s);
    struct firn_diag why = { 0 };
    int r = connected(s, until, d);
    if (r != 0)
        return r;
    if (PQserverVersion(s->conn) < SERVER_VERSION_MIN)
        return firn__diag(d, FIRN_ENOTSUP, 0, "PostgreSQL %d is too old: firn needs 10 or later",
                          PQserverVersion(s->conn) / 10000);
    r = look_now(s, until, s->id, d);
    if (r != FIRN_ENOENT)
        return r;
    if (s->url.existing)
        return firn__diag(d, r, 0, STORE_NONE_TEXT, s->table);
    int made = create_table(s, until, &why);
    if (made != 0)
        r = connected(s, until, d);
    if (made == 0 || r == 0)
        r = look_now(s, until, s->id, d);
    return r == FIRN_ENOENT ? firn__diag(d, made ? made : r, 0, "%s", why.text) : r;
}

int firn_store_postgres_open(const struct store_url *u, uint32_t timeout_ms,
                             struct firn_store **out, struct firn_diag *d)
{
    struct postgres *s = calloc(1, sizeof *s);
    if (!s)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    const char *table = store_url_param(u, "table");
    s->base.ops = &ops;
    s->timeout_ms = timeout_ms;
    s->url = *u;
    int r;
    if (u->path[0] == '\0')
        r = firn__diag(d, FIRN_EFORMAT, 0,
                       "the store's URL lacks its database, as in postgres://host/database");
    else if (!quote_table(table ? table : "firn", s->table))
        r = firn__diag(d, FIRN_EFORMAT, 0,
                       "table=%.80s is not [schema.]name of letters, digits and '_'", table);
    else
        r = set_up(s, d);
    if (r != 0) {
        pg_close(&s->base);
        return r;
    }
    *out = &s->base;
    return 0;
}
