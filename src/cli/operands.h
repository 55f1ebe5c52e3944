/*
 * operands.h - the operands of a command or, for `-` or none, the lines of standard input. Empty
 * lines are skipped, blanks around a line are not part of it. One thread.
 */
#ifndef FIRN_CLI_OPERANDS_H
#define FIRN_CLI_OPERANDS_H

#include "cli/verify/lines.h"

struct operands {
    char *const *list;
    int n, i;
    bool reading; /* standard input */
    uint64_t line;
    struct lines lines;
    char where_[48];
};

/* `list` is borrowed. STATUS_TROUBLE after an error message if there is no memory; else -1. */
int operands_init(struct operands *o, char *const *list, int n);
void operands_done(struct operands *o);

enum { OPERANDS_END = 0, OPERANDS_ONE = 1, OPERANDS_LONG = 2, OPERANDS_ERROR = 3 };

/* The next text, valid until the next call. OPERANDS_LONG: it is longer than any ID
 * (LINES_TEXT_MAX) and is not given. OPERANDS_ERROR: input failed, reported. */
int operands_next(struct operands *o, const char **out_p, size_t *out_len);

/* "line 3: " for a text that was read, "" for an operand. */
const char *operands_where(struct operands *o);

#endif
