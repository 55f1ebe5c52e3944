/* Width and colours of the terminal on stdout. */
#include "cli/term.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool is_set(const char *variable)
{
    const char *v = getenv(variable);
    return v && *v;
}

bool term_colour(void)
{
    static int known; /* 1 yes, -1 no */
    if (known == 0) {
        const char *term = getenv("TERM"), *force = getenv("CLICOLOR_FORCE");
        bool capable = isatty(STDOUT_FILENO) == 1 && !(term && strcmp(term, "dumb") == 0);
        if (force && *force && strcmp(force, "0") != 0)
            capable = true;
        known = capable && !is_set("NO_COLOR") ? 1 : -1;
    }
    return known == 1;
}

size_t term_width(void)
{
    struct winsize w;
    if (isatty(STDOUT_FILENO) != 1)
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

const char *term_style(enum term_style s)
{
    static const char *const sgr[] = {
        [TERM_PLAIN] = "\033[0m", [TERM_BOLD] = "\033[1m", [TERM_DIM] = "\033[2m",
        [TERM_GOOD] = "\033[32m", [TERM_BAD] = "\033[31m",
    };
    return term_colour() ? sgr[s] : "";
}

const char *term_hue(size_t i)
{
    static const char *const sgr[] = { "\033[36m", "\033[33m", "\033[35m",
                                       "\033[32m", "\033[34m", "\033[31m" };
    return term_colour() ? sgr[i % (sizeof sgr / sizeof sgr[0])] : "";
}
