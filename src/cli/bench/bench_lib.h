/* bench_lib.h - `firn bench lib`: measures how long each way to generate, format and parse an ID
 * takes. */
#ifndef FIRN_CLI_BENCH_BENCH_LIB_H
#define FIRN_CLI_BENCH_BENCH_LIB_H

/* argv[0] is "lib"; the return value is the exit status. */
int bench_lib(int argc, char **argv);

#endif
