/* firn bench: runs one of its three benches. */
#include "cli/bench/bench_lib.h"
#include "cli/bench/bench_load.h"
#include "cli/bench/bench_url.h"
#include "cli/commands.h"

#include <string.h>

int cmd_bench(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "lib") == 0)
        return bench_lib(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "load") == 0)
        return bench_load(argc - 1, argv + 1);
    return bench_url(argc, argv);
}
