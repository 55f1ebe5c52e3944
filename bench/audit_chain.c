/*
 * What the audit log's tamper evidence costs: CPU time a row, by part, for several sizes of a
 * batch.
 *
 *     bench/audit_chain [ROWS]       about 400,000 by default
 *
 * Time is that of the process (CLOCK_PROCESS_CPUTIME_ID), so other programs disturb it little; each
 * part is measured five times, and the least counts.
 */
#include "auditlog/proof.h"
#include "auditlog/verify.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPEATS = 5 };

static struct slice text(const char *s)
{
    return (struct slice){ s, strlen(s) };
}

static struct chain_row row(uint64_t id)
{
    return (struct chain_row){
        .id = id,
        .map_version = 7,
        .at_us = INT64_C(1763510400000000) + (int64_t)id,
        .tenant = text("acme"),
        .user = text("user-4711"),
        .actor = text("admin@example.com"),
        .action = text("profile.email.changed"),
        .detail = text(
            "{\"field\":\"email\",\"old\":\"alice@example.com\",\"new\":"
            "\"alice.liddell@example.org\",\"reason\":\"requested by phone\",\"ticket\":48213}")
    };
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void must(int r)
{
    if (r == 0)
        return;
    fprintf(stderr, "bench/audit_chain: %s\n", firn_error_name(r));
    exit(1);
}

static struct head_signer *new_signer(struct head_keys *keys)
{
    EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    BIO *bio = BIO_new(BIO_s_mem());
    char pem[512];
    struct buf public = { .max = 4096 };
    struct head_signer *s = NULL;
    if (!key || !bio || PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        must(FIRN_ENOMEM);
    int n = BIO_read(bio, pem, sizeof pem);
    must(head_signer_new((struct slice){ pem, (size_t)n }, &s, NULL));
    head_signer_public(s, &public);
    must(head_keys_add(keys, (struct slice){ public.p, public.len }, NULL));
    buf_done(&public);
    BIO_free(bio);
    EVP_PKEY_free(key);
    return s;
}

static bool found(void *user, const struct finding *f)
{
    (void)user;
    fprintf(stderr, "bench/audit_chain: %s\n", finding_title(f->kind));
    exit(1);
}

/* CPU time a row: digest of rows; batch (tree, index, head); signature; verification. */
static void measure(size_t rows, size_t size, const struct head_signer *s,
                    const struct head_keys *keys, double out[4])
{
    struct chain_batch b;
    struct chain c;
    struct head h;
    struct head_sig sig;
    struct verify_rows *v;
    double took[4] = { 0 };
    size_t batches = rows / size ? rows / size : 1;
    must(chain_batch_open(&b));
    must(chain_start(&c, 3, "app-1"));
    must(verify_rows_new(3, 0, UINT64_MAX, found, NULL, &v));
    for (size_t i = 0; i < batches; i++) {
        uint64_t first = 1000000 + i * size;
        double at[6];
        chain_batch_clear(&b);
        at[0] = now_us();
        for (size_t k = 0; k < size; k++) {
            struct chain_row r = row(first + k);
            must(chain_batch_add(&b, &r));
        }
        at[1] = now_us();
        must(chain_batch_end(&b));
        must(chain_head(&c, &b, 0, &h));
        chain_advance(&c, &b.hasher.sha, &h);
        at[2] = now_us();
        must(head_sign(s, &h, &sig));
        at[3] = now_us();
        must(head_check(keys, &h, &sig));
        must(verify_rows_head(v, &h, (struct slice){ b.index.p, b.index.len }));
        for (size_t k = 0; k < size; k++) {
            struct chain_row r = row(first + k);
            must(verify_rows_row(v, &r));
        }
        at[4] = now_us();
        for (int k = 0; k < 4; k++)
            took[k] += at[k + 1] - at[k];
    }
    must(verify_rows_end(v));
    verify_rows_free(v);
    chain_batch_close(&b);
    for (int k = 0; k < 4; k++) {
        double each = took[k] / (double)(batches * size);
        out[k] = out[k] == 0 || each < out[k] ? each : out[k];
    }
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = { 1, 8, 32, 128, 512 };
    size_t rows = argc > 1 ? strtoul(argv[1], NULL, 10) : 400000;
    struct head_keys *keys;
    must(head_keys_new(&keys));
    struct head_signer *s = new_signer(keys);
    printf("CPU time per row in microseconds; detail of %zu bytes\n", row(1).detail.len);
    printf("%6s %10s %10s %10s %10s %12s\n", "batch", "digest", "tree+head", "sum", "signature",
           "verification");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double us[4] = { 0 };
        for (int k = 0; k < REPEATS; k++)
            measure(rows / REPEATS / (sizes[i] < 32 ? 8 : 1), sizes[i], s, keys, us);
        printf("%6zu %10.3f %10.3f %10.3f %10.3f %12.3f\n", sizes[i], us[0], us[1], us[0] + us[1],
               us[2], us[3]);
    }
    head_signer_free(s);
    head_keys_free(keys);
    return 0;
}
