/* Signals that wait until the main thread asks for them. */
#include "t.h"

#include "daemon/signals.h"
#include "platform/mono.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

T_TEST(signals_are_waited_for)
{
    static const int all[] = { SIGTERM, SIGINT, SIGHUP };
    signals_block();
    T_EQ(signals_wait(0), 0);
    for (size_t i = 0; i < T_LEN(all); i++) {
        T_EQ(kill(getpid(), all[i]), 0);
        T_EQ(signals_wait(10000), all[i]);
    }
    T_EQ(kill(getpid(), SIGPIPE), 0); /* ignored: the test goes on */
    T_EQ(kill(getpid(), SIGXFSZ), 0);
}

T_TEST(signals_notice_ends_early_at_a_second_signal)
{
    uint64_t begin = mono_ms();
    signals_block();
    signals_notice(0);
    T_EQ(kill(getpid(), SIGTERM), 0);
    signals_notice(600000);
    T_OK(mono_ms() - begin < 600000);
    T_EQ(kill(getpid(), SIGHUP), 0); /* no reason to hurry */
    signals_notice(20);
    T_EQ(signals_wait(0), 0);
}

T_TEST(descriptors_are_filled_up)
{
    const int in = dup(STDIN_FILENO);
    T_OK(in >= 0);
    close(STDIN_FILENO);
    descriptors_standard();
    T_OK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    const int next = dup(in);
    T_OK(next == in + 1); /* nothing is left open above */
    descriptors_standard();
    T_EQ(fcntl(next + 1, F_GETFD), -1);
    T_EQ(dup2(in, STDIN_FILENO), STDIN_FILENO);
    close(in);
    close(next);
}

T_TEST(descriptors_are_raised_and_never_lowered)
{
    struct rlimit before, after;
    T_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    T_EQ(descriptors_raise(1), before.rlim_cur);
    T_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
    T_EQ(after.rlim_cur, before.rlim_cur);
    T_EQ(descriptors_raise(UINT64_MAX), before.rlim_max); /* what it got, not what it asked for */
    T_EQ(getrlimit(RLIMIT_NOFILE, &after), 0);
    T_EQ(after.rlim_cur, before.rlim_max);
}
