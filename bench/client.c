/*
 * client - what an ID costs an application: by the bare library, by libfirn-client's three modes,
 * by Redis' INCR through hiredis and by PostgreSQL's nextval through libpq, all in one run on one
 * thread. bench/client starts the servers and runs it:
 *
 *     client SECONDS ROUNDS [--firn HOST:PORT,...] [--redis HOST:PORT] [--postgres CONNINFO]
 *
 * Rounds go over all rows in turn. A row is as many IDs as fit into SECONDS, or a fixed burst where
 * the servers would be measured otherwise; printed is one JSON object a row: median and best
 * nanoseconds an ID.
 */
#include "firn/client.h"
#include "firn/gen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef HAVE_HIREDIS
#include <hiredis/hiredis.h>
#endif
#ifdef HAVE_LIBPQ
#include <libpq-fe.h>
#endif

enum { ROUNDS_MAX = 101, BATCH = 1000 };

static double seconds;
static size_t rounds;
static const char *firn_servers, *redis_at, *postgres_at;
static volatile uint64_t sink;

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

static void die(const char *what, const char *why)
{
    fprintf(stderr, "client: %s: %s\n", what, why);
    exit(1);
}

struct row;
typedef void one_fn(struct row *r, size_t n); /* take n IDs; exits on errors */

struct row {
    const char *name, *url;
    one_fn *run;
    void (*open)(struct row *r);
    size_t step;    /* IDs between two looks at the clock */
    uint64_t burst; /* IDs in one round; 0: as many as fit into `seconds` */
    void *state;
    double ns[ROUNDS_MAX], cpu_ns[ROUNDS_MAX];
};

/* --- the bare library --- */

static void open_gen(struct row *r)
{
    static struct firn_gen *g;
    struct firn_layout l;
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = 3600 * 1000; /* the layout's rate is not what is measured */
    if (firn_layout_parse("firn", 4, 0, &l, NULL) != 0 || firn_gen_new(&l, &o, &g) != 0)
        die(r->name, "no generator");
    r->state = g;
}

static void run_gen(struct row *r, size_t n)
{
    uint64_t id = 0;
    for (size_t i = 0; i < n; i++)
        if (firn_gen_next(r->state, &id) != 0)
            die(r->name, "no ID");
    sink = id;
}

static void open_shared(struct row *r)
{
    static struct firn_shared *g;
    struct firn_layout l;
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    o.policy = FIRN_POLICY_BORROW;
    o.max_drift_ms = 3600 * 1000;
    if (firn_layout_parse("firn", 4, 0, &l, NULL) != 0 || firn_shared_new(&l, &o, &g) != 0)
        die(r->name, "no generator");
    r->state = g;
}

static void run_shared(struct row *r, size_t n)
{
    uint64_t id = 0;
    for (size_t i = 0; i < n; i++)
        if (firn_shared_next(r->state, &id) != 0)
            die(r->name, "no ID");
    sink = id;
}

/* --- libfirn-client --- */

static void open_client(struct row *r)
{
    char url[1024];
    struct firn_client *c;
    struct firn_diag d;
    uint64_t id;
    snprintf(url, sizeof url, "firn://%s/?%s", firn_servers, r->url);
    if (firn_client_open(url, &c, &d) != 0)
        die(r->name, d.text);
    r->state = c;
    for (int i = 0; i < 200; i++) /* demand makes the blocks grow; a lease is taken */
        if (firn_client_next(c, &id, &d) != 0)
            die(r->name, d.text);
}

static void run_client(struct row *r, size_t n)
{
    struct firn_diag d;
    uint64_t id = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_expect(firn_client_next(r->state, &id, &d) != 0, 0))
            die(r->name, d.text);
    sink = id;
}

static void run_client_n(struct row *r, size_t n)
{
    struct firn_diag d;
    uint64_t ids[BATCH];
    for (size_t i = 0; i < n; i += BATCH)
        if (firn_client_next_n(r->state, ids, BATCH, &d) != 0)
            die(r->name, d.text);
    sink = ids[0];
}

/* --- others --- */

#ifdef HAVE_HIREDIS
static void open_redis(struct row *r)
{
    char host[64];
    const char *colon = strrchr(redis_at, ':');
    snprintf(host, sizeof host, "%.*s", (int)(colon - redis_at), redis_at);
    redisContext *c = redisConnect(host, atoi(colon + 1));
    if (!c || c->err)
        die(r->name, c ? c->errstr : "no memory");
    r->state = c;
}

static void run_redis(struct row *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        redisReply *a = redisCommand(r->state, "INCR tickets");
        if (!a || a->type != REDIS_REPLY_INTEGER)
            die(r->name, "no number");
        sink = (uint64_t)a->integer;
        freeReplyObject(a);
    }
}
#endif

#ifdef HAVE_LIBPQ
static void open_postgres(struct row *r)
{
    PGconn *c = PQconnectdb(postgres_at);
    if (PQstatus(c) != CONNECTION_OK)
        die(r->name, PQerrorMessage(c));
    PQclear(PQexec(c, "CREATE SEQUENCE IF NOT EXISTS tickets CACHE 1"));
    PQclear(PQprepare(c, "next", "SELECT nextval('tickets')", 0, NULL));
    r->state = c;
}

static void run_postgres(struct row *r, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        PGresult *a = PQexecPrepared(r->state, "next", 0, NULL, NULL, NULL, 0);
        if (PQresultStatus(a) != PGRES_TUPLES_OK)
            die(r->name, PQerrorMessage(r->state));
        sink = strtoull(PQgetvalue(a, 0, 0), NULL, 10);
        PQclear(a);
    }
}
#endif

/* --- rows --- */

static struct row rows[] = {
    { "library, one thread's generator", NULL, run_gen, open_gen, 10000, 0, NULL, { 0 }, { 0 } },
    { "library, shared generator", NULL, run_shared, open_shared, 10000, 0, NULL, { 0 }, { 0 } },
    { "leased", "mode=leased", run_client, open_client, 10000, 1000000, NULL, { 0 }, { 0 } },
    { "leased, by the thousand",
      "mode=leased",
      run_client_n,
      open_client,
      10000,
      1000000,
      NULL,
      { 0 },
      { 0 } },
    { "prefetch, range ticket",
      "mode=prefetch&seq=bench",
      run_client,
      open_client,
      10000,
      0,
      NULL,
      { 0 },
      { 0 } },
    { "prefetch, Snowflake",
      "mode=prefetch&fresh=2s",
      run_client,
      open_client,
      10000,
      5000000,
      NULL,
      { 0 },
      { 0 } },
    { "prefetch, Snowflake, by the thousand",
      "mode=prefetch&fresh=2s",
      run_client_n,
      open_client,
      10000,
      5000000,
      NULL,
      { 0 },
      { 0 } },
    { "remote, RESP", "proto=resp", run_client, open_client, 10, 0, NULL, { 0 }, { 0 } },
    { "remote, HTTP", "proto=http", run_client, open_client, 10, 0, NULL, { 0 }, { 0 } },
    { "remote, range ticket, RESP",
      "proto=resp&seq=bench",
      run_client,
      open_client,
      10,
      0,
      NULL,
      { 0 },
      { 0 } },
#ifdef HAVE_HIREDIS
    { "Redis INCR, hiredis", "redis", run_redis, open_redis, 10, 0, NULL, { 0 }, { 0 } },
#endif
#ifdef HAVE_LIBPQ
    { "PostgreSQL nextval, libpq",
      "postgres",
      run_postgres,
      open_postgres,
      10,
      0,
      NULL,
      { 0 },
      { 0 } },
#endif
};

enum { ROWS_N = sizeof rows / sizeof rows[0] };

static int can_run(const struct row *r)
{
    if (!r->url)
        return 1;
    if (strcmp(r->url, "redis") == 0)
        return redis_at != NULL;
    if (strcmp(r->url, "postgres") == 0)
        return postgres_at != NULL;
    return firn_servers != NULL;
}

/* Wall time, and the time that this thread was on a processor: what others on the machine do counts
 * in the first. */
static void measure(struct row *r, size_t round)
{
    uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9), now = begin, n = 0;
    do {
        r->run(r, r->step);
        n += r->step;
        now = now_ns();
    } while (r->burst ? n < r->burst : now < end);
    r->ns[round] = (double)(now - begin) / (double)n;
    r->cpu_ns[round] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)n;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: client SECONDS ROUNDS [--firn HOST:PORT,...] [--redis HOST:PORT] "
                        "[--postgres CONNINFO]\n");
        return 2;
    }
    seconds = strtod(argv[1], NULL);
    rounds = strtoul(argv[2], NULL, 10);
    for (int i = 3; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--firn") == 0)
            firn_servers = argv[i + 1];
        else if (strcmp(argv[i], "--redis") == 0)
            redis_at = argv[i + 1];
        else if (strcmp(argv[i], "--postgres") == 0)
            postgres_at = argv[i + 1];
    }
    if (rounds < 1 || rounds > ROUNDS_MAX)
        die("rounds", "1 to 101");
    for (size_t i = 0; i < ROWS_N; i++)
        if (can_run(&rows[i])) {
            rows[i].open(&rows[i]);
            measure(&rows[i], 0); /* warm */
        }
    for (size_t k = 0; k < rounds; k++)
        for (size_t i = 0; i < ROWS_N; i++)
            if (can_run(&rows[i]))
                measure(&rows[i], k);
    for (size_t i = 0; i < ROWS_N; i++) {
        if (!can_run(&rows[i]))
            continue;
        qsort(rows[i].ns, rounds, sizeof rows[i].ns[0], by_value);
        qsort(rows[i].cpu_ns, rounds, sizeof rows[i].cpu_ns[0], by_value);
        printf("{\"row\":\"%s\",\"median_ns\":%.3f,\"best_ns\":%.3f,\"cpu_ns\":%.3f}\n",
               rows[i].name, rows[i].ns[rounds / 2], rows[i].ns[0], rows[i].cpu_ns[rounds / 2]);
    }
    return 0;
}
