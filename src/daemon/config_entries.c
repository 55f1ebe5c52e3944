/* Lists of entries with keys, from their tables. Tested in tests/unit/daemon/config.c. */
#include "daemon/config_entries.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int entry_blame(const struct entry_reader *r, const char *key, const char *fmt, ...)
{
    char text[sizeof r->why->text];
    size_t i = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    while (i < r->type->keys_n && strcmp(r->type->keys[i].name, key) != 0)
        i++;
    firn_assert(i < r->type->keys_n, "a key of the table");
    return firn__diag(r->why, FIRN_EFORMAT, i + 1, "'%.40s': %s: %s", r->name, key, text);
}

int entry_no_memory(const struct entry_reader *r)
{
    return firn__diag(r->why, FIRN_ENOMEM, 0, "out of memory");
}

int entry_check_name(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    size_t n = strlen(text), i = 0;
    while (i < n && (isalnum((unsigned char)text[i]) || strchr("-_.", text[i])))
        i++;
    return i == n && n <= 63
               ? 0
               : entry_blame(r, k->name, "give up to 63 letters, digits, '-', '_' and '.'");
}

int config_strings_copy(const struct config_strings *from, struct config_strings *out)
{
    out->v = calloc(from->n + 1, sizeof *out->v);
    for (; out->v && out->n < from->n; out->n++)
        if (!(out->v[out->n] = strdup(from->v[out->n])))
            return FIRN_ENOMEM;
    return out->v ? 0 : FIRN_ENOMEM;
}

/* --- types --- */

static int read_text(const struct entry_reader *r, const struct entry_key *k,
                     const struct config_strings *from, void *at)
{
    char **out = at;
    if (from->n == 0)
        return 0;
    if (!*from->v[0])
        return entry_blame(r, k->name, "the value is empty; leave the key out for the default");
    *out = strdup(from->v[0]);
    return !*out ? entry_no_memory(r) : k->check ? k->check(r, k, *out) : 0;
}

static bool text_is_set(const void *at)
{
    return *(char *const *)at != NULL;
}

static void write_text(const struct entry_key *k, const void *at, FILE *out)
{
    (void)k;
    config_write_string(*(char *const *)at, out);
}

static void free_text(void *at)
{
    free(*(char **)at);
}

static int read_texts(const struct entry_reader *r, const struct entry_key *k,
                      const struct config_strings *from, void *at)
{
    struct config_strings *out = at;
    int e = config_strings_copy(from, out) ? entry_no_memory(r) : 0;
    for (size_t i = 0; e == 0 && k->check && i < out->n; i++)
        e = k->check(r, k, out->v[i]);
    return e;
}

static bool texts_are_set(const void *at)
{
    return ((const struct config_strings *)at)->n > 0;
}

static void write_texts(const struct entry_key *k, const void *at, FILE *out)
{
    const struct config_strings *s = at;
    (void)k;
    for (size_t i = 0; i < s->n; i++) {
        fputs(i ? ", " : "[", out);
        config_write_string(s->v[i], out);
    }
    fputc(']', out);
}

static void free_texts(void *at)
{
    config_strings_free(at);
}

static int read_u32(const struct entry_reader *r, const struct entry_key *k,
                    const struct config_strings *from, void *at)
{
    char show[CONFIG_SHOWN_BUF];
    const char *text = from->n ? from->v[0] : NULL;
    uint64_t v = text ? 0 : k->preset;
    bool ok = !text || *text;
    for (const char *p = text; p && ok && *p; p++) {
        ok = *p >= '0' && *p <= '9' && v <= UINT32_MAX;
        v = 10 * v + (uint64_t)(*p - '0');
    }
    if (!ok || (text && (v < k->min || v > k->max)))
        return entry_blame(r, k->name, "'%s' is no number from %u to %u", config_shown(text, show),
                           k->min, k->max);
    *(uint32_t *)at = (uint32_t)v;
    return 0;
}

static void write_u32(const struct entry_key *k, const void *at, FILE *out)
{
    (void)k;
    fprintf(out, "%u", *(const uint32_t *)at);
}

static int read_bool(const struct entry_reader *r, const struct entry_key *k,
                     const struct config_strings *from, void *at)
{
    char show[CONFIG_SHOWN_BUF];
    const char *text = from->n ? from->v[0] : k->preset ? "true" : "false";
    *(bool *)at = strcmp(text, "true") == 0;
    return *(bool *)at || strcmp(text, "false") == 0
               ? 0
               : entry_blame(r, k->name, "'%s' is neither true nor false",
                             config_shown(text, show));
}

static void write_bool(const struct entry_key *k, const void *at, FILE *out)
{
    (void)k;
    fputs(*(const bool *)at ? "true" : "false", out);
}

/* Where choice `i` of "a|b|c" begins, and its length; NULL: there are fewer. */
static const char *choice_at(const char *choices, int i, size_t *out_len)
{
    for (; i > 0 && choices; i--) {
        choices = strchr(choices, '|');
        choices = choices ? choices + 1 : NULL;
    }
    *out_len = choices ? strcspn(choices, "|") : 0;
    return choices;
}

static int read_choice(const struct entry_reader *r, const struct entry_key *k,
                       const struct config_strings *from, void *at)
{
    char show[CONFIG_SHOWN_BUF];
    const char *text = from->n ? from->v[0] : NULL, *name = "";
    int i = text ? 0 : (int)k->preset;
    size_t len;
    for (; text && (name = choice_at(k->choices, i, &len)); i++)
        if (strlen(text) == len && strncmp(text, name, len) == 0)
            break;
    *(int *)at = i;
    return name ? 0
                : entry_blame(r, k->name, "'%s' is none of %s", config_shown(text, show),
                              k->choices);
}

static void write_choice(const struct entry_key *k, const void *at, FILE *out)
{
    size_t len;
    const char *name = choice_at(k->choices, *(const int *)at, &len);
    fprintf(out, "%.*s", (int)len, name);
}

const struct entry_type entry_text = { false, read_text, text_is_set, write_text, free_text };
const struct entry_type entry_texts = { true, read_texts, texts_are_set, write_texts, free_texts };
const struct entry_type entry_u32 = { false, read_u32, NULL, write_u32, NULL };
const struct entry_type entry_bool = { false, read_bool, NULL, write_bool, NULL };
const struct entry_type entry_choice = { false, read_choice, NULL, write_choice, NULL };

/* --- lists --- */

struct config_entries config_entries_of(const void *at)
{
    struct config_entries e;
    memcpy(&e, at, sizeof e);
    return e;
}

const char *config_entry_name(const void *entry)
{
    char *name;
    memcpy(&name, entry, sizeof name);
    return name;
}

static int read_keys(const struct entry_reader *r)
{
    for (size_t i = 0; i < r->type->keys_n; i++) {
        const struct entry_key *k = &r->type->keys[i];
        if (k->missing && !r->values[i].v)
            return entry_blame(r, k->name, "%s", k->missing);
        int e = k->type->read(r, k, &r->values[i], (char *)r->entry + k->offset);
        if (e)
            return e;
    }
    return r->type->check ? r->type->check(r, r->entry) : 0;
}

int entries_add(const struct setting_entries *t, void *at, size_t n,
                const struct config_strings *values, struct firn_diag *why)
{
    struct config_entries list = config_entries_of(at);
    struct config_strings all[CONFIG_KEYS_MAX];
    char given[64], *unnamed = given;
    memcpy(all, values, t->keys_n * sizeof *all);
    if (!all[0].n && t->unnamed) {
        snprintf(given, sizeof given, "%s%zu", t->unnamed, n + 1);
        all[0] = (struct config_strings){ &unnamed, 1 };
    }
    struct entry_reader r = { t, all, all[0].n ? all[0].v[0] : "", NULL, why };
    if (!*r.name)
        return firn__diag(why, FIRN_EFORMAT, 1,
                          "entry %zu needs a name: up to 63 letters, digits, '-', '_' and '.'",
                          n + 1);
    for (size_t i = 0; i < list.n; i++)
        if (strcmp(config_entry_name(list.v + i * t->size), r.name) == 0)
            return entry_blame(&r, "name", "the name is there twice");
    char *grown = realloc(list.v, (list.n + 1) * t->size);
    if (!grown)
        return entry_no_memory(&r);
    r.entry = memset(grown + list.n * t->size, 0, t->size);
    list = (struct config_entries){ grown, list.n + 1 }; /* from here on entries_free() sees it */
    memcpy(at, &list, sizeof list);
    return read_keys(&r);
}

void entries_write(const struct setting_entries *t, const void *at, FILE *out)
{
    const struct config_entries list = config_entries_of(at);
    fputc('[', out);
    for (size_t i = 0; i < list.n; i++) {
        fputs(i ? ", { " : "{ ", out);
        for (size_t k = 0; k < t->keys_n; k++) {
            const struct entry_key *key = &t->keys[k];
            const void *value = list.v + i * t->size + key->offset;
            if (key->type->is_set && !key->type->is_set(value))
                continue;
            fprintf(out, k ? ", %s: " : "%s: ", key->name);
            key->type->write(key, value, out);
        }
        fputs(" }", out);
    }
    fputc(']', out);
}

void entries_free(const struct setting_entries *t, void *at)
{
    struct config_entries list = config_entries_of(at);
    for (size_t i = 0; i < list.n; i++)
        for (size_t k = 0; k < t->keys_n; k++)
            if (t->keys[k].type->free)
                t->keys[k].type->free(list.v + i * t->size + t->keys[k].offset);
    free(list.v);
    memset(at, 0, sizeof list);
}
