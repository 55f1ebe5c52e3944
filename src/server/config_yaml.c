/*
 * The YAML file. It is walked twice: first as a tree of nodes that know their lines, to find keys that
 * do not exist and values of the wrong shape and to say where they are; then by libcyaml, whose schema
 * is made from the table of settings and which delivers every value as text for setting_set().
 * What the first walk lets through, the second takes; should they ever disagree, libcyaml's word is
 * the error.
 */
#include "server/config_table.h"
#include "firn/read.h"
#include "id/diag.h"

#include <cyaml/cyaml.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

enum {
    TOKENS_MAX = 1000, /* they are compared one by one */
    SCOPES_MAX = 1000,
    KEYS_MAX = CONFIG_SETTINGS_MAX * 2, /* settings and the sections above them */
};

struct reader {
    struct config *c;
    const char *file;
    yaml_document_t *doc;
    struct firn_diag *diag;
    unsigned line[CONFIG_SETTINGS_MAX]; /* of each setting's key; 0: it is not in the file */
};

enum shape { SHAPE_TEXT, SHAPE_LIST, SHAPE_MAP };
static const char *const shape_names[] = {
    [SHAPE_TEXT] = "one value",
    [SHAPE_LIST] = "a list, as in [a, b]",
    [SHAPE_MAP] = "keys of its own, indented below it",
};

/* Keys of an entry of auth.tokens. */
static const struct {
    const char *key;
    enum shape shape;
} token_keys[] = {
    { "name", SHAPE_TEXT },
    { "token_sha256", SHAPE_TEXT },
    { "kinds", SHAPE_LIST },
    { "sequences", SHAPE_LIST },
};
enum { TOKEN_KEYS = sizeof token_keys / sizeof token_keys[0] };

static unsigned line_of(const yaml_node_t *n)
{
    return (unsigned)n->start_mark.line + 1;
}

#define FAIL(r, error, at, ...) fail(r, error, line_of(at), __VA_ARGS__)

__attribute__((format(printf, 4, 5))) static int fail(struct reader *r, int error, unsigned line,
                                                      const char *fmt, ...)
{
    char text[sizeof r->diag->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return firn__diag(r->diag, error, 0, "%s:%u: %s", r->file, line, text);
}

/* A plain `~`, `null` or nothing at all: as if the key were not there. */
static bool is_null(const yaml_node_t *n)
{
    static const char *const words[] = { "", "~", "null", "Null", "NULL" };
    if (n->type != YAML_SCALAR_NODE || n->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp((const char *)n->data.scalar.value, words[i]) == 0)
            return true;
    return false;
}

static const char *scalar(const yaml_node_t *n) /* or NULL, if it is none or has a NUL inside */
{
    if (n->type != YAML_SCALAR_NODE ||
        strlen((const char *)n->data.scalar.value) != n->data.scalar.length)
        return NULL;
    return (const char *)n->data.scalar.value;
}

static int check_shape(struct reader *r, const char *path, enum shape want, const yaml_node_t *n)
{
    static const yaml_node_type_t types[] = {
        [SHAPE_TEXT] = YAML_SCALAR_NODE,
        [SHAPE_LIST] = YAML_SEQUENCE_NODE,
        [SHAPE_MAP] = YAML_MAPPING_NODE,
    };
    if (n->type != types[want])
        return FAIL(r, FIRN_EFORMAT, n, "%s: this takes %s", path, shape_names[want]);
    if (want == SHAPE_TEXT && !scalar(n))
        return FAIL(r, FIRN_EFORMAT, n, "%s: the value has a NUL character in it", path);
    return 0;
}

static int check_texts(struct reader *r, const char *path, const yaml_node_t *list)
{
    for (yaml_node_item_t *i = list->data.sequence.items.start; i < list->data.sequence.items.top;
         i++) {
        const yaml_node_t *n = yaml_document_get_node(r->doc, *i);
        if (!scalar(n) || is_null(n))
            return FAIL(r, FIRN_EFORMAT, n, "%s: each entry of the list is one value", path);
    }
    return 0;
}

/* The keys of a mapping, each once and each a plain text. */
static int check_keys(struct reader *r, const yaml_node_t *map)
{
    const yaml_node_pair_t *first = map->data.mapping.pairs.start;
    size_t n = (size_t)(map->data.mapping.pairs.top - first);
    if (n > KEYS_MAX)
        return FAIL(r, FIRN_ERANGE, map, "there are %zu keys here, more than exist", n);
    for (size_t i = 0; i < n; i++) {
        const yaml_node_t *k = yaml_document_get_node(r->doc, first[i].key);
        if (!scalar(k) || !scalar(k)[0])
            return FAIL(r, FIRN_EFORMAT, k, "a key must be a word; see firnd.yaml(5)");
        for (size_t j = 0; j < i; j++) {
            const yaml_node_t *before = yaml_document_get_node(r->doc, first[j].key);
            char show[SHOWN_BUF];
            if (strcmp(scalar(before), scalar(k)) == 0)
                return FAIL(r, FIRN_EFORMAT, k, "'%s' is there twice, the first time in line %u",
                            shown(scalar(k), show), line_of(before));
        }
    }
    return 0;
}

static int unknown_key(struct reader *r, const yaml_node_t *at, const char *path)
{
    const char *names[KEYS_MAX];
    char sections[CONFIG_SETTINGS_MAX][SETTING_NAME_BUF], show[SHOWN_BUF];
    size_t n = 0;
    for (size_t i = 0; i < settings_n; i++) {
        int section = (int)setting_section_len(settings[i].name);
        names[n++] = settings[i].name;
        snprintf(sections[i], sizeof sections[i], "%.*s", section, settings[i].name);
        if (section)
            names[n++] = sections[i];
    }
    const char *guess = nearest_name(path, names, n);
    if (guess && strcmp(guess, path) == 0)
        return FAIL(r, FIRN_EFORMAT, at, "'%s': write %.*s: and, indented below it, %s:", path,
                    (int)setting_section_len(guess), guess, guess + setting_section_len(guess) + 1);
    return FAIL(r, FIRN_EFORMAT, at, "there is no setting '%s'; %s%s", shown(path, show),
                guess ? "did you mean " : "firnd --help lists them", guess ? guess : "");
}

static int check_token(struct reader *r, const yaml_node_t *token)
{
    int e = check_shape(r, "auth.tokens", SHAPE_MAP, token);
    if (e == 0)
        e = check_keys(r, token);
    for (yaml_node_pair_t *p = token->data.mapping.pairs.start;
         e == 0 && p < token->data.mapping.pairs.top; p++) {
        const yaml_node_t *k = yaml_document_get_node(r->doc, p->key),
                          *v = yaml_document_get_node(r->doc, p->value);
        size_t i = 0;
        while (i < TOKEN_KEYS && strcmp(token_keys[i].key, scalar(k)) != 0)
            i++;
        char show[SHOWN_BUF];
        if (i == TOKEN_KEYS)
            return FAIL(r, FIRN_EFORMAT, k,
                        "auth.tokens: there is no '%s'; give name, token_sha256, kinds, sequences",
                        shown(scalar(k), show));
        char path[SETTING_NAME_BUF];
        snprintf(path, sizeof path, "auth.tokens: %s", token_keys[i].key);
        if (is_null(v))
            return FAIL(r, FIRN_EFORMAT, v, "%s: there is no value", path);
        e = check_shape(r, path, token_keys[i].shape, v);
        if (e == 0 && token_keys[i].shape == SHAPE_LIST)
            e = check_texts(r, path, v);
    }
    return e;
}

static int check_value(struct reader *r, const struct setting *s, const yaml_node_t *n)
{
    bool list = s->type == SETTING_ADDRS || s->type == SETTING_TOKENS;
    int e = is_null(n) ? 0 : check_shape(r, s->name, list ? SHAPE_LIST : SHAPE_TEXT, n);
    if (e || !list || is_null(n))
        return e;
    if (s->type == SETTING_ADDRS)
        return check_texts(r, s->name, n);
    for (yaml_node_item_t *i = n->data.sequence.items.start;
         e == 0 && i < n->data.sequence.items.top; i++)
        e = check_token(r, yaml_document_get_node(r->doc, *i));
    return e;
}

/* A mapping of settings: the whole document (section "") or one section. */
static int check_map(struct reader *r, const char *section, const yaml_node_t *map)
{
    int e = check_keys(r, map);
    for (yaml_node_pair_t *p = map->data.mapping.pairs.start;
         e == 0 && p < map->data.mapping.pairs.top; p++) {
        const yaml_node_t *k = yaml_document_get_node(r->doc, p->key),
                          *v = yaml_document_get_node(r->doc, p->value);
        char path[2 * SETTING_NAME_BUF];
        snprintf(path, sizeof path, "%s%s%s", section, *section ? "." : "", scalar(k));
        size_t i = 0, len = strlen(path);
        bool is_section = false;
        for (; i < settings_n; i++) {
            is_section = !*section && setting_section_len(settings[i].name) == len &&
                         memcmp(settings[i].name, path, len) == 0;
            /* A dotted key at the top would pass the comparison, but is no place in the schema. */
            if (is_section ||
                (strcmp(settings[i].name, path) == 0 && (*section || !strchr(path, '.'))))
                break;
        }
        if (i == settings_n)
            return unknown_key(r, k, path);
        if (!is_section) {
            r->line[i] = is_null(v) ? 0 : line_of(k);
            e = check_value(r, &settings[i], v);
        } else if (!is_null(v)) {
            e = check_shape(r, path, SHAPE_MAP, v);
            if (e == 0)
                e = check_map(r, path, v);
        }
    }
    return e;
}

/* What libcyaml writes to: a place for each setting, and for each section a pointer to its places. */
struct raw_token {
    char *name, *token_sha256, **kinds, **sequences;
    unsigned kinds_n, sequences_n;
};

struct place {
    union {
        char *text;
        char **list;
        struct raw_token *tokens;
        struct place *section;
    };
    unsigned n; /* of list and tokens */
};

static const cyaml_schema_value_t text_entry = { .type = CYAML_STRING,
                                                 .flags = CYAML_FLAG_POINTER,
                                                 .data_size = sizeof(char),
                                                 .string = { 0, CYAML_UNLIMITED } };

#define NULLABLE CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER_NULL_STR

static const cyaml_schema_field_t token_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_token, name,
                           0, CYAML_UNLIMITED),
    CYAML_FIELD_STRING_PTR("token_sha256", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                           struct raw_token, token_sha256, 0, CYAML_UNLIMITED),
    CYAML_FIELD_SEQUENCE_COUNT("kinds", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw_token,
                               kinds, kinds_n, &text_entry, 0, SCOPES_MAX),
    CYAML_FIELD_SEQUENCE_COUNT("sequences", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                               struct raw_token, sequences, sequences_n, &text_entry, 0,
                               SCOPES_MAX),
    CYAML_FIELD_END
};

static const cyaml_schema_value_t token_entry = { .type = CYAML_MAPPING,
                                                  .flags = CYAML_FLAG_DEFAULT,
                                                  .data_size = sizeof(struct raw_token),
                                                  .mapping = { token_fields } };

/* The schema: place i of the top mapping belongs to row i of the table, or, at a section's first row,
 * to that section, within which the places are counted from that row on. */
struct schema {
    char sections[CONFIG_SETTINGS_MAX][SETTING_NAME_BUF];
    cyaml_schema_field_t top[CONFIG_SETTINGS_MAX + 1];
    cyaml_schema_field_t in_section[KEYS_MAX];
    size_t first[CONFIG_SETTINGS_MAX]; /* of the section that a row is in; itself if in none */
    cyaml_schema_value_t root;
};

static void add_setting(cyaml_schema_field_t *f, const struct setting *s, size_t place)
{
    const char *dot = strchr(s->name, '.');
    *f = (cyaml_schema_field_t){ .key = dot ? dot + 1 : s->name,
                                 .data_offset = (uint32_t)(place * sizeof(struct place)),
                                 .value = text_entry };
    f->value.flags = NULLABLE;
    if (s->type != SETTING_ADDRS && s->type != SETTING_TOKENS)
        return;
    bool tokens = s->type == SETTING_TOKENS;
    f->count_offset = f->data_offset + (uint32_t)offsetof(struct place, n);
    f->count_size = sizeof(unsigned);
    f->value = (cyaml_schema_value_t){ .type = CYAML_SEQUENCE,
                                       .flags = NULLABLE,
                                       .data_size = tokens ? sizeof(struct raw_token)
                                                           : sizeof(char *),
                                       .sequence = { tokens ? &token_entry : &text_entry, 0,
                                                     tokens ? TOKENS_MAX : CYAML_UNLIMITED } };
}

static void make_schema(struct schema *s)
{
    size_t top = 0, in = 0;
    for (size_t i = 0; i < settings_n; i++) {
        size_t len = setting_section_len(settings[i].name);
        s->first[i] = i;
        if (len == 0) {
            add_setting(&s->top[top++], &settings[i], i);
            continue;
        }
        if (i > 0 && strncmp(settings[i - 1].name, settings[i].name, len + 1) == 0) {
            s->first[i] = s->first[i - 1];
            in--; /* over the end mark of the section as it was until now */
        } else {
            memcpy(s->sections[i], settings[i].name, len);
            s->top[top++] = (cyaml_schema_field_t){
                .key = s->sections[i],
                .data_offset = (uint32_t)(i * sizeof(struct place)),
                .value = { .type = CYAML_MAPPING,
                           .flags = NULLABLE,
                           .data_size = CONFIG_SETTINGS_MAX * sizeof(struct place),
                           .mapping = { &s->in_section[in] } },
            };
        }
        add_setting(&s->in_section[in++], &settings[i], i - s->first[i]);
        in++;
    }
    s->root = (cyaml_schema_value_t){ .type = CYAML_MAPPING,
                                      .flags = CYAML_FLAG_POINTER,
                                      .data_size = CONFIG_SETTINGS_MAX * sizeof(struct place),
                                      .mapping = { s->top } };
}

static int set_error(struct reader *r, const struct setting *s, int error,
                     const struct firn_diag *why)
{
    return fail(r, error, r->line[s - settings], "%s: %s", s->name, why->text);
}

static int set_list(struct reader *r, const struct setting *s, char *const *list, unsigned n)
{
    struct firn_diag why = { 0 };
    char *text = NULL;
    size_t size;
    FILE *join = open_memstream(&text, &size);
    int e = join ? 0 : FIRN_ENOMEM;
    for (unsigned i = 0; e == 0 && i < n; i++)
        fprintf(join, i ? ",%s" : "%s", list[i]);
    if (join && fclose(join) != 0)
        e = FIRN_ENOMEM;
    if (e == 0 && n > 0 && text[0] == '\0')
        e = firn__diag(&why, FIRN_EFORMAT, 0, "an address is empty");
    if (e == 0)
        e = setting_set(r->c, s, text, &why);
    free(text);
    return e ? set_error(r, s, e, &why) : 0;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_sha256(const char *text, uint8_t out[32])
{
    if (strlen(text) != 64)
        return FIRN_EFORMAT;
    for (size_t i = 0; i < 32; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return FIRN_EFORMAT;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

static bool is_word(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-_.:/*", text[i]))
            return false;
    return n >= 1 && n <= 128;
}

/* libcyaml frees its strings itself: we need our own. */
static int copy_scope(struct config_strings *to, char **from, unsigned n)
{
    to->v = calloc(n ? n : 1, sizeof *to->v);
    for (unsigned i = 0; to->v && i < n; i++) {
        to->v[i] = strdup(from[i]);
        if (!to->v[i])
            return FIRN_ENOMEM;
        to->n++;
    }
    return to->v ? 0 : FIRN_ENOMEM;
}

static int check_scope(const struct raw_token *t, struct firn_diag *why)
{
    char show[SHOWN_BUF];
    for (unsigned i = 0; i < t->kinds_n; i++) {
        const char *kind = t->kinds[i];
        if (!is_word(kind) || (!strchr(kind, '*') && strcmp(kind, "ticket") != 0 &&
                               !firn_kind_find(kind, strlen(kind))))
            return firn__diag(why, FIRN_EFORMAT, 0,
                              "token '%.40s': there is no kind '%s'; `firn gen --help` lists them",
                              t->name, shown(kind, show));
    }
    for (unsigned i = 0; i < t->sequences_n; i++)
        if (!is_word(t->sequences[i]))
            return firn__diag(why, FIRN_EFORMAT, 0, "token '%.40s': '%s' names no sequence",
                              t->name, shown(t->sequences[i], show));
    if (t->kinds_n + t->sequences_n == 0)
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "token '%.40s' may mint nothing; give it kinds or sequences, or ['*']",
                          t->name);
    return 0;
}

static int set_token(struct config_tokens *to, const struct raw_token *t, struct firn_diag *why)
{
    char show[SHOWN_BUF];
    struct config_token *token = &to->v[to->n];
    if (!t->name || !is_word(t->name))
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "entry %zu needs a name: letters, digits, '-', '_' and '.'", to->n + 1);
    for (size_t i = 0; i < to->n; i++)
        if (strcmp(to->v[i].name, t->name) == 0)
            return firn__diag(why, FIRN_EFORMAT, 0, "the name '%s' is there twice",
                              shown(t->name, show));
    if (!t->token_sha256 || parse_sha256(t->token_sha256, token->sha256) != 0)
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "token '%.40s' needs token_sha256: the 64 hex digits that printf %%s "
                          "TOKEN | sha256sum prints",
                          t->name);
    int e = check_scope(t, why);
    if (e)
        return e;
    to->n++; /* from here on setting_free() sees it */
    token->name = strdup(t->name);
    if (!token->name || copy_scope(&token->kinds, t->kinds, t->kinds_n) ||
        copy_scope(&token->sequences, t->sequences, t->sequences_n))
        return firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    return 0;
}

static int set_tokens(struct reader *r, const struct setting *s, const struct raw_token *t,
                      unsigned n)
{
    struct firn_diag why = { 0 };
    struct config_tokens *to = &r->c->auth.tokens;
    setting_free(r->c, s);
    to->v = calloc(n ? n : 1, sizeof *to->v);
    int e = to->v ? 0 : firn__diag(&why, FIRN_ENOMEM, 0, "out of memory");
    for (unsigned i = 0; e == 0 && i < n; i++)
        e = set_token(to, &t[i], &why);
    return e ? set_error(r, s, e, &why) : 0;
}

static int set_all(struct reader *r, const struct schema *schema, const struct place *top)
{
    for (size_t i = 0; i < settings_n; i++) {
        const struct setting *s = &settings[i];
        const struct place *at = &top[i];
        struct firn_diag why = { 0 };
        if (r->line[i] == 0)
            continue;
        if (setting_section_len(s->name))
            at = top[schema->first[i]].section + (i - schema->first[i]);
        int e = 0;
        if (s->type == SETTING_TOKENS)
            e = set_tokens(r, s, at->tokens, at->n);
        else if (s->type == SETTING_ADDRS)
            e = set_list(r, s, at->list, at->n);
        else if ((e = setting_set(r->c, s, at->text ? at->text : "", &why)) != 0)
            e = set_error(r, s, e, &why);
        if (e)
            return e;
        r->c->source[i] = (struct config_source){ CONFIG_FILE, r->line[i] };
    }
    return 0;
}

/* Keeps the first thing that libcyaml complains about. */
static void keep_message(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
    struct firn_diag *said = ctx;
    if (level < CYAML_LOG_ERROR || said->text[0])
        return;
    vsnprintf(said->text, sizeof said->text, fmt, args);
    said->text[strcspn(said->text, "\n")] = '\0';
}

static int load_values(struct reader *r, const char *text, size_t len)
{
    struct firn_diag said = { 0 };
    cyaml_config_t config = { .log_fn = keep_message,
                              .log_ctx = &said,
                              .log_level = CYAML_LOG_ERROR,
                              .mem_fn = cyaml_mem,
                              .flags = CYAML_CFG_NO_ALIAS };
    struct schema *schema = calloc(1, sizeof *schema);
    if (!schema)
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    make_schema(schema);
    void *top = NULL;
    cyaml_err_t err = cyaml_load_data((const uint8_t *)text, len, &config, &schema->root, &top,
                                      NULL);
    int e = 0;
    if (err != CYAML_OK)
        e = firn__diag(r->diag, FIRN_EFORMAT, 0, "%s: %s (%.100s)", r->file, cyaml_strerror(err),
                       said.text);
    else
        e = set_all(r, schema, top);
    if (err == CYAML_OK)
        cyaml_free(&config, &schema->root, top, 0);
    free(schema);
    return e;
}

static int syntax_error(struct reader *r, const yaml_parser_t *p)
{
    if (p->error == YAML_MEMORY_ERROR)
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    /* Errors of the bytes themselves (not UTF-8, control characters) know no line. */
    if (p->error == YAML_READER_ERROR)
        return firn__diag(r->diag, FIRN_EFORMAT, p->problem_offset + 1, "%s: byte %zu: %s", r->file,
                          p->problem_offset + 1, p->problem);
    return fail(r, FIRN_EFORMAT, (unsigned)p->problem_mark.line + 1,
                "this is not YAML: %s%s%s (column %zu)", p->context ? p->context : "",
                p->context ? ", " : "", p->problem ? p->problem : "unknown error",
                p->problem_mark.column + 1);
}

/* Aliases make a graph of the tree and megabytes of a line; a configuration needs neither. */
static int refuse_aliases(struct reader *r, const char *text, size_t len)
{
    yaml_parser_t parser;
    yaml_event_t event;
    int e = 0;
    if (!yaml_parser_initialize(&parser))
        return firn__diag(r->diag, FIRN_ENOMEM, 0, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    for (bool end = false; e == 0 && !end;) {
        if (!yaml_parser_parse(&parser, &event)) {
            e = syntax_error(r, &parser);
            break;
        }
        if (event.type == YAML_ALIAS_EVENT)
            e = fail(r, FIRN_ENOTSUP, (unsigned)event.start_mark.line + 1,
                     "aliases (*%.40s) are not taken; repeat the value",
                     (const char *)event.data.alias.anchor);
        end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return e;
}

int config_yaml_read(struct config *c, const char *text, size_t len, struct firn_diag *diag)
{
    yaml_parser_t parser;
    yaml_document_t doc, more;
    struct reader r = { c, shown_file(c->file), &doc, diag, { 0 } };
    int e = refuse_aliases(&r, text, len);
    if (e)
        return e;
    if (!yaml_parser_initialize(&parser))
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    if (!yaml_parser_load(&parser, &doc)) {
        e = syntax_error(&r, &parser);
        yaml_parser_delete(&parser);
        return e;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&doc);
    bool empty = !root || is_null(root);
    if (!empty) {
        if (root->type == YAML_MAPPING_NODE)
            e = check_map(&r, "", root);
        else
            e = FAIL(&r, FIRN_EFORMAT, root, "expected settings, as in 'layout: firn'");
    }
    if (root && e == 0) { /* the end of the file: a document without a root */
        if (!yaml_parser_load(&parser, &more)) {
            e = syntax_error(&r, &parser);
        } else {
            const yaml_node_t *second = yaml_document_get_root_node(&more);
            if (second)
                e = FAIL(&r, FIRN_EFORMAT, second, "a second document begins; only one is read");
            yaml_document_delete(&more);
        }
    }
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    return e || empty ? e : load_values(&r, text, len);
}
