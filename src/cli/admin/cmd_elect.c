/*
 * firn elect and firn lock: wait in the queue of an election, run a command while leading, stop it
 * in time. firn talks to the store and extends the deadline; the runner ends the command at the
 * deadline, even if firn hangs or is killed. elect joins the queue again after a loss; lock gives
 * up.
 */
#include "cli/commands.h"
#include "cli/admin/coord_opts.h"
#include "cli/admin/runner.h"
#include "cli/say.h"
#include "drive/election.h"
#include "firn/firn.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    STATUS_NOT_OBTAINED = 75, /* EX_TEMPFAIL of sysexits.h: try again later */
    STATUS_LOST = 76,
    TTL_MS_DEFAULT = 10000,
    TTL_MS_MIN = 1000,
    TTL_MS_MAX = 3600000,
    CALL_MS_MAX = 5000,   /* for one call to the store; less where the ttl is short */
    SLICE_MS = 1000,      /* how long a signal may wait while we are in the queue */
    LEAD_SLICE_MS = 5000, /* signals and the end of the command are seen at once */
    TRY_MS = 10000,       /* --wait 0: the store has this long to tell whether it is free */
    LEAVE_MS = 3000,
    REOPEN_MS = 1000,
};

struct elect {
    const char *store, *name;
    uint64_t ttl_ms, grace_ms, wait_ms; /* the last two OPT_NOT_GIVEN where they are not */
    bool once;
};

#define COMMON_OPTS                                                                                \
    OPT_STORE(struct elect, store),                                                                \
        { .name = "ttl",                                                                           \
          .type = OPT_TIME,                                                                        \
          .at = offsetof(struct elect, ttl_ms),                                                    \
          .value = "TIME",                                                                         \
          .min = TTL_MS_MIN,                                                                       \
          .max = TTL_MS_MAX,                                                                       \
          .about = "how long a silent holder counts as alive (default 10s); it is replaced after " \
                   "half as long again" },                                                         \
        { .name = "grace",                                                                         \
          .type = OPT_TIME,                                                                        \
          .at = offsetof(struct elect, grace_ms),                                                  \
          .value = "TIME",                                                                         \
          .max = TTL_MS_MAX / 4,                                                                   \
          .about = "between SIGTERM and SIGKILL (default and at most a quarter of the ttl)" },     \
    {                                                                                              \
        .name = "name", .type = OPT_TEXT, .at = offsetof(struct elect, name), .value = "ME",       \
        .about = "name of this process, as others see it (default host:pid)"                       \
    }

static const struct opt elect_opts[] = {
    COMMON_OPTS,
    { .name = "once",
      .at = offsetof(struct elect, once),
      .about = "end with status 76 when leadership is lost, instead of waiting for it again" },
    { .name = NULL },
};

static const struct opt lock_opts[] = {
    COMMON_OPTS,
    { .name = "wait",
      .type = OPT_TIME,
      .at = offsetof(struct elect, wait_ms),
      .value = "TIME",
      .max = UINT64_MAX - 1,
      .about = "give up with status 75 after this long; 0 tries once (default: wait for ever)" },
    { .name = NULL },
};

const struct usage elect_usage = {
    .name = "elect",
    .examples =
        "  firn elect reports --store etcd://10.0.0.1:2379/firn -- ./reporter\n"
        "  firn elect db-primary --ttl 5s -- sh -c 'exec promote --fence $FIRN_FENCING_TOKEN'\n",
    .synopsis = "firn elect NAME [--store URL] [--ttl TIME] [--grace TIME] [--name ME] [--once] "
                "-- COMMAND [ARG...]",
    .about =
        "Runs the command on one of the candidates for NAME, and on another one soon after that\n"
        "one dies. The command finds FIRN_FENCING_TOKEN (higher for every leader),\n"
        "FIRN_LEADER_NAME and FIRN_ELECTION in its environment. When leadership cannot be kept,\n"
        "because the store does not answer or another candidate took over, it gets SIGTERM,\n"
        "then SIGKILL, in time. Ends with the command's own status; 76 with --once when\n"
        "leadership was lost.\n",
    .operands = "@files",
    .opts = elect_opts,
};

const struct usage lock_usage = {
    .name = "lock",
    .examples = "  firn lock nightly --store sqlite:jobs.db -- ./backup\n"
                "  firn lock deploy --wait 30s -- ./deploy || echo \"another deploy is running\"\n",
    .synopsis =
        "firn lock NAME [--store URL] [--wait TIME] [--ttl TIME] [--grace TIME] [--name ME] "
        "-- COMMAND [ARG...]",
    .about =
        "Runs the command while it holds the lock NAME, first come, first served. The command\n"
        "finds FIRN_FENCING_TOKEN (higher each time), FIRN_LEADER_NAME and FIRN_ELECTION in its\n"
        "environment. Ends with the command's own status; 75 when the lock was not obtained in\n"
        "time, 76 when it was lost while the command ran, which was then ended.\n",
    .operands = "@files",
    .opts = lock_opts,
};

struct session { /* large: on the heap */
    const char *name, *url, *kind;
    char me[RECORD_NAME_MAX + 1];
    uint64_t ttl_ms;
    struct firn_store *store;
    struct member member;
    struct election election;
    struct runner runner;
    bool again;    /* after a loss: wait for it again */
    bool has_wait; /* wait_ms was given */
    uint64_t wait_ms;
    int warned; /* the error that was reported last */
};

static volatile sig_atomic_t caught;
static struct runner *signal_runner;

static void on_signal(int sig)
{
    int error = errno;
    caught = sig;
    if (signal_runner)
        runner_signal(signal_runner, sig);
    errno = error;
}

static void catch_signals(struct session *s)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction act = { .sa_handler = on_signal };
    signal_runner = &s->runner;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        sigaction(signals[i], &act, NULL);
}

static void pause_ms(uint64_t ms)
{
    struct timespec t = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
    nanosleep(&t, NULL); /* a signal ends it early */
}

/* ---- the store ---- */

static uint32_t call_ms(const struct session *s)
{
    return s->ttl_ms / 4 < CALL_MS_MAX ? (uint32_t)(s->ttl_ms / 4) : CALL_MS_MAX;
}

/* Register as a member and join the queue on the store that is open. -1: go on. */
static int session_begin(struct session *s, uint64_t next_least)
{
    struct member_world world;
    struct firn_diag d = { 0 };
    struct member_params p = {
        .kind = s->kind, .name = s->me, .version = FIRN_VERSION, .ttl_ms = s->ttl_ms
    };
    member_world_real(&world);
    if (member_open(&s->member, s->store, &p, &world, &d) != 0 ||
        election_open(&s->election, &s->member, s->name, next_least, &d) != 0)
        return say_trouble("%s", d.text);
    return -1;
}

/* The store was replaced or restored since it was opened: start again on the new one. */
static void session_reopen(struct session *s)
{
    struct firn_diag d = { 0 };
    uint64_t next = s->election.line.next_seen;
    firn_store_close(s->store);
    s->store = NULL;
    while (!caught && firn_store_open(s->url, call_ms(s), &s->store, &d) != 0)
        pause_ms(REOPEN_MS);
    if (s->store && session_begin(s, next) >= 0)
        caught = SIGTERM; /* impossible: it began before */
}

static void report(struct session *s)
{
    int error = s->election.error;
    if (error == 0 && s->election.line.full)
        error = FIRN_ENOSLOT;
    if (error == s->warned)
        return;
    s->warned = error;
    if (error == FIRN_ENOSLOT)
        say_warning("%d processes wait for '%s' already: waiting for a place in the queue",
                    QUEUE_MAX, s->name);
    else if (error)
        say_warning("the store: %s; trying again",
                    s->election.diag.text[0] ? s->election.diag.text : firn_error_message(error));
}

static void leave(struct session *s)
{
    if (!s->store)
        return;
    if (election_leave(&s->election, LEAVE_MS) != 0 || member_leave(&s->member, LEAVE_MS) != 0)
        say_warning("could not release '%s' in the store: other processes get it after %" PRIu64
                    " s",
                    s->name, member_dead_after(s->ttl_ms) / 1000);
}

/* ---- waiting, and leading ---- */

/* -1: it leads; otherwise the status to end with. */
static int stand(struct session *s)
{
    uint64_t start = member_now_ms(&s->member);
    bool said = false;
    while (!election_leads(&s->election)) {
        if (caught)
            return 128 + caught;
        uint64_t waited = member_now_ms(&s->member) - start;
        const struct candidate *line = &s->election.line;
        bool known = line->state == CANDIDATE_WAITING || line->full || s->election.error != 0;
        if (s->has_wait && waited >= s->wait_ms && (known || waited >= s->wait_ms + TRY_MS)) {
            say_failed("'%s' was not obtained within %" PRIu64 " ms: %s", s->name, s->wait_ms,
                       line->state == CANDIDATE_WAITING ? "another process holds it"
                       : line->full                     ? "too many processes wait for it"
                                                        : "the store does not answer");
            return STATUS_NOT_OBTAINED;
        }
        if (line->state == CANDIDATE_LOST)
            candidate_again(&s->election.line);
        uint64_t pause = election_step(&s->election, SLICE_MS);
        report(s);
        if (s->election.error == FIRN_ESTORE) {
            session_reopen(s);
            continue;
        }
        if (line->state == CANDIDATE_WAITING && !said) {
            say_note("waiting for '%s': %" PRIu32 " before this process", s->name, line->ahead);
            said = true;
        }
        if (pause > 0)
            pause_ms(pause);
    }
    return -1;
}

static bool start_command(struct session *s)
{
    char token[64], name[RECORD_NAME_MAX + 32], election[RECORD_NAME_MAX + 32];
    const char *const env[] = { token, name, election };
    snprintf(token, sizeof token, "FIRN_FENCING_TOKEN=%" PRIu64, s->election.line.token);
    snprintf(name, sizeof name, "FIRN_LEADER_NAME=%s", s->me);
    snprintf(election, sizeof election, "FIRN_ELECTION=%s", s->name);
    say_note("leading '%s' with token %" PRIu64, s->name, s->election.line.token);
    return runner_start(&s->runner, env, election_valid_until_ms(&s->election));
}

/* Renew the leadership while the command runs. */
static struct runner_result lead(struct session *s)
{
    struct runner_result result = { .gone = true };
    bool stopped = false;
    uint64_t pause = 0;
    if (!start_command(s))
        return result;
    while (!runner_wait(&s->runner, pause, &result)) {
        uint64_t until = election_valid_until_ms(&s->election);
        if (until > 0)
            runner_extend(&s->runner, until);
        else if (!stopped) {
            runner_stop(&s->runner);
            stopped = true;
        }
        pause = election_step(&s->election, LEAD_SLICE_MS);
        report(s);
        /* The step may have renewed the leadership: publish the new deadline before sleeping. */
        until = election_valid_until_ms(&s->election);
        if (until > 0)
            runner_extend(&s->runner, until);
    }
    return result;
}

static int run(struct session *s)
{
    for (;;) {
        int r = stand(s);
        if (r >= 0)
            return r;
        struct runner_result result = lead(s);
        if (result.gone) {
            say_trouble("the process that supervises the command was killed: ending");
            return STATUS_LOST;
        }
        if (!result.forced || caught)
            return result.status;
        say_warning(
            "lost '%s' and ended the command: the store did not confirm it in time, or another "
            "process took over",
            s->name);
        if (!s->again)
            return STATUS_LOST;
        candidate_again(&s->election.line);
    }
}

static int elect(struct session *s, const struct elect *e, char **command)
{
    uint64_t grace_max_ms = e->ttl_ms / 4,
             grace_ms = e->grace_ms == OPT_NOT_GIVEN ? grace_max_ms : e->grace_ms;
    s->url = store_option_url(e->store);
    if (!s->url || !coord_name(e->name, s->me))
        return STATUS_TROUBLE;
    s->ttl_ms = e->ttl_ms;
    s->has_wait = e->wait_ms != OPT_NOT_GIVEN;
    s->wait_ms = e->wait_ms;
    if (grace_ms > grace_max_ms)
        return say_trouble("--grace %" PRIu64
                           " ms is too long: at most a quarter of --ttl, here %" PRIu64 " ms",
                           grace_ms, grace_max_ms);
    if (!record_user_name_ok(s->name, strlen(s->name)))
        return say_trouble("NAME must be 1 to %d characters of A-Z a-z 0-9 . _ : and -",
                           RECORD_NAME_MAX);
    if (runner_open(&s->runner, command, grace_ms) != 0)
        return STATUS_TROUBLE;
    catch_signals(s);
    int r = store_option_open(s->url, call_ms(s), &s->store);
    if (r < 0)
        r = session_begin(s, 0);
    if (r < 0) {
        r = run(s);
        leave(s);
    }
    signal_runner = NULL;
    runner_close(&s->runner);
    firn_store_close(s->store);
    return r;
}

static int begin(const struct usage *u, int argc, char **argv, bool again)
{
    struct elect e = { .ttl_ms = TTL_MS_DEFAULT,
                       .grace_ms = OPT_NOT_GIVEN,
                       .wait_ms = OPT_NOT_GIVEN };
    int operands, r = options_parse(u, argc, argv, &e, &operands);
    if (r >= 0)
        return r;
    if (operands < 2)
        return say_trouble("usage: firn %s NAME -- COMMAND; see firn %s --help", u->name, u->name);
    struct session *s = calloc(1, sizeof *s);
    if (!s)
        return say_trouble("out of memory");
    char **command = argv + 2;
    command[operands - 1] = NULL; /* argv has room: its own NULL stands there or further */
    s->name = argv[1];
    s->kind = u->name;
    s->again = again && !e.once;
    r = elect(s, &e, command);
    free(s);
    return r;
}

int cmd_elect(int argc, char **argv)
{
    return begin(&elect_usage, argc, argv, true);
}

int cmd_lock(int argc, char **argv)
{
    return begin(&lock_usage, argc, argv, false);
}
