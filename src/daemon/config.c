/*
 * The layers of a configuration brought together: defaults, then the file, then the environment,
 * then the flags, each checked even if a later one replaces it, so that an error does not wait for
 * the day on which the override is removed. At the end come the checks that need the whole: the
 * program's own, and files.
 */
#include "daemon/config_in.h"
#include "daemon/regular_file.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "wire/distance.h"
#include "wire/variables.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    FILE_MAX = 1 << 20, /* a larger file is no configuration */
    HELP_COLUMN = 34,
    ORIGIN_COLUMN = 42,
    EXIT_USAGE = 2,
    PLACE_BUF = 128,
};

/* Flags that are no settings. */
static const struct {
    const char *flag, *letter, *help;
    enum config_action action;
} actions[] = {
    { "--check-config", "", "check the configuration, then exit", CONFIG_CHECK },
    { "--print-config", "", "print every setting and where it comes from, then exit",
      CONFIG_PRINT },
    { "--version", "-V", "print the version, then exit", CONFIG_VERSION },
    { "--help", "-h", "print this, then exit", CONFIG_HELP },
};
enum { ACTIONS = sizeof actions / sizeof actions[0] };

/* --- names --- */

size_t setting_section_len(const char *name)
{
    const char *dot = strchr(name, '.');
    return dot ? (size_t)(dot - name) : 0;
}

void setting_env(const struct config_program *p, const struct setting *s,
                 char out[SETTING_NAME_BUF])
{
    size_t prefix = strlen(p->prefix);
    size_t n = (size_t)snprintf(out, SETTING_NAME_BUF, "%s%s", p->prefix, s->name);
    for (size_t i = prefix; i < n && i < SETTING_NAME_BUF; i++)
        out[i] = out[i] == '.' ? '_' : (char)toupper((unsigned char)out[i]);
}

void setting_flag(const struct setting *s, char out[SETTING_NAME_BUF])
{
    size_t n = (size_t)snprintf(out, SETTING_NAME_BUF, "--%s", s->name);
    for (size_t i = 2; i < n && i < SETTING_NAME_BUF; i++)
        if (out[i] == '.' || out[i] == '_')
            out[i] = '-';
}

const char *nearest_name(const char *word, const char *const *names, size_t n)
{
    size_t len = strlen(word), near = SIZE_MAX;
    const char *found = NULL;
    if (len == 0 || len > SETTING_NAME_BUF)
        return NULL;
    for (size_t i = 0; i < n; i++) { /* `snowflake`: the section of listen.snowflake is missing */
        size_t section = setting_section_len(names[i]);
        if (section && strcmp(names[i] + section + 1, word) == 0)
            return names[i];
    }
    for (size_t i = 0; i < n; i++) {
        size_t distance = edit_distance(word, len, names[i], strlen(names[i]));
        if (distance < near) {
            near = distance;
            found = names[i];
        }
    }
    size_t bound = len < 6 ? 1 + len / 3 : 3; /* beyond that a guess is noise */
    return near <= bound ? found : NULL;
}

const char *shown_file(const char *file)
{
    enum { LAST = 60 }; /* leaves room for the message in a diag */
    size_t n = strlen(file ? file : "");
    return n > LAST ? file + n - LAST : file ? file : "config";
}

/* Where a value came from, as messages name it: "firnd.yaml:3: listen.home", "FIRN_LISTEN_HOME". */
static const char *place_of(const struct config_base *c, size_t i, char out[PLACE_BUF])
{
    const struct setting *s = &c->program->settings[i];
    char name[SETTING_NAME_BUF];
    switch (c->source[i].from) {
    case CONFIG_DEFAULT:
        snprintf(out, PLACE_BUF, "%s (default)", s->name);
        break;
    case CONFIG_FILE:
        snprintf(out, PLACE_BUF, "%s:%u: %s", shown_file(c->file), c->source[i].line, s->name);
        break;
    case CONFIG_ENV:
        setting_env(c->program, s, name);
        snprintf(out, PLACE_BUF, "%s", name);
        break;
    case CONFIG_FLAG:
        setting_flag(s, name);
        snprintf(out, PLACE_BUF, "%s", name);
        break;
    }
    return out;
}

int config_fault(const struct config_base *c, const char *name, int error, struct firn_diag *diag,
                 const char *fmt, ...)
{
    char place[PLACE_BUF], text[sizeof diag->text];
    size_t i = 0;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    while (strcmp(c->program->settings[i].name, name) != 0)
        i++;
    const unsigned column = c->source[i].from == CONFIG_FILE ? c->source[i].column : 0;
    if (column == 0)
        return firn__diag(diag, error, 0, "%s: %s", place_of(c, i, place), text);
    return firn__diag(diag, error, column, "%s: %s (column %u)", place_of(c, i, place), text,
                      column);
}

/* --- layers --- */

/* Set one value, remember where it came from, and let an error say so. */
static int set_from(struct config_base *c, size_t i, int from, const char *text,
                    struct firn_diag *diag)
{
    struct firn_diag why = { 0 };
    char place[PLACE_BUF];
    struct config_source before = c->source[i];
    c->source[i] = (struct config_source){ from, 0, 0 };
    int r = setting_set(c, &c->program->settings[i], text, &why);
    if (r) {
        firn__diag(diag, r, 0, "%s: %s", place_of(c, i, place), why.text);
        c->source[i] = before;
    }
    return r;
}

static int set_defaults(struct config_base *c, bool computed, struct firn_diag *diag)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < c->program->settings_n; i++) {
        const struct setting *s = &c->program->settings[i];
        if (!computed && s->preset) {
            r = set_from(c, i, CONFIG_DEFAULT, s->preset, diag);
        } else if (computed && s->compute && c->source[i].from == CONFIG_DEFAULT) {
            char *text = s->compute(c);
            r = text ? set_from(c, i, CONFIG_DEFAULT, text, diag)
                     : firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
            free(text);
        }
    }
    return r;
}

/* At the start it may be a pipe, as from `-c <(...)`; `again`, while the server serves, nothing
 * that could hold it. */
static int read_file(struct config_base *c, bool again, struct firn_diag *diag)
{
    const char *why = NULL;
    int r = 0;
    FILE *f = again ? regular_file_open(c->file, &why) : fopen(c->file, "re");
    char *text = f ? malloc(FILE_MAX + 1) : NULL;
    size_t n = text ? fread(text, 1, FILE_MAX + 1, f) : 0;
    if (!f)
        r = firn__diag(diag, errno == ENOENT ? FIRN_ENOENT : FIRN_EIO, 0,
                       "%s: %s; --config names the file to read", shown_file(c->file),
                       why ? why : strerror(errno));
    else if (!text)
        r = firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    else if (ferror(f))
        r = firn__diag(diag, FIRN_EIO, 0, "%s: %s", shown_file(c->file), strerror(errno));
    else if (n > FILE_MAX)
        r = firn__diag(diag, FIRN_ERANGE, 0, "%s: the file is larger than %d bytes",
                       shown_file(c->file), FILE_MAX);
    else
        r = config_yaml_read(c, text, n, diag);
    free(text);
    if (f)
        fclose(f);
    return r;
}

/* A flag that was read: which setting, and its value. */
struct flags {
    const char *file;
    bool no_file;
    enum config_action action;
    const char *value[CONFIG_SETTINGS_MAX]; /* NULL: not given */
};

static int unknown_flag(const struct config_program *p, const char *word, struct firn_diag *diag)
{
    char flags[CONFIG_SETTINGS_MAX][SETTING_NAME_BUF], show[CONFIG_SHOWN_BUF],
        bare[SETTING_NAME_BUF];
    const char *names[CONFIG_SETTINGS_MAX + ACTIONS + 2];
    size_t n = 0;
    for (size_t i = 0; i < p->settings_n; i++) {
        setting_flag(&p->settings[i], flags[i]);
        names[n++] = flags[i];
    }
    for (size_t i = 0; i < ACTIONS; i++)
        names[n++] = actions[i].flag;
    names[n++] = "--config";
    names[n++] = "--no-config";
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word);
    const char *guess = nearest_name(bare, names, n);
    if (guess)
        return firn__diag(diag, FIRN_EINVAL, 0, "there is no flag '%s'; did you mean %s",
                          config_shown(word, show), guess);
    return firn__diag(diag, FIRN_EINVAL, 0, "there is no flag '%s'; %s --help lists them",
                      config_shown(word, show), p->name);
}

/* Whether argv[*at] is `flag`; its value comes after '=', or, if needed, in the next argument. */
static bool take_flag(int argc, char **argv, int *at, const char *flag, bool needs,
                      const char **value)
{
    size_t n = strlen(flag);
    const char *word = argv[*at];
    if (strncmp(word, flag, n) != 0 || (word[n] != '\0' && word[n] != '='))
        return false;
    *value = word[n] == '=' ? word + n + 1 : NULL;
    if (needs && !*value && *at + 1 < argc)
        *value = argv[++*at];
    return true;
}

static int parse_flag(const struct config_program *p, struct flags *f, int argc, char **argv,
                      int *at, struct firn_diag *diag)
{
    const char *word = argv[*at], *value;
    for (size_t i = 0; i < ACTIONS; i++) {
        if (strcmp(word, actions[i].flag) == 0 ||
            (actions[i].letter[0] && strcmp(word, actions[i].letter) == 0)) {
            f->action = actions[i].action;
            return 0;
        }
    }
    if (strcmp(word, "--no-config") == 0) {
        f->no_file = true;
        return 0;
    }
    if (take_flag(argc, argv, at, "--config", true, &f->file) ||
        (strcmp(word, "-c") == 0 && take_flag(argc, argv, at, "-c", true, &f->file)))
        return f->file ? 0 : firn__diag(diag, FIRN_EINVAL, 0, "%s lacks the file's name", word);
    for (size_t i = 0; i < p->settings_n; i++) {
        char flag[SETTING_NAME_BUF], no[SETTING_NAME_BUF + 8];
        bool is_bool = p->settings[i].type == SETTING_BOOL;
        setting_flag(&p->settings[i], flag);
        snprintf(no, sizeof no, "--no-%s", flag + 2);
        if (is_bool && strcmp(word, no) == 0) {
            f->value[i] = "false";
            return 0;
        }
        const char *also = p->settings[i].also;
        if (!take_flag(argc, argv, at, flag, !is_bool, &value) &&
            !(also && take_flag(argc, argv, at, also, !is_bool, &value)))
            continue;
        if (!value && !is_bool)
            return firn__diag(diag, FIRN_EINVAL, 0, "%s lacks its value, as in %s=VALUE", flag,
                              flag);
        f->value[i] = value ? value : "true";
        return 0;
    }
    return unknown_flag(p, word, diag);
}

static int check_files(const struct config_base *c, struct firn_diag *diag)
{
    for (size_t i = 0; i < c->program->settings_n; i++) {
        const struct setting *s = &c->program->settings[i];
        const char *file = s->type == SETTING_FILE ? *(char **)setting_at(c, s) : NULL;
        if (!file || access(file, R_OK) == 0)
            continue;
        int e = errno;
        return config_fault(c, s->name, e == ENOENT ? FIRN_ENOENT : FIRN_EIO, diag, "%s: %s",
                            shown_file(file), strerror(e));
    }
    return 0;
}

static int find_file(struct config_base *c, const struct flags *f, struct firn_diag *diag)
{
    char variable[SETTING_NAME_BUF];
    snprintf(variable, sizeof variable, "%sCONFIG", c->program->prefix);
    const char *file = f->file ? f->file : getenv(variable);
    if (f->no_file)
        return 0;
    if (!file || !*file)
        file = access(c->program->file, F_OK) == 0 ? c->program->file : NULL;
    if (!file)
        return 0;
    c->file = strdup(file);
    return c->file ? 0 : firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
}

static int load_layers(struct config_base *c, const struct flags *f, bool again,
                       struct firn_diag *diag)
{
    const struct config_program *p = c->program;
    int r = set_defaults(c, false, diag);
    if (r == 0)
        r = find_file(c, f, diag);
    if (r == 0 && c->file)
        r = read_file(c, again, diag);
    for (size_t i = 0; r == 0 && i < p->settings_n; i++) {
        char name[SETTING_NAME_BUF];
        setting_env(p, &p->settings[i], name);
        const char *value = getenv(name);
        if (value && *value) /* empty is how scripts say "not set" */
            r = set_from(c, i, CONFIG_ENV, value, diag);
    }
    for (size_t i = 0; r == 0 && i < p->settings_n; i++)
        if (f->value[i])
            r = set_from(c, i, CONFIG_FLAG, f->value[i], diag);
    if (r == 0)
        r = set_defaults(c, true, diag);
    if (r == 0 && p->check)
        r = p->check(c, diag);
    return r ? r : check_files(c, diag);
}

static int load(struct config_base *c, const struct config_program *p, int argc, char **argv,
                bool again, struct firn_diag *diag)
{
    struct flags f = { .action = CONFIG_RUN };
    firn_assert(p->settings_n <= CONFIG_SETTINGS_MAX && p->size >= sizeof *c, "settings=%zu",
                p->settings_n);
    memset(c, 0, p->size);
    for (int i = 1; i < argc; i++) {
        int r = parse_flag(p, &f, argc, argv, &i, diag);
        if (r)
            return r;
    }
    *c = (struct config_base){ .program = p, .action = f.action, .argc = argc, .argv = argv };
    if (f.action == CONFIG_HELP || f.action == CONFIG_VERSION) /* work in a broken world, too */
        return 0;
    int r = load_layers(c, &f, again, diag);
    if (r)
        config_free(c);
    return r;
}

int config_load(struct config_base *c, const struct config_program *p, int argc, char **argv,
                struct firn_diag *diag)
{
    return load(c, p, argc, argv, false, diag);
}

void config_free(struct config_base *c)
{
    const struct config_program *p = c->program;
    for (size_t i = 0; p && i < p->settings_n; i++)
        setting_free(c, &p->settings[i]);
    free(c->file);
    free(c->places);
    memset(c, 0, p ? p->size : sizeof *c);
}

/* --- reading again --- */

static char *value_text(const struct config_base *c, const struct setting *s)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    if (!f)
        return NULL;
    setting_write(c, s, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

int config_reload(const struct config_base *old, struct config_base *next,
                  struct config_change *changes, size_t *out_n, struct firn_diag *diag)
{
    const struct config_program *p = old->program;
    size_t n = 0;
    int r = load(next, p, old->argc, old->argv, true, diag);
    for (size_t i = 0; r == 0 && i < p->settings_n; i++) {
        const struct setting *s = &p->settings[i];
        char *before = value_text(old, s), *after = value_text(next, s);
        if (!before || !after) {
            r = firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
        } else if (strcmp(before, after) != 0) {
            changes[n++] = (struct config_change){ s->name, s->flags & SETTING_RELOAD };
            if (!(s->flags & SETTING_RELOAD)) {
                r = setting_copy(next, old, s, diag);
                next->source[i] = old->source[i];
            }
        }
        free(before);
        free(after);
        if (r) {
            config_free(next);
            return r;
        }
    }
    if (r == 0)
        *out_n = n;
    return r;
}

/* --- showing --- */

static void write_origin(const struct config_base *c, size_t i, FILE *out)
{
    const struct setting *s = &c->program->settings[i];
    char place[PLACE_BUF];
    if (c->source[i].from == CONFIG_DEFAULT)
        fputs(s->preset || s->compute ? "default" : "not set", out);
    else if (c->source[i].from == CONFIG_FILE)
        fprintf(out, "%s:%u", c->file, c->source[i].line);
    else
        fputs(place_of(c, i, place), out);
}

void config_print(const struct config_base *c, FILE *out)
{
    const char *section = "";
    for (size_t i = 0; i < c->program->settings_n; i++) {
        const char *name = c->program->settings[i].name;
        size_t len = setting_section_len(name);
        if (len && strncmp(section, name, len + 1) != 0)
            fprintf(out, "%.*s:\n", (int)len, name);
        section = name;
        char *value = value_text(c, &c->program->settings[i]);
        int used = fprintf(out, len ? "  %s: %s" : "%s: %s", name + (len ? len + 1 : 0),
                           value ? value : "");
        free(value);
        fprintf(out, "%*s # ", used < ORIGIN_COLUMN ? ORIGIN_COLUMN - used : 0, "");
        write_origin(c, i, out);
        fputc('\n', out);
    }
}

static void help_line(FILE *out, const char *left, const char *right, const char *preset)
{
    fprintf(out, "  %-*s %s", HELP_COLUMN, left, right);
    if (preset)
        fprintf(out, " [%s]", preset);
    fputc('\n', out);
}

void config_help(const struct config_program *p, FILE *out)
{
    static const char *const values[] = {
        [SETTING_STRING] = "=TEXT",   [SETTING_FILE] = "=FILE",     [SETTING_UINT] = "=N",
        [SETTING_BOOL] = "",          [SETTING_CHOICE] = "=CHOICE", [SETTING_ADDRS] = "=ADDR,...",
        [SETTING_LIST] = "=TEXT,...",
    };
    const struct setting example = { .name = p->flag_example };
    char left[2 * SETTING_NAME_BUF], flag[SETTING_NAME_BUF], variable[SETTING_NAME_BUF];
    fprintf(out, "usage: %s [flags]\n%s\n", p->name, p->about);
    help_line(out, "-c, --config=FILE", "read this file instead of", p->file);
    help_line(out, "    --no-config", "read no file", NULL);
    for (size_t i = 0; i < ACTIONS; i++) {
        snprintf(left, sizeof left, "%s%s %s", actions[i].letter[0] ? actions[i].letter : "  ",
                 actions[i].letter[0] ? "," : " ", actions[i].flag);
        help_line(out, left, actions[i].help, NULL);
    }
    setting_flag(&example, flag);
    setting_env(p, &example, variable);
    fprintf(out,
            "\nSettings, with their defaults. %s is %s in the file and\n"
            "%s in the environment. A flag wins over the environment, and that over\n"
            "the file.\n\n",
            flag, p->flag_example, variable);
    for (size_t i = 0; i < p->settings_n; i++) {
        const struct setting *s = &p->settings[i];
        if (s->type == SETTING_ENTRIES)
            continue;
        setting_flag(s, flag);
        if (s->type == SETTING_CHOICE)
            snprintf(left, sizeof left, "%s=%s", flag, s->choices);
        else
            snprintf(left, sizeof left, "%s%s", flag, values[s->type]);
        if (strlen(left) > HELP_COLUMN)
            fprintf(out, "  %s\n  %-*s %s [%s]\n", left, HELP_COLUMN, "", s->help, s->preset);
        else
            help_line(out, left, s->help, s->preset ? s->preset : s->preset_note);
    }
    fputs("\nOnly in the file:", out);
    for (size_t i = 0; i < p->settings_n; i++)
        if (p->settings[i].type == SETTING_ENTRIES)
            fprintf(out, " %s", p->settings[i].name);
    fprintf(out, ". SIGHUP reads the file again. See\n%s(8) and %s.yaml(5).\n", p->name, p->name);
}

/* The setting that a mistyped variable may mean: the nearest, or the one whose section is missing
 * (FIRN_LEVEL). */
static const char *guess_variable(const char *name, const char *const *names, size_t n,
                                  size_t prefix)
{
    for (size_t i = 0; i < n; i++) {
        size_t len = strlen(names[i]), rest = strlen(name + prefix);
        if (rest > 0 && len > prefix + rest + 1 && names[i][len - rest - 1] == '_' &&
            strcmp(names[i] + len - rest, name + prefix) == 0)
            return names[i];
    }
    const char *bare[CONFIG_SETTINGS_MAX];
    for (size_t i = 0; i < n; i++)
        bare[i] = names[i] + prefix; /* what all have in common makes nothing similar */
    const char *guess = nearest_name(name + prefix, bare, n);
    return guess ? guess - prefix : NULL;
}

size_t config_strangers(const struct config_program *p, size_t *out_links, FILE *out)
{
    extern char **environ;
    char known[CONFIG_SETTINGS_MAX][SETTING_NAME_BUF];
    const char *names[CONFIG_SETTINGS_MAX];
    size_t found = 0, prefix = strlen(p->prefix), links = 0;
    for (size_t i = 0; i < p->settings_n; i++) {
        setting_env(p, &p->settings[i], known[i]);
        names[i] = known[i];
    }
    for (char **e = environ; *e; e++) {
        char name[2 * SETTING_NAME_BUF];
        size_t len = strcspn(*e, "="), at = 0;
        if (strncmp(*e, p->prefix, prefix) != 0 || (*e)[len] == '\0' || (*e)[len + 1] == '\0')
            continue; /* empty is how scripts say "not set" */
        snprintf(name, sizeof name, "%.*s", (int)len, *e);
        while (at < p->settings_n && strcmp(names[at], name) != 0)
            at++;
        if (at < p->settings_n || variable_common(name))
            continue;
        if (variable_of_service(name, *e + len + 1)) {
            links++;
            continue;
        }
        const char *guess = guess_variable(name, names, p->settings_n, prefix);
        char show[CONFIG_SHOWN_BUF];
        if (guess)
            fprintf(out, "%s: %s is no setting; did you mean %s?\n", p->name,
                    config_shown(name, show), guess);
        else
            fprintf(out, "%s: %s is no setting: unset it; %s --help lists the settings\n", p->name,
                    config_shown(name, show), p->name);
        found++;
    }
    if (out_links)
        *out_links = links;
    return found;
}

int config_begin(struct config_base *c, const struct config_program *p, int argc, char **argv)
{
    struct firn_diag d = { 0 };
    int r = config_load(c, p, argc, argv, &d);
    if (r) {
        fprintf(stderr, "%s: %s\n", p->name, d.text[0] ? d.text : firn_error_message(r));
        return EXIT_USAGE;
    }
    bool works_anyhow = c->action == CONFIG_HELP || c->action == CONFIG_VERSION;
    if (!works_anyhow && config_strangers(p, NULL, stderr) > 0) {
        config_free(c);
        return EXIT_USAGE;
    }
    if (c->action == CONFIG_CHECK && p->check_files && p->check_files(c, &d) != 0) {
        fprintf(stderr, "%s: %s\n", p->name, d.text);
        config_free(c);
        return EXIT_USAGE;
    }
    switch (c->action) {
    case CONFIG_RUN:
        return -1;
    case CONFIG_HELP:
        config_help(p, stdout);
        break;
    case CONFIG_VERSION:
        printf("%s " FIRN_VERSION "\n", p->name);
        break;
    case CONFIG_PRINT:
        config_print(c, stdout);
        break;
    case CONFIG_CHECK:
        printf("%s: ok\n", c->file ? c->file : "settings");
        break;
    }
    config_free(c);
    return 0;
}
