/* coord_opts.h - options that elect, lock, nodes and config share: the store, and the name of
 * this process. */
#ifndef FIRN_CLI_ADMIN_COORD_OPTS_H
#define FIRN_CLI_ADMIN_COORD_OPTS_H

#include "cli/options.h"
#include "cli/store_option.h"
#include "coord/record.h"

/* The name that was given, or host:pid. False: it is no valid name, reported. */
bool coord_name(const char *given, char out[RECORD_NAME_MAX + 1]);

#endif
