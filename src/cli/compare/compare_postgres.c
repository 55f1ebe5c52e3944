/* A sequence and an index of PostgreSQL, measured for firn compare. */
#include "cli/compare/compare_postgres.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef FIRN_HAVE_POSTGRES
#include <libpq-fe.h>
#include <unistd.h>

enum { LINE_BYTES = 256, BLOCK_BYTES = 64 * 1024, PAYLOAD_BYTES = 100 };

struct compare_postgres {
    PGconn *conn;
    char sequence[48];
};

/* The first line of libpq's message. */
static void tell(const struct compare_postgres *p, char *why, size_t size)
{
    const char *text = PQerrorMessage(p->conn);
    snprintf(why, size, "PostgreSQL: %.*s", (int)strcspn(text, "\n"), text);
}

static bool run(struct compare_postgres *p, const char *sql)
{
    PGresult *r = PQexec(p->conn, sql);
    ExecStatusType s = PQresultStatus(r);
    PQclear(r);
    return s == PGRES_COMMAND_OK || s == PGRES_TUPLES_OK || s == PGRES_COPY_IN;
}

struct compare_postgres *compare_postgres_open(const char *url, char why[200])
{
    struct compare_postgres *p = calloc(1, sizeof *p);
    char sql[96];
    if (!p) {
        snprintf(why, 200, "out of memory");
        return NULL;
    }
    p->conn = PQconnectdb(url);
    snprintf(p->sequence, sizeof p->sequence, "firn_compare_%ld", (long)getpid());
    snprintf(sql, sizeof sql, "CREATE SEQUENCE %s", p->sequence);
    if (PQstatus(p->conn) == CONNECTION_OK && run(p, sql))
        return p;
    tell(p, why, 200);
    PQfinish(p->conn);
    free(p);
    return NULL;
}

void compare_postgres_close(struct compare_postgres *p)
{
    char sql[96];
    if (!p)
        return;
    snprintf(sql, sizeof sql, "DROP SEQUENCE IF EXISTS %s", p->sequence);
    run(p, sql);
    PQfinish(p->conn);
    free(p);
}

int compare_postgres_nextval(struct compare_postgres *p, uint64_t run_ms, struct histogram *latency,
                             uint64_t *ids, uint64_t room, uint64_t *out_n, char why[200])
{
    char sql[96];
    uint64_t n = 0, start = mono_ns(), now = start, end = start + run_ms * 1000000;
    snprintf(sql, sizeof sql, "SELECT nextval('%s')", p->sequence);
    PQclear(PQprepare(p->conn, "next", sql, 0, NULL));
    while (now < end && n < room) {
        PGresult *r = PQexecPrepared(p->conn, "next", 0, NULL, NULL, NULL, 0);
        uint64_t then = now;
        now = mono_ns();
        bool good = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;
        if (good)
            ids[n++] = strtoull(PQgetvalue(r, 0, 0), NULL, 10);
        PQclear(r);
        if (!good) {
            tell(p, why, 200);
            return FIRN_EIO;
        }
        histogram_add(latency, now - then, 1);
    }
    *out_n = n;
    return 0;
}

static size_t put_row(const struct compare_ids *ids, size_t i, char line[LINE_BYTES])
{
    const uint8_t *id = ids->data + i * ids->width;
    int n = 0;
    if (ids->width == sizeof(uint64_t)) {
        uint64_t number;
        memcpy(&number, id, sizeof number);
        n = snprintf(line, LINE_BYTES, "%" PRIu64, number);
    } else {
        for (uint32_t k = 0; k < ids->width; k++)
            n += snprintf(line + n, LINE_BYTES - (size_t)n, "%02x", id[k]);
    }
    n += snprintf(line + n, LINE_BYTES - (size_t)n, "\t%0*d\n", PAYLOAD_BYTES, 0);
    return (size_t)n;
}

static bool copy_rows(struct compare_postgres *p, const struct compare_ids *ids, char *block)
{
    size_t len = 0;
    bool good = run(p, "COPY firn_compare_rows FROM STDIN");
    for (size_t i = 0; i < ids->n && good; i++) {
        len += put_row(ids, i, block + len);
        if (len + LINE_BYTES > BLOCK_BYTES || i + 1 == ids->n) {
            good = PQputCopyData(p->conn, block, (int)len) == 1;
            len = 0;
        }
    }
    good = PQputCopyEnd(p->conn, NULL) == 1 && good;
    for (PGresult *r; (r = PQgetResult(p->conn)) != NULL; PQclear(r))
        good = good && PQresultStatus(r) == PGRES_COMMAND_OK;
    return good;
}

static uint64_t index_bytes(struct compare_postgres *p)
{
    PGresult *r = PQexec(p->conn, "SELECT pg_indexes_size('firn_compare_rows')");
    uint64_t n = PQntuples(r) == 1 ? strtoull(PQgetvalue(r, 0, 0), NULL, 10) : 0;
    PQclear(r);
    return n;
}

void compare_postgres_index(struct compare_postgres *p, const struct compare_ids *ids,
                            struct compare_index *out)
{
    char *block = malloc(BLOCK_BYTES), sql[128];
    *out = (struct compare_index){ .rows = ids->n };
    snprintf(sql, sizeof sql, "CREATE TABLE firn_compare_rows(id %s PRIMARY KEY, payload text)",
             ids->width == sizeof(uint64_t) ? "bigint" : "uuid");
    /* One transaction that is rolled back: nothing remains, whatever happens. */
    if (block && run(p, "BEGIN") && run(p, sql)) {
        uint64_t start = mono_ns();
        if (copy_rows(p, ids, block)) {
            uint64_t took = mono_ns() - start;
            out->measured = true;
            out->per_second = took ? (uint64_t)((double)ids->n * 1e9 / (double)took) : 0;
            out->bytes = index_bytes(p);
        }
    }
    if (!out->measured)
        tell(p, out->why_not, sizeof out->why_not);
    run(p, "ROLLBACK");
    free(block);
}

#else

struct compare_postgres *compare_postgres_open(const char *url, char why[200])
{
    (void)url;
    snprintf(why, 200, "this firn was built without libpq (Debian: libpq-dev)");
    return NULL;
}

void compare_postgres_close(struct compare_postgres *p)
{
    (void)p;
}

int compare_postgres_nextval(struct compare_postgres *p, uint64_t run_ms, struct histogram *latency,
                             uint64_t *ids, uint64_t room, uint64_t *out_n, char why[200])
{
    (void)p, (void)run_ms, (void)latency, (void)ids, (void)room, (void)out_n, (void)why;
    return FIRN_ENOTSUP;
}

void compare_postgres_index(struct compare_postgres *p, const struct compare_ids *ids,
                            struct compare_index *out)
{
    (void)p, (void)ids;
    *out = (struct compare_index){ 0 };
}
#endif
