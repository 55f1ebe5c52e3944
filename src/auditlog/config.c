/*
 * The table of the audit log's settings. YAML file, environment, flags, --help and --print-config
 * are made from these rows. Tested in tests/unit/auditlog/config.c.
 */
#include "auditlog/config.h"
#include "auditlog/ids.h"
#include "auditlog/shard_map.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "id/diag.h"

#include <string.h>

enum { SERVICE_BYTES_MAX = 63 };

#define AT(field)   .offset = offsetof(struct config, field)
#define RANGE(a, b) .min = (a), .max = (b)
#define HOUR_MS     (UINT64_C(3600) * 1000)

static int check_database(const char *value, struct firn_diag *why)
{
    bool ok = strncmp(value, "postgres://", 11) == 0 || strncmp(value, "postgresql://", 13) == 0;
    return ok ? 0
              : firn__diag(why, FIRN_EFORMAT, 0,
                           "a shard is the URL of a PostgreSQL database, as in "
                           "postgres://user@host:5432/audit");
}

static int check_service(const char *value, struct firn_diag *why)
{
    char text[CONFIG_SHOWN_BUF];
    return strlen(value) <= SERVICE_BYTES_MAX
               ? 0
               : firn__diag(why, FIRN_ERANGE, 0, "'%s' is too long a name; give up to %d bytes",
                            config_shown(value, text), SERVICE_BYTES_MAX);
}

static const struct setting settings[] = {
    { "listen.http", SETTING_ADDRS, 0, AT(listen.http), .preset = "127.0.0.1:9100",
      .help = "addresses for requests" },
    { "listen.admin", SETTING_ADDRS, 0, AT(listen.admin), .preset = "127.0.0.1:9180",
      .help = "addresses for /metrics, /healthz and /readyz; not for clients" },
    { "tls.cert", SETTING_FILE, SETTING_RELOAD, AT(tls.cert),
      .help = "PEM file: the certificate of both addresses, then its chain; plaintext is refused" },
    { "tls.key", SETTING_FILE, SETTING_RELOAD, AT(tls.key),
      .help = "PEM file: its private key, not encrypted" },
    { "tls.client_ca", SETTING_FILE, SETTING_RELOAD, AT(tls.client_ca),
      .help = "PEM file: clients must show a certificate that one of these authorities signed" },
    { "loops", SETTING_UINT, 0, AT(loops), RANGE(0, 64), .preset = "0",
      .preset_note = "one per core", .help = "event loops; 0: one per core" },
    { "shards", SETTING_LIST, 0, AT(shards), .check = check_database, .preset = "",
      .preset_note = "none: give at least one",
      .help = "URLs of the PostgreSQL databases; the 32 logical shards are dealt to them in turn" },
    { "owners", SETTING_LIST, 0, AT(owners), .check = check_database, .preset = "",
      .preset_note = "as shards",
      .help = "the same databases, in the same order, with a user who may create tables: for init "
              "and retain" },
    { "id", SETTING_CHOICE, 0, AT(id), .preset = "firn", .choices = "firn|legacy",
      .help = "legacy: yyyyMMddHHmmssSSS in the place of IDs, which collide; for demonstrations" },
    { "generators", SETTING_STRING, 0, AT(generators), .preset = "firn://127.0.0.1:9001",
      .check = ids_check,
      .help = "firnds that make the IDs, with --layout audit: a URL of libfirn-client(3)" },
    { "tokens", SETTING_ENTRIES, 0, AT(tokens), .entries = &config_tokens_type,
      .help = "who may write, read and administer, for which tenant; without any, everyone may" },
    { "limits.connections", SETTING_UINT, 0, AT(limits.connections), RANGE(1, 1000000),
      .preset = "8192", .help = "connections of clients at once" },
    { "limits.connections_per_address", SETTING_UINT, 0, AT(limits.connections_per_address),
      RANGE(0, 1000000), .preset = "0", .help = "of one client's network; 0: no limit" },
    { "limits.rows", SETTING_UINT, 0, AT(limits.rows), RANGE(1, 1000), .preset = "1000",
      .help = "entries in one request" },
    { "limits.detail_bytes", SETTING_UINT, 0, AT(limits.detail_bytes), RANGE(2, 65536),
      .preset = "16384", .help = "of the detail of one entry" },
    { "limits.queue", SETTING_UINT, 0, AT(limits.queue), RANGE(1, 10000000), .preset = "20000",
      .help = "rows that may wait for one database; more are refused with 503" },
    { "limits.queue_kb", SETTING_UINT, 0, AT(limits.queue_kb), RANGE(64, 16 * 1024 * 1024),
      .preset = "65536", .help = "KiB of those rows" },
    { "limits.batch", SETTING_UINT, 0, AT(limits.batch), RANGE(1, 10000), .preset = "1000",
      .help = "rows in one commit" },
    { "limits.batch_kb", SETTING_UINT, 0, AT(limits.batch_kb), RANGE(64, 65536), .preset = "4096",
      .help = "KiB of those rows" },
    { "limits.commit_ms", SETTING_UINT, 0, AT(limits.commit_ms), RANGE(0, 1000), .preset = "2",
      .help = "between the beginnings of two commits of one database" },
    { "limits.wait_ms", SETTING_UINT, 0, AT(limits.wait_ms), RANGE(100, HOUR_MS), .preset = "10000",
      .help = "for a request to be committed or read, then the answer is 503" },
    { "limits.reads", SETTING_UINT, 0, AT(limits.reads), RANGE(1, 100000), .preset = "1000",
      .help = "reads that may wait for one database; more are refused with 503" },
    { "limits.header_ms", SETTING_UINT, 0, AT(limits.header_ms), RANGE(1, HOUR_MS),
      .preset = "10000", .help = "for the whole head of a request" },
    { "limits.idle_ms", SETTING_UINT, 0, AT(limits.idle_ms), RANGE(1, HOUR_MS), .preset = "60000",
      .help = "between two requests of a connection" },
    { "limits.write_ms", SETTING_UINT, 0, AT(limits.write_ms), RANGE(1, HOUR_MS), .preset = "30000",
      .help = "without a client taking a byte of its answer" },
    { "limits.notice_ms", SETTING_UINT, 0, AT(limits.notice_ms), RANGE(0, HOUR_MS), .preset = "0",
      .help = "between SIGTERM and the drain; /readyz says no meanwhile" },
    { "limits.drain_ms", SETTING_UINT, 0, AT(limits.drain_ms), RANGE(1, HOUR_MS), .preset = "30000",
      .help = "for requests in hand when the service ends" },
    { "partitions.ahead_days", SETTING_UINT, 0, AT(partitions.ahead_days), RANGE(1, 366),
      .preset = "7", .help = "for how many days partitions are made ahead" },
    { "partitions.keep_days", SETTING_UINT, 0, AT(partitions.keep_days), RANGE(0, 36500),
      .preset = "0", .preset_note = "all of them",
      .help = "what `firn-auditlog retain` leaves attached, in days; 0: all" },
    { "keys.keep_s", SETTING_UINT, 0, AT(keys.keep_s), RANGE(60, 86400 * 366), .preset = "86400",
      .help = "age of an Idempotency-Key that `firn-auditlog retain` removes" },
    { "log.level", SETTING_CHOICE, 0, AT(log.level), .preset = "info",
      .choices = "error|warn|info|debug", .help = "of the log, on stderr" },
    { "log.format", SETTING_CHOICE, 0, AT(log.format), .preset = "text", .choices = "text|json",
      .help = "of the same" },
    { "tracing.endpoint", SETTING_STRING, 0, AT(tracing.endpoint), .check = span_export_check,
      .help = "collector that spans are sent to (OTLP over HTTP), such as http://127.0.0.1:4318" },
    { "tracing.sample", SETTING_STRING, 0, AT(tracing.sample), .preset = "0",
      .check = span_sample_check,
      .help = "share of the requests without a traceparent whose spans are recorded: 0 to 1" },
    { "tracing.service", SETTING_STRING, 0, AT(tracing.service), .preset = "firn-auditlog",
      .check = check_service, .help = "service.name of the spans" },
    { "tracing.queue", SETTING_UINT, 0, AT(tracing.queue), RANGE(16, 1000000), .preset = "2048",
      .help = "spans that may wait for the collector, about 2 KiB each; more are dropped" },
    { "tracing.timeout_ms", SETTING_UINT, 0, AT(tracing.timeout_ms), RANGE(10, 60000),
      .preset = "3000",
      .help = "for one request to the collector, and for the last spans when the service stops" },
    { "tracing.tls_ca", SETTING_FILE, 0, AT(tracing.tls_ca),
      .help = "PEM file: the CA of a collector with https; otherwise the system's are trusted" },
};

static int config_check(const void *config, struct firn_diag *diag)
{
    const struct config *c = config;
    struct shard_map map;
    if (c->tls.cert && !c->tls.key)
        return config_fault(&c->base, "tls.cert", FIRN_EINVAL, diag, "needs tls.key");
    if (c->tls.key && !c->tls.cert)
        return config_fault(&c->base, "tls.key", FIRN_EINVAL, diag, "needs tls.cert");
    if (c->tls.client_ca && !c->tls.cert)
        return config_fault(&c->base, "tls.client_ca", FIRN_EINVAL, diag, "needs tls.cert");
    if (!c->tracing.endpoint && span_sample_read(c->tracing.sample) > 0)
        return config_fault(&c->base, "tracing.sample", FIRN_EINVAL, diag,
                            "needs tracing.endpoint too, the collector that spans are sent to");
    if (c->shards.n == 0)
        return firn__diag(diag, FIRN_EINVAL, 0,
                          "shards is empty: give the URL of at least one PostgreSQL database, as "
                          "in shards: [postgres://user@host/audit]");
    if (shard_map_deal(c->shards.n, &map))
        return config_fault(&c->base, "shards", FIRN_ERANGE, diag,
                            "there are %zu databases for 32 logical shards; give up to 32",
                            c->shards.n);
    for (size_t i = 0; i < c->shards.n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->shards.v[i], c->shards.v[k]) == 0)
                return config_fault(&c->base, "shards", FIRN_EINVAL, diag,
                                    "numbers %zu and %zu are the same database", k + 1, i + 1);
    if (c->owners.n > 0 && c->owners.n != c->shards.n)
        return config_fault(&c->base, "owners", FIRN_EINVAL, diag,
                            "there are %zu of them and %zu shards; give one for each shard, in "
                            "the same order",
                            c->owners.n, c->shards.n);
    return 0;
}

const struct config_program auditlog_config = {
    .name = "firn-auditlog",
    .about =
        "An audit log over several PostgreSQL databases, whose entries have firn IDs.\n"
        "\n"
        "    firn-auditlog           serves\n"
        "    firn-auditlog init      creates or updates the tables in every database\n"
        "    firn-auditlog retain    makes partitions ahead, detaches old ones, removes old keys\n",
    .file = "/etc/firn/firn-auditlog.yaml",
    .prefix = "FIRN_AUDITLOG_",
    .flag_example = "listen.http",
    .settings = settings,
    .settings_n = sizeof settings / sizeof settings[0],
    .size = sizeof(struct config),
    .check = config_check,
};
