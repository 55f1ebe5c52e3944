/* bench_lib.h - `firn bench lib`: how long each way to make, write and read an ID takes here. */
#ifndef FIRN_CLI_BENCH_BENCH_LIB_H
#define FIRN_CLI_BENCH_BENCH_LIB_H

#include "cli/options.h"

extern const struct usage bench_lib_usage;

/* argv[0] is "lib"; the answer is the exit status. */
int bench_lib(int argc, char **argv);

#endif
