/*
 * Tokens: any bytes as a token are refused, for nobody can sign them here. And any bytes as header
 * or claims of a token that is signed rightly are taken or refused without harm; what is taken can
 * be sent as headers, and the cache answers alike. The first byte chooses what the others are.
 */
#include "proxy/jwt.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <string.h>

static const char secret[] = "0123456789abcdef0123456789abcdef";
static char token[64 * 1024];
static size_t len;

static void check(int ok)
{
    if (!ok)
        abort();
}

static void add(const void *p, size_t n)
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const uint8_t *b = p;
    uint32_t bits = 0;
    int have = 0;
    for (size_t i = 0; i < n; i++) {
        bits = bits << 8 | b[i];
        for (have += 8; have >= 6; have -= 6)
            token[len++] = set[bits >> (have - 6) & 63];
    }
    if (have > 0)
        token[len++] = set[bits << (6 - have) & 63];
}

static void sign(const void *header, size_t header_len, const void *claims, size_t claims_len)
{
    unsigned char sum[32];
    len = 0;
    add(header, header_len);
    token[len++] = '.';
    add(claims, claims_len);
    HMAC(EVP_sha256(), secret, sizeof secret - 1, (unsigned char *)token, len, sum, NULL);
    token[len++] = '.';
    add(sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char header[] = "{\"alg\":\"HS256\"}", claims[] = "{\"exp\":2,\"sub\":\"a\"}";
    static const char *const audience[] = { "a", "b" };
    static struct jwks keys;
    struct jwt_rules rules = { .copy = { { "sub", "X-User-ID", true },
                                         { "roles", "X-Roles", false } },
                               .copies_n = 2,
                               .cache_size = 4 };
    struct jwt_checker *c;
    struct jwt_identity id, again;
    if (size == 0 || size > 16 * 1024)
        return 0;
    if (keys.n == 0)
        check(jwks_add_secret(&keys, NULL, secret, sizeof secret - 1, NULL) == 0);
    rules.audiences = audience;
    rules.audiences_n = data[0] & 4 ? 2 : 0;
    check(jwt_checker_new(&rules, &keys, &c) == 0);
    if ((data[0] & 3) == 0)
        sign(data + 1, size - 1, claims, sizeof claims - 1);
    else if ((data[0] & 3) == 1)
        sign(header, sizeof header - 1, data + 1, size - 1);
    else
        memcpy(token, data + 1, len = size - 1);
    enum jwt_verdict v = jwt_check(c, (struct slice){ token, len }, 1, &id);
    check(v == JWT_OK || (v != JWT_SIGNATURE && v != JWT_INTERNAL) || (data[0] & 3) > 1);
    check(v != JWT_OK || (data[0] & 3) < 2); /* nobody guesses an HMAC */
    if (v == JWT_OK) {
        check(id.until_s > 1 && jwt_copy_of(&id, 0).len > 0);
        for (size_t i = 0; i < 2; i++) {
            struct slice s = jwt_copy_of(&id, i);
            for (size_t k = 0; k < s.len; k++)
                check(s.p[k] != '\r' && s.p[k] != '\n' && s.p[k] != '\0');
        }
        check(jwt_check(c, (struct slice){ token, len }, 1, &again) == JWT_OK);
        check(jwt_copy_of(&again, 0).len == jwt_copy_of(&id, 0).len);
    }
    jwt_checker_free(c);
    return 0;
}
