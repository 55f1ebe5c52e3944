/* Idempotency keys, hashed. Each part of a hash has its length in front, so that different requests
 * never hash the same bytes. Tested in tests/unit/server/http.c and tests/integration/keyed.py. */
#include "server/request_key.h"
#include "id/diag.h"

#include <openssl/evp.h>
#include <stdlib.h>

struct hash {
    EVP_MD_CTX *ctx;
    bool bad;
};

static void add_number(struct hash *h, uint64_t v)
{
    h->bad |= EVP_DigestUpdate(h->ctx, &v, sizeof v) != 1;
}

static void add_text(struct hash *h, const char *p, size_t len)
{
    add_number(h, len);
    if (len)
        h->bad |= EVP_DigestUpdate(h->ctx, p, len) != 1;
}

static bool finish(struct hash *h, uint8_t out[EVP_MAX_MD_SIZE])
{
    return !h->bad && EVP_DigestFinal_ex(h->ctx, out, NULL) == 1;
}

static bool hash_key(struct hash *h, struct service_ctx *ctx, struct request_who who,
                     struct slice key, const struct request_args *a, struct nonce *out)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    char sort;
    const char *name = guard_who(ctx, who.peer, who.authorization, &sort);
    h->bad = EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1;
    add_text(h, &sort, 1);
    add_text(h, name, name ? strlen(name) : 0);
    add_text(h, a->kind, a->kind ? strlen(a->kind) : 0);
    add_text(h, a->seq.p, a->seq.len);
    add_text(h, key.p, key.len);
    if (!finish(h, digest))
        return false;
    memcpy(out->b, digest, sizeof out->b);
    return true;
}

static bool hash_args(struct hash *h, const struct request_args *a, uint64_t *out)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    h->bad = EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL) != 1;
    add_text(h, a->prefix.p, a->prefix.len);
    add_text(h, a->name_space.p, a->name_space.len);
    add_text(h, a->name.p, a->name.len);
    add_number(h, a->n);
    add_number(h, a->shard);
    add_number(h, a->length);
    if (!finish(h, digest))
        return false;
    *out = 0;
    for (int i = 0; i < 6; i++)
        *out = *out << 8 | digest[i];
    return true;
}

int request_key_new(struct service_ctx *ctx, struct request_who who, struct slice key,
                    const struct request_args *args, struct keyed **out, struct firn_diag *d)
{
    bool printable = key.len >= 1 && key.len <= REQUEST_KEY_MAX;
    for (size_t i = 0; printable && i < key.len; i++)
        printable = key.p[i] >= ' ' && key.p[i] <= '~';
    if (!printable)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "a key has 1 to %d printable ASCII characters; a UUID is a good one",
                          REQUEST_KEY_MAX);
    struct keyed *k = calloc(1, sizeof *k);
    struct hash h = { EVP_MD_CTX_new(), false };
    bool good = k && h.ctx && hash_key(&h, ctx, who, key, args, &k->ask.key) &&
                hash_args(&h, args, &k->ask.args);
    EVP_MD_CTX_free(h.ctx);
    if (!good) {
        free(k);
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    }
    k->ask.want = args->n;
    k->idem.args = k->ask.args;
    *out = k;
    return 0;
}

int request_key_add(struct keyed *k, const char *text, size_t len)
{
    size_t at = strlen(k->idem.ids), gap = at > 0;
    if (k->idem.count == REQUEST_KEY_IDS_MAX || at + gap + len > IDEM_IDS_MAX)
        return FIRN_ENOSPC;
    if (gap)
        k->idem.ids[at++] = ' ';
    memcpy(k->idem.ids + at, text, len);
    k->idem.ids[at + len] = '\0';
    k->idem.count++;
    return 0;
}

bool request_key_next(const struct keyed *k, size_t *at, struct slice *out)
{
    const char *p = k->idem.ids + *at;
    size_t len = strcspn(p, " ");
    *out = (struct slice){ p, len };
    *at += len + (p[len] == ' ');
    return len > 0;
}
