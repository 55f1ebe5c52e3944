/* store_option.h - the --store that commands on a store share: the option, then FIRN_STORE, else
 * an error. */
#ifndef FIRN_CLI_STORE_OPTION_H
#define FIRN_CLI_STORE_OPTION_H

#include "store/store.h"

#define OPT_STORE(type, member)                                                   \
    {                                                                             \
        "store", 's', OPT_TEXT, offsetof(type, member), "URL", NULL, 0, 0,        \
            "sqlite:FILE, etcd://HOST,..., zookeeper://, postgres://, redis://, " \
            "raft://, quorum:URL|URL|URL; without it $FIRN_STORE"                 \
    }

/* The URL of --store, or $FIRN_STORE. NULL: there is none, or it is no URL, or no store that
 * several processes can share; reported. */
const char *store_option_url(const char *given);

/* Open a store; `url` as it was given, NULL for $FIRN_STORE; timeout_ms 0: the engine's own. -1:
 * *out is open; otherwise the status to exit with, after an error message. */
int store_option_open(const char *url, uint32_t timeout_ms, struct firn_store **out);

/* The same for commands that only look at a store, or repair it: they never create one. */
int store_option_open_existing(const char *url, uint32_t timeout_ms, struct firn_store **out);

#endif
