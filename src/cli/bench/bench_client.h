/*
 * bench_client.h - firn:// addresses for firn bench: libfirn-client in any of its modes, called
 * from threads. A firn built without that library reports this. One thread.
 */
#ifndef FIRN_CLI_BENCH_BENCH_CLIENT_H
#define FIRN_CLI_BENCH_BENCH_CLIENT_H

#include "cli/bench/bench_target.h"

/* The address begins with firn:// or firns://. */
bool bench_client_known(const char *address);

/* Run the plan's threads on one client. 0: `out` is filled; otherwise the status to exit with,
 * after a message. */
int bench_client_run(const char *url, bool remote, const struct load_plan *plan,
                     struct load_result *out);

#endif
