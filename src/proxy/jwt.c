/*
 * The checker: header, key, signature, claims, in this order, and the cache in front of them.
 *
 * The cache is a table of sets of four places. A token is known by its SHA-256, all of it, so that
 * a place never answers for another token. A set that is full gives up the place that expired, or
 * the one that was used longest ago. Only valid tokens are kept: what is refused costs its
 * verification each time, which the limit by address bounds.
 */
#include "proxy/jwt.h"
#include "platform/assert.h"
#include "proxy/base64url.h"
#include "wire/http_line.h"
#include "wire/json_read.h"
#include "wire/latency.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    DIGEST_BYTES = 32,
    SIGNATURE_MAX = JWKS_RSA_BITS_MAX / 8,
    CACHE_WAYS = 4,
    CACHE_MAX = 1 << 20,
    NUMERAL_MAX = 64,
};

/* Beyond it a double is not exact; it is after the year 200,000,000. */
static const double TIME_MAX = 9007199254740991.0;

struct place {
    unsigned char digest[DIGEST_BYTES];
    uint64_t used;   /* of checker.turn; 0: free */
    int64_t until_s; /* when it must be verified again */
    struct jwt_identity id;
};

struct jwt_checker {
    struct jwt_rules rules;
    const struct jwks *keys;
    EVP_MD_CTX *ctx;
    EVP_MD *sha256;
    struct place *places;
    size_t sets; /* a power of two, or 0 */
    uint64_t turn;
    struct jwt_stats own_stats, *stats;
};

static const struct {
    const char *name, *text;
} verdicts[] = {
#define X(name_, word, text_) [JWT_##name_] = { word, text_ },
    JWT_VERDICTS(X)
#undef X
};

const char *jwt_verdict_name(enum jwt_verdict v)
{
    return verdicts[v].name;
}

const char *jwt_verdict_text(enum jwt_verdict v)
{
    return verdicts[v].text;
}

const char *jwt_challenge(enum jwt_verdict v)
{
    return v == JWT_MISSING ? "Bearer" : "Bearer error=\"invalid_token\"";
}

struct slice jwt_bearer(struct slice a)
{
    static const char word[] = "bearer ";
    const size_t n = sizeof word - 1;
    const struct slice none = { NULL, 0 };
    if (!a.p || a.len <= n || strncasecmp(a.p, word, n) != 0)
        return none;
    a = (struct slice){ a.p + n, a.len - n };
    while (a.len > 0 && a.p[0] == ' ')
        a = (struct slice){ a.p + 1, a.len - 1 };
    return a.len > 0 ? a : none;
}

/* ---- header ---- */

struct header {
    char alg[16], kid[JWKS_KID_MAX + 1];
    size_t alg_len, kid_len;
    bool has_alg, has_kid, critical;
};

/* A member that may be there once. */
static int once(bool *seen)
{
    bool again = *seen;
    *seen = true;
    return again ? FIRN_EFORMAT : 0;
}

static enum jwt_verdict read_header(const char *p, size_t len, struct header *h)
{
    struct json_reader j;
    char name[JWT_HEADER_MAX];
    json_start(&j, p, len, NULL);
    int r = json_object(&j);
    while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0) {
        if (strcmp(name, "alg") == 0) {
            r = once(&h->has_alg);
            r = r ? r : json_string(&j, h->alg, sizeof h->alg, &h->alg_len);
        } else if (strcmp(name, "kid") == 0) {
            r = once(&h->has_kid);
            r = r ? r : json_string(&j, h->kid, sizeof h->kid, &h->kid_len);
        } else {
            h->critical |= strcmp(name, "crit") == 0;
            r = json_skip(&j);
        }
    }
    if (r || json_finish(&j) || !h->has_alg)
        return JWT_HEADER;
    return h->critical ? JWT_CRITICAL : JWT_OK;
}

/* ---- signature ---- */

/* r and s of 32 bytes each as DER: SEQUENCE { INTEGER r, INTEGER s }. Returns its length. */
static size_t der_signature(const unsigned char rs[64], unsigned char out[72])
{
    size_t n = 2;
    for (int i = 0; i < 2; i++) {
        const unsigned char *v = rs + 32 * i;
        size_t len = 32;
        while (len > 1 && *v == 0) {
            v++;
            len--;
        }
        size_t sign = *v >> 7; /* a zero in front keeps it positive */
        out[n++] = 2;
        out[n++] = (unsigned char)(len + sign);
        if (sign)
            out[n++] = 0;
        memcpy(out + n, v, len);
        n += len;
    }
    out[0] = 0x30;
    out[1] = (unsigned char)(n - 2);
    return n;
}

static bool hmac_right(const struct jwks_key *k, struct slice input, const unsigned char *sig,
                       size_t len)
{
    unsigned char want[DIGEST_BYTES];
    return len == DIGEST_BYTES &&
           HMAC(EVP_sha256(), k->secret, (int)k->secret_len, (const unsigned char *)input.p,
                input.len, want, NULL) &&
           CRYPTO_memcmp(want, sig, DIGEST_BYTES) == 0;
}

static bool signature_right(struct jwt_checker *c, const struct jwks_key *k, struct slice input,
                            const unsigned char *sig, size_t len)
{
    unsigned char der[72];
    if (k->alg == JWT_HS256)
        return hmac_right(k, input, sig, len);
    if (k->alg == JWT_ES256) {
        if (len != 64)
            return false;
        len = der_signature(sig, der);
        sig = der;
    }
    EVP_MD_CTX_reset(c->ctx);
    bool right = EVP_DigestVerifyInit_ex(c->ctx, NULL, k->alg == JWT_EDDSA ? NULL : "SHA256", NULL,
                                         NULL, k->pkey, NULL) == 1 &&
                 EVP_DigestVerify(c->ctx, sig, len, (const unsigned char *)input.p, input.len) == 1;
    ERR_clear_error();
    return right;
}

/* ---- claims ---- */

struct claims {
    const struct jwt_rules *rules;
    struct jwt_identity *id;
    double exp, nbf;
    bool has_exp, has_nbf, has_iss, has_aud;
    bool issuer, audience; /* one that is wanted */
    bool copied[JWT_COPIES_MAX];
    char value[JWT_COPIES_MAX][JWT_TEXT_MAX]; /* in the order of the rules, not of the token */
    size_t len[JWT_COPIES_MAX];
};

/* A number in a NUL-terminated copy, for strtod(). */
static int read_time(struct json_reader *j, double *out)
{
    struct slice s = { NULL, 0 };
    char text[NUMERAL_MAX];
    int r = json_next(j) == JSON_NUMBER ? json_numeral(j, &s) : FIRN_EFORMAT;
    if (r || s.len >= sizeof text)
        return FIRN_EFORMAT;
    memcpy(text, s.p, s.len);
    text[s.len] = '\0';
    *out = strtod(text, NULL);
    return *out >= -TIME_MAX && *out <= TIME_MAX ? 0 : FIRN_EFORMAT;
}

/* A string that may be one of `want`. One that is too long for the buffer is none of them, but the
 * reader cannot go on behind it: such a token is refused. */
static int read_one_of(struct json_reader *j, const char *const *want, size_t n, bool *hit)
{
    char text[JWT_PAYLOAD_MAX];
    int r = json_string(j, text, sizeof text, NULL);
    for (size_t i = 0; r == 0 && i < n; i++)
        *hit |= strcmp(text, want[i]) == 0;
    return r;
}

static int read_audience(struct json_reader *j, struct claims *c)
{
    const struct jwt_rules *rules = c->rules;
    if (json_next(j) != JSON_ARRAY)
        return read_one_of(j, rules->audiences, rules->audiences_n, &c->audience);
    int r = json_array(j);
    while (r == 0 && (r = json_element(j)) > 0)
        r = read_one_of(j, rules->audiences, rules->audiences_n, &c->audience);
    return r;
}

/* FIRN_ERANGE: it cannot be a header's value. */
static int sendable(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!http_is(p[i], HTTP_VALUE))
            return FIRN_ERANGE;
    return len > 0 && (strchr(" \t", p[0]) || strchr(" \t", p[len - 1])) ? FIRN_ERANGE : 0;
}

static int copy_list(struct json_reader *j, char *out, size_t *out_len)
{
    size_t n = 0;
    int r = json_array(j);
    while (r == 0 && (r = json_element(j)) > 0) {
        size_t len = 0;
        if (n > 0 && n < JWT_TEXT_MAX - 1)
            out[n++] = ',';
        r = json_next(j) == JSON_STRING ? json_string(j, out + n, JWT_TEXT_MAX - n, &len)
                                        : FIRN_ERANGE;
        if (r == 0 && (len == 0 || memchr(out + n, ',', len)))
            r = FIRN_ERANGE; /* the service could not tell where it ends */
        r = r ? r : sendable(out + n, len);
        n += len;
    }
    *out_len = n;
    return r;
}

static int copy_claim(struct json_reader *j, char *out, size_t *out_len)
{
    struct slice s = { NULL, 0 };
    bool yes = false;
    int r = FIRN_ERANGE;
    switch (json_next(j)) {
    case JSON_STRING:
        r = json_string(j, out, JWT_TEXT_MAX, out_len);
        break;
    case JSON_ARRAY:
        return copy_list(j, out, out_len);
    case JSON_NUMBER:
        r = json_numeral(j, &s);
        break;
    case JSON_BOOL:
        r = json_boolean(j, &yes);
        s = yes ? (struct slice){ "true", 4 } : (struct slice){ "false", 5 };
        break;
    case JSON_NULL:
        *out_len = 0;
        return json_skip(j);
    case JSON_OBJECT:
    case JSON_OTHER:
        return FIRN_ERANGE;
    }
    if (r == 0 && s.p) {
        if (s.len > JWT_TEXT_MAX)
            return FIRN_ERANGE;
        memcpy(out, s.p, s.len);
        *out_len = s.len;
    }
    return r ? r : sendable(out, *out_len);
}

/* One claim may be wanted by several headers, and be checked besides: each reads it anew. */
static int copy_all(const struct json_reader *at, const char *name, struct claims *c)
{
    for (size_t i = 0; i < c->rules->copies_n; i++) {
        struct json_reader j = *at;
        if (strcmp(name, c->rules->copy[i].claim) != 0)
            continue;
        int r = once(&c->copied[i]);
        if (r == 0)
            r = copy_claim(&j, c->value[i], &c->len[i]);
        if (r)
            return r == FIRN_EFORMAT ? r : FIRN_ERANGE;
    }
    return 0;
}

static int read_claim(struct json_reader *j, const char *name, struct claims *c)
{
    const struct jwt_rules *rules = c->rules;
    int r = copy_all(j, name, c);
    if (r)
        return r;
    if (strcmp(name, "exp") == 0)
        return once(&c->has_exp) ? FIRN_EFORMAT : read_time(j, &c->exp);
    if (strcmp(name, "nbf") == 0)
        return once(&c->has_nbf) ? FIRN_EFORMAT : read_time(j, &c->nbf);
    if (strcmp(name, "iss") == 0)
        return once(&c->has_iss) ? FIRN_EFORMAT
                                 : read_one_of(j, rules->issuers, rules->issuers_n, &c->issuer);
    if (strcmp(name, "aud") == 0)
        return once(&c->has_aud) ? FIRN_EFORMAT : read_audience(j, c);
    return json_skip(j);
}

static int64_t seconds_up(double t) /* of a number within TIME_MAX */
{
    int64_t whole = (int64_t)t;
    return whole + ((double)whole < t);
}

static enum jwt_verdict judge_claims(const struct claims *c, int64_t now_s)
{
    const struct jwt_rules *rules = c->rules;
    if (!c->has_exp && !rules->expiry_optional)
        return JWT_NO_EXPIRY;
    if (now_s >= c->id->until_s)
        return JWT_EXPIRED;
    if (now_s < c->id->from_s)
        return JWT_NOT_YET;
    if (rules->issuers_n > 0 && !c->issuer)
        return JWT_ISSUER;
    if (rules->audiences_n > 0 && !c->audience)
        return JWT_AUDIENCE;
    for (size_t i = 0; i < rules->copies_n; i++)
        if (rules->copy[i].required && c->len[i] == 0)
            return JWT_CLAIM_MISSING;
    return JWT_OK;
}

/* The values one behind the other. False: too long together. */
static bool pack(const struct claims *c, struct jwt_identity *id)
{
    size_t n = 0;
    for (size_t i = 0; i < c->rules->copies_n; i++) {
        if (c->len[i] > sizeof id->text - n)
            return false;
        memcpy(id->text + n, c->value[i], c->len[i]);
        id->end[i] = (uint16_t)(n += c->len[i]);
    }
    return true;
}

static enum jwt_verdict read_claims(const struct jwt_rules *rules, const char *p, size_t len,
                                    int64_t now_s, struct jwt_identity *id)
{
    struct json_reader j;
    struct claims c;
    char name[JWT_PAYLOAD_MAX];
    memset(&c, 0, offsetof(struct claims, value));
    memset(c.len, 0, sizeof c.len);
    c.rules = rules;
    c.id = id;
    json_start(&j, p, len, NULL);
    int r = json_object(&j);
    while (r == 0 && (r = json_member(&j, name, sizeof name)) > 0)
        r = read_claim(&j, name, &c);
    if (r == FIRN_ERANGE)
        return JWT_CLAIM_VALUE;
    if (r || json_finish(&j))
        return JWT_CLAIMS;
    *id = (struct jwt_identity){ .from_s = INT64_MIN, .until_s = INT64_MAX };
    if (c.has_exp)
        id->until_s = seconds_up(c.exp) + rules->leeway_s;
    if (c.has_nbf)
        id->from_s = seconds_up(c.nbf) - rules->leeway_s;
    enum jwt_verdict v = judge_claims(&c, now_s);
    return v == JWT_OK && !pack(&c, id) ? JWT_CLAIM_VALUE : v;
}

/* ---- the whole ---- */

static enum jwt_verdict verify(struct jwt_checker *c, struct slice token, int64_t now_s,
                               struct jwt_identity *id)
{
    char header[JWT_HEADER_MAX], payload[JWT_PAYLOAD_MAX];
    unsigned char sig[SIGNATURE_MAX];
    size_t header_len, payload_len, sig_len;
    struct header h = { .has_alg = false };
    bool ambiguous;
    const char *end = token.p + token.len, *dot = memchr(token.p, '.', token.len);
    const char *last = dot ? memchr(dot + 1, '.', (size_t)(end - dot - 1)) : NULL;
    if (!last)
        return JWT_FORMAT;
    int r = base64url_read((struct slice){ token.p, (size_t)(dot - token.p) }, header,
                           sizeof header, &header_len);
    if (r == 0)
        r = base64url_read((struct slice){ last + 1, (size_t)(end - last - 1) }, sig, sizeof sig,
                           &sig_len); /* a fourth part would not be base64url */
    if (r)
        return r == FIRN_ENOSPC ? JWT_TOO_LONG : JWT_FORMAT;
    enum jwt_verdict v = read_header(header, header_len, &h);
    if (v)
        return v;
    const struct slice alg = { h.alg, h.alg_len };
    const struct slice kid = { h.has_kid ? h.kid : NULL, h.kid_len };
    const struct jwks_key *k = jwks_find(c->keys, alg, kid, &ambiguous);
    if (!k && kid.p && !jwks_knows(c->keys, kid))
        return JWT_UNKNOWN_KEY;
    if (!k)
        return ambiguous ? JWT_AMBIGUOUS_KEY : JWT_ALGORITHM;
    if (!signature_right(c, k, (struct slice){ token.p, (size_t)(last - token.p) }, sig, sig_len))
        return JWT_SIGNATURE;
    r = base64url_read((struct slice){ dot + 1, (size_t)(last - dot - 1) }, payload, sizeof payload,
                       &payload_len);
    if (r)
        return r == FIRN_ENOSPC ? JWT_TOO_LONG : JWT_FORMAT;
    return read_claims(&c->rules, payload, payload_len, now_s, id);
}

/* ---- the cache ---- */

static struct place *set_of(const struct jwt_checker *c, const unsigned char *digest)
{
    uint64_t n;
    memcpy(&n, digest, sizeof n);
    return &c->places[(n & (c->sets - 1)) * CACHE_WAYS];
}

static struct place *cached(const struct jwt_checker *c, const unsigned char *digest)
{
    struct place *set = set_of(c, digest);
    for (int i = 0; i < CACHE_WAYS; i++)
        if (set[i].used && memcmp(set[i].digest, digest, DIGEST_BYTES) == 0)
            return &set[i];
    return NULL;
}

static void keep(struct jwt_checker *c, const unsigned char *digest, int64_t now_s,
                 const struct jwt_identity *id)
{
    struct place *set = set_of(c, digest), *to = cached(c, digest);
    const uint32_t max_s = c->rules.cached_max_s;
    for (int i = 0; !to && i < CACHE_WAYS; i++)
        if (!set[i].used || set[i].until_s <= now_s)
            to = &set[i];
    if (!to) {
        to = set;
        for (int i = 1; i < CACHE_WAYS; i++)
            if (set[i].used < to->used)
                to = &set[i];
    }
    memcpy(to->digest, digest, DIGEST_BYTES);
    to->used = ++c->turn;
    to->until_s = max_s && id->until_s - now_s > max_s ? now_s + max_s : id->until_s;
    to->id = *id;
}

static enum jwt_verdict check(struct jwt_checker *c, struct slice token, int64_t now_s,
                              struct jwt_identity *out)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    struct jwt_identity id;
    if (!token.p || token.len == 0)
        return JWT_MISSING;
    if (token.len > JWT_TOKEN_MAX)
        return JWT_TOO_LONG;
    EVP_MD_CTX_reset(c->ctx);
    bool use = c->sets > 0 && EVP_DigestInit_ex2(c->ctx, c->sha256, NULL) == 1 &&
               EVP_DigestUpdate(c->ctx, token.p, token.len) == 1 &&
               EVP_DigestFinal_ex(c->ctx, digest, NULL) == 1;
    struct place *hit = use ? cached(c, digest) : NULL;
    if (hit && now_s < hit->until_s && now_s >= hit->id.from_s) {
        hit->used = ++c->turn;
        latency__more(&c->stats->hits, 1);
        *out = hit->id;
        return JWT_OK;
    }
    latency__more(&c->stats->misses, 1);
    enum jwt_verdict v = verify(c, token, now_s, &id);
    if (v != JWT_OK)
        return v;
    if (use)
        keep(c, digest, now_s, &id);
    *out = id;
    return JWT_OK;
}

enum jwt_verdict jwt_check(struct jwt_checker *c, struct slice token, int64_t now_s,
                           struct jwt_identity *out)
{
    enum jwt_verdict v = check(c, token, now_s, out);
    latency__more(&c->stats->verdict[v], 1);
    return v;
}

void jwt_stats(const struct jwt_checker *c, struct jwt_stats *out)
{
    *out = *c->stats;
}

int jwt_checker_new(const struct jwt_rules *rules, const struct jwks *keys,
                    struct jwt_checker **out)
{
    if (rules->copies_n > JWT_COPIES_MAX || rules->cache_size > CACHE_MAX)
        return FIRN_EINVAL;
    struct jwt_checker *c = calloc(1, sizeof *c);
    if (!c)
        return FIRN_ENOMEM;
    c->rules = *rules;
    c->stats = rules->stats ? rules->stats : &c->own_stats;
    c->keys = keys;
    c->ctx = EVP_MD_CTX_new();
    c->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (rules->cache_size > 0) {
        for (c->sets = 1; c->sets * CACHE_WAYS < rules->cache_size;)
            c->sets *= 2;
        c->places = calloc(c->sets * CACHE_WAYS, sizeof *c->places);
    }
    if (!c->ctx || !c->sha256 || (c->sets && !c->places)) {
        jwt_checker_free(c);
        return FIRN_ENOMEM;
    }
    *out = c;
    return 0;
}

void jwt_checker_keys(struct jwt_checker *c, const struct jwks *keys)
{
    c->keys = keys;
    for (size_t i = 0; i < c->sets * CACHE_WAYS; i++)
        c->places[i].used = 0;
}

void jwt_checker_free(struct jwt_checker *c)
{
    if (!c)
        return;
    EVP_MD_CTX_free(c->ctx);
    EVP_MD_free(c->sha256);
    free(c->places);
    free(c);
}
