/* Tokens, scopes and rates, with made-up peers and a clock that the test moves. */
#include "t.h"

#include "server/app.h"
#include "server/rate.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#define S(text) ((struct slice){ text, sizeof(text) - 1 })
#define ABSENT  ((struct slice){ NULL, 0 })
#define SECOND  UINT64_C(1000000000)

static char star[] = "*", snowflake[] = "snowflake", uuids[] = "uuid*", order[] = "orders",
            eu[] = "eu.*";
static char *all[] = { star }, *some_kinds[] = { snowflake, uuids }, *orders[] = { order, eu };

static struct config_token token(const char *name, const char *secret)
{
    struct config_token t = { .name = (char *)(uintptr_t)name };
    unsigned len;
    EVP_Digest(secret, strlen(secret), t.sha256, &len, EVP_sha256(), NULL);
    return t;
}

/* root may do everything; web some kinds; shop some sequences. */
struct world {
    struct config_token tokens[3];
    struct config config;
    struct app app;
    struct service_ctx ctx;
    struct peer http, resp;
    struct guard_refusal why;
};

static void world_make(struct world *w, size_t tokens, uint64_t rate, uint64_t burst)
{
    memset(w, 0, sizeof *w);
    w->tokens[0] = token("root", "s3cret");
    w->tokens[0].kinds = w->tokens[0].sequences = (struct config_strings){ all, 1 };
    w->tokens[1] = token("web", "web-token");
    w->tokens[1].kinds = (struct config_strings){ some_kinds, 2 };
    w->tokens[2] = token("shop", "shop-token");
    w->tokens[2].sequences = (struct config_strings){ orders, 2 };
    w->config.auth.tokens = (struct config_tokens){ w->tokens, tokens };
    w->config.rate.per_client = rate;
    w->config.rate.burst = burst;
    /* A peer without a connection has no address: its key stands for it. */
    w->http = (struct peer){ .id = 1, .proto = 1, .key = 101 };
    w->resp = (struct peer){ .id = 2, .proto = 2, .key = 103 };
    T_EQ(guard_new(&w->config, &w->app.guard), 0);
    w->ctx.app = &w->app;
    T_EQ(guard_view_init(&w->ctx.guard, w->app.guard), 0);
}

static void world_done(struct world *w)
{
    guard_view_done(&w->ctx.guard);
    guard_free(w->app.guard);
}

/* What a request with this Authorization hears. */
static enum guard_reason http(struct world *w, struct slice authorization, enum guard_what what,
                              struct slice name)
{
    memset(&w->why, 0, sizeof w->why);
    int r = guard_check(&w->ctx, &w->http, authorization, what, name, &w->why);
    T_EQ(r, w->why.reason == GUARD_FINE ? 0 : FIRN_EAUTH);
    return w->why.reason;
}

static enum guard_reason resp(struct world *w, enum guard_what what, struct slice name)
{
    memset(&w->why, 0, sizeof w->why);
    int r = guard_check(&w->ctx, &w->resp, ABSENT, what, name, &w->why);
    T_EQ(r, w->why.reason == GUARD_FINE ? 0 : FIRN_EAUTH);
    return w->why.reason;
}

static enum guard_reason auth(struct world *w, struct slice user, struct slice secret)
{
    memset(&w->why, 0, sizeof w->why);
    int r = guard_auth(&w->ctx, &w->resp, user, secret, &w->why);
    T_EQ(r, w->why.reason == GUARD_FINE ? 0 : FIRN_EAUTH);
    T_EQ(w->resp.authed, r == 0);
    return w->why.reason;
}

static struct world w;

T_TEST(guard_off_lets_everybody_pass)
{
    struct guard_view zeroed = { 0 };
    T_OK(!guard_on(&zeroed));
    guard_view_done(&zeroed);
    world_make(&w, 0, 0, 100);
    T_OK(!guard_on(&w.ctx.guard));
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("snowflake")), GUARD_FINE);
    T_EQ(http(&w, S("Bearer whatever"), GUARD_ADMIN, S("orders")), GUARD_FINE);
    T_EQ(http(&w, S(""), GUARD_SEQUENCE, S("orders")), GUARD_FINE);
    T_EQ(resp(&w, GUARD_SEQUENCE, S("orders")), GUARD_FINE);
    T_EQ(guard_auth(&w.ctx, &w.resp, ABSENT, S("x"), &w.why), FIRN_ENOTSUP);
    world_done(&w);
}

T_TEST(guard_bearer)
{
    static const struct {
        const char *text;
        enum guard_reason reason;
    } rows[] = {
        { "Bearer s3cret", GUARD_FINE },
        { "bearer s3cret", GUARD_FINE },
        { "BEARER   s3cret", GUARD_FINE },
        { "", GUARD_BAD_TOKEN },
        { " ", GUARD_BAD_TOKEN },
        { "Bearer", GUARD_BAD_TOKEN },
        { "Bearer ", GUARD_BAD_TOKEN },
        { "Bearer  ", GUARD_BAD_TOKEN },
        { "Bearers3cret", GUARD_BAD_TOKEN },
        { "Bearer\ts3cret", GUARD_BAD_TOKEN },
        { "Bearer s3cre", GUARD_BAD_TOKEN },
        { "Bearer s3cret2", GUARD_BAD_TOKEN },
        { "Bearer S3CRET", GUARD_BAD_TOKEN },
        { "Bearer s3cret s3cret", GUARD_BAD_TOKEN },
        { "Bearer x s3cret", GUARD_BAD_TOKEN },
        { "Bearer s3cret,", GUARD_BAD_TOKEN },
        { "Bearer s3cr\xc3\xa9t", GUARD_BAD_TOKEN },
        { "Basic czNjcmV0", GUARD_BAD_TOKEN },
        { "Basic s3cret", GUARD_BAD_TOKEN },
        { "s3cret", GUARD_BAD_TOKEN },
    };
    world_make(&w, 3, 0, 100);
    T_OK(guard_on(&w.ctx.guard));
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("ulid")), GUARD_NO_TOKEN);
    for (size_t i = 0; i < T_LEN(rows); i++) {
        size_t len = strlen(rows[i].text);
        char *text = malloc(len ? len : 1); /* not a byte behind it */
        memcpy(text, rows[i].text, len);
        T_EQ(http(&w, (struct slice){ text, len }, GUARD_MINT_KIND, S("ulid")), rows[i].reason,
             "'%s'", rows[i].text);
        free(text);
    }
    world_done(&w);
}

T_TEST(guard_http_remembers_nobody)
{
    world_make(&w, 3, 0, 100);
    T_EQ(http(&w, S("Bearer s3cret"), GUARD_MINT_KIND, S("ulid")), GUARD_FINE);
    T_EQ(http(&w, S(""), GUARD_MINT_KIND, S("ulid")), GUARD_BAD_TOKEN);
    T_EQ(http(&w, S("Bearer s3cret"), GUARD_MINT_KIND, S("ulid")), GUARD_FINE);
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("ulid")), GUARD_NO_TOKEN);
    w.http.flags = 1; /* what an AUTH would have left on it means nothing here */
    w.http.authed = true;
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("ulid")), GUARD_NO_TOKEN);
    world_done(&w);
}

T_TEST(guard_scopes)
{
    world_make(&w, 3, 0, 100);
    T_EQ(http(&w, S("Bearer web-token"), GUARD_MINT_KIND, S("snowflake")), GUARD_FINE);
    T_EQ(http(&w, S("Bearer web-token"), GUARD_MINT_KIND, S("uuidv7")), GUARD_FINE);
    T_EQ(http(&w, S("Bearer web-token"), GUARD_LIST, S("")), GUARD_FINE);
    T_EQ(http(&w, S("Bearer web-token"), GUARD_MINT_KIND, S("ulid")), GUARD_NOT_ALLOWED);
    T_STR(w.why.token, "web");
    T_EQ(http(&w, S("Bearer web-token"), GUARD_SEQUENCE, S("orders")), GUARD_NOT_ALLOWED);
    T_EQ(http(&w, S("Bearer web-token"), GUARD_ADMIN, S("orders")), GUARD_NOT_ALLOWED);
    T_EQ(http(&w, S("Bearer web-token"), GUARD_SEQUENCE, S("snowflake")), GUARD_NOT_ALLOWED);
    T_EQ(http(&w, S("Bearer shop-token"), GUARD_SEQUENCE, S("orders")), GUARD_FINE);
    T_EQ(http(&w, S("Bearer shop-token"), GUARD_ADMIN, S("eu.orders")), GUARD_FINE);
    T_EQ(http(&w, S("Bearer shop-token"), GUARD_SEQUENCE, S("orders2")), GUARD_NOT_ALLOWED);
    T_EQ(http(&w, S("Bearer shop-token"), GUARD_MINT_KIND, S("orders")), GUARD_NOT_ALLOWED);
    T_EQ(http(&w, S("Bearer s3cret"), GUARD_ADMIN, S("anything")), GUARD_FINE);
    world_done(&w);
}

T_TEST(guard_resp_auth)
{
    world_make(&w, 3, 0, 100);
    T_EQ(resp(&w, GUARD_SEQUENCE, S("orders")), GUARD_NO_TOKEN);
    T_EQ(auth(&w, ABSENT, S("shop-token")), GUARD_FINE);
    T_EQ(resp(&w, GUARD_SEQUENCE, S("orders")), GUARD_FINE);
    T_EQ(resp(&w, GUARD_MINT_KIND, S("snowflake")), GUARD_NOT_ALLOWED);
    T_EQ(auth(&w, S("web"), S("web-token")), GUARD_FINE); /* the last one counts */
    T_EQ(resp(&w, GUARD_SEQUENCE, S("orders")), GUARD_NOT_ALLOWED);
    T_EQ(resp(&w, GUARD_MINT_KIND, S("snowflake")), GUARD_FINE);
    T_EQ(auth(&w, S("default"), S("web-token")), GUARD_FINE);
    T_EQ(auth(&w, S("shop"), S("web-token")), GUARD_BAD_TOKEN); /* and leaves no client */
    T_EQ(resp(&w, GUARD_MINT_KIND, S("snowflake")), GUARD_NO_TOKEN);
    T_EQ(auth(&w, ABSENT, S("web-token")), GUARD_FINE);
    T_EQ(auth(&w, ABSENT, S("")), GUARD_BAD_TOKEN);
    T_EQ(resp(&w, GUARD_MINT_KIND, S("snowflake")), GUARD_NO_TOKEN);
    T_EQ(auth(&w, S(""), S("web-token")), GUARD_BAD_TOKEN);
    world_done(&w);
}

T_TEST(guard_reload_takes_tokens_away)
{
    world_make(&w, 3, 0, 100);
    struct peer stays = w.resp;
    T_EQ(auth(&w, ABSENT, S("shop-token")), GUARD_FINE);
    T_EQ(guard_auth(&w.ctx, &stays, ABSENT, S("web-token"), &w.why), 0);

    /* web comes first now, with another scope; shop keeps its name and gets another secret. */
    struct config_token next[2] = { w.tokens[1], token("shop", "new-shop-token") };
    next[0].kinds = (struct config_strings){ NULL, 0 };
    next[0].sequences = next[1].sequences = (struct config_strings){ orders, 2 };
    struct config c = w.config;
    c.auth.tokens = (struct config_tokens){ next, 2 };
    T_EQ(guard_reload(w.app.guard, &c), 0);

    T_EQ(resp(&w, GUARD_SEQUENCE, S("orders")), GUARD_NO_TOKEN);
    T_OK(!w.resp.authed && w.resp.flags == 0);
    T_EQ(guard_check(&w.ctx, &stays, ABSENT, GUARD_SEQUENCE, S("orders"), &w.why), 0);
    T_EQ(guard_check(&w.ctx, &stays, ABSENT, GUARD_MINT_KIND, S("snowflake"), &w.why), FIRN_EAUTH);
    T_EQ(w.why.reason, GUARD_NOT_ALLOWED);
    T_EQ(http(&w, S("Bearer s3cret"), GUARD_LIST, S("")), GUARD_BAD_TOKEN);
    T_EQ(http(&w, S("Bearer new-shop-token"), GUARD_LIST, S("")), GUARD_FINE);
    T_EQ(auth(&w, ABSENT, S("shop-token")), GUARD_BAD_TOKEN);

    /* A token that was taken away and given back must be shown again. */
    T_EQ(auth(&w, ABSENT, S("new-shop-token")), GUARD_FINE);
    uint32_t had = w.resp.flags;
    T_EQ(guard_reload(w.app.guard, &w.config), 0);
    T_EQ(guard_reload(w.app.guard, &c), 0);
    T_EQ(resp(&w, GUARD_SEQUENCE, S("orders")), GUARD_NO_TOKEN);
    T_EQ(auth(&w, ABSENT, S("new-shop-token")), GUARD_FINE);
    T_OK(w.resp.flags > had);

    c.auth.tokens.n = 0; /* no tokens: every client */
    T_EQ(guard_reload(w.app.guard, &c), 0);
    T_EQ(http(&w, ABSENT, GUARD_ADMIN, S("orders")), GUARD_FINE);
    T_OK(!guard_on(&w.ctx.guard));
    world_done(&w);
}

/* Loops look while the settings change: for the thread sanitizer. */
static void *reloader(void *arg)
{
    struct world *x = arg;
    struct config c = x->config;
    for (int i = 0; i < 2000; i++) {
        c.auth.tokens.n = 1 + (size_t)i % 3;
        if (guard_reload(x->app.guard, &c) != 0)
            return x;
    }
    return NULL;
}

T_TEST(guard_reload_beside_checks)
{
    pthread_t thread;
    void *failed;
    unsigned fine = 0;
    world_make(&w, 3, 1000000000, 1000000000);
    T_EQ(pthread_create(&thread, NULL, reloader, &w), 0);
    for (int i = 0; i < 20000; i++) {
        struct guard_refusal why;
        fine += guard_check(&w.ctx, &w.http, S("Bearer s3cret"), GUARD_LIST, S(""), &why) == 0;
        (void)!guard_check(&w.ctx, &w.http, S("Bearer web-token"), GUARD_LIST, S(""), &why);
    }
    pthread_join(thread, &failed);
    T_OK(!failed);
    T_EQ(fine, 20000); /* root was there all the time */
    world_done(&w);
}

/* --- rates --- */

static enum guard_reason at(struct world *x, struct peer *peer, struct slice authorization,
                            uint64_t now_ns)
{
    memset(&x->why, 0, sizeof x->why);
    int r = guard_check_at(&x->ctx.guard, peer, authorization, GUARD_LIST, S(""), now_ns, &x->why);
    T_EQ(r, x->why.reason == GUARD_FINE ? 0 : FIRN_EAUTH);
    return x->why.reason;
}

T_TEST(guard_rate_burst_then_steady)
{
    uint64_t now = 5000 * SECOND;
    world_make(&w, 0, 10, 5);
    for (int i = 0; i < 5; i++)
        T_EQ(at(&w, &w.http, ABSENT, now), GUARD_FINE, "request %d", i);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_TOO_FAST);
    T_EQ(w.why.retry_after_s, 1);
    T_EQ(at(&w, &w.resp, ABSENT, now), GUARD_FINE); /* another client */
    T_EQ(at(&w, &w.http, ABSENT, now + SECOND / 10 - 1), GUARD_TOO_FAST);
    T_EQ(at(&w, &w.http, ABSENT, now + SECOND / 10), GUARD_FINE); /* a tenth of a second buys one */
    T_EQ(at(&w, &w.http, ABSENT, now + SECOND / 10), GUARD_TOO_FAST);

    /* Ten times as fast as allowed for ten seconds: the rate and what was saved up. */
    unsigned passed = 0;
    now += 100 * SECOND;
    for (int i = 0; i < 1000; i++)
        passed += at(&w, &w.http, ABSENT, now + (uint64_t)i * SECOND / 100) == GUARD_FINE;
    T_OK(passed >= 103 && passed <= 105, "%u", passed);
    world_done(&w);
}

T_TEST(guard_rate_tells_when_to_come_back)
{
    uint64_t now = 77 * SECOND;
    world_make(&w, 0, 1, 60);
    for (int i = 0; i < 60; i++)
        T_EQ(at(&w, &w.http, ABSENT, now), GUARD_FINE);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_TOO_FAST);
    T_EQ(w.why.retry_after_s, 1);
    T_EQ(at(&w, &w.http, ABSENT, now + SECOND), GUARD_FINE); /* and it is true */
    world_done(&w);
}

T_TEST(guard_rate_is_the_tokens_then_the_certificates)
{
    uint64_t now = 9 * SECOND;
    world_make(&w, 3, 1, 2);
    struct peer other = { .id = 3, .proto = 1, .key = 999 };
    T_EQ(at(&w, &w.http, S("Bearer s3cret"), now), GUARD_FINE);
    T_EQ(at(&w, &other, S("Bearer s3cret"), now), GUARD_FINE);
    T_EQ(at(&w, &w.http, S("Bearer s3cret"), now), GUARD_TOO_FAST); /* two connections, one token */
    T_EQ(at(&w, &w.http, S("Bearer web-token"), now), GUARD_FINE);
    /* Guesses count against the address, and do not become free by failing. */
    T_EQ(at(&w, &w.http, S("Bearer guess1"), now), GUARD_BAD_TOKEN);
    T_EQ(at(&w, &w.http, S("Bearer guess2"), now), GUARD_BAD_TOKEN);
    T_EQ(at(&w, &w.http, S("Bearer guess3"), now), GUARD_TOO_FAST);
    for (int i = 0; i < 3; i++)
        T_EQ(guard_auth_at(&w.ctx.guard, &w.resp, ABSENT, S("guess"), now, &w.why), FIRN_EAUTH);
    T_EQ(w.why.reason, GUARD_TOO_FAST);
    world_done(&w);

    world_make(&w, 0, 1, 2);
    struct peer a = { .id = 4, .proto = 1, .cert_name = "billing" },
                b = { .id = 5, .proto = 1, .cert_name = "billing" },
                c = { .id = 6, .proto = 1, .cert_name = "shipping" };
    T_EQ(at(&w, &a, ABSENT, now), GUARD_FINE);
    T_EQ(at(&w, &b, ABSENT, now), GUARD_FINE);
    T_EQ(at(&w, &a, ABSENT, now), GUARD_TOO_FAST);
    T_EQ(at(&w, &c, ABSENT, now), GUARD_FINE);
    world_done(&w);
}

T_TEST(guard_rate_reload)
{
    uint64_t now = 9 * SECOND;
    world_make(&w, 0, 1, 1);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_FINE);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_TOO_FAST);
    T_EQ(guard_reload(w.app.guard, &w.config), 0); /* the same rate: nothing is forgotten */
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_TOO_FAST);
    w.config.rate.burst = 2;
    T_EQ(guard_reload(w.app.guard, &w.config), 0);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_FINE);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_FINE);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_TOO_FAST);
    w.config.rate.per_client = 0;
    T_EQ(guard_reload(w.app.guard, &w.config), 0);
    T_EQ(at(&w, &w.http, ABSENT, now), GUARD_FINE);
    world_done(&w);
}

T_TEST(rate_extremes)
{
    static struct rate_table t;
    uint64_t wait;
    T_EQ(rate_of(0, 100).interval, 0);
    T_EQ(rate_of(1000000000, 1).interval, 16);
    struct rate slow = rate_of(1, 1000000000), fast = rate_of(1000000000, 1000000000);
    T_OK(slow.slack <= UINT64_C(1) << 63);
    const uint64_t uptime = 10 * UINT64_C(365) * 24 * 3600 * SECOND; /* nothing wraps */
    for (int i = 0; i < 1000; i++) {
        T_OK(rate_take(&t, &slow, 7, uptime, &wait));
        T_OK(rate_take(&t, &fast, 9, uptime, &wait));
    }
}

/* More clients than places: no client gets more than its rate, and the table does not grow. */
T_TEST(rate_many_clients)
{
    static struct rate_table t;
    struct rate r = rate_of(1, 2);
    uint64_t wait, now = 1000 * SECOND;
    unsigned passed = 0, shared = 0;
    for (uint64_t i = 0; i < 200000; i++)
        passed += rate_take(&t, &r, 1 + t_random_below(UINT64_MAX), now, &wait);
    T_OK(passed <= 2 * RATE_BUCKETS);
    now += 1000 * SECOND; /* all are done: places are free again */
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t client = 1 + t_random_below(UINT64_MAX);
        T_OK(rate_take(&t, &r, client, now, &wait));
        T_OK(rate_take(&t, &r, client, now, &wait));
        shared += rate_take(&t, &r, client, now, &wait);
    }
    T_EQ(shared, 0);
}

/* Several loops, one client: together they get what one would. */
struct hammer {
    struct rate_table *table;
    struct rate rate;
    unsigned passed;
};

static void *hammer(void *arg)
{
    struct hammer *h = arg;
    uint64_t wait;
    for (int i = 0; i < 20000; i++)
        h->passed += rate_take(h->table, &h->rate, 12345, 50 * SECOND, &wait);
    return NULL;
}

T_TEST(rate_is_exact_across_threads)
{
    static struct rate_table t;
    struct hammer h[4];
    pthread_t thread[4];
    unsigned passed = 0;
    for (int i = 0; i < 4; i++) {
        h[i] = (struct hammer){ &t, rate_of(100, 1000), 0 };
        T_EQ(pthread_create(&thread[i], NULL, hammer, &h[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        passed += h[i].passed;
    }
    T_EQ(passed, 1000);
}

/* Administration: a token, this machine, or a certificate in auth.admins, and no other one. */
T_TEST(guard_operate)
{
    static char ops[] = "ops";
    static char *admins[] = { ops };
    world_make(&w, 0, 0, 100);
    T_OK(!guard_on(&w.ctx.guard));
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_NOT_LOCAL);
    w.http.cert_name = "ops";
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_NOT_LOCAL);
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("snowflake")), GUARD_FINE);
    w.http.network.loopback = true;
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_FINE);
    w.http.network.loopback = false;
    w.config.auth.admins = (struct config_strings){ admins, 1 };
    T_EQ(guard_reload(w.app.guard, &w.config), 0);
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_FINE);
    w.http.cert_name = "opsx";
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_NOT_LOCAL);
    w.http.cert_name = NULL;
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_NOT_LOCAL);

    w.config.auth.tokens.n = 3; /* with tokens, this machine needs one too */
    T_EQ(guard_reload(w.app.guard, &w.config), 0);
    w.http.network.loopback = true;
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_NO_TOKEN);
    T_EQ(http(&w, S("Bearer x"), GUARD_OPERATE, S("@cluster")), GUARD_BAD_TOKEN);
    T_EQ(http(&w, S("Bearer shop-token"), GUARD_OPERATE, S("@cluster")), GUARD_NOT_ALLOWED);
    T_EQ(http(&w, S("Bearer s3cret"), GUARD_OPERATE, S("@cluster")), GUARD_FINE);
    w.http.cert_name = "ops";
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_FINE);
    T_EQ(http(&w, S("Bearer x"), GUARD_OPERATE, S("@cluster")), GUARD_BAD_TOKEN);
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("snowflake")), GUARD_NO_TOKEN);
    world_done(&w);

    world_make(&w, 0, 1, 1); /* a rate alone */
    w.http.network.loopback = true;
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_FINE);
    T_EQ(http(&w, ABSENT, GUARD_OPERATE, S("@cluster")), GUARD_TOO_FAST);
    world_done(&w);
}

/* n IDs cost as much as n requests; a request that is handed over again costs nothing more. */
T_TEST(rate_counts_ids)
{
    world_make(&w, 0, 1000, 1000);
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("snowflake")), GUARD_FINE);
    guard_charge(&w.ctx, 1);
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("snowflake")), GUARD_FINE);
    guard_charge(&w.ctx, 1000000); /* more than its burst: it passes, and is paid for afterwards */
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("snowflake")), GUARD_TOO_FAST);
    T_OK(w.why.retry_after_s > 900, "%u", w.why.retry_after_s);
    T_EQ(resp(&w, GUARD_MINT_KIND, S("snowflake")), GUARD_FINE, "another client");
    w.ctx.guard.paid = true;
    T_EQ(http(&w, ABSENT, GUARD_MINT_KIND, S("snowflake")), GUARD_FINE, "asked again");
    T_OK(guard_client(&w.ctx, &w.http, ABSENT) != guard_client(&w.ctx, &w.resp, ABSENT));
    world_done(&w);
}

T_TEST(rate_charge_does_not_overflow)
{
    static struct rate_table t;
    uint64_t wait, year = 365 * 86400 * SECOND;
    for (int i = 0; i < 4; i++)
        rate_charge(&t, 5, UINT64_MAX, 10 * year);
    T_OK(rate_owes(&t, 5, 0, 10 * year, &wait) && wait > year);
    T_OK(!rate_owes(&t, 6, 0, 10 * year, &wait));
}
