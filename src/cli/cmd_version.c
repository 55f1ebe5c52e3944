/* firn version: prints the version. */
#include "cli/commands.h"
#include "wire/json_write.h"
#include "cli/output.h"
#include "cli/say.h"

struct version {
    bool json;
};

static const struct opt opts[] = { OPT_JSON(struct version, json), { .name = NULL } };

const struct usage version_usage = {
    .name = "version",
    .examples = "  firn version\n"
                "  firn --version\n",
    .synopsis = "firn version [--json]",
    .about = "Prints the version.\n",
    .opts = opts,
};

int cmd_version(int argc, char **argv)
{
    struct version v = { 0 };
    int operands, r = options_parse(&version_usage, argc, argv, &v, &operands);
    if (r >= 0)
        return r;
    if (operands > 0)
        return say_trouble("unexpected operand: firn version takes --json only");
    if (v.json) {
        struct buf j;
        buf_init(&j, OUTPUT_JSON_MAX);
        json_begin(&j, NULL, '{');
        json_text(&j, "version", FIRN_VERSION);
        json_end(&j, '}');
        output_json(&j, stdout);
    } else {
        puts("firn " FIRN_VERSION);
    }
    return output_finish(STATUS_OK);
}
