/*
 * The settings `tokens` and `rates`: the tables of their keys. A new key is a member of struct
 * config_token or config_rate and a row. Tested in tests/unit/proxy/config_guards.c.
 */
#include "proxy/config.h"
#include "proxy/config_fields.h"
#include "proxy/jwt.h"
#include "proxy/limit.h"
#include "wire/http_line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- the claims that become headers --- */

/* "sub: X-User-ID", or "roles?: X-Roles" for a claim that may be missing. */
static int read_copy(const struct entry_reader *r, const struct entry_key *k, const char *text,
                     struct config_copy *out)
{
    char show[CONFIG_SHOWN_BUF];
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    out->optional = n > 0 && text[n - 1] == '?';
    n -= out->optional;
    if (n == 0)
        return entry_blame(r, k->name,
                           "'%s' is no copy of a claim; write 'sub: X-User-ID', or 'roles?: "
                           "X-Roles' for a claim that may be missing",
                           config_shown(text, show));
    out->claim = strndup(text, n);
    out->header = strdup(colon + 1 + strspn(colon + 1, " \t"));
    if (!out->claim || !out->header)
        return entry_no_memory(r);
    return config_check_field_name(r, k, out->header);
}

static int read_copies(const struct entry_reader *r, const struct entry_key *k,
                       const struct config_strings *from, void *at)
{
    static const char *user = "sub: X-User-ID";
    struct config_copies *out = at;
    const char *const *texts = from->n ? (const char *const *)from->v : &user;
    size_t n = from->n ? from->n : 1;
    int e = 0;
    if (n > JWT_COPIES_MAX)
        return entry_blame(r, k->name, "there are more than %d", JWT_COPIES_MAX);
    out->v = calloc(n, sizeof *out->v);
    if (!out->v)
        return entry_no_memory(r);
    for (; e == 0 && out->n < n; out->n++)
        e = read_copy(r, k, texts[out->n], &out->v[out->n]);
    return e;
}

static void write_copies(const struct entry_key *k, const void *at, FILE *out)
{
    const struct config_copies *c = at;
    (void)k;
    for (size_t i = 0; i < c->n; i++) {
        char *line = NULL;
        fputs(i ? ", " : "[", out);
        if (asprintf(&line, "%s%s: %s", c->v[i].claim, c->v[i].optional ? "?" : "",
                     c->v[i].header) >= 0)
            config_write_string(line, out);
        free(line);
    }
    fputc(']', out);
}

static void free_copies(void *at)
{
    struct config_copies *c = at;
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].claim);
        free(c->v[i].header);
    }
    free(c->v);
}

static const struct entry_type copies_type = { true, read_copies, NULL, write_copies, free_copies };

/* --- tokens --- */

static int check_key_id(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    return strlen(text) <= JWKS_KID_MAX
               ? 0
               : entry_blame(r, k->name, "it has more than %d bytes", JWKS_KID_MAX);
}

static int check_token(const struct entry_reader *r, void *entry)
{
    const struct config_token *t = entry;
    if ((t->jwks != NULL) + (t->pem != NULL) + (t->secret_file != NULL) != 1)
        return entry_blame(r, "jwks",
                           "give one of jwks, pem and secret_file: the keys that tokens are "
                           "verified with");
    for (size_t i = 0; i < t->copy.n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcasecmp(t->copy.v[i].header, t->copy.v[k].header) == 0)
                return entry_blame(r, "copy", "%.40s is there twice", t->copy.v[i].header);
    if (t->key_id && t->jwks)
        return entry_blame(r, "key_id",
                           "keys of a jwks file have their own; it is for pem and "
                           "secret_file");
    return 0;
}

enum { YEAR_S = 366 * 86400, LEEWAY_MAX_S = 3600, CACHED_MAX = 1 << 20 };

#define AT(field) .offset = offsetof(struct config_token, field)

static const struct entry_key token_keys[] = {
    { "name", &entry_text, AT(name), .check = entry_check_name },
    { "jwks", &entry_text, AT(jwks) },
    { "pem", &entry_text, AT(pem) },
    { "secret_file", &entry_text, AT(secret_file) },
    { "key_id", &entry_text, AT(key_id), .check = check_key_id },
    { "issuers", &entry_texts, AT(issuers) },
    { "audiences", &entry_texts, AT(audiences) },
    { "leeway_s", &entry_u32, AT(leeway_s), 0, LEEWAY_MAX_S, 30 },
    { "expiry_optional", &entry_bool, AT(expiry_optional) },
    { "cached", &entry_u32, AT(cached), 0, CACHED_MAX, 1024 },
    { "cached_max_s", &entry_u32, AT(cached_max_s), 0, YEAR_S, 0 },
    { "copy", &copies_type, AT(copy) },
    { "forward", &entry_bool, AT(forward) },
};

const struct setting_entries config_tokens_type = { token_keys,
                                                    sizeof token_keys / sizeof token_keys[0],
                                                    sizeof(struct config_token), NULL,
                                                    check_token };

/* --- rates --- */

#undef AT
#define AT(field) .offset = offsetof(struct config_rate, field)

/* "address", "user" or "header:NAME". */
static int check_by(const struct entry_reader *r, const struct entry_key *k, char *text)
{
    static const char header[] = "header:";
    char show[CONFIG_SHOWN_BUF];
    char *name = strncmp(text, header, sizeof header - 1) == 0 ? text + sizeof header - 1 : NULL;
    for (char *p = name; p && *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (strcmp(text, "address") == 0 || strcmp(text, "user") == 0 ||
        (name && config_all_are(name, HTTP_TOKEN)))
        return 0;
    return entry_blame(r, k->name, "'%s' is none of address, user and header:NAME",
                       config_shown(text, show));
}

static int check_rate(const struct entry_reader *r, void *entry)
{
    struct config_rate *t = entry;
    if (!t->by && !(t->by = strdup("address")))
        return entry_no_memory(r);
    if (t->count == 0)
        return entry_blame(r, "count", "it is missing: how many requests may pass in period_s?");
    if (t->kind == LIMIT_WINDOW && t->burst)
        return entry_blame(r, "burst", "it is for kind: smooth; a window lets count pass at once");
    if (t->kind == LIMIT_SMOOTH && !t->burst)
        t->burst = 1;
    return 0;
}

static const struct entry_key rate_keys[] = {
    { "name", &entry_text, AT(name), .check = entry_check_name },
    { "by", &entry_text, AT(by), .check = check_by },
    { "count", &entry_u32, AT(count), 1, LIMIT_COUNT_MAX, 0 },
    { "period_s", &entry_u32, AT(period_s), 1, LIMIT_PERIOD_MAX_S, 60 },
    { "kind", &entry_choice, AT(kind), .choices = "window|smooth" },
    { "burst", &entry_u32, AT(burst), 0, LIMIT_COUNT_MAX, 0 },
    { "away", &entry_choice, AT(away), .choices = "local|closed" },
    { "ipv6_bits", &entry_u32, AT(ipv6_bits), 16, 128, 64 },
};

const struct setting_entries config_rates_type = { rate_keys,
                                                   sizeof rate_keys / sizeof rate_keys[0],
                                                   sizeof(struct config_rate), NULL, check_rate };

/* --- what only the whole shows --- */

const struct config_token *config_token_named(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->tokens.n; i++)
        if (strcmp(c->tokens.v[i].name, name) == 0)
            return &c->tokens.v[i];
    return NULL;
}

const struct config_rate *config_rate_named(const struct config *c, const char *name)
{
    for (size_t i = 0; i < c->rates.n; i++)
        if (strcmp(c->rates.v[i].name, name) == 0)
            return &c->rates.v[i];
    return NULL;
}

static int check_route(const struct config *c, const struct config_route *r, struct firn_diag *diag)
{
    struct config_at at = { "routes", r, "token", 0 };
    if (r->token && !config_token_named(c, r->token))
        return config_fault_name(&c->base, &at, "tokens", "token", r->token, diag);
    at.key = "token_optional";
    if (r->token_optional && !r->token)
        return config_fault_at(&c->base, &at, FIRN_EINVAL, diag, "needs token");
    at.key = "rates";
    if (r->rates.n > CONFIG_ROUTE_RATES_MAX)
        return config_fault_at(&c->base, &at, FIRN_EINVAL, diag, "there are more than %d",
                               CONFIG_ROUTE_RATES_MAX);
    for (; at.item < r->rates.n; at.item++) {
        const struct config_rate *rate = config_rate_named(c, r->rates.v[at.item]);
        if (!rate)
            return config_fault_name(&c->base, &at, "rates", "rate", r->rates.v[at.item], diag);
        if (strcmp(rate->by, "user") == 0 && !r->token)
            return config_fault_at(&c->base, &at, FIRN_EINVAL, diag,
                                   "'%.40s' counts users, which only a token names; give the route "
                                   "a token",
                                   rate->name);
    }
    return 0;
}

int config_guards_check(const struct config *c, struct firn_diag *diag)
{
    int e = 0;
    for (size_t i = 0; e == 0 && i < c->routes.n; i++)
        e = check_route(c, &c->routes.v[i], diag);
    return e;
}
