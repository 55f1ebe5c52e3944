/*
 * engines.h - the stores that are services: each is one file that is built where its client library
 * is there (FIRN_HAVE_...). `u` is borrowed for the call; every call on the store comes back within
 * `timeout_ms`.
 */
#ifndef FIRN_STORE_ENGINES_H
#define FIRN_STORE_ENGINES_H

#include "store/store.h"
#include "store/url.h"

typedef int firn_store_engine_open(const struct store_url *u, uint32_t timeout_ms,
                                   struct firn_store **out, struct firn_diag *d);

firn_store_engine_open firn_store_etcd_open, firn_store_zookeeper_open, firn_store_postgres_open,
    firn_store_redis_open, firn_store_raft_open;

/* The parameters that each engine's URL takes behind the '?'. */
#define ETCD_PARAMS      "tls ca cert key"
#define ZOOKEEPER_PARAMS "" /* no TLS: Debian builds the library without it */
#define POSTGRES_PARAMS  "table sslmode sslrootcert sslcert sslkey"
#define REDIS_PARAMS     "unsafe_ok prefix tls ca cert key"
#define RAFT_PARAMS      "tls ca cert key"

#endif
