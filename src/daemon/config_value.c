/*
 * One value of one setting: from text, back to text, freed. Every way in (file, environment, flag,
 * default) comes through setting_set(), so a value means the same wherever it is written. Tested in
 * tests/unit/server/config.c.
 */
#include "daemon/config_in.h"
#include "daemon/config_entries.h"
#include "id/diag.h"
#include "wire/url.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <strings.h>

enum {
    STRING_MAX = 4096, /* PATH_MAX; nothing else needs as much */
    HOST_MAX = 255,    /* what DNS allows */
};

const char *config_shown(const char *text, char out[CONFIG_SHOWN_BUF])
{
    size_t n = 0;
    for (; text[n] && n < CONFIG_SHOWN_BUF - 4; n++)
        out[n] = isprint((unsigned char)text[n]) ? text[n] : '?';
    memcpy(out + n, text[n] ? "..." : "", text[n] ? 4 : 1);
    return out;
}

static int set_string(char **at, const struct setting *s, const char *text, struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    size_t n = strlen(text);
    if (n == 0 && s->type == SETTING_FILE) { /* an empty value takes the setting back */
        free(*at);
        *at = NULL;
        return 0;
    }
    if (n == 0)
        return firn__diag(why, FIRN_EFORMAT, 0, "the value is empty; leave it out for the default");
    if (n > STRING_MAX)
        return firn__diag(why, FIRN_ERANGE, 0, "'%s' has more than %d bytes",
                          config_shown(text, show), STRING_MAX);
    for (size_t i = 0; i < n; i++)
        if (iscntrl((unsigned char)text[i]))
            return firn__diag(why, FIRN_EFORMAT, i + 1, "'%s' has a control character in it",
                              config_shown(text, show));
    int r = s->check ? s->check(text, why) : 0;
    if (r)
        return r;
    char *copy = strdup(text);
    if (!copy)
        return firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    free(*at);
    *at = copy;
    return 0;
}

/* Digits, with '_' between them where that helps to read. */
static int set_uint(uint64_t *at, const struct setting *s, const char *text, struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    uint64_t v = 0;
    bool digits = isdigit((unsigned char)text[0]), over = false;
    for (const char *p = text; *p && digits; p++) {
        if (*p == '_' && isdigit((unsigned char)p[1]))
            continue;
        digits = isdigit((unsigned char)*p);
        over |= __builtin_mul_overflow(v, 10, &v) ||
                __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v);
    }
    if (!digits)
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "'%s' is not a whole number; give one from %" PRIu64 " to %" PRIu64,
                          config_shown(text, show), s->min, s->max);
    if (over || v < s->min || v > s->max)
        return firn__diag(why, FIRN_ERANGE, 0,
                          "'%s' is out of bounds; give a number from %" PRIu64 " to %" PRIu64,
                          config_shown(text, show), s->min, s->max);
    *at = v;
    return 0;
}

static int set_bool(bool *at, const char *text, struct firn_diag *why)
{
    static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };
    char show[CONFIG_SHOWN_BUF];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *at = i & 1;
            return 0;
        }
    }
    return firn__diag(why, FIRN_EFORMAT, 0, "'%s' is neither true nor false",
                      config_shown(text, show));
}

static int set_choice(int *at, const struct setting *s, const char *text, struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    size_t n = strlen(text);
    int i = 0;
    for (const char *p = s->choices;; i++) {
        size_t len = strcspn(p, "|");
        if (len == n && memcmp(p, text, n) == 0) {
            *at = i;
            return 0;
        }
        if (p[len] == '\0')
            break;
        p += len + 1;
    }
    return firn__diag(why, FIRN_EFORMAT, 0, "'%s' is none of the choices; give one of %s",
                      config_shown(text, show), s->choices);
}

static void free_addrs(struct config_addrs *a)
{
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i].host);
    free(a->v);
    *a = (struct config_addrs){ 0 };
}

static bool is_unix(const char *text)
{
    return strncmp(text, "unix:", 5) == 0;
}

/* unix:/path; the path goes into logs and JSON as it is. */
static int parse_unix(const char *text, struct config_addr *out, struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    const size_t n = strlen(text + 5);
    bool ok = text[5] == '/' && n < sizeof((struct sockaddr_un *)0)->sun_path;
    for (const char *p = text + 5; *p && ok; p++)
        ok = isgraph((unsigned char)*p) && *p != '"' && *p != '\\';
    if (!ok)
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "'%s' is no Unix socket; give an absolute path of up to 107 characters, "
                          "as in unix:/run/firn.sock",
                          config_shown(text, show));
    out->port = 0;
    out->host = strdup(text);
    return out->host ? 0 : firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
}

/* host:port or [IPv6]:port; with SETTING_UNIX also unix:/path. */
static int parse_addr(const struct setting *s, const char *text, struct config_addr *out,
                      struct firn_diag *why)
{
    char show[CONFIG_SHOWN_BUF];
    if ((s->flags & SETTING_UNIX) && is_unix(text))
        return parse_unix(text, out, why);
    struct host_port h;
    enum host_error e = host_port_read((struct slice){ text, strlen(text) }, &h);
    if (e == HOST_COLONS)
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "'%s' has several colons; give IPv6 in brackets, as in [::1]:9000",
                          config_shown(text, show));
    if (e == HOST_BAD_PORT)
        return firn__diag(why, FIRN_ERANGE, 0, "'%s' has no port from 0 to 65535 at its end",
                          config_shown(text, show));
    if ((e != HOST_OK && !h.brackets) || (e == HOST_OK && !h.has_port))
        return firn__diag(why, FIRN_EFORMAT, 0,
                          "'%s' is no address; give HOST:PORT, as in 127.0.0.1:9000",
                          config_shown(text, show));
    bool ok = e == HOST_OK;
    for (const char *p = h.host; *p && ok; p++)
        ok = isalnum((unsigned char)*p) || strchr(h.brackets ? ":.%_-" : ".-_", *p) ||
             strcmp(h.host, "*") == 0;
    if (!ok)
        return firn__diag(why, FIRN_EFORMAT, 0, "'%s' has no usable host before its port",
                          config_shown(text, show));
    out->port = h.port;
    out->host = strdup(h.host);
    return out->host ? 0 : firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
}

static int set_addrs(struct config_addrs *at, const struct setting *s, const char *text,
                     struct firn_diag *why)
{
    struct config_addrs a = { calloc(CONFIG_ADDRS_MAX, sizeof *a.v), 0 };
    int r = a.v ? 0 : firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    const char *p = text + strspn(text, " ");
    if (strcmp(p, "none") == 0)
        p += 4;
    while (r == 0 && *p) {
        char one[HOST_MAX + 16];
        size_t len = strcspn(p, ","), used = len;
        while (used > 0 && p[used - 1] == ' ')
            used--;
        snprintf(one, sizeof one, "%.*s", used < STRING_MAX ? (int)used : STRING_MAX, p);
        if (a.n == CONFIG_ADDRS_MAX)
            r = firn__diag(why, FIRN_ERANGE, 0, "there are more than %d addresses",
                           CONFIG_ADDRS_MAX);
        else
            r = parse_addr(s, one, &a.v[a.n], why);
        a.n += r == 0;
        p += len;
        if (r == 0 && *p == ',') {
            p += 1 + strspn(p + 1, " ");
            if (*p == '\0')
                r = firn__diag(why, FIRN_EFORMAT, 0, "the list ends with a comma");
        }
    }
    if (r) {
        free_addrs(&a);
        return r;
    }
    free_addrs(at);
    *at = a;
    return 0;
}

static int add_text(struct config_strings *to, const char *text, const struct setting *s,
                    struct firn_diag *why)
{
    int r = s->check ? s->check(text, why) : 0;
    if (r)
        return r;
    if (to->n == CONFIG_TEXTS_MAX)
        return firn__diag(why, FIRN_ERANGE, 0, "there are more than %d entries", CONFIG_TEXTS_MAX);
    to->v[to->n] = strdup(text);
    if (!to->v[to->n])
        return firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    to->n++;
    return 0;
}

/* Texts between commas, without the spaces around them. */
static int set_texts(struct config_strings *at, const struct setting *s, const char *text,
                     struct firn_diag *why)
{
    struct config_strings got = { calloc(CONFIG_TEXTS_MAX, sizeof *got.v), 0 };
    int r = got.v ? 0 : firn__diag(why, FIRN_ENOMEM, 0, "out of memory");
    const char *p = text + strspn(text, " ");
    while (r == 0 && *p) {
        char one[HOST_MAX + 1];
        size_t len = strcspn(p, ","), used = len;
        while (used > 0 && p[used - 1] == ' ')
            used--;
        if (used == 0 || used > HOST_MAX)
            r = firn__diag(why, FIRN_EFORMAT, 0, "an entry is empty or longer than %d bytes",
                           HOST_MAX);
        if (r == 0) {
            memcpy(one, p, used);
            one[used] = '\0';
            r = add_text(&got, one, s, why);
        }
        p += len;
        if (r == 0 && *p == ',') {
            p += 1 + strspn(p + 1, " ");
            if (*p == '\0')
                r = firn__diag(why, FIRN_EFORMAT, 0, "the list ends with a comma");
        }
    }
    config_strings_free(r ? &got : at);
    if (r == 0)
        *at = got;
    return r;
}

int setting_set(struct config_base *c, const struct setting *s, const char *text,
                struct firn_diag *why)
{
    void *at = setting_at(c, s);
    switch (s->type) {
    case SETTING_STRING:
    case SETTING_FILE:
        return set_string(at, s, text, why);
    case SETTING_UINT:
        return set_uint(at, s, text, why);
    case SETTING_BOOL:
        return set_bool(at, text, why);
    case SETTING_CHOICE:
        return set_choice(at, s, text, why);
    case SETTING_ADDRS:
        return set_addrs(at, s, text, why);
    case SETTING_LIST:
        return set_texts(at, s, text, why);
    case SETTING_ENTRIES:
        break;
    }
    return firn__diag(why, FIRN_EINVAL, 0, "this can only be set in the file");
}

void config_strings_free(struct config_strings *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
    *s = (struct config_strings){ 0 };
}

void setting_free(struct config_base *c, const struct setting *s)
{
    void *at = setting_at(c, s);
    if (s->type == SETTING_STRING || s->type == SETTING_FILE) {
        free(*(char **)at);
        *(char **)at = NULL;
    } else if (s->type == SETTING_ADDRS) {
        free_addrs(at);
    } else if (s->type == SETTING_LIST) {
        config_strings_free(at);
    } else if (s->type == SETTING_ENTRIES) {
        entries_free(s->entries, at);
    }
}

static int copy_addrs(struct config_addrs *at, const struct config_addrs *from)
{
    struct config_addrs a = { calloc(CONFIG_ADDRS_MAX, sizeof *a.v), 0 };
    for (; a.v && a.n < from->n; a.n++) {
        a.v[a.n] = (struct config_addr){ strdup(from->v[a.n].host), from->v[a.n].port };
        if (!a.v[a.n].host)
            break;
    }
    if (!a.v || a.n < from->n) {
        free_addrs(&a);
        return FIRN_ENOMEM;
    }
    free_addrs(at);
    *at = a;
    return 0;
}

static int copy_texts(struct config_strings *at, const struct config_strings *from)
{
    struct config_strings got = { calloc(CONFIG_TEXTS_MAX, sizeof *got.v), 0 };
    while (got.v && got.n < from->n && (got.v[got.n] = strdup(from->v[got.n])))
        got.n++;
    bool whole = got.v && got.n == from->n;
    config_strings_free(whole ? at : &got);
    if (whole)
        *at = got;
    return whole ? 0 : FIRN_ENOMEM;
}

int setting_copy(struct config_base *to, const struct config_base *from, const struct setting *s,
                 struct firn_diag *why)
{
    char **text = setting_at(to, s);
    char *const *from_text = setting_at(from, s);
    int r = 0;
    switch (s->type) {
    case SETTING_STRING:
    case SETTING_FILE:
        free(*text);
        *text = *from_text ? strdup(*from_text) : NULL;
        r = *from_text && !*text ? FIRN_ENOMEM : 0;
        break;
    case SETTING_UINT:
        memcpy(setting_at(to, s), setting_at(from, s), sizeof(uint64_t));
        break;
    case SETTING_BOOL:
        memcpy(setting_at(to, s), setting_at(from, s), sizeof(bool));
        break;
    case SETTING_CHOICE:
        memcpy(setting_at(to, s), setting_at(from, s), sizeof(int));
        break;
    case SETTING_ADDRS:
        r = copy_addrs(setting_at(to, s), setting_at(from, s));
        break;
    case SETTING_LIST:
        r = copy_texts(setting_at(to, s), setting_at(from, s));
        break;
    case SETTING_ENTRIES:
        r = FIRN_ENOTSUP;
        break;
    }
    return r ? firn__diag(why, r, 0, "%s: %s", s->name, firn_error_message(r)) : 0;
}

void config_write_string(const char *text, FILE *out)
{
    static const char *const reserved[] = {
        "null", "~", "true", "false", "yes", "no", "on", "off"
    };
    bool bare = isalnum((unsigned char)text[0]) || strchr("./", text[0]);
    for (const char *p = text; *p && bare; p++)
        bare = isalnum((unsigned char)*p) || strchr("._/-@+", *p) || (*p == ':' && p[1] > ' ');
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
        bare &= strcasecmp(text, reserved[i]) != 0;
    if (bare && text[0]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *p = text; *p; p++)
        fprintf(out, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    fputc('"', out);
}

static void write_addrs(const struct config_addrs *a, FILE *out)
{
    fputc('[', out);
    for (size_t i = 0; i < a->n; i++) {
        char text[HOST_PORT_BUF];
        fputs(i ? ", " : "", out);
        config_write_string(is_unix(a->v[i].host)
                                ? a->v[i].host
                                : host_port_write(a->v[i].host, a->v[i].port, text),
                            out);
    }
    fputc(']', out);
}

static void write_texts(const struct config_strings *s, FILE *out)
{
    fputc('[', out);
    for (size_t i = 0; i < s->n; i++) {
        fputs(i ? ", " : "", out);
        config_write_string(s->v[i], out);
    }
    fputc(']', out);
}

void setting_write(const struct config_base *c, const struct setting *s, FILE *out)
{
    const void *at = setting_at(c, s);
    switch (s->type) {
    case SETTING_STRING:
    case SETTING_FILE:
        if (*(char *const *)at)
            config_write_string(*(char *const *)at, out);
        break;
    case SETTING_UINT:
        fprintf(out, "%" PRIu64, *(const uint64_t *)at);
        break;
    case SETTING_BOOL:
        fputs(*(const bool *)at ? "true" : "false", out);
        break;
    case SETTING_CHOICE: {
        const char *p = s->choices;
        for (int i = *(const int *)at; i > 0; i--)
            p += strcspn(p, "|") + 1;
        fprintf(out, "%.*s", (int)strcspn(p, "|"), p);
        break;
    }
    case SETTING_ADDRS:
        write_addrs(at, out);
        break;
    case SETTING_LIST:
        write_texts(at, out);
        break;
    case SETTING_ENTRIES:
        entries_write(s->entries, at, out);
        break;
    }
}
