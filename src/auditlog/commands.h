/* commands.h - what firn-auditlog does instead of serving: its subcommands. The main thread. */
#ifndef FIRN_AUDITLOG_COMMANDS_H
#define FIRN_AUDITLOG_COMMANDS_H

#include "auditlog/config.h"

struct command {
    const char *name;
    int (*run)(const struct config *c); /* returns the exit status */
};

/* The command called `name`, or NULL. */
const struct command *command_find(const char *name);

#endif
