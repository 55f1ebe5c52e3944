/*
 * The settings `services` and `routes`: lists of entries with keys. An error names its key, so that
 * the reader of the file can point at the line. Tested in tests/unit/proxy/config.c.
 */
#include "proxy/config.h"
#include "id/diag.h"
#include "proxy/path.h"
#include "wire/http_line.h"
#include "wire/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
    S_NAME,
    S_SERVERS,
    S_TLS,
    S_TLS_CA,
    S_TLS_CERT,
    S_TLS_KEY,
    S_SERVER_NAME,
    S_HOST,
    S_CONNECT,
    S_FIRST,
    S_TIMEOUT,
    S_IDLE,
    S_CONNECTIONS,
    S_RETRIES,
    S_BALANCE,
    S_HASH_BY,
    S_EJECT_AFTER,
    S_EJECT_MS,
    S_BREAKER_FAILURES,
    S_BREAKER_PERCENT,
    S_BREAKER_OPEN,
    S_HEALTH_PATH,
    S_HEALTH_MS,
    S_KEYS
};
enum {
    R_NAME,
    R_HOSTS,
    R_PATH,
    R_METHODS,
    R_HEADERS,
    R_SERVICE,
    R_REWRITE,
    R_TIMEOUT,
    R_REQUEST_SET,
    R_REQUEST_ADD,
    R_REQUEST_REMOVE,
    R_ANSWER_SET,
    R_ANSWER_ADD,
    R_ANSWER_REMOVE,
    R_KEYS
};

struct reader { /* of one entry */
    const struct setting_entries *type;
    const struct config_strings *values;
    struct firn_diag *why;
    const char *name; /* of the entry, for messages */
};

__attribute__((format(printf, 3, 4))) static int blame(const struct reader *r, size_t key,
                                                       const char *fmt, ...)
{
    char text[sizeof r->why->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return firn__diag(r->why, FIRN_EFORMAT, key + 1, "'%.40s': %s: %s", r->name,
                      r->type->keys[key].name, text);
}

static int no_memory(const struct reader *r)
{
    return firn__diag(r->why, FIRN_ENOMEM, 0, "out of memory");
}

static const char *text_of(const struct reader *r, size_t key)
{
    return r->values[key].n ? r->values[key].v[0] : NULL;
}

/* NULL where the key is missing. */
static int copy_text(const struct reader *r, size_t key, char **out)
{
    const char *text = text_of(r, key);
    if (!text)
        return 0;
    if (!*text)
        return blame(r, key, "the value is empty; leave the key out for the default");
    *out = strdup(text);
    return *out ? 0 : no_memory(r);
}

static int copy_list(const struct reader *r, size_t key, struct config_strings *out)
{
    const struct config_strings *from = &r->values[key];
    out->v = calloc(from->n + 1, sizeof *out->v);
    for (; out->v && out->n < from->n; out->n++)
        if (!(out->v[out->n] = strdup(from->v[out->n])))
            return no_memory(r);
    return out->v ? 0 : no_memory(r);
}

static int number(const struct reader *r, size_t key, uint32_t min, uint32_t max, uint32_t preset,
                  uint32_t *out)
{
    char show[CONFIG_SHOWN_BUF];
    const char *text = text_of(r, key);
    uint64_t v = preset;
    if (text && (http_u64((struct slice){ text, strlen(text) }, max, &v) != 0 || v < min))
        return blame(r, key, "'%s' is no number from %u to %u", config_shown(text, show), min, max);
    *out = (uint32_t)v;
    return 0;
}

static bool is_name(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]))
            return false;
    return n >= 1 && n <= 63;
}

static bool all_are(const char *text, uint8_t what)
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

static int check_field_name(const struct reader *r, size_t key, const char *name)
{
    char show[CONFIG_SHOWN_BUF];
    if (!all_are(name, HTTP_TOKEN))
        return blame(r, key, "'%s' is no name of a header", config_shown(name, show));
    if (key != R_HEADERS && is_own(name))
        return blame(r, key, "'%s' is the gateway's own; see host: of a service for Host",
                     config_shown(name, show));
    return 0;
}

/* "Name: value" */
static int read_fields(const struct reader *r, size_t key, struct config_fields *out)
{
    const struct config_strings *from = &r->values[key];
    char show[CONFIG_SHOWN_BUF];
    if (from->n > CONFIG_FIELDS_MAX)
        return blame(r, key, "there are more than %d", CONFIG_FIELDS_MAX);
    out->v = calloc(from->n + 1, sizeof *out->v);
    if (!out->v)
        return no_memory(r);
    for (size_t i = 0; i < from->n; i++) {
        const char *text = from->v[i], *colon = strchr(text, ':');
        if (!colon)
            return blame(r, key, "'%s' is no header; write 'Name: value'",
                         config_shown(text, show));
        struct config_field *f = &out->v[out->n++];
        f->name = strndup(text, (size_t)(colon - text));
        f->value = strdup(colon + 1 + strspn(colon + 1, " \t"));
        if (!f->name || !f->value)
            return no_memory(r);
        int e = check_field_name(r, key, f->name);
        if (e)
            return e;
        if (*f->value && !all_are(f->value, HTTP_VALUE))
            return blame(r, key, "'%s' holds a control character", config_shown(text, show));
    }
    return 0;
}

static int read_names(const struct reader *r, size_t key, struct config_strings *out)
{
    int e = copy_list(r, key, out);
    for (size_t i = 0; e == 0 && i < out->n; i++)
        e = check_field_name(r, key, out->v[i]);
    return e;
}

static void free_fields(struct config_fields *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->v[i].name);
        free(f->v[i].value);
    }
    free(f->v);
}

/* --- services --- */

/* "host:port", or "host:port weight=3". */
static int read_server(const struct reader *r, const char *text, struct config_server *out)
{
    char show[CONFIG_SHOWN_BUF];
    size_t n = strcspn(text, " ");
    const char *rest = text + n + strspn(text + n, " ");
    struct host_port h;
    uint64_t weight = 1;
    if (*rest &&
        (strncmp(rest, "weight=", 7) != 0 ||
         http_u64((struct slice){ rest + 7, strlen(rest + 7) }, 1000, &weight) != 0 || weight < 1))
        return blame(r, S_SERVERS,
                     "'%s': behind the address comes weight=1 to weight=1000, or nothing",
                     config_shown(text, show));
    out->address = strndup(text, n);
    out->weight = (uint32_t)weight;
    if (!out->address)
        return no_memory(r);
    bool ok = host_port_read((struct slice){ text, n }, &h) == HOST_OK && h.port > 0;
    for (const char *p = h.host; ok && *p; p++)
        ok = isalnum((unsigned char)*p) || strchr(h.brackets ? ":.%_-" : ".-_", *p);
    if (!ok)
        return blame(r, S_SERVERS, "'%s' is no address; give host:port, as in 10.0.0.1:8001",
                     config_shown(text, show));
    return 0;
}

static void service_done(struct config_service *s)
{
    for (size_t i = 0; i < s->servers_n; i++)
        free(s->servers[i].address);
    free(s->servers);
    free(s->name);
    free(s->tls_ca);
    free(s->tls_cert);
    free(s->tls_key);
    free(s->server_name);
    free(s->host);
    free(s->health_path);
    free(s->hash_by);
}

static const char *const balance_names[] = {
    [CONFIG_ROUND_ROBIN] = "round_robin", [CONFIG_LEAST] = "least", [CONFIG_HASH] = "hash"
};
enum { BALANCES = sizeof balance_names / sizeof balance_names[0] };

static int read_balance(const struct reader *r, struct config_service *s)
{
    char show[CONFIG_SHOWN_BUF];
    const char *text = text_of(r, S_BALANCE);
    while (text && s->balance < BALANCES && strcmp(balance_names[s->balance], text) != 0)
        s->balance++;
    if (s->balance == BALANCES)
        return blame(r, S_BALANCE, "'%s' is none of round_robin, least, hash",
                     config_shown(text, show));
    int e = copy_text(r, S_HASH_BY, &s->hash_by);
    if (e)
        return e;
    if (!s->hash_by == (s->balance == CONFIG_HASH))
        return blame(r, S_HASH_BY,
                     "balance: hash needs hash_by: address, path or the name of a "
                     "header; the others take none");
    for (char *p = s->hash_by; p && *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return s->hash_by && !all_are(s->hash_by, HTTP_TOKEN)
               ? blame(r, S_HASH_BY, "'%s' is no name of a header", config_shown(s->hash_by, show))
               : 0;
}

static int read_service(const struct reader *r, struct config_service *s)
{
    const struct config_strings *servers = &r->values[S_SERVERS];
    char show[CONFIG_SHOWN_BUF];
    const char *tls = text_of(r, S_TLS);
    if (servers->n == 0 || servers->n > CONFIG_SERVERS_MAX)
        return blame(r, S_SERVERS, "give 1 to %d addresses, as in ['127.0.0.1:8001']",
                     CONFIG_SERVERS_MAX);
    s->servers = calloc(servers->n, sizeof *s->servers);
    if (!s->servers)
        return no_memory(r);
    for (size_t i = 0; i < servers->n; i++) {
        s->servers_n++;
        int e = read_server(r, servers->v[i], &s->servers[i]);
        if (e)
            return e;
    }
    s->tls = tls && strcmp(tls, "true") == 0;
    if (tls && !s->tls && strcmp(tls, "false") != 0)
        return blame(r, S_TLS, "'%s' is neither true nor false", config_shown(tls, show));
    int e;
    if ((e = copy_text(r, S_TLS_CA, &s->tls_ca)) || (e = copy_text(r, S_TLS_CERT, &s->tls_cert)) ||
        (e = copy_text(r, S_TLS_KEY, &s->tls_key)) ||
        (e = copy_text(r, S_SERVER_NAME, &s->server_name)) ||
        (e = copy_text(r, S_HOST, &s->host)) ||
        (e = copy_text(r, S_HEALTH_PATH, &s->health_path)) ||
        (e = number(r, S_CONNECT, 1, 600000, 1000, &s->connect_ms)) ||
        (e = number(r, S_FIRST, 1, 3600000, 30000, &s->first_byte_ms)) ||
        (e = number(r, S_TIMEOUT, 0, 86400000, 0, &s->timeout_ms)) ||
        (e = number(r, S_IDLE, 1, 3600000, 30000, &s->idle_ms)) ||
        (e = number(r, S_CONNECTIONS, 1, 100000, 256, &s->connections)) ||
        (e = number(r, S_RETRIES, 0, 10, 1, &s->retries)) ||
        (e = number(r, S_EJECT_AFTER, 0, 1000, 5, &s->eject_after)) ||
        (e = number(r, S_EJECT_MS, 1, 3600000, 10000, &s->eject_ms)) ||
        (e = number(r, S_BREAKER_FAILURES, 0, 100000, 10, &s->breaker_failures)) ||
        (e = number(r, S_BREAKER_PERCENT, 0, 100, 50, &s->breaker_percent)) ||
        (e = number(r, S_BREAKER_OPEN, 1, 3600000, 5000, &s->breaker_open_ms)) ||
        (e = read_balance(r, s)) || (e = number(r, S_HEALTH_MS, 100, 3600000, 5000, &s->health_ms)))
        return e;
    if (!s->tls && (s->tls_ca || s->tls_cert || s->tls_key || s->server_name))
        return blame(r,
                     s->tls_ca     ? S_TLS_CA
                     : s->tls_cert ? S_TLS_CERT
                     : s->tls_key  ? S_TLS_KEY
                                   : S_SERVER_NAME,
                     "needs tls: true");
    if (!s->tls_cert != !s->tls_key)
        return blame(r, s->tls_cert ? S_TLS_CERT : S_TLS_KEY,
                     "tls_cert and tls_key belong together");
    if (s->host && !all_are(s->host, HTTP_HOST))
        return blame(r, S_HOST, "'%s' is no host", config_shown(s->host, show));
    if (s->health_path && (s->health_path[0] != '/' || !all_are(s->health_path, HTTP_TARGET)))
        return blame(r, S_HEALTH_PATH, "'%s' is no path", config_shown(s->health_path, show));
    return 0;
}

static int add_service(void *at, size_t n, const struct config_strings *values,
                       struct firn_diag *why)
{
    struct config_services *to = at;
    struct reader r = { &config_services_type, values, why,
                        values[S_NAME].n ? values[S_NAME].v[0] : "" };
    if (!is_name(r.name))
        return firn__diag(why, FIRN_EFORMAT, 1 + S_NAME,
                          "entry %zu needs a name: up to 63 letters, digits, '-', '_' and '.'",
                          n + 1);
    for (size_t i = 0; i < to->n; i++)
        if (strcmp(to->v[i].name, r.name) == 0)
            return blame(&r, S_NAME, "the name is there twice");
    struct config_service *grown = realloc(to->v, (to->n + 1) * sizeof *grown);
    if (!grown)
        return no_memory(&r);
    to->v = grown;
    struct config_service *s = &to->v[to->n++]; /* from here on free_services() sees it */
    *s = (struct config_service){ .name = strdup(r.name) };
    return s->name ? read_service(&r, s) : no_memory(&r);
}

static void free_services(void *at)
{
    struct config_services *s = at;
    for (size_t i = 0; i < s->n; i++)
        service_done(&s->v[i]);
    free(s->v);
    *s = (struct config_services){ 0 };
}

/* --- writing --- */

static void write_key(const char *key, const char *text, FILE *out)
{
    if (!text)
        return;
    fprintf(out, ", %s: ", key);
    config_write_string(text, out);
}

static void write_list(const char *key, const struct config_strings *s, FILE *out)
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

static void write_fields(const char *key, const struct config_fields *f, FILE *out)
{
    if (f->n == 0)
        return;
    fprintf(out, ", %s: [", key);
    for (size_t i = 0; i < f->n; i++) {
        char *line = NULL;
        fputs(i ? ", " : "", out);
        if (asprintf(&line, "%s: %s", f->v[i].name, f->v[i].value) >= 0)
            config_write_string(line, out);
        free(line);
    }
    fputc(']', out);
}

static void write_services(const void *at, FILE *out)
{
    const struct config_services *all = at;
    fputc('[', out);
    for (size_t i = 0; i < all->n; i++) {
        const struct config_service *s = &all->v[i];
        fputs(i ? ", { name: " : "{ name: ", out);
        config_write_string(s->name, out);
        fputs(", servers: [", out);
        for (size_t k = 0; k < s->servers_n; k++)
            fprintf(out, "%s\"%s weight=%u\"", k ? ", " : "", s->servers[k].address,
                    s->servers[k].weight);
        fprintf(out, "], tls: %s", s->tls ? "true" : "false");
        write_key("tls_ca", s->tls_ca, out);
        write_key("tls_cert", s->tls_cert, out);
        write_key("tls_key", s->tls_key, out);
        write_key("server_name", s->server_name, out);
        write_key("host", s->host, out);
        fprintf(
            out,
            ", connect_ms: %u, first_byte_ms: %u, timeout_ms: %u, idle_ms: %u, connections: %u, "
            "retries: %u, eject_after: %u, eject_ms: %u",
            s->connect_ms, s->first_byte_ms, s->timeout_ms, s->idle_ms, s->connections, s->retries,
            s->eject_after, s->eject_ms);
        fprintf(
            out, ", breaker_failures: %u, breaker_percent: %u, breaker_open_ms: %u, balance: %s",
            s->breaker_failures, s->breaker_percent, s->breaker_open_ms, balance_names[s->balance]);
        write_key("hash_by", s->hash_by, out);
        write_key("health_path", s->health_path, out);
        fprintf(out, ", health_ms: %u }", s->health_ms);
    }
    fputc(']', out);
}

const struct setting_entries config_services_type = {
    .keys_n = S_KEYS,
    .keys = { [S_NAME] = { "name", false },
              [S_SERVERS] = { "servers", true },
              [S_TLS] = { "tls", false },
              [S_TLS_CA] = { "tls_ca", false },
              [S_TLS_CERT] = { "tls_cert", false },
              [S_TLS_KEY] = { "tls_key", false },
              [S_SERVER_NAME] = { "server_name", false },
              [S_HOST] = { "host", false },
              [S_CONNECT] = { "connect_ms", false },
              [S_FIRST] = { "first_byte_ms", false },
              [S_TIMEOUT] = { "timeout_ms", false },
              [S_IDLE] = { "idle_ms", false },
              [S_CONNECTIONS] = { "connections", false },
              [S_RETRIES] = { "retries", false },
              [S_BALANCE] = { "balance", false },
              [S_HASH_BY] = { "hash_by", false },
              [S_BREAKER_FAILURES] = { "breaker_failures", false },
              [S_BREAKER_PERCENT] = { "breaker_percent", false },
              [S_BREAKER_OPEN] = { "breaker_open_ms", false },
              [S_EJECT_AFTER] = { "eject_after", false },
              [S_EJECT_MS] = { "eject_ms", false },
              [S_HEALTH_PATH] = { "health_path", false },
              [S_HEALTH_MS] = { "health_ms", false } },
    .add = add_service,
    .write = write_services,
    .free = free_services,
};

/* --- routes --- */

/* A path of the configuration must be written as requests are compared with it. */
static int check_path(const struct reader *r, size_t key, const char *text)
{
    char show[CONFIG_SHOWN_BUF], out[1024];
    const char *why = "";
    size_t len;
    if (!all_are(text, HTTP_TARGET) || strchr(text, '?') || text[0] != '/')
        return blame(r, key, "'%s' is no path; it begins with '/' and has no query",
                     config_shown(text, show));
    if (path_canonical((struct slice){ text, strlen(text) }, out, sizeof out - 1, &len, &why) != 0)
        return blame(r, key, "'%s' is no path: %s", config_shown(text, show),
                     *why ? why : "it is too long");
    out[len] = '\0';
    if (strcmp(out, text) != 0)
        return blame(r, key, "'%s' is not canonical; write %.60s", config_shown(text, show), out);
    return 0;
}

static int read_hosts(const struct reader *r, struct config_strings *out)
{
    char show[CONFIG_SHOWN_BUF];
    int e = copy_list(r, R_HOSTS, out);
    for (size_t i = 0; e == 0 && i < out->n; i++) {
        char *h = out->v[i];
        for (char *p = h; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        bool star = strncmp(h, "*.", 2) == 0;
        if (!all_are(h + (star ? 2 : 0), HTTP_HOST) || strchr(h + (star ? 2 : 0), '*'))
            e = blame(r, R_HOSTS, "'%s' is no host; write shop.example.org or *.example.org",
                      config_shown(h, show));
        else if (strchr(h, ':') && h[0] != '[')
            e = blame(r, R_HOSTS, "'%s' has a port; hosts are compared without it",
                      config_shown(h, show));
    }
    return e;
}

static int read_methods(const struct reader *r, struct config_strings *out)
{
    char show[CONFIG_SHOWN_BUF];
    int e = copy_list(r, R_METHODS, out);
    for (size_t i = 0; e == 0 && i < out->n; i++) {
        bool upper = true;
        for (const char *p = out->v[i]; *p; p++)
            upper &= !islower((unsigned char)*p);
        if (!all_are(out->v[i], HTTP_TOKEN) || !upper || strlen(out->v[i]) > CONFIG_METHOD_MAX)
            e = blame(r, R_METHODS, "'%s' is no method; write it in capitals, as in GET",
                      config_shown(out->v[i], show));
    }
    return e;
}

static int read_route(const struct reader *r, struct config_route *t)
{
    int e;
    if (!text_of(r, R_PATH))
        return blame(r, R_PATH, "it is missing; '/' matches every request");
    if (!text_of(r, R_SERVICE))
        return blame(r, R_SERVICE, "it is missing: where should requests go?");
    if ((e = copy_text(r, R_PATH, &t->path)) || (e = check_path(r, R_PATH, t->path)) ||
        (e = copy_text(r, R_SERVICE, &t->service)) || (e = copy_text(r, R_REWRITE, &t->rewrite)) ||
        (e = t->rewrite ? check_path(r, R_REWRITE, t->rewrite) : 0) ||
        (e = read_hosts(r, &t->hosts)) || (e = read_methods(r, &t->methods)) ||
        (e = read_fields(r, R_HEADERS, &t->headers)) ||
        (e = number(r, R_TIMEOUT, 0, 86400000, 0, &t->timeout_ms)) ||
        (e = read_fields(r, R_REQUEST_SET, &t->request_set)) ||
        (e = read_fields(r, R_REQUEST_ADD, &t->request_add)) ||
        (e = read_names(r, R_REQUEST_REMOVE, &t->request_remove)) ||
        (e = read_fields(r, R_ANSWER_SET, &t->answer_set)) ||
        (e = read_fields(r, R_ANSWER_ADD, &t->answer_add)) ||
        (e = read_names(r, R_ANSWER_REMOVE, &t->answer_remove)))
        return e;
    return 0;
}

static int add_route(void *at, size_t n, const struct config_strings *values, struct firn_diag *why)
{
    struct config_routes *to = at;
    char number_name[32];
    snprintf(number_name, sizeof number_name, "route-%zu", n + 1);
    struct reader r = { &config_routes_type, values, why,
                        values[R_NAME].n ? values[R_NAME].v[0] : number_name };
    if (!is_name(r.name))
        return blame(&r, R_NAME, "give up to 63 letters, digits, '-', '_' and '.'");
    for (size_t i = 0; i < to->n; i++)
        if (strcmp(to->v[i].name, r.name) == 0)
            return blame(&r, R_NAME, "the name is there twice");
    struct config_route *grown = realloc(to->v, (to->n + 1) * sizeof *grown);
    if (!grown)
        return no_memory(&r);
    to->v = grown;
    struct config_route *t = &to->v[to->n++]; /* from here on free_routes() sees it */
    *t = (struct config_route){ .name = strdup(r.name) };
    return t->name ? read_route(&r, t) : no_memory(&r);
}

static void free_routes(void *at)
{
    struct config_routes *all = at;
    for (size_t i = 0; i < all->n; i++) {
        struct config_route *t = &all->v[i];
        free(t->name);
        free(t->path);
        free(t->service);
        free(t->rewrite);
        config_strings_free(&t->hosts);
        config_strings_free(&t->methods);
        config_strings_free(&t->request_remove);
        config_strings_free(&t->answer_remove);
        free_fields(&t->headers);
        free_fields(&t->request_set);
        free_fields(&t->request_add);
        free_fields(&t->answer_set);
        free_fields(&t->answer_add);
    }
    free(all->v);
    *all = (struct config_routes){ 0 };
}

static void write_routes(const void *at, FILE *out)
{
    const struct config_routes *all = at;
    fputc('[', out);
    for (size_t i = 0; i < all->n; i++) {
        const struct config_route *t = &all->v[i];
        fputs(i ? ", { name: " : "{ name: ", out);
        config_write_string(t->name, out);
        write_key("path", t->path, out);
        write_key("service", t->service, out);
        write_key("rewrite", t->rewrite, out);
        write_list("hosts", &t->hosts, out);
        write_list("methods", &t->methods, out);
        write_fields("headers", &t->headers, out);
        if (t->timeout_ms)
            fprintf(out, ", timeout_ms: %u", t->timeout_ms);
        write_fields("request_set", &t->request_set, out);
        write_fields("request_add", &t->request_add, out);
        write_list("request_remove", &t->request_remove, out);
        write_fields("answer_set", &t->answer_set, out);
        write_fields("answer_add", &t->answer_add, out);
        write_list("answer_remove", &t->answer_remove, out);
        fputs(" }", out);
    }
    fputc(']', out);
}

const struct setting_entries config_routes_type = {
    .keys_n = R_KEYS,
    .keys = { [R_NAME] = { "name", false },
              [R_HOSTS] = { "hosts", true },
              [R_PATH] = { "path", false },
              [R_METHODS] = { "methods", true },
              [R_HEADERS] = { "headers", true },
              [R_SERVICE] = { "service", false },
              [R_REWRITE] = { "rewrite", false },
              [R_TIMEOUT] = { "timeout_ms", false },
              [R_REQUEST_SET] = { "request_set", true },
              [R_REQUEST_ADD] = { "request_add", true },
              [R_REQUEST_REMOVE] = { "request_remove", true },
              [R_ANSWER_SET] = { "answer_set", true },
              [R_ANSWER_ADD] = { "answer_add", true },
              [R_ANSWER_REMOVE] = { "answer_remove", true } },
    .add = add_route,
    .write = write_routes,
    .free = free_routes,
};
