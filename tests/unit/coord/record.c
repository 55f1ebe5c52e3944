#include "t.h"

#include "coord/record.h"

static struct nonce nonce_of(uint8_t first)
{
    struct nonce v;
    for (size_t i = 0; i < sizeof v.b; i++)
        v.b[i] = (uint8_t)(first + i);
    return v;
}

/* The texts are the format: stores in the field hold them, so a change here is a new version. */
static const char meta_text[] = "firn=meta 1\n"
                                "cluster=000102030405060708090a0b0c0d0e0f\n"
                                "layout=sign:1 time:41 node:10 seq:12\n"
                                "slot_lo=0\n"
                                "slot_hi=16\n"
                                "window=3000\n"
                                "max_drift=5000\n"
                                "skew_max=0\n"
                                "floor=185241600000\n"
                                "store_inc=sqlite:1234:1700000000.000000001\n"
                                "req=f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n";

static const char slot_text[] = "firn=slot 1\n"
                                "cluster=000102030405060708090a0b0c0d0e0f\n"
                                "epoch=7\n"
                                "state=held\n"
                                "owner=101112131415161718191a1b1c1d1e1f\n"
                                "name=node-a\n"
                                "from=100\n"
                                "until=3100\n"
                                "at=99\n"
                                "req=f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n";

static const char seq_text[] = "firn=seq 1\n"
                               "mode=gapless\n"
                               "start=100001\n"
                               "step=2\n"
                               "offset=1\n"
                               "max=9223372036853775807\n"
                               "next=100011\n"
                               "note=date %Y%m%d, width 6\n"
                               "req=f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n";

T_TEST(record_golden_meta)
{
    struct meta_record m = { .cluster = nonce_of(0),
                             .layout = "sign:1 time:41 node:10 seq:12",
                             .slot_hi = 16,
                             .window = 3000,
                             .max_drift = 5000,
                             .floor = 185241600000,
                             .store_inc = "sqlite:1234:1700000000.000000001",
                             .req = nonce_of(0xf0) };
    char text[RECORD_TEXT_MAX + 1];
    text[meta_encode(&m, text)] = '\0';
    T_STR(text, meta_text);
    struct meta_record back;
    T_EQ(meta_parse(text, strlen(text), &back, NULL), 0);
    T_OK(memcmp(&back, &m, sizeof m) == 0);
}

T_TEST(record_golden_slot)
{
    struct slot_record s = { .cluster = nonce_of(0),
                             .epoch = 7,
                             .state = SLOT_HELD,
                             .owner = nonce_of(0x10),
                             .name = "node-a",
                             .from = 100,
                             .until = 3100,
                             .at = 99,
                             .req = nonce_of(0xf0) };
    char text[RECORD_TEXT_MAX + 1];
    text[slot_encode(&s, text)] = '\0';
    T_STR(text, slot_text);
    struct slot_record back = { 0 };
    T_EQ(slot_parse(text, strlen(text), &back, NULL), 0);
    T_EQ(back.until, 3100);
    T_EQ(back.state, SLOT_HELD);
    T_STR(back.name, "node-a");
    T_OK(nonce_eq(&back.req, &s.req) && nonce_eq(&back.owner, &s.owner));
}

T_TEST(record_golden_seq)
{
    struct seq_record s = { .mode = SEQ_GAPLESS,
                            .start = 100001,
                            .step = 2,
                            .offset = 1,
                            .max = 9223372036853775807,
                            .next = 100011,
                            .note = "date %Y%m%d, width 6",
                            .req = nonce_of(0xf0) };
    char text[RECORD_TEXT_MAX + 1];
    text[seq_encode(&s, text)] = '\0';
    T_STR(text, seq_text);
    struct seq_record back;
    T_EQ(seq_parse(text, strlen(text), &back, NULL), 0);
    T_EQ(back.next, 100011);
    T_STR(back.note, "date %Y%m%d, width 6");
}

/* Every proper prefix, and every text with a byte changed to another that says something else. */
T_TEST(record_rejects_every_cut)
{
    struct slot_record s;
    struct firn_diag d;
    for (size_t len = 0; len < sizeof slot_text - 1; len++)
        T_EQ(slot_parse(slot_text, len, &s, &d), FIRN_EFORMAT, "%zu bytes", len);
    char more[sizeof slot_text + 1];
    memcpy(more, slot_text, sizeof slot_text);
    more[sizeof slot_text - 1] = '\n';
    T_EQ(slot_parse(more, sizeof slot_text, &s, &d), FIRN_EFORMAT);
}

T_TEST(record_rejects)
{
    static const struct {
        const char *from, *to;
    } bad[] = {
        { "firn=slot 1", "firn=slot 2" }, /* a newer version is not guessed at */
        { "firn=slot 1", "firn=meta 1" },
        { "epoch=7", "epoch=07" },
        { "epoch=7", "epoch=" },
        { "epoch=7", "epoch=-7" },
        { "epoch=7", "epoch= 7" },
        { "epoch=7", "Epoch=7" },
        { "epoch=7", "epoch=9223372036854775808" },
        { "epoch=7", "epoch=99999999999999999999" },
        { "epoch=7\n", "" },
        { "epoch=7", "epoch=7\nepoch=7" },
        { "state=held", "state=Held" },
        { "state=held", "state=" },
        { "state=held", "state=free" }, /* free, but owned */
        { "owner=10", "owner=1g" },
        { "owner=10", "owner=1A" },
        { "owner=10", "owner=" },
        { "name=node-a", "name=node a" },
        { "name=node-a", "name=node\x80" },
        { "until=3100", "until=99" }, /* before from */
        { "\n", "\r\n" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char text[RECORD_TEXT_MAX];
        const char *at = strstr(slot_text, bad[i].from);
        size_t head = (size_t)(at - slot_text), cut = strlen(bad[i].from), put = strlen(bad[i].to);
        memcpy(text, slot_text, head);
        memcpy(text + head, bad[i].to, put);
        memcpy(text + head + put, at + cut, strlen(at + cut));
        struct slot_record s;
        struct firn_diag d = { 0 };
        T_EQ(slot_parse(text, strlen(slot_text) - cut + put, &s, &d), FIRN_EFORMAT, "'%s'",
             bad[i].to);
        T_OK(d.text[0] != '\0');
    }
}

T_TEST(record_rejects_contradictions)
{
    struct seq_record s = { .start = 1, .step = 2, .offset = 1, .max = 9, .next = 2 };
    struct meta_record m = { .layout = "x", .slot_lo = 4, .slot_hi = 4, .window = 1 };
    char text[RECORD_TEXT_MAX];
    T_EQ(seq_parse(text, seq_encode(&s, text), &s, NULL), FIRN_EFORMAT); /* 2 is not 1 mod 2 */
    s.step = 0;
    T_EQ(seq_parse(text, seq_encode(&s, text), &s, NULL), FIRN_EFORMAT);
    T_EQ(meta_parse(text, meta_encode(&m, text), &m, NULL), FIRN_EFORMAT);
}

T_TEST(record_longest_fits)
{
    struct meta_record m, back;
    memset(&m, 0xff, sizeof m);
    memset(m.layout, 'l', RECORD_LAYOUT_MAX);
    m.layout[RECORD_LAYOUT_MAX] = '\0';
    memset(m.store_inc, 's', RECORD_INC_MAX);
    m.store_inc[RECORD_INC_MAX] = '\0';
    m.window = m.max_drift = m.skew_max = m.floor = INT64_MAX;
    m.slot_hi = UINT32_MAX;
    m.slot_lo = UINT32_MAX - 1;
    char text[RECORD_TEXT_MAX];
    size_t len = meta_encode(&m, text);
    T_OK(len <= sizeof text, "%zu", len);
    T_EQ(meta_parse(text, len, &back, NULL), 0);
    T_OK(memcmp(&m, &back, sizeof m) == 0);
}

T_TEST(record_keys)
{
    char key[RECORD_KEY_BUF];
    uint32_t slot = 9;
    T_EQ(slot_key(12, key), 10);
    T_STR(key, "slot/00012");
    T_EQ(slot_key_parse(key, 10, &slot), 0);
    T_EQ(slot, 12);
    T_EQ(slot_key_parse("slot/0001x", 10, &slot), FIRN_EFORMAT);
    T_EQ(slot_key_parse("slot/1", 6, &slot), FIRN_EFORMAT);
    T_EQ(seq_key("default", 7, key), 11);
    T_STR(key, "seq/default");
    T_OK(record_name_ok("orders-2026.v1:a_b", 18));
    T_OK(!record_name_ok("", 0) && !record_name_ok("a/b", 3) && !record_name_ok("a b", 3));
    char longest[RECORD_NAME_MAX + 1];
    memset(longest, 'x', sizeof longest);
    T_OK(record_name_ok(longest, RECORD_NAME_MAX) && !record_name_ok(longest, sizeof longest));
}
