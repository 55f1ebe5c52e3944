/* Signals by sigtimedwait(2), and the limit on descriptors. */
#include "daemon/signals.h"
#include "daemon/systemd.h"
#include "platform/mono.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { NOTICE_STEP_MS = 100 };

static void fill(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

void signals_block(void)
{
    sigset_t set;
    fill(&set);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

int signals_wait(uint32_t ms)
{
    sigset_t set;
    struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };
    fill(&set);
    int sig = sigtimedwait(&set, NULL, &t);
    return sig > 0 ? sig : 0;
}

void signals_notice(uint64_t ms)
{
    uint64_t end = mono_ms() + ms;
    for (uint64_t now = mono_ms(); now < end; now = mono_ms()) {
        uint64_t left = end - now;
        int sig = signals_wait((uint32_t)(left < NOTICE_STEP_MS ? left : NOTICE_STEP_MS));
        if (sig == SIGTERM || sig == SIGINT)
            return;
        systemd_watchdog();
    }
}

void descriptors_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR); /* the lowest that is free; not closed by exec */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

uint64_t descriptors_raise(uint64_t want)
{
    struct rlimit l = { 0, 0 };
    if (getrlimit(RLIMIT_NOFILE, &l) != 0)
        return 0;
    rlim_t had = l.rlim_cur;
    if (had >= want)
        return had;
    l.rlim_cur = want < l.rlim_max ? want : l.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &l) == 0 ? l.rlim_cur : had;
}
