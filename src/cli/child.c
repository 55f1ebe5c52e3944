/* See child.h. */
#include "cli/child.h"
#include "cli/say.h"
#include "platform/mono.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { POLL_MS = 10, TAIL_BYTES = 1024 };

bool child_find(const char *name, char out[CHILD_PATH_BUF])
{
    static const char *const below[] = { "", FIRN_LIBEXEC_FROM_BIN "/" };
    char self[CHILD_PATH_BUF / 2];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self);
    const char *slash = n > 0 ? memrchr(self, '/', (size_t)n) : NULL;
    for (size_t i = 0; slash && i < sizeof below / sizeof below[0]; i++) {
        snprintf(out, CHILD_PATH_BUF, "%.*s/%s%s", (int)(slash - self), self, below[i], name);
        if (access(out, X_OK) == 0)
            return true;
    }
    snprintf(out, CHILD_PATH_BUF, "%s", name);
    return false;
}

/* In the child: never returns. */
static void run(const struct child_spec *spec, pid_t parent, int log)
{
    if (spec->group)
        setpgid(0, 0);
    if (spec->death_signal)
        prctl(PR_SET_PDEATHSIG, spec->death_signal);
    if (getppid() != parent) /* it was killed before the line above */
        _exit(CHILD_NOT_RUN);
    if (log >= 0) {
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
    }
    for (const char *const *e = spec->env; e && *e; e++)
        putenv((char *)(uintptr_t)*e);
    if (spec->terminal)
        tcsetpgrp(STDIN_FILENO, getpgrp());
    signal(SIGPIPE, SIG_DFL); /* firn ignores it */
    if (spec->mask)
        sigprocmask(SIG_SETMASK, spec->mask, NULL);
    execvp(spec->argv[0], (char *const *)(uintptr_t)spec->argv);
    int error = errno;
    say_trouble("cannot run '%s': %s", spec->argv[0], strerror(error));
    _exit(error == ENOENT ? CHILD_NOT_FOUND : CHILD_NOT_RUN);
}

pid_t child_spawn(const struct child_spec *spec)
{
    int log = -1;
    if (spec->log) {
        log = open(spec->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        if (log < 0) {
            say_trouble("cannot write %s: %s", spec->log, strerror(errno));
            return -1;
        }
    }
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        run(spec, parent, log);
    if (pid < 0)
        say_trouble("cannot start %s: %s", spec->argv[0], strerror(errno));
    else if (spec->group)
        setpgid(pid, pid); /* parent and child both do it: either may run first */
    if (log >= 0)
        close(log);
    return pid;
}

static int shell_status(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return shell_status(status);
}

int child_start(struct child *c)
{
    sigset_t none;
    sigemptyset(&none);
    struct child_spec spec = {
        .argv = c->argv, .log = c->log, .mask = &none, .death_signal = SIGTERM, .group = true
    };
    pid_t pid = child_spawn(&spec);
    if (pid < 0)
        return -1;
    c->pid = pid;
    c->started_ms = mono_ms();
    return 0;
}

bool child_ended(struct child *c)
{
    siginfo_t info = { 0 }; /* until it is reaped, no other group can get its number */
    if (c->pid == 0 || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != c->pid)
        return false;
    kill(-c->pid, SIGKILL); /* and every process that it started */
    waitpid(c->pid, &c->status, 0);
    c->pid = 0;
    c->ended_ms = mono_ms();
    return true;
}

/* The last line of a file, without its end; "" if there is none. */
static void last_line(const char *path, char *out, size_t room)
{
    char tail[TAIL_BYTES + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out = '\0';
    if (fd < 0)
        return;
    off_t size = lseek(fd, 0, SEEK_END);
    ssize_t n = pread(fd, tail, TAIL_BYTES, size > TAIL_BYTES ? size - TAIL_BYTES : 0);
    close(fd);
    while (n > 0 && (tail[n - 1] == '\n' || tail[n - 1] == ' '))
        n--;
    if (n <= 0)
        return;
    tail[n] = '\0';
    const char *line = strrchr(tail, '\n');
    line = line ? line + 1 : tail;
    char shown[SAY_TEXT_BUF];
    snprintf(out, room, ": %s", say_text(line, strlen(line), shown));
}

const char *child_story(const struct child *c, char out[CHILD_TEXT_BUF])
{
    char line[SAY_TEXT_BUF + 8];
    last_line(c->log, line, sizeof line);
    if (WIFSIGNALED(c->status))
        snprintf(out, CHILD_TEXT_BUF, "ended by signal %d (%s)", WTERMSIG(c->status),
                 strsignal(WTERMSIG(c->status)));
    else
        snprintf(out, CHILD_TEXT_BUF, "ended with status %d%s", WEXITSTATUS(c->status), line);
    return out;
}

static size_t running(struct child *c, size_t n)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        child_ended(&c[i]);
        left += c[i].pid != 0;
    }
    return left;
}

void child_stop(struct child *c, size_t n, uint64_t grace_ms)
{
    uint64_t end = mono_ms() + grace_ms;
    for (size_t i = 0; i < n; i++)
        if (c[i].pid != 0) {
            kill(c[i].pid, SIGTERM);
            kill(c[i].pid, SIGCONT); /* it may be stopped */
        }
    while (running(c, n) > 0) {
        struct timespec pause = { 0, POLL_MS * 1000000 };
        nanosleep(&pause, NULL);
        for (size_t i = 0; mono_ms() >= end && i < n; i++)
            child_kill(&c[i]);
    }
}

void child_kill(struct child *c)
{
    if (c->pid == 0)
        return;
    kill(-c->pid, SIGKILL);
    waitpid(c->pid, &c->status, 0);
    c->pid = 0;
    c->ended_ms = mono_ms();
}

bool child_folder(const char *prefix, char out[CHILD_FOLDER_BUF])
{
    const char *tmp = getenv("TMPDIR");
    snprintf(out, CHILD_FOLDER_BUF, "%.200s/%s-XXXXXX", tmp && *tmp ? tmp : "/tmp", prefix);
    return mkdtemp(out) != NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void child_folder_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
