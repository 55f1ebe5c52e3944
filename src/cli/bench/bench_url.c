/* firn bench URL...: loads servers, checks every ID, saves and compares runs. */
#include "cli/bench/bench_url.h"
#include "cli/bench/bench_client.h"
#include "cli/bench/bench_report.h"
#include "cli/duration.h"
#include "cli/output.h"
#include "cli/say.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FDS_SPARE = 64, MEMORY_DEFAULT_MB = 400, MEMORY_MAX_MB = 1 << 20 };

struct bench {
    const char *command, *accept, *save;
    uint64_t connections, depth, seconds, warmup_ms, rate, requests, threads, cpu, pid, memory_mb;
    bool no_check, compare, json, remote;
    bool client; /* the one address is for libfirn-client */

    struct bench_target target[LOAD_TARGETS_MAX];
    struct load_target load[LOAD_TARGETS_MAX];
    struct load_plan plan;
    struct load_result result;
    bool drawn;
};

static const struct opt opts[] = {
    OPT_NUMBER(struct bench, connections, "connections", "N", 1, LOAD_CONNECTIONS_MAX,
               "number of connections, spread over the addresses (default 50)"),
    OPT_NUMBER(struct bench, depth, "depth", "N", 1, LOAD_DEPTH_MAX,
               "requests in flight on each connection (default 1)"),
    OPT_NUMBER(struct bench, rate, "rate", "R", 1, 100000000,
               "open loop: R requests per second in all, whether the servers keep up or not; "
               "latency counts from when a request was due"),
    OPT_NUMBER(struct bench, seconds, "seconds", "N", 1, LOAD_SECONDS_MAX,
               "duration of the measurement in seconds (default 5)"),
    OPT_NUMBER(struct bench, warmup_ms, "warmup", "MS", 0, 60000,
               "run for MS milliseconds before measuring (default 0)"),
    OPT_NUMBER(struct bench, requests, "requests", "N", 1, UINT64_MAX - 1,
               "stop after N requests, if that is sooner"),
    OPT_WORDS(struct bench, command, "command", "WORDS",
              "the command for redis:// addresses, such as \"FIRN.NEXT snowflake\" (default "
              "\"INCR firn-bench\")"),
    OPT_WORDS(struct bench, accept, "accept", "TYPE", "the Accept header, such as text/plain"),
    OPT_NUMBER(struct bench, threads, "threads", "N", 1, LOAD_THREADS_MAX,
               "threads of the client (default 1)"),
    OPT_NUMBER(struct bench, cpu, "cpu", "N", 0, CPU_SETSIZE - LOAD_THREADS_MAX,
               "run the client's first thread on core N, the next on N+1"),
    OPT_NUMBER(struct bench, pid, "pid", "P", 1, 1 << 22,
               "a server's process: report its CPU time per request"),
    OPT_NUMBER(struct bench, memory_mb, "memory", "MB", 1, MEMORY_MAX_MB,
               "memory for IDs, 8 bytes each (default 400); later IDs are not compared, which the "
               "report shows"),
    { .name = "no-check",
      .at = offsetof(struct bench, no_check),
      .about = "do not read the IDs: no check that they are distinct" },
    { .name = "save",
      .type = OPT_TEXT,
      .at = offsetof(struct bench, save),
      .value = "FILE",
      .words = "@files",
      .about = "write the results to a file, for --compare" },
    { .name = "compare",
      .at = offsetof(struct bench, compare),
      .about = "send nothing: show two saved runs, the second as ratios of the first" },
    { .name = "allow-remote",
      .at = offsetof(struct bench, remote),
      .about = "send to servers on other machines, too; they must be yours" },
    OPT_JSON(struct bench, json),
    { .name = NULL },
};

const struct usage bench_usage = {
    .name = "bench",
    .examples =
        "  firn bench http://127.0.0.1:9001/generate            as fast as 50 connections allow\n"
        "  firn bench http://127.0.0.1:9001/generate --rate 20k --seconds 60\n"
        "  firn bench redis://127.0.0.1:9002/INCR/orders --depth 16\n"
        "  firn bench http://127.0.0.1:9001/generate http://127.0.0.1:9011/generate\n"
        "  firn bench http://127.0.0.1:9001/generate --save a.json\n"
        "  firn bench --compare a.json b.json                   differences of two runs\n"
        "  firn bench 'firn://127.0.0.1:9001/?mode=leased'      libfirn-client in this process\n"
        "  firn bench lib                                       the library alone, no server\n",
    .synopsis = "firn bench URL... [option...]\n"
                "       firn bench --compare BEFORE AFTER [--json]\n"
                "       firn bench lib [option...]\n"
                "       firn bench load [option...]",
    .about =
        "Sends requests to one server or several, http:// or redis://, shows rates and\n"
        "latencies while it runs (on a terminal) and percentiles at the end, and checks that no\n"
        "ID was issued twice, over all servers and connections. IDs that are 64-bit numbers are\n"
        "compared directly; others by a 64-bit hash, which proves them distinct if no two\n"
        "hashes are equal. firn:// addresses are requested through libfirn-client, from\n"
        "--threads threads.\n"
        "\n"
        "Without --rate it is a closed loop: each connection waits for its answers, and the\n"
        "server sets the pace. With --rate a stall adds to the latency of every request that\n"
        "was due in it. Servers on other machines need --allow-remote: load on a machine\n"
        "that is not yours is an attack. See also firn bench lib --help and\n"
        "firn bench load --help.\n",
    .operands = "lib load",
    .opts = opts,
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_)
{
    (void)signal_;
    interrupted = 1;
}

/* The progress line. */
static void draw(const struct load_live *l, void *user)
{
    struct bench *b = user;
    char rate[GROUPED_BUF], p50[DURATION_BUF], p99[DURATION_BUF], bad[GROUPED_BUF];
    fprintf(stderr, "\r\033[K%5.1f s  %s/s  p50 %s  p99 %s  errors %s%s",
            (double)l->elapsed_ns / 1e9, grouped_text(l->per_second, rate),
            duration_text(l->p50_ns, p50), duration_text(l->p99_ns, p99),
            grouped_text(l->errors + l->lost, bad), l->elapsed_ns ? "" : "  (warming up)");
    fflush(stderr);
    b->drawn = true;
}

static int make_plan(struct bench *b, int targets)
{
    struct load_plan *p = &b->plan;
    if (b->threads > b->connections)
        return say_trouble("--threads %" PRIu64 ": there are only %" PRIu64 " connections",
                           b->threads, b->connections);
    if (b->connections < (uint64_t)targets)
        return say_trouble("--connections %" PRIu64 " is less than one for each of %d addresses",
                           b->connections, targets);
    *p = (struct load_plan){
        .target = b->load,
        .targets = (uint32_t)targets,
        .connections = (uint32_t)b->connections,
        .depth = (uint32_t)b->depth,
        .threads = (uint32_t)b->threads,
        .cpu = b->cpu == OPT_NOT_GIVEN ? -1 : (int)b->cpu,
        .warmup_ns = b->warmup_ms * 1000000,
        .run_ns = b->seconds * 1000000000,
        .requests_max = b->requests,
        .rate = b->rate,
        .check = !b->no_check,
        .ids_max = b->memory_mb * 1000000 / sizeof(uint64_t),
        .pid = (uint32_t)b->pid,
        .stop = &interrupted,
        .live = isatty(STDERR_FILENO) == 1 ? draw : NULL,
        .live_user = b,
    };
    return bench_raise_fd_limit(b->connections + FDS_SPARE);
}

static int open_targets(struct bench *b, char **argv, int n)
{
    struct bench_ask ask = { .command = b->command,
                             .otherwise = "INCR firn-bench",
                             .accept = b->accept,
                             .remote = b->remote };
    if (n > LOAD_TARGETS_MAX)
        return say_trouble("too many addresses: at most %d", LOAD_TARGETS_MAX);
    for (int i = 0; i < n; i++) {
        int r = bench_target_init(&b->target[i], argv[i], &ask);
        if (r >= 0)
            return r;
        b->load[i] = b->target[i].load;
    }
    return -1;
}

static int run(struct bench *b)
{
    char shown[SAY_TEXT_BUF];
    struct sigaction act = { .sa_handler = on_interrupt }, before;
    sigaction(SIGINT, &act, &before);
    int status = 0, error = 0;
    if (b->client)
        status = bench_client_run(b->target[0].text, b->remote, &b->plan, &b->result);
    else
        error = load_run(&b->plan, &b->result);
    sigaction(SIGINT, &before, NULL);
    if (b->drawn)
        fputs("\r\033[K", stderr);
    if (status != 0)
        return status;
    if (error == FIRN_EIO) {
        const char *text = b->target[b->result.failed_target].text;
        return say_trouble("%s: %s: check that the server is running; `make run` starts firnd",
                           say_text(text, strlen(text), shown), b->result.why);
    }
    if (error)
        return say_trouble("%s", b->result.why);
    struct bench_run shows = {
        .target = b->target, .plan = &b->plan, .result = &b->result, .calls = b->client
    };
    if (b->json)
        bench_put_json(&shows, stdout);
    else
        bench_put_table(&shows);
    status = bench_verdict(&shows);
    int saved = b->save ? bench_save(&shows, b->save) : -1;
    return output_finish(saved >= 0 ? saved : status);
}

int bench_url(int argc, char **argv)
{
    char shown[SAY_TEXT_BUF];
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        return say_trouble("out of memory");
    b->connections = 50;
    b->depth = b->threads = 1;
    b->seconds = 5;
    b->cpu = OPT_NOT_GIVEN;
    b->memory_mb = MEMORY_DEFAULT_MB;
    int operands, r = options_parse(&bench_usage, argc, argv, b, &operands);
    if (r < 0 && b->compare) {
        r = operands == 2 ? bench_compare(argv[1], argv[2], b->json)
                          : say_trouble("--compare takes two files that --save has written");
    }
    if (r < 0 && operands == 0)
        r = say_trouble(
            "missing target: give an http:// or redis:// address, or use firn bench lib or "
            "firn bench load");
    if (r < 0 && bench_client_known(argv[1])) {
        b->client = true;
        b->target[0].text = argv[1];
        b->connections = b->threads; /* threads take the place of connections */
        if (operands > 1)
            r = say_trouble("write several servers in one address: firn://a:9001,b:9001");
        else if (b->depth > 1 || b->command || b->accept)
            r = say_trouble("--depth, --command and --accept do not work with firn:// addresses");
    } else if (r < 0 && !bench_target_known(argv[1])) {
        r = say_trouble(
            "unknown target '%s': give an http://, redis:// or firn:// address, lib or load",
            say_text(argv[1], strlen(argv[1]), shown));
    }
    if (r < 0 && !b->client)
        r = open_targets(b, argv + 1, operands);
    if (r < 0)
        r = make_plan(b, operands);
    if (r < 0)
        r = run(b);
    for (int i = 0; i < LOAD_TARGETS_MAX; i++)
        bench_target_done(&b->target[i]);
    free(b);
    return r;
}
