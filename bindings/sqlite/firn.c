/*
 * Loadable SQLite extension `firn`: IDs as SQL functions (docs/bindings.md).
 *
 * firn_id() draws from one libfirn-node for the whole process, opened at the first call: its slot
 * is leased from a store, never assumed. The node stays until the process ends or firn_open() names
 * another store, so the extension is loaded permanently: sqlite3_close() must not unmap a library
 * whose thread is running. firn_ticket() counts in a table of the caller's own database and
 * transaction, so a number that is rolled back comes again and there is no gap.
 *
 * Flags. Functions of their arguments alone are DETERMINISTIC and INNOCUOUS. firn_uuid7() and
 * firn_ulid() are INNOCUOUS, as random() is. firn_id() and firn_ticket() leave traces (a lease, a
 * row): a schema may use them, in DEFAULT or a trigger, unless PRAGMA trusted_schema is off.
 * firn_open() opens files and connections: DIRECTONLY, never from a schema.
 * Tests: bindings/sqlite/test.py.
 */
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1

#include <errno.h>
#include <firn/firn.h>
#include <firn/node.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_BUF = 4096, URL_BUF = PATH_BUF + 16, UUID_TEXT = 36, ULID_TEXT = 26, WIDE_BYTES = 16 };

static struct {
    pthread_rwlock_t lock; /* held for writing while the node is opened or closed */
    struct firn_node *node;
    char *url;
    int at_exit; /* close_node() is registered */
} shared = { .lock = PTHREAD_RWLOCK_INITIALIZER };

static void fail(sqlite3_context *c, const char *what, int error, const struct firn_diag *d)
{
    char *text = sqlite3_mprintf("%s: %s (%s)", what,
                                 d && d->text[0] ? d->text : firn_error_message(error),
                                 firn_error_name(error));
    if (!text) {
        sqlite3_result_error_nomem(c);
        return;
    }
    sqlite3_result_error(c, text, -1);
    sqlite3_free(text);
}

static int any_null(int n, sqlite3_value **v)
{
    for (int i = 0; i < n; i++)
        if (sqlite3_value_type(v[i]) == SQLITE_NULL)
            return 1;
    return 0;
}

static const char *text_of(sqlite3_value *v, size_t *len)
{
    const char *p = (const char *)sqlite3_value_text(v);
    *len = p ? (size_t)sqlite3_value_bytes(v) : 0;
    return p ? p : "";
}

/* ---- the node ---- */

/* At the end of the process. A thread that is inside a call keeps the node: then the rest of the
 * window stays unused. In a child of fork() this leaves the parent's slot alone. */
static void close_node(void)
{
    if (pthread_rwlock_trywrlock(&shared.lock) != 0)
        return;
    firn_node_close(shared.node);
    shared.node = NULL;
    pthread_rwlock_unlock(&shared.lock);
}

static int make_directories(char *path)
{
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char was = *p;
        *p = '\0';
        int r = mkdir(path, 0700);
        *p = was;
        if (r != 0 && errno != EEXIST)
            return -1;
        if (was == '\0')
            return 0;
    }
}

/* FIRN_STORE, or a store of this user in the directory where `firn gen` has its worker numbers. */
static int default_url(char out[URL_BUF], struct firn_diag *d)
{
    const char *given = getenv("FIRN_STORE"), *xdg = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char path[PATH_BUF];
    int n;
    if (given && *given) {
        n = snprintf(out, URL_BUF, "%s", given);
        return n < URL_BUF ? 0 : FIRN_EFORMAT;
    }
    if (xdg && xdg[0] == '/')
        n = snprintf(path, sizeof path, "%s/firn", xdg);
    else if (geteuid() == 0)
        n = snprintf(path, sizeof path, "/var/lib/firn");
    else if (home && home[0] == '/')
        n = snprintf(path, sizeof path, "%s/.local/state/firn", home);
    else
        n = PATH_BUF;
    if (n >= PATH_BUF) {
        snprintf(d->text, sizeof d->text,
                 "no store: set FIRN_STORE or HOME, or call firn_open('sqlite:FILE') first");
        return FIRN_ENOENT;
    }
    if (make_directories(path) != 0) {
        snprintf(d->text, sizeof d->text, "cannot make %.100s (%s): set FIRN_STORE", path,
                 strerror(errno));
        return FIRN_EIO;
    }
    snprintf(out, URL_BUF, "sqlite:%s/slots", path);
    return 0;
}

/* With the lock held for writing. The new node is there before the old one goes. */
static int open_node(const char *url, struct firn_diag *d)
{
    char derived[URL_BUF];
    struct firn_node_opts o = FIRN_NODE_OPTS_INIT;
    struct firn_node *node;
    o.name = "sqlite-extension";
    int r = url ? 0 : default_url(derived, d);
    if (r != 0)
        return r;
    url = url ? url : derived;
    if (strncmp(url, "memory:", 7) == 0) {
        snprintf(d->text, sizeof d->text,
                 "memory: lives in one process: name a store that processes can share");
        return FIRN_EINVAL;
    }
    char *copy = strdup(url);
    if (!copy)
        return FIRN_ENOMEM;
    r = firn_node_open(url, &o, &node, d);
    if (r != 0) {
        free(copy);
        return r;
    }
    firn_node_close(shared.node);
    free(shared.url);
    shared.node = node;
    shared.url = copy;
    if (!shared.at_exit) /* after the open: what its libraries registered runs later */
        shared.at_exit = atexit(close_node) == 0;
    return 0;
}

static void fn_open(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct firn_diag d = { 0 };
    struct firn_node_info info;
    size_t len;
    int r = 0;
    if (any_null(n, v)) {
        sqlite3_result_error(c, "firn_open: the URL of a store is required, such as sqlite:FILE",
                             -1);
        return;
    }
    const char *url = text_of(v[0], &len);
    pthread_rwlock_wrlock(&shared.lock);
    if (!shared.node || strcmp(shared.url, url) != 0)
        r = open_node(url, &d);
    if (r == 0)
        firn_node_info(shared.node, &info);
    pthread_rwlock_unlock(&shared.lock);
    if (r != 0)
        fail(c, "firn_open", r, &d);
    else
        sqlite3_result_int64(c, info.slot);
}

static void fn_id(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct firn_diag d = { 0 };
    struct firn_node_info info;
    uint64_t id;
    int r = 0;
    (void)n, (void)v;
    pthread_rwlock_rdlock(&shared.lock);
    if (!shared.node) {
        pthread_rwlock_unlock(&shared.lock);
        pthread_rwlock_wrlock(&shared.lock);
        if (!shared.node)
            r = open_node(NULL, &d);
    }
    if (r == 0)
        r = firn_node_next(shared.node, &id);
    if (r == FIRN_EFORKED) {
        snprintf(d.text, sizeof d.text,
                 "the process forked after its first ID: on a sqlite: store ask for the first one "
                 "in the child, or use a store that machines share");
    } else if (r != 0 && shared.node) {
        firn_node_info(shared.node, &info);
        d = info.diag;
    }
    pthread_rwlock_unlock(&shared.lock);
    if (r != 0)
        fail(c, "firn_id", r, &d);
    else
        sqlite3_result_int64(c, (sqlite3_int64)id);
}

/* ---- tickets ---- */

static const char table_sql[] =
    "CREATE TABLE IF NOT EXISTS main.firn_tickets(name TEXT PRIMARY KEY NOT NULL,"
    " last INTEGER NOT NULL CHECK (typeof(last) = 'integer')) WITHOUT ROWID";
static const char ticket_sql[] = "INSERT INTO main.firn_tickets(name, last) VALUES (?1, 1)"
                                 " ON CONFLICT (name) DO UPDATE SET last = last + 1 RETURNING last";

static void fn_ticket(sqlite3_context *c, int n, sqlite3_value **v)
{
    sqlite3 *db = sqlite3_context_db_handle(c);
    sqlite3_stmt *st = NULL;
    sqlite3_int64 number = 0;
    size_t len;
    const char *name = text_of(v[0], &len);
    (void)n;
    if (len == 0) {
        sqlite3_result_error(c, "firn_ticket: the name of a sequence is required", -1);
        return;
    }
    int r = sqlite3_prepare_v2(db, ticket_sql, -1, &st, NULL);
    if (r == SQLITE_ERROR) { /* the first ticket of this database */
        r = sqlite3_exec(db, table_sql, NULL, NULL, NULL);
        if (r == SQLITE_OK)
            r = sqlite3_prepare_v2(db, ticket_sql, -1, &st, NULL);
    }
    if (r == SQLITE_OK)
        r = sqlite3_bind_text(st, 1, name, (int)len, SQLITE_TRANSIENT);
    if (r == SQLITE_OK && (r = sqlite3_step(st)) == SQLITE_ROW) {
        number = sqlite3_column_int64(st, 0);
        r = sqlite3_step(st);
    }
    if (r == SQLITE_DONE) {
        sqlite3_result_int64(c, number);
    } else {
        char *text = sqlite3_mprintf("firn_ticket: %s", sqlite3_errmsg(db));
        sqlite3_result_error(c, text ? text : "firn_ticket: out of memory", -1);
        sqlite3_result_error_code(c, r); /* keeps the text: SQLITE_BUSY stays one */
        sqlite3_free(text);
    }
    sqlite3_finalize(st);
}

/* ---- what an ID says ---- */

/* The layout that the second argument names; `firn` without one. */
static int layout_of(sqlite3_context *c, int n, sqlite3_value **v, const char *function,
                     struct firn_layout *out)
{
    struct firn_diag d = { 0 };
    size_t len = 4;
    const char *name = n > 1 ? text_of(v[1], &len) : "firn";
    int r = firn_layout_parse(name, len, 0, out, &d);
    if (r != 0)
        fail(c, function, r, &d);
    return r;
}

/* Parts of a number, or an error in `c`. */
static int parts_of(sqlite3_context *c, int n, sqlite3_value **v, const char *function,
                    struct firn_layout *l, struct firn_parts *out)
{
    struct firn_diag d = { 0 };
    if (layout_of(c, n, v, function, l) != 0)
        return -1;
    if (sqlite3_value_type(v[0]) != SQLITE_INTEGER) {
        snprintf(d.text, sizeof d.text, "a 64-bit ID is an integer: CAST it, or use firn_parse()");
        fail(c, function, FIRN_EINVAL, &d);
        return -1;
    }
    int r = firn_layout_decompose(l, (uint64_t)sqlite3_value_int64(v[0]), out);
    if (r != 0) {
        snprintf(d.text, sizeof d.text, "the ID has bits set that belong to no field");
        fail(c, function, r, &d);
    }
    return r;
}

/* Text in the form of SQLite's own functions, UTC, to the millisecond. */
static void result_time(sqlite3_context *c, int64_t unix_us)
{
    char text[64], day[48];
    int64_t ms = unix_us / 1000 - (unix_us % 1000 < 0);
    time_t seconds = (time_t)(ms / 1000 - (ms % 1000 < 0));
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &tm) == 0) {
        fail(c, "firn_time", FIRN_ERANGE, NULL);
        return;
    }
    snprintf(text, sizeof text, "%s.%03d", day, (int)(ms - (int64_t)seconds * 1000));
    sqlite3_result_text(c, text, -1, SQLITE_TRANSIENT);
}

/* A text: the second argument is its kind; UUIDs and ULIDs are known by their length. */
static void time_of_text(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct firn_diag d = { 0 };
    struct firn_reading got;
    size_t len, name_len = 4;
    const char *p = text_of(v[0], &len);
    const char *name = n > 1              ? text_of(v[1], &name_len)
                       : len == UUID_TEXT ? "uuid"
                       : len == ULID_TEXT ? "ulid"
                                          : "";
    const struct firn_kind *kind = *name ? firn_kind_find(name, name_len) : NULL;
    if (!kind) {
        snprintf(d.text, sizeof d.text,
                 "name the kind of this text as the second argument, such as 'ksuid' (`firn gen` "
                 "lists the kinds); numbers are integers");
        fail(c, "firn_time", FIRN_EINVAL, &d);
        return;
    }
    int r = firn_read(kind, p, len, NULL, &got, &d);
    if (r != 0)
        fail(c, "firn_time", r, &d);
    else if (got.has_time)
        result_time(c, got.unix_us);
}

static void fn_time(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct firn_layout l;
    struct firn_parts parts;
    if (any_null(n, v))
        return;
    if (sqlite3_value_type(v[0]) == SQLITE_TEXT)
        time_of_text(c, n, v);
    else if (parts_of(c, n, v, "firn_time", &l, &parts) == 0)
        result_time(c, firn_layout_unix_us(&l, parts.field[FIRN_FIELD_TIME]));
}

/* The shard where the layout has that field, otherwise the node: dc and node joined. */
static void fn_shard(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct firn_layout l;
    struct firn_parts parts;
    if (any_null(n, v) || parts_of(c, n, v, "firn_shard", &l, &parts) != 0)
        return;
    uint64_t shard = l.field[FIRN_FIELD_SHARD].width > 0
                         ? parts.field[FIRN_FIELD_SHARD]
                         : parts.field[FIRN_FIELD_DC] << l.field[FIRN_FIELD_NODE].width |
                               parts.field[FIRN_FIELD_NODE];
    sqlite3_result_int64(c, (sqlite3_int64)shard);
}

/* ---- texts ---- */

static const struct firn_codec *codec_of(sqlite3_context *c, sqlite3_value *v, const char *function)
{
    size_t len;
    const char *name = text_of(v, &len);
    const struct firn_codec *codec = firn_codec_find(name, len);
    if (!codec) {
        char *text = sqlite3_mprintf(
            "%s: no codec '%s': there are decimal, hex, crockford, "
            "crockford-check, base32hex, base36, base58, base62, base64url",
            function, name);
        sqlite3_result_error(c, text ? text : "no such codec", -1);
        sqlite3_free(text);
    }
    return codec;
}

static void fn_text(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct firn_diag d = { 0 };
    char out[FIRN_CODEC_TEXT_BUF];
    int r, type = sqlite3_value_type(v[0]);
    const struct firn_codec *codec = any_null(n, v) ? NULL : codec_of(c, v[1], "firn_text");
    if (!codec)
        return;
    if (type == SQLITE_INTEGER) {
        r = firn_codec_encode64(codec, (uint64_t)sqlite3_value_int64(v[0]), out, sizeof out, NULL);
    } else if (type == SQLITE_BLOB && sqlite3_value_bytes(v[0]) == WIDE_BYTES) {
        const uint8_t *b = sqlite3_value_blob(v[0]);
        struct firn_u128 wide = { 0, 0 };
        for (int i = 0; i < WIDE_BYTES / 2; i++) {
            wide.hi = wide.hi << 8 | b[i];
            wide.lo = wide.lo << 8 | b[i + WIDE_BYTES / 2];
        }
        r = firn_codec_encode128(codec, wide, out, sizeof out, NULL);
    } else {
        r = FIRN_EINVAL;
        snprintf(d.text, sizeof d.text, "the value is an integer, or a blob of 16 bytes");
    }
    if (r != 0)
        fail(c, "firn_text", r, &d);
    else
        sqlite3_result_text(c, out, -1, SQLITE_TRANSIENT);
}

static void fn_parse(sqlite3_context *c, int n, sqlite3_value **v)
{
    struct firn_diag d = { 0 };
    const struct firn_codec *codec = any_null(n, v) ? NULL : codec_of(c, v[1], "firn_parse");
    int bits = n > 2 ? sqlite3_value_int(v[2]) : 64, r;
    struct firn_u128 wide;
    uint64_t number;
    size_t len;
    if (!codec)
        return;
    const char *p = text_of(v[0], &len);
    if (bits == 64) {
        r = firn_codec_decode64(codec, p, len, &number);
        if (r == 0)
            sqlite3_result_int64(c, (sqlite3_int64)number);
    } else if (bits == 128) {
        r = firn_codec_decode128(codec, p, len, &wide);
        uint8_t b[WIDE_BYTES];
        for (int i = 0; r == 0 && i < WIDE_BYTES / 2; i++) {
            b[i] = (uint8_t)(wide.hi >> (56 - 8 * i));
            b[i + WIDE_BYTES / 2] = (uint8_t)(wide.lo >> (56 - 8 * i));
        }
        if (r == 0)
            sqlite3_result_blob(c, b, sizeof b, SQLITE_TRANSIENT);
    } else {
        r = FIRN_EINVAL;
        snprintf(d.text, sizeof d.text, "a value has 64 or 128 bits, not %d", bits);
    }
    if (r != 0)
        fail(c, "firn_parse", r, &d);
}

static void fn_uuid7(sqlite3_context *c, int n, sqlite3_value **v)
{
    char out[FIRN_UUID_TEXT_BUF];
    (void)n, (void)v;
    int r = firn_uuid_v7_now_text(out);
    if (r != 0)
        fail(c, "firn_uuid7", r, NULL);
    else
        sqlite3_result_text(c, out, -1, SQLITE_TRANSIENT);
}

static void fn_ulid(sqlite3_context *c, int n, sqlite3_value **v)
{
    char out[FIRN_ULID_TEXT_BUF];
    (void)n, (void)v;
    int r = firn_ulid_now_text(out);
    if (r != 0)
        fail(c, "firn_ulid", r, NULL);
    else
        sqlite3_result_text(c, out, -1, SQLITE_TRANSIENT);
}

static void fn_version(sqlite3_context *c, int n, sqlite3_value **v)
{
    (void)n, (void)v;
    sqlite3_result_text(c, firn_version(), -1, SQLITE_STATIC);
}

__attribute__((visibility("default"))) int sqlite3_firn_init(sqlite3 *db, char **error,
                                                             const sqlite3_api_routines *api);

int sqlite3_firn_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
    enum { PURE = SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS };
    static const struct {
        const char *name;
        int args, flags;
        void (*call)(sqlite3_context *, int, sqlite3_value **);
    } functions[] = {
        { "firn_open", 1, SQLITE_DIRECTONLY, fn_open },
        { "firn_id", 0, 0, fn_id },
        { "firn_ticket", 1, 0, fn_ticket },
        { "firn_time", 1, PURE, fn_time },
        { "firn_time", 2, PURE, fn_time },
        { "firn_shard", 1, PURE, fn_shard },
        { "firn_shard", 2, PURE, fn_shard },
        { "firn_text", 2, PURE, fn_text },
        { "firn_parse", 2, PURE, fn_parse },
        { "firn_parse", 3, PURE, fn_parse },
        { "firn_uuid7", 0, SQLITE_INNOCUOUS, fn_uuid7 },
        { "firn_ulid", 0, SQLITE_INNOCUOUS, fn_ulid },
        { "firn_version", 0, PURE, fn_version },
    };
    SQLITE_EXTENSION_INIT2(api);
    (void)error;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        int r = sqlite3_create_function_v2(db, functions[i].name, functions[i].args,
                                           SQLITE_UTF8 | functions[i].flags, NULL,
                                           functions[i].call, NULL, NULL, NULL);
        if (r != SQLITE_OK)
            return r;
    }
    return SQLITE_OK_LOAD_PERMANENTLY;
}
