/* offenders.h - the first lines that fail a check, and their number. */
#ifndef FIRN_CLI_VERIFY_OFFENDERS_H
#define FIRN_CLI_VERIFY_OFFENDERS_H

#include "cli/verify/lines.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct id {
    uint64_t value;
    uint8_t len; /* of the text; 0: a number */
    char text[LINES_TEXT_MAX];
};

struct offender {
    uint64_t where, other_where; /* the line, and the earlier line that it conflicts with */
    struct id id, other;
};

struct offenders { /* the first `max` of `count` by line */
    struct offender *list;
    size_t len, max;
    uint64_t count;
};

static inline void id_set_text(struct id *id, const char *p, size_t len)
{
    id->len = (uint8_t)len;
    memcpy(id->text, p, len);
}

/* FIRN_ENOMEM. */
int offenders_init(struct offenders *o, size_t max);
void offenders_done(struct offenders *o);

/* Counts one at line `where`: room for it, or NULL if it is not among the first. */
struct offender *offenders_room(struct offenders *o, uint64_t where);

/* By line, from now on; nothing is added after that. */
void offenders_sort(struct offenders *o);

#endif
