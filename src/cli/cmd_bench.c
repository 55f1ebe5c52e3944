/* firn bench: which of the two benches is meant. */
#include "cli/bench_lib.h"
#include "cli/bench_load.h"
#include "cli/commands.h"
#include "cli/say.h"

#include <string.h>

static const struct opt opts[] = { { .name = NULL } };

const struct usage bench_usage = {
    .name = "bench",
    .examples = "  firn bench lib                                                the library\n"
                "  firn bench load --http http://127.0.0.1:9001/generate        a server\n",
    .synopsis = "firn bench lib [option...]\n"
                "       firn bench load [option...]",
    .about = "firn bench lib --help and firn bench load --help tell more.\n",
    .operands = "lib load",
    .opts = opts,
};

int cmd_bench(int argc, char **argv)
{
    char shown[SAY_TEXT_BUF];
    if (argc > 1 && strcmp(argv[1], "lib") == 0)
        return bench_lib(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "load") == 0)
        return bench_load(argc - 1, argv + 1);
    int operands, status = options_parse(&bench_usage, argc, argv, NULL, &operands);
    if (status >= 0)
        return status;
    if (operands == 0)
        return say_trouble("which one? firn bench lib, or firn bench load");
    say_text(argv[1], strlen(argv[1]), shown);
    return say_trouble("'%s' is neither lib nor load", shown);
}
