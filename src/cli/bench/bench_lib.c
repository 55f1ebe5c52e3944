/*
 * firn bench lib: measures how long each way to generate, format and parse an ID takes, beside the
 * machine's cheapest instructions. Each round runs all rows in turn, so that a disturbance affects
 * one round of many rows rather than all rounds of one row; the median is the realistic figure, the
 * best the ideal one.
 */
#include "cli/bench/bench_lib.h"
#include "cli/options.h"
#include "cli/bench/bench_rows.h"
#include "cli/say.h"

#include "firn/error.h"
#include "platform/mono.h"
#include "wire/json_write.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROUNDS_DEFAULT = 9,
    ROUNDS_MAX = 99,
    RUN_NS = 20000000,  /* of a timed run: long compared with a timer interrupt */
    TRIAL_NS = 1000000, /* of the run that determines how many operations that is */
    ROWS_MAX = 128,
    JSON_BYTES_MAX = 256 * 1024,
    RETRIES_MAX = 3
};

struct bench_lib {
    uint64_t rounds;
    const char *filter;
    bool json;
};

static const struct opt opts[] = {
    { .name = "rounds",
      .type = OPT_NUMBER,
      .at = offsetof(struct bench_lib, rounds),
      .value = "N",
      .min = 1,
      .max = ROUNDS_MAX,
      .about = "number of times that each row is timed (default 9)" },
    { .name = "filter",
      .type = OPT_TEXT,
      .at = offsetof(struct bench_lib, filter),
      .value = "WORD",
      .about = "only rows whose group or name contains WORD" },
    OPT_JSON(struct bench_lib, json),
    { .name = NULL },
};

static const struct usage usage = {
    .name = "bench lib",
    .examples = "  firn bench lib                     every row, about 15 s\n"
                "  firn bench lib --filter uuid\n"
                "  firn bench lib --json --rounds 3\n",
    .synopsis = "firn bench lib [--rounds N] [--filter WORD] [--json]",
    .about =
        "Times the library on this machine: nanoseconds per operation, the median and the best\n"
        "of the rounds. Rows with 2 threads count the operations of both.\n",
    .opts = opts,
};

struct result {
    const struct bench_row *row;
    uint64_t n;               /* operations of a run, of each thread */
    double round[ROUNDS_MAX]; /* nanoseconds per operation; sorted in the end */
};

/* --- the stopwatch --- */

struct runner {
    const struct bench_row *row;
    uint64_t n;
    unsigned thread, *waiting; /* spins until all have arrived */
    int cpu;                   /* the processor that it runs on */
    uint64_t start_ns, end_ns, cpu_ns;
};

static void *run(void *arg)
{
    struct runner *r = arg;
    if (r->waiting) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(r->cpu, &one);
        sched_setaffinity(0, sizeof one, &one); /* without it both may begin on one core */
        __atomic_sub_fetch(r->waiting, 1, __ATOMIC_ACQ_REL);
        while (__atomic_load_n(r->waiting, __ATOMIC_ACQUIRE) > 0) {
        }
    }
    uint64_t cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    r->start_ns = mono_ns();
    r->row->run(r->n, r->thread);
    r->end_ns = mono_ns();
    r->cpu_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    return NULL;
}

/* The first two processors that this process may use; false if there is only one. */
static bool two_cpus(int cpu[2])
{
    cpu_set_t allowed;
    int found = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return false;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &allowed))
            cpu[found++] = i;
    return found == 2;
}

/* Nanoseconds from the first start to the last end. `*disturbed`: a thread was preempted for
 * more than a twentieth of the time. */
static uint64_t time_run(const struct bench_row *row, uint64_t n, bool *disturbed)
{
    unsigned threads = row->threads > 1 ? 2 : 1, waiting = threads;
    int cpu[2] = { 0, 0 };
    struct runner r[2];
    pthread_t other;
    if (row->prepare)
        row->prepare();
    if (threads == 2)
        two_cpus(cpu);
    for (unsigned i = 0; i < threads; i++)
        r[i] = (struct runner){ row, n, i, threads == 2 ? &waiting : NULL, cpu[i], 0, 0, 0 };
    if (threads == 1) {
        run(&r[0]);
    } else {
        cpu_set_t before;
        sched_getaffinity(0, sizeof before, &before);
        if (pthread_create(&other, NULL, run, &r[1]) != 0) {
            fprintf(stderr, "firn bench: cannot start a thread\n");
            exit(1);
        }
        run(&r[0]);
        pthread_join(other, NULL);
        sched_setaffinity(0, sizeof before, &before);
    }
    uint64_t start = r[0].start_ns, end = r[0].end_ns;
    *disturbed = false;
    for (unsigned i = 0; i < threads; i++) {
        start = r[i].start_ns < start ? r[i].start_ns : start;
        end = r[i].end_ns > end ? r[i].end_ns : end;
        uint64_t wall = r[i].end_ns - r[i].start_ns;
        *disturbed |= r[i].cpu_ns < wall - wall / 20;
    }
    return end - start;
}

/* How many operations make a run of RUN_NS: whole fills, so that every row can use the number. */
static uint64_t calibrate(const struct bench_row *row)
{
    enum { WHOLE = 4096 };
    bool disturbed;
    if (row->fixed_n)
        return row->fixed_n;
    for (uint64_t n = WHOLE;; n *= 2) {
        uint64_t ns = time_run(row, n, &disturbed);
        if (ns >= TRIAL_NS)
            return ((uint64_t)((double)n * RUN_NS / (double)ns) / WHOLE + 1) * WHOLE;
    }
}

static double one_round(const struct result *r)
{
    bool disturbed = true;
    uint64_t ns = 0, best = UINT64_MAX;
    for (int i = 0; i < RETRIES_MAX && disturbed; i++) {
        ns = time_run(r->row, r->n, &disturbed);
        best = ns < best ? ns : best;
        disturbed = disturbed && !r->row->fixed_n; /* such a row sleeps by design */
    }
    return (double)best / (double)(r->n * (r->row->threads > 1 ? 2 : 1));
}

static int cmp_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* --- output --- */

static void print_table(const struct result *results, size_t n, int rounds)
{
    const char *group = "";
    printf("%-10s %-42s %10s %10s %12s\n", "", "", "median ns", "best ns", "million/s");
    for (size_t i = 0; i < n; i++) {
        const struct bench_row *row = results[i].row;
        double median = results[i].round[rounds / 2];
        printf("%-10s %-42s %10.2f %10.2f %12.3f\n", strcmp(group, row->group) ? row->group : "",
               row->what, median, results[i].round[0], 1000 / median);
        group = row->group;
    }
}

static void print_json(const struct result *results, size_t n, int rounds)
{
    struct buf b;
    buf_init(&b, JSON_BYTES_MAX);
    json_begin(&b, NULL, '{');
    json_count(&b, "rounds", (uint64_t)rounds);
    json_begin(&b, "rows", '[');
    for (size_t i = 0; i < n; i++) {
        const struct bench_row *row = results[i].row;
        json_begin(&b, NULL, '{');
        json_text(&b, "key", row->key);
        json_text(&b, "group", row->group);
        json_text(&b, "what", row->what);
        json_count(&b, "threads", row->threads);
        json_key(&b, "median_ns");
        buf_addf(&b, "%.3f", results[i].round[rounds / 2]);
        json_key(&b, "best_ns");
        buf_addf(&b, "%.3f", results[i].round[0]);
        json_end(&b, '}');
    }
    json_end(&b, ']');
    json_end(&b, '}');
    printf("%.*s\n", (int)b.len, b.p);
    buf_done(&b);
}

static bool wanted(const struct bench_row *row, const char *filter, bool has_tsc, bool two_cores)
{
    if (filter && !strstr(row->key, filter) && !strstr(row->group, filter) &&
        !strstr(row->what, filter))
        return false;
    if (row->threads > 1 && !two_cores) {
        fprintf(stderr, "firn bench: left out '%s': it needs two processors\n", row->what);
        return false;
    }
    if (strncmp(row->key, "tsc.", 4) == 0 && !has_tsc) {
        fprintf(stderr, "firn bench: left out '%s': no invariant time stamp counter here\n",
                row->what);
        return false;
    }
    return true;
}

int bench_lib(int argc, char **argv)
{
    static struct result results[ROWS_MAX];
    struct bench_lib b = { .rounds = ROUNDS_DEFAULT };
    int has_tsc, cpu[2], operands, status = options_parse(&usage, argc, argv, &b, &operands);
    if (status >= 0)
        return status;
    if (operands > 0)
        return say_trouble(
            "unexpected operand: firn bench lib takes options only, see firn bench lib --help");
    const int rounds = (int)b.rounds;
    const char *filter = b.filter;

    int r = bench_rows_init(&has_tsc);
    if (r) {
        return say_trouble("%s", firn_error_message(r));
    }
    size_t n = 0;
    for (size_t i = 0; i < bench_rows_n && n < ROWS_MAX; i++)
        if (wanted(&bench_rows[i], filter, has_tsc, two_cpus(cpu)))
            results[n++].row = &bench_rows[i];
    if (n == 0)
        return say_trouble("--filter: no row contains that word: firn bench lib lists all rows");

    for (size_t i = 0; i < n; i++)
        results[i].n = calibrate(results[i].row);
    for (int round = 0; round < rounds; round++)
        for (size_t i = 0; i < n; i++)
            results[i].round[round] = one_round(&results[i]);
    for (size_t i = 0; i < n; i++)
        qsort(results[i].round, (size_t)rounds, sizeof(double), cmp_double);

    (b.json ? print_json : print_table)(results, n, rounds);
    return fflush(stdout) == 0 ? 0 : 1;
}
