/* Operands: from argv, or line by line from standard input. */
#include "cli/operands.h"
#include "cli/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

int operands_init(struct operands *o, char *const *list, int n)
{
    static char dash[] = "-";
    static char *const only_stdin[] = { dash };
    *o = (struct operands){ .list = n > 0 ? list : only_stdin, .n = n > 0 ? n : 1 };
    return lines_init(&o->lines) == 0 ? -1 : say_trouble("out of memory");
}

void operands_done(struct operands *o)
{
    lines_done(&o->lines);
}

static void start_reading(struct operands *o)
{
    if (isatty(STDIN_FILENO) == 1)
        say_note("reading from the terminal, one per line; end with Ctrl-D");
    lines_start(&o->lines, STDIN_FILENO);
    o->reading = true;
    o->line = 0;
}

static int next_line(struct operands *o, const char **out_p, size_t *out_len)
{
    for (;;) {
        int got = lines_next(&o->lines, out_p, out_len);
        if (got < 0) {
            say_trouble("cannot read standard input after line %" PRIu64 ": %s", o->line,
                        o->lines.why);
            return OPERANDS_ERROR;
        }
        if (got == LINES_END)
            return OPERANDS_END;
        o->line++;
        if (got == LINES_LONG)
            return OPERANDS_LONG;
        while (*out_len > 0 && (**out_p == ' ' || **out_p == '\t'))
            ++*out_p, --*out_len;
        while (*out_len > 0 && ((*out_p)[*out_len - 1] == ' ' || (*out_p)[*out_len - 1] == '\t'))
            --*out_len;
        if (*out_len > 0)
            return OPERANDS_ONE;
    }
}

int operands_next(struct operands *o, const char **out_p, size_t *out_len)
{
    for (;;) {
        if (o->reading) {
            int r = next_line(o, out_p, out_len);
            if (r != OPERANDS_END)
                return r;
            o->reading = false;
        }
        if (o->i == o->n)
            return OPERANDS_END;
        const char *text = o->list[o->i++];
        if (strcmp(text, "-") == 0) {
            start_reading(o);
            continue;
        }
        *out_p = text;
        *out_len = strlen(text);
        return *out_len > LINES_TEXT_MAX ? OPERANDS_LONG : OPERANDS_ONE;
    }
}

const char *operands_where(struct operands *o)
{
    o->where_[0] = '\0';
    if (o->reading)
        snprintf(o->where_, sizeof o->where_, "line %" PRIu64 ": ", o->line);
    return o->where_;
}
