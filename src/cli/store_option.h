/* store_option.h - the --store that commands on a store share: the option, then FIRN_STORE, else an error. */
#ifndef FIRN_CLI_STORE_OPTION_H
#define FIRN_CLI_STORE_OPTION_H

#include "store/store.h"

#define OPT_STORE(type, member)                                                   \
    {                                                                             \
        "store", 's', OPT_TEXT, offsetof(type, member), "URL", NULL, 0, 0,        \
            "sqlite:FILE, etcd://HOST,..., zookeeper://, postgres://, redis://, " \
            "raft://, quorum:URL|URL|URL; without it $FIRN_STORE"                 \
    }

/* -1: *out is open. Otherwise the status to end with, and why was said. */
int store_option_open(const char *url, struct firn_store **out);

#endif
