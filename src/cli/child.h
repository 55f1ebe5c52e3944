/*
 * child.h - programs that firn starts beside itself and ends again, each by its process id.
 * A child leads a process group of its own, so that Ctrl-C on the terminal reaches firn alone, which ends
 * them in order; when firn itself is killed, the kernel sends them SIGTERM. Their output goes to a log.
 * One thread, which must live as long as they do.
 */
#ifndef FIRN_CLI_CHILD_H
#define FIRN_CLI_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CHILD_TEXT_BUF = 512 };

struct child {
    const char *name;              /* borrowed */
    const char *log;               /* path, borrowed: appended to */
    const char *const *argv;       /* borrowed; argv[0] is a path or looked for in PATH */
    pid_t pid;                     /* 0: does not run */
    uint64_t started_ms, ended_ms; /* CLOCK_MONOTONIC */
    int status;                    /* of wait(2), once it ended */
};

/* Start it. -1: said why. */
int child_start(struct child *c);

/* True once after it ended by itself. */
bool child_ended(struct child *c);

/* "exit status 1" or "signal 9 (Killed)", and the last line of its log. Returns `out`. */
const char *child_story(const struct child *c, char out[CHILD_TEXT_BUF]);

/* SIGTERM to all that run, SIGKILL to their groups after `grace_ms`; returns when none is left. How many
 * had to be killed. */
size_t child_stop(struct child *c, size_t n, uint64_t grace_ms);

uint64_t child_now_ms(void);

#endif
