/* commands.h - what firn-auditlog does instead of serving: its subcommands. The main thread. */
#ifndef FIRN_AUDITLOG_COMMANDS_H
#define FIRN_AUDITLOG_COMMANDS_H

#include "auditlog/config.h"

struct command {
    const char *name;
    bool configured;                    /* it is run with a loaded configuration */
    int (*run)(const struct config *c); /* returns the exit status */
};

/* The command called `name`; NULL: it is a flag. A name that is none has a command that
 * says so. */
const struct command *command_find(const char *name);

#endif
