/* compare.h - `firn compare`: the mission's client of a Snowflake and a ticket server. */
#ifndef FIRN_CLI_COMPARE_COMPARE_H
#define FIRN_CLI_COMPARE_COMPARE_H

#include "cli/options.h"

extern const struct usage compare_usage;

/* 0: all IDs distinct and rising. 1: not so. 2: a server could not be asked. */
int cmd_compare(int argc, char **argv);

#endif
