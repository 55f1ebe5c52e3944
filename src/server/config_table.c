/*
 * The table of firnd's settings. YAML file, environment, flags, --help and --print-config are made
 * from these rows, and tests/unit/server/config.c compares the man page and the example file with
 * them. The settings of a section stand together; a computed default may use only settings that
 * stand above it or have a preset.
 */
#include "server/config.h"
#include "server/browser.h"
#include "daemon/span_export.h"
#include "daemon/span_sample.h"
#include "firn/layout.h"
#include "id/diag.h"
#include "store/store.h"
#include "wire/url.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A clock before this is not set yet: firnd waits for it, and no layout is checked against it. */
#define CLOCK_SET_MS INT64_C(1735689600000) /* 2025-01-01 */

static int check_layout(const char *value, struct firn_diag *why)
{
    struct firn_layout l;
    struct firn_diag cause = { 0 };
    char text[CONFIG_SHOWN_BUF];
    int64_t now_ms = (int64_t)time(NULL) * 1000;
    int r = firn_layout_parse(value, strlen(value), now_ms < CLOCK_SET_MS ? 0 : now_ms, &l, &cause);
    if (r)
        return firn__diag(why, r, cause.column, "'%s' is no layout: %s", config_shown(value, text),
                          cause.text);
    if (l.flags & FIRN_LAYOUT_DECODE_ONLY)
        return firn__diag(why, FIRN_ENOTSUP, 0,
                          "'%s' can only be read: it has no identity to issue under; take one that "
                          "has a node, dc or shard",
                          config_shown(value, text));
    return 0;
}

static int check_store(const char *value, struct firn_diag *why)
{
    if (strcmp(value, "raft:") != 0)
        return firn_store_url_check(value, why);
#ifdef FIRN_HAVE_RAFT
    return 0;
#else
    return firn__diag(why, FIRN_ENOTSUP, 0,
                      "this firnd was built without raft: build it with FIRN_STORE_RAFT");
#endif
}

static int check_peer(const char *value, struct firn_diag *why)
{
    struct host_port h;
    char text[CONFIG_SHOWN_BUF];
    bool ok = host_port_full(value, &h);
    return ok ? 0
              : firn__diag(why, FIRN_EFORMAT, 0,
                           "'%s' is no address; give host:port, as in 10.0.0.1:9003",
                           config_shown(value, text));
}

/* The name goes into store records, logs and metrics: what a host name may contain, and '_'. */
static int check_name(const char *value, struct firn_diag *why)
{
    char text[CONFIG_SHOWN_BUF];
    size_t n = strlen(value);
    bool ok = n <= 63;
    for (size_t i = 0; i < n; i++)
        ok &= isalnum((unsigned char)value[i]) || strchr("-_.", value[i]);
    return ok ? 0
              : firn__diag(why, FIRN_EFORMAT, 0,
                           "'%s' is no name; give up to 63 letters, digits, '-', '_' and '.'",
                           config_shown(value, text));
}

static int check_worker(const char *value, struct firn_diag *why)
{
    char text[CONFIG_SHOWN_BUF];
    size_t n = strlen(value);
    bool number = n > 0 && n <= 5 && strspn(value, "0123456789") == n;
    return number || strcmp(value, "auto") == 0
               ? 0
               : firn__diag(why, FIRN_EFORMAT, 0,
                            "'%s' is no slot; give a number from 0 on, or auto",
                            config_shown(value, text));
}

static int check_admin(const char *value, struct firn_diag *why)
{
    char text[CONFIG_SHOWN_BUF];
    size_t n = strlen(value);
    return n >= 1 && n <= 64
               ? 0
               : firn__diag(why, FIRN_EFORMAT, 0, "'%s' is no name of a certificate: 1 to 64 bytes",
                            config_shown(value, text));
}

static int check_service(const char *value, struct firn_diag *why)
{
    char text[CONFIG_SHOWN_BUF];
    return strlen(value) <= CONFIG_SERVICE_MAX
               ? 0
               : firn__diag(why, FIRN_ERANGE, 0, "'%s' is too long a name; give up to %d bytes",
                            config_shown(value, text), CONFIG_SERVICE_MAX);
}

/* systemd names the directory that it made for us; of several, ours is the first. */
static char *compute_state_dir(const void *config)
{
    (void)config;
    const char *dir = getenv("STATE_DIRECTORY");
    return dir && *dir && *dir != ':' ? strndup(dir, strcspn(dir, ":")) : strdup("./var");
}

static char *compute_store(const void *config)
{
    const struct config *c = config;
    char *store;
    if (config_cluster_asked(c)) /* with a file of its own each member would count by itself */
        return strdup("raft:");
    return asprintf(&store, "sqlite:%s/firn.db", c->state_dir) < 0 ? NULL : store;
}

static char *compute_cluster_address(const void *config)
{
    return strdup(((const struct config *)config)->cluster.listen);
}

static char *compute_cluster_dir(const void *config)
{
    const struct config *c = config;
    char *dir;
    return asprintf(&dir, "%s/raft", c->state_dir) < 0 ? NULL : dir;
}

/* The host name; a fixed one if check_name() refuses it, so that firnd starts anyway. */
static char *compute_name(const void *config)
{
    (void)config;
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || check_name(host, NULL) != 0)
        return strdup("firn");
    return strdup(host);
}

#define AT(field)   .offset = offsetof(struct config, field)
#define RANGE(a, b) .min = (a), .max = (b)
#define YEAR_MS     (UINT64_C(366) * 24 * 3600 * 1000)

static const struct setting settings[] = {
    { "state_dir", SETTING_STRING, 0, AT(state_dir), .compute = compute_state_dir,
      .preset_note = "$STATE_DIRECTORY, else ./var",
      .help = "directory for data that must survive a restart" },
    { "store", SETTING_STRING, 0, AT(store), .check = check_store, .compute = compute_store,
      .preset_note = "firn.db in state_dir, or raft: where cluster.init or cluster.join is set",
      .help =
          "where slots and sequences are kept: sqlite:FILE, memory:, raft: (as a member of a cluster "
          "of firnds), raft:// (in one without being a member), etcd://, zookeeper://, postgres://, "
          "redis:// and hosts, quorum:URL|URL|URL" },
    { "store_timeout_ms", SETTING_UINT, 0, AT(store_timeout_ms), "0", RANGE(0, 60000),
      .help = "time for one call to the store; 0: 2000, or 5000 for sqlite" },
    { "store_init", SETTING_BOOL, 0, AT(store_init), "false",
      .help = "make firn's records in a shared store that has none (as firn admin init does)" },
    { "fence", SETTING_CHOICE, 0, AT(fence), "auto", .choices = "auto|manual",
      .help = "what to do with a store that was restored or copied: fence it, or halt" },
    { "layout", SETTING_STRING, 0, AT(layout), "firn", .check = check_layout,
      .help = "layout of Snowflake IDs: a preset's name or a layout text" },
    { "name", SETTING_STRING, 0, AT(name), .check = check_name, .compute = compute_name,
      .preset_note = "the host name", .help = "this node's name in the store, logs and metrics" },
    { "worker_id", SETTING_STRING, 0, AT(worker_id), "auto", .also = "--worker",
      .check = check_worker,
      .help =
          "worker slot to take, and no other, or auto; also --worker; it is leased either way" },
    { "loops", SETTING_UINT, 0, AT(loops), "0", RANGE(0, 256),
      .help = "threads that serve connections; 0: one per core" },
    { "accept_clock", SETTING_BOOL, 0, AT(accept_clock), "false",
      .help = "start although the clock looks wrong" },

    { "listen.home", SETTING_ADDRS, 0, AT(listen.home), "127.0.0.1:9000",
      .help = "addresses of the start page and the whole API" },
    { "listen.snowflake", SETTING_ADDRS, 0, AT(listen.snowflake), "127.0.0.1:9001",
      .help = "addresses where /generate makes Snowflake IDs" },
    { "listen.ticket", SETTING_ADDRS, 0, AT(listen.ticket), "127.0.0.1:9002",
      .help = "addresses where /generate returns ticket numbers" },

    { "tickets.default_start", SETTING_UINT, 0, AT(tickets.default_start), "100001",
      RANGE(0, INT64_MAX), .help = "first number of the sequence called default" },
    { "tickets.default_mode", SETTING_CHOICE, 0, AT(tickets.default_mode), "gapless",
      .choices = "gapless|range",
      .help = "its mode: every number durable, or fast with gaps after a crash" },
    { "tickets.idem_retention_s", SETTING_UINT, 0, AT(tickets.idem_retention_s), "86400",
      RANGE(1, 31 * 86400), .help = "seconds that a client's key stands for the same IDs" },

    { "leases.max", SETTING_UINT, 0, AT(leases.max), "256", RANGE(0, 1023),
      .help = "slots lent to clients that make IDs in their own processes (mode=leased)" },

    { "peers", SETTING_ADDRS, 0, AT(peers),
      .help =
          "firnds with stores of their own whose IDs meet this one's: their slots are not taken" },

    { "cluster.listen", SETTING_STRING, 0, AT(cluster.listen), "127.0.0.1:9003",
      .check = check_peer, .help = "with store raft: address of the peer port" },
    { "cluster.address", SETTING_STRING, 0, AT(cluster.address), .check = check_peer,
      .compute = compute_cluster_address, .preset_note = "cluster.listen",
      .help = "address under which the other members reach it" },
    { "cluster.dir", SETTING_STRING, 0, AT(cluster.dir), .compute = compute_cluster_dir,
      .preset_note = "raft in state_dir", .help = "directory of its log and snapshots" },
    { "cluster.init", SETTING_BOOL, 0, AT(cluster.init), "false",
      .help = "begin a new cluster with this member, unless it has data; only on the very first" },
    { "cluster.fresh", SETTING_BOOL, 0, AT(cluster.fresh), "false",
      .help =
          "with cluster.init: IDs at once, not after the time that a lost cluster may have granted" },
    { "cluster.window_ms", SETTING_UINT, 0, AT(cluster.window_ms), "60000", RANGE(1000, 3600000),
      .help = "with cluster.init: how long members make IDs without a quorum" },
    { "cluster.join", SETTING_ADDRS, 0, AT(cluster.join),
      .help = "members to ask for admission, unless it has data" },
    { "cluster.standby", SETTING_BOOL, 0, AT(cluster.standby), "false",
      .help = "with cluster.join: no vote until firn cluster promote" },
    { "cluster.restore", SETTING_BOOL, 0, AT(cluster.restore), "false",
      .help = "recover as a single-node cluster from this data directory (applied once)" },
    { "cluster.plain", SETTING_BOOL, 0, AT(cluster.plain), "false",
      .help = "talk to members on other machines without TLS" },
    { "cluster.election_ms", SETTING_UINT, 0, AT(cluster.election_ms), "150", RANGE(20, 60000),
      .help = "shortest time without a leader before an election; the longest is twice that" },
    { "cluster.snapshot_every", SETTING_UINT, 0, AT(cluster.snapshot_every), "8192",
      RANGE(1, 100000000), .help = "entries of the log between two snapshots" },
    { "cluster.snapshot_keep", SETTING_UINT, 0, AT(cluster.snapshot_keep), "2048",
      RANGE(1, 100000000), .help = "entries kept behind a snapshot, for members that lag" },
    { "cluster.tls_cert", SETTING_FILE, SETTING_RELOAD, AT(cluster.tls_cert),
      .help = "PEM file: this member's certificate and its chain; turns TLS on between members" },
    { "cluster.tls_key", SETTING_FILE, SETTING_RELOAD, AT(cluster.tls_key),
      .help = "PEM file: its private key" },
    { "cluster.tls_ca", SETTING_FILE, SETTING_RELOAD, AT(cluster.tls_ca),
      .help = "PEM file: the CA that signed the certificates of all members" },

    { "limits.connections", SETTING_UINT, 0, AT(limits.connections), "10000", RANGE(1, 1000000),
      .help = "open connections; more are refused, but for health checks" },
    { "limits.connections_per_address", SETTING_UINT, 0, AT(limits.connections_per_address), "0",
      RANGE(0, 1000000),
      .help =
          "open connections from one address (IPv6: from one /64); 0: no limit, nor on loopback" },
    { "limits.ids_per_request", SETTING_UINT, 0, AT(limits.ids_per_request), "100000",
      RANGE(1, 10000000), .help = "largest n= or COUNT" },
    { "limits.sequences", SETTING_UINT, 0, AT(limits.sequences), "1000000", RANGE(0, UINT32_MAX),
      .help = "sequences in the store; at so many none is created any more; 0: no limit" },
    { "limits.header_ms", SETTING_UINT, 0, AT(limits.header_ms), "10000", RANGE(10, YEAR_MS),
      .help = "time for a request to arrive, from its first byte on" },
    { "limits.idle_ms", SETTING_UINT, 0, AT(limits.idle_ms), "60000", RANGE(10, YEAR_MS),
      .help = "time between requests before a connection is closed (HTTP, and Redis before AUTH)" },
    { "limits.write_ms", SETTING_UINT, 0, AT(limits.write_ms), "30000", RANGE(10, YEAR_MS),
      .help = "time in which a client that has answers waiting must read some of them" },
    { "limits.notice_ms", SETTING_UINT, 0, AT(limits.notice_ms), "0", RANGE(0, YEAR_MS),
      .help = "time after SIGTERM in which /readyz says no and requests are still served" },
    { "limits.drain_ms", SETTING_UINT, 0, AT(limits.drain_ms), "10000", RANGE(1, YEAR_MS),
      .help = "time for open requests to end when the server stops" },

    { "http.hosts", SETTING_LIST, 0, AT(http.hosts), .check = browser_check_host,
      .help =
          "names under which clients and proxies reach this server, beside localhost and its own" },
    { "http.origins", SETTING_LIST, 0, AT(http.origins), .check = browser_check_origin,
      .help = "origins whose web pages may use this server (CORS); '*': all" },

    { "log.level", SETTING_CHOICE, SETTING_RELOAD, AT(log.level), "info",
      .choices = "error|warn|info|debug", .help = "the least important level that is logged" },
    { "log.format", SETTING_CHOICE, SETTING_RELOAD, AT(log.format), "text", .choices = "text|json",
      .help = "lines for people, or one JSON object per line" },

    { "tracing.endpoint", SETTING_STRING, 0, AT(tracing.endpoint), .check = span_export_check,
      .help = "collector that spans are sent to (OTLP over HTTP), such as http://127.0.0.1:4318" },
    { "tracing.sample", SETTING_STRING, 0, AT(tracing.sample), "0", .check = span_sample_check,
      .help = "share of the requests without a traceparent whose spans are recorded: 0 to 1" },
    { "tracing.service", SETTING_STRING, 0, AT(tracing.service), "firnd", .check = check_service,
      .help = "service.name of the spans" },
    { "tracing.queue", SETTING_UINT, 0, AT(tracing.queue), "2048", RANGE(16, 1000000),
      .help = "spans that may wait for the collector, about 2 KiB each; more are dropped" },
    { "tracing.timeout_ms", SETTING_UINT, 0, AT(tracing.timeout_ms), "3000", RANGE(10, 60000),
      .help =
          "time for one request to the collector, and for the last spans when the server stops" },
    { "tracing.tls_ca", SETTING_FILE, 0, AT(tracing.tls_ca),
      .help = "PEM file: the CA of a collector with https; otherwise the system's are trusted" },

    { "tls.cert", SETTING_FILE, SETTING_RELOAD, AT(tls.cert),
      .help = "PEM file: our certificate and its chain; turns TLS on" },
    { "tls.key", SETTING_FILE, SETTING_RELOAD, AT(tls.key), .help = "PEM file: its private key" },
    { "tls.client_ca", SETTING_FILE, SETTING_RELOAD, AT(tls.client_ca),
      .help = "PEM file: the CA that must have signed client certificates" },

    { "auth.tokens", SETTING_ENTRIES, SETTING_RELOAD, AT(auth.tokens),
      .entries = &config_tokens_type, .help = "tokens and what each may mint; see firnd.yaml(5)" },

    { "auth.admins", SETTING_LIST, SETTING_RELOAD, AT(auth.admins), .check = check_admin,
      .help = "names in client certificates that may change the cluster without a token" },

    { "rate.per_client", SETTING_UINT, SETTING_RELOAD, AT(rate.per_client), "0",
      RANGE(0, 1000000000),
      .help = "IDs, or requests for one, per second and client; 0: no limit" },
    { "rate.burst", SETTING_UINT, SETTING_RELOAD, AT(rate.burst), "100", RANGE(1, 1000000000),
      .help = "IDs that a client may take at once, above its rate" },
};

_Static_assert(sizeof settings / sizeof settings[0] <= CONFIG_SETTINGS_MAX, "raise the bound");

const struct config_program firnd_config = {
    .name = "firnd",
    .about = "Serves Snowflake IDs and ticket numbers over HTTP and the Redis protocol.\n",
    .file = "/etc/firn/firnd.yaml",
    .prefix = "FIRN_",
    .flag_example = "listen.home",
    .settings = settings,
    .settings_n = sizeof settings / sizeof settings[0],
    .size = sizeof(struct config),
    .check = config_check,
};
