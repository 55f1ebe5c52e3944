/*
 * regular_file.h - opens a file that is read while the server serves: never waits. A FIFO in its
 * place would hold the main thread, and with it reloads and SIGTERM, until somebody writes to it.
 */
#ifndef FIRN_DAEMON_REGULAR_FILE_H
#define FIRN_DAEMON_REGULAR_FILE_H

#include <stdio.h>

/* For reading. NULL: errno is set, and *why says what is wrong. FIFOs, sockets and directories are
 * refused; devices (/dev/null) are read as far as they have bytes. */
FILE *regular_file_open(const char *path, const char **why);

#endif
