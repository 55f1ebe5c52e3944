/*
 * config.h - configuration of a server: defaults, one YAML file, the environment, flags; the later
 * of these wins. A program lists its settings in one table, whose rows say where a value lies in
 * the program's own struct; that struct begins with a struct config_base. Files, flags, variables,
 * --help and
 * --print-config are made from the table. A loaded configuration is constant; config_load() and
 * config_reload() belong to the main thread, because they read the environment.
 */
#ifndef FIRN_DAEMON_CONFIG_H
#define FIRN_DAEMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "firn/error.h"

enum {
    CONFIG_SETTINGS_MAX = 96,
    CONFIG_TEXTS_MAX = 64,  /* in a SETTING_LIST: they are compared one by one */
    CONFIG_ADDRS_MAX = 16,  /* in one list; each is a socket in every loop */
    CONFIG_KEYS_MAX = 64,   /* of an entry (config_entries.h) */
    CONFIG_LIST_MAX = 1000, /* entries of a list: they are compared one by one */
    SETTING_NAME_BUF = 64,  /* holds a name, and its flag or variable, with the NUL */
    CONFIG_SHOWN_BUF = 64,
};

/* --- values --- */

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

void config_strings_free(struct config_strings *s);

/* --- the table --- */

enum setting_type {
    SETTING_STRING,  /* char * */
    SETTING_FILE,    /* char *, NULL when not set; must be readable */
    SETTING_UINT,    /* uint64_t */
    SETTING_BOOL,    /* bool */
    SETTING_CHOICE,  /* int, the index in `choices` */
    SETTING_ADDRS,   /* struct config_addrs; comma separated outside of YAML */
    SETTING_LIST,    /* struct config_strings, the same; `check` is asked about each */
    SETTING_ENTRIES, /* a list of entries with keys, config_entries.h; YAML only */
};

enum {
    SETTING_RELOAD = 1, /* can change while the server runs */
    SETTING_UNIX = 2,   /* SETTING_ADDRS: unix:/path is one of them, as a host without a port */
};

struct setting_entries; /* config_entries.h: the table of a list whose entries have keys */

struct setting {
    const char *name; /* "section.key" or "key"; the settings of a section stand together */
    enum setting_type type;
    unsigned flags;
    size_t offset;      /* in the program's struct */
    const char *preset; /* the default as text; NULL: not set, or computed */
    const char *preset_note;
    uint64_t min, max;                     /* SETTING_UINT */
    const char *choices;                   /* SETTING_CHOICE: "a|b|c" */
    const struct setting_entries *entries; /* SETTING_ENTRIES */
    const char *also;                      /* another flag for it, "--worker" */
    /* Says what is wrong with a value; returns 0 when nothing is. */
    int (*check)(const char *value, struct firn_diag *why);
    /* A default that depends on the world or on settings above it in the table; the caller frees
     * it. */
    char *(*compute)(const void *config);
    const char *help;
};

struct config_program {
    const char *name;         /* "firnd", as in firnd.yaml(5) */
    const char *about;        /* what it does, for --help: whole lines */
    const char *file;         /* read when no flag and no variable names one; it may be missing */
    const char *prefix;       /* of variables: "FIRN_" */
    const char *flag_example; /* a setting for --help: "listen.home" */
    const struct setting *settings;
    size_t settings_n;
    size_t size; /* of the program's struct */
    /* What only the whole configuration shows: values that exclude or need each other. */
    int (*check)(const void *config, struct firn_diag *diag);
    /* For --check-config alone: what the start would find in the files that the configuration
     * names. Optional. */
    int (*check_files)(const void *config, struct firn_diag *diag);
};

enum config_action { CONFIG_RUN, CONFIG_HELP, CONFIG_VERSION, CONFIG_PRINT, CONFIG_CHECK };

struct config_source {
    enum { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENV, CONFIG_FLAG } from;
    unsigned line, column; /* in the file, from 1 */
};

struct config_place; /* where a value of an entry stands in the file */

struct config_base {
    const struct config_program *program;
    enum config_action action;
    char *file; /* that was read, or NULL */
    struct config_place *places;
    size_t places_n;
    struct config_source source[CONFIG_SETTINGS_MAX];
    int argc; /* borrowed from config_load() for config_reload() */
    char **argv;
};

/* --- use --- */

/* Read everything and check it. On error `c` is as after config_free(); FIRN_EINVAL: a flag that
 * does not exist; FIRN_EFORMAT, FIRN_ERANGE: a value or the file's YAML; FIRN_EIO, FIRN_ENOENT: a
 * file that cannot be read; FIRN_ENOMEM. `argv` is borrowed until config_free(). */
FIRN_MUSTUSE int config_load(struct config_base *c, const struct config_program *p, int argc,
                             char **argv, struct firn_diag *diag);

/* Does nothing to a zeroed or freed configuration. */
void config_free(struct config_base *c);

/* For main(): load, and do what --help, --version, --print-config and --check-config ask for;
 * errors and warnings go to stderr. Negative: the program runs now; otherwise it exits with this
 * status. */
int config_begin(struct config_base *c, const struct config_program *p, int argc, char **argv);

struct config_change {
    const char *name; /* of the setting, from the table */
    bool applied;     /* false: it needs a restart, and `next` still has the old value */
};

/* Read everything again, with the arguments of the first time. `next` receives the configuration to
 * run with from now on (settings that cannot change at run time keep their old values), `changes`
 * (room for CONFIG_SETTINGS_MAX) those that differ. On error, as config_load(); `old` is untouched
 * in any case and still the caller's. */
FIRN_MUSTUSE int config_reload(const struct config_base *old, struct config_base *next,
                               struct config_change *changes, size_t *out_n,
                               struct firn_diag *diag);

/* All settings as YAML, each with its origin as a comment. The output can be loaded again. */
void config_print(const struct config_base *c, FILE *out);

/* The text of --help. */
void config_help(const struct config_program *p, FILE *out);

/* Write a line for each variable with the program's prefix that is no setting. Returns how many;
 * `*out_links` (or NULL) is how many are Kubernetes' service links, which are left alone. */
size_t config_strangers(const struct config_program *p, size_t *out_links, FILE *out);

/* --- for checks --- */

/* An error about a setting that has a value: "firnd.yaml:3: tls.cert: ", then the text. Returns
 * `error`. */
__attribute__((format(printf, 5, 6))) int config_fault(const struct config_base *c,
                                                       const char *name, int error,
                                                       struct firn_diag *diag, const char *fmt,
                                                       ...);

/* The same about a value of an entry of a SETTING_ENTRIES: "firnd.yaml:7: routes: 'shop': rates: ",
 * the text, " (column 30)". `entry` lies in the setting's list; `item` is the place in the value if
 * that is a list, from 0. A key that is not in the file: where the entry begins. */
struct config_at {
    const char *setting;
    const void *entry;
    const char *key;
    size_t item;
};
__attribute__((format(printf, 5, 6))) int config_fault_at(const struct config_base *c,
                                                          const struct config_at *at, int error,
                                                          struct firn_diag *diag, const char *fmt,
                                                          ...);

/* The same where the value names an entry of `list` (such as "services") that is not there: "there
 * is no service 'shp' in services; did you mean shop". */
int config_fault_name(const struct config_base *c, const struct config_at *at, const char *list,
                      const char *what, const char *name, struct firn_diag *diag);

/* `text` for a message: shortened, and without characters that could disturb a terminal. */
const char *config_shown(const char *text, char out[CONFIG_SHOWN_BUF]);

/* Write a text as YAML: bare if YAML reads it back as the same text, else in double quotes. */
void config_write_string(const char *text, FILE *out);

#endif
