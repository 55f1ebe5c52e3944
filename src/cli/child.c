#include "cli/child.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_NOT_RUN = 126, POLL_MS = 10, TAIL_BYTES = 1024 };

uint64_t child_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void run(const struct child *c, pid_t parent, int log)
{
    sigset_t none;
    int nothing = open("/dev/null", O_RDONLY);
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) /* it was killed before the line above */
        _exit(STATUS_NOT_RUN);
    dup2(nothing, STDIN_FILENO);
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execvp(c->argv[0], (char *const *)(uintptr_t)c->argv);
    fprintf(stderr, "cannot run %s: %s\n", c->argv[0], strerror(errno));
    _exit(STATUS_NOT_RUN);
}

int child_start(struct child *c)
{
    int log = open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (log < 0) {
        say_trouble("cannot write %s: %s", c->log, strerror(errno));
        return -1;
    }
    pid_t parent = getpid();
    fflush(NULL);
    c->pid = fork();
    if (c->pid == 0)
        run(c, parent, log);
    close(log);
    if (c->pid < 0) {
        c->pid = 0;
        say_trouble("cannot start %s: %s", c->name, strerror(errno));
        return -1;
    }
    setpgid(c->pid, c->pid); /* both do it: whoever comes first */
    c->started_ms = child_now_ms();
    return 0;
}

bool child_ended(struct child *c)
{
    siginfo_t info = { 0 }; /* looked at first: while it is not reaped, the group is ours */
    if (c->pid == 0 || waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != c->pid)
        return false;
    kill(-c->pid, SIGKILL); /* what it started must not stay behind */
    waitpid(c->pid, &c->status, 0);
    c->pid = 0;
    c->ended_ms = child_now_ms();
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

size_t child_stop(struct child *c, size_t n, uint64_t grace_ms)
{
    uint64_t end = child_now_ms() + grace_ms;
    size_t killed = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i].pid != 0) {
            kill(c[i].pid, SIGTERM);
            kill(c[i].pid, SIGCONT); /* somebody may have stopped it */
        }
    while (running(c, n) > 0) {
        struct timespec pause = { 0, POLL_MS * 1000000 };
        nanosleep(&pause, NULL);
        if (child_now_ms() < end)
            continue;
        for (size_t i = 0; i < n; i++)
            if (c[i].pid != 0) {
                kill(-c[i].pid, SIGKILL);
                waitpid(c[i].pid, &c[i].status, 0);
                c[i].pid = 0;
                killed++;
            }
    }
    return killed;
}
