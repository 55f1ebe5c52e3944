/*
 * The setting `services`: the table of their keys. A new key is a member of struct config_service
 * and a row. Tested in tests/unit/proxy/config.c.
 */
#include "proxy/config.h"
#include "net/upstream_address.h"
#include "proxy/config_fields.h"
#include "wire/http_line.h"
#include "wire/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_SEGMENT_MAX = 64 };

/* --- servers --- */

/* "unix:/run/app.sock": the path goes into logs and JSON as it is. */
static int check_unix(const struct entry_reader *r, const struct entry_key *k, const char *address)
{
    char show[CONFIG_SHOWN_BUF], host[HOST_BYTES_MAX + 1];
    struct sockaddr_storage to;
    bool ok = upstream_address(address, &to, host) == 0;
    for (const char *p = address; ok && *p; p++)
        ok = isgraph((unsigned char)*p) && *p != '"' && *p != '\\';
    return ok ? 0
              : entry_blame(
                    r, k->name,
                    "'%s' is no Unix socket; give an absolute path of up to 107 characters, "
                    "as in unix:/run/app.sock",
                    config_shown(address, show));
}

/* "host:port" or "unix:/path", perhaps with a weight: "host:port weight=3". */
static int read_server(const struct entry_reader *r, const struct entry_key *k, const char *text,
                       struct config_server *out)
{
    char show[CONFIG_SHOWN_BUF];
    size_t n = strcspn(text, " ");
    const char *rest = text + n + strspn(text + n, " ");
    struct host_port h;
    uint64_t weight = 1;
    if (*rest &&
        (strncmp(rest, "weight=", 7) != 0 ||
         http_u64((struct slice){ rest + 7, strlen(rest + 7) }, 1000, &weight) != 0 || weight < 1))
        return entry_blame(r, k->name,
                           "'%s': behind the address comes weight=1 to weight=1000, or nothing",
                           config_shown(text, show));
    out->address = strndup(text, n);
    out->weight = (uint32_t)weight;
    if (!out->address)
        return entry_no_memory(r);
    if (upstream_path(out->address))
        return check_unix(r, k, out->address);
    bool ok = host_port_read((struct slice){ text, n }, &h) == HOST_OK && h.port > 0;
    for (const char *p = h.host; ok && *p; p++)
        ok = isalnum((unsigned char)*p) || strchr(h.brackets ? ":.%_-" : ".-_", *p);
    return ok ? 0
              : entry_blame(r, k->name, "'%s' is no address; give host:port, as in 10.0.0.1:8001",
                            config_shown(text, show));
}

static int read_servers(const struct entry_reader *r, const struct entry_key *k,
                        const struct config_strings *from, void *at)
{
    struct config_servers *s = at;
    int e = 0;
    if (from->n == 0 || from->n > CONFIG_SERVERS_MAX)
        return entry_blame(r, k->name, "give 1 to %d addresses, as in ['127.0.0.1:8001']",
                           CONFIG_SERVERS_MAX);
    s->v = calloc(from->n, sizeof *s->v);
    if (!s->v)
        return entry_no_memory(r);
    for (; e == 0 && s->n < from->n; s->n++)
        e = read_server(r, k, from->v[s->n], &s->v[s->n]);
    return e;
}

static void write_servers(const struct entry_key *k, const void *at, FILE *out)
{
    const struct config_servers *s = at;
    (void)k;
    for (size_t i = 0; i < s->n; i++)
        fprintf(out, "%s\"%s weight=%u\"", i ? ", " : "[", s->v[i].address, s->v[i].weight);
    fputc(']', out);
}

static void free_servers(void *at)
{
    struct config_servers *s = at;
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i].address);
    free(s->v);
}

static const struct entry_type servers_type = { true, read_servers, NULL, write_servers,
                                                free_servers };

/* --- the rest --- */

static int check_hash_by(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF];
    uint64_t n = 0;
    for (char *p = text; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (strncmp(text, "segment:", 8) == 0)
        return http_u64((struct slice){ text + 8, strlen(text + 8) }, HASH_SEGMENT_MAX, &n) == 0 &&
                       n > 0
                   ? 0
                   : entry_blame(r, k->name, "'%s' is no segment; write segment:1 to segment:%d",
                                 config_shown(text, show), HASH_SEGMENT_MAX);
    return config_all_are(text, HTTP_TOKEN)
               ? 0
               : entry_blame(r, k->name,
                             "'%s' is no name of a header, nor address, path or segment:N",
                             config_shown(text, show));
}

static int check_host(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF];
    return config_all_are(text, HTTP_HOST)
               ? 0
               : entry_blame(r, k->name, "'%s' is no host", config_shown(text, show));
}

static int check_health_path(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    char show[CONFIG_SHOWN_BUF];
    return text[0] == '/' && config_all_are(text, HTTP_TARGET)
               ? 0
               : entry_blame(r, k->name, "'%s' is no path", config_shown(text, show));
}

static int check_service(const struct entry_reader *r, void *entry)
{
    const struct config_service *s = entry;
    const struct {
        const char *key;
        bool set;
    } of_tls[] = { { "tls_ca", s->tls_ca },
                   { "tls_cert", s->tls_cert },
                   { "tls_key", s->tls_key },
                   { "server_name", s->server_name } };
    for (size_t i = 0; i < sizeof of_tls / sizeof of_tls[0]; i++)
        if (of_tls[i].set && !s->tls)
            return entry_blame(r, of_tls[i].key, "needs tls: true");
    if (!s->tls_cert != !s->tls_key)
        return entry_blame(r, s->tls_cert ? "tls_cert" : "tls_key",
                           "tls_cert and tls_key belong together");
    if (!s->hash_by == (s->balance == CONFIG_HASH))
        return entry_blame(r, "hash_by",
                           "balance: hash needs hash_by: address, path, segment:N or the name of a "
                           "header; "
                           "the others take none");
    return 0;
}

enum { MINUTES_10 = 600000, HOUR = 3600000, DAY = 86400000 }; /* ms */

#define AT(field) .offset = offsetof(struct config_service, field)

static const struct entry_key keys[] = {
    { "name", &entry_text, AT(name), .check = entry_check_name },
    { "servers", &servers_type, AT(servers) },
    { "proxy_protocol", &entry_bool, AT(proxy_protocol) },
    { "tls", &entry_bool, AT(tls) },
    { "tls_ca", &entry_text, AT(tls_ca) },
    { "tls_cert", &entry_text, AT(tls_cert) },
    { "tls_key", &entry_text, AT(tls_key) },
    { "server_name", &entry_text, AT(server_name) },
    { "host", &entry_text, AT(host), .check = check_host },
    { "connect_ms", &entry_u32, AT(connect_ms), 1, MINUTES_10, 1000 },
    { "first_byte_ms", &entry_u32, AT(first_byte_ms), 1, HOUR, 30000 },
    { "body_ms", &entry_u32, AT(body_ms), 1, DAY, 30000 },
    { "timeout_ms", &entry_u32, AT(timeout_ms), 0, DAY, 0 },
    { "idle_ms", &entry_u32, AT(idle_ms), 1, HOUR, 30000 },
    { "wait_ms", &entry_u32, AT(wait_ms), 1, MINUTES_10, 3000 },
    { "tunnel_ms", &entry_u32, AT(tunnel_ms), 1, DAY, HOUR },
    { "tunnel_end_ms", &entry_u32, AT(tunnel_end_ms), 1, HOUR, 10000 },
    { "connections", &entry_u32, AT(connections), 1, 100000, 256 },
    { "pipeline", &entry_u32, AT(pipeline), 1, 64, 1 },
    { "retries", &entry_u32, AT(retries), 0, 10, 1 },
    { "eject_after", &entry_u32, AT(eject_after), 0, 1000, 5 },
    { "eject_ms", &entry_u32, AT(eject_ms), 1, HOUR, 10000 },
    { "breaker_failures", &entry_u32, AT(breaker_failures), 0, 100000, 10 },
    { "breaker_percent", &entry_u32, AT(breaker_percent), 0, 100, 50 },
    { "breaker_open_ms", &entry_u32, AT(breaker_open_ms), 1, HOUR, 5000 },
    { "balance", &entry_choice, AT(balance), .choices = "round_robin|least|hash" },
    { "hash_by", &entry_text, AT(hash_by), .check = check_hash_by },
    { "health_path", &entry_text, AT(health_path), .check = check_health_path },
    { "health_ms", &entry_u32, AT(health_ms), 100, HOUR, 5000 },
    { "mints", &entry_bool, AT(mints) },
};

const struct setting_entries config_services_type = { keys, sizeof keys / sizeof keys[0],
                                                      sizeof(struct config_service), NULL,
                                                      check_service };
