/*
 * Tokens, scopes and rates. A token has a number that it keeps while it stays in the settings and
 * that no other token gets. This number is all that a RESP connection remembers, so a reload needs
 * to visit no connection: a token that is gone is not found, and one whose scope changed is found
 * with the new scope.
 *
 * Tokens are known by their SHA-256 only. All are compared, each in full, so that the time taken
 * says nothing about them.
 */
#include "server/guard.h"
#include "server/app.h"
#include "daemon/log.h"
#include "server/problem.h"
#include "server/rate.h"
#include "platform/mono.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

enum { SHA256_BYTES = 32, SALT_BYTES = 16, TOKEN_BYTES_MAX = 4096, SHOWN_BYTES_MAX = 64 };

struct guard_token {
    uint32_t id;
    uint8_t sha256[SHA256_BYTES];
    uint64_t client; /* in the rates */
    char *name;
    struct config_strings kinds, sequences;
    bool admin;
    uint64_t max_sequences;
};

struct guard_table { /* constant but for refs */
    _Atomic uint32_t refs;
    struct rate rate;
    struct config_strings admins;
    size_t n;
    struct guard_token token[]; /* by rising id */
};

struct guard {
    pthread_mutex_t mutex; /* guards table and last_id */
    struct guard_table *table;
    _Atomic uint64_t version;
    uint32_t last_id;
    uint8_t salt[SALT_BYTES]; /* so that no client can choose a name that collides */
    struct rate_table rates;
};

/* --- the table --- */

static void strings_free(struct config_strings *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->v[i]);
    free(s->v);
}

static bool strings_copy(struct config_strings *to, const struct config_strings *from)
{
    *to = (struct config_strings){ calloc(from->n ? from->n : 1, sizeof *to->v), 0 };
    if (!to->v)
        return false;
    for (; to->n < from->n; to->n++)
        if (!(to->v[to->n] = strdup(from->v[to->n])))
            return false;
    return true;
}

static void table_unref(struct guard_table *t)
{
    if (!t || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < t->n; i++) {
        free(t->token[i].name);
        strings_free(&t->token[i].kinds);
        strings_free(&t->token[i].sequences);
    }
    strings_free(&t->admins);
    free(t);
}

/* Key of a client for the rate limits: hash of its kind (token, certificate, address) and name.
 * Never 0. */
static uint64_t client_of(const struct guard *g, char sort, const char *name, size_t len)
{
    uint8_t text[SALT_BYTES + 1 + 256], hash[EVP_MAX_MD_SIZE];
    uint64_t client;
    len = len < 256 ? len : 256;
    memcpy(text, g->salt, SALT_BYTES);
    text[SALT_BYTES] = (uint8_t)sort;
    memcpy(text + SALT_BYTES + 1, name, len);
    if (EVP_Digest(text, SALT_BYTES + 1 + len, hash, NULL, EVP_sha256(), NULL) != 1)
        return 1; /* no memory: all such clients are one */
    memcpy(&client, hash, sizeof client);
    return client ? client : 1;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct guard_token *)a)->id, y = ((const struct guard_token *)b)->id;
    return (x > y) - (x < y);
}

static const struct guard_token *find_digest(const struct guard_table *t,
                                             const uint8_t sha256[SHA256_BYTES])
{
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < t->n; i++) {
        size_t same = (size_t)0 - (CRYPTO_memcmp(t->token[i].sha256, sha256, SHA256_BYTES) == 0);
        found = (found & ~same) | (i & same);
    }
    return found < t->n ? &t->token[found] : NULL;
}

static const struct guard_token *find_id(const struct guard_table *t, uint32_t id)
{
    struct guard_token key = { .id = id };
    return id ? bsearch(&key, t->token, t->n, sizeof key, by_id) : NULL;
}

static struct guard_table *table_new(struct guard *g, const struct config *c)
{
    const struct config_tokens *from = &c->auth.tokens;
    struct guard_table *t = calloc(1, sizeof *t + from->n * sizeof t->token[0]);
    if (!t)
        return NULL;
    atomic_init(&t->refs, 1);
    t->rate = rate_of(c->rate.per_client, c->rate.burst);
    if (!strings_copy(&t->admins, &c->auth.admins)) {
        table_unref(t);
        return NULL;
    }
    for (size_t i = 0; i < from->n; i++) {
        struct guard_token *k = &t->token[t->n++];
        memcpy(k->sha256, from->v[i].sha256, SHA256_BYTES);
        k->name = strdup(from->v[i].name);
        k->admin = from->v[i].admin;
        k->max_sequences = from->v[i].max_sequences;
        if (!strings_copy(&k->kinds, &from->v[i].kinds) ||
            !strings_copy(&k->sequences, &from->v[i].sequences) || !k->name) {
            table_unref(t);
            return NULL;
        }
        k->client = client_of(g, 't', k->name, strlen(k->name));
        const struct guard_token *known = g->table ? find_digest(g->table, k->sha256) : NULL;
        k->id = known ? known->id : ++g->last_id;
    }
    qsort(t->token, t->n, sizeof t->token[0], by_id);
    return t;
}

int guard_reload(struct guard *g, const struct config *c)
{
    pthread_mutex_lock(&g->mutex);
    struct guard_table *old = g->table, *t = table_new(g, c);
    if (t) {
        if (old && (old->rate.interval != t->rate.interval || old->rate.slack != t->rate.slack))
            rate_reset(&g->rates);
        g->table = t;
        atomic_fetch_add_explicit(&g->version, 1, memory_order_release);
    }
    pthread_mutex_unlock(&g->mutex);
    if (!t)
        return FIRN_ENOMEM;
    table_unref(old);
    return 0;
}

int guard_new(const struct config *c, struct guard **out)
{
    struct guard *g = aligned_alloc(_Alignof(struct guard), sizeof *g);
    if (!g)
        return FIRN_ENOMEM;
    memset(g, 0, sizeof *g);
    if (RAND_bytes(g->salt, sizeof g->salt) != 1 || pthread_mutex_init(&g->mutex, NULL) != 0) {
        free(g);
        return FIRN_ENOMEM;
    }
    int r = guard_reload(g, c);
    if (r) {
        guard_free(g);
        return r;
    }
    *out = g;
    return 0;
}

void guard_free(struct guard *g)
{
    if (!g)
        return;
    table_unref(g->table);
    pthread_mutex_destroy(&g->mutex);
    free(g);
}

/* --- a loop's view --- */

int guard_view_init(struct guard_view *v, struct guard *g)
{
    *v = (struct guard_view){ .guard = g, .version = &g->version };
    v->digest = EVP_MD_CTX_new();
    v->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!v->digest || !v->sha256) {
        guard_view_done(v);
        return FIRN_ENOMEM;
    }
    guard_refresh(v);
    return 0;
}

void guard_view_done(struct guard_view *v)
{
    table_unref(v->table);
    EVP_MD_CTX_free(v->digest);
    EVP_MD_free(v->sha256);
    *v = (struct guard_view){ 0 };
}

void guard_refresh(struct guard_view *v)
{
    struct guard *g = v->guard;
    pthread_mutex_lock(&g->mutex);
    struct guard_table *t = g->table;
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    v->seen = atomic_load_explicit(&g->version, memory_order_relaxed);
    pthread_mutex_unlock(&g->mutex);
    table_unref(v->table);
    v->table = t;
    v->active = t->n > 0 || t->rate.interval > 0;
}

/* --- the client --- */

static const struct guard_token *find_token(struct guard_view *v, struct slice token)
{
    uint8_t hash[EVP_MAX_MD_SIZE];
    if (token.len == 0 || token.len > TOKEN_BYTES_MAX ||
        EVP_DigestInit_ex(v->digest, v->sha256, NULL) != 1 ||
        EVP_DigestUpdate(v->digest, token.p, token.len) != 1 ||
        EVP_DigestFinal_ex(v->digest, hash, NULL) != 1)
        return NULL;
    return find_digest(v->table, hash);
}

/* "Bearer", spaces, and a token of visible characters: RFC 6750. Empty if it is not that. */
static struct slice bearer(struct slice authorization)
{
    static const char scheme[] = "Bearer ";
    struct slice t = authorization;
    if (t.len < sizeof scheme || strncasecmp(t.p, scheme, sizeof scheme - 1) != 0)
        return (struct slice){ "", 0 };
    while (t.len > 0 && t.p[t.len - 1] != ' ')
        t.len--;
    size_t scheme_len = sizeof scheme - 1;
    for (size_t i = scheme_len; i < t.len; i++)
        if (t.p[i] != ' ')
            return (struct slice){ "", 0 }; /* two words */
    t = (struct slice){ authorization.p + t.len, authorization.len - t.len };
    for (size_t i = 0; i < t.len; i++)
        if (t.p[i] < '!' || t.p[i] > '~')
            return (struct slice){ "", 0 };
    return t;
}

static const struct guard_token *identify(struct guard_view *v, struct peer *peer,
                                          struct slice authorization, enum guard_reason *reason)
{
    const struct guard_token *who;
    if (peer->proto == 1) {
        who = authorization.p ? find_token(v, bearer(authorization)) : NULL;
        *reason = who ? GUARD_FINE : authorization.p ? GUARD_BAD_TOKEN : GUARD_NO_TOKEN;
        return who;
    }
    who = find_id(v->table, peer->flags);
    if (!who) {
        peer->flags = 0;
        peer->authed = false;
    }
    *reason = who ? GUARD_FINE : GUARD_NO_TOKEN;
    return who;
}

/* A client without a token. Asked for once in a connection's life: a hash is not cheap. */
static uint64_t client_of_peer(const struct guard *g, struct peer *peer)
{
    const char *name = peer->cert_name;
    if (!peer->key)
        peer->key = name ? client_of(g, 'c', name, strlen(name))
                         : client_of(g, 'a', (const char *)&peer->network.id,
                                     sizeof peer->network.id);
    return peer->key;
}

/* --- permission --- */

static bool too_fast(struct guard_view *v, struct peer *peer, const struct guard_token *who,
                     uint64_t now_ns, struct guard_refusal *why)
{
    struct guard *g = v->guard;
    uint64_t wait_ns, second = 1000000000;
    if (v->table->rate.interval == 0)
        return false;
    v->client = who ? who->client : client_of_peer(g, peer);
    if (v->paid || rate_take(&g->rates, &v->table->rate, v->client, now_ns, &wait_ns))
        return false;
    uint64_t wait_s = wait_ns / second + (wait_ns % second > 0);
    *why = (struct guard_refusal){ .reason = GUARD_TOO_FAST,
                                   .retry_after_s = wait_s < UINT32_MAX ? (uint32_t)wait_s
                                                                        : UINT32_MAX };
    return true;
}

static bool is_admin(const struct guard_table *t, const struct peer *peer)
{
    for (size_t i = 0; t && peer->cert_name && i < t->admins.n; i++)
        if (strcmp(t->admins.v[i], peer->cert_name) == 0)
            return true;
    return false;
}

int guard_check_at(struct guard_view *v, struct peer *peer, struct slice authorization,
                   enum guard_what what, struct slice name, uint64_t now_ns,
                   struct guard_refusal *why)
{
    bool on = guard_on(v), operates = what == GUARD_OPERATE || what == GUARD_DELETE;
    if (!on && !operates)
        return 0;
    enum guard_reason reason = GUARD_FINE;
    const struct guard_token *who = NULL;
    if (on && v->table->n > 0)
        who = identify(v, peer, authorization, &reason);
    else if (operates && !peer->network.loopback)
        reason = GUARD_NOT_LOCAL;
    if (operates && !authorization.p && is_admin(v->table, peer))
        reason = GUARD_FINE;
    if (on && too_fast(v, peer, who, now_ns, why)) /* first: guessing tokens is limited, too */
        return FIRN_EAUTH;
    if (reason == GUARD_FINE && who && what != GUARD_LIST &&
        !config_scope_allows(what == GUARD_MINT_KIND ? &who->kinds : &who->sequences, name.p,
                             name.len))
        reason = GUARD_NOT_ALLOWED;
    if (reason == GUARD_FINE && what == GUARD_DELETE && who && !who->admin)
        reason = GUARD_NOT_ADMIN;
    if (reason == GUARD_FINE)
        return 0;
    *why = (struct guard_refusal){ .reason = reason, .token = who ? who->name : NULL };
    return FIRN_EAUTH;
}

int guard_auth_at(struct guard_view *v, struct peer *peer, struct slice user, struct slice token,
                  uint64_t now_ns, struct guard_refusal *why)
{
    peer->flags = 0;
    peer->authed = false;
    if (!guard_on(v) || v->table->n == 0)
        return FIRN_ENOTSUP;
    if (too_fast(v, peer, NULL, now_ns, why))
        return FIRN_EAUTH;
    const struct guard_token *who = find_token(v, token);
    if (who && user.p && !(user.len == 7 && memcmp(user.p, "default", 7) == 0) &&
        !(user.len == strlen(who->name) && memcmp(user.p, who->name, user.len) == 0))
        who = NULL;
    if (!who) {
        *why = (struct guard_refusal){ .reason = GUARD_BAD_TOKEN };
        return FIRN_EAUTH;
    }
    peer->flags = who->id;
    peer->authed = true;
    return 0;
}

static uint64_t now_ns(const struct guard_view *v)
{
    return v->table->rate.interval ? mono_ns() : 0;
}

int guard_check(struct service_ctx *ctx, struct peer *peer, struct slice authorization,
                enum guard_what what, struct slice name, struct guard_refusal *why)
{
    struct guard_view *v = &ctx->guard;
    if (!guard_on(v) && what != GUARD_OPERATE && what != GUARD_DELETE)
        return 0;
    uint64_t now = v->active ? now_ns(v) : 0;
    return guard_check_at(v, peer, authorization, what, name, now, why);
}

void guard_charge(struct service_ctx *ctx, uint64_t n)
{
    struct guard_view *v = &ctx->guard;
    uint64_t ticks;
    if (n <= 1 || !guard_on(v) || v->table->rate.interval == 0 || v->paid || !v->client)
        return;
    if (__builtin_mul_overflow(n - 1, v->table->rate.interval, &ticks))
        ticks = UINT64_MAX;
    rate_charge(&v->guard->rates, v->client, ticks, now_ns(v));
}

uint64_t guard_client(struct service_ctx *ctx, struct peer *peer, struct slice authorization)
{
    struct guard_view *v = &ctx->guard;
    enum guard_reason reason;
    if (!peer || !v->guard)
        return 1;
    const struct guard_token *who = guard_on(v) && v->table->n > 0
                                        ? identify(v, peer, authorization, &reason)
                                        : NULL;
    return who ? who->client : client_of_peer(v->guard, peer);
}

int guard_auth(struct service_ctx *ctx, struct peer *peer, struct slice user, struct slice token,
               struct guard_refusal *why)
{
    struct guard_view *v = &ctx->guard;
    uint64_t now = guard_on(v) ? now_ns(v) : 0;
    return guard_auth_at(v, peer, user, token, now, why);
}

bool guard_may_idle(struct service_ctx *ctx, const struct peer *peer)
{
    return !guard_on(&ctx->guard) || ctx->guard.table->n == 0 || peer->authed;
}

uint64_t guard_scope(struct service_ctx *ctx, struct peer *peer, struct slice authorization,
                     struct slice name, char out[GUARD_SCOPE_BUF])
{
    struct guard_view *v = &ctx->guard;
    enum guard_reason reason;
    if (!guard_on(v) || v->table->n == 0 || !peer)
        return 0;
    const struct guard_token *who = identify(v, peer, authorization, &reason);
    const char *entry = who && who->max_sequences
                            ? config_scope_entry(&who->sequences, name.p, name.len)
                            : NULL;
    size_t n = entry ? strlen(entry) : 0;
    if (n == 0 || n >= GUARD_SCOPE_BUF || entry[n - 1] != '*')
        return 0; /* one name alone needs no limit */
    memcpy(out, entry, n - 1);
    out[n - 1] = '\0';
    return who->max_sequences;
}

const char *guard_who(struct service_ctx *ctx, struct peer *peer, struct slice authorization,
                      char *out_sort)
{
    struct guard_view *v = &ctx->guard;
    enum guard_reason reason;
    *out_sort = '-';
    if (!peer)
        return NULL;
    if (guard_on(v) && v->table->n > 0) {
        const struct guard_token *who = identify(v, peer, authorization, &reason);
        *out_sort = who ? 't' : '-';
        return who ? who->name : NULL;
    }
    *out_sort = peer->cert_name ? 'c' : '-';
    return peer->cert_name;
}

/* --- refusals --- */

static void log_refusal(const struct reply *r, const struct guard_refusal *why)
{
    static const char *const words[] = { [GUARD_FINE] = "none",
                                         [GUARD_NO_TOKEN] = "no token",
                                         [GUARD_BAD_TOKEN] = "unknown token",
                                         [GUARD_NOT_ALLOWED] = "not in scope",
                                         [GUARD_NOT_LOCAL] = "not local",
                                         [GUARD_NOT_ADMIN] = "not an admin",
                                         [GUARD_TOO_FAST] = "too fast" };
    char address[PEER_ADDRESS_BUF];
    if (!log_wants(LOG_LEVEL_WARN))
        return;
    peer_address(r->peer, address);
    log_warn("refused", "reason=%s client=%s token=%s certificate=%s", words[why->reason], address,
             why->token ? why->token : "-",
             r->peer && r->peer->cert_name ? r->peer->cert_name : "-");
}

static int shown(struct slice name)
{
    return (int)(name.len < SHOWN_BYTES_MAX ? name.len : SHOWN_BYTES_MAX);
}

static const char not_admin[] =
    "to delete a sequence takes a token with admin: true in auth.tokens";

void guard_refuse_http(struct reply *r, const struct guard_refusal *why, struct slice name)
{
    char fields[64];
    log_refusal(r, why);
    switch (why->reason) {
    case GUARD_FINE:
    case GUARD_NO_TOKEN:
        problem_reply(r, PROBLEM_NO_TOKEN, "WWW-Authenticate: Bearer realm=\"firn\"\r\n",
                      "this needs a token: send Authorization: Bearer TOKEN");
        return;
    case GUARD_BAD_TOKEN:
        problem_reply(r, PROBLEM_BAD_TOKEN,
                      "WWW-Authenticate: Bearer realm=\"firn\", error=\"invalid_token\"\r\n",
                      "Authorization must be Bearer and a token that this server knows; see "
                      "auth.tokens in its settings");
        return;
    case GUARD_NOT_ALLOWED:
        problem_reply(r, PROBLEM_NOT_ALLOWED,
                      "WWW-Authenticate: Bearer realm=\"firn\", error=\"insufficient_scope\"\r\n",
                      "the token %s may not use %.*s: widen its kinds or sequences in auth.tokens",
                      why->token, shown(name), name.p);
        return;
    case GUARD_NOT_LOCAL:
        problem_reply(
            r, PROBLEM_NOT_LOCAL, "",
            "%.*s is changed from this machine (loopback), with a token (auth.tokens), or "
            "with a client certificate named in auth.admins",
            shown(name), name.p);
        return;
    case GUARD_NOT_ADMIN:
        problem_reply(r, PROBLEM_NOT_ALLOWED, "", "%s", not_admin);
        return;
    case GUARD_TOO_FAST:
        snprintf(fields, sizeof fields, "Retry-After: %u\r\n", why->retry_after_s);
        problem_reply(r, PROBLEM_TOO_FAST, fields,
                      "this client's requests come faster than rate.per_client allows: come back "
                      "in %u s, or ask for several IDs at once with n=",
                      why->retry_after_s);
        return;
    }
}

void guard_refuse_resp(struct reply *r, const struct guard_refusal *why, struct slice name)
{
    log_refusal(r, why);
    switch (why->reason) {
    case GUARD_FINE:
    case GUARD_NO_TOKEN:
        resp_error(r->out, "NOAUTH Authentication required.");
        return;
    case GUARD_BAD_TOKEN:
        resp_error(r->out, "WRONGPASS invalid username-password pair or user is disabled.");
        return;
    case GUARD_NOT_ALLOWED:
        resp_errorf(r->out, "NOPERM the token %s may not use '%.*s'", why->token, shown(name),
                    name.p);
        return;
    case GUARD_NOT_LOCAL:
        resp_errorf(r->out, "NOPERM '%.*s' is administered from this machine or with a token",
                    shown(name), name.p);
        return;
    case GUARD_NOT_ADMIN:
        resp_errorf(r->out, "NOPERM %s", not_admin);
        return;
    case GUARD_TOO_FAST:
        resp_errorf(r->out, "ERR rate limit: this client may come again in %u s",
                    why->retry_after_s);
        return;
    }
}
