/*
 * config.h - firnd's configuration: its struct, its table (config_table.c) and checks (config.c).
 */
#ifndef FIRN_SERVER_CONFIG_H
#define FIRN_SERVER_CONFIG_H

#include "daemon/config.h"

enum { CONFIG_SERVICE_MAX = 63 }; /* bytes of tracing.service */

struct config_token {
    char *name;                             /* for logs and metrics, never secret */
    uint8_t sha256[32];                     /* of the token's bytes */
    struct config_strings kinds, sequences; /* it may mint these: config_scope_allows() */
    bool admin;                             /* it may delete these sequences */
    uint32_t max_sequences; /* that there may be below an entry when it creates one; 0: no limit */
};

struct config_tokens {
    struct config_token *v;
    size_t n;
};

enum config_ticket_mode { CONFIG_TICKET_GAPLESS, CONFIG_TICKET_RANGE };
enum config_fence { CONFIG_FENCE_AUTO, CONFIG_FENCE_MANUAL };
enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON };

struct config {
    struct config_base base;
    struct {
        struct config_addrs home, snowflake, ticket; /* an empty list: no such port */
    } listen;
    char *state_dir, *store, *layout, *name;
    char *worker_id;           /* "auto", or a slot */
    uint64_t loops;            /* 0: one per core */
    uint64_t store_timeout_ms; /* 0: as the store likes */
    bool store_init;
    int fence; /* enum config_fence */
    bool accept_clock;
    struct {
        uint64_t default_start;
        int default_mode; /* enum config_ticket_mode */
        uint64_t idem_retention_s;
    } tickets;
    struct {
        uint64_t max; /* slots lent to clients at once */
    } leases;
    struct {
        char *listen, *address, *dir;
        struct config_addrs join;
        bool init, fresh, standby, restore, plain;
        uint64_t window_ms, election_ms, snapshot_every, snapshot_keep;
        char *tls_cert, *tls_key, *tls_ca; /* paths, or NULL */
    } cluster;                             /* for the store raft: */
    struct config_addrs peers;             /* firnds with other stores, asked for their slots */
    struct {
        uint64_t connections, connections_per_address, ids_per_request, sequences;
        uint64_t header_ms, idle_ms, write_ms, notice_ms, drain_ms;
    } limits;
    struct {
        struct config_strings hosts, origins; /* for browsers */
    } http;
    struct {
        int level;  /* enum log_level */
        int format; /* enum config_log_format */
    } log;
    struct {
        char *endpoint; /* of the collector, or NULL: no spans */
        char *sample;   /* 0 to 1: span_sample_read() */
        char *service, *tls_ca;
        uint64_t queue, timeout_ms;
    } tracing;
    struct {
        char *cert, *key, *client_ca; /* paths, or NULL */
    } tls;
    struct {
        struct config_tokens tokens;  /* empty: every client may mint */
        struct config_strings admins; /* names in client certificates */
    } auth;
    struct {
        uint64_t per_client, burst; /* requests per second, 0: no limit; requests at once */
    } rate;
};

/* The program's table: config_load(&c->base, &firnd_config, ...). */
extern const struct config_program firnd_config;
int config_check(const void *config, struct firn_diag *diag); /* a struct config */

/* config_tokens.c: the type of auth.tokens. */
extern const struct setting_entries config_tokens_type;

/* Which setting makes firnd a member of a cluster of firnds; NULL: none. */
const char *config_cluster_asked(const struct config *c);

/* The danger in being reachable from other machines as configured, in a sentence, or NULL. */
const char *config_exposed(const struct config *c);

/* Whether a token's list has this name, or a beginning of it that ends in '*'. */
bool config_scope_allows(const struct config_strings *scope, const char *p, size_t len);
const char *config_scope_entry(const struct config_strings *scope, const char *p, size_t len);

#endif
