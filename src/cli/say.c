/* Messages on stderr. */
#include "cli/say.h"
#include "cli/escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *speaker;

void say_as(const char *command)
{
    speaker = command;
}

static void say(const char *before, const char *fmt, va_list args)
{
    fflush(stdout); /* so that on a terminal an error follows the data before it */
    fprintf(stderr, "firn%s%s: %s", speaker ? " " : "", speaker ? speaker : "", before);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
}

int say_trouble(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("", fmt, args);
    va_end(args);
    return STATUS_TROUBLE;
}

int say_failed(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("", fmt, args);
    va_end(args);
    return STATUS_FAILED;
}

void say_note(const char *fmt, ...)
{
    if (isatty(STDERR_FILENO) != 1)
        return;
    va_list args;
    va_start(args, fmt);
    say("note: ", fmt, args);
    va_end(args);
}

void say_warning(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    say("warning: ", fmt, args);
    va_end(args);
}

const char *say_text(const char *p, size_t len, char out[SAY_TEXT_BUF])
{
    static const char cut[] = "...";
    size_t used = 0, room = SAY_TEXT_BUF - sizeof cut;
    for (size_t i = 0, n; i < len; i += n ? n : 1) {
        n = escape_shown_len(p + i, len - i);
        size_t need = n ? n : 4;
        if (used + need > room) {
            memcpy(out + used, cut, sizeof cut);
            return out;
        }
        if (n)
            memcpy(out + used, p + i, n);
        else
            snprintf(out + used, 5, "\\x%02x", (unsigned char)p[i]);
        used += need;
    }
    out[used] = '\0';
    return out;
}
