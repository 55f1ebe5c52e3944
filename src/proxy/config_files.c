/*
 * For --check-config: certificates, keys and secrets are read as the start reads them. A reload
 * does not need it: making the plan reads them, too. Tested in tests/integration/gateway.py.
 */
#include "proxy/config.h"
#include "proxy/plan.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

/* Errors of TLS files begin with the key and '=', those of others may with the key and ": ". */
static const char *without_key(const char *text, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(text, key, n) != 0)
        return text;
    return text[n] == '=' ? text + n + 1 : strncmp(text + n, ": ", 2) == 0 ? text + n + 2 : text;
}

/* Of `keys` the one that an error of TLS files is about; the first one otherwise. */
static const char *key_of(const char *text, const char *const *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (without_key(text, keys[i]) != text)
            return keys[i];
    return keys[0];
}

static int load(enum tls_role role, const struct tls_files *files, struct firn_diag *why)
{
    struct tls_context *t = NULL;
    int e = tls_context_open(role, files, &t, why);
    tls_context_free(t);
    return e;
}

static int check_tls(const struct config *c, struct firn_diag *diag)
{
    static const char *const keys[] = { "tls.cert", "tls.key", "tls.client_ca" };
    const struct tls_files files = { c->tls.cert, c->tls.key, c->tls.client_ca, "tls." };
    struct firn_diag why = { 0, "" };
    int e = c->tls.cert ? load(TLS_SERVER, &files, &why) : 0;
    const char *key = key_of(why.text, keys, sizeof keys / sizeof keys[0]);
    return e ? config_fault(&c->base, key, e, diag, "%s", without_key(why.text, key)) : 0;
}

static int check_service(const struct config *c, const struct config_service *s,
                         struct firn_diag *diag)
{
    static const char *const keys[] = { "tls", "tls_cert", "tls_key", "tls_ca" };
    const struct tls_files files = { s->tls_cert, s->tls_key, s->tls_ca, "tls_" };
    struct firn_diag why = { 0, "" };
    int e = s->tls ? load(TLS_CLIENT, &files, &why) : 0;
    const struct config_at at = { "services", s,
                                  key_of(why.text, keys, sizeof keys / sizeof keys[0]), 0 };
    return e ? config_fault_at(&c->base, &at, e, diag, "%s", without_key(why.text, at.key)) : 0;
}

static int check_token(const struct config *c, const struct config_token *t, struct firn_diag *diag)
{
    struct firn_diag why = { 0, "" };
    const char *key = t->jwks ? "jwks" : t->pem ? "pem" : "secret_file";
    int e = token_keys_check(t, &why);
    return e ? config_fault_at(&c->base, &(struct config_at){ "tokens", t, key, 0 }, e, diag, "%s",
                               why.text)
             : 0;
}

static int check_secret(const struct config *c, const char *key,
                        int (*read)(const struct config *c, char **out, struct firn_diag *diag),
                        struct firn_diag *diag)
{
    struct firn_diag why = { 0, "" };
    char *text = NULL;
    int e = read(c, &text, &why);
    if (text)
        OPENSSL_cleanse(text, strlen(text));
    free(text);
    return e ? config_fault(&c->base, key, e, diag, "%s", without_key(why.text, key)) : 0;
}

static int check_tracing(const struct config *c, struct firn_diag *diag)
{
    static const char key[] = "tracing.tls_ca";
    const struct tls_files files = { NULL, NULL, c->tracing.tls_ca, "tracing.tls_" };
    struct firn_diag why = { 0, "" };
    int e = c->tracing.tls_ca ? load(TLS_CLIENT, &files, &why) : 0;
    return e ? config_fault(&c->base, key, e, diag, "%s", without_key(why.text, key)) : 0;
}

int config_check_files(const void *config, struct firn_diag *diag)
{
    const struct config *c = config;
    int e = check_tls(c, diag);
    for (size_t i = 0; e == 0 && i < c->services.n; i++)
        e = check_service(c, &c->services.v[i], diag);
    for (size_t i = 0; e == 0 && i < c->tokens.n; i++)
        e = check_token(c, &c->tokens.v[i], diag);
    if (e == 0)
        e = check_secret(c, "admin.token_file", plan_token_read, diag);
    if (e == 0 && c->redis.address)
        e = check_secret(c, "redis.password_file", redis_password_read, diag);
    return e ? e : check_tracing(c, diag);
}
