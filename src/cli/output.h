/*
 * output.h - the end of every command: has all of its data arrived?
 * A reader that went away, as head(1) does, has seen what it wanted: that is no error and makes no
 * noise. A full disk is one. main() ignores SIGPIPE so that both are seen here. One thread.
 */
#ifndef FIRN_CLI_OUTPUT_H
#define FIRN_CLI_OUTPUT_H

#include "wire/json_write.h"

#include <stdio.h>

/* Flush stdout; `status` if that worked or nobody reads any more, else STATUS_TROUBLE, said why. */
int output_finish(int status);

/* 1: nobody reads stdout any more, so there is no point in going on. Asked between two IDs of a long
 * input; it flushes. */
bool output_gone(void);

/* Write all of it to stdout's descriptor, past stdio. -1: go on; otherwise the status to end with. */
int output_block(const char *p, size_t len);

enum { OUTPUT_JSON_MAX = 1 << 30 }; /* bytes of one JSON document in memory */

/* Writes a JSON document and a newline, and frees the buffer, which can be used again. Ends the
 * process where there was no memory for it. */
void output_json(struct buf *b, FILE *out);

/* The same in the middle of a long document: writes what there is so far. */
void output_json_part(struct buf *b, FILE *out);

#endif
