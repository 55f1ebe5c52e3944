/* IDs in one call: in threads, in children of fork(), in signal handlers, with and without a worker
 * number. Each case that touches the process's generator runs in a process of its own. */
#include "t.h"

#include "firn/now.h"
#include "firn/version.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static char program[4096];

/* The process's generator is made once: a case runs in a new process, named by the environment. */
static int run_case(const char *name, const char *worker)
{
    pid_t pid = fork();
    if (pid == 0) {
        setenv("NOW_CASE", name, 1);
        if (worker)
            setenv("FIRN_WORKER_ID", worker, 1);
        else
            unsetenv("FIRN_WORKER_ID");
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -1;
    return WEXITSTATUS(status);
}

static uint64_t worker_of(uint64_t id)
{
    struct firn_layout l;
    struct firn_parts p;
    if (firn_layout_parse("firn", 4, 0, &l, NULL) != 0 || firn_layout_decompose(&l, id, &p) != 0)
        return UINT64_MAX;
    return p.field[FIRN_FIELD_NODE];
}

static int child_says(int (*ask)(void))
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(-ask());
    int status;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? -WEXITSTATUS(status)
                                                                           : 1;
}

static int ask(void)
{
    uint64_t id;
    return firn_snowflake_now(&id);
}

static int setup_slot(uint32_t slot)
{
    struct firn_gen_opts o = FIRN_GEN_OPTS_INIT;
    o.slot = slot;
    return firn_snowflake_setup(NULL, &o);
}

static int set_up_in_child(void)
{
    uint64_t id;
    int r = setup_slot(9);
    r = r ? r : firn_snowflake_now(&id);
    return r ? r : worker_of(id) == 9 ? 0 : FIRN_EIO;
}

static int case_environment(void)
{
    uint64_t a, b;
    char text[FIRN_U64_TEXT_BUF];
    return firn_snowflake_now(&a) == 0 && firn_snowflake_now(&b) == 0 && a < b &&
           worker_of(a) == 7 && firn_snowflake_now_text(text) == 0 &&
           strtoull(text, NULL, 10) > b && setup_slot(8) == FIRN_ECONFLICT;
}

static int case_no_number(void)
{
    uint64_t id;
    return firn_snowflake_now(&id) == FIRN_ENOSLOT && firn_snowflake_now(NULL) == FIRN_EINVAL &&
           setup_slot(8) == 0 && firn_snowflake_now(&id) == 0 && worker_of(id) == 8;
}

static int case_no_size(void)
{
    struct firn_gen_opts o = { .slot = 17 };
    uint64_t id;
    return firn_snowflake_setup(NULL, &o) == FIRN_EINVAL && firn_snowflake_now(&id) == FIRN_ENOSLOT;
}

static int case_format(void)
{
    return ask() == FIRN_EFORMAT;
}

static int case_range(void)
{
    return ask() == FIRN_ERANGE;
}

/* Before the parent's first ID as after it: the number is the parent's. */
static int case_fork(void)
{
    return child_says(ask) == FIRN_EFORKED && ask() == 0 && child_says(ask) == FIRN_EFORKED &&
           child_says(set_up_in_child) == 0 && ask() == 0;
}

static void *many(void *ids)
{
    for (int i = 0; i < 20000; i++)
        if (firn_snowflake_now((uint64_t *)ids + i) != 0)
            return NULL;
    return ids;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static int case_threads(void)
{
    static uint64_t ids[80000];
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&t[i], NULL, many, ids + 20000 * i) != 0)
            return 0;
    for (int i = 0; i < 4; i++) {
        void *made = NULL;
        pthread_join(t[i], &made);
        if (!made)
            return 0;
    }
    qsort(ids, 80000, sizeof(uint64_t), by_value);
    for (int i = 1; i < 80000; i++)
        if (ids[i - 1] == ids[i])
            return 0;
    return 1;
}

static const struct {
    const char *name, *worker;
    int (*run)(void);
} cases[] = {
    { "environment", "7", case_environment },
    { "no number", NULL, case_no_number },
    { "empty", "", case_no_number },
    { "no size", NULL, case_no_size },
    { "format", "seven", case_format },
    { "range", "1024", case_range },
    { "fork", "7", case_fork },
    { "threads", "1", case_threads },
};

__attribute__((constructor(65535))) static void run_one(void)
{
    const char *name = getenv("NOW_CASE");
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    for (size_t i = 0; name && i < T_LEN(cases); i++)
        if (strcmp(cases[i].name, name) == 0)
            _exit(cases[i].run() ? 0 : 1);
}

T_TEST(now_snowflake)
{
    for (size_t i = 0; i < T_LEN(cases); i++)
        T_EQ(run_case(cases[i].name, cases[i].worker), 0, "%s", cases[i].name);
}

T_TEST(now_uuid_and_ulid_rise)
{
    struct firn_uuid u, last_u = { { 0 } };
    struct firn_ulid l, last_l = { { 0 } };
    for (int i = 0; i < 10000; i++) {
        T_EQ(firn_uuid_v7_now(&u), 0);
        T_EQ(firn_ulid_now(&l), 0);
        T_OK(firn_uuid_cmp(&u, &last_u) > 0 && firn_ulid_cmp(&l, &last_l) > 0);
        last_u = u;
        last_l = l;
    }
    uint64_t ms, now = firn_now_ms();
    T_EQ(firn_uuid_version(&u), 7);
    T_EQ(firn_uuid_unix_ms(&u, &ms), 0);
    T_OK(ms <= now && now - ms < 60000);
    T_OK(firn_ulid_unix_ms(&l) <= now);
    T_EQ(firn_uuid_v7_now(NULL), FIRN_EINVAL);
    T_EQ(firn_ulid_now(NULL), FIRN_EINVAL);
}

T_TEST(now_text)
{
    char uuid[FIRN_UUID_TEXT_BUF], ulid[FIRN_ULID_TEXT_BUF];
    struct firn_uuid u;
    struct firn_ulid l;
    T_EQ(firn_uuid_v7_now_text(uuid), 0);
    T_EQ(firn_ulid_now_text(ulid), 0);
    T_EQ(firn_uuid_parse_str(uuid, &u), 0);
    T_EQ(firn_ulid_parse_str(ulid, &l), 0);
    T_EQ(firn_uuid_parse_str("", &u), FIRN_EFORMAT);
    T_EQ(firn_uuid_parse_str(NULL, &u), FIRN_EINVAL);
    T_EQ(firn_uuid_v7_now_text(NULL), FIRN_EINVAL);
    T_EQ(firn_ulid_now_text(NULL), FIRN_EINVAL);
}

/* The child's page is wiped: it continues neither the parent's counter nor its random bits. */
T_TEST(now_in_a_child)
{
    struct firn_uuid mine, theirs;
    struct firn_ulid ulid, their_ulid;
    int fd[2], status;
    T_EQ(firn_uuid_v7_now(&mine), 0);
    T_EQ(firn_ulid_now(&ulid), 0);
    T_EQ(pipe(fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bool made = firn_uuid_v7_now(&theirs) == 0 && firn_ulid_now(&their_ulid) == 0;
        _exit(made && write(fd[1], &theirs, 16) == 16 && write(fd[1], &their_ulid, 16) == 16 ? 0
                                                                                             : 1);
    }
    T_OK(pid > 0);
    T_EQ(firn_uuid_v7_now(&mine), 0);
    T_EQ(firn_ulid_now(&ulid), 0);
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(status, 0);
    T_OK(read(fd[0], &theirs, 16) == 16 && read(fd[0], &their_ulid, 16) == 16);
    T_OK(memcmp(mine.b + 10, theirs.b + 10, 6) != 0); /* behind time and counter */
    T_OK(memcmp(ulid.b + 6, their_ulid.b + 6, 10) != 0);
    close(fd[0]);
    close(fd[1]);
}

enum { CAUGHT = 2000, MADE = 2000000 };
static struct firn_uuid caught[CAUGHT];
static volatile sig_atomic_t caught_n;

static void on_alarm(int sig)
{
    (void)sig;
    if (caught_n < CAUGHT && firn_uuid_v7_now(&caught[caught_n]) == 0)
        caught_n++;
}

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct firn_uuid));
}

/* A handler inside a call: no ID comes twice, and the order of the interrupted calls holds. */
T_TEST(now_in_a_signal_handler)
{
    struct firn_uuid *made = calloc(MADE + CAUGHT, sizeof *made);
    T_OK(made != NULL);
    struct sigaction sa = { .sa_handler = on_alarm }, old;
    struct itimerval every = { { 0, 50 }, { 0, 50 } }, off = { { 0, 0 }, { 0, 0 } };
    size_t n = 0, want = t_scale(CAUGHT);
    T_EQ(firn_uuid_v7_now(&made[n++]), 0);
    T_EQ(sigaction(SIGALRM, &sa, &old), 0);
    T_EQ(setitimer(ITIMER_REAL, &every, NULL), 0);
    for (int r = 0; (size_t)caught_n < want && n < MADE && r == 0; n++)
        r = firn_uuid_v7_now(&made[n]);
    T_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
    T_EQ(sigaction(SIGALRM, &old, NULL), 0);
    for (size_t i = 1; i < n; i++)
        T_OK(by_bytes(&made[i - 1], &made[i]) < 0, "%zu of %zu", i, n);
    memcpy(made + n, caught, (size_t)caught_n * sizeof *caught);
    n += (size_t)caught_n;
    qsort(made, n, sizeof *made, by_bytes);
    for (size_t i = 1; i < n; i++)
        T_OK(by_bytes(&made[i - 1], &made[i]) != 0, "%zu of %zu", i, n);
    free(made);
}

T_TEST(version_of_headers_and_library)
{
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", FIRN_VERSION_MAJOR, FIRN_VERSION_MINOR,
             FIRN_VERSION_PATCH);
    T_STR(firn_version(), text);
    T_STR(firn_version(), FIRN_VERSION); /* as the build says */
}
