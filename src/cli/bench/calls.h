/*
 * calls.h - the load generator for libraries: threads that call a function again and again.
 * Closed loop: each thread calls again as soon as the last call returns. Open loop (a rate): call
 * number i is due at start + i / rate, and its latency counts from then. Calls that take less than
 * a microsecond are timed 64 at a time, because reading a clock costs more than they do. One run at
 * a time.
 */
#ifndef FIRN_CLI_BENCH_CALLS_H
#define FIRN_CLI_BENCH_CALLS_H

#include "cli/bench/load.h"

/* The next ID; not 0: it failed, see `why`. Called from several threads. */
typedef int calls_fn(void *user, uint64_t *out_id, char why[240]);

/* Of the plan: threads, warmup_ns, run_ns, requests_max, rate, check, ids_max, stop, live.
 * FIRN_ENOMEM. */
FIRN_MUSTUSE int calls_run(const struct load_plan *plan, calls_fn *next, void *user,
                           struct load_result *out);

#endif
