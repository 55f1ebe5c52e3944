/*
 * say.h - messages of firn on stderr: one line each, beginning with the command's name. An error
 * names the cause and the remedy. Data never goes this way. One thread.
 */
#ifndef FIRN_CLI_SAY_H
#define FIRN_CLI_SAY_H

#include <stddef.h>

/* The exit codes of every command; the man page documents them. */
enum {
    STATUS_OK = 0,
    STATUS_FAILED = 1,  /* a check failed, or an ID was unreadable */
    STATUS_TROUBLE = 2, /* wrong usage, or input or output failed */
};

/* The name that messages begin with, such as "gen"; NULL for firn itself. Borrowed. */
void say_as(const char *command);

/* An error. Returns STATUS_TROUBLE, so that a check reads: return say_trouble(...). */
__attribute__((format(printf, 1, 2))) int say_trouble(const char *fmt, ...);
/* The same, but returns STATUS_FAILED. */
__attribute__((format(printf, 1, 2))) int say_failed(const char *fmt, ...);
/* A hint: shown only if stderr is a terminal. */
__attribute__((format(printf, 1, 2))) void say_note(const char *fmt, ...);
/* A problem that does not stop the command: always shown. */
__attribute__((format(printf, 1, 2))) void say_warning(const char *fmt, ...);

#define SAY_TEXT_BUF 168

/* A user's text as it may stand in such a line: bytes that are not printable as \xNN, a long
 * text truncated. Returns `out`. */
const char *say_text(const char *p, size_t len, char out[SAY_TEXT_BUF]);

#endif
