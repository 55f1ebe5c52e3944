/*
 * The process that runs a command under a deadline; see runner.h.
 * Orders go through one pipe, results come back through another, and the deadline is in a page of
 * shared memory. The end of the order pipe also tells the runner that firn is gone.
 */
#include "cli/admin/runner.h"
#include "cli/child.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ENV_MAX = 3, ENV_BUF = 160 };

struct runner_shared {
    _Atomic uint64_t until_ms;
    _Atomic int group; /* of the command; 0: none runs */
};

struct order {
    enum { ORDER_START, ORDER_STOP } what;
    char env[ENV_MAX][ENV_BUF];
};

static uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000 + 1;
}

/* ---- in the runner ---- */

struct supervisor {
    struct runner_shared *shared;
    char **argv;
    uint64_t grace_ms;
    int order_fd, result_fd, signal_fd;
    bool terminal; /* firn has the terminal: the command gets it while it runs */
    sigset_t before;
};

/* Supervise the command until it has ended. */
static struct runner_result supervise(const struct supervisor *s, pid_t group)
{
    struct runner_result result = { 0 };
    bool stop = false, killed = false;
    uint64_t kill_at = 0;
    struct pollfd fds[2] = { { .fd = s->signal_fd, .events = POLLIN },
                             { .fd = s->order_fd, .events = POLLIN } };
    for (;;) {
        int status;
        siginfo_t info = { 0 }; /* until it is reaped, no other group can get its number */
        waitid(P_PID, (id_t)group, &info, WEXITED | WSTOPPED | WNOHANG | WNOWAIT);
        if (info.si_pid == group && info.si_code == CLD_STOPPED) {
            waitpid(group, &status, WNOHANG | WUNTRACED);
            if (info.si_status !=
                SIGSTOP) /* Ctrl-Z: a command that holds a lock must not be suspended */
                kill(-group, SIGCONT);
        } else if (info.si_pid == group) {
            atomic_store(&s->shared->group, 0);
            kill(-group, SIGKILL);
            waitpid(group, &status, 0);
            result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
            return result;
        }
        uint64_t now = now_ms(), until = atomic_load(&s->shared->until_ms);
        if (!result.forced && (stop || now + s->grace_ms >= until)) {
            kill_at = stop && now + s->grace_ms < until ? now + s->grace_ms : until;
            result.forced = true;
            if (now < kill_at) { /* else a stopped command would run again for a moment, too late */
                kill(-group, SIGTERM);
                kill(-group, SIGCONT);
            }
        }
        if (result.forced && !killed && now >= kill_at) {
            kill(-group, SIGKILL);
            killed = true;
        }
        uint64_t next = killed ? now + 1000 : result.forced ? kill_at : until - s->grace_ms;
        int timeout = next <= now ? 0 : next - now > 60000 ? 60000 : (int)(next - now);
        if (poll(fds, 2, timeout) <= 0)
            continue;
        if (fds[0].revents) {
            struct signalfd_siginfo news;
            while (read(s->signal_fd, &news, sizeof news) > 0)
                ;
        }
        if (fds[1].revents) {
            struct order o;
            stop = true; /* the only order while a command runs, or the end of firn */
            if (read(s->order_fd, &o, sizeof o) <= 0)
                fds[1].fd = -1;
        }
    }
}

static void run_one(const struct supervisor *s, const struct order *o)
{
    const char *env[ENV_MAX + 1] = { NULL };
    for (size_t i = 0, n = 0; i < ENV_MAX; i++)
        if (o->env[i][0])
            env[n++] = o->env[i];
    struct child_spec spec = { .argv = (const char *const *)s->argv,
                               .env = env,
                               .mask = &s->before,
                               .death_signal = SIGKILL, /* should the runner be killed, too */
                               .group = true,
                               .terminal = s->terminal };
    pid_t pid = child_spawn(&spec);
    struct runner_result result = { .status = CHILD_NOT_RUN };
    if (pid > 0) {
        atomic_store(&s->shared->group, pid);
        result = supervise(s, pid);
        if (s->terminal)
            tcsetpgrp(STDIN_FILENO, getpgrp());
    }
    if (write(s->result_fd, &result, sizeof result) < 0)
        _exit(0); /* firn has gone */
}

static void runner_main(struct supervisor *s)
{
    sigset_t all;
    struct order o;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &s->before);
    sigemptyset(&all);
    sigaddset(&all, SIGCHLD);
    s->signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    s->terminal = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    if (s->signal_fd < 0)
        _exit(1);
    while (read(s->order_fd, &o, sizeof o) == sizeof o)
        if (o.what == ORDER_START) /* a stop that came too late: it had ended by itself */
            run_one(s, &o);
    _exit(0);
}

/* ---- in firn ---- */

int runner_open(struct runner *r, char **argv, uint64_t grace_ms)
{
    int order[2] = { -1, -1 }, result[2] = { -1, -1 };
    struct runner_shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    *r = (struct runner){ .order_fd = -1, .result_fd = -1 };
    if (shared == MAP_FAILED || pipe2(order, O_CLOEXEC) != 0 || pipe2(result, O_CLOEXEC) != 0) {
        say_trouble("cannot prepare to run a command: %s", strerror(errno));
        return -1;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        say_trouble("cannot start a process: %s", strerror(errno));
        return -1;
    }
    if (pid == 0) {
        struct supervisor s = { .shared = shared,
                                .argv = argv,
                                .grace_ms = grace_ms,
                                .order_fd = order[0],
                                .result_fd = result[1] };
        close(order[1]);
        close(result[0]);
        runner_main(&s);
    }
    close(order[0]);
    close(result[1]);
    *r = (struct runner){ shared, order[1], result[0], pid };
    return 0;
}

static bool send_order(struct runner *r, const struct order *o)
{
    /* smaller than PIPE_BUF: written completely or not at all */
    return write(r->order_fd, o, sizeof *o) == sizeof *o;
}

bool runner_start(struct runner *r, const char *const env[3], uint64_t until_ms)
{
    struct order o = { .what = ORDER_START };
    for (size_t i = 0; i < ENV_MAX; i++)
        snprintf(o.env[i], ENV_BUF, "%s", env[i]);
    atomic_store(&r->shared->until_ms, until_ms);
    return send_order(r, &o);
}

void runner_extend(struct runner *r, uint64_t until_ms)
{
    atomic_store(&r->shared->until_ms, until_ms);
}

void runner_stop(struct runner *r)
{
    struct order o = { .what = ORDER_STOP };
    if (!send_order(r, &o))
        kill(r->pid, SIGKILL); /* the kernel then kills the command */
}

void runner_signal(struct runner *r, int sig)
{
    int group = r->shared ? atomic_load(&r->shared->group) : 0;
    if (group > 0)
        kill(-group, sig);
}

bool runner_wait(struct runner *r, uint64_t timeout_ms, struct runner_result *out)
{
    struct pollfd fd = { .fd = r->result_fd, .events = POLLIN };
    if (poll(&fd, 1, timeout_ms > 60000 ? 60000 : (int)timeout_ms) <= 0)
        return false;
    if (read(r->result_fd, out, sizeof *out) != sizeof *out)
        *out = (struct runner_result){ .status = 128 + SIGKILL, .gone = true };
    return true;
}

void runner_close(struct runner *r)
{
    if (r->pid <= 0)
        return;
    close(r->order_fd);
    close(r->result_fd);
    while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    munmap(r->shared, sizeof *r->shared);
    *r = (struct runner){ .order_fd = -1, .result_fd = -1 };
}
