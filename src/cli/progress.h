/*
 * progress.h - a progress line on stderr for long commands. It appears on a terminal only, and only
 * once the work has taken a moment, so that logs and quick commands never show it. One thread.
 */
#ifndef FIRN_CLI_PROGRESS_H
#define FIRN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool on;          /* stderr is a terminal */
    bool drawn;       /* there is a line to clear */
    const char *what; /* "reading"; borrowed */
    uint64_t total;   /* 0: unknown, then a count and a rate are shown */
    uint64_t phase_ns, next_ns;
};

void progress_init(struct progress *p);

/* A new phase of the work; `total` in the unit that progress_step() counts `done` in. */
void progress_phase(struct progress *p, const char *what, uint64_t total);

/* Cheap enough for every block of work: it draws at most ten times per second. `count` is in
 * items. */
void progress_step(struct progress *p, uint64_t done, uint64_t count);

/* Remove the line, so that results and errors stand alone. May be called twice. */
void progress_clear(struct progress *p);

#endif
