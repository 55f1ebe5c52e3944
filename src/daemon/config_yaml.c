/*
 * The YAML file of a configuration. libyaml's events become a small tree, so that an error of
 * syntax is reported before any other and an alias is refused before it unfolds; then the tree is
 * walked along the table of settings, and each value is set where it stands. Tested in
 * tests/unit/daemon/config.c.
 */
#include "daemon/config_in.h"
#include "daemon/config_entries.h"
#include "id/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum { KEYS_MAX = CONFIG_SETTINGS_MAX * 2 }; /* settings and the sections above them */

enum shape { SHAPE_TEXT, SHAPE_LIST, SHAPE_MAP };
static const char *const shape_names[] = {
    [SHAPE_TEXT] = "one value",
    [SHAPE_LIST] = "a list, as in [a, b]",
    [SHAPE_MAP] = "keys of its own, indented below it",
};

struct node {
    enum shape shape;
    unsigned line, column;      /* from 1 */
    bool null;                  /* a plain `~`, `null` or nothing: as if the key were not there */
    char *text;                 /* of a SHAPE_TEXT */
    size_t len;                 /* of the text; children otherwise */
    struct node *child, **last; /* a map's are key, value, key, value */
    struct node *next, *parent;
    struct node *older; /* all nodes, to free them */
};

struct reader {
    struct config_base *c;
    const char *file;
    struct firn_diag *diag;
    struct node *root, *at; /* at: the list or map that is being filled */
    struct node *newest;
};

#define FAIL(r, error, at, ...) fail(r, error, (at)->line, (at)->column, __VA_ARGS__)

__attribute__((format(printf, 5, 6))) static int fail(struct reader *r, int error, unsigned line,
                                                      unsigned column, const char *fmt, ...)
{
    char text[sizeof r->diag->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return firn__diag(r->diag, error, column, "%s:%u: %s (column %u)", r->file, line, text, column);
}

/* --- from events to a tree --- */

static bool is_null(const yaml_event_t *e)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };
    if (e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp((const char *)e->data.scalar.value, words[i]) == 0)
            return true;
    return false;
}

static int add_node(struct reader *r, enum shape shape, const yaml_event_t *e)
{
    struct node *n = calloc(1, sizeof *n);
    if (!n)
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    *n = (struct node){ .shape = shape,
                        .line = (unsigned)e->start_mark.line + 1,
                        .column = (unsigned)e->start_mark.column + 1,
                        .last = &n->child,
                        .parent = r->at,
                        .older = r->newest };
    r->newest = n;
    if (r->at) {
        *r->at->last = n;
        r->at->last = &n->next;
        r->at->len++;
    } else if (r->root) {
        return FAIL(r, FIRN_EFORMAT, n, "a second document begins; only one is read");
    } else {
        r->root = n;
    }
    if (shape != SHAPE_TEXT) {
        r->at = n;
        return 0;
    }
    n->null = is_null(e);
    n->len = e->data.scalar.length;
    n->text = malloc(n->len + 1);
    if (!n->text)
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    memcpy(n->text, e->data.scalar.value, n->len + 1);
    return 0;
}

static int syntax_error(struct reader *r, const yaml_parser_t *p)
{
    if (p->error == YAML_MEMORY_ERROR)
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    /* Errors of the bytes themselves (not UTF-8, control characters) know no line. */
    if (p->error == YAML_READER_ERROR)
        return firn__diag(r->diag, FIRN_EFORMAT, p->problem_offset + 1, "%s: byte %zu: %s", r->file,
                          p->problem_offset + 1, p->problem);
    unsigned column = (unsigned)p->problem_mark.column + 1;
    return fail(r, FIRN_EFORMAT, (unsigned)p->problem_mark.line + 1, column,
                "this is not YAML: %s%s%s", p->context ? p->context : "", p->context ? ", " : "",
                p->problem ? p->problem : "unknown error");
}

static int add_event(struct reader *r, const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return add_node(r, SHAPE_TEXT, e);
    case YAML_SEQUENCE_START_EVENT:
        return add_node(r, SHAPE_LIST, e);
    case YAML_MAPPING_START_EVENT:
        return add_node(r, SHAPE_MAP, e);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        r->at = r->at->parent;
        return 0;
    case YAML_ALIAS_EVENT: /* makes a graph of the tree and megabytes of a line */
        return fail(
            r, FIRN_ENOTSUP, (unsigned)e->start_mark.line + 1, (unsigned)e->start_mark.column + 1,
            "aliases (*%.40s) are not taken; repeat the value", (const char *)e->data.alias.anchor);
    default: /* begin and end of the stream and of a document */
        return 0;
    }
}

static int parse(struct reader *r, const char *text, size_t len)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int error = 0;
    if (!yaml_parser_initialize(&parser))
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    for (bool end = false; error == 0 && !end;) {
        if (!yaml_parser_parse(&parser, &event)) {
            error = syntax_error(r, &parser);
            break;
        }
        error = add_event(r, &event);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return error;
}

/* --- from the tree to settings --- */

static int check_shape(struct reader *r, const char *path, enum shape want, const struct node *n)
{
    if (n->shape != want)
        return FAIL(r, FIRN_EFORMAT, n, "%s: this takes %s", path, shape_names[want]);
    if (want == SHAPE_TEXT && strlen(n->text) != n->len)
        return FAIL(r, FIRN_EFORMAT, n, "%s: the value has a NUL character in it", path);
    return 0;
}

static int check_texts(struct reader *r, const char *path, const struct node *list)
{
    int e = check_shape(r, path, SHAPE_LIST, list);
    for (const struct node *n = e ? NULL : list->child; n; n = n->next)
        if (n->shape != SHAPE_TEXT || n->null || strlen(n->text) != n->len)
            return FAIL(r, FIRN_EFORMAT, n, "%s: each entry of the list is one value", path);
    return e;
}

/* The keys of a mapping, each once and each a plain text. */
static int check_keys(struct reader *r, const struct node *map)
{
    char show[CONFIG_SHOWN_BUF];
    if (map->len / 2 > KEYS_MAX)
        return FAIL(r, FIRN_ERANGE, map, "too many keys (%zu, at most %d)", map->len / 2, KEYS_MAX);
    for (const struct node *k = map->child; k; k = k->next->next) {
        if (k->shape != SHAPE_TEXT || !k->len || strlen(k->text) != k->len)
            return FAIL(r, FIRN_EFORMAT, k, "a key must be a word; see %s.yaml(5)",
                        r->c->program->name);
        for (const struct node *before = map->child; before != k; before = before->next->next)
            if (strcmp(before->text, k->text) == 0)
                return FAIL(r, FIRN_EFORMAT, k, "'%s' is there twice, the first time in line %u",
                            config_shown(k->text, show), before->line);
    }
    return 0;
}

static int unknown_key(struct reader *r, const struct node *at, const char *path)
{
    const struct config_program *p = r->c->program;
    const char *names[KEYS_MAX];
    char sections[CONFIG_SETTINGS_MAX][SETTING_NAME_BUF], show[CONFIG_SHOWN_BUF];
    size_t n = 0;
    for (size_t i = 0; i < p->settings_n; i++) {
        const char *name = p->settings[i].name;
        int section = (int)setting_section_len(name);
        names[n++] = name;
        snprintf(sections[i], sizeof sections[i], "%.*s", section, name);
        if (section)
            names[n++] = sections[i];
    }
    const char *guess = nearest_name(path, names, n);
    if (guess && strcmp(guess, path) == 0)
        return FAIL(r, FIRN_EFORMAT, at, "'%s': write %.*s: and, indented below it, %s:", path,
                    (int)setting_section_len(guess), guess, guess + setting_section_len(guess) + 1);
    if (guess)
        return FAIL(r, FIRN_EFORMAT, at, "there is no setting '%s'; did you mean %s",
                    config_shown(path, show), guess);
    return FAIL(r, FIRN_EFORMAT, at, "there is no setting '%s'; %s --help lists them",
                config_shown(path, show), p->name);
}

static int unknown_entry_key(struct reader *r, const struct setting *s, const struct node *key)
{
    const struct setting_entries *type = s->entries;
    const char *known[CONFIG_KEYS_MAX];
    char names[128] = "", show[CONFIG_SHOWN_BUF];
    size_t len = 0;
    for (size_t i = 0; i < type->keys_n; i++) {
        known[i] = type->keys[i].name;
        if (len < sizeof names)
            len += (size_t)snprintf(names + len, sizeof names - len, i ? ", %s" : "%s", known[i]);
    }
    const char *guess = len < sizeof names ? NULL : nearest_name(key->text, known, type->keys_n);
    if (guess)
        return FAIL(r, FIRN_EFORMAT, key, "%s: there is no '%s'; did you mean %s", s->name,
                    config_shown(key->text, show), guess);
    return FAIL(r, FIRN_EFORMAT, key, "%s: there is no '%s'; give %s%s", s->name,
                config_shown(key->text, show), names, len < sizeof names ? "" : "...");
}

/* The value of one key of an entry, as the texts that it lists. The texts stay the tree's. */
static int read_texts(struct reader *r, const char *path, bool list, struct node *n,
                      struct config_strings *out)
{
    if (n->null)
        return FAIL(r, FIRN_EFORMAT, n, "%s: there is no value", path);
    int e = list ? check_texts(r, path, n) : check_shape(r, path, SHAPE_TEXT, n);
    if (e)
        return e;
    size_t count = list ? n->len : 1;
    if (count > CONFIG_LIST_MAX)
        return FAIL(r, FIRN_ERANGE, n, "%s: too many entries (%zu, at most %d)", path, count,
                    CONFIG_LIST_MAX);
    out->v = calloc(count + 1, sizeof *out->v);
    if (!out->v)
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    for (const struct node *t = list ? n->child : n; out->n < count; t = t->next)
        out->v[out->n++] = t->text;
    return 0;
}

/* The value of a key, where a message can point at it; the entry itself where the key is missing.
 */
static const struct node *key_of(const struct node *entry, const char *name)
{
    for (const struct node *k = entry->child; k; k = k->next->next)
        if (strcmp(k->text, name) == 0)
            return k->next;
    return entry;
}

/* For errors that only the whole configuration shows: config_fault_at(). */
static int add_places(struct reader *r, const struct setting *s, size_t number,
                      const struct node *entry)
{
    const struct setting_entries *type = s->entries;
    struct config_place p = { .setting = (uint32_t)(s - r->c->program->settings),
                              .entry = (uint32_t)number + 1,
                              .line = entry->line,
                              .column = entry->column };
    int e = config_place_add(r->c, &p);
    for (const struct node *k = entry->child; e == 0 && k; k = k->next->next) {
        const struct node *v = k->next;
        p.key = 1;
        while (strcmp(type->keys[p.key - 1].name, k->text) != 0)
            p.key++;
        p.item = 0;
        p.line = v->line;
        p.column = v->column;
        e = config_place_add(r->c, &p);
        for (const struct node *n = v->shape == SHAPE_LIST ? v->child : NULL; e == 0 && n;
             n = n->next) {
            p.item++;
            p.line = n->line;
            p.column = n->column;
            e = config_place_add(r->c, &p);
        }
    }
    return e ? firn__diag(r->diag, e, 0, "out of memory") : 0;
}

static int read_entry(struct reader *r, const struct setting *s, size_t number,
                      const struct node *entry)
{
    const struct setting_entries *type = s->entries;
    struct config_strings values[CONFIG_KEYS_MAX] = { { NULL, 0 } };
    int e = check_shape(r, s->name, SHAPE_MAP, entry);
    if (e == 0)
        e = check_keys(r, entry);
    for (struct node *k = entry->child; e == 0 && k; k = k->next->next) {
        char path[2 * SETTING_NAME_BUF];
        size_t i = 0;
        while (i < type->keys_n && strcmp(type->keys[i].name, k->text) != 0)
            i++;
        snprintf(path, sizeof path, "%s: %.40s", s->name, k->text);
        e = i == type->keys_n ? unknown_entry_key(r, s, k)
                              : read_texts(r, path, type->keys[i].type->list, k->next, &values[i]);
    }
    struct firn_diag why = { 0 };
    if (e == 0 && (e = entries_add(type, setting_at(r->c, s), number, values, &why)) != 0) {
        bool named = why.column > 0 && why.column <= type->keys_n;
        const struct node *at = named ? key_of(entry, type->keys[why.column - 1].name) : entry;
        FAIL(r, e, at, "%s: %s", s->name, why.text);
    }
    for (size_t i = 0; i < CONFIG_KEYS_MAX; i++)
        free(values[i].v);
    return e ? e : add_places(r, s, number, entry);
}

static int read_entries(struct reader *r, const struct setting *s, const struct node *list)
{
    int e = check_shape(r, s->name, SHAPE_LIST, list);
    size_t number = 0;
    if (e == 0 && list->len > CONFIG_LIST_MAX)
        e = FAIL(r, FIRN_ERANGE, list, "%s: too many entries (%zu, at most %d)", s->name, list->len,
                 CONFIG_LIST_MAX);
    setting_free(r->c, s);
    for (const struct node *n = list->child; e == 0 && n; n = n->next)
        e = read_entry(r, s, number++, n);
    return e;
}

/* A list of addresses or texts goes through its text form, as it is written in a flag. */
static int read_list(struct reader *r, const struct setting *s, const struct node *list)
{
    struct firn_diag why = { 0 };
    char *text = NULL;
    size_t size = 0;
    int e = check_texts(r, s->name, list);
    if (e)
        return e;
    FILE *join = open_memstream(&text, &size);
    for (const struct node *n = join ? list->child : NULL; n; n = n->next)
        fprintf(join, n->next ? "%s," : "%s", n->text);
    if (!join || fclose(join) != 0)
        e = firn__diag(&why, FIRN_ENOMEM, 0, "out of memory");
    else if (list->len > 0 && size == 0)
        e = firn__diag(&why, FIRN_EFORMAT, 0, "an entry is empty");
    else
        e = setting_set(r->c, s, text, &why);
    free(text);
    return e ? FAIL(r, e, list, "%s: %s", s->name, why.text) : 0;
}

static int read_value(struct reader *r, const struct setting *s, const struct node *n)
{
    struct firn_diag why = { 0 };
    if (s->type == SETTING_ENTRIES)
        return read_entries(r, s, n);
    if (s->type == SETTING_ADDRS || s->type == SETTING_LIST)
        return read_list(r, s, n);
    int e = check_shape(r, s->name, SHAPE_TEXT, n);
    if (e)
        return e;
    e = setting_set(r->c, s, n->text, &why);
    return e ? FAIL(r, e, n, "%s: %s", s->name, why.text) : 0;
}

/* A mapping of settings: the whole document (section "") or one section. */
static int read_map(struct reader *r, const char *section, const struct node *map)
{
    const struct config_program *p = r->c->program;
    int e = check_keys(r, map);
    for (const struct node *k = map->child; e == 0 && k; k = k->next->next) {
        const struct node *v = k->next;
        char path[2 * SETTING_NAME_BUF];
        snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", k->text);
        size_t i = 0, len = strlen(path);
        bool is_section = false;
        for (; i < p->settings_n; i++) {
            const char *name = p->settings[i].name;
            is_section = !*section && setting_section_len(name) == len &&
                         memcmp(name, path, len) == 0;
            /* A dotted key at the top would pass the comparison, but the key has to be indented. */
            if (is_section || (strcmp(name, path) == 0 && (*section || !strchr(path, '.'))))
                break;
        }
        if (i == p->settings_n)
            return unknown_key(r, k, path);
        if (v->null)
            continue;
        if (is_section) {
            e = check_shape(r, path, SHAPE_MAP, v);
            if (e == 0)
                e = read_map(r, path, v);
        } else {
            e = read_value(r, &p->settings[i], v);
            r->c->source[i] = (struct config_source){ CONFIG_FILE, k->line,
                                                      v->line == k->line ? v->column : k->column };
        }
    }
    return e;
}

int config_yaml_read(struct config_base *c, const char *text, size_t len, struct firn_diag *diag)
{
    struct firn_diag unused;
    struct reader r = { .c = c, .file = shown_file(c->file), .diag = diag ? diag : &unused };
    int e = parse(&r, text, len);
    if (e == 0 && r.root && r.root->shape == SHAPE_MAP)
        e = read_map(&r, "", r.root);
    else if (e == 0 && r.root && !r.root->null)
        e = FAIL(&r, FIRN_EFORMAT, r.root, "expected settings, as in 'name: value'");
    for (struct node *n = r.newest, *older; n; n = older) {
        older = n->older;
        free(n->text);
        free(n);
    }
    return e;
}
