/* Headers and paths in the configuration. Tested in tests/unit/proxy/config.c. */
#include "proxy/config_fields.h"
#include "proxy/config.h"
#include "proxy/path.h"
#include "wire/http_line.h"

#include <stdlib.h>
#include <string.h>

bool config_all_are(const char *text, uint8_t what)
{
    for (const char *p = text; *p; p++)
        if (!http_is(*p, what))
            return false;
    return *text != '\0';
}

/* Fields that the gateway writes itself: setting them would break framing, or lie about it. */
static bool is_own(const char *name)
{
    static const char *const own[] = { "connection", "content-length", "transfer-encoding",
                                       "te",         "trailer",        "upgrade",
                                       "keep-alive", "expect",         "host" };
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (http_word_is((struct slice){ name, strlen(name) }, own[i]))
            return true;
    return false;
}

int config_check_field_name(const struct entry_reader *r, const struct entry_key *k, char *name)
{
    char show[CONFIG_SHOWN_BUF];
    if (!config_all_are(name, HTTP_TOKEN))
        return entry_blame(r, k->name, "'%s' is no name of a header", config_shown(name, show));
    if (k->min == 0 && is_own(name))
        return entry_blame(r, k->name, "'%s' is the gateway's own; see host: of a service for Host",
                           config_shown(name, show));
    return 0;
}

/* A path of the configuration must be written as requests are compared with it. */
int config_check_path(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF], out[1024];
    const char *why = "";
    size_t len;
    if (!config_all_are(text, HTTP_TARGET) || strchr(text, '?') || text[0] != '/')
        return entry_blame(r, k->name, "'%s' is no path; it begins with '/' and has no query",
                           config_shown(text, show));
    if (path_canonical((struct slice){ text, strlen(text) }, out, sizeof out - 1, &len, &why) != 0)
        return entry_blame(r, k->name, "'%s' is no path: %s", config_shown(text, show),
                           *why ? why : "it is too long");
    out[len] = '\0';
    return strcmp(out, text) == 0 ? 0
                                  : entry_blame(r, k->name, "'%s' is not canonical; write %.60s",
                                                config_shown(text, show), out);
}

static int read_fields(const struct entry_reader *r, const struct entry_key *k,
                       const struct config_strings *from, void *at)
{
    struct config_fields *out = at;
    char show[CONFIG_SHOWN_BUF];
    if (from->n > CONFIG_FIELDS_MAX)
        return entry_blame(r, k->name, "there are more than %d", CONFIG_FIELDS_MAX);
    out->v = calloc(from->n + 1, sizeof *out->v);
    if (!out->v)
        return entry_no_memory(r);
    for (size_t i = 0; i < from->n; i++) {
        const char *text = from->v[i], *colon = strchr(text, ':');
        if (!colon)
            return entry_blame(r, k->name, "'%s' is no header; write 'Name: value'",
                               config_shown(text, show));
        struct config_field *f = &out->v[out->n++];
        f->name = strndup(text, (size_t)(colon - text));
        f->value = strdup(colon + 1 + strspn(colon + 1, " \t"));
        if (!f->name || !f->value)
            return entry_no_memory(r);
        int e = config_check_field_name(r, k, f->name);
        if (e)
            return e;
        if (*f->value && !config_all_are(f->value, HTTP_VALUE))
            return entry_blame(r, k->name, "'%s' holds a control character",
                               config_shown(text, show));
    }
    return 0;
}

static bool fields_are_set(const void *at)
{
    return ((const struct config_fields *)at)->n > 0;
}

static void write_fields(const struct entry_key *k, const void *at, FILE *out)
{
    const struct config_fields *f = at;
    (void)k;
    fputc('[', out);
    for (size_t i = 0; i < f->n; i++) {
        char *line = NULL;
        fputs(i ? ", " : "", out);
        if (asprintf(&line, "%s: %s", f->v[i].name, f->v[i].value) >= 0)
            config_write_string(line, out);
        free(line);
    }
    fputc(']', out);
}

static void free_fields(void *at)
{
    struct config_fields *f = at;
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].name);
        free(f->v[i].value);
    }
    free(f->v);
}

const struct entry_type config_fields_type = { true, read_fields, fields_are_set, write_fields,
                                               free_fields };
