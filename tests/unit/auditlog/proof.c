/* Proofs: of every row of any batch, and of nothing else, whichever bit is another. */
#include "auditlog/proof.h"
#include "audit.h"

#include <stdlib.h>

static struct chain_batch batch;
static struct chain chain;
static struct head_signer *signer;
static struct head_keys *keys;
static struct proof_head heads[8];
static uint64_t ids[300];

static void begin(void)
{
    T_EQ(chain_batch_open(&batch), 0);
    T_EQ(chain_start(&chain, 3, "app-1"), 0);
    signer = signer_of(1);
    T_EQ(head_keys_new(&keys), 0);
    add_key(keys, 1);
}

static void end(void)
{
    chain_batch_close(&batch);
    head_signer_free(signer);
    head_keys_free(keys);
}

static void commit(struct proof_head *out, size_t n, uint64_t first, bool sign)
{
    chain_batch_clear(&batch);
    for (size_t i = 0; i < n; i++) {
        ids[i] = first + 3 * i;
        struct chain_row row = row_of(ids[i]);
        T_EQ(chain_batch_add(&batch, &row), 0);
    }
    T_EQ(chain_batch_end(&batch), 0);
    *out = (struct proof_head){ .sig = { .there = false } };
    T_EQ(chain_head(&chain, &batch, 1000, &out->head), 0);
    chain_advance(&chain, &batch.hasher.sha, &out->head);
    if (sign)
        T_EQ(head_sign(signer, &out->head, &out->sig), 0);
}

static struct proof proof_of(uint64_t id, size_t heads_n)
{
    struct proof p = { .row = row_of(id), .heads = heads, .heads_n = heads_n };
    T_EQ(chain_batch_path(&batch, id, &p.place, p.path, &p.path_n), 0);
    return p;
}

static int check(const char *json, size_t len, struct firn_diag *d)
{
    struct proof p;
    int r = proof_read((struct slice){ json, len }, &p, d);
    if (r)
        return r;
    r = proof_check(&p, keys, d);
    proof_done(&p);
    return r;
}

T_TEST(every_row_of_any_batch)
{
    begin();
    for (size_t n = 1; n <= T_LEN(ids); n = n < 20 ? n + 1 : n * 2 + 1) {
        commit(&heads[0], n, 5000, true);
        for (size_t i = 0; i < n; i++) {
            struct proof p = proof_of(ids[i], 1);
            struct buf out = { .max = 1 << 20 };
            struct firn_diag d = { 0, "" };
            T_EQ(p.place, i);
            T_EQ(proof_check(&p, keys, &d), 0, "%s", d.text);
            proof_write(&p, &out);
            T_EQ(check(out.p, out.len, &d), 0, "%.*s: %s", (int)out.len, out.p, d.text);
            p.row.actor = text_of("somebody else");
            T_EQ(proof_check(&p, keys, &d), FIRN_EAUTH);
            T_OK(strstr(d.text, "was changed"), "%s", d.text);
            buf_done(&out);
        }
    }
    end();
}

T_TEST(up_to_the_next_head_that_is_signed)
{
    struct firn_diag d = { 0, "" };
    begin();
    commit(&heads[0], 5, 100, false);
    struct proof p = proof_of(103, 1);
    T_EQ(proof_check(&p, keys, &d), FIRN_ENOENT);
    T_OK(strstr(d.text, "not signed"), "%s", d.text);
    for (size_t i = 1; i < 8; i++)
        commit(&heads[i], 3, 100 + 100 * i, i == 7);
    p.heads_n = 8;
    T_EQ(proof_check(&p, keys, &d), 0, "%s", d.text);
    struct buf out = { .max = 1 << 20 };
    proof_write(&p, &out);
    T_EQ(check(out.p, out.len, &d), 0, "%s", d.text);
    buf_done(&out);
    for (size_t i = 0; i < 7; i++) { /* a head between is another, or is left out */
        struct proof_head kept = heads[i];
        heads[i].head.time_us++;
        T_EQ(proof_check(&p, keys, &d), FIRN_EAUTH, "head %zu", i);
        heads[i] = kept;
    }
    heads[3] = heads[4];
    T_EQ(proof_check(&p, keys, &d), FIRN_EAUTH);
    T_OK(strstr(d.text, "does not follow"), "%s", d.text);
    p.heads_n = 0;
    T_EQ(proof_check(&p, keys, &d), FIRN_EAUTH);
    end();
}

T_TEST(by_a_key_that_is_ours)
{
    struct head_signer *other = signer_of(2);
    struct firn_diag d = { 0, "" };
    begin();
    commit(&heads[0], 5, 100, false);
    T_EQ(head_sign(other, &heads[0].head, &heads[0].sig), 0);
    struct proof p = proof_of(100, 1);
    T_EQ(proof_check(&p, keys, &d), FIRN_ENOENT);
    T_OK(strstr(d.text, "not among yours"), "%s", d.text);
    add_key(keys, 2);
    T_EQ(proof_check(&p, keys, &d), 0, "%s", d.text);
    head_signer_free(other);
    end();
}

/* A proof is of one text: whichever bit of it is another, it proves nothing. */
T_TEST(no_bit_can_be_another)
{
    struct firn_diag d = { 0, "" };
    begin();
    commit(&heads[0], 11, 1 + t_random_below(1000000), false);
    struct proof p = proof_of(ids[t_random_below(11)], 3);
    commit(&heads[1], 2, 9000000, false);
    commit(&heads[2], 3, 9100000, true);
    struct buf out = { .max = 1 << 20 };
    proof_write(&p, &out);
    T_EQ(check(out.p, out.len, &d), 0, "%s", d.text);
    unsigned every = t_scale(2) > 1 ? 1 : 5;
    for (size_t i = t_random_below(every); i < out.len; i += every)
        for (unsigned bit = 0; bit < 8; bit++) {
            char *copy = malloc(out.len);
            memcpy(copy, out.p, out.len);
            copy[i] ^= (char)(1u << bit);
            T_OK(check(copy, out.len, &d) != 0, "byte %zu bit %u: %.*s", i, bit, (int)out.len,
                 copy);
            T_OK(d.text[0]);
            free(copy);
        }
    for (size_t cut = 0; cut < out.len; cut += every) {
        char *copy = malloc(cut + 1);
        memcpy(copy, out.p, cut);
        T_EQ(check(copy, cut, &d), FIRN_EFORMAT, "cut after %zu", cut);
        free(copy);
    }
    buf_done(&out);
    end();
}

T_TEST(texts_that_are_no_proof)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"proof\":\"firn-audit-proof-2\"}",
        "{\"proof\":1}",
        "{\"x\":1}",
        "{\"proof\":\"firn-audit-proof-1\",\"proof\":\"firn-audit-proof-1\"}",
        "{\"proof\":\"firn-audit-proof-1\",\"row\":{},\"place\":0,\"path\":[],\"heads\":[]}",
        "{\"row\":{\"id\":1,\"id\":2}}",
        "{\"row\":{\"at_us\":\"-0\"}}",
        "{\"row\":{\"at_us\":\"\"}}",
        "{\"row\":{\"at_us\":\"9223372036854775808\"}}",
        "{\"row\":{\"at_us\":5}}",
        "{\"row\":{\"a_name_that_is_long_indeed\":5}}",
        "{\"path\":[\"00\"]}",
        "{\"heads\":[]}",
        "{\"heads\":[\"x\"]}",
        "{\"place\":-1}",
    };
    begin();
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_diag d = { 0, "" };
        T_EQ(check(bad[i], strlen(bad[i]), &d), FIRN_EFORMAT, "%s", bad[i]);
        T_OK(d.text[0], "%s", bad[i]);
    }
    end();
}
