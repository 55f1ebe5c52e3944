/*
 * config.h - what firnd is told: defaults, one YAML file, the FIRN_* environment, flags; the later of
 * these wins. The settings are the rows of one table (config_table.c). A loaded configuration is
 * constant; config_load() and config_reload() belong to the main thread, because they read the
 * environment.
 */
#ifndef FIRN_SERVER_CONFIG_H
#define FIRN_SERVER_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "firn/error.h"

/* Read when neither --config nor FIRN_CONFIG names a file; it may be missing. */
#define CONFIG_FILE_DEFAULT "/etc/firn/firnd.yaml"

enum { CONFIG_SETTINGS_MAX = 64 };

struct config_addr {
    char *host; /* a name or a number, IPv6 without its brackets; "*" is every address */
    uint16_t port;
};

struct config_addrs {
    struct config_addr *v;
    size_t n;
};

struct config_strings {
    char **v;
    size_t n;
};

struct config_token {
    char *name;                             /* for logs and metrics, never secret */
    uint8_t sha256[32];                     /* of the token's bytes */
    struct config_strings kinds, sequences; /* what it may mint: config_scope_allows() */
};

struct config_tokens {
    struct config_token *v;
    size_t n;
};

enum config_ticket_mode { CONFIG_TICKET_GAPLESS, CONFIG_TICKET_RANGE };
enum config_fence { CONFIG_FENCE_AUTO, CONFIG_FENCE_MANUAL };
enum config_log_format { CONFIG_LOG_TEXT, CONFIG_LOG_JSON };

enum config_action { CONFIG_RUN, CONFIG_HELP, CONFIG_VERSION, CONFIG_PRINT, CONFIG_CHECK };

struct config_source {
    enum { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENV, CONFIG_FLAG } from;
    unsigned line; /* in the file, from 1 */
};

struct config {
    struct {
        struct config_addrs home, snowflake, ticket; /* an empty list: no such port */
    } listen;
    char *state_dir, *store, *layout, *name;
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
    struct {
        uint64_t connections, ids_per_request;
        uint64_t header_ms, idle_ms, notice_ms, drain_ms;
    } limits;
    struct {
        int level;  /* enum log_level */
        int format; /* enum config_log_format */
    } log;
    struct {
        char *cert, *key, *client_ca; /* paths, or NULL */
    } tls;
    struct {
        struct config_tokens tokens; /* empty: everybody may mint */
    } auth;
    struct {
        uint64_t per_client, burst; /* requests per second, 0: no limit; requests at once */
    } rate;

    enum config_action action;
    char *file; /* that was read, or NULL */
    struct config_source source[CONFIG_SETTINGS_MAX];
    int argc; /* borrowed from config_load() for config_reload() */
    char **argv;
};

/* Read everything and check it. On error `c` is as after config_free(); FIRN_EINVAL: a flag that does
 * not exist; FIRN_EFORMAT, FIRN_ERANGE: a value or the file's YAML; FIRN_EIO, FIRN_ENOENT: a file that
 * cannot be read; FIRN_ENOMEM. `argv` is borrowed until config_free(). */
FIRN_MUSTUSE int config_load(struct config *c, int argc, char **argv, struct firn_diag *diag);

/* Does nothing to a zeroed or freed configuration. */
void config_free(struct config *c);

struct config_change {
    const char *name; /* of the setting, from the table */
    bool applied;     /* false: it needs a restart, and `next` still has the old value */
};

/* Read everything again, with the arguments of the first time. `next` receives the configuration to
 * run with from now on (settings that cannot change at run time keep their old values), `changes` (room
 * for CONFIG_SETTINGS_MAX) what was found to be different. On error, as config_load(); `old` is
 * untouched in any case and still the caller's. */
FIRN_MUSTUSE int config_reload(const struct config *old, struct config *next,
                               struct config_change *changes, size_t *out_n,
                               struct firn_diag *diag);

/* All settings as YAML, each with its origin as a comment. The output can be loaded again. */
void config_print(const struct config *c, FILE *out);

/* The text of --help. */
void config_help(FILE *out);

/* Write what deserves a warning though it is no error, a line each: variables that look like a
 * misspelt setting. Returns how many. */
size_t config_warnings(FILE *out);

/* What is dangerous about being reachable from other machines as configured, in a sentence, or NULL. */
const char *config_exposed(const struct config *c);

/* Whether a token's list allows a name: it is in the list, or an entry that ends in '*' begins it. */
bool config_scope_allows(const struct config_strings *scope, const char *p, size_t len);

#endif
