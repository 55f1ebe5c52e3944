/*
 * config.h - the gateway's configuration: its struct, its table (config_table.c) and the lists in
 * it (config_services.c, config_routes.c). A loaded configuration is constant.
 */
#ifndef FIRN_PROXY_CONFIG_H
#define FIRN_PROXY_CONFIG_H

#include "daemon/config.h"
#include "wire/buf.h"

enum {
    CONFIG_FIELDS_MAX = 32,
    CONFIG_SERVERS_MAX = 64,
    CONFIG_METHOD_MAX = 24,
    CONFIG_SERVICE_MAX = 63,
    CONFIG_SPLIT_MAX = 16,
    CONFIG_ROUTE_RATES_MAX = 8
};

enum config_balance { CONFIG_ROUND_ROBIN, CONFIG_LEAST, CONFIG_HASH };

enum config_traces { CONFIG_TRACES_ALL, CONFIG_TRACES_TRUSTED }; /* of clients */

struct config_field { /* "Name: value" */
    char *name, *value;
};

struct config_fields {
    struct config_field *v;
    size_t n;
};

struct config_server { /* an address of a service */
    char *address;     /* "127.0.0.1:8001", as written; a name is looked up when a plan is made */
    uint32_t weight;   /* 1 .. 1000 */
};

struct config_servers {
    struct config_server *v;
    size_t n;
};

enum config_cache { CONFIG_CACHE_OFF, CONFIG_CACHE_MEMORY, CONFIG_CACHE_REDIS };

enum config_gzip { CONFIG_GZIP_SETTING, CONFIG_GZIP_ON, CONFIG_GZIP_OFF };

struct config_service {
    char *name; /* first, as daemon/config_entries.h has it */
    struct config_servers servers;
    bool proxy_protocol; /* connections begin with a PROXY header */
    bool tls;
    char *tls_ca, *tls_cert, *tls_key, *server_name; /* or NULL */
    char *host; /* the Host that servers get; NULL: the client's */
    uint32_t connect_ms, first_byte_ms, body_ms, timeout_ms, idle_ms;
    uint32_t wait_ms, tunnel_ms, tunnel_end_ms; /* see net/upstream.h */
    uint32_t connections, retries;
    uint32_t pipeline; /* requests on one connection at a time; 1: no pipelining */
    int balance;       /* enum config_balance */
    char *hash_by;     /* "address", "path", "segment:2", or the lower-case name of a header */
    uint32_t eject_after, eject_ms; /* failures in a row; for how long */
    uint32_t breaker_failures, breaker_percent, breaker_open_ms; /* see proxy/breaker.h */
    char *health_path;                                           /* NULL: none */
    uint32_t health_ms;                                          /* between two checks */
    bool mints; /* its answers hold new IDs: no route to it may cache */
};

struct config_services {
    struct config_service *v;
    size_t n;
};

struct config_split_part { /* a service's share of a route */
    char *service;
    uint32_t weight; /* 0 .. 1000 */
};

struct config_split {
    struct config_split_part *v;
    size_t n;
};

struct config_composition { /* see proxy/composition.h */
    char *name;
    char *rest;                  /* what follows the route's path; NULL: nothing */
    struct config_strings parts; /* "NAME = SERVICE /TARGET" */
    struct config_strings required, shape;
    uint32_t timeout_ms, part_bytes, answer_bytes;
};

struct config_compositions {
    struct config_composition *v;
    size_t n;
};

struct config_copy { /* "claim: Header" */
    char *claim, *header;
    bool optional; /* the claim may be missing */
};

struct config_copies {
    struct config_copy *v;
    size_t n;
};

struct config_token { /* tokens that one issuer gives and routes demand: proxy/jwt.h */
    char *name;
    char *jwks, *pem, *secret_file; /* paths; one of them */
    char *key_id;                   /* of the pem or the secret; NULL: any */
    struct config_strings issuers, audiences;
    uint32_t leeway_s, cached, cached_max_s;
    bool expiry_optional;
    struct config_copies copy; /* the first one is the user */
    bool forward;              /* the service gets the token */
};

struct config_tokens {
    struct config_token *v;
    size_t n;
};

struct config_rate { /* how many requests of one client pass: proxy/limit.h */
    char *name;
    char *by; /* "address", "user" or "header:name" */
    uint32_t count, period_s, burst;
    int kind, away; /* enum limit_kind, limit_away */
    uint32_t ipv6_bits;
};

struct config_rates {
    struct config_rate *v;
    size_t n;
};

struct config_route {
    char *name;
    struct config_strings hosts;   /* lower case; "*.example.org"; empty: every host */
    char *path;                    /* a prefix, canonical */
    struct config_strings methods; /* empty: every method */
    struct config_fields headers;  /* all of them must be there with that value; "*": any */
    char *service;                 /* or NULL, and one of `split`, `compose`, `graphql` */
    struct config_split split;     /* over several services; empty: none */
    char *split_by;      /* "address", "user", "header:name", "cookie:Name"; NULL: in turn */
    char *compose;       /* the composition that answers */
    bool graphql;        /* the schema answers */
    char *rewrite;       /* in the place of the prefix; NULL: none */
    uint32_t timeout_ms; /* 0: the service's */
    struct config_fields request_set, request_add, answer_set, answer_add;
    struct config_strings request_remove, answer_remove;
    int cache;        /* enum config_cache */
    char *cache_name; /* first part of its keys; NULL: the route's name */
    uint32_t cache_ttl_s, cache_ttl_max_s;
    bool cache_public, cache_by_user, cache_ignore_control;
    struct config_strings cache_vary;
    struct config_strings request_rename, request_drop, answer_rename, answer_drop; /* of JSON */
    uint32_t json_max_bytes;
    int gzip; /* enum config_gzip */
    uint32_t fault_delay_ms, fault_delay_percent, fault_abort_status, fault_abort_percent;
    char *fault_header;          /* "Name" or "Name: value" */
    char *token;                 /* in tokens; NULL: none is asked for */
    bool token_optional;         /* a request without one passes; a wrong one does not */
    struct config_strings rates; /* in rates */
    bool log_headers;            /* in the access log, with the query */
    uint32_t log_body_bytes;
    struct config_strings log_redact; /* names of secrets, beside those of proxy/redact.h */
};

struct config_routes {
    struct config_route *v;
    size_t n;
};

struct config {
    struct config_base base;
    struct {
        struct config_addrs http, https, admin;
        bool proxy_protocol; /* of http and https */
    } listen;
    struct {
        char *token_file; /* or NULL */
        struct config_strings hosts;
    } admin;
    struct {
        char *cert, *key, *client_ca; /* paths, or NULL */
    } tls;
    uint64_t loops;              /* 0: one per core */
    bool watch;                  /* read the file again when it changes */
    uint64_t resolve_ms;         /* between two look-ups of names of servers; 0: never again */
    struct config_strings trust; /* networks whose X-Forwarded-* are believed */
    struct config_services services;
    struct config_compositions compositions;
    struct config_routes routes;
    struct config_tokens tokens;
    struct config_rates rates;
    struct {
        char *schema;                                   /* a file, or NULL */
        uint64_t depth, cost, calls, timeout_ms, bytes; /* bytes: of a service's answer */
        bool introspection;
    } graphql;
    struct {
        char *address, *user, *password_file; /* or NULL; address NULL: no Redis */
        uint64_t db, timeout_ms;
        char *prefix; /* or NULL; see struct redis_settings */
    } redis;
    struct {
        uint64_t connections, connections_per_address, requests;
        uint64_t header_ms, body_ms, idle_ms, write_ms, notice_ms, drain_ms;
    } limits;
    struct {
        char *endpoint; /* of the collector, or NULL: no spans */
        char *sample;   /* 0 to 1: span_sample_read() */
        char *service, *tls_ca;
        uint64_t queue, timeout_ms;
        int incoming; /* enum config_traces */
    } tracing;
    struct {
        uint64_t memory_mb, entry_kb; /* of all loops together; of one answer */
        uint64_t memory_s;            /* an answer that Redis has, too, is in memory for so long */
        uint64_t wait_ms;             /* for another request that fetches the same */
    } cache;
    struct {
        bool on;
        struct config_strings types; /* beginnings of Content-Type */
        uint64_t min_bytes, level;
    } gzip;
    struct {
        int level, format; /* of daemon/log.h */
        bool access;
    } log;
};

/* The program's table: config_load(&c->base, &proxy_config, ...). */
extern const struct config_program proxy_config;

/* config_services.c, config_routes.c */
extern const struct setting_entries config_services_type, config_routes_type,
    config_compositions_type;
/* What `compositions` and the routes that have one need from each other and from services. */
int config_check_compositions(const struct config *c, struct firn_diag *diag);
/* The same of `graphql`: its schema can be read, and is there where a route needs it. */
int config_check_graphql(const struct config *c, struct firn_diag *diag);
extern const struct setting_entries config_tokens_type, config_rates_type; /* config_guards.c */
const struct config_token *config_token_named(const struct config *c, const char *name);
const struct config_rate *config_rate_named(const struct config *c, const char *name);
/* config_files.c: read the files that are named, as the start does. */
int config_check_files(const void *config, struct firn_diag *diag);
int config_guards_check(const struct config *c, struct firn_diag *diag);
int config_check_network(const char *value, struct firn_diag *why);

#endif
