/* Rows, batches and chains: against digests that another implementation made, and as laws. */
#include "auditlog/chain.h"
#include "audit.h"
#include "wire/trace.h"

#include <stdio.h>

static struct chain_batch batch;

static void hex_is(const uint8_t *p, const char *want)
{
    char hex[2 * SHA256_BYTES + 1];
    trace_hex(p, SHA256_BYTES, hex);
    T_STR(hex, want);
}

static void add(uint64_t id)
{
    struct chain_row row = row_of(id);
    T_EQ(chain_batch_add(&batch, &row), 0);
}

/* Computed with Python's hashlib from the description in chain.h, head.h and merkle.h. */
T_TEST(the_digests_of_another_implementation)
{
    struct chain c;
    struct head h;
    digest_t d;
    T_EQ(chain_batch_open(&batch), 0);
    struct chain_row row = row_of(1001);
    T_EQ(chain_row_digest(&batch.hasher, &row, d), 0);
    hex_is(d, "792367b69b16c61753bb9538d110fae58965dc06d7a90669e5ba75f311efa755");
    row.detail = text_of(" {\"n\": 1.0, \"new\": \"b\\u0040x\",\"old\":\"a@x\" }");
    T_EQ(chain_row_digest(&batch.hasher, &row, d), 0);
    hex_is(d, "792367b69b16c61753bb9538d110fae58965dc06d7a90669e5ba75f311efa755");
    add(1005); /* in whatever order they come */
    add(1001);
    add(1002);
    T_EQ(chain_batch_end(&batch), 0);
    hex_is(batch.root, "32d9a1bce90440a5dba1c8be71aa2961907efde60f7b32b1847f78a48c336b6f");
    hex_is(batch.index_digest, "ad47109fa33351d7691043243bc619c820abba422eb4a86cbced882907bbab65");
    T_EQ(chain_index_id(batch.index.p, 2), 1005);
    T_EQ(chain_index_tag(batch.index.p, 0)[0], 0x79);
    T_EQ(chain_start(&c, 3, "app-1"), 0);
    T_EQ(chain_head(&c, &batch, INT64_C(1763510400123456), &h), 0);
    T_EQ(h.first, 1001);
    T_EQ(h.last, 1005);
    T_EQ(h.rows, 3);
    head_digest(&batch.hasher.sha, &h, d);
    hex_is(d, "d0b6f5b63ca1e8741ddd8568e55e91c22741c9c9ea88656b4f5d0448e6873a49");
    struct head_signer *s = signer_of(1);
    struct head_sig sig;
    char text[HEAD_TEXT_BUF];
    T_EQ(head_sign(s, &h, &sig), 0);
    head_write(&h, &sig, text);
    T_OK(
        strstr(
            text,
            " key=34750f98bd59fcfc sig=9f23338e5819bfa7ba69b361835bf81b607d19dea379553d83c2377a7285ee6e"
            "4db2ebb7e4a4eb79062c8e2ca70cd4c5acb366d7f43d9d3cb33bf7ccdc4dee0d"),
        "%s", text);
    head_signer_free(s);
    chain_batch_close(&batch);
}

/* No two rows have one encoding: moving a byte from a text to the next is a change. */
T_TEST(every_field_counts)
{
    digest_t base, d;
    T_EQ(chain_batch_open(&batch), 0);
    const struct chain_row row = row_of(7);
    T_EQ(chain_row_digest(&batch.hasher, &row, base), 0);
    for (int field = 0; field < 10; field++) {
        struct chain_row other = row;
        switch (field) {
        case 0:
            other.id++;
            break;
        case 1:
            other.map_version++;
            break;
        case 2:
            other.at_us++;
            break;
        case 3:
            other.tenant = text_of("acmf");
            break;
        case 4:
            other.user = text_of("user-16");
            break;
        case 5:
            other.actor = text_of("admin@example.co");
            break;
        case 6:
            other.action = text_of("email.change");
            break;
        case 7:
            other.detail = text_of("{\"new\":\"b@x\",\"old\":\"a@x\",\"n\":2}");
            break;
        case 8:
            other.tenant = text_of("acmeuser-17");
            other.user = text_of("");
            break;
        case 9:
            other.tenant = text_of("");
            break;
        }
        T_EQ(chain_row_digest(&batch.hasher, &other, d), 0);
        T_OK(memcmp(d, base, sizeof d) != 0, "field %d", field);
    }
    struct chain_row bad = row;
    bad.detail = text_of("{");
    T_EQ(chain_row_digest(&batch.hasher, &bad, d), FIRN_EFORMAT);
    T_EQ(chain_row_digest(&batch.hasher, &row, d), 0, "and goes on");
    T_OK(memcmp(d, base, sizeof d) == 0);
    chain_batch_close(&batch);
}

T_TEST(batches_that_cannot_be)
{
    T_EQ(chain_batch_open(&batch), 0);
    T_EQ(chain_batch_end(&batch), FIRN_EINVAL);
    add(5);
    add(4);
    add(5);
    T_EQ(chain_batch_end(&batch), FIRN_EINVAL);
    chain_batch_clear(&batch);
    add(5);
    T_EQ(chain_batch_end(&batch), 0);
    uint64_t at;
    size_t n;
    digest_t path[MERKLE_PATH_MAX];
    T_EQ(chain_batch_path(&batch, 5, &at, path, &n), 0);
    T_EQ(n, 0);
    T_EQ(chain_batch_path(&batch, 6, &at, path, &n), FIRN_ENOENT);
    chain_batch_close(&batch);
}

T_TEST(a_chain_links_its_heads)
{
    struct chain c, again;
    struct head h[50];
    T_EQ(chain_batch_open(&batch), 0);
    T_EQ(chain_start(&c, 9, ""), FIRN_EINVAL);
    T_EQ(chain_start(&c, 9, "a b"), FIRN_EINVAL);
    T_EQ(chain_start(&c, 9, "w"), 0);
    for (size_t i = 0; i < T_LEN(h); i++) {
        chain_batch_clear(&batch);
        for (uint64_t k = 0; k < 1 + t_random_below(20); k++)
            add(1000 * i + k);
        T_EQ(chain_batch_end(&batch), 0);
        T_EQ(chain_head(&c, &batch, (int64_t)i, &h[i]), 0);
        struct head rolled_back = h[i]; /* nothing was committed: the next try has its number */
        T_EQ(chain_head(&c, &batch, (int64_t)i + 1, &h[i]), 0);
        T_EQ(rolled_back.seq, h[i].seq);
        T_OK(chain_follows(&c, &h[i]));
        struct head other = h[i];
        other.seq++;
        T_OK(!chain_follows(&c, &other));
        other = h[i];
        other.shard++;
        T_OK(!chain_follows(&c, &other));
        other = h[i];
        other.previous[t_random_below(32)] ^= 1;
        T_OK(!chain_follows(&c, &other));
        other = h[i];
        other.writer[0] = 'x';
        T_OK(!chain_follows(&c, &other));
        chain_advance(&c, &batch.hasher.sha, &h[i]);
        chain_resume(&again, &batch.hasher.sha, &h[i]); /* as after a restart */
        T_OK(again.seq == c.seq && again.shard == c.shard && strcmp(again.writer, c.writer) == 0 &&
             memcmp(again.last, c.last, sizeof c.last) == 0);
    }
    T_EQ(h[49].seq, 50);
    c.seq = UINT64_MAX;
    T_EQ(chain_head(&c, &batch, 0, &h[0]), FIRN_EOVERFLOW);
    chain_batch_close(&batch);
}
