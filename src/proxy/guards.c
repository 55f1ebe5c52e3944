/* Tokens and rates of a plan. Tested in tests/integration/gateway_guards.py. */
#include "proxy/guards.h"
#include "daemon/log.h"
#include "id/diag.h"
#include "id/fnv.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- keys --- */

void token_keys_unref(struct token_keys *k)
{
    if (!k || atomic_fetch_sub(&k->refs, 1) > 1)
        return;
    jwks_done(&k->set);
    free(k);
}

struct token_keys *token_keys_take(struct token *t, uint64_t *out_generation)
{
    pthread_mutex_lock(&t->lock);
    struct token_keys *k = t->keys;
    atomic_fetch_add(&k->refs, 1);
    *out_generation = atomic_load(&t->generation);
    pthread_mutex_unlock(&t->lock);
    return k;
}

static const char *file_of(const struct config_token *c)
{
    return c->jwks ? c->jwks : c->pem ? c->pem : c->secret_file;
}

static int add_keys(const struct config_token *c, const char *text, size_t len, struct jwks *set,
                    struct firn_diag *d)
{
    if (c->jwks)
        return jwks_read(set, text, len, d);
    if (c->pem)
        return jwks_add_pem(set, c->key_id, text, len, d);
    while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
        len--; /* as editors and `openssl rand` leave it */
    return jwks_add_secret(set, c->key_id, text, len, d);
}

static int read_file(const struct config_token *c, struct token_keys *k, struct firn_diag *d)
{
    char *text = NULL;
    size_t len = 0;
    int e = text_file_read(file_of(c), JWKS_BYTES_MAX, &text, &len, d);
    if (e == 0)
        e = add_keys(c, text, len, &k->set, d);
    if (text)
        OPENSSL_cleanse(text, len);
    free(text);
    if (e && !d->text[0])
        return firn__diag(d, e, 0, "%s", firn_error_message(e));
    return e;
}

static int read_keys(const struct config_token *c, struct token_keys **out, struct firn_diag *diag)
{
    struct firn_diag d = { 0, "" };
    struct token_keys *k = calloc(1, sizeof *k);
    if (!k)
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    atomic_store(&k->refs, 1);
    int e = read_file(c, k, &d);
    if (e) {
        token_keys_unref(k);
        return firn__diag(diag, e, 0, "tokens: '%.40s': %.80s: %s", c->name, file_of(c), d.text);
    }
    *out = k;
    return 0;
}

int token_keys_check(const struct config_token *c, struct firn_diag *diag)
{
    struct token_keys *k = calloc(1, sizeof *k);
    if (!k)
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    atomic_store(&k->refs, 1);
    int e = read_file(c, k, diag);
    token_keys_unref(k);
    return e;
}

/* The file was refused: the keys before it stay. */
static void keep_keys(struct token *t, const struct firn_diag *d)
{
    pthread_mutex_lock(&t->lock);
    snprintf(t->error, sizeof t->error, "%s", d->text);
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add(&t->key_errors, 1);
    log_error("token_keys_kept", "token=%s cause=%s cure=%s", t->conf->name, d->text,
              "repair the file; the keys that it had before stay in force");
}

static bool same_file(const struct config_token *a, const struct config_token *b)
{
    return strcmp(file_of(a), file_of(b)) == 0 && !a->jwks == !b->jwks && !a->pem == !b->pem;
}

static struct token *token_named(const struct guards *g, const char *name)
{
    for (size_t i = 0; g && i < g->tokens_n; i++)
        if (strcmp(g->token[i].conf->name, name) == 0)
            return &g->token[i];
    return NULL;
}

static int make_token(struct token *t, const struct config_token *c, const struct guards *old,
                      struct firn_diag *diag)
{
    struct token *was = token_named(old, c->name);
    uint64_t unused;
    pthread_mutex_init(&t->lock, NULL);
    t->conf = c;
    t->rules = (struct jwt_rules){ .issuers = (const char *const *)c->issuers.v,
                                   .issuers_n = c->issuers.n,
                                   .audiences = (const char *const *)c->audiences.v,
                                   .audiences_n = c->audiences.n,
                                   .leeway_s = c->leeway_s,
                                   .expiry_optional = c->expiry_optional,
                                   .cached_max_s = c->cached_max_s,
                                   .cache_size = c->cached,
                                   .copies_n = c->copy.n };
    for (size_t i = 0; i < c->copy.n; i++)
        t->rules.copy[i] = (struct jwt_copy){ c->copy.v[i].claim, c->copy.v[i].header,
                                              !c->copy.v[i].optional };
    if (was)
        atomic_store(&t->key_errors, atomic_load(&was->key_errors));
    t->read = t->last = file_look_at(file_of(c)); /* before it is read: a change is seen */
    int e = read_keys(c, &t->keys, diag);
    if (e && was && same_file(c, was->conf)) {
        t->keys = token_keys_take(was, &unused);
        keep_keys(t, diag);
        e = 0;
    }
    return e;
}

void guards_watch(struct guards *g)
{
    for (size_t i = 0; i < g->tokens_n; i++) {
        struct token *t = &g->token[i];
        struct token_keys *new = NULL;
        struct firn_diag d = { 0, "" };
        struct file_look now = file_look_at(file_of(t->conf));
        bool settled = file_look_same(&now, &t->last); /* somebody may be writing it */
        t->last = now;
        if (!settled || file_look_same(&now, &t->read))
            continue;
        t->read = now;
        if (read_keys(t->conf, &new, &d) != 0) {
            keep_keys(t, &d);
            continue;
        }
        pthread_mutex_lock(&t->lock);
        struct token_keys *old = t->keys;
        t->keys = new;
        t->error[0] = '\0';
        atomic_fetch_add(&t->generation, 1);
        pthread_mutex_unlock(&t->lock);
        token_keys_unref(old);
        log_info("token_keys_read", "token=%s keys=%zu ignored=%zu", t->conf->name, new->set.n,
                 new->set.ignored);
    }
}

/* --- rates --- */

static void make_rate(struct rate *r, const struct config_rate *c, const struct guards *old)
{
    r->conf = c;
    r->rule = (struct limit_rule){ .kind = (enum limit_kind)c->kind,
                                   .count = c->count,
                                   .period_us = UINT64_C(1000000) * c->period_s,
                                   .burst = c->burst };
    r->by = strcmp(c->by, "address") == 0 ? RATE_BY_ADDRESS
            : strcmp(c->by, "user") == 0  ? RATE_BY_USER
                                          : RATE_BY_HEADER;
    if (r->by == RATE_BY_HEADER)
        r->header = strchr(c->by, ':') + 1;
    limit_script_args(&r->rule, 0, r->args);
    uint64_t sum = fnv(FNV_BEGIN, c->name, strlen(c->name));
    sum = fnv(sum, c->by, strlen(c->by));
    sum = fnv(sum, r->args, sizeof r->args);
    r->id = (uint32_t)(sum ^ sum >> 32);
    for (size_t i = 0; old && i < old->rates_n; i++)
        if (strcmp(old->rate[i].conf->name, c->name) == 0) {
            atomic_store(&r->passed, atomic_load(&old->rate[i].passed));
            atomic_store(&r->limited, atomic_load(&old->rate[i].limited));
            atomic_store(&r->away, atomic_load(&old->rate[i].away));
        }
}

/* --- routes --- */

static void make_route(struct route_guard *to, const struct config *c, const struct config_route *r,
                       const struct guards *g)
{
    if (r->token)
        to->token = &g->token[config_token_named(c, r->token) - c->tokens.v];
    for (int after = 0; after < 2; after++) {
        for (size_t i = 0; i < r->rates.n; i++) {
            struct rate *rate = &g->rate[config_rate_named(c, r->rates.v[i]) - c->rates.v];
            if ((rate->by == RATE_BY_USER) == after)
                to->rate[to->rates_n++] = rate;
        }
        if (!after)
            to->first_n = to->rates_n;
    }
}

/* Servers that make variables of headers take '_' for '-'. */
static int add_claim(struct guards *g, const char *header)
{
    char *name = strdup(header);
    if (!name)
        return FIRN_ENOMEM;
    for (char *p = name; *p; p++)
        *p = (char)(*p == '_' ? '-' : tolower((unsigned char)*p));
    g->claim[g->claims_n++] = name;
    return 0;
}

static int make_claims(struct guards *g, const struct config *c)
{
    int e = 0;
    g->claim = calloc(c->tokens.n * JWT_COPIES_MAX + 1, sizeof *g->claim);
    if (!g->claim)
        return FIRN_ENOMEM;
    for (size_t i = 0; i < c->tokens.n; i++)
        for (size_t k = 0; e == 0 && k < c->tokens.v[i].copy.n; k++)
            e = add_claim(g, c->tokens.v[i].copy.v[k].header);
    return e;
}

int guards_new(const struct config *c, const struct guards *old, struct guards **out,
               struct firn_diag *diag)
{
    struct guards *g = calloc(1, sizeof *g);
    if (!g)
        return firn__diag(diag, FIRN_ENOMEM, 0, "out of memory");
    g->token = calloc(c->tokens.n + 1, sizeof *g->token);
    g->rate = calloc(c->rates.n + 1, sizeof *g->rate);
    g->route = calloc(c->routes.n + 1, sizeof *g->route);
    int e = g->token && g->rate && g->route ? make_claims(g, c) : FIRN_ENOMEM;
    while (e == 0 && g->tokens_n < c->tokens.n) {
        e = make_token(&g->token[g->tokens_n], &c->tokens.v[g->tokens_n], old, diag);
        g->tokens_n++;
    }
    if (e) {
        guards_free(g);
        return e;
    }
    for (; g->rates_n < c->rates.n; g->rates_n++)
        make_rate(&g->rate[g->rates_n], &c->rates.v[g->rates_n], old);
    for (size_t i = 0; i < c->routes.n; i++)
        make_route(&g->route[i], c, &c->routes.v[i], g);
    *out = g;
    return 0;
}

void guards_free(struct guards *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->tokens_n; i++) {
        token_keys_unref(g->token[i].keys);
        pthread_mutex_destroy(&g->token[i].lock);
    }
    for (size_t i = 0; i < g->claims_n; i++)
        free(g->claim[i]);
    free(g->claim);
    free(g->token);
    free(g->rate);
    free(g->route);
    free(g);
}
