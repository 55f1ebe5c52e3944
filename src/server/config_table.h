/*
 * config_table.h - the table of settings, for the files that read, write and describe them.
 */
#ifndef FIRN_SERVER_CONFIG_TABLE_H
#define FIRN_SERVER_CONFIG_TABLE_H

#include "server/config.h"

enum setting_type {
    SETTING_STRING, /* char * */
    SETTING_FILE,   /* char *, NULL when not set; must be readable */
    SETTING_UINT,   /* uint64_t */
    SETTING_BOOL,   /* bool */
    SETTING_CHOICE, /* int, the index in `choices` */
    SETTING_ADDRS,  /* struct config_addrs; comma separated outside of YAML */
    SETTING_TOKENS, /* struct config_tokens; YAML only */
};

enum { ADDRS_MAX = 16 }; /* in one list; each is a socket in every loop */

enum { SETTING_RELOAD = 1 }; /* can change while the server runs */

enum { SETTING_NAME_BUF = 64 }; /* holds a name, and its flag or variable, with the NUL */

struct setting {
    const char *name; /* "section.key" or "key" */
    enum setting_type type;
    unsigned flags;
    size_t offset;      /* in struct config */
    const char *preset; /* the default as text; NULL: not set, or computed */
    const char *preset_note;
    uint64_t min, max;   /* SETTING_UINT */
    const char *choices; /* "a|b|c" */
    /* Says what is wrong with a value; returns 0 when nothing is. */
    int (*check)(const char *value, struct firn_diag *why);
    /* A default that depends on the world or on settings above it in the table. */
    char *(*compute)(const struct config *c);
    const char *help;
};

extern const struct setting settings[];
extern const size_t settings_n;

/* "listen.home" is FIRN_LISTEN_HOME and --listen-home. */
void setting_env(const struct setting *s, char out[SETTING_NAME_BUF]);
void setting_flag(const struct setting *s, char out[SETTING_NAME_BUF]);

/* Which setting makes firnd a member of a cluster of firnds; NULL: none. */
const char *config_cluster_asked(const struct config *c);

/* How long the section part of a name is: 6 for "listen.home", 0 where there is none. */
size_t setting_section_len(const char *name);

/* The entry of `names` that a person who wrote `word` probably meant, or NULL. */
const char *nearest_name(const char *word, const char *const *names, size_t n);

/* config_value.c. Set a value from text; `why` says what is wrong with it ("'x' is not ..."). The old
 * value is freed. Not for SETTING_TOKENS. */
FIRN_MUSTUSE int setting_set(struct config *c, const struct setting *s, const char *text,
                             struct firn_diag *why);
void setting_free(struct config *c, const struct setting *s);

/* Replace the value in `to` by a copy of that in `from`. Not for SETTING_TOKENS. */
FIRN_MUSTUSE int setting_copy(struct config *to, const struct config *from, const struct setting *s,
                              struct firn_diag *why);

/* Write the value as YAML on one line. */
void setting_write(const struct config *c, const struct setting *s, FILE *out);

/* `text` for a message: shortened, and without characters that could disturb a terminal. */
enum { SHOWN_BUF = 64 };
const char *shown(const char *text, char out[SHOWN_BUF]);

/* Where a value came from, as messages name it: "firnd.yaml:3: listen.home", "FIRN_LISTEN_HOME". */
enum { PLACE_BUF = 128 };
const char *setting_place(const struct config *c, const struct setting *s, char out[PLACE_BUF]);

/* A file's name for a message: the end of it if it is long. */
const char *shown_file(const char *file);

/* config_yaml.c. Take the settings out of a YAML text; `c->file` names it in messages. */
FIRN_MUSTUSE int config_yaml_read(struct config *c, const char *text, size_t len,
                                  struct firn_diag *diag);

#endif
