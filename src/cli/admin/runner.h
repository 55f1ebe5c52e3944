/*
 * runner.h - a command that may run only until a deadline, which its owner keeps extending. A
 * separate process starts the command in a new process group and ends that group in time, whatever
 * happens to firn meanwhile: when firn hangs in a store, is stopped by SIGSTOP or killed, the
 * runner still has the deadline, and sees that firn is gone. It is forked before firn opens
 * anything, so the command inherits what firn's caller had open and nothing else. One thread.
 *
 * SIGTERM comes `grace_ms` before the deadline, SIGKILL at the deadline; when the owner orders a
 * stop or is gone, SIGTERM at once and SIGKILL after the grace time, or at the deadline if that is
 * earlier. When the command ends, whatever is left of its group is killed: it was covered by the
 * same deadline.
 */
#ifndef FIRN_CLI_ADMIN_RUNNER_H
#define FIRN_CLI_ADMIN_RUNNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct runner_shared;

struct runner {
    struct runner_shared *shared;
    int order_fd, result_fd;
    pid_t pid;
};

struct runner_result {
    int status;  /* as a shell has it: the exit status, or 128 + the signal */
    bool forced; /* it was ended by the deadline, or by runner_stop() */
    bool gone;   /* the runner was killed, and the command with it: nothing can be run any more */
};

/* argv ends with NULL and is borrowed until runner_close(). -1: failed, reported. */
int runner_open(struct runner *r, char **argv, uint64_t grace_ms);

/* Start the command with NAME=value texts added to its environment. `until_ms` and all times
 * here are CLOCK_BOOTTIME ms, as member_now_ms(). False: the runner is gone. */
bool runner_start(struct runner *r, const char *const env[3], uint64_t until_ms);

/* Extend the deadline. */
void runner_extend(struct runner *r, uint64_t until_ms);

/* End the command; runner_wait() gets the result. */
void runner_stop(struct runner *r);

/* Send a signal to the command's group; safe in a signal handler. */
void runner_signal(struct runner *r, int sig);

/* Wait up to `timeout_ms` for the command to end. True: *out says how. */
bool runner_wait(struct runner *r, uint64_t timeout_ms, struct runner_result *out);

/* Ends the runner, and the command if there is one. */
void runner_close(struct runner *r);

#endif
