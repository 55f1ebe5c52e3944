/*
 * Bringing the layers together: defaults, then the file, then the environment, then the flags, each
 * checked even if a later one replaces it, so that a mistake does not wait for the day on which the
 * override is taken away. At the end, what only the whole shows: pairs, clashes, files.
 */
#include "server/config.h"
#include "server/cluster.h"
#include "server/config_table.h"
#include "id/diag.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum {
    FILE_MAX = 1 << 20, /* a configuration of more than 1 MiB is a mistake */
    HELP_COLUMN = 34,
    ORIGIN_COLUMN = 42,
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

const char *shown_file(const char *file)
{
    enum { LAST = 60 }; /* leaves room for the message in a diag */
    size_t n = strlen(file ? file : "");
    return n > LAST ? file + n - LAST : file ? file : "config";
}

const char *setting_place(const struct config *c, const struct setting *s, char out[PLACE_BUF])
{
    const struct config_source *from = &c->source[s - settings];
    char name[SETTING_NAME_BUF];
    switch (from->from) {
    case CONFIG_DEFAULT:
        snprintf(out, PLACE_BUF, "%s (default)", s->name);
        break;
    case CONFIG_FILE:
        snprintf(out, PLACE_BUF, "%s:%u: %s", shown_file(c->file), from->line, s->name);
        break;
    case CONFIG_ENV:
    case CONFIG_FLAG:
        (from->from == CONFIG_ENV ? setting_env : setting_flag)(s, name);
        snprintf(out, PLACE_BUF, "%s", name);
        break;
    }
    return out;
}

/* Set one value, remember where it came from, and let an error say so. */
static int set_from(struct config *c, size_t i, int from, const char *text, struct firn_diag *diag)
{
    struct firn_diag why = { 0 };
    char place[PLACE_BUF];
    struct config_source before = c->source[i];
    c->source[i] = (struct config_source){ from, 0 };
    int r = setting_set(c, &settings[i], text, &why);
    if (r) {
        firn__diag(diag, r, 0, "%s: %s", setting_place(c, &settings[i], place), why.text);
        c->source[i] = before;
    }
    return r;
}

static int set_defaults(struct config *c, bool computed, struct firn_diag *diag)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < settings_n; i++) {
        const struct setting *s = &settings[i];
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

static int read_file(struct config *c, struct firn_diag *diag)
{
    int r = 0;
    FILE *f = fopen(c->file, "re");
    char *text = f ? malloc(FILE_MAX + 1) : NULL;
    size_t n = text ? fread(text, 1, FILE_MAX + 1, f) : 0;
    if (!f)
        r = firn__diag(diag, errno == ENOENT ? FIRN_ENOENT : FIRN_EIO, 0,
                       "%s: %s; --config names the file to read", shown_file(c->file),
                       strerror(errno));
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

static int unknown_flag(const char *word, struct firn_diag *diag)
{
    char flags[CONFIG_SETTINGS_MAX][SETTING_NAME_BUF], show[SHOWN_BUF], bare[SETTING_NAME_BUF];
    const char *names[CONFIG_SETTINGS_MAX + ACTIONS + 2];
    size_t n = 0;
    for (size_t i = 0; i < settings_n; i++) {
        setting_flag(&settings[i], flags[i]);
        names[n++] = flags[i];
    }
    for (size_t i = 0; i < ACTIONS; i++)
        names[n++] = actions[i].flag;
    names[n++] = "--config";
    names[n++] = "--no-config";
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(word, "="), word);
    const char *guess = nearest_name(bare, names, n);
    return firn__diag(diag, FIRN_EINVAL, 0, "there is no flag '%s'; %s%s", shown(word, show),
                      guess ? "did you mean " : "firnd --help lists them", guess ? guess : "");
}

/* Does argv[*at] mean `flag`? Then its value: after '=', or the next argument where one is needed. */
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

static int parse_flag(struct flags *f, int argc, char **argv, int *at, struct firn_diag *diag)
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
    for (size_t i = 0; i < settings_n; i++) {
        char flag[SETTING_NAME_BUF], no[SETTING_NAME_BUF + 8];
        bool is_bool = settings[i].type == SETTING_BOOL;
        setting_flag(&settings[i], flag);
        snprintf(no, sizeof no, "--no-%s", flag + 2);
        if (is_bool && strcmp(word, no) == 0) {
            f->value[i] = "false";
            return 0;
        }
        if (!take_flag(argc, argv, at, flag, !is_bool, &value))
            continue;
        if (!value && !is_bool)
            return firn__diag(diag, FIRN_EINVAL, 0, "%s lacks its value, as in %s=VALUE", flag,
                              flag);
        f->value[i] = value ? value : "true";
        return 0;
    }
    return unknown_flag(word, diag);
}

static const struct setting *find(const char *name)
{
    for (size_t i = 0; i < settings_n; i++)
        if (strcmp(settings[i].name, name) == 0)
            return &settings[i];
    return NULL;
}

static int complain(const struct config *c, const char *name, int error, struct firn_diag *diag,
                    const char *message)
{
    char place[PLACE_BUF];
    return firn__diag(diag, error, 0, "%s: %s", setting_place(c, find(name), place), message);
}

static int check_files(const struct config *c, struct firn_diag *diag)
{
    for (size_t i = 0; i < settings_n; i++) {
        if (settings[i].type != SETTING_FILE)
            continue;
        const char *file = *(char *const *)((const char *)c + settings[i].offset);
        if (!file || access(file, R_OK) == 0)
            continue;
        int e = errno;
        char place[PLACE_BUF];
        return firn__diag(diag, e == ENOENT ? FIRN_ENOENT : FIRN_EIO, 0, "%s: %s: %s",
                          setting_place(c, &settings[i], place), shown_file(file), strerror(e));
    }
    return 0;
}

static int check_addrs(const struct config *c, struct firn_diag *diag)
{
    static const char *const names[] = { "listen.home", "listen.snowflake", "listen.ticket" };
    const struct config_addrs *lists[] = { &c->listen.home, &c->listen.snowflake,
                                           &c->listen.ticket };
    if (c->listen.home.n + c->listen.snowflake.n + c->listen.ticket.n == 0)
        return complain(c, "listen.home", FIRN_EINVAL, diag,
                        "every list of addresses is empty; the server needs one");
    for (size_t i = 0; i < 3 * ADDRS_MAX; i++) /* each address with all before it: there are few */
        for (size_t j = 0; j < i; j++) {
            const struct config_addrs *a = lists[i / ADDRS_MAX], *b = lists[j / ADDRS_MAX];
            if (i % ADDRS_MAX >= a->n || j % ADDRS_MAX >= b->n)
                continue;
            const struct config_addr *x = &a->v[i % ADDRS_MAX], *y = &b->v[j % ADDRS_MAX];
            if (x->port == 0 || x->port != y->port || strcasecmp(x->host, y->host) != 0)
                continue;
            char text[PLACE_BUF], show[SHOWN_BUF];
            snprintf(text, sizeof text, "%s port %u is also in %s; each needs its own",
                     shown(x->host, show), x->port, names[j / ADDRS_MAX]);
            return complain(c, names[i / ADDRS_MAX], FIRN_ECONFLICT, diag, text);
        }
    return 0;
}

const char *config_cluster_asked(const struct config *c)
{
    return c->cluster.init      ? "cluster.init"
           : c->cluster.join.n  ? "cluster.join"
           : c->cluster.restore ? "cluster.restore"
                                : NULL;
}

static int check_member(const struct config *c, struct firn_diag *diag)
{
    const char *asked = config_cluster_asked(c);
    if (!asked || cluster_wanted(c))
        return 0;
    return complain(c, asked, FIRN_EINVAL, diag,
                    "is for a cluster of firnds, which keeps everything in itself; leave the store "
                    "out, or say store: \"raft:\"");
}

static int check_whole(const struct config *c, struct firn_diag *diag)
{
    if (c->tls.cert && !c->tls.key)
        return complain(c, "tls.cert", FIRN_EINVAL, diag, "needs tls.key too, its private key");
    if (c->tls.key && !c->tls.cert)
        return complain(c, "tls.key", FIRN_EINVAL, diag, "needs tls.cert too, its certificate");
    if (c->tls.client_ca && !c->tls.cert)
        return complain(c, "tls.client_ca", FIRN_EINVAL, diag, "needs tls.cert and tls.key too");
    int r = check_addrs(c, diag);
    if (r == 0)
        r = check_member(c, diag);
    if (r == 0)
        r = check_files(c, diag);
    return r ? r : cluster_check(c, diag);
}

static int find_file(struct config *c, const struct flags *f, struct firn_diag *diag)
{
    const char *file = f->file ? f->file : getenv("FIRN_CONFIG");
    if (f->no_file)
        return 0;
    if (!file || !*file)
        file = access(CONFIG_FILE_DEFAULT, F_OK) == 0 ? CONFIG_FILE_DEFAULT : NULL;
    if (!file)
        return 0;
    c->file = strdup(file);
    return c->file ? 0 : firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
}

static int load_layers(struct config *c, const struct flags *f, struct firn_diag *diag)
{
    int r = set_defaults(c, false, diag);
    if (r == 0)
        r = find_file(c, f, diag);
    if (r == 0 && c->file)
        r = read_file(c, diag);
    for (size_t i = 0; r == 0 && i < settings_n; i++) {
        char name[SETTING_NAME_BUF];
        setting_env(&settings[i], name);
        const char *value = getenv(name);
        if (value && *value) /* empty is how scripts say "not set" */
            r = set_from(c, i, CONFIG_ENV, value, diag);
    }
    for (size_t i = 0; r == 0 && i < settings_n; i++)
        if (f->value[i])
            r = set_from(c, i, CONFIG_FLAG, f->value[i], diag);
    if (r == 0)
        r = set_defaults(c, true, diag);
    return r ? r : check_whole(c, diag);
}

int config_load(struct config *c, int argc, char **argv, struct firn_diag *diag)
{
    struct flags f = { .action = CONFIG_RUN };
    *c = (struct config){ .argc = argc, .argv = argv };
    for (int i = 1; i < argc; i++) {
        int r = parse_flag(&f, argc, argv, &i, diag);
        if (r)
            return r;
    }
    c->action = f.action;
    if (f.action == CONFIG_HELP || f.action == CONFIG_VERSION) /* work in a broken world, too */
        return 0;
    int r = load_layers(c, &f, diag);
    if (r)
        config_free(c);
    return r;
}

void config_free(struct config *c)
{
    for (size_t i = 0; i < settings_n; i++)
        setting_free(c, &settings[i]);
    free(c->file);
    *c = (struct config){ 0 };
}

static char *value_text(const struct config *c, const struct setting *s)
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

int config_reload(const struct config *old, struct config *next, struct config_change *changes,
                  size_t *out_n, struct firn_diag *diag)
{
    size_t n = 0;
    int r = config_load(next, old->argc, old->argv, diag);
    for (size_t i = 0; r == 0 && i < settings_n; i++) {
        const struct setting *s = &settings[i];
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

static void write_origin(const struct config *c, size_t i, FILE *out)
{
    char name[SETTING_NAME_BUF];
    switch (c->source[i].from) {
    case CONFIG_DEFAULT:
        fputs(settings[i].preset || settings[i].compute ? "default" : "not set", out);
        break;
    case CONFIG_FILE:
        fprintf(out, "%s:%u", c->file, c->source[i].line);
        break;
    case CONFIG_ENV:
        setting_env(&settings[i], name);
        fputs(name, out);
        break;
    case CONFIG_FLAG:
        setting_flag(&settings[i], name);
        fputs(name, out);
        break;
    }
}

void config_print(const struct config *c, FILE *out)
{
    const char *section = "";
    for (size_t i = 0; i < settings_n; i++) {
        const char *name = settings[i].name;
        size_t len = setting_section_len(name);
        if (len && strncmp(section, name, len + 1) != 0)
            fprintf(out, "%.*s:\n", (int)len, name);
        section = name;
        char *value = value_text(c, &settings[i]);
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

void config_help(FILE *out)
{
    static const char *const values[] = {
        [SETTING_STRING] = "=TEXT", [SETTING_FILE] = "=FILE",     [SETTING_UINT] = "=N",
        [SETTING_BOOL] = "",        [SETTING_CHOICE] = "=CHOICE", [SETTING_ADDRS] = "=ADDR,...",
    };
    fputs("usage: firnd [flags]\n"
          "Serves Snowflake IDs and ticket numbers over HTTP and the Redis protocol.\n\n",
          out);
    help_line(out, "-c, --config=FILE", "read this file instead of", CONFIG_FILE_DEFAULT);
    help_line(out, "    --no-config", "read no file", NULL);
    for (size_t i = 0; i < ACTIONS; i++) {
        char left[SETTING_NAME_BUF];
        snprintf(left, sizeof left, "%s%s %s", actions[i].letter[0] ? actions[i].letter : "  ",
                 actions[i].letter[0] ? "," : " ", actions[i].flag);
        help_line(out, left, actions[i].help, NULL);
    }
    fputs("\nSettings, with their defaults. --listen-home is listen.home in the file and\n"
          "FIRN_LISTEN_HOME in the environment. A flag wins over the environment, and that over\n"
          "the file.\n\n",
          out);
    for (size_t i = 0; i < settings_n; i++) {
        const struct setting *s = &settings[i];
        char left[2 * SETTING_NAME_BUF], flag[SETTING_NAME_BUF], right[256];
        if (s->type == SETTING_TOKENS)
            continue;
        setting_flag(s, flag);
        if (s->type == SETTING_CHOICE)
            snprintf(left, sizeof left, "%s=%s", flag, s->choices);
        else
            snprintf(left, sizeof left, "%s%s", flag, values[s->type]);
        snprintf(right, sizeof right, "%s", s->help);
        if (strlen(left) > HELP_COLUMN)
            fprintf(out, "  %s\n  %-*s %s [%s]\n", left, HELP_COLUMN, "", right, s->preset);
        else
            help_line(out, left, right, s->preset ? s->preset : s->preset_note);
    }
    fputs("\nOnly in the file: auth.tokens. SIGHUP reads the file again. See\n"
          "firnd(8) and firnd.yaml(5).\n",
          out);
}

size_t config_warnings(FILE *out)
{
    extern char **environ;
    char known[CONFIG_SETTINGS_MAX][SETTING_NAME_BUF];
    const char *names[CONFIG_SETTINGS_MAX];
    size_t found = 0;
    for (size_t i = 0; i < settings_n; i++) {
        setting_env(&settings[i], known[i]);
        names[i] = known[i];
    }
    /* Only near misses: others may use the prefix too, as Kubernetes does for a service named firn. */
    for (char **e = environ; *e; e++) {
        char name[SETTING_NAME_BUF];
        size_t len = strcspn(*e, "=");
        if (strncmp(*e, "FIRN_", 5) != 0 || len >= sizeof name)
            continue;
        snprintf(name, sizeof name, "%.*s", (int)len, *e);
        const char *guess = nearest_name(name, names, settings_n);
        if (!guess || strcmp(guess, name) == 0 || strcmp(name, "FIRN_CONFIG") == 0)
            continue;
        fprintf(out, "%s is no setting; did you mean %s?\n", name, guess);
        found++;
    }
    return found;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    return strcmp(host, "::1") == 0 || strcasecmp(host, "localhost") == 0;
}

const char *config_exposed(const struct config *c)
{
    const struct config_addrs *lists[] = { &c->listen.home, &c->listen.snowflake,
                                           &c->listen.ticket };
    bool outside = false;
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < lists[i]->n; k++)
            outside |= !is_loopback(lists[i]->v[k].host);
    if (outside && !c->auth.tokens.n && !c->tls.client_ca)
        return "anybody who reaches these addresses can take numbers: set auth.tokens or "
               "tls.client_ca";
    if (outside && !c->tls.cert)
        return "tokens cross the network unencrypted: set tls.cert and tls.key";
    return NULL;
}

bool config_scope_allows(const struct config_strings *scope, const char *p, size_t len)
{
    for (size_t i = 0; i < scope->n; i++) {
        const char *entry = scope->v[i];
        size_t n = strlen(entry);
        if (n && entry[n - 1] == '*' ? len >= n - 1 && memcmp(p, entry, n - 1) == 0
                                     : len == n && memcmp(p, entry, n) == 0)
            return true;
    }
    return false;
}
