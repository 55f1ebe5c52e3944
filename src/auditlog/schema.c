/*
 * The tables, as numbered steps. A step that was released is never changed; what is new is a step
 * more. All databases are alike: none knows that there are others.
 *
 * The partitions are made by a function of the owner, firn_audit.ahead(), which the role that only
 * appends may call: the service makes the days ahead without the right to create anything else.
 * Tested in tests/integration/auditlog.py.
 */
#include "auditlog/schema.h"
#include "id/diag.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW_COLUMNS                                                             \
    " id bigint PRIMARY KEY,"                                                   \
    " tenant text COLLATE \"C\" NOT NULL, user_id text COLLATE \"C\" NOT NULL," \
    " actor text NOT NULL, action text NOT NULL, at timestamptz NOT NULL,"      \
    " detail jsonb NOT NULL, map_version bigint NOT NULL"

static const char *const steps[] = {
    /* 1: rows, keys, the role that appends, and the table for `id: legacy` */
    "CREATE TABLE firn_audit.log (" ROW_COLUMNS ") PARTITION BY RANGE (id);"
    "CREATE INDEX log_user ON firn_audit.log (tenant, user_id, id);"
    "CREATE TABLE firn_audit.legacy (" ROW_COLUMNS ");"
    "CREATE INDEX legacy_user ON firn_audit.legacy (tenant, user_id, id);"
    "CREATE TABLE firn_audit.key (tenant text COLLATE \"C\", key text COLLATE \"C\","
    " first bigint NOT NULL, ids bytea NOT NULL, digest bytea NOT NULL,"
    " at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (tenant, key));"
    "CREATE INDEX key_at ON firn_audit.key (at);"
    "CREATE FUNCTION firn_audit.ahead(days int) RETURNS int"
    " LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS $$"
    " DECLARE d date; name text; low bigint; made int := 0; BEGIN"
    "  FOR i IN -1 .. least(days, 366) LOOP"
    "   d := (now() AT TIME ZONE 'UTC')::date + i;"
    "   name := 'log_' || to_char(d, 'YYYYMMDD');"
    "   CONTINUE WHEN to_regclass('firn_audit.' || name) IS NOT NULL;"
    "   PERFORM pg_advisory_xact_lock(7378697629483820);"
    "   CONTINUE WHEN to_regclass('firn_audit.' || name) IS NOT NULL;"
    /* The bounds are those of the layout: 22 bits below the time, which counts from 2021. */
    "   low := ((d - date '1970-01-01')::bigint * 86400000 - 1609459200000) << 22;"
    "   EXECUTE format('CREATE TABLE firn_audit.%I (LIKE firn_audit.log INCLUDING ALL)', name);"
    "   EXECUTE format('ALTER TABLE firn_audit.log ATTACH PARTITION firn_audit.%I"
    " FOR VALUES FROM (%s) TO (%s)', name, low, low + (86400000::bigint << 22));"
    "   made := made + 1;"
    "  END LOOP; RETURN made; END $$;"
    "DO $$ BEGIN CREATE ROLE firn_audit_writer NOLOGIN;"
    " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$;"
    "DO $$ BEGIN IF NOT pg_has_role(current_user, 'firn_audit_writer', 'MEMBER') THEN"
    " EXECUTE format('GRANT firn_audit_writer TO %I', current_user); END IF; END $$;"
    "GRANT USAGE ON SCHEMA firn_audit TO firn_audit_writer;"
    "GRANT SELECT, INSERT ON firn_audit.log, firn_audit.legacy, firn_audit.key"
    " TO firn_audit_writer;"
    /* Which of how many databases this is: the deal of the shards depends on it. One row. */
    "CREATE TABLE firn_audit.place (database int NOT NULL, databases int NOT NULL);"
    "GRANT SELECT ON firn_audit.migration, firn_audit.place TO firn_audit_writer;"
    "REVOKE ALL ON FUNCTION firn_audit.ahead(int) FROM PUBLIC;"
    "GRANT EXECUTE ON FUNCTION firn_audit.ahead(int) TO firn_audit_writer",
};

long schema_version(void)
{
    return (long)(sizeof steps / sizeof steps[0]);
}

static void ignore_notice(void *user, const PGresult *res)
{
    (void)user;
    (void)res;
}

static int fail(PGconn *c, PGresult *res, struct firn_diag *d)
{
    const char *text = res ? PQresultErrorMessage(res) : PQerrorMessage(c);
    text = *text ? text : "the connection ended";
    firn__diag(d, FIRN_EIO, 0, "PostgreSQL: %.*s", (int)strcspn(text, "\n"), text);
    PQclear(res);
    return FIRN_EIO;
}

static int open_database(const char *url, PGconn **out, struct firn_diag *d)
{
    const char *const name[] = { "dbname", "application_name", "connect_timeout", NULL };
    const char *const value[] = { url, "firn-auditlog", "10", NULL };
    PGconn *c = PQconnectdbParams(name, value, 1);
    if (!c)
        return FIRN_ENOMEM;
    if (PQstatus(c) != CONNECTION_OK) {
        int r = fail(c, NULL, d);
        PQfinish(c);
        return r;
    }
    PQsetNoticeReceiver(c, ignore_notice, NULL);
    *out = c;
    return 0;
}

/* Statements without an answer, or the first value of the last one's. */
static int run(PGconn *c, const char *sql, long *out, struct firn_diag *d)
{
    PGresult *res = PQexec(c, sql);
    ExecStatusType is = PQresultStatus(res);
    if (is != PGRES_TUPLES_OK && is != PGRES_COMMAND_OK)
        return fail(c, res, d);
    if (out && PQntuples(res) > 0)
        *out = strtol(PQgetvalue(res, 0, 0), NULL, 10);
    else if (out)
        *out = strtol(PQcmdTuples(res), NULL, 10);
    PQclear(res);
    return 0;
}

/* The place of this database among all, written once. Inside the transaction of take_steps(). */
static int take_place(PGconn *c, const struct schema_place *p, struct firn_diag *d)
{
    char sql[300];
    long same = 0;
    snprintf(sql, sizeof sql,
             "INSERT INTO firn_audit.place SELECT %zu, %zu WHERE NOT EXISTS"
             " (SELECT 1 FROM firn_audit.place);"
             "SELECT count(*) FROM firn_audit.place WHERE database = %zu AND databases = %zu",
             p->database, p->databases, p->database, p->databases);
    int r = run(c, sql, &same, d);
    return r || same == 1
               ? r
               : firn__diag(d, FIRN_ECONFLICT, 0,
                            "it was set up with another place in `shards` (firn_audit.place says "
                            "which): its entries would not be found; give the databases as before");
}

static int take_steps(PGconn *c, const struct schema_place *place, uint32_t ahead_days, long *from,
                      struct firn_diag *d)
{
    char text[200];
    /* Others that do the same wait here, and then find it done. */
    int r = run(c,
                "BEGIN; SELECT pg_advisory_xact_lock(7378697629483821);"
                "CREATE SCHEMA IF NOT EXISTS firn_audit;"
                "CREATE TABLE IF NOT EXISTS firn_audit.migration"
                " (version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());"
                "SELECT coalesce(max(version), 0) FROM firn_audit.migration",
                from, d);
    if (r == 0 && *from > schema_version())
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "its tables are of version %ld, this program knows %ld: use the newer "
                          "program",
                          *from, schema_version());
    for (long i = *from; i < schema_version() && r == 0; i++) {
        snprintf(text, sizeof text, "INSERT INTO firn_audit.migration (version) VALUES (%ld)",
                 i + 1);
        r = run(c, steps[i], NULL, d);
        if (r == 0)
            r = run(c, text, NULL, d);
    }
    snprintf(text, sizeof text, "SELECT firn_audit.ahead(%u)", ahead_days);
    if (r == 0)
        r = take_place(c, place, d);
    if (r == 0)
        r = run(c, text, NULL, d);
    return r ? r : run(c, "COMMIT", NULL, d);
}

int schema_init(const char *url, const struct schema_place *place, uint32_t ahead_days,
                long *out_from, struct firn_diag *diag)
{
    PGconn *c;
    long from = 0;
    int r = open_database(url, &c, diag);
    if (r)
        return r;
    r = take_steps(c, place, ahead_days, &from, diag);
    PQfinish(c);
    if (r == 0)
        *out_from = from;
    return r;
}

static int detach_old(PGconn *c, uint32_t keep_days, uint32_t *n, struct firn_diag *d)
{
    char sql[600];
    snprintf(sql, sizeof sql,
             "SELECT c.oid::regclass::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
             " WHERE i.inhparent = 'firn_audit.log'::regclass AND c.relname ~ '^log_[0-9]{8}$'"
             " AND to_date(substr(c.relname, 5), 'YYYYMMDD')"
             " < (now() AT TIME ZONE 'UTC')::date - %u ORDER BY 1",
             keep_days);
    PGresult *res = PQexec(c, sql);
    if (PQresultStatus(res) != PGRES_TUPLES_OK)
        return fail(c, res, d);
    int r = 0;
    for (int i = 0; i < PQntuples(res) && r == 0; i++) {
        snprintf(sql, sizeof sql, "ALTER TABLE firn_audit.log DETACH PARTITION %.200s",
                 PQgetvalue(res, i, 0));
        r = run(c, sql, NULL, d);
        *n += r == 0;
    }
    PQclear(res);
    return r;
}

int schema_retain(const char *url, uint32_t ahead_days, uint32_t keep_days, uint64_t keep_s,
                  struct schema_retained *out, struct firn_diag *diag)
{
    PGconn *c;
    char sql[200];
    long keys = 0;
    *out = (struct schema_retained){ 0, 0 };
    int r = open_database(url, &c, diag);
    if (r)
        return r;
    snprintf(sql, sizeof sql, "SELECT firn_audit.ahead(%u)", ahead_days);
    r = run(c, sql, NULL, diag);
    if (r == 0 && keep_days > 0)
        r = detach_old(c, keep_days, &out->detached, diag);
    snprintf(sql, sizeof sql,
             "DELETE FROM firn_audit.key WHERE at < now() - interval '%llu seconds'",
             (unsigned long long)keep_s);
    if (r == 0)
        r = run(c, sql, &keys, diag);
    out->keys = (uint64_t)keys;
    PQfinish(c);
    return r;
}
