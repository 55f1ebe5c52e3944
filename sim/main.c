/*
 * sim_world - runs the simulated world.
 *   sim_world [--seeds N] [--from SEED] [--jobs J]   regress.txt, then N seeds, then sometimes.h
 *   sim_world --seed SEED [--trace]                  one seed
 *   sim_world --replay FILE [--trace]                a list of faults, as a failure wrote it
 *   sim_world --scale [--nodes N] [--hours H]        one large cluster
 *   sim_world --quorum ...                           the same with worlds of a quorum
 *   sim_world --sweep [--seeds N] [--from SEED]      a death at each call of the store
 *   sim_world --cluster ...                          the same with worlds of a cluster
 *   sim_world --member ...                           the same with whole members of one
 *   sim_mutants [--from SEED]                        the mutation gate
 */
#include "mutant.h"
#include "platform/assert.h"
#include "raft/core/mutant.h"
#include "raft/mutant.h"
#include "scale.h"
#include "shrink.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct world world;
static struct plan plan;
static int passed, failed;
static bool quorum, sweep, cluster, member; /* which worlds; member: of a cluster, whole */

static const char *mutant_now(void);

static void make_plan(uint64_t seed)
{
    if (cluster)
        plan_of_cluster(&plan, seed, member);
    else if (quorum)
        plan_of_quorum(&plan, seed);
    else if (sweep)
        plan_of_sweep(&plan, seed);
    else
        plan_of_seed(&plan, seed);
}

/* ---- the mutants ---- */

#ifdef FIRN_MUTANTS
enum firn_mutant firn_mutant;
enum core_mutant core_mutant;
enum member_mutant member_mutant;

static const struct {
    const char *name, *text;
} mutants[] = { { "", "" },
#define X(name, text) { #name, text },
                FIRN_MUTANT_LIST(X) CORE_MUTANT_LIST(X) MEMBER_MUTANT_LIST(X)
#undef X
};
enum { MUTANTS_ALL = sizeof mutants / sizeof mutants[0] };
static int mutant; /* in the table */

static void become(int i)
{
    mutant = i;
    firn_mutant = i < MUTANTS ? (enum firn_mutant)i : MUTANT_none;
    core_mutant = CORE_MUTANT_none;
    member_mutant = MEMBER_MUTANT_none;
    if (i >= MUTANTS + CORE_MUTANTS - 1)
        member_mutant = (enum member_mutant)(i - MUTANTS - CORE_MUTANTS + 2);
    else if (i >= MUTANTS)
        core_mutant = (enum core_mutant)(i - MUTANTS + 1);
}

static const char *mutant_now(void)
{
    return mutants[mutant].name;
}

/* A world takes milliseconds; one that takes so much of the processor does not end. */
enum { MUTANT_SEEDS = 100000, WORLD_CPU_S = 30 };

static bool begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

static struct tally { /* of all mutations, each run by a child */
    uint64_t worlds, ids, tickets;
    uint64_t seed; /* of the world that runs */
} * tally;

static void note_run(void)
{
    tally->worlds += sometimes.seeds;
    tally->tickets += sometimes.ticket_numbers;
    tally->ids += sometimes.ids - sometimes.ticket_numbers;
}

/* A world that does not end is ended by the signal of this timer, which counts the time of the
 * processor: a busy machine does not matter. */
static void watch_world(uint64_t seed)
{
    struct itimerval limit = { .it_value.tv_sec = WORLD_CPU_S };
    tally->seed = seed;
    if (setitimer(ITIMER_VIRTUAL, &limit, NULL) != 0)
        abort();
}

/* How the process of a mutation ended that did not report itself. A time-out kills the mutation:
 * what no longer ends would be noticed. */
static bool timed_out(int i, int status)
{
    bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGVTALRM;
    if (late)
        printf("%-22s %9" PRIu64 " %-8s %9s  %s\n", mutants[i].name, tally->seed, "time-out", "-",
               mutants[i].text);
    else if (WIFSIGNALED(status))
        printf("%-22s  SURVIVED until signal %d in seed %" PRIu64 ": %s\n", mutants[i].name,
               WTERMSIG(status), tally->seed, mutants[i].text);
    fflush(stdout);
    return late;
}

/* One mutation in a process of its own, because an invariant of the code may notice it. */
static bool survives(int i, uint64_t from)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        bool killed = false;
        uint64_t ids = 0, seed = from;
        bool tickets = begins(mutants[i].name, "tk_");
        become(i);
        quorum = begins(mutants[i].name, "px_");
        member = begins(mutants[i].name, "rm_");
        cluster = member || begins(mutants[i].name, "rc_");
        for (; !killed && seed < from + MUTANT_SEEDS; seed++) {
            make_plan(seed);
            if (tickets && !plan.config.tickets)
                continue;
            watch_world(seed);
            world_run(&world, &plan);
            ids += world.ids;
            killed = world.failed;
        }
        if (killed)
            printf("%-22s %9" PRIu64 " %-8s %9" PRIu64 "  %s\n", mutants[i].name, seed - 1,
                   world.oracle, ids, mutants[i].text);
        else
            printf("%-22s  SURVIVED %d seeds: %s\n", mutants[i].name, MUTANT_SEEDS,
                   mutants[i].text);
        fflush(stdout);
        note_run();
        _exit(killed ? 0 : 1);
    }
    int status = 1;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return true;
    return status != 0 && !timed_out(i, status);
}

static bool set_mutant(const char *name)
{
    for (int i = 0; i < MUTANTS_ALL; i++)
        if (strcmp(mutants[i].name, name) == 0) {
            become(i);
            return true;
        }
    return false;
}

/* Each rule taken away must be noticed. */
static void mutation_gate(uint64_t from, const char *only)
{
    tally = mmap(NULL, sizeof *tally, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tally == MAP_FAILED)
        abort();
    printf("%-22s %9s %-8s %9s  %s\n", "mutation", "at seed", "oracle", "IDs", "what it does");
    for (int i = 1; i < MUTANTS_ALL; i++) {
        if (!begins(mutants[i].name, only))
            continue;
        bool killed = !survives(i, from);
        passed += killed;
        failed += !killed;
    }
    printf("%" PRIu64 " worlds, %" PRIu64 " IDs, %" PRIu64 " tickets, %d mutations killed, "
           "%d survived\n",
           tally->worlds, tally->ids, tally->tickets, passed, failed);
    become(0);
}
#else
static const char *mutant_now(void)
{
    return "";
}

static bool set_mutant(const char *name)
{
    return name[0] == '\0';
}
#endif

/* ---- one seed ---- */

static const char *program;

static const char *kind_flag(void)
{
    return member ? " --member" : cluster ? " --cluster" : quorum ? " --quorum" : "";
}

static void report(uint64_t seed)
{
    char file[512];
    const char *slash = strrchr(program, '/');
    char oracle[sizeof world.oracle];
    memcpy(oracle, world.oracle, sizeof oracle);
    printf("FAIL seed %" PRIu64 " %s: %s\n", seed, world.oracle, world.what);
    if (!sweep)
        printf("     replay: %s%s --seed %" PRIu64 " --trace\n", program, kind_flag(), seed);
    size_t before = plan.count;
    int runs = shrink(&world, &plan, oracle);
    snprintf(file, sizeof file, "%.*s%s-%" PRIu64 ".replay", slash ? (int)(slash - program + 1) : 0,
             program,
             member    ? "member"
             : cluster ? "cluster"
             : quorum  ? "quorum"
             : sweep   ? "sweep"
                       : "sim",
             seed);
    FILE *f = fopen(file, "w");
    if (f) {
        fprintf(f, "# %s: %s --replay %s --trace\n", oracle, program, file);
        plan_write(&plan, mutant_now(), f);
        fclose(f);
    }
    printf("     shrunk from %zu faults to %zu in %d runs: %s --replay %s --trace\n", before,
           plan.count, runs, program, file);
    plan_write(&plan, mutant_now(), stdout);
    fflush(stdout);
}

static jmp_buf next_world;

/* In place of the library's: a broken invariant of the code names the seed that leads to it. */
void firn__assert_failed(const char *condition, const char *file, int line, const char *function,
                         const char *format, ...)
{
    va_list values;
    if (only_oracle) /* this world is over */
        longjmp(next_world, 1);
#ifdef FIRN_MUTANTS
    if (mutant != 0) {
        printf("%-22s %9" PRIu64 " %-8s %9" PRIu64 "  %s\n", mutant_now(), plan.config.seed,
               "invariant", world.ids, mutants[mutant].text);
        fflush(stdout);
        if (tally)
            note_run();
        _exit(0);
    }
#endif
    va_start(values, format);
    printf("FAIL seed %" PRIu64 " invariant: %s (%s:%d, %s) ", plan.config.seed, condition, file,
           line, function);
    vprintf(format, values);
    va_end(values);
    printf("\n     replay: %s%s --seed %" PRIu64 " --trace\n", program, kind_flag(),
           plan.config.seed);
    if (sweep)
        plan_write(&plan, mutant_now(), stdout);
    fflush(stdout);
    abort();
}

static bool run_seed(uint64_t seed, bool shrink_it)
{
    make_plan(seed);
    if (only_oracle && setjmp(next_world))
        return true;
    world_run(&world, &plan);
    if (!world.failed)
        return true;
    if (shrink_it && !only_oracle)
        report(seed);
    else
        printf("FAIL seed %" PRIu64 " %s: %s\n", seed, world.oracle, world.what);
    return false;
}

/* A world, and the same world again and again with a death at each of its calls of the store:
 * before the call, and, of a write, between the write and its answer. */
static bool run_sweep(uint64_t seed)
{
    static uint8_t writes[CALLS_MAX];
    make_plan(seed);
    world.call_writes = writes;
    world_run(&world, &plan);
    world.call_writes = NULL;
    uint64_t calls = world.calls < CALLS_MAX ? world.calls : CALLS_MAX;
    for (uint64_t i = 0; i < calls * 2 && !world.failed; i++) {
        plan.config.die_call = i / 2 + 1;
        plan.config.die_after = i % 2;
        if (plan.config.die_after && !writes[i / 2])
            continue;
        world_run(&world, &plan);
        sometimes.deaths++;
    }
    sometimes.swept++;
    bool ok = !world.failed;
    if (!ok)
        report(seed);
    return ok;
}

/* The same seed is the same run, to the last event. */
static bool repeatable(uint64_t seed)
{
    make_plan(seed);
    world_run(&world, &plan);
    uint64_t first = world.hash;
    world_run(&world, &plan);
    if (first == world.hash)
        return true;
    printf("FAIL seed %" PRIu64 " ran differently the second time\n", seed);
    return false;
}

/* ---- many ---- */

struct result {
    struct counters counters;
    uint64_t failures;
};

enum { FAILURES_MAX = 5 };

static void run_range(uint64_t from, uint64_t count, uint64_t step, struct result *out)
{
    *out = (struct result){ .failures = 0 };
    memset(&sometimes, 0, sizeof sometimes);
    for (uint64_t i = 0; i < count && out->failures < FAILURES_MAX; i += step)
        out->failures += sweep ? !run_sweep(from + i) : !run_seed(from + i, true);
    out->counters = sometimes;
}

static void add(struct counters *to, const struct counters *from)
{
    uint64_t *t = (uint64_t *)to;
    const uint64_t *f = (const uint64_t *)from;
    for (size_t i = 0; i < sizeof *to / sizeof *t; i++)
        t[i] += f[i];
}

static void run_jobs(uint64_t from, uint64_t count, unsigned jobs, struct result *total)
{
    int fd[16][2];
    pid_t pid[16];
    *total = (struct result){ .failures = 0 };
    fflush(stdout);
    for (unsigned j = 0; j < jobs; j++) {
        struct result r;
        if (pipe(fd[j]) != 0 || (pid[j] = fork()) < 0) {
            perror("sim_world");
            exit(1);
        }
        if (pid[j] > 0) {
            close(fd[j][1]);
            continue;
        }
        run_range(from + j, count > j ? count - j : 0, jobs, &r);
        ssize_t n = write(fd[j][1], &r, sizeof r);
        fflush(stdout);
        _exit(n == (ssize_t)sizeof r ? 0 : 1);
    }
    for (unsigned j = 0; j < jobs; j++) {
        struct result r;
        size_t got = 0;
        ssize_t n;
        while (got < sizeof r && (n = read(fd[j][0], (char *)&r + got, sizeof r - got)) > 0)
            got += (size_t)n;
        close(fd[j][0]);
        int status = 0;
        waitpid(pid[j], &status, 0);
        if (got != sizeof r) {
            printf("FAIL a worker ended with status %d\n", status);
            total->failures++;
            continue;
        }
        add(&total->counters, &r.counters);
        total->failures += r.failures;
    }
}

static void print_faults(const struct counters *c)
{
    int shown = 0;
    printf("\nfaults injected:\n");
    for (int k = 0; k < FAULT_KINDS; k++)
        if ((k >= FAULT_px_lose && k <= FAULT_px_crash) == quorum &&
            (k >= FAULT_rc_lose) == cluster)
            printf("  %-14s %8" PRIu64 "%s", fault_name[k], c->fault[k],
                   ++shown % 4 == 0 ? "\n" : "");
    printf("\n\nsometimes:\n");
}

static void print_totals(const struct counters *c)
{
    if (sweep) {
        printf("%" PRIu64 " worlds, %" PRIu64
               " deaths, one at each call of the store and one behind "
               "each write, %" PRIu64 " IDs, %" PRIu64 " tickets, none twice\n",
               c->swept, c->deaths, c->ids - c->ticket_numbers, c->ticket_numbers);
        return;
    }
    print_faults(c);
#define X(name, text) printf("  %10" PRIu64 "  %s\n", c->name, text);
    if (quorum) {
        SOMETIMES_QUORUM(X)
        printf("\n%" PRIu64 " seeds, %" PRIu64 " calls, all explained by one order; %" PRIu64
               " unknown because the chain was too short\n",
               c->seeds, c->px_calls, c->px_too_short);
        return;
    }
    if (cluster) {
        if (member) {
            SOMETIMES_MEMBER(X)
        } else {
            SOMETIMES_CLUSTER(X)
        }
        printf("\n%" PRIu64 " seeds, %.1f simulated hours of members, %" PRIu64 " calls, %" PRIu64
               " tickets, none twice, none lost; %" PRIu64
               " clusters were left without a majority of machines\n",
               c->seeds, (double)c->node_ms / 3.6e6, c->rc_calls, c->ids, c->rc_majority_lost);
        return;
    }
    SOMETIMES(X)
#undef X
    printf("\n%" PRIu64 " worlds, %.0f simulated node-hours, %" PRIu64 " IDs, %" PRIu64
           " tickets, 0 repeated but for %" PRIu64 " excused by a clone and %" PRIu64
           " by a forgetful store; gapless numbers lost with a crash: %" PRIu64 ", else none\n",
           c->seeds, (double)c->node_ms / 3.6e6, c->ids - c->ticket_numbers, c->ticket_numbers,
           c->excused_clone, c->excused_loss, c->ticket_lost_crash);
}

static void check_sometimes(const struct counters *c)
{
#define X(name, text)                             \
    if (c->name == 0)                             \
        printf("FAIL never reached: %s\n", text); \
    passed += c->name > 0;                        \
    failed += c->name == 0;
    if (member) {
        SOMETIMES_MEMBER(X)
    } else if (cluster) {
        SOMETIMES_CLUSTER(X)
    } else if (quorum) {
        SOMETIMES_QUORUM(X)
    } else {
        SOMETIMES(X)
    }
#undef X
}

static void run_regress(const char *path)
{
    FILE *f = fopen(path, "r");
    char line[256];
    unsigned long long seed;
    if (!f) {
        printf("FAIL %s: %s\n", path, strerror(errno));
        failed++;
        return;
    }
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, member ? "member %llu" : cluster ? "cluster %llu" : "%llu", &seed) != 1)
            continue;
        bool ok = run_seed(seed, false);
        passed += ok;
        failed += !ok;
    }
    fclose(f);
}

static int usage(void)
{
    fprintf(stderr, "usage: sim_world [--seeds N] [--from SEED] [--jobs J] [--regress FILE]\n"
                    "       sim_world --seed SEED [--trace] [--mutant NAME]\n"
                    "       sim_world --replay FILE [--trace]\n"
                    "       sim_world --scale [--nodes N] [--hours H]\n"
                    "       sim_world --quorum [--seeds N] [--from SEED] [--jobs J]\n"
                    "       sim_world --quorum --seed SEED [--trace] [--mutant NAME]\n"
                    "       sim_world --sweep [--seeds N] [--from SEED] [--jobs J]\n"
                    "       sim_world --cluster ...  as with --quorum\n"
                    "       sim_world --member ...  the same\n"
                    "       --oracle NAME: judge this rule alone\n"
                    "       sim_mutants --gate [--from SEED] [--mutant FIRST_LETTERS]\n");
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 0, from = 1, one = 0;
    unsigned jobs = 1, nodes = 1000;
    double hours = 4;
    bool single = false, gate = false, scale = false, show = false;
    const char *replay = NULL, *regress = NULL, *name = "";
    program = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(a, "--trace") == 0)
            show = true;
        else if (strcmp(a, "--gate") == 0)
            gate = true;
        else if (strcmp(a, "--cluster") == 0)
            cluster = true;
        else if (strcmp(a, "--member") == 0)
            cluster = member = true;
        else if (strcmp(a, "--scale") == 0)
            scale = true;
        else if (strcmp(a, "--quorum") == 0)
            quorum = true;
        else if (strcmp(a, "--sweep") == 0)
            sweep = true;
        else if (i + 1 == argc)
            return usage();
        else if (strcmp(a, "--seeds") == 0)
            seeds = strtoull(v, NULL, 10), i++;
        else if (strcmp(a, "--from") == 0)
            from = strtoull(v, NULL, 10), i++;
        else if (strcmp(a, "--jobs") == 0)
            jobs = (unsigned)strtoul(v, NULL, 10), i++;
        else if (strcmp(a, "--seed") == 0)
            one = strtoull(v, NULL, 10), single = true, i++;
        else if (strcmp(a, "--replay") == 0)
            replay = v, i++;
        else if (strcmp(a, "--oracle") == 0)
            only_oracle = v, i++;
        else if (strcmp(a, "--regress") == 0)
            regress = v, i++;
        else if (strcmp(a, "--mutant") == 0)
            name = v, i++;
        else if (strcmp(a, "--nodes") == 0)
            nodes = (unsigned)strtoul(v, NULL, 10), i++;
        else if (strcmp(a, "--hours") == 0)
            hours = strtod(v, NULL), i++;
        else
            return usage();
    }
    if (!set_mutant(gate ? "" : name) || jobs < 1 || jobs > 16)
        return usage();
    if (scale) {
        bool ok = scale_run(nodes, hours);
        printf("%d passed, %d failed\n", ok, !ok);
        return ok ? 0 : 1;
    }
    struct config largest = { .slots = 16 };
    world_new(&world, &largest, NODES_MAX + EXTRA_PROCS);
    world.trace = show;
    if (replay) {
        char as[32];
        FILE *f = fopen(replay, "r");
        if (!f || !plan_read(&plan, as, f) || !set_mutant(as)) {
            fprintf(stderr, "%s: cannot be replayed by this program\n", replay);
            return 2;
        }
        fclose(f);
        world_run(&world, &plan);
        printf(world.failed ? "FAIL %s: %s\n" : "no rule is broken\n", world.oracle, world.what);
        return world.failed;
    }
    if (single) {
        bool ok = run_seed(one, !show);
        printf("seed %" PRIu64 " trace %016" PRIx64 " %" PRIu64 " IDs\n", one, world.hash,
               world.ids);
        return !ok;
    }
#ifdef FIRN_MUTANTS
    if (gate)
        mutation_gate(from, name);
#else
    if (gate)
        return usage();
#endif
    if (regress && !quorum)
        run_regress(regress);
    if (seeds > 0) {
        struct result r;
        for (uint64_t i = 0; i < 20 && i < seeds && !sweep; i++) {
            bool ok = repeatable(from + i * 7);
            passed += ok;
            failed += !ok;
        }
        run_jobs(from, seeds, jobs, &r);
        print_totals(&r.counters);
        if (seeds >= 2000 && !sweep)
            check_sometimes(&r.counters);
        passed += (int)((sweep ? r.counters.swept : r.counters.seeds) - r.failures);
        failed += (int)r.failures;
    }
    world_free(&world);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
