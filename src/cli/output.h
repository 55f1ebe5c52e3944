/*
 * output.h - standard output: checks at the end of a command that all data was written. A reader
 * that closes the pipe early, as head(1) does, is no error and causes no message; a full disk is an
 * error. main() ignores SIGPIPE so that both are seen here. One thread.
 */
#ifndef FIRN_CLI_OUTPUT_H
#define FIRN_CLI_OUTPUT_H

#include "wire/json_write.h"

#include <stdio.h>

/* Flush stdout; `status` if that worked or the reader closed it, else STATUS_TROUBLE after a
 * message. */
int output_finish(int status);

/* True: stdout is closed or failed, so that a long command can stop. It flushes. */
bool output_gone(void);

/* Write all of it to the descriptor of stdout, without stdio's buffer. -1: go on; otherwise the
 * status to end with. */
int output_block(const char *p, size_t len);

enum { OUTPUT_JSON_MAX = 1 << 30 }; /* bytes of one JSON document in memory */

/* Writes a JSON document and a newline, and frees the buffer, which can be used again. Ends the
 * process where there was no memory for it. */
void output_json(struct buf *b, FILE *out);

/* The same in the middle of a long document: writes what there is so far. */
void output_json_part(struct buf *b, FILE *out);

#endif
