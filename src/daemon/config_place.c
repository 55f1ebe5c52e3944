/*
 * Where values of lists of entries stand in the file, for errors that only the whole configuration
 * shows: a route that names a service which is not there. Tested in
 * tests/unit/proxy/config_guards.c and tests/integration/gateway.py.
 */
#include "daemon/config_entries.h"
#include "daemon/config_in.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int config_place_add(struct config_base *c, const struct config_place *p)
{
    const size_t n = c->places_n;
    if ((n & (n - 1)) == 0) { /* full at each power of two */
        struct config_place *grown = reallocarray(c->places, n ? 2 * n : 1, sizeof *grown);
        if (!grown)
            return FIRN_ENOMEM;
        c->places = grown;
    }
    c->places[c->places_n++] = *p;
    return 0;
}

static size_t setting_named(const struct config_base *c, const char *name)
{
    size_t i = 0;
    while (strcmp(c->program->settings[i].name, name) != 0)
        i++;
    return i;
}

/* The nearest to the value that there is: its element, its key, its entry. */
static const struct config_place *place_of(const struct config_base *c,
                                           const struct config_place *want)
{
    const struct config_place *best = NULL;
    for (size_t i = 0; i < c->places_n; i++) {
        const struct config_place *p = &c->places[i];
        if (p->setting != want->setting || p->entry != want->entry)
            continue;
        bool fits = p->key == 0 || (p->key == want->key && (p->item == 0 || p->item == want->item));
        if (fits && (!best || p->key > best->key || p->item > best->item))
            best = p;
    }
    return best;
}

int config_fault_at(const struct config_base *c, const struct config_at *at, int error,
                    struct firn_diag *diag, const char *fmt, ...)
{
    char text[sizeof diag->text];
    const size_t i = setting_named(c, at->setting);
    const struct setting_entries *t = c->program->settings[i].entries;
    const struct config_entries list = config_entries_of(setting_at(c, &c->program->settings[i]));
    size_t key = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    while (key < t->keys_n && strcmp(t->keys[key].name, at->key) != 0)
        key++;
    firn_assert(key < t->keys_n, "a key of the table");
    const struct config_place want = {
        .setting = (uint32_t)i,
        .entry = (uint32_t)((size_t)((const char *)at->entry - list.v) / t->size + 1),
        .key = (uint32_t)key + 1,
        .item = (uint32_t)at->item + 1
    };
    const struct config_place *p = place_of(c, &want);
    const char *name = config_entry_name(at->entry);
    if (!p)
        return config_fault(c, at->setting, error, diag, "'%.40s': %s: %s", name, at->key, text);
    return firn__diag(diag, error, p->column, "%s:%u: %s: '%.40s': %s: %s (column %u)",
                      shown_file(c->file), p->line, at->setting, name, at->key, text, p->column);
}

int config_fault_name(const struct config_base *c, const struct config_at *at, const char *list,
                      const char *what, const char *name, struct firn_diag *diag)
{
    const struct setting *s = &c->program->settings[setting_named(c, list)];
    const struct config_entries have = config_entries_of(setting_at(c, s));
    const char *names[CONFIG_LIST_MAX];
    char show[CONFIG_SHOWN_BUF];
    for (size_t i = 0; i < have.n; i++)
        names[i] = config_entry_name(have.v + i * s->entries->size);
    /* Of two letters every name is a neighbour. */
    const char *guess = strlen(name) > 2 ? nearest_name(name, names, have.n) : NULL;
    return config_fault_at(c, at, FIRN_EINVAL, diag, "there is no %s '%s' in %s%s%s", what,
                           config_shown(name, show), list, guess ? "; did you mean " : "",
                           guess ? guess : "");
}
