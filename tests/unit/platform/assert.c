/* A broken invariant ends the process, in every build, with a line that says which one and with
 * which values. */
#include "t.h"

#include "platform/assert.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void break_plain(void)
{
    unsigned position = 5;
    firn_assert(position < 5);
}

static void break_with_values(void)
{
    unsigned slot = 17;
    firn_assert(slot == 0, "slot=%u until=%s", slot, "noon");
}

static void break_with_much_to_say(void)
{
    char text[4000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    firn_assert(text[0] == '\0', "%s", text);
}

/* Runs `fn` in a child, without a core file, and returns what it wrote to stderr. */
static const char *dies(void (*fn)(void))
{
    static char said[8192];
    int to[2];
    T_EQ(pipe(to), 0);
    pid_t pid = fork();
    T_OK(pid >= 0);
    if (pid == 0) {
        dup2(to[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    close(to[1]);
    size_t n = 0;
    ssize_t got;
    while (n < sizeof(said) - 1 && (got = read(to[0], said + n, sizeof(said) - 1 - n)) > 0)
        n += (size_t)got;
    said[n] = '\0';
    close(to[0]);
    int status;
    T_EQ(waitpid(pid, &status, 0), pid);
    T_OK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "status %d", status);
    return said;
}

T_TEST(assert_names_expression_and_place)
{
    const char *said = dies(break_plain);
    T_OK(strstr(said, "firn: invariant broken: position < 5 (") != NULL, "it said: %s", said);
    T_OK(strstr(said, "tests/unit/platform/assert.c:") != NULL, "it said: %s", said);
    T_OK(strstr(said, ", break_plain)\n") != NULL, "it said: %s", said);
}

T_TEST(assert_shows_values)
{
    const char *said = dies(break_with_values);
    T_OK(strstr(said, "invariant broken: slot == 0: slot=17 until=noon (") != NULL, "it said: %s",
         said);
}

T_TEST(assert_bounds_its_line)
{
    const char *said = dies(break_with_much_to_say);
    T_OK(strlen(said) < 1100 && strchr(said, '\n') == said + strlen(said) - 1, "it said: %s", said);
}

T_TEST(assert_holds)
{
    int evaluated = 0;
    firn_assert(++evaluated == 1, "evaluated=%d", evaluated);
    T_EQ(evaluated, 1);
}
