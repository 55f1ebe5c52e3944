/*
 * child.h - starts programs: the only fork-and-exec of firn. child_spawn() starts one; struct child
 * is a program that runs beside firn, with a log, until firn ends it by its process id. Such a
 * child leads a process group of its own, so that Ctrl-C on the terminal reaches firn alone, which
 * ends the children in order; when firn itself is killed, the kernel sends them SIGTERM. One
 * thread, which must live as long as the children do.
 */
#ifndef FIRN_CLI_CHILD_H
#define FIRN_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    CHILD_TEXT_BUF = 512,
    CHILD_PATH_BUF = 4096,
    CHILD_NOT_RUN = 126, /* exit statuses of a child whose program cannot be run, as in shells */
    CHILD_NOT_FOUND = 127,
    CHILD_FOLDER_BUF = 256,
};

/* Find a program of firn: beside the running firn, then in the libexec folder of its installation.
 * False: in neither; `out` is then the plain name, which exec looks for in PATH. */
bool child_find(const char *name, char out[CHILD_PATH_BUF]);

struct child_spec {
    const char *const *argv; /* ends with NULL; argv[0] is a path, or looked for in PATH */
    const char *const *env;  /* NAME=value texts to add, ends with NULL; NULL: none */
    const char
        *log; /* a file that its output is appended to, its input is then empty; NULL: ours */
    const sigset_t *mask; /* signals that it begins with blocked; NULL: as firn has them now */
    int death_signal;     /* that it gets when the calling thread ends; 0: none */
    bool group;           /* it leads a process group of its own */
    bool terminal;        /* that group gets the terminal; SIGTTOU must be blocked */
};

/* Start a program; the process id, or -1 after an error message. A program that cannot be run is a
 * child that ends with CHILD_NOT_FOUND or CHILD_NOT_RUN, after it said so. */
pid_t child_spawn(const struct child_spec *spec);

/* Wait for its end; the exit status as a shell has it: 128 + the signal that ended it. */
int child_wait(pid_t pid);

struct child {
    const char *name;              /* borrowed */
    const char *log;               /* path, borrowed: appended to */
    const char *const *argv;       /* borrowed; as in struct child_spec */
    pid_t pid;                     /* 0: does not run */
    uint64_t started_ms, ended_ms; /* mono_ms() */
    int status;                    /* of wait(2), once it ended */
};

/* Start it. -1: said why. */
int child_start(struct child *c);

/* True once after it ended by itself. */
bool child_ended(struct child *c);

/* "ended with status 1" or "ended by signal 9 (Killed)", and the last line of its log. Returns
 * `out`. */
const char *child_story(const struct child *c, char out[CHILD_TEXT_BUF]);

/* SIGTERM to all that run, SIGKILL to their groups after `grace_ms`; returns when none is left. */
void child_stop(struct child *c, size_t n, uint64_t grace_ms);

/* SIGKILL, as a crash; returns when it has ended. */
void child_kill(struct child *c);

/* Make a folder PREFIX-XXXXXX below TMPDIR for files of children; false: errno says why, `out`
 * which. */
bool child_folder(const char *prefix, char out[CHILD_FOLDER_BUF]);

/* Remove a folder with all that is in it. */
void child_folder_remove(const char *path);

#endif
