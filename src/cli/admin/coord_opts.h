/*
 * coord_opts.h - what the commands that talk to a store share: which one, and who is asking.
 * One thread.
 */
#ifndef FIRN_CLI_ADMIN_COORD_OPTS_H
#define FIRN_CLI_ADMIN_COORD_OPTS_H

#include "cli/options.h"
#include "coord/record.h"
#include "store/store.h"

#define OPT_STORE(kind, field)                                                                   \
    {                                                                                            \
        .name = "store", .type = OPT_TEXT, .at = offsetof(kind, field), .value = "URL",          \
        .about = "the store: sqlite:FILE, etcd://, zookeeper://, postgres:// or redis:// and a " \
                 "host (default $FIRN_STORE)"                                                    \
    }

/* The URL that was given, or $FIRN_STORE; NULL: said that there is none, or that it is no URL. */
const char *coord_store_url(const char *given);

/* -1: go on; otherwise the status to end with. */
int coord_store_open(const char *url, uint32_t timeout_ms, struct firn_store **out);

/* The name that was given, or host:pid. False: said that it is no name. */
bool coord_name(const char *given, char out[RECORD_NAME_MAX + 1]);

/* An option's time, within min..max; `text` NULL leaves *out_ms as it is. False: said why. */
bool coord_time(const char *option, const char *text, uint64_t min_ms, uint64_t max_ms,
                uint64_t *out_ms);

#endif
