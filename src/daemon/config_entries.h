/*
 * config_entries.h - settings that are lists of entries with keys (services, routes, tokens): a
 * table of keys says where each value lies in the program's struct of an entry, and reading,
 * --print-config and freeing follow from it. The first key is "name", a char * at the struct's
 * begin; names are unique. The setting's value is a struct of a pointer to the entries and their
 * number, in that order. Belongs to the configuration: config.h says who may call it.
 */
#ifndef FIRN_DAEMON_CONFIG_ENTRIES_H
#define FIRN_DAEMON_CONFIG_ENTRIES_H

#include "daemon/config.h"

struct entry_key;

struct entry_reader { /* one entry while it is read */
    const struct setting_entries *type;
    const struct config_strings *values; /* values[k] belongs to type->keys[k]; v NULL: missing */
    const char *name;                    /* of the entry */
    void *entry;
    struct firn_diag *why;
};

/* How the value of a key is kept. */
struct entry_type {
    bool list; /* its value is a list of texts; otherwise it is one text */
    /* Called for every entry; `from` has no text where the key is missing. */
    int (*read)(const struct entry_reader *r, const struct entry_key *k,
                const struct config_strings *from, void *at);
    bool (*is_set)(const void *at); /* whether it is written; NULL: always */
    void (*write)(const struct entry_key *k, const void *at, FILE *out);
    void (*free)(void *at); /* does nothing to zeroes; NULL: nothing to do */
};

/* char *, NULL where it is missing; struct config_strings; uint32_t; bool; int, the index in
 * `choices`. */
extern const struct entry_type entry_text, entry_texts, entry_u32, entry_bool, entry_choice;

struct entry_key {
    const char *name;
    const struct entry_type *type;
    size_t offset;             /* in the entry's struct */
    uint32_t min, max, preset; /* of a number; the preset of a bool or choice */
    const char *choices;       /* "a|b|c" */
    const char *missing;       /* the error where it is not there; NULL: it may be missing */
    /* Says what is wrong with a text (each of a list) by entry_blame(); may change its letters. */
    int (*check)(const struct entry_reader *r, const struct entry_key *k, char *text);
};

struct setting_entries {
    const struct entry_key *keys;
    size_t keys_n;       /* up to CONFIG_KEYS_MAX */
    size_t size;         /* of the entry's struct */
    const char *unnamed; /* "route-": the number of an entry without a name follows; NULL: error */
    /* What only the whole entry shows. Optional. */
    int (*check)(const struct entry_reader *r, void *entry);
};

/* An error about a key: "'NAME': KEY: ", then the text. Returns FIRN_EFORMAT. */
__attribute__((format(printf, 3, 4))) int entry_blame(const struct entry_reader *r, const char *key,
                                                      const char *fmt, ...);
int entry_no_memory(const struct entry_reader *r);

/* A check for names: up to 63 letters, digits, '-', '_' and '.'. */
int entry_check_name(const struct entry_reader *r, const struct entry_key *k, char *text);

/* --- by config_yaml.c, config_value.c and config_place.c --- */

struct config_entries { /* as every list of entries lies in the program's struct */
    char *v;
    size_t n;
};
struct config_entries config_entries_of(const void *at);
const char *config_entry_name(const void *entry);

/* Append entry number `n`, from 0. On error the caller frees the list; why->column is 0, or 1 + the
 * index of the key that is to blame. */
FIRN_MUSTUSE int entries_add(const struct setting_entries *t, void *at, size_t n,
                             const struct config_strings *values, struct firn_diag *why);
void entries_write(const struct setting_entries *t, const void *at, FILE *out);
void entries_free(const struct setting_entries *t, void *at); /* leaves it all zero */

/* Copy of the texts; `out` is zeroed before. */
FIRN_MUSTUSE int config_strings_copy(const struct config_strings *from, struct config_strings *out);

#endif
