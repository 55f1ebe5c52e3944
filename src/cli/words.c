/* Word lists for completions and suggestions. */
#include "cli/words.h"
#include "cli/commands.h"
#include "cli/encoding.h"
#include "cli/say.h"
#include "cli/suggest.h"

#include "firn/layout.h"
#include "firn/read.h"

#include <stdio.h>
#include <string.h>

enum { WORD_BUF = 64 };

static void each_kind(words_fn *each, void *user)
{
    size_t n;
    const struct firn_kind *k = firn_kinds(&n);
    for (size_t i = 0; i < n; i++)
        if (k[i].flags & FIRN_KIND_MAKES)
            each(k[i].name, user);
}

static void each_reading(words_fn *each, void *user)
{
    size_t n;
    const struct firn_kind *k = firn_kinds(&n);
    for (size_t i = 0; i < n; i++)
        each(k[i].name, user);
}

static void each_layout(words_fn *each, void *user)
{
    size_t n;
    const struct firn_preset *p = firn_layout_presets(&n);
    for (size_t i = 0; i < n; i++)
        each(p[i].name, user);
}

static void each_encoding(words_fn *each, void *user)
{
    size_t n;
    const struct encoding *e = encoding_list(&n);
    for (size_t i = 0; i < n; i++)
        each(e[i].name, user);
}

static void each_command(words_fn *each, void *user)
{
    for (const struct command *c = commands; c->name; c++)
        each(c->name, user);
}

static const struct {
    const char *word;
    void (*each)(words_fn *each, void *user);
} tables[] = {
    { "@kinds", each_kind },         { "@readable", each_reading }, { "@layouts", each_layout },
    { "@encodings", each_encoding }, { "@commands", each_command },
};

static void word(const char *w, words_fn *each, void *user)
{
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (strcmp(tables[i].word, w) == 0) {
            tables[i].each(each, user);
            return;
        }
    if (w[0] != '@')
        each(w, user);
}

void words_each(const char *list, words_fn *each, void *user)
{
    char w[WORD_BUF];
    while (list && *list) {
        size_t n = strcspn(list, " ");
        snprintf(w, sizeof w, "%.*s", (int)n, list);
        word(w, each, user);
        list += n;
        list += strspn(list, " ");
    }
}

bool words_has_files(const char *list)
{
    return list && strstr(list, "@files") != NULL;
}

static void try_word(const char *w, void *user)
{
    suggest_try(user, w);
}

/* Only tables are searched: their words remain valid after the call, those of the list do not. */
const char *words_nearest(const char *list, const char *typed)
{
    struct suggest s;
    suggest_init(&s, typed);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        if (strstr(list, tables[i].word))
            tables[i].each(try_word, &s);
    return s.best;
}

int words_unknown(const char *what, const char *typed, const char *list, const char *otherwise)
{
    char shown[SAY_TEXT_BUF];
    const char *near = words_nearest(list, typed);
    say_text(typed, strlen(typed), shown);
    return near ? say_trouble("%s '%s': did you mean %s?", what, shown, near)
                : say_trouble("%s '%s': %s", what, shown, otherwise);
}
