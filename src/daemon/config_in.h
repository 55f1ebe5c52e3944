/*
 * config_in.h - what the files of the configuration share; programs include daemon/config.h.
 */
#ifndef FIRN_DAEMON_CONFIG_IN_H
#define FIRN_DAEMON_CONFIG_IN_H

#include "daemon/config.h"

/* "listen.home" is FIRN_LISTEN_HOME and --listen-home. */
void setting_env(const struct config_program *p, const struct setting *s,
                 char out[SETTING_NAME_BUF]);
void setting_flag(const struct setting *s, char out[SETTING_NAME_BUF]);

/* How long the section part of a name is: 6 for "listen.home", 0 where there is none. */
size_t setting_section_len(const char *name);

/* The entry of `names` nearest to a misspelt `word`, or NULL. */
const char *nearest_name(const char *word, const char *const *names, size_t n);

/* A file's name for a message: the end of it if it is long. */
const char *shown_file(const char *file);

static inline void *setting_at(const struct config_base *c, const struct setting *s)
{
    return (char *)(uintptr_t)c + s->offset;
}

/* config_value.c. Set a value from text; `why` says what is wrong with it ("'x' is not ..."). The
 * old value is freed. Not for SETTING_ENTRIES. */
FIRN_MUSTUSE int setting_set(struct config_base *c, const struct setting *s, const char *text,
                             struct firn_diag *why);
void setting_free(struct config_base *c, const struct setting *s);

/* Replace the value in `to` by a copy of that in `from`. Not for SETTING_ENTRIES. */
FIRN_MUSTUSE int setting_copy(struct config_base *to, const struct config_base *from,
                              const struct setting *s, struct firn_diag *why);

/* Write the value as YAML on one line. */
void setting_write(const struct config_base *c, const struct setting *s, FILE *out);

/* config_place.c. Remember where a value stands: entry `entry` of setting `setting`, its key and
 * the element of the key's list, both from 1; 0: the whole. */
struct config_place {
    uint32_t setting, entry, key, item;
    uint32_t line, column;
};
FIRN_MUSTUSE int config_place_add(struct config_base *c, const struct config_place *p);

/* config_yaml.c. Take the settings out of a YAML text; `c->file` names it in messages. */
FIRN_MUSTUSE int config_yaml_read(struct config_base *c, const char *text, size_t len,
                                  struct firn_diag *diag);

#endif
