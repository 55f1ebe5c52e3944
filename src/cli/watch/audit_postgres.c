/* firn audit on PostgreSQL. */
#include "cli/watch/audit_db.h"

#include <stdio.h>

#ifdef FIRN_HAVE_POSTGRES
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_BUF = 24 };

/* "C": IDs are bytes, whatever the database's language. */
static const char setup[] =
    "SET client_min_messages = warning;"
    "CREATE TABLE IF NOT EXISTS firn_audit_ids(id text COLLATE \"C\" PRIMARY KEY, seen_ms bigint "
    "NOT NULL);"
    "CREATE TABLE IF NOT EXISTS firn_audit_duplicates(number bigserial PRIMARY KEY,"
    " source text NOT NULL, id text COLLATE \"C\" NOT NULL, line bigint NOT NULL, seen_ms bigint "
    "NOT NULL);"
    "CREATE TABLE IF NOT EXISTS firn_audit_sources(source text PRIMARY KEY, file bigint NOT NULL,"
    " place bigint NOT NULL, line bigint NOT NULL);"
    "CREATE TABLE IF NOT EXISTS firn_audit_totals(one int PRIMARY KEY CHECK(one = 1),"
    " ids bigint NOT NULL, duplicates bigint NOT NULL, malformed bigint NOT NULL);"
    "INSERT INTO firn_audit_totals VALUES(1, 0, 0, 0) ON CONFLICT DO NOTHING;";

struct postgres_db {
    struct audit_db base;
    PGconn *conn;
    char *ids, *lines; /* array literals: grown as needed */
    size_t ids_room, lines_room;
};

static int failed(struct postgres_db *d)
{
    const char *text = PQerrorMessage(d->conn);
    snprintf(d->base.why, sizeof d->base.why, "%.*s", (int)strcspn(text, "\n"), text);
    return FIRN_EIO;
}

static bool run(struct postgres_db *d, const char *text)
{
    PGresult *r = PQexec(d->conn, text);
    ExecStatusType s = PQresultStatus(r);
    PQclear(r);
    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK;
}

/* NULL: it failed. */
static PGresult *ask(struct postgres_db *d, const char *text, int n, const char *const *value)
{
    PGresult *r = PQexecParams(d->conn, text, n, NULL, value, NULL, NULL, 0);
    ExecStatusType s = PQresultStatus(r);
    if (s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK)
        return r;
    PQclear(r);
    return NULL;
}

/* A connection that broke is opened again. */
static bool alive(struct postgres_db *d)
{
    if (PQstatus(d->conn) == CONNECTION_OK && PQtransactionStatus(d->conn) == PQTRANS_IDLE)
        return true;
    PQreset(d->conn);
    return PQstatus(d->conn) == CONNECTION_OK;
}

static const char *number(uint64_t n, char out[NUMBER_BUF])
{
    snprintf(out, NUMBER_BUF, "%" PRId64, (int64_t)n);
    return out;
}

static uint64_t value_at(PGresult *r, int row, int column)
{
    return (uint64_t)strtoll(PQgetvalue(r, row, column), NULL, 10);
}

static int position(struct audit_db *base, const char *source, struct audit_position *out)
{
    struct postgres_db *d = (struct postgres_db *)base;
    PGresult *r = alive(d)
                      ? ask(d, "SELECT file, place, line FROM firn_audit_sources WHERE source = $1",
                            1, &source)
                      : NULL;
    if (!r)
        return failed(d);
    int known = PQntuples(r) == 1;
    if (known)
        *out = (struct audit_position){ value_at(r, 0, 0), value_at(r, 0, 1), value_at(r, 0, 2) };
    PQclear(r);
    return known;
}

/* {"a","b\"c"}: IDs are printable ASCII; quotes and backslashes get a backslash. */
static bool write_arrays(struct postgres_db *d, const struct audit_id *const *id, size_t n)
{
    size_t want = 3;
    for (size_t i = 0; i < n; i++)
        want += 2 * id[i]->len + 3;
    if (want > d->ids_room || n * NUMBER_BUF + 3 > d->lines_room) {
        free(d->ids);
        free(d->lines);
        d->ids = malloc(want);
        d->lines = malloc(n * NUMBER_BUF + 3);
        d->ids_room = d->ids ? want : 0;
        d->lines_room = d->lines ? n * NUMBER_BUF + 3 : 0;
        if (!d->ids || !d->lines)
            return false;
    }
    char *p = d->ids, *q = d->lines;
    *p++ = *q++ = '{';
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            *p++ = *q++ = ',';
        *p++ = '"';
        for (size_t k = 0; k < id[i]->len; k++) {
            if (id[i]->text[k] == '"' || id[i]->text[k] == '\\')
                *p++ = '\\';
            *p++ = id[i]->text[k];
        }
        *p++ = '"';
        q += snprintf(q, NUMBER_BUF, "%" PRIu64, id[i]->line);
    }
    *p++ = *q++ = '}';
    *p = *q = '\0';
    return true;
}

static int by_text(const void *a, const void *b)
{
    const struct audit_id *x = *(const struct audit_id *const *)a;
    const struct audit_id *y = *(const struct audit_id *const *)b;
    int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    if (c == 0)
        c = (x->len > y->len) - (x->len < y->len);
    return c != 0 ? c : (x->line > y->line) - (x->line < y->line);
}

static int by_line(const void *a, const void *b)
{
    const struct audit_id *x = *(const struct audit_id *const *)a;
    const struct audit_id *y = *(const struct audit_id *const *)b;
    return (x->line > y->line) - (x->line < y->line);
}

/* The INSERT returns the new IDs, sorted as the batch is: the IDs that it does not return are
 * duplicates. */
static bool add_all(struct postgres_db *d, const struct audit_batch *b, const struct audit_id **id,
                    size_t *out_again)
{
    char ms[NUMBER_BUF];
    if (b->n == 0)
        return true;
    for (size_t i = 0; i < b->n; i++)
        id[i] = &b->id[i];
    qsort(id, b->n, sizeof *id, by_text);
    if (!write_arrays(d, id, b->n))
        return false;
    const char *const value[] = { d->ids, number(b->seen_ms, ms) };
    PGresult *r = ask(
        d,
        "WITH new AS (INSERT INTO firn_audit_ids(id, seen_ms) "
        "SELECT id, $2::bigint FROM unnest($1::text[]) AS t(id) ORDER BY id COLLATE \"C\" "
        "ON CONFLICT DO NOTHING RETURNING id) SELECT id FROM new ORDER BY id COLLATE \"C\"",
        2, value);
    if (!r)
        return false;
    size_t again = 0;
    int fresh = 0, rows = PQntuples(r);
    for (size_t i = 0; i < b->n; i++) {
        const char *text = fresh < rows ? PQgetvalue(r, fresh, 0) : "";
        if (strlen(text) == id[i]->len && memcmp(text, id[i]->text, id[i]->len) == 0)
            fresh++;
        else
            id[again++] = id[i];
    }
    PQclear(r);
    *out_again = again;
    return fresh == rows;
}

static bool note_again(struct postgres_db *d, const struct audit_batch *b,
                       const struct audit_id **id, size_t again)
{
    char ms[NUMBER_BUF];
    if (again == 0)
        return true;
    qsort(id, again, sizeof *id, by_line);
    if (!write_arrays(d, id, again))
        return false;
    const char *const value[] = { b->source, d->ids, d->lines, number(b->seen_ms, ms) };
    PGresult *r = ask(
        d,
        "INSERT INTO firn_audit_duplicates(source, id, line, seen_ms) "
        "SELECT $1, id, line, $4::bigint FROM unnest($2::text[], $3::bigint[]) AS t(id, line)",
        4, value);
    PQclear(r);
    return r != NULL;
}

static bool note_place(struct postgres_db *d, const struct audit_batch *b, uint64_t again)
{
    char text[6][NUMBER_BUF];
    const char *const place[] = { b->source, number(b->after.file, text[0]),
                                  number(b->after.offset, text[1]),
                                  number(b->after.line, text[2]) };
    const char *const sum[] = { number(b->n, text[3]), number(again, text[4]),
                                number(b->malformed, text[5]) };
    PGresult *r = ask(
        d,
        "INSERT INTO firn_audit_sources VALUES($1, $2::bigint, $3::bigint, $4::bigint) "
        "ON CONFLICT(source) DO UPDATE SET file = $2::bigint, place = $3::bigint, "
        "line = $4::bigint",
        4, place);
    PQclear(r);
    if (!r)
        return false;
    r = ask(d,
            "UPDATE firn_audit_totals SET ids = ids + $1::bigint, duplicates = duplicates + "
            "$2::bigint, "
            "malformed = malformed + $3::bigint",
            3, sum);
    PQclear(r);
    return r != NULL;
}

static int commit(struct audit_db *base, const struct audit_batch *b)
{
    struct postgres_db *d = (struct postgres_db *)base;
    const struct audit_id **id = calloc(b->n + 1, sizeof *id);
    size_t again = 0;
    int r = 0;
    if (!id || !alive(d) || !run(d, "BEGIN") || !add_all(d, b, id, &again) ||
        !note_again(d, b, id, again) || !note_place(d, b, again) || !run(d, "COMMIT")) {
        r = failed(d);
        run(d, "ROLLBACK");
    }
    free(id);
    return r;
}

static int duplicates(struct audit_db *base, const char *source, uint64_t after,
                      audit_duplicate_fn *each, void *user)
{
    struct postgres_db *d = (struct postgres_db *)base;
    char text[NUMBER_BUF];
    const char *const value[] = { source, number(after, text) };
    PGresult *r = alive(d)
                      ? ask(d,
                            "SELECT d.number, d.id, d.line, i.seen_ms FROM firn_audit_duplicates d "
                            "JOIN firn_audit_ids i ON i.id = d.id "
                            "WHERE d.source = $1 AND d.number > $2::bigint ORDER BY 1",
                            2, value)
                      : NULL;
    if (!r)
        return failed(d);
    for (int i = 0; i < PQntuples(r); i++)
        each(user, &(struct audit_duplicate){ .number = value_at(r, i, 0),
                                              .id = PQgetvalue(r, i, 1),
                                              .line = value_at(r, i, 2),
                                              .first_ms = value_at(r, i, 3) });
    PQclear(r);
    return 0;
}

static int totals(struct audit_db *base, struct audit_totals *out, uint64_t *out_last)
{
    struct postgres_db *d = (struct postgres_db *)base;
    PGresult *r = alive(d)
                      ? ask(d,
                            "SELECT ids, duplicates, malformed, (SELECT COALESCE(MAX(number), 0) "
                            "FROM firn_audit_duplicates) FROM firn_audit_totals",
                            0, NULL)
                      : NULL;
    if (!r || PQntuples(r) != 1) {
        PQclear(r);
        return failed(d);
    }
    *out = (struct audit_totals){ value_at(r, 0, 0), value_at(r, 0, 1), value_at(r, 0, 2) };
    *out_last = value_at(r, 0, 3);
    PQclear(r);
    return 0;
}

static void close_db(struct audit_db *base)
{
    struct postgres_db *d = (struct postgres_db *)base;
    PQfinish(d->conn);
    free(d->ids);
    free(d->lines);
    free(d);
}

static const struct audit_db_ops ops = { position, commit, duplicates, totals, close_db };

struct audit_db *audit_postgres_open(const char *url, char why[200])
{
    struct postgres_db *d = calloc(1, sizeof *d);
    if (!d) {
        snprintf(why, 200, "out of memory");
        return NULL;
    }
    d->base.ops = &ops;
    /* A server that no longer answers must not block firn audit. Settings in the URL come later
     * and take precedence. */
    const char *const key[] = { "connect_timeout", "tcp_user_timeout", "options", "dbname", NULL };
    const char *const value[] = { "5", "10000", "-c statement_timeout=30000", url, NULL };
    d->conn = PQconnectdbParams(key, value, 1);
    if (PQstatus(d->conn) == CONNECTION_OK && run(d, setup))
        return &d->base;
    failed(d);
    snprintf(why, 200, "%s", d->base.why);
    close_db(&d->base);
    return NULL;
}

#else

struct audit_db *audit_postgres_open(const char *url, char why[200])
{
    (void)url;
    snprintf(why, 200, "this firn was built without libpq (Debian: libpq-dev)");
    return NULL;
}
#endif
