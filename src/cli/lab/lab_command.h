/* lab_command.h - the options of firn lab, which firn shows and firn-lab reads. */
#ifndef FIRN_CLI_LAB_LAB_COMMAND_H
#define FIRN_CLI_LAB_LAB_COMMAND_H

#include "cli/options.h"

struct lab_command {
    bool kill_leader, no_pre_vote, duel, kill_proposer, lose, plain, herd;
    const char *cut, *html;
    uint64_t seed;
    bool all, json, no_color;
};

extern const struct usage lab_usage;

#endif
