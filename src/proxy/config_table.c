/*
 * The table of the gateway's settings. YAML file, environment, flags, --help and --print-config are
 * made from these rows. The settings of a section stand together. Tested in
 * tests/unit/proxy/config.c.
 */
#include "proxy/config.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "id/diag.h"
#include "proxy/config_fields.h"
#include "proxy/redis_settings.h"

#include "wire/http_line.h"

#include <string.h>

#define AT(field)   .offset = offsetof(struct config, field)
#define RANGE(a, b) .min = (a), .max = (b)
#define HOUR_MS     (UINT64_C(3600) * 1000)

static int check_service(const char *value, struct firn_diag *why)
{
    char text[CONFIG_SHOWN_BUF];
    return strlen(value) <= CONFIG_SERVICE_MAX
               ? 0
               : firn__diag(why, FIRN_ERANGE, 0, "'%s' is too long a name; give up to %d bytes",
                            config_shown(value, text), CONFIG_SERVICE_MAX);
}

static int check_name(const char *value, struct firn_diag *why)
{
    char text[CONFIG_SHOWN_BUF];
    bool ok = value[0] != '\0' && config_all_are(value, HTTP_HOST) && !strchr(value, ':');
    return ok ? 0
              : firn__diag(why, FIRN_EFORMAT, 0,
                           "'%s' is no host name; give it without scheme and port, as in "
                           "gateway.example.com",
                           config_shown(value, text));
}

static const struct setting settings[] = {
    { "listen.http", SETTING_ADDRS, SETTING_UNIX, AT(listen.http), .preset = "127.0.0.1:8080",
      .help = "addresses for requests" },
    { "listen.https", SETTING_ADDRS, SETTING_UNIX, AT(listen.https), .preset = "none",
      .help = "the same, with TLS; needs tls.cert" },
    { "listen.admin", SETTING_ADDRS, 0, AT(listen.admin), .preset = "127.0.0.1:9080",
      .help =
          "addresses for the admin page, /status, /metrics, /healthz and /readyz; not for clients" },
    { "listen.proxy_protocol", SETTING_BOOL, 0, AT(listen.proxy_protocol), .preset = "false",
      .help = "connections for requests begin with a PROXY header (version 1 or 2), and only from "
              "trust" },
    { "admin.token_file", SETTING_FILE, SETTING_RELOAD, AT(admin.token_file),
      .help = "file with the token that POST to listen.admin must have; otherwise none is asked" },
    { "admin.hosts", SETTING_LIST, SETTING_RELOAD, AT(admin.hosts), .check = check_name,
      .preset = "", .preset_note = "addresses, localhost and names without a dot",
      .help = "names under which browsers may open the admin page" },
    { "tls.cert", SETTING_FILE, SETTING_RELOAD, AT(tls.cert),
      .help = "PEM file: the certificate of listen.https, then its chain" },
    { "tls.key", SETTING_FILE, SETTING_RELOAD, AT(tls.key),
      .help = "PEM file: its private key, not encrypted" },
    { "tls.client_ca", SETTING_FILE, SETTING_RELOAD, AT(tls.client_ca),
      .help = "PEM file: clients must show a certificate that one of these authorities signed" },
    { "loops", SETTING_UINT, 0, AT(loops), RANGE(0, 64), .preset = "0",
      .preset_note = "one per core", .help = "event loops; 0: one per core" },
    { "watch", SETTING_BOOL, SETTING_RELOAD, AT(watch), .preset = "true",
      .help = "read the file again when it changes, as after SIGHUP" },
    { "trust", SETTING_LIST, SETTING_RELOAD, AT(trust), .check = config_check_network, .preset = "",
      .preset_note = "nobody",
      .help = "networks whose X-Forwarded-*, Forwarded and X-Request-ID are believed" },
    { "resolve_ms", SETTING_UINT, SETTING_RELOAD, AT(resolve_ms), RANGE(0, HOUR_MS),
      .preset = "30000",
      .help = "between two look-ups of servers that are given by name; 0: only when it is read" },
    { "services", SETTING_ENTRIES, SETTING_RELOAD, AT(services), .entries = &config_services_type,
      .help = "services, each with its servers" },
    { "routes", SETTING_ENTRIES, SETTING_RELOAD, AT(routes), .entries = &config_routes_type,
      .help = "which requests go to which service" },
    { "tokens", SETTING_ENTRIES, SETTING_RELOAD, AT(tokens), .entries = &config_tokens_type,
      .help = "JSON Web Tokens that routes ask for" },
    { "rates", SETTING_ENTRIES, SETTING_RELOAD, AT(rates), .entries = &config_rates_type,
      .help = "how many requests of one client routes let through" },
    { "redis.address", SETTING_STRING, SETTING_RELOAD, AT(redis.address),
      .check = redis_address_check, .preset_note = "no Redis",
      .help = "host:port or unix:/path of the Redis that gateways share" },
    { "redis.user", SETTING_STRING, SETTING_RELOAD, AT(redis.user),
      .preset_note = "the default user", .help = "for AUTH" },
    { "redis.password_file", SETTING_FILE, SETTING_RELOAD, AT(redis.password_file),
      .help = "file with the password for AUTH, in its first line" },
    { "redis.db", SETTING_UINT, SETTING_RELOAD, AT(redis.db), RANGE(0, 1000000), .preset = "0",
      .help = "number of the database" },
    { "redis.timeout_ms", SETTING_UINT, SETTING_RELOAD, AT(redis.timeout_ms), RANGE(1, 60000),
      .preset = "100", .help = "how long a request waits for Redis before it goes on without" },
    { "redis.prefix", SETTING_STRING, SETTING_RELOAD, AT(redis.prefix), .check = redis_prefix_check,
      .preset_note = "nothing", .help = "what the names of all keys begin with" },
    { "compositions", SETTING_ENTRIES, SETTING_RELOAD, AT(compositions),
      .entries = &config_compositions_type,
      .help = "answers that are made of several services' answers, for routes with compose" },
    { "graphql.schema", SETTING_FILE, SETTING_RELOAD, AT(graphql.schema),
      .help = "SDL file with @get and @from: what routes with graphql: true answer from" },
    { "graphql.depth", SETTING_UINT, SETTING_RELOAD, AT(graphql.depth), RANGE(1, 64),
      .preset = "10", .help = "of fields in fields of a query" },
    { "graphql.cost", SETTING_UINT, SETTING_RELOAD, AT(graphql.cost), RANGE(1, 1000000000),
      .preset = "10000", .help = "of a query: 1 per field, 10 with @get, times lists around it" },
    { "graphql.calls", SETTING_UINT, SETTING_RELOAD, AT(graphql.calls), RANGE(1, 1000),
      .preset = "100", .help = "requests to services for one query" },
    { "graphql.bytes", SETTING_UINT, SETTING_RELOAD, AT(graphql.bytes), RANGE(1024, 67108864),
      .preset = "4194304", .help = "of the services' answers to one query" },
    { "graphql.timeout_ms", SETTING_UINT, SETTING_RELOAD, AT(graphql.timeout_ms), RANGE(1, HOUR_MS),
      .preset = "5000", .help = "for a query; what is not there by then is null, with an error" },
    { "graphql.introspection", SETTING_BOOL, SETTING_RELOAD, AT(graphql.introspection),
      .preset = "true", .help = "answer __schema and __type" },
    { "limits.connections", SETTING_UINT, 0, AT(limits.connections), RANGE(1, 1000000),
      .preset = "8192", .help = "connections of clients at once" },
    { "limits.connections_per_address", SETTING_UINT, 0, AT(limits.connections_per_address),
      RANGE(0, 1000000), .preset = "0", .help = "of one client's network; 0: no limit" },
    { "limits.requests", SETTING_UINT, 0, AT(limits.requests), RANGE(0, UINT32_MAX), .preset = "0",
      .help = "of one connection, then it is closed; 0: no limit" },
    { "limits.header_ms", SETTING_UINT, 0, AT(limits.header_ms), RANGE(1, HOUR_MS),
      .preset = "10000", .help = "for the whole head of a request" },
    { "limits.body_ms", SETTING_UINT, 0, AT(limits.body_ms), RANGE(1, HOUR_MS), .preset = "30000",
      .help = "for each KiB of a request's body" },
    { "limits.idle_ms", SETTING_UINT, 0, AT(limits.idle_ms), RANGE(1, HOUR_MS), .preset = "60000",
      .help = "between two requests of a connection" },
    { "limits.write_ms", SETTING_UINT, 0, AT(limits.write_ms), RANGE(1, HOUR_MS), .preset = "30000",
      .help = "without a client taking a byte of its answer" },
    { "limits.notice_ms", SETTING_UINT, SETTING_RELOAD, AT(limits.notice_ms), RANGE(0, HOUR_MS),
      .preset = "0", .help = "between SIGTERM and the drain; /readyz says no meanwhile" },
    { "limits.drain_ms", SETTING_UINT, 0, AT(limits.drain_ms), RANGE(1, HOUR_MS), .preset = "30000",
      .help = "for requests in hand when the gateway ends" },
    { "cache.memory_mb", SETTING_UINT, 0, AT(cache.memory_mb), RANGE(0, 1024 * 1024),
      .preset = "64", .help = "MiB for answers in memory, of all loops together; 0: none" },
    { "cache.entry_kb", SETTING_UINT, 0, AT(cache.entry_kb), RANGE(1, 4096), .preset = "1024",
      .help = "KiB of the largest answer that is cached" },
    { "cache.memory_s", SETTING_UINT, SETTING_RELOAD, AT(cache.memory_s), RANGE(0, 86400),
      .preset = "1", .help = "seconds in which memory answers before Redis is asked again" },
    { "cache.wait_ms", SETTING_UINT, SETTING_RELOAD, AT(cache.wait_ms), RANGE(0, HOUR_MS),
      .preset = "5000", .help = "a request's wait for another one that fetches the same answer" },
    { "gzip.on", SETTING_BOOL, SETTING_RELOAD, AT(gzip.on), .preset = "false",
      .help = "compress answers of routes that do not say gzip: on or off" },
    { "gzip.types", SETTING_LIST, SETTING_RELOAD, AT(gzip.types),
      .preset =
          "application/json, "
          "application/problem+json, application/javascript, application/xml, image/svg+xml, text/",
      .help = "what is compressed: beginnings of Content-Type" },
    { "gzip.min_bytes", SETTING_UINT, SETTING_RELOAD, AT(gzip.min_bytes), RANGE(0, UINT32_MAX),
      .preset = "1024", .help = "shorter answers are not compressed" },
    { "gzip.level", SETTING_UINT, SETTING_RELOAD, AT(gzip.level), RANGE(1, 9), .preset = "4",
      .help = "1: fast, 9: small" },
    { "log.level", SETTING_CHOICE, SETTING_RELOAD, AT(log.level), .preset = "info",
      .choices = "error|warn|info|debug", .help = "of the program's log, on stderr" },
    { "log.format", SETTING_CHOICE, SETTING_RELOAD, AT(log.format), .preset = "text",
      .choices = "text|json", .help = "of the same" },
    { "log.access", SETTING_BOOL, SETTING_RELOAD, AT(log.access), .preset = "true",
      .help = "one line of JSON on stdout for each request" },
    { "tracing.endpoint", SETTING_STRING, 0, AT(tracing.endpoint), .check = span_export_check,
      .help = "collector that spans are sent to (OTLP over HTTP), such as http://127.0.0.1:4318" },
    { "tracing.sample", SETTING_STRING, SETTING_RELOAD, AT(tracing.sample), .preset = "0",
      .check = span_sample_check,
      .help = "share of the requests without a traceparent whose spans are recorded: 0 to 1" },
    { "tracing.incoming", SETTING_CHOICE, SETTING_RELOAD, AT(tracing.incoming), .preset = "all",
      .choices = "all|trusted",
      .help = "whose traceparent is honoured: every client's, or that of networks in trust" },
    { "tracing.service", SETTING_STRING, 0, AT(tracing.service), .preset = "firn-proxy",
      .check = check_service, .help = "service.name of the spans" },
    { "tracing.queue", SETTING_UINT, 0, AT(tracing.queue), RANGE(16, 1000000), .preset = "2048",
      .help = "spans that may wait for the collector, about 2 KiB each; more are dropped" },
    { "tracing.timeout_ms", SETTING_UINT, 0, AT(tracing.timeout_ms), RANGE(10, 60000),
      .preset = "3000",
      .help = "for one request to the collector, and for the last spans when the gateway stops" },
    { "tracing.tls_ca", SETTING_FILE, 0, AT(tracing.tls_ca),
      .help = "PEM file: the CA of a collector with https; otherwise the system's are trusted" },
};

static int check_tracing(const struct config *c, struct firn_diag *diag)
{
    bool https = c->tracing.endpoint && strncmp(c->tracing.endpoint, "https:", 6) == 0;
    if (!c->tracing.endpoint && span_sample_read(c->tracing.sample) > 0)
        return config_fault(&c->base, "tracing.sample", FIRN_EINVAL, diag,
                            "needs tracing.endpoint too, the collector that spans are sent to");
    if (c->tracing.tls_ca && !https)
        return config_fault(&c->base, "tracing.tls_ca", FIRN_EINVAL, diag,
                            "needs an https:// URL in tracing.endpoint");
    return 0;
}

static bool same_texts(const struct config_strings *a, const struct config_strings *b)
{
    for (size_t i = 0; i < a->n && a->n == b->n; i++) {
        size_t k = 0;
        while (k < b->n && strcmp(a->v[i], b->v[k]) != 0)
            k++;
        if (k == b->n)
            return false;
    }
    return a->n == b->n;
}

static bool same_headers(const struct config_fields *a, const struct config_fields *b)
{
    for (size_t i = 0; i < a->n && a->n == b->n; i++) {
        size_t k = 0;
        while (k < b->n && (strcasecmp(a->v[i].name, b->v[k].name) != 0 ||
                            strcmp(a->v[i].value, b->v[k].value) != 0))
            k++;
        if (k == b->n)
            return false;
    }
    return a->n == b->n;
}

/* Of two routes that match the same requests the second would never get one. */
static int check_twins(const struct config *c, struct firn_diag *diag)
{
    for (size_t i = 0; i < c->routes.n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct config_route *a = &c->routes.v[k], *b = &c->routes.v[i];
            if (strcmp(a->path, b->path) == 0 && same_texts(&a->hosts, &b->hosts) &&
                same_texts(&a->methods, &b->methods) && same_headers(&a->headers, &b->headers))
                return config_fault_at(&c->base, &(struct config_at){ "routes", b, "path", 0 },
                                       FIRN_EINVAL, diag,
                                       "it matches the same requests as '%.40s'; remove one, or "
                                       "tell them apart by path, hosts, methods or headers",
                                       a->name);
        }
    return 0;
}

static int check_service_of(const struct config *c, const struct config_at *at, const char *name,
                            struct firn_diag *diag)
{
    const struct config_route *r = at->entry;
    const struct config_at cache = { "routes", r, "cache", 0 };
    size_t k = 0;
    while (k < c->services.n && strcmp(c->services.v[k].name, name) != 0)
        k++;
    if (k == c->services.n)
        return config_fault_name(&c->base, at, "services", "service", name, diag);
    if (r->cache != CONFIG_CACHE_OFF && c->services.v[k].mints)
        return config_fault_at(&c->base, &cache, FIRN_EINVAL, diag,
                               "service '%.40s' hands out IDs (mints: true) and cannot be cached: "
                               "a cached ID is a duplicate ID",
                               name);
    if (r->cache == CONFIG_CACHE_REDIS && !c->redis.address)
        return config_fault_at(&c->base, &cache, FIRN_EINVAL, diag, "redis needs redis.address");
    return 0;
}

static int check_routes(const struct config *c, struct firn_diag *diag)
{
    for (size_t i = 0; i < c->routes.n; i++) {
        const struct config_route *r = &c->routes.v[i];
        struct config_at at = { "routes", r, r->service ? "service" : "split", 0 };
        int e = r->service ? check_service_of(c, &at, r->service, diag) : 0;
        for (; at.item < r->split.n && e == 0; at.item++)
            e = check_service_of(c, &at, r->split.v[at.item].service, diag);
        if (e)
            return e;
    }
    return check_twins(c, diag);
}

static int config_check(const void *config, struct firn_diag *diag)
{
    const struct config *c = config;
    if (c->tls.cert && !c->tls.key)
        return config_fault(&c->base, "tls.cert", FIRN_EINVAL, diag, "needs tls.key");
    if (c->tls.key && !c->tls.cert)
        return config_fault(&c->base, "tls.key", FIRN_EINVAL, diag, "needs tls.cert");
    if (c->tls.client_ca && !c->tls.cert)
        return config_fault(&c->base, "tls.client_ca", FIRN_EINVAL, diag, "needs tls.cert");
    if (c->listen.proxy_protocol && c->trust.n == 0)
        return config_fault(&c->base, "listen.proxy_protocol", FIRN_EINVAL, diag,
                            "needs trust: the networks of the proxies that may send the header");
    if (c->listen.https.n > 0 && !c->tls.cert)
        return config_fault(&c->base, "listen.https", FIRN_EINVAL, diag, "needs tls.cert");
    if (!c->redis.address && (c->redis.user || c->redis.password_file))
        return config_fault(&c->base, c->redis.user ? "redis.user" : "redis.password_file",
                            FIRN_EINVAL, diag, "needs redis.address");
    if (c->redis.user && !c->redis.password_file)
        return config_fault(&c->base, "redis.user", FIRN_EINVAL, diag, "needs redis.password_file");
    int r = check_tracing(c, diag);
    r = r ? r : config_check_compositions(c, diag);
    r = r ? r : config_guards_check(c, diag);
    r = r ? r : config_check_graphql(c, diag);
    return r ? r : check_routes(c, diag);
}

const struct config_program proxy_config = {
    .name = "firn-proxy",
    .about =
        "An HTTP gateway: routes requests to services, keeps what is broken away from clients.\n",
    .file = "/etc/firn/firn-proxy.yaml",
    .prefix = "FIRN_PROXY_",
    .flag_example = "listen.http",
    .settings = settings,
    .settings_n = sizeof settings / sizeof settings[0],
    .size = sizeof(struct config),
    .check = config_check,
    .check_files = config_check_files,
};
