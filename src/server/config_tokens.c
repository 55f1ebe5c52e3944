/*
 * The setting auth.tokens: tokens and their scopes. A token is kept as its SHA-256 only. Tested in
 * tests/unit/server/config.c.
 */
#include "server/config.h"
#include "firn/read.h"
#include "id/diag.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_NAME, KEY_SHA256, KEY_KINDS, KEY_SEQUENCES, KEY_ADMIN, KEY_MAX_SEQUENCES };

/* They are counted each time that one is created. */
enum { TOKEN_SEQUENCES_MAX = 100000 };

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

static int copy_scope(struct config_strings *to, const struct config_strings *from)
{
    to->v = calloc(from->n + 1, sizeof *to->v);
    for (; to->v && to->n < from->n; to->n++)
        if (!(to->v[to->n] = strdup(from->v[to->n])))
            return FIRN_ENOMEM;
    return to->v ? 0 : FIRN_ENOMEM;
}

static int check_scope(const char *name, const struct config_strings *kinds,
                       const struct config_strings *sequences, struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    for (size_t i = 0; i < kinds->n; i++) {
        const char *kind = kinds->v[i];
        if (!is_word(kind) || (!strchr(kind, '*') && strcmp(kind, "ticket") != 0 &&
                               !firn_kind_find(kind, strlen(kind))))
            return firn__diag(why, FIRN_EFORMAT, 0,
                              "token '%.40s': there is no kind '%s'; `firn gen --help` lists them",
                              name, config_shown(kind, show));
    }
    for (size_t i = 0; i < sequences->n; i++)
        if (!is_word(sequences->v[i]))
            return firn__diag(why, FIRN_EFORMAT, 0, "token '%.40s': '%s' names no sequence", name,
                              config_shown(sequences->v[i], show));
    if (kinds->n + sequences->n == 0)
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "token '%.40s' may mint nothing; give it kinds or sequences, or ['*']",
                          name);
    return 0;
}

static int add_token(void *at, size_t n, const struct config_strings *values, struct firn_diag *why)
{
    struct config_tokens *to = at;
    struct config_token token = { .name = NULL };
    char show[CONFIG_SHOWN_BUF];
    const char *name = values[KEY_NAME].n ? values[KEY_NAME].v[0] : "";
    if (!is_word(name))
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "entry %zu needs a name: letters, digits, '-', '_' and '.'", n + 1);
    for (size_t i = 0; i < to->n; i++)
        if (strcmp(to->v[i].name, name) == 0)
            return firn__diag(why, FIRN_EFORMAT, 0, "the name '%s' is there twice",
                              config_shown(name, show));
    if (!values[KEY_SHA256].n || parse_sha256(values[KEY_SHA256].v[0], token.sha256) != 0)
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "token '%.40s' needs token_sha256: the 64 hex digits that printf %%s "
                          "TOKEN | sha256sum prints",
                          name);
    int e = check_scope(name, &values[KEY_KINDS], &values[KEY_SEQUENCES], why);
    if (e)
        return e;
    const char *admin = values[KEY_ADMIN].n ? values[KEY_ADMIN].v[0] : "false";
    token.admin = strcmp(admin, "true") == 0;
    if (!token.admin && strcmp(admin, "false") != 0)
        return firn__diag(why, FIRN_EFORMAT, 0, "token '%.40s': admin is true or false", name);
    const char *most = values[KEY_MAX_SEQUENCES].n ? values[KEY_MAX_SEQUENCES].v[0] : "0";
    token.max_sequences = strtoull(most, NULL, 10);
    if (strspn(most, "0123456789") != strlen(most) || !*most ||
        token.max_sequences > TOKEN_SEQUENCES_MAX)
        return firn__diag(why, FIRN_EFORMAT, 0, "token '%.40s': max_sequences is 0 to %d", name,
                          TOKEN_SEQUENCES_MAX);
    struct config_token *grown = realloc(to->v, (to->n + 1) * sizeof *grown);
    if (!grown)
        return firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    to->v = grown;
    struct config_token *added = &to->v[to->n++]; /* from here on free_tokens() sees it */
    *added = token;
    added->name = strdup(name);
    if (!added->name || copy_scope(&added->kinds, &values[KEY_KINDS]) ||
        copy_scope(&added->sequences, &values[KEY_SEQUENCES]))
        return firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    return 0;
}

static void write_scope(const char *key, const struct config_strings *s, FILE *out)
{
    if (s->n == 0)
        return;
    fprintf(out, ", %s: [", key);
    for (size_t i = 0; i < s->n; i++) {
        fputs(i ? ", " : "", out);
        config_write_string(s->v[i], out);
    }
    fputc(']', out);
}

static void write_tokens(const void *at, FILE *out)
{
    const struct config_tokens *t = at;
    fputc('[', out);
    for (size_t i = 0; i < t->n; i++) {
        fputs(i ? ", { name: " : "{ name: ", out);
        config_write_string(t->v[i].name, out);
        fputs(", token_sha256: \"", out);
        for (size_t k = 0; k < sizeof t->v[i].sha256; k++)
            fprintf(out, "%02x", t->v[i].sha256[k]);
        fputc('"', out);
        write_scope("kinds", &t->v[i].kinds, out);
        write_scope("sequences", &t->v[i].sequences, out);
        if (t->v[i].admin)
            fputs(", admin: true", out);
        if (t->v[i].max_sequences)
            fprintf(out, ", max_sequences: %llu", (unsigned long long)t->v[i].max_sequences);
        fputs(" }", out);
    }
    fputc(']', out);
}

static void free_tokens(void *at)
{
    struct config_tokens *t = at;
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].name);
        config_strings_free(&t->v[i].kinds);
        config_strings_free(&t->v[i].sequences);
    }
    free(t->v);
    *t = (struct config_tokens){ 0 };
}

const struct setting_entries config_tokens_type = {
    .keys_n = 6,
    .keys = { [KEY_NAME] = { "name", false },
              [KEY_SHA256] = { "token_sha256", false },
              [KEY_KINDS] = { "kinds", true },
              [KEY_SEQUENCES] = { "sequences", true },
              [KEY_ADMIN] = { "admin", false },
              [KEY_MAX_SEQUENCES] = { "max_sequences", false } },
    .add = add_token,
    .write = write_tokens,
    .free = free_tokens,
};
