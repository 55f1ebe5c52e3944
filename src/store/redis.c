/*
 * The registers in Redis 7: strings `<prefix>:<key>`, with a sorted set `<prefix>` of all keys for
 * scans.
 *
 * Redis replicates without waiting, so a fail-over can forget what was confirmed
 * (docs/coordination.md). firn then notices another server and fences, which is as safe as the
 * clocks are. That is weaker than every other store, so it must be asked for:
 *   unsafe_ok=yes  checks at every connection that the server keeps what it confirms: appendonly
 *                  yes, appendfsync always, no-appendfsync-on-rewrite no, no eviction of keys
 *                  without expiry. Where a fail-over is possible (it has replicas, or the URL names
 *                  several servers) also that an old master stops: min-replicas-to-write >= 1 and
 *                  min-replicas-max-lag 1..10 s. A lone server needs no replica.
 *   unsafe_ok=dev  checks nothing: for development, and where CONFIG GET is forbidden.
 *
 * A write is one Lua script, which is atomic: it first compares run_id and master_replid with those
 * of opening and every old value, then writes; nothing can fail between its writes. Both ids change
 * when the server restarts, so a restart is FIRN_ESTORE, too; the replid alone also when a first
 * replica joins: a fence too many is no harm. appendfsync always answers after the fsync. Counters
 * never are Lua numbers. Once a byte of a write may have been sent, silence is FIRN_EUNKNOWN;
 * errors that Redis gives before a script writes are FIRN_EIO.
 *
 * hiredis only forms and reads messages: its version 0.14 has no TLS and no limit for a whole call,
 * so the socket is ours (link.h). Several servers: the first that is a master is used, and looked
 * for again when it is none any more. There is no Sentinel and no Cluster in this.
 *
 * Tested by tests/store/redis.py.
 */
#include "store/check.h"
#include "store/engines.h"
#include "id/diag.h"
#include "platform/assert.h"
#include "platform/mono.h"
#include "wire/link.h"
#include "wire/tls_context.h"

#include <ctype.h>
#include <hiredis.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PAGE_KEYS = 500, /* of a scan: half a megabyte at most */
    PREFIX_MAX = 64,
    ID_LEN = 40,    /* of run_id, master_replid and a SHA-1, in hex */
    LAG_S_MAX = 10, /* skew_max: an old master must stop before a fence's floor is reached */
    ARGS_HEAD = 3,  /* of a script call: EVALSHA, the script, 0 keys */
    ASK_MAX = 4,
    CHUNK_BYTES = 16 * 1024,
};

/* Every script begins with this: a replica may be old, and must not be asked. */
#define MASTER_ONLY                                 \
    "local r = redis.call('INFO', 'replication')\n" \
    "if not r:find('role:master', 1, true) then return 'role' end\n"
#define IDS                                                            \
    "local run = redis.call('INFO', 'server'):match('run_id:(%x+)')\n" \
    "local id = r:match('master_replid:(%x+)')\n"

enum script { IDENTITY, READ, CAS, SCAN, SCRIPTS };
static const char *const script_text[SCRIPTS] = {
    [IDENTITY] = MASTER_ONLY IDS "return {run, id}",
    /* 1 the register */
    [READ] = MASTER_ONLY "local t = redis.call('TIME')\n"
                         "return {redis.call('GET', ARGV[1]), t[1], t[2]}",
    /* 1 run_id, 2 master_replid, 3 prefix, then for each register: what, key, old, value.
     * All that can fail comes before the first write, and so does ZCARD: it fails if the index
     * is none. */
    [CAS] = MASTER_ONLY IDS "if run ~= ARGV[1] or id ~= ARGV[2] then return 'store' end\n"
                            "local ok = {}\n"
                            "redis.call('ZCARD', ARGV[3])\n"
                            "for i = 4, #ARGV, 4 do\n"
                            "  local now = redis.call('GET', ARGV[3] .. ':' .. ARGV[i + 1])\n"
                            "  local same = now == ARGV[i + 2]\n"
                            "  if ARGV[i] == 'create' then same = not now end\n"
                            "  ok[#ok + 1] = same and 1 or 0\n"
                            "end\n"
                            "for i = 4, #ARGV, 4 do\n"
                            "  if ok[i / 4] == 1 then\n"
                            "    local name = ARGV[3] .. ':' .. ARGV[i + 1]\n"
                            "    if ARGV[i] == 'remove' then\n"
                            "      redis.call('DEL', name)\n"
                            "      redis.call('ZREM', ARGV[3], ARGV[i + 1])\n"
                            "    else\n"
                            "      redis.call('SET', name, ARGV[i + 3])\n"
                            "      redis.call('ZADD', ARGV[3], 0, ARGV[i + 1])\n"
                            "    end\n"
                            "  end\n"
                            "end\n"
                            "return ok",
    /* 1 prefix, 2 from where, 3 how many; keys and values in turn */
    [SCAN] = MASTER_ONLY
    "local out = {}\n"
    "local keys = redis.call('ZRANGEBYLEX', ARGV[1], ARGV[2], '+', 'LIMIT', 0, "
    "ARGV[3])\n"
    "for _, key in ipairs(keys) do\n"
    "  out[#out + 1] = key\n"
    "  out[#out + 1] = redis.call('GET', ARGV[1] .. ':' .. key)\n"
    "end\n"
    "return out",
};

struct redis {
    struct firn_store base;
    struct link *link; /* NULL: connect before the next call */
    struct tls_context *tls;
    redisReader *reader; /* of this link */
    size_t host;         /* that served last */
    uint32_t timeout_ms;
    bool dev, changed; /* changed: FIRN_ESTORE was noticed; until identity() */
    char run_id[ID_LEN + 1], replid[ID_LEN + 1]; /* of the server that writes are for */
    char sha[SCRIPTS][ID_LEN + 1];
    char prefix[PREFIX_MAX + 1];
    struct store_url url;
};

static int64_t deadline(const struct redis *s)
{
    return mono_now_ms() + s->timeout_ms;
}

static void drop(struct redis *s)
{
    link_close(s->link);
    redisReaderFree(s->reader);
    s->link = NULL;
    s->reader = NULL;
}

/* ---- commands ---- */

static struct firn_slice text(const char *p)
{
    return firn_slice(p, strlen(p));
}

static bool is_error(const redisReply *r, const char *code)
{
    size_t n = strlen(code);
    return r->type == REDIS_REPLY_ERROR && strncmp(r->str, code, n) == 0 &&
           (r->str[n] == ' ' || r->str[n] == '\0');
}

/* One command, one reply, which may be an error of the server's. FIRN_ENOMEM: nothing was sent.
 * FIRN_EIO: some of it may have been; the link is gone. */
static int command(struct redis *s, const struct firn_slice *arg, size_t n, int64_t until,
                   redisReply **out, struct firn_diag *d)
{
    const char **p = calloc(n, sizeof *p);
    size_t *len = calloc(n, sizeof *len);
    char *message = NULL;
    for (size_t i = 0; p && len && i < n; i++) {
        p[i] = arg[i].p ? arg[i].p : "";
        len[i] = arg[i].len;
    }
    int size = p && len ? redisFormatCommandArgv(&message, (int)n, p, len) : -1;
    free(p);
    free(len);
    if (size < 0)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int r = link_send(s->link, message, (size_t)size, until, d);
    redisFreeCommand(message);
    void *reply = NULL;
    while (r == 0 && !reply) {
        char some[CHUNK_BYTES];
        size_t got;
        r = link_recv(s->link, some, sizeof some, &got, until, d);
        if (r == 0 && (redisReaderFeed(s->reader, some, got) != REDIS_OK ||
                       redisReaderGetReply(s->reader, &reply) != REDIS_OK))
            r = firn__diag(d, FIRN_EIO, 0, "the server does not speak the Redis protocol: %.60s",
                           s->reader->errstr);
    }
    if (r == 0 && s->reader->pos != s->reader->len) { /* it would answer the next question */
        freeReplyObject(reply);
        r = firn__diag(d, FIRN_EIO, 0, "Redis sent more than one reply");
    }
    if (r != 0) {
        drop(s);
        return FIRN_EIO;
    }
    *out = reply;
    return 0;
}

static int refused(const redisReply *r, const char *doing, struct firn_diag *d)
{
    return firn__diag(d, FIRN_EIO, 0, "Redis refuses %s: %.120s", doing,
                      r->type == REDIS_REPLY_ERROR ? r->str : "an answer of the wrong kind");
}

/* A command of words, ended by NULL. Errors of the server are FIRN_EIO. */
static int ask(struct redis *s, int64_t until, redisReply **out, struct firn_diag *d, ...)
{
    struct firn_slice arg[ASK_MAX];
    size_t n = 0;
    va_list words;
    va_start(words, d);
    for (const char *w; n < ASK_MAX && (w = va_arg(words, const char *)); n++)
        arg[n] = text(w);
    va_end(words);
    redisReply *r;
    int error = command(s, arg, n, until, &r, d);
    if (error == 0 && r->type == REDIS_REPLY_ERROR) {
        error = refused(r, arg[0].p, d);
        freeReplyObject(r);
    }
    if (error == 0)
        *out = r;
    return error;
}

/* ---- the connection ---- */

/* The value of a setting, in `out`; an old server may not have it, which is "". */
static int setting(struct redis *s, const char *name, char *out, size_t size, int64_t until,
                   struct firn_diag *d)
{
    redisReply *r;
    struct firn_diag why = { 0 };
    int error = ask(s, until, &r, &why, "CONFIG", "GET", name, NULL);
    if (error != 0 && s->link)
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "Redis hides %s from this user: allow +config|get; or unsafe_ok=dev "
                          "uses it unchecked, and it may forget",
                          name);
    if (error != 0)
        return firn__diag(d, error, 0, "%s", why.text);
    bool found = r->type == REDIS_REPLY_ARRAY && r->elements == 2 &&
                 r->element[1]->type == REDIS_REPLY_STRING;
    snprintf(out, size, "%s", found ? r->element[1]->str : "");
    freeReplyObject(r);
    return 0;
}

static int check_settings(struct redis *s, bool replicas, int64_t until, struct firn_diag *d)
{
    static const struct {
        const char *name, *want;
    } must[] = { { "appendonly", "yes" },
                 { "appendfsync", "always" },
                 { "no-appendfsync-on-rewrite", "no" } };
    char is[64];
    int r;
    for (size_t i = 0; i < sizeof must / sizeof must[0]; i++) {
        r = setting(s, must[i].name, is, sizeof is, until, d);
        if (r == 0 && strcmp(is, must[i].want) != 0)
            r = firn__diag(d, FIRN_ENOTSUP, 0,
                           "Redis has %s %s and may forget what it confirmed: set %s %s; or "
                           "unsafe_ok=dev for development",
                           must[i].name, is, must[i].name, must[i].want);
        if (r != 0)
            return r;
    }
    r = setting(s, "maxmemory-policy", is, sizeof is, until, d);
    if (r == 0 && strncmp(is, "allkeys", 7) == 0)
        r = firn__diag(d, FIRN_ENOTSUP, 0,
                       "Redis may evict any key (maxmemory-policy %s): set it to noeviction", is);
    if (r != 0 || !replicas)
        return r;
    long n, lag;
    r = setting(s, "min-replicas-to-write", is, sizeof is, until, d);
    n = strtol(is, NULL, 10);
    if (r == 0)
        r = setting(s, "min-replicas-max-lag", is, sizeof is, until, d);
    lag = strtol(is, NULL, 10);
    if (r == 0 && (n < 1 || lag < 1 || lag > LAG_S_MAX))
        r = firn__diag(d, FIRN_ENOTSUP, 0,
                       "a Redis master that lost its replicas must stop: set min-replicas-to-write "
                       "1 and min-replicas-max-lag %d (they are %ld and %ld)",
                       LAG_S_MAX, n, lag);
    return r;
}

/* Log in and see that it is a master. */
static int greet(struct redis *s, int64_t until, struct firn_diag *d)
{
    const struct store_url *u = &s->url;
    redisReply *r;
    int error = 0;
    if (u->password[0]) {
        error = u->user[0] ? ask(s, until, &r, d, "AUTH", u->user, u->password, NULL)
                           : ask(s, until, &r, d, "AUTH", u->password, NULL);
        if (error != 0)
            return error;
        freeReplyObject(r);
    }
    if (u->path[0]) {
        error = ask(s, until, &r, d, "SELECT", u->path, NULL);
        if (error != 0)
            return error;
        freeReplyObject(r);
    }
    error = ask(s, until, &r, d, "INFO", "replication", NULL);
    if (error != 0)
        return error;
    bool master = r->type == REDIS_REPLY_STRING && strstr(r->str, "role:master");
    bool replicas = u->host_n > 1 ||
                    !strstr(r->type == REDIS_REPLY_STRING ? r->str : "", "connected_slaves:0\r");
    freeReplyObject(r);
    if (!master)
        return firn__diag(d, FIRN_EIO, 0, "the Redis at %.60s:%u is a replica: name its master too",
                          u->host[s->host].name, u->host[s->host].port);
    return s->dev ? 0 : check_settings(s, replicas, until, d);
}

static int dial(struct redis *s, size_t host, int64_t until, struct firn_diag *d)
{
    s->host = host;
    int r = link_open(s->url.host[host].name, s->url.host[host].port, s->tls, until, &s->link, d);
    if (r == 0 && !(s->reader = redisReaderCreate()))
        r = firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    if (r == 0)
        r = greet(s, until, d);
    if (r != 0)
        drop(s);
    return r;
}

/* FIRN_ENOTSUP: the server's settings do not do. */
static int connected(struct redis *s, int64_t until, struct firn_diag *d)
{
    if (s->link && link_quiet(s->link))
        return 0;
    drop(s);
    int r = FIRN_EIO;
    size_t first = s->host, n = s->url.host_n;
    for (size_t i = 0; i < n; i++) { /* each server has its share of the time that is left */
        int64_t now = mono_now_ms();
        r = dial(s, (first + i) % n, now + (until - now) / (int64_t)(n - i), d);
        if (r == 0 || r == FIRN_ENOTSUP)
            return r;
    }
    s->host = (first + 1) % n;
    return r;
}

/* ---- scripts ---- */

/* Errors that come before a script's first write. What else is said to a write leaves it open. */
static bool before_writing(const redisReply *r)
{
    static const char *const code[] = { "NOREPLICAS", "OOM",       "MISCONF",   "NOSCRIPT",
                                        "LOADING",    "BUSY",      "NOAUTH",    "NOPERM",
                                        "READONLY",   "WRONGTYPE", "MASTERDOWN" };
    for (size_t i = 0; i < sizeof code / sizeof code[0]; i++)
        if (is_error(r, code[i]))
            return true;
    return false;
}

/* Run a script on the master. `arg` has room for ARGS_HEAD in front. 0: *out is what it
 * returned, never 'role'. FIRN_EIO: it did not happen; FIRN_EUNKNOWN: it may have. */
static int run(struct redis *s, enum script which, struct firn_slice *arg, size_t n, int64_t until,
               redisReply **out, struct firn_diag *d)
{
    arg[2] = text("0");
    for (int attempt = 0;; attempt++) {
        redisReply *r;
        int error = connected(s, until, d);
        if (error != 0)
            return error == FIRN_ENOTSUP ? FIRN_EIO : error;
        arg[0] = text("EVALSHA");
        arg[1] = text(s->sha[which]);
        error = command(s, arg, n + ARGS_HEAD, until, &r, d);
        if (error == 0 && is_error(r, "NOSCRIPT")) {
            freeReplyObject(r);
            arg[0] = text("EVAL");
            arg[1] = text(script_text[which]);
            error = command(s, arg, n + ARGS_HEAD, until, &r, d);
        }
        if (error != 0)
            return error == FIRN_EIO ? FIRN_EUNKNOWN : error;
        if (r->type == REDIS_REPLY_STRING && strcmp(r->str, "role") == 0 && attempt == 0) {
            freeReplyObject(r);
            drop(s); /* it was master when we connected: look for the new one */
            continue;
        }
        bool role = r->type == REDIS_REPLY_STRING && strcmp(r->str, "role") == 0;
        if (r->type != REDIS_REPLY_ERROR && !role) {
            *out = r;
            return 0;
        }
        error = role || before_writing(r) ? FIRN_EIO : FIRN_EUNKNOWN;
        refused(r, "a script", d);
        freeReplyObject(r);
        drop(s);
        return error;
    }
}

/* The same for scripts that only read. */
static int run_read(struct redis *s, enum script which, struct firn_slice *arg, size_t n,
                    int64_t until, redisReply **out, struct firn_diag *d)
{
    int r = run(s, which, arg, n, until, out, d);
    if (r == FIRN_EUNKNOWN)
        return FIRN_EIO;
    if (r == 0 && (*out)->type != REDIS_REPLY_ARRAY) {
        r = refused(*out, "to answer", d);
        freeReplyObject(*out);
    }
    return r;
}

/* ---- registers ---- */

static int redis_read(struct firn_store *base, struct firn_slice key, bool fresh,
                      struct firn_record *out, struct firn_diag *d)
{
    (void)fresh; /* the master answers, so it always is */
    struct redis *s = (struct redis *)base;
    char name[PREFIX_MAX + 1 + STORE_KEY_MAX];
    int r = store_check_key(key, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    size_t n = strlen(s->prefix);
    memcpy(name, s->prefix, n);
    name[n++] = ':';
    memcpy(name + n, key.p, key.len);
    struct firn_slice arg[ARGS_HEAD + 1] = { [ARGS_HEAD] = { name, n + key.len } };
    redisReply *reply;
    r = run_read(s, READ, arg, 1, deadline(s), &reply, d);
    if (r != 0)
        return r;
    redisReply **e = reply->element;
    if (reply->elements != 3 || e[1]->type != REDIS_REPLY_STRING ||
        e[2]->type != REDIS_REPLY_STRING) {
        r = refused(reply, "to answer", d);
    } else if (e[0]->type != REDIS_REPLY_STRING) {
        r = FIRN_ENOENT;
    } else if ((size_t)e[0]->len > STORE_VALUE_MAX) {
        r = firn__diag(d, FIRN_EIO, 0, "%.*s holds %zu bytes, which firn did not write",
                       (int)key.len, key.p, (size_t)e[0]->len);
    } else {
        out->len = (size_t)e[0]->len;
        memcpy(out->value, e[0]->str, out->len);
        out->store_ms = strtoull(e[1]->str, NULL, 10) * 1000 + strtoull(e[2]->str, NULL, 10) / 1000;
    }
    freeReplyObject(reply);
    return r;
}

static int other_redis(struct redis *s, struct firn_diag *d)
{
    s->changed = true;
    return firn__diag(d, FIRN_ESTORE, 0,
                      "Redis restarted, or another one answers: its run_id or replid changed");
}

static int redis_cas_many(struct firn_store *base, const struct firn_cas *want, size_t count,
                          int *result, struct firn_diag *d)
{
    struct redis *s = (struct redis *)base;
    int64_t until = deadline(s);
    int r = store_check_writes(want, count, SIZE_MAX, d);
    if (r != 0)
        return r;
    if (s->changed)
        return firn__diag(d, FIRN_ESTORE, 0, "Redis is not the one that was opened");
    struct firn_slice *arg = calloc(ARGS_HEAD + 3 + 4 * count, sizeof *arg), *a = arg;
    if (!arg)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    a += ARGS_HEAD;
    *a++ = text(s->run_id);
    *a++ = text(s->replid);
    *a++ = text(s->prefix);
    for (size_t i = 0; i < count; i++) {
        *a++ = text(!want[i].old.p ? "create" : want[i].value.p ? "change" : "remove");
        *a++ = want[i].key;
        *a++ = want[i].old;
        *a++ = want[i].value;
    }
    firn_assert((size_t)(a - arg) == ARGS_HEAD + 3 + 4 * count, "args=%td", a - arg);
    redisReply *reply;
    r = run(s, CAS, arg, 3 + 4 * count, until, &reply, d);
    free(arg);
    if (r != 0)
        return r;
    bool ok = reply->type == REDIS_REPLY_ARRAY && reply->elements == count;
    for (size_t i = 0; ok && i < count; i++)
        ok = reply->element[i]->type == REDIS_REPLY_INTEGER;
    if (reply->type == REDIS_REPLY_STRING && strcmp(reply->str, "store") == 0) {
        r = other_redis(s, d);
    } else if (!ok) {
        refused(reply, "to answer", d);
        r = FIRN_EUNKNOWN;
        drop(s);
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        result[i] = reply->element[i]->integer == 1 ? 0 : FIRN_ECONFLICT;
    freeReplyObject(reply);
    return r;
}

static int redis_scan(struct firn_store *base, struct firn_slice prefix, struct firn_slice after,
                      firn_record_fn *each, void *user, struct firn_diag *d)
{
    struct redis *s = (struct redis *)base;
    int64_t until = deadline(s);
    char from[1 + STORE_KEY_MAX], page[8];
    struct firn_slice begin = after.p ? after : prefix;
    int r = store_check_key(begin, STORE_KEY_MAX, d);
    if (r != 0)
        return r;
    snprintf(page, sizeof page, "%d", PAGE_KEYS);
    from[0] = after.p ? '(' : '['; /* more than that key, or that key or more; later '(' */
    memcpy(from + 1, begin.p ? begin.p : "", begin.len);
    size_t from_len = 1 + begin.len;
    for (bool more = true; r == 0 && more; from[0] = '(') {
        struct firn_slice arg[ARGS_HEAD + 3] = { [ARGS_HEAD] = text(s->prefix),
                                                 { from, from_len },
                                                 text(page) };
        redisReply *reply;
        r = run_read(s, SCAN, arg, 3, until, &reply, d);
        if (r != 0)
            return r;
        more = reply->elements == 2 * PAGE_KEYS;
        for (size_t i = 0; i + 1 < reply->elements && r == 0; i += 2) {
            const redisReply *k = reply->element[i], *v = reply->element[i + 1];
            size_t len = k->type == REDIS_REPLY_STRING ? (size_t)k->len : SIZE_MAX;
            if (len > STORE_KEY_MAX) {
                r = firn__diag(d, FIRN_EIO, 0, "a key that firn did not write");
            } else if (len < prefix.len || memcmp(k->str, from + 1, prefix.len) != 0) {
                more = false; /* beyond the prefix: the end */
                break;
            } else {
                if (v->type == REDIS_REPLY_STRING) /* else deleted by another program */
                    r = each(user, firn_slice(k->str, len), firn_slice(v->str, (size_t)v->len));
                memcpy(from + 1, k->str, len);
                from_len = 1 + len;
            }
        }
        freeReplyObject(reply);
    }
    return r;
}

static int ask_ids(struct redis *s, char run_id[ID_LEN + 1], char replid[ID_LEN + 1],
                   struct firn_diag *d)
{
    struct firn_slice arg[ARGS_HEAD];
    redisReply *reply;
    int r = run_read(s, IDENTITY, arg, 0, deadline(s), &reply, d);
    if (r != 0)
        return r;
    redisReply **e = reply->element;
    if (reply->elements != 2 || e[0]->type != REDIS_REPLY_STRING || e[0]->len != ID_LEN ||
        e[1]->type != REDIS_REPLY_STRING || e[1]->len != ID_LEN) {
        r = refused(reply, "to tell its run_id", d);
    } else {
        memcpy(run_id, e[0]->str, ID_LEN + 1);
        memcpy(replid, e[1]->str, ID_LEN + 1);
    }
    freeReplyObject(reply);
    return r;
}

/* Looks anew: the writes from now on are for the server that is found. */
static int redis_identity(struct firn_store *base, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct redis *s = (struct redis *)base;
    int r = ask_ids(s, s->run_id, s->replid, d);
    if (r == 0) {
        s->changed = false;
        snprintf(out, STORE_ID_TEXT_BUF, "redis:%.24s:%.24s", s->run_id, s->replid);
    }
    return r;
}

/* A restart also breaks the connection, so the same server now is the one that answered before. */
static int redis_check(struct firn_store *base, struct firn_diag *d)
{
    struct redis *s = (struct redis *)base;
    char run_id[ID_LEN + 1], replid[ID_LEN + 1];
    int r = ask_ids(s, run_id, replid, d);
    if (r == 0 && (s->changed || strcmp(run_id, s->run_id) != 0 || strcmp(replid, s->replid) != 0))
        r = other_redis(s, d);
    return r;
}

static void redis_close(struct firn_store *base)
{
    struct redis *s = (struct redis *)base;
    drop(s);
    tls_context_free(s->tls);
    free(s);
}

static const struct firn_store_ops ops = {
    .size = sizeof ops,
    .scheme = "redis",
    .shared = true,
    .read = redis_read,
    .cas_many = redis_cas_many,
    .scan_after = redis_scan,
    .identity = redis_identity,
    .close = redis_close,
    .check = redis_check,
};

/* ---- opening ---- */

static bool hash_scripts(struct redis *s)
{
    for (int i = 0; i < SCRIPTS; i++) {
        unsigned char sum[EVP_MAX_MD_SIZE];
        unsigned len;
        if (!EVP_Digest(script_text[i], strlen(script_text[i]), sum, &len, EVP_sha1(), NULL))
            return false;
        for (unsigned k = 0; k < len; k++)
            snprintf(s->sha[i] + 2 * k, 3, "%02x", sum[k]);
    }
    return true;
}

/* The prefix has no ':', so that no register of one prefix is the index of another. */
static int configure(struct redis *s, struct firn_diag *d)
{
    const struct store_url *u = &s->url;
    const char *ok = store_url_param(u, "unsafe_ok"), *prefix = store_url_param(u, "prefix");
    const char *tls = store_url_param(u, "tls");
    if (!ok)
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "Redis may forget confirmed writes at a fail-over, and IDs are then "
                          "unique only as far as clocks are right: say unsafe_ok=yes to use it");
    s->dev = strcmp(ok, "dev") == 0;
    if (!s->dev && strcmp(ok, "yes") != 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "unsafe_ok=%.40s: say yes, or dev", ok);
    prefix = prefix ? prefix : "firn";
    size_t len = strlen(prefix);
    for (const char *p = prefix; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_.-/", *p))
            len = 0;
    if (len == 0 || len > PREFIX_MAX)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "prefix=%.40s is not 1 to %d letters, digits and _.-/", prefix,
                          PREFIX_MAX);
    memcpy(s->prefix, prefix, len + 1);
    if (strspn(u->path, "0123456789") != strlen(u->path))
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "/%.40s is no number of a Redis database, as in redis://host/0", u->path);
    if (tls && strcmp(tls, "yes") != 0 && strcmp(tls, "no") != 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "tls=%.40s: say yes or no", tls);
    const char *ca = store_url_param(u, "ca"), *cert = store_url_param(u, "cert");
    const char *key = store_url_param(u, "key");
    if (!tls || strcmp(tls, "no") == 0)
        return ca || cert || key
                   ? firn__diag(d, FIRN_EFORMAT, 0, "ca, cert and key are of use with tls=yes only")
                   : 0;
    return link_tls_new(ca, cert, key, &s->tls, d);
}

int firn_store_redis_open(const struct store_url *u, uint32_t timeout_ms, struct firn_store **out,
                          struct firn_diag *d)
{
    struct redis *s = calloc(1, sizeof *s);
    char id[STORE_ID_TEXT_BUF];
    if (!s)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    s->base.ops = &ops;
    s->timeout_ms = timeout_ms;
    s->url = *u;
    int r = configure(s, d);
    if (r == 0 && !hash_scripts(s))
        r = firn__diag(d, FIRN_ENOTSUP, 0, "OpenSSL has no SHA-1");
    if (r == 0)
        r = connected(s, deadline(s), d); /* before identity(), for its FIRN_ENOTSUP */
    if (r == 0)
        r = redis_identity(&s->base, id, d);
    if (r != 0) {
        redis_close(&s->base);
        return r;
    }
    *out = &s->base;
    return 0;
}
