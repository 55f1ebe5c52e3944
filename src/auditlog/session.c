/*
 * libpq without blocking: poll() and a deadline, so that a server that is stopped costs one
 * time-out. The exception is names: libpq asks the system's resolver, which has limits of its own.
 * Tested in tests/integration/auditlog.py.
 */
#include "auditlog/session.h"
#include "platform/mono.h"
#include "platform/poll.h"

#include <stdio.h>
#include <stdlib.h>

struct session {
    PGconn *conn;
    bool broken; /* only good for session_close() */
    char name[200];
};

static void say(struct session_why *why, const char *state, const char *text)
{
    int len = (int)strcspn(text, "\n");
    snprintf(why->sqlstate, sizeof why->sqlstate, "%.5s", state);
    snprintf(why->text, sizeof why->text, "%.*s", len < 190 ? len : 190, text);
}

static void say_lost(const struct session *s, struct session_why *why)
{
    const char *text = PQerrorMessage(s->conn);
    say(why, "", *text ? text : "the connection ended");
}

/* libpq's notices would go to stderr. */
static void ignore_notice(void *user, const PGresult *res)
{
    (void)user;
    (void)res;
}

static int dial(struct session *s, int64_t until, struct session_why *why)
{
    for (PostgresPollingStatusType st = PGRES_POLLING_WRITING; st != PGRES_POLLING_OK;
         st = PQconnectPoll(s->conn)) {
        short got;
        if (st == PGRES_POLLING_FAILED) {
            say_lost(s, why);
            return FIRN_EIO;
        }
        if (!poll_until(PQsocket(s->conn), st == PGRES_POLLING_READING ? POLLIN : POLLOUT, until,
                        &got)) {
            say(why, "", "the server did not answer in time");
            return FIRN_EIO;
        }
    }
    if (PQsetnonblocking(s->conn, 1) != 0 || PQenterPipelineMode(s->conn) != 1) {
        say_lost(s, why);
        return FIRN_EIO;
    }
    return 0;
}

int session_open(const char *url, int64_t until_ms, struct session **out, struct session_why *why)
{
    const char *const name[] = { "dbname", "application_name", "client_encoding",
                                 "target_session_attrs", NULL };
    const char *const value[] = { url, "firn-auditlog", "UTF8", "read-write", NULL };
    struct session *s = calloc(1, sizeof *s);
    if (s)
        s->conn = PQconnectStartParams(name, value, 1);
    if (!s || !s->conn) {
        say(why, "", "out of memory");
        free(s);
        return FIRN_ENOMEM;
    }
    PQsetNoticeReceiver(s->conn, ignore_notice, NULL);
    int r = FIRN_EIO;
    if (PQstatus(s->conn) == CONNECTION_BAD)
        say_lost(s, why);
    else
        r = dial(s, until_ms, why);
    if (r) {
        session_close(s);
        return r;
    }
    snprintf(s->name, sizeof s->name, "%.100s:%.8s/%.64s", PQhost(s->conn), PQport(s->conn),
             PQdb(s->conn));
    *out = s;
    return 0;
}

void session_close(struct session *s)
{
    if (!s)
        return;
    PQfinish(s->conn);
    free(s);
}

const char *session_name(const struct session *s)
{
    return s->name;
}

bool session_broken(struct session *s)
{
    struct pollfd p = { .fd = PQsocket(s->conn), .events = POLLIN };
    return s->broken || PQstatus(s->conn) != CONNECTION_OK || poll(&p, 1, 0) != 0;
}

void session_clear(PGresult **results, int n)
{
    for (int i = 0; i < n; i++) {
        PQclear(results[i]);
        results[i] = NULL;
    }
}

/* False: lost. */
static bool next_result(struct session *s, int64_t until, PGresult **out, struct session_why *why)
{
    for (;;) {
        int more = PQflush(s->conn);
        if (more < 0)
            break;
        if (!PQisBusy(s->conn)) {
            *out = PQgetResult(s->conn);
            return true;
        }
        short got;
        if (!poll_until(PQsocket(s->conn), (short)(POLLIN | (more ? POLLOUT : 0)), until, &got)) {
            say(why, "", "the server did not answer in time");
            return false;
        }
        if (got & ~POLLOUT && !PQconsumeInput(s->conn))
            break;
    }
    say_lost(s, why);
    return false;
}

static bool send_all(struct session *s, const struct query *q, int n)
{
    static const int binary[QUERY_PARAMS_MAX] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    for (int i = 0; i < n; i++)
        if (!PQsendQueryParams(s->conn, q[i].sql, q[i].n, q[i].type, q[i].value, q[i].len, binary,
                               1))
            return false;
    return PQpipelineSync(s->conn) == 1;
}

/* Reads until the mark that ends the pipeline. */
static enum session_end collect(struct session *s, int n, PGresult **results, int64_t until,
                                struct session_why *why)
{
    bool refused = false;
    for (int got = 0;;) {
        PGresult *one = NULL;
        if (!next_result(s, until, &one, why))
            return SESSION_LOST;
        if (!one && PQstatus(s->conn) == CONNECTION_BAD) {
            say_lost(s, why);
            return SESSION_LOST;
        }
        if (!one)
            continue; /* between two statements */
        const ExecStatusType is = PQresultStatus(one);
        if (is == PGRES_PIPELINE_SYNC) {
            PQclear(one);
            return refused ? SESSION_REFUSED : SESSION_OK;
        }
        if ((is == PGRES_TUPLES_OK || is == PGRES_COMMAND_OK) && got < n) {
            results[got++] = one;
            continue;
        }
        if (is == PGRES_FATAL_ERROR && !refused) {
            const char *state = PQresultErrorField(one, PG_DIAG_SQLSTATE);
            const char *text = PQresultErrorField(one, PG_DIAG_MESSAGE_PRIMARY);
            say(why, state ? state : "", text ? text : PQresultErrorMessage(one));
            refused = true;
        }
        PQclear(one);
    }
}

enum session_end session_run(struct session *s, const struct query *q, int n, PGresult **results,
                             int64_t until_ms, struct session_why *why)
{
    for (int i = 0; i < n; i++)
        results[i] = NULL;
    enum session_end end = SESSION_LOST;
    if (send_all(s, q, n))
        end = collect(s, n, results, until_ms, why);
    else
        say_lost(s, why);
    if (end != SESSION_OK)
        session_clear(results, n);
    s->broken |= end == SESSION_LOST;
    if (end == SESSION_REFUSED && PQtransactionStatus(s->conn) != PQTRANS_IDLE) {
        static const struct query rollback = { .sql = "ROLLBACK" };
        PGresult *none = NULL;
        struct session_why other;
        if (send_all(s, &rollback, 1) && collect(s, 1, &none, until_ms, &other) == SESSION_OK)
            PQclear(none);
        else
            s->broken = true; /* nothing was committed all the same */
    }
    return end;
}
