/*
 * The clients of bench/soak and tests/deploy/run: firn bench's load generator
 * (src/cli/bench/load.h) as clients that never give up an ID. A request that fails (the connection
 * ends, the time is over, the answer is an error) is asked again on a new connection; one that
 * fails ATTEMPTS times (2) is a failed request. Every ID that was answered goes to the log, a line
 * each, so that duplicates can be looked for.
 *
 * Usage: soak_load ADDRESS:PORT http|resp WHAT RATE SECONDS CONNECTIONS LOG [TIMEOUT_MS [ATTEMPTS]]
 * WHAT is a path, or a command with its words separated by blanks. TIMEOUT_MS is for each attempt,
 * 2000. SIGTERM and SIGINT end it early. Prints lines of JSON with the totals so far and a last one
 * with percentiles; status 0 unless it could not run.
 */
#include "cli/bench/bench_target.h"
#include "cli/output.h"
#include "cli/say.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { CONNS_MAX = 4096 };

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
    (void)sig;
    stop = 1;
}

static void put_totals(struct buf *j, uint64_t elapsed_ns, const struct load_live *now)
{
    buf_init(j, OUTPUT_JSON_MAX);
    json_begin(j, NULL, '{');
    json_count(j, "ms", (elapsed_ns / 1000000));
    json_count(j, "sent", now->sent);
    json_count(j, "unsent", now->unsent);
    json_count(j, "answered", now->requests);
    json_count(j, "retried", now->retried);
    json_count(j, "failed", now->lost);
}

static void put_end(struct buf *j)
{
    json_end(j, '}');
    output_json(j, stdout);
    fflush(stdout);
}

static void show(const struct load_live *now, void *user)
{
    struct buf j;
    fflush(user);
    put_totals(&j, now->elapsed_ns, now);
    put_end(&j);
}

static void show_last(const struct load_result *r)
{
    static const struct {
        const char *key;
        uint32_t ppm;
    } points[] = { { "p50_ns", 500000 },
                   { "p90_ns", 900000 },
                   { "p99_ns", 990000 },
                   { "p999_ns", 999000 },
                   { "max_ns", 1000000 } };
    struct buf j;
    char shown[SAY_TEXT_BUF];
    struct load_live all = { .sent = r->sent,
                             .unsent = r->unsent,
                             .requests = r->requests - r->unreadable,
                             .retried = r->retried,
                             .lost = r->lost + r->unanswered + r->unreadable };
    put_totals(&j, r->elapsed_ns, &all);
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        json_count(&j, points[i].key, histogram_at(&r->latency, points[i].ppm));
    json_text(&j, "sample", say_text(r->sample, r->sample_len, shown));
    put_end(&j);
}

static int fill_plan(struct load_plan *p, int argc, char **argv)
{
    double rate = strtod(argv[4], NULL), seconds = strtod(argv[5], NULL);
    *p = (struct load_plan){
        .targets = 1,
        .connections = (uint32_t)strtoul(argv[6], NULL, 10),
        .depth = 1,
        .threads = 1,
        .cpu = -1,
        .rate = rate > 0 ? (uint64_t)rate : 0,
        .run_ns = seconds > 0 ? (uint64_t)(seconds * 1e9) : 0,
        .attempts = argc > 9 ? (uint32_t)strtoul(argv[9], NULL, 10) : 2,
        .attempt_ns = (argc > 8 ? strtoul(argv[8], NULL, 10) : 2000) * UINT64_C(1000000),
        .check = true,
        .ids_max = 1,
        .live = show,
        .stop = &stop,
    };
    if (p->rate == 0 || p->run_ns == 0 || p->connections < 1 || p->connections > CONNS_MAX ||
        p->attempts < 1 || p->attempt_ns == 0)
        return say_trouble("RATE, SECONDS, CONNECTIONS, TIMEOUT_MS and ATTEMPTS must be above 0, "
                           "CONNECTIONS at most %d",
                           CONNS_MAX);
    p->live_user = p->log = fopen(argv[7], "we");
    return p->log ? -1 : say_trouble("%s: %s", argv[7], strerror(errno));
}

static int target_init(struct bench_target *t, char **argv, char *url, size_t url_room)
{
    struct bench_ask ask = { .accept = "text/plain" };
    if (strcmp(argv[2], "resp") == 0) {
        ask = (struct bench_ask){ .command = argv[3] };
        return bench_target_init_resp(t, argv[1], &ask);
    }
    snprintf(url, url_room, "http://%s%s", argv[1], argv[3]);
    return bench_target_init(t, url, &ask);
}

int main(int argc, char **argv)
{
    static struct load_result result;
    static struct bench_target target;
    struct load_plan plan;
    char url[1024];
    if (argc < 8 || argc > 10)
        return say_trouble("usage: soak_load ADDRESS:PORT http|resp WHAT RATE SECONDS CONNECTIONS "
                           "LOG [TIMEOUT_MS [ATTEMPTS]]");
    int status = fill_plan(&plan, argc, argv);
    if (status < 0)
        status = target_init(&target, argv, url, sizeof url);
    if (status >= 0)
        return status;
    plan.target = &target.load;
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);
    status = load_run(&plan, &result) == 0 ? 0 : say_trouble("%s: %s", argv[1], result.why);
    if (fclose(plan.log) != 0)
        status = say_trouble("%s: %s", argv[7], strerror(errno));
    if (status == 0)
        show_last(&result);
    bench_target_done(&target);
    return status;
}
