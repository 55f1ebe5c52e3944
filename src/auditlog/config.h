/*
 * config.h - the audit log's configuration: its struct and its table. A loaded configuration is
 * constant.
 */
#ifndef FIRN_AUDITLOG_CONFIG_H
#define FIRN_AUDITLOG_CONFIG_H

#include "daemon/config.h"

enum { TENANT_BYTES_MAX = 64 };

enum config_scope { SCOPE_WRITE = 1, SCOPE_READ = 2, SCOPE_ADMIN = 4 };

struct config_token {
    char *name;         /* for logs, never secret */
    uint8_t sha256[32]; /* of the token's bytes */
    char *tenant;       /* whose entries it writes and reads */
    struct config_strings scopes;
    uint32_t scope; /* the same, as bits */
};

struct config_tokens {
    struct config_token *v;
    size_t n;
};

enum config_id { CONFIG_ID_FIRN, CONFIG_ID_LEGACY };

struct config {
    struct config_base base;
    struct {
        struct config_addrs http, admin;
    } listen;
    struct {
        char *cert, *key, *client_ca; /* paths, or NULL */
    } tls;
    uint64_t loops;               /* 0: one per core */
    struct config_strings shards; /* URLs of the databases that the logical shards are dealt to */
    struct config_strings owners; /* the same databases with a user who owns the schema; or empty */
    char *generators;             /* firnds, as a URL of libfirn-client */
    struct config_tokens tokens;  /* empty: none is asked for */
    int id;                       /* enum config_id */
    struct {
        uint64_t connections, connections_per_address;
        uint64_t rows, detail_bytes;               /* of a request; of an entry */
        uint64_t queue, queue_kb, batch, batch_kb; /* of a database; of a commit */
        uint64_t commit_ms, wait_ms, reads;
        uint64_t header_ms, idle_ms, write_ms, notice_ms, drain_ms;
    } limits;
    struct {
        uint64_t ahead_days, keep_days; /* keep_days 0: for ever */
    } partitions;
    struct {
        uint64_t keep_s;
    } keys;
    struct {
        char *endpoint; /* of the collector, or NULL: no spans */
        char *sample;   /* 0 to 1: span_sample_read() */
        char *service, *tls_ca;
        uint64_t queue, timeout_ms;
    } tracing;
    struct {
        int level, format; /* of daemon/log.h */
    } log;
};

/* The program's table: config_load(&c->base, &auditlog_config, ...). */
extern const struct config_program auditlog_config;

/* config_tokens.c */
extern const struct setting_entries config_tokens_type;

#endif
