/* A trace: parties, steps and their states. */
#include "cli/lab/trace.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lab_trace_init(struct lab_trace *t, const char *lab, uint64_t seed)
{
    *t = (struct lab_trace){ .lab = lab, .seed = seed };
}

void lab_trace_done(struct lab_trace *t)
{
    free(t->step);
    *t = (struct lab_trace){ 0 };
}

int lab_trace_party(struct lab_trace *t, const char *name)
{
    if (t->parties == LAB_PARTIES_MAX)
        abort(); /* a bug of a player */
    snprintf(t->party[t->parties], LAB_NAME_BUF, "%s", name);
    return (int)t->parties++;
}

void lab_trace_field(struct lab_trace *t, const char *name)
{
    if (t->fields == LAB_FIELDS_MAX)
        abort();
    t->field[t->fields++] = name;
}

struct lab_step *lab_trace_add(struct lab_trace *t, enum lab_kind kind, const char *event, int from,
                               int to, uint64_t at_ms)
{
    static struct lab_step nowhere; /* the step that a full trace writes to */
    struct lab_step *s = &nowhere;
    if (t->steps == t->room && !t->full) {
        size_t room = t->room ? 2 * t->room : 64;
        struct lab_step *more = room > LAB_STEPS_MAX ? NULL : realloc(t->step, room * sizeof *more);
        if (more) {
            t->step = more;
            t->room = room;
        } else {
            t->full = true;
        }
    }
    if (t->steps < t->room) {
        s = &t->step[t->steps];
        *s = t->steps ? t->step[t->steps - 1] : (struct lab_step){ 0 };
        t->steps++;
    }
    s->kind = kind;
    s->event = event;
    s->from = from;
    s->to = to;
    s->at_ms = at_ms;
    s->term = s->index = 0;
    s->label[0] = s->why[0] = '\0';
    return s;
}

void lab_label(struct lab_step *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->label, sizeof s->label, fmt, ap);
    va_end(ap);
}

void lab_why(struct lab_step *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, ap);
    va_end(ap);
}

void lab_cell(struct lab_step *s, int party, unsigned field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->cell[party][field], LAB_CELL_BUF, fmt, ap);
    va_end(ap);
}

size_t lab_trace_find(const struct lab_trace *t, size_t from, const char *event)
{
    while (from < t->steps && strcmp(t->step[from].event, event) != 0)
        from++;
    return from < t->steps ? from : t->steps;
}
