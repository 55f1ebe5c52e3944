/* The gateway's tokens and rates: keys, defaults, messages that point at the key. */
#include "t.h"

#include "daemon/config_entries.h"
#include "daemon/config_in.h"
#include "proxy/config.h"
#include "proxy/limit.h"
#include "proxy/redis_settings.h"

#include <stdlib.h>

static struct firn_diag diag;

static int load(struct config *c, const char *yaml)
{
    *c = (struct config){ .base = { .program = &proxy_config, .file = strdup("x.yaml") } };
    diag.text[0] = '\0';
    return config_yaml_read(&c->base, yaml, strlen(yaml), &diag);
}

T_TEST(config_tokens)
{
    struct config c, d;
    T_EQ(load(&c, "tokens:\n"
                  "  - { name: a, jwks: /keys, issuers: [i, j], audiences: [shop], leeway_s: 7,\n"
                  "      expiry_optional: true, cached: 0, cached_max_s: 60, forward: true,\n"
                  "      copy: ['sub: X-User', 'https://x.example/roles?: X-Roles'] }\n"
                  "  - { name: b, secret_file: /s, key_id: k }\n"),
         0, "%s", diag.text);
    const struct config_token *t = c.tokens.v;
    T_EQ(c.tokens.n, 2);
    T_STR(t->jwks, "/keys");
    T_EQ(t->issuers.n, 2);
    T_OK(t->expiry_optional && t->forward && t->cached == 0 && t->leeway_s == 7);
    T_EQ(t->copy.n, 2);
    T_STR(t->copy.v[0].claim, "sub");
    T_OK(!t->copy.v[0].optional && t->copy.v[1].optional);
    T_STR(t->copy.v[1].claim, "https://x.example/roles");
    T_STR(t->copy.v[1].header, "X-Roles");
    T_EQ(t[1].copy.n, 1);
    T_STR(t[1].copy.v[0].header, "X-User-ID");
    T_OK(!t[1].forward && !t[1].expiry_optional && t[1].leeway_s == 30);
    /* What is printed reads as the same. */
    char *text[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++) {
        size_t size;
        FILE *f = open_memstream(&text[i], &size);
        fputs("tokens: ", f);
        entries_write(&config_tokens_type, i ? &d.tokens : &c.tokens, f);
        fclose(f);
        if (i == 0)
            T_EQ(load(&d, text[0]), 0, "%s in %s", diag.text, text[0]);
    }
    T_STR(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    config_free(&c.base);
    config_free(&d.base);
}

T_TEST(config_rates)
{
    struct config c, d;
    T_EQ(load(&c, "rates:\n"
                  "  - { name: a, count: 100 }\n"
                  "  - { name: b, count: 5, period_s: 1, by: 'header:X-Api-Key', kind: smooth,\n"
                  "      away: closed, ipv6_bits: 48 }\n"
                  "routes: [{ path: /, service: s, rates: [a, b] }]\n"),
         0, "%s", diag.text);
    const struct config_rate *r = c.rates.v;
    T_EQ(c.rates.n, 2);
    T_STR(r[0].by, "address");
    T_OK(r[0].period_s == 60 && r[0].kind == LIMIT_WINDOW && r[0].away == LIMIT_AWAY_LOCAL);
    T_EQ(r[0].ipv6_bits, 64);
    T_STR(r[1].by, "header:x-api-key");
    T_OK(r[1].burst == 1 && r[1].kind == LIMIT_SMOOTH && r[1].away == LIMIT_AWAY_CLOSED);
    T_EQ(c.routes.v[0].rates.n, 2);
    char *text[2] = { NULL, NULL };
    for (int i = 0; i < 2; i++) {
        size_t size;
        FILE *f = open_memstream(&text[i], &size);
        fputs("rates: ", f);
        entries_write(&config_rates_type, i ? &d.rates : &c.rates, f);
        fclose(f);
        if (i == 0)
            T_EQ(load(&d, text[0]), 0, "%s in %s", diag.text, text[0]);
    }
    T_STR(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    config_free(&c.base);
    config_free(&d.base);
}

#define TOKEN "tokens:\n  - { name: a, jwks: /k"
#define RATE  "rates:\n  - { name: a"

T_TEST(config_guards_say_where)
{
    static const struct {
        const char *yaml, *says;
    } bad[] = {
        { "tokens: [{ name: a }]\n", "'a': jwks: give one of jwks, pem and secret_file" },
        { TOKEN ", pem: /p }\n", "give one of jwks, pem and secret_file" },
        { TOKEN ", key_id: k }\n", "key_id: keys of a jwks file have their own" },
        { TOKEN ", copy: [sub] }\n", "copy: 'sub' is no copy of a claim; write 'sub: X-User-ID'" },
        { TOKEN ", copy: ['?: X-A'] }\n", "is no copy of a claim" },
        { TOKEN ", copy: ['sub: X A'] }\n", "'X A' is no name of a header" },
        { TOKEN ", copy: ['sub: Content-Length'] }\n", "is the gateway's own" },
        { TOKEN ", copy: ['a: X-A', 'b: x-a'] }\n", "copy: x-a is there twice" },
        { TOKEN ", leeway_s: 3601 }\n", "leeway_s: '3601' is no number from 0 to 3600" },
        { RATE " }\n", "'a': count: it is missing" },
        { RATE ", count: 0 }\n", "count: '0' is no number from 1" },
        { RATE ", count: 1, by: ip }\n", "by: 'ip' is none of address, user and header:NAME" },
        { RATE ", count: 1, by: 'header:' }\n", "is none of address, user and header:NAME" },
        { RATE ", count: 1, burst: 2 }\n", "burst: it is for kind: smooth" },
        { RATE ", count: 1, away: open }\n", "'open' is none of local|closed" },
        { RATE ", count: 1, ipv6_bits: 129 }\n", "is no number from 16 to 128" },
        { "redis: { address: here }\n", "'here' is no address of a Redis" },
        { "redis: { address: 'redis://127.0.0.1:6379' }\n", "is no address of a Redis" },
        { "redis: { address: '127.0.0.1:1', prefix: 'a*' }\n", "'a*' is no prefix" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct config c;
        T_OK(load(&c, bad[i].yaml) < 0, "%s", bad[i].yaml);
        T_OK(strstr(diag.text, bad[i].says), "%s\nsays %s", bad[i].yaml, diag.text);
        config_free(&c.base);
    }
}

T_TEST(config_guards_need_each_other)
{
    static const struct {
        const char *yaml, *says;
    } bad[] = {
        { "routes: [{ path: /, service: s, token: t }]\n", "there is no token 't' in tokens" },
        { "routes: [{ path: /, service: s, token_optional: true }]\n",
          "token_optional: needs token (column " },
        { "routes: [{ path: /, service: s, rates: [r] }]\n", "there is no rate 'r' in rates" },
        { "rates: [{ name: hour, count: 1 }, { name: minute, count: 1 }]\n"
          "routes:\n  - { path: /, service: s }\n"
          "  - name: second\n    path: /x\n    service: s\n    rates: [hour, minutes]\n",
          "x.yaml:7: routes: 'second': rates: there is no rate 'minutes' in rates; did you mean "
          "minute (column 19)" },
        { "tokens: [{ name: shop, jwks: /x }]\n"
          "routes: [{ path: /, service: s, token: shoppe }]\n",
          "x.yaml:2: routes: 'route-1': token: there is no token 'shoppe' in tokens; did you mean "
          "shop (column 40)" },
        { "rates: [{ name: r, count: 1, by: user }]\n"
          "routes: [{ path: /, service: s, rates: [r] }]\n",
          "rates: 'r' counts users, which only a token names" },
        { "rates: [{ name: r, count: 1 }]\n"
          "routes: [{ path: /, service: s, rates: [r, r, r, r, r, r, r, r, r] }]\n",
          "rates: there are more than 8 (column " },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct config c;
        T_EQ(load(&c, bad[i].yaml), 0, "%s", diag.text);
        T_OK(config_guards_check(&c, &diag) < 0, "%s", bad[i].yaml);
        T_OK(strstr(diag.text, bad[i].says), "%s\nsays %s", bad[i].yaml, diag.text);
        config_free(&c.base);
    }
}
