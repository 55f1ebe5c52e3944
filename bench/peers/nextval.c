/*
 * nextval - PostgreSQL's own sequence, as an application sees it: SELECT nextval('tickets') through
 * libpq on a number of connections, one prepared statement in flight on each, all of them driven by
 * one thread. Prints one JSON object in the words of `firn bench load`. bench/servers builds it
 * where
 * libpq is installed:  nextval CONNINFO CONNECTIONS SECONDS
 */
#include <libpq-fe.h>

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire/histogram.h"
#include "wire/histogram.c"

enum { CONNECTIONS_MAX = 100, SECONDS_MAX = 600, WARMUP_MS = 300 };

static struct histogram latency;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int fail(PGconn *c, const char *what)
{
    fprintf(stderr, "nextval: %s: %s", what, PQerrorMessage(c));
    return 1;
}

static int run_plain(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    int ok = PQresultStatus(r) == PGRES_COMMAND_OK;
    PQclear(r);
    return ok ? 0 : fail(c, sql);
}

static int ask(PGconn *c)
{
    return PQsendQueryPrepared(c, "next", 0, NULL, NULL, NULL, 0) == 1 && PQflush(c) == 0;
}

/* 1: an answer, and it is a number above the one before; 0: not yet; -1: an error. */
static int answer(PGconn *c, uint64_t *last)
{
    if (!PQconsumeInput(c))
        return -1;
    if (PQisBusy(c))
        return 0;
    int got = 0;
    for (PGresult *r; (r = PQgetResult(c)) != NULL; PQclear(r)) {
        uint64_t n = PQresultStatus(r) == PGRES_TUPLES_OK ? strtoull(PQgetvalue(r, 0, 0), NULL, 10)
                                                          : 0;
        got = n > *last ? 1 : -1;
        *last = n;
    }
    return got;
}

int main(int argc, char **argv)
{
    static PGconn *conn[CONNECTIONS_MAX];
    static uint64_t since[CONNECTIONS_MAX], last[CONNECTIONS_MAX];
    struct pollfd fds[CONNECTIONS_MAX];
    int n = argc == 4 ? (int)strtol(argv[2], NULL, 10) : 0;
    long seconds = argc == 4 ? strtol(argv[3], NULL, 10) : 0;
    if (n < 1 || n > CONNECTIONS_MAX || seconds < 1 || seconds > SECONDS_MAX) {
        fprintf(stderr, "usage: nextval CONNINFO CONNECTIONS SECONDS\n");
        return 2;
    }
    for (int i = 0; i < n; i++) {
        conn[i] = PQconnectdb(argv[1]);
        if (PQstatus(conn[i]) != CONNECTION_OK)
            return fail(conn[i], "connect");
        if (i == 0 && run_plain(conn[i], "CREATE SEQUENCE IF NOT EXISTS tickets") != 0)
            return 1;
        PGresult *r = PQprepare(conn[i], "next", "SELECT nextval('tickets')", 0, NULL);
        int ok = PQresultStatus(r) == PGRES_COMMAND_OK;
        PQclear(r);
        if (!ok)
            return fail(conn[i], "prepare");
        fds[i] = (struct pollfd){ .fd = PQsocket(conn[i]), .events = POLLIN };
    }
    uint64_t start = now_ns(), measure = start + WARMUP_MS * UINT64_C(1000000);
    uint64_t end = measure + (uint64_t)seconds * 1000000000u, now = start, done = 0, all = 0;
    for (int i = 0; i < n; i++) {
        since[i] = now_ns();
        if (!ask(conn[i]))
            return fail(conn[i], "send");
    }
    while (now < end) {
        if (poll(fds, (nfds_t)n, 1000) <= 0)
            break;
        for (int i = 0; i < n; i++) {
            if (!fds[i].revents)
                continue;
            int got = answer(conn[i], &last[i]);
            now = now_ns();
            if (got < 0)
                return fail(conn[i], "nextval");
            if (got == 0)
                continue;
            all++;
            if (now >= measure && now < end) {
                histogram_add(&latency, now - since[i], 1);
                done++;
            }
            since[i] = now;
            if (now < end && !ask(conn[i]))
                return fail(conn[i], "send");
        }
    }
    for (int i = 0; i < n; i++)
        PQfinish(conn[i]);
    printf("{\"connections\":%d,\"depth\":1,\"elapsed_ns\":%llu,\"requests\":%llu,"
           "\"all_requests\":%llu,\"per_second\":%.0f,\"errors\":0,\"lost\":0,\"unanswered\":0,"
           "\"latency_ns\":{\"p50\":%llu,\"p90\":%llu,\"p99\":%llu,\"p99.9\":%llu,\"max\":%llu}}\n",
           n, (unsigned long long)(end - measure), (unsigned long long)done,
           (unsigned long long)all, (double)done / (double)seconds,
           (unsigned long long)histogram_at(&latency, 500000),
           (unsigned long long)histogram_at(&latency, 900000),
           (unsigned long long)histogram_at(&latency, 990000),
           (unsigned long long)histogram_at(&latency, 999000), (unsigned long long)latency.max);
    return 0;
}
