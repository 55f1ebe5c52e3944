/* Tokens and their scopes. Tested in tests/unit/auditlog/auth.c. */
#include "auditlog/auth.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <strings.h>

static struct slice bearer(struct slice value)
{
    if (!value.p || value.len < 8 || strncasecmp(value.p, "Bearer ", 7) != 0)
        return (struct slice){ NULL, 0 };
    value = (struct slice){ value.p + 7, value.len - 7 };
    while (value.len > 0 && *value.p == ' ')
        value = (struct slice){ value.p + 1, value.len - 1 };
    return value;
}

enum auth_end auth_check(const struct config_tokens *tokens, struct slice authorization,
                         uint32_t scope, struct slice *tenant)
{
    unsigned char sum[SHA256_DIGEST_LENGTH];
    const struct config_token *found = NULL;
    *tenant = (struct slice){ "default", 7 };
    if (tokens->n == 0)
        return AUTH_OK;
    struct slice token = bearer(authorization);
    if (!token.p)
        return AUTH_NO_TOKEN;
    SHA256((const unsigned char *)token.p, token.len, sum);
    for (size_t i = 0; i < tokens->n; i++)
        if (CRYPTO_memcmp(tokens->v[i].sha256, sum, sizeof sum) == 0)
            found = &tokens->v[i];
    if (!found)
        return AUTH_BAD_TOKEN;
    *tenant = (struct slice){ found->tenant, strlen(found->tenant) };
    return (found->scope & scope) == scope ? AUTH_OK : AUTH_SCOPE;
}
