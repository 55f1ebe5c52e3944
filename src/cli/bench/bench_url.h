/* bench_url.h - `firn bench URL...`: loads servers, shows progress, checks every ID, saves and
 * compares runs. */
#ifndef FIRN_CLI_BENCH_BENCH_URL_H
#define FIRN_CLI_BENCH_BENCH_URL_H

#include "cli/options.h"

extern const struct usage bench_usage;

/* argv[0] is "bench". 0: done. 1: answers were errors or missing, or IDs repeat. 2: wrong usage,
 * or there is no server. */
int bench_url(int argc, char **argv);

#endif
