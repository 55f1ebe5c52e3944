/* Opens stores by their URLs: one row per engine. Tested by tests/unit/store/url.c. */
#include "store/engines.h"
#include "store/check.h"
#include "store/quorum.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <string.h>

#ifndef FIRN_HAVE_ETCD
#define firn_store_etcd_open NULL
#endif
#ifndef FIRN_HAVE_ZOOKEEPER
#define firn_store_zookeeper_open NULL
#endif
#ifndef FIRN_HAVE_POSTGRES
#define firn_store_postgres_open NULL
#endif
#ifndef FIRN_HAVE_REDIS
#define firn_store_redis_open NULL
#endif

enum { TIMEOUT_MS_DEFAULT = 2000, POLL_MS = 200 };

static const struct engine {
    const char *scheme;
    uint16_t port;
    const char *params;
    firn_store_engine_open *open; /* NULL: not in this build */
    const char *package;
} engines[] = {
    { "etcd", 2379, ETCD_PARAMS, firn_store_etcd_open, "libcurl4-openssl-dev" },
    { "zookeeper", 2181, ZOOKEEPER_PARAMS, firn_store_zookeeper_open, "libzookeeper-mt-dev" },
    { "postgres", 5432, POSTGRES_PARAMS, firn_store_postgres_open, "libpq-dev" },
    { "redis", 6379, REDIS_PARAMS, firn_store_redis_open, "libhiredis-dev" },
    { "raft", 9003, RAFT_PARAMS, firn_store_raft_open, "" },
};

static const struct engine *find(const char *url)
{
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        size_t n = strlen(engines[i].scheme);
        if (strncmp(url, engines[i].scheme, n) == 0 && strncmp(url + n, "://", 3) == 0)
            return &engines[i];
    }
    return NULL;
}

static int check(const char *url, const struct engine **out, struct store_url *u,
                 struct firn_diag *d)
{
    *out = NULL;
    if (strcmp(url, "memory:") == 0 || (strncmp(url, "sqlite:", 7) == 0 && url[7] != '\0'))
        return 0;
    if (strncmp(url, "quorum:", 7) == 0)
        return firn_store_quorum_check(url + 7, d);
    if (strcmp(url, "sqlite:") == 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "'sqlite:' lacks its file, as in sqlite:firn.db");
    if (strcmp(url, "raft:") == 0)
        return firn__diag(
            d, FIRN_ENOTSUP, 0,
            "'raft:' is the member inside a firnd; from elsewhere name members, as in "
            "raft://host:9003");
    const struct engine *e = find(url);
    if (!e) /* a mistyped URL may hold a password all the same: it would stand before an @ */
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "'%.*s' is no store; give sqlite:FILE, etcd://, zookeeper://, "
                          "postgres://, redis://, raft:// and a host, quorum: of them, or memory:",
                          strchr(url, '@') ? (int)strcspn(url, ":") + 1 : 40, url);
    if (!e->open)
        return firn__diag(d, FIRN_ENOTSUP, 0,
                          "this firn was built without %s://: install %s and build it again",
                          e->scheme, e->package);
    *out = e;
    return store_url_parse(url, e->port, e->params, u, d);
}

bool firn_store_url_shared(const char *url)
{
    return strncmp(url, "quorum:", 7) == 0 || strncmp(url, "raft:", 5) == 0 || find(url) != NULL;
}

int firn_store_url_check(const char *url, struct firn_diag *d)
{
    const struct engine *e;
    struct store_url u;
    return check(url, &e, &u, d);
}

static int open_url(const char *url, uint32_t timeout_ms, bool existing, struct firn_store **out,
                    struct firn_diag *d)
{
    const struct engine *e;
    struct store_url u;
    int r = check(url, &e, &u, d);
    if (r != 0)
        return r;
    u.existing = existing;
    if (e)
        return e->open(&u, timeout_ms ? timeout_ms : TIMEOUT_MS_DEFAULT, out, d);
    if (url[0] == 'm')
        return firn_store_memory_new(out);
    if (url[0] == 'q')
        return firn_store_quorum_open(url + 7, timeout_ms, existing, out, d);
    return existing ? firn_store_sqlite_open_existing(url + 7, timeout_ms, out, d)
                    : firn_store_sqlite_open(url + 7, timeout_ms, out, d);
}

int firn_store_open(const char *url, uint32_t timeout_ms, struct firn_store **out,
                    struct firn_diag *d)
{
    return open_url(url, timeout_ms, false, out, d);
}

int firn_store_open_existing(const char *url, uint32_t timeout_ms, struct firn_store **out,
                             struct firn_diag *d)
{
    return open_url(url, timeout_ms, true, out, d);
}

struct behind { /* of a store that only scans from the first register on */
    struct firn_slice after;
    firn_record_fn *each;
    void *user;
};

static int pass_behind(void *user, struct firn_slice key, struct firn_slice value)
{
    const struct behind *b = user;
    return store_compare(key, b->after) > 0 ? b->each(b->user, key, value) : 0;
}

int firn_store_scan_after(struct firn_store *s, struct firn_slice prefix, struct firn_slice after,
                          firn_record_fn *each, void *user, struct firn_diag *d)
{
    if (after.p && !store_begins(after, prefix)) {
        if (store_compare(after, prefix) > 0)
            return 0; /* behind all of them */
        after = firn_slice(NULL, 0);
    }
    if (s->ops->scan_after)
        return s->ops->scan_after(s, prefix, after, each, user, d);
    struct behind b = { after, each, user };
    return after.p ? s->ops->scan(s, prefix, pass_behind, &b, d)
                   : s->ops->scan(s, prefix, each, user, d);
}

int firn_store_wait(struct firn_store *s, struct firn_slice key, struct firn_slice old,
                    uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d)
{
    if (s->ops->wait)
        return s->ops->wait(s, key, old, timeout_ms, out, d);
    for (int64_t end = mono_now_ms() + timeout_ms;;) {
        int r = firn_store_read(s, key, false, out, d);
        if (!store_unchanged(r, out, old))
            return r;
        int64_t left = end - mono_now_ms();
        if (left <= 0)
            return FIRN_EAGAIN;
        store_sleep_ms(left < POLL_MS ? left : POLL_MS);
    }
}
