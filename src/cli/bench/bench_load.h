/* bench_load.h - `firn bench load`: loads a server on this machine and measures it. */
#ifndef FIRN_CLI_BENCH_BENCH_LOAD_H
#define FIRN_CLI_BENCH_BENCH_LOAD_H

/* argv[0] is "load". 0: done. 1: answers were errors or missing, or IDs repeat or are not
 * rising. 2: wrong usage, or there is no server. */
int bench_load(int argc, char **argv);

#endif
