/* firn bench load: one target, all knobs of the load generator. */
#include "cli/bench/bench_load.h"
#include "cli/options.h"
#include "cli/bench/bench_report.h"
#include "cli/output.h"
#include "cli/say.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { FDS_SPARE = 64 };

struct bench {
    const char *http, *resp, *command, *accept;
    uint64_t connections, depth, seconds, warmup_ms, rate, requests, threads, cpu, idle, pid;
    bool check, json, remote;

    struct bench_target target;
    struct load_plan plan;
    struct load_result result;
};

static const struct opt opts[] = {
    OPT_WORDS(struct bench, http, "http", "URL", "send GET requests for this address"),
    OPT_WORDS(struct bench, resp, "resp", "HOST:PORT", "use the Redis protocol and send --command"),
    OPT_WORDS(struct bench, command, "command", "WORDS",
              "the command to send, such as \"INCR x\" (default PING)"),
    OPT_WORDS(struct bench, accept, "accept", "TYPE", "the Accept header, such as text/plain"),
    OPT_NUMBER(struct bench, connections, "connections", "N", 1, LOAD_CONNECTIONS_MAX,
               "number of connections (default 50)"),
    OPT_NUMBER(struct bench, depth, "depth", "N", 1, LOAD_DEPTH_MAX,
               "requests in flight on each connection (default 1)"),
    OPT_NUMBER(struct bench, seconds, "seconds", "N", 1, LOAD_SECONDS_MAX,
               "duration of the measurement in seconds (default 5)"),
    OPT_NUMBER(struct bench, warmup_ms, "warmup", "MS", 0, 60000,
               "run for MS milliseconds before measuring (default 0)"),
    OPT_NUMBER(struct bench, requests, "requests", "N", 1, UINT64_MAX - 1,
               "stop after N requests, if that is sooner"),
    OPT_NUMBER(struct bench, rate, "rate", "R", 1, 100000000,
               "open loop: R requests per second over all connections, whether the server keeps "
               "up or not; latency counts from when a request was due"),
    OPT_NUMBER(struct bench, idle, "idle", "N", 0, LOAD_IDLE_MAX,
               "number of further connections that stay idle"),
    OPT_NUMBER(struct bench, threads, "threads", "N", 1, LOAD_THREADS_MAX,
               "threads of the client (default 1)"),
    OPT_NUMBER(struct bench, cpu, "cpu", "N", 0, CPU_SETSIZE - LOAD_THREADS_MAX,
               "run the client's first thread on core N, the next on N+1"),
    OPT_NUMBER(struct bench, pid, "pid", "P", 1, 1 << 22,
               "the server's process: report its CPU time per request"),
    { .name = "check",
      .at = offsetof(struct bench, check),
      .about = "all IDs received are distinct, and rise on each connection" },
    { .name = "allow-remote",
      .at = offsetof(struct bench, remote),
      .about = "send to servers on other machines, too; they must be yours" },
    OPT_JSON(struct bench, json),
    { .name = NULL },
};

static const struct usage usage = {
    .name = "bench load",
    .examples =
        "  firn bench load --http http://127.0.0.1:9001/generate --depth 16\n"
        "  firn bench load --http http://127.0.0.1:9002/generate --check --seconds 2\n"
        "  firn bench load --resp 127.0.0.1:9001 --command \"FIRN.NEXT snowflake\" --depth 100\n"
        "  firn bench load --http http://127.0.0.1:9001/generate --rate 20k --seconds 60\n",
    .synopsis = "firn bench load --http URL [option...]\n"
                "       firn bench load --resp HOST:PORT --command WORDS [option...]",
    .about =
        "Sends the same request over many connections and counts the answers. Servers on\n"
        "other machines need --allow-remote: load on a machine that is not yours is an\n"
        "attack. Pin server and client to one core each (taskset, --cpu) for figures that can\n"
        "be compared.\n",
    .opts = opts,
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_)
{
    (void)signal_;
    interrupted = 1;
}

/* ---- the plan ---- */

static int set_target(struct bench *b)
{
    if (!b->http == !b->resp)
        return say_trouble("one target is required: --http URL or --resp HOST:PORT");
    if (b->http && b->command)
        return say_trouble(
            "--command works with --resp only: with --http put the request into the URL");
    if (b->resp && b->accept)
        return say_trouble("--accept works with --http only");
    struct bench_ask ask = {
        .command = b->command, .otherwise = "PING", .accept = b->accept, .remote = b->remote
    };
    return b->http ? bench_target_init(&b->target, b->http, &ask)
                   : bench_target_init_resp(&b->target, b->resp, &ask);
}

static int make_plan(struct bench *b)
{
    struct load_plan *p = &b->plan;
    if (b->threads > b->connections)
        return say_trouble("--threads %" PRIu64 ": there are only %" PRIu64 " connections",
                           b->threads, b->connections);
    p->target = &b->target.load;
    p->targets = 1;
    p->connections = (uint32_t)b->connections;
    p->depth = (uint32_t)b->depth;
    p->threads = (uint32_t)b->threads;
    p->idle = (uint32_t)b->idle;
    p->cpu = b->cpu == OPT_NOT_GIVEN ? -1 : (int)b->cpu;
    p->warmup_ns = b->warmup_ms * 1000000;
    p->run_ns = b->seconds * 1000000000;
    p->requests_max = b->requests;
    p->rate = b->rate;
    p->check = b->check;
    p->pid = (uint32_t)b->pid;
    p->stop = &interrupted;
    return bench_raise_fd_limit(b->connections + b->idle + FDS_SPARE);
}

static int run(struct bench *b)
{
    char shown[SAY_TEXT_BUF];
    struct sigaction act = { .sa_handler = on_interrupt }, before;
    sigaction(SIGINT, &act, &before);
    int error = load_run(&b->plan, &b->result);
    sigaction(SIGINT, &before, NULL);
    if (error == FIRN_EIO)
        return say_trouble("%s: %s: check that the server is running; `make run` starts firnd",
                           say_text(b->target.text, strlen(b->target.text), shown), b->result.why);
    if (error)
        return say_trouble("%s", b->result.why);
    struct bench_run run = {
        .target = &b->target, .plan = &b->plan, .result = &b->result, .order = true
    };
    if (b->json)
        bench_put_json(&run, stdout);
    else
        bench_put_table(&run);
    return output_finish(bench_verdict(&run));
}

int bench_load(int argc, char **argv)
{
    struct bench *b = calloc(1, sizeof *b);
    int operands, r;
    if (!b)
        return say_trouble("out of memory");
    *b = (struct bench){
        .connections = 50, .depth = 1, .seconds = 5, .threads = 1, .cpu = OPT_NOT_GIVEN
    };
    r = options_parse(&usage, argc, argv, b, &operands);
    if (r < 0 && operands > 0)
        r = say_trouble("unexpected operand '%s': name the target with --http or --resp", argv[1]);
    if (r < 0)
        r = set_target(b);
    if (r < 0)
        r = make_plan(b);
    if (r < 0)
        r = run(b);
    bench_target_done(&b->target);
    free(b);
    return r;
}
