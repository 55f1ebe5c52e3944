/* Tokens: the RFCs' examples, every verdict, confusion attacks, damage at every byte, the cache. */
#include "proxy/jwt.h"
#include "jose.h"
#include "t.h"

static const int64_t now = 1800000000;
static const char *const issuer[] = { "https://issuer.example" };
static const char *const audience[] = { "shop", "shop-admin" };
static const char good[] = "{\"iss\":\"https://issuer.example\",\"aud\":\"shop\",\"sub\":\"456\","
                           "\"exp\":1800000060,\"nbf\":1799999990,\"roles\":[\"a\",\"b\"]}";

static const struct jwt_rules rules_all = {
    .issuers = issuer,
    .issuers_n = 1,
    .audiences = audience,
    .audiences_n = 2,
    .copy = { { "sub", "X-User-ID", true }, { "roles", "X-Roles", false } },
    .copies_n = 2,
    .cache_size = 64,
};

static struct jwks set;
static struct jose_key key;
static char token[JOSE_TOKEN_BUF];
static struct jwt_identity id;

static struct slice of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static struct jwt_checker *checker(const char *alg, const struct jwt_rules *rules)
{
    struct jwt_checker *c;
    struct firn_diag why;
    char text[4096] = "";
    jwks_done(&set);
    key = jose_key_new(alg);
    jose_jwk(text, &key, "k1");
    T_EQ(jwks_read(&set, text, strlen(text), &why), 0, "%s", why.text);
    T_EQ(jwt_checker_new(rules, &set, &c), 0);
    return c;
}

static void done(struct jwt_checker *c)
{
    jwt_checker_free(c);
    jose_key_done(&key);
    jwks_done(&set);
}

static const char *verdict(struct jwt_checker *c, const char *text)
{
    return jwt_verdict_name(jwt_check(c, of(text), now, &id));
}

static const char *claims(struct jwt_checker *c, const char *text)
{
    char header[64];
    sprintf(header, "{\"alg\":\"%s\",\"kid\":\"k1\"}", key.alg);
    jose_sign(token, &key, header, text);
    return verdict(c, token);
}

static const char *const algs[] = { "HS256", "RS256", "ES256", "EdDSA" };

T_TEST(good_tokens)
{
    for (size_t i = 0; i < T_LEN(algs); i++) {
        struct jwt_checker *c = checker(algs[i], &rules_all);
        T_STR(claims(c, good), "ok", "%s", algs[i]);
        struct slice user = jwt_copy_of(&id, 0), roles = jwt_copy_of(&id, 1);
        T_OK(slice_is(user, "456") && slice_is(roles, "a,b"));
        T_EQ(id.until_s, 1800000060);
        done(c);
    }
}

/* RFC 7515, A.1 to A.3, and RFC 8037, A.4 (whose payload is no JSON: its signature must be right,
 * which the next verdict shows). */
T_TEST(rfc_examples)
{
    static const char payload[] =
        ".eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFt"
        "cGxlLmNvbS9pc19yb290Ijp0cnVlfQ.";
    static const struct {
        const char *jwk, *header, *payload, *sig, *verdict;
    } row[] = {
        { "{\"kty\":\"oct\",\"k\":\"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcg"
          "UuTwjAzZr1Z9CAow\"}",
          "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9", payload,
          "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "ok" },
        { "{\"kty\":\"RSA\",\"n\":\"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4"
          "qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-b"
          "Sf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT"
          "6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ\","
          "\"e\":\"AQAB\"}",
          "eyJhbGciOiJSUzI1NiJ9", payload,
          "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5juj"
          "Gbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe"
          "7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8"
          "np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
          "ok" },
        { "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\",\"y\":"
          "\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}",
          "eyJhbGciOiJFUzI1NiJ9", payload,
          "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
          "ok" },
        { "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}",
          "eyJhbGciOiJFZERTQSJ9", ".RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.",
          "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
          "claims" },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct jwt_rules rules = { 0 };
        struct jwt_checker *c;
        jwks_done(&set);
        T_EQ(jwks_read(&set, row[i].jwk, strlen(row[i].jwk), NULL), 0);
        T_EQ(jwt_checker_new(&rules, &set, &c), 0);
        sprintf(token, "%s%s%s", row[i].header, row[i].payload, row[i].sig);
        T_STR(jwt_verdict_name(jwt_check(c, of(token), 1300819379, &id)), row[i].verdict, "row %zu",
              i);
        token[strlen(token) - 4] ^= 1;
        T_STR(jwt_verdict_name(jwt_check(c, of(token), 1300819379, &id)), "signature", "row %zu",
              i);
        jwt_checker_free(c);
    }
    jwks_done(&set);
}

T_TEST(verdicts_of_claims)
{
#define REST "\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"sub\":\"1\""
    static const struct {
        const char *claims, *verdict;
    } row[] = {
        { "{" REST ",\"exp\":1800000001}", "ok" },
        { "{" REST ",\"exp\":1800000000}", "expired" },
        { "{" REST ",\"exp\":1800000000.5}", "ok" },
        { "{" REST ",\"exp\":1.8e9}", "expired" },
        { "{" REST ",\"exp\":-1}", "expired" },
        { "{" REST ",\"exp\":1e400}", "claims" },
        { "{" REST ",\"exp\":9007199254740991}", "ok" },
        { "{" REST ",\"exp\":\"1800000001\"}", "claims" },
        { "{" REST ",\"exp\":null}", "claims" },
        { "{" REST ",\"exp\":1800000001,\"exp\":1800000001}", "claims" },
        { "{" REST "}", "no_expiry" },
        { "{" REST ",\"exp\":1800000001,\"nbf\":1800000000}", "ok" },
        { "{" REST ",\"exp\":1800000002,\"nbf\":1800000000.5}", "not_yet" },
        { "{" REST ",\"exp\":1800000002,\"nbf\":true}", "claims" },
        { "{\"exp\":1800000001,\"iss\":\"https://issuer.example\",\"sub\":\"1\"}", "audience" },
        { "{\"exp\":1800000001,\"iss\":\"https://issuer.example\",\"sub\":\"1\",\"aud\":[]}",
          "audience" },
        { "{\"exp\":1800000001,\"iss\":\"https://issuer.example\",\"sub\":\"1\",\"aud\":[\"x\",\"shop-admin\"]}",
          "ok" },
        { "{\"exp\":1800000001,\"iss\":\"https://issuer.example\",\"sub\":\"1\",\"aud\":[\"sho\",\"shop \"]}",
          "audience" },
        { "{\"exp\":1800000001,\"iss\":\"https://issuer.example\",\"sub\":\"1\",\"aud\":{\"a\":1}}",
          "claims" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"sub\":\"1\",\"iss\":\"https://issuer.example/\"}",
          "issuer" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"sub\":\"1\",\"iss\":[\"https://issuer.example\"]}",
          "claims" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"sub\":\"1\"}", "issuer" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"iss\":\"https://issuer.example\"}",
          "claim_missing" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"sub\":\"\"}",
          "claim_missing" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"sub\":\"a\\r\\nX-Admin: 1\"}",
          "claim_value" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"sub\":\" a\"}",
          "claim_value" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"sub\":{\"a\":1}}",
          "claim_value" },
        { "{\"exp\":1800000001,\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"sub\":456}",
          "ok" },
        { "{" REST ",\"exp\":1800000001,\"sub\":\"2\"}", "claims" },
        { "{" REST ",\"exp\":1800000001,\"roles\":[\"a,b\"]}", "claim_value" },
        { "{" REST ",\"exp\":1800000001,\"roles\":[1]}", "claim_value" },
        { "{" REST ",\"exp\":1800000001,\"roles\":[]}", "ok" },
        { "{" REST ",\"exp\":1800000001,\"x\":{\"deep\":[[[[{\"exp\":1}]]]]}}", "ok" },
        { "{" REST ",\"exp\":1800000001} ", "ok" },
        { "{" REST ",\"exp\":1800000001}{}", "claims" },
        { "[]", "claims" },
        { "", "claims" },
        { "{\"a\":\"\xff\"}", "claims" },
    };
    struct jwt_checker *c = checker("HS256", &rules_all);
    for (size_t i = 0; i < T_LEN(row); i++)
        T_STR(claims(c, row[i].claims), row[i].verdict, "%s", row[i].claims);
    done(c);
}

T_TEST(verdicts_of_headers)
{
    static const struct {
        const char *header, *verdict;
    } row[] = {
        { "{\"alg\":\"HS256\"}", "ok" },
        { "{\"alg\":\"HS256\",\"kid\":\"k1\",\"typ\":\"JWT\",\"jku\":\"https://evil.example/\"}",
          "ok" },
        { "{\"alg\":\"none\"}", "algorithm" },
        { "{\"alg\":\"None\",\"kid\":\"k1\"}", "algorithm" },
        { "{\"alg\":\"hs256\"}", "algorithm" },
        { "{\"alg\":\"HS384\"}", "algorithm" },
        { "{\"alg\":\"\"}", "algorithm" },
        { "{\"alg\":\"HS256\",\"kid\":\"k2\"}", "unknown_key" },
        { "{\"alg\":\"HS256\",\"kid\":\"\"}", "unknown_key" },
        { "{\"alg\":\"HS256\",\"kid\":\"../../dev/null\"}", "unknown_key" },
        { "{\"alg\":\"HS256\",\"kid\":1}", "header" },
        { "{\"alg\":\"HS256\",\"alg\":\"HS256\"}", "header" },
        { "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}", "critical" },
        { "{\"alg\":\"HS256\",\"crit\":[]}", "critical" },
        { "{\"kid\":\"k1\"}", "header" },
        { "{\"alg\":[\"HS256\"]}", "header" },
        { "{\"alg\":null}", "header" },
        { "{}", "header" },
        { "", "header" },
        { "{\"alg\":\"HS256\"}x", "header" },
    };
    struct jwt_checker *c = checker("HS256", &rules_all);
    for (size_t i = 0; i < T_LEN(row); i++) {
        jose_sign(token, &key, row[i].header, good);
        T_STR(verdict(c, token), row[i].verdict, "%s", row[i].header);
    }
    done(c);
}

/* A token signed by HMAC with the public key as the secret, in the forms that libraries once took:
 * the key's modulus, its JWK, nothing. */
T_TEST(public_keys_are_no_secrets)
{
    char jwk[2048] = "";
    struct jwt_checker *c = checker("RS256", &rules_all);
    jose_jwk(jwk, &key, "k1");
    const char *const secret[] = { jwk, "", "AQAB" };
    for (size_t i = 0; i < T_LEN(secret); i++) {
        struct jose_key forged = { .alg = "HS256", .secret = secret[i] };
        jose_sign(token, &forged, "{\"alg\":\"HS256\",\"kid\":\"k1\"}", good);
        T_STR(verdict(c, token), "algorithm");
        jose_sign(token, &forged, "{\"alg\":\"RS256\",\"kid\":\"k1\"}", good);
        T_STR(verdict(c, token), "signature");
    }
    jose_sign(token, &key, "{\"alg\":\"none\"}", good);
    *(strrchr(token, '.') + 1) = '\0';
    T_STR(verdict(c, token), "algorithm");
    done(c);
}

T_TEST(signatures_of_the_wrong_size)
{
    struct jwt_checker *c = checker("ES256", &rules_all);
    char input[4096] = "", text[8192];
    unsigned char sig[1024] = { 0 };
    jose_base64url(input, "{\"alg\":\"ES256\"}", 15);
    strcat(input, ".");
    jose_base64url(input, good, strlen(good));
    T_EQ(jose_signature(&key, input, sig), 64);
    static const size_t size[] = { 0, 1, 63, 65, 72, 128 };
    for (size_t i = 0; i < T_LEN(size); i++) {
        sprintf(text, "%s.", input);
        jose_base64url(text, sig, size[i]);
        T_STR(verdict(c, text), "signature", "%zu bytes", size[i]);
    }
    static const unsigned char fill[] = { 0x00, 0xff }; /* r = s = 0, and beyond the order */
    for (size_t i = 0; i < T_LEN(fill); i++) {
        memset(sig, fill[i], 64);
        sprintf(text, "%s.", input);
        jose_base64url(text, sig, 64);
        T_STR(verdict(c, text), "signature");
    }
    done(c);
}

T_TEST(damage_at_every_byte)
{
    for (size_t a = 0; a < T_LEN(algs); a++) {
        struct jwt_checker *c = checker(algs[a], &rules_all);
        T_STR(claims(c, good), "ok");
        size_t len = strlen(token);
        for (size_t i = 0; i < len; i++) {
            char was = token[i];
            token[i] = was == 'A' ? 'B' : 'A';
            T_OK(strcmp(verdict(c, token), "ok") != 0, "%s: byte %zu", algs[a], i);
            token[i] = was;
            struct slice cut = { token, i };
            T_OK(jwt_check(c, cut, now, &id) != JWT_OK, "%s: %zu bytes", algs[a], i);
        }
        strcat(token, ".");
        T_STR(verdict(c, token), "format");
        done(c);
    }
}

T_TEST(sizes_are_bounded)
{
    static char text[JWT_TOKEN_MAX + 2];
    struct jwt_checker *c = checker("HS256", &rules_all);
    memset(text, 'A', JWT_TOKEN_MAX + 1);
    T_STR(verdict(c, text), "too_long");
    text[JWT_TOKEN_MAX] = '\0';
    T_STR(verdict(c, text), "format");
    text[0] = text[1] = '.';
    T_STR(verdict(c, text), "too_long"); /* its signature */
    T_STR(verdict(c, ""), "missing");
    T_STR(verdict(c, "a.b"), "format");
    T_STR(verdict(c, ".."), "header");
    static char long_sub[1024] =
        "{\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"exp\":1800000001,\"sub\":\"";
    memset(long_sub + strlen(long_sub), 'x', JWT_TEXT_MAX);
    strcat(long_sub, "\"}");
    T_STR(claims(c, long_sub), "claim_value");
    done(c);
}

T_TEST(leeway)
{
    struct jwt_rules rules = rules_all;
    rules.leeway_s = 30;
    struct jwt_checker *c = checker("HS256", &rules);
    T_STR(claims(c, "{" REST ",\"exp\":1799999971}"), "ok");
    T_STR(claims(c, "{" REST ",\"exp\":1799999970}"), "expired");
    T_STR(claims(c, "{" REST ",\"exp\":1800000001,\"nbf\":1800000030}"), "ok");
    T_STR(claims(c, "{" REST ",\"exp\":1800000001,\"nbf\":1800000031}"), "not_yet");
    done(c);
}

T_TEST(the_cache_answers_until_the_token_ends)
{
    struct jwt_stats stats;
    struct jwt_checker *c = checker("ES256", &rules_all);
    T_STR(claims(c, good), "ok");
    for (int64_t t = now; t < now + 60; t++) {
        T_EQ(jwt_check(c, of(token), t, &id), JWT_OK);
        T_OK(slice_is(jwt_copy_of(&id, 0), "456"));
    }
    jwt_stats(c, &stats);
    T_EQ(stats.hits, 60);
    T_EQ(stats.misses, 1);
    T_EQ(jwt_check(c, of(token), now + 60, &id), JWT_EXPIRED);
    T_EQ(jwt_check(c, of(token), now - 11, &id), JWT_NOT_YET); /* the clock went back */
    done(c);
}

T_TEST(other_keys_forget_the_cache)
{
    static struct jwks none;
    struct jwt_checker *c = checker("HS256", &rules_all);
    T_STR(claims(c, good), "ok");
    T_STR(verdict(c, token), "ok");
    jwt_checker_keys(c, &none);
    T_STR(verdict(c, token), "unknown_key");
    done(c);
}

/* More tokens than places: the cache gives up old ones and never mixes two up. */
T_TEST(a_full_cache)
{
    static char many[400][512];
    struct jwt_checker *c = checker("HS256", &rules_all);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 400; i++) {
            char text[256], sub[16];
            sprintf(
                text,
                "{\"aud\":\"shop\",\"iss\":\"https://issuer.example\",\"exp\":1800000%03d,\"sub\":\"%d\"}",
                100 + i, i);
            if (round == 0)
                jose_sign(many[i], &key, "{\"alg\":\"HS256\"}", text);
            sprintf(sub, "%d", i);
            T_STR(verdict(c, many[i]), "ok");
            T_OK(slice_is(jwt_copy_of(&id, 0), sub), "%d", i);
        }
    done(c);
}

T_TEST(cached_max_verifies_again)
{
    struct jwt_stats stats;
    struct jwt_rules rules = rules_all;
    rules.cached_max_s = 10;
    struct jwt_checker *c = checker("HS256", &rules);
    T_STR(claims(c, good), "ok");
    T_EQ(jwt_check(c, of(token), now + 9, &id), JWT_OK);
    T_EQ(jwt_check(c, of(token), now + 10, &id), JWT_OK);
    jwt_stats(c, &stats);
    T_EQ(stats.hits, 1);
    T_EQ(stats.misses, 2);
    done(c);
}

T_TEST(bearer)
{
    static const struct {
        const char *value, *token;
    } row[] = { { "Bearer a.b.c", "a.b.c" }, { "bearer  a", "a" }, { "BEARER a b", "a b" },
                { "Bearer ", NULL },         { "Bearer", NULL },   { "Basic abc", NULL },
                { "Bearera.b.c", NULL },     { "", NULL } };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct slice s = jwt_bearer(of(row[i].value));
        T_OK(row[i].token ? slice_is(s, row[i].token) : s.p == NULL, "'%s'", row[i].value);
    }
    T_OK(jwt_bearer((struct slice){ NULL, 0 }).p == NULL);
    T_STR(jwt_challenge(JWT_MISSING), "Bearer");
    for (int v = JWT_TOO_LONG; v <= JWT_INTERNAL; v++)
        T_STR(jwt_challenge((enum jwt_verdict)v), "Bearer error=\"invalid_token\"");
}
