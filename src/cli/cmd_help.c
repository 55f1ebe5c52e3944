/* firn help: all commands, or one command's help. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/term.h"
#include "cli/words.h"

#include <stdio.h>
#include <string.h>

static const struct opt opts[] = { { .name = NULL } };

const struct usage help_usage = {
    .name = "help",
    .examples = "  firn help            all commands\n"
                "  firn help gen        the help of firn gen\n",
    .synopsis = "firn help [COMMAND]",
    .about = "Shows how to use firn, or one of its commands.\n",
    .operands = "@commands",
    .opts = opts,
};

static void overview(void)
{
    const char *bold = term_style(TERM_BOLD), *plain = term_style(TERM_PLAIN);
    printf("%sExamples:%s\n"
           "  firn gen ulid -n 10                  ten ULIDs\n"
           "  firn inspect 1541815603606036480     what is this ID, and when was it made?\n"
           "  firn convert --from uuid --to ulid 017f22e2-79b0-7cc3-98c4-dc0c0c07398f\n"
           "  firn layout explain twitter          the bits, the rate, the day it runs out\n"
           "  firn gen uuidv7 -n 1M | firn verify  does any ID occur twice?\n"
           "\n%sCommands:%s\n",
           bold, plain, bold, plain);
    for (const struct command *c = commands; c->name; c++)
        printf("  %s%-11s%s %s\n", term_hue(0), c->name, plain, c->summary);
    printf(
        "\n"
        "firn COMMAND --help shows the options of a command. Data goes to stdout, messages to\n"
        "stderr; --json is for programs.\n"
        "Exit status: 0 done, 1 a check failed or an ID was unreadable, 2 wrong usage, or input\n"
        "or output failed.\n");
}

int cmd_help(int argc, char **argv)
{
    char unused;
    int operands = 0;
    /* `firn --help` and `firn` without arguments arrive here as well. */
    bool asked = argc > 0 && strcmp(argv[0], "help") == 0;
    int r = asked ? options_parse(&help_usage, argc, argv, &unused, &operands) : -1;
    if (r >= 0)
        return r;
    if (operands == 0) {
        overview();
        return output_finish(STATUS_OK);
    }
    const struct command *c = command_find(argv[1]);
    if (!c)
        return words_unknown("unknown command", argv[1], "@commands", "firn help lists them");
    options_help(c->usage);
    return output_finish(STATUS_OK);
}
