/* Tokens and their scopes. */
#include "t.h"

#include "auditlog/auth.h"

#include <openssl/sha.h>

static enum auth_end check(const struct config_tokens *t, const char *value, uint32_t scope,
                           struct slice *tenant)
{
    return auth_check(t, (struct slice){ value, value ? strlen(value) : 0 }, scope, tenant);
}

T_TEST(auth_without_tokens)
{
    const struct config_tokens none = { NULL, 0 };
    struct slice tenant;
    T_EQ(check(&none, NULL, SCOPE_WRITE, &tenant), AUTH_OK);
    T_OK(slice_is(tenant, "default"));
}

T_TEST(auth_by_scope)
{
    static char shop[] = "shop", bank[] = "bank";
    struct config_token v[2] = { { .tenant = shop, .scope = SCOPE_READ },
                                 { .tenant = bank, .scope = SCOPE_READ | SCOPE_WRITE } };
    const struct config_tokens t = { v, 2 };
    struct slice tenant;
    SHA256((const unsigned char *)"one", 3, v[0].sha256);
    SHA256((const unsigned char *)"two", 3, v[1].sha256);
    T_EQ(check(&t, NULL, SCOPE_READ, &tenant), AUTH_NO_TOKEN);
    T_EQ(check(&t, "Basic one", SCOPE_READ, &tenant), AUTH_NO_TOKEN);
    T_EQ(check(&t, "Bearer ", SCOPE_READ, &tenant), AUTH_NO_TOKEN);
    T_EQ(check(&t, "Bearer onE", SCOPE_READ, &tenant), AUTH_BAD_TOKEN);
    T_EQ(check(&t, "Bearer one", SCOPE_WRITE, &tenant), AUTH_SCOPE);
    T_EQ(check(&t, "bearer  one", SCOPE_READ, &tenant), AUTH_OK);
    T_OK(slice_is(tenant, "shop"));
    T_EQ(check(&t, "Bearer two", SCOPE_WRITE, &tenant), AUTH_OK);
    T_OK(slice_is(tenant, "bank"));
}
