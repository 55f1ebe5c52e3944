#include "t.h"

#include "coord/record.h"

#include <stdio.h>

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

static const char keyed_text[] =
    "firn=seq 2\n"
    "mode=gapless\n"
    "start=1\n"
    "step=2\n"
    "offset=1\n"
    "max=9223372036853775807\n"
    "next=21\n"
    "note=\n"
    "req=f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n"
    "at=1700000000\n"
    "keys=000102030405060708090a0b0c0d0e0f:7:11:2 101112131415161718191a1b1c1d1e1f:281474976710655:15:3\n";

#define WRITTEN                              \
    "mode=gapless\n"                         \
    "start=1\n"                              \
    "step=1\n"                               \
    "offset=0\n"                             \
    "max=9\n"                                \
    "next=4\n"                               \
    "note=\n"                                \
    "req=f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff\n" \
    "writers=f0f1f2f3f4f5f6f7 0001020304050607\n"
static const char written_text[] = "firn=seq 3\n" WRITTEN;
static const char both_text[] = "firn=seq 4\n" WRITTEN "at=1700000000\n"
                                "keys=000102030405060708090a0b0c0d0e0f:7:2:2\n";

static const char idem_text[] = "firn=idem 1\n"
                                "args=7\n"
                                "first=11\n"
                                "step=2\n"
                                "count=2\n"
                                "period=20261116\n"
                                "at=1700000000\n"
                                "ids=\n"
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

T_TEST(record_golden_keyed)
{
    struct seq_record s = { .start = 1,
                            .step = 2,
                            .offset = 1,
                            .max = 9223372036853775807,
                            .next = 21,
                            .req = nonce_of(0xf0) };
    struct seq_keys keys = { .n = 2,
                             .at = 1700000000,
                             .key = { { nonce_of(0), 7, 11, 2 },
                                      { nonce_of(0x10), RECORD_ARGS_MAX, 15, 3 } } };
    char text[RECORD_TEXT_MAX + 1];
    text[seq_encode_keyed(&s, &keys, text)] = '\0';
    T_STR(text, keyed_text);
    struct seq_record back;
    struct seq_keys back_keys;
    T_EQ(seq_parse_keyed(text, strlen(text), &back, &back_keys, NULL), 0);
    T_EQ(back.next, 21);
    T_EQ(back_keys.n, 2);
    T_EQ(back_keys.at, 1700000000);
    T_EQ(back_keys.key[1].first, 15);
    T_EQ(back_keys.key[1].count, 3);
    T_OK(nonce_eq(&back_keys.key[1].key, &keys.key[1].key));
    T_EQ(seq_parse(text, strlen(text), &back, NULL), 0); /* who has no use for keys */
    keys.n = 0; /* without keys it is a record as it ever was */
    T_EQ(seq_encode_keyed(&s, &keys, text), seq_encode(&s, text));
    T_OK(memcmp(text, "firn=seq 1\n", 11) == 0);
    T_EQ(seq_parse_keyed(text, seq_encode(&s, text), &back, &back_keys, NULL), 0);
    T_EQ(back_keys.n, 0);
}

T_TEST(record_golden_idem)
{
    struct idem_record i = { .args = 7,
                             .first = 11,
                             .step = 2,
                             .count = 2,
                             .period = 20261116,
                             .at = 1700000000,
                             .req = nonce_of(0xf0) };
    char text[RECORD_TEXT_MAX + 1];
    text[idem_encode(&i, text)] = '\0';
    T_STR(text, idem_text);
    struct idem_record back;
    T_EQ(idem_parse(text, strlen(text), &back, NULL), 0);
    T_EQ(back.first, 11);
    T_EQ(back.period, 20261116);
    memset(i.ids, 'x', IDEM_IDS_MAX);
    i.step = 0;
    i.args = RECORD_ARGS_MAX;
    i.first = i.count = i.at = INT64_MAX;
    T_EQ(idem_parse(text, idem_encode(&i, text), &back, NULL), 0); /* the longest fits */
    T_EQ(strlen(back.ids), IDEM_IDS_MAX);
}

static void reject(const char *good, const char *from, const char *to,
                   int parse(const char *p, size_t len))
{
    char text[RECORD_TEXT_MAX];
    const char *at = strstr(good, from);
    T_OK(at, "'%s'", from);
    size_t head = (size_t)(at - good), cut = strlen(from), put = strlen(to);
    memcpy(text, good, head);
    memcpy(text + head, to, put);
    memcpy(text + head + put, at + cut, strlen(at + cut));
    T_EQ(parse(text, strlen(good) - cut + put), FIRN_EFORMAT, "'%s'", to);
}

static int parse_keyed(const char *p, size_t len)
{
    struct seq_record s;
    struct seq_keys keys;
    return seq_parse_keyed(p, len, &s, &keys, NULL);
}

static int parse_idem(const char *p, size_t len)
{
    struct idem_record i;
    return idem_parse(p, len, &i, NULL);
}

T_TEST(record_golden_writers)
{
    struct seq_record s = { .start = 1,
                            .step = 1,
                            .max = 9,
                            .next = 4,
                            .req = nonce_of(0xf0),
                            .writers = 2,
                            .writer = { { { 0xf0, 0xf1, 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7 } },
                                        { { 0, 1, 2, 3, 4, 5, 6, 7 } } } };
    struct seq_keys keys = { .n = 1, .at = 1700000000, .key = { { nonce_of(0), 7, 2, 2 } } };
    struct seq_record back;
    char text[RECORD_TEXT_MAX + 1];
    text[seq_encode(&s, text)] = '\0';
    T_STR(text, written_text);
    T_EQ(seq_parse(text, strlen(text), &back, NULL), 0);
    T_EQ(back.writers, 2);
    T_OK(memcmp(back.writer, s.writer, sizeof s.writer) == 0);
    text[seq_encode_keyed(&s, &keys, text)] = '\0';
    T_STR(text, both_text);
    T_EQ(seq_parse_keyed(text, strlen(text), &back, &keys, NULL), 0);
    T_EQ(back.writers, 2);
    T_EQ(keys.n, 1);
    /* Full, with a note as long as can be and the longest numbers: there is room for keys yet. */
    s.writers = SEQ_WRITERS;
    for (uint8_t i = 0; i < SEQ_WRITERS; i++)
        memset(s.writer[i].b, i, sizeof s.writer[i].b);
    memset(s.note, 'n', RECORD_NOTE_MAX);
    s.max = s.next = INT64_MAX;
    T_OK(seq_encode_keyed(&s, &keys, text) > 0);
}

T_TEST(record_rejects_bad_writers)
{
    static const char *const written[][2] = {
        { "seq 3", "seq 1" },
        { "seq 3", "seq 2" },
        { "seq 3", "seq 4" },
        { "seq 3", "seq 5" },
        { "writers=f0f1f2f3f4f5f6f7 0001020304050607\n", "" },
        { "f0f1f2f3f4f5f6f7 0001020304050607", "" },
        { "f0f1f2f3f4f5f6f7 ", "f0f1f2f3f4f5f6f7  " },
        { " 0001020304050607", " " },
        { " 0001020304050607", " 000102030405060" },
        { " 0001020304050607", " 000102030405060g" },
        { " 0001020304050607", " f0f1f2f304050607" }, /* one writer twice */
        { "0607\n", "0607\n\n" },
        { "0607\n", "0607\nat=1\n" },
    };
    for (size_t i = 0; i < T_LEN(written); i++)
        reject(written_text, written[i][0], written[i][1], parse_keyed);
    reject(both_text, "seq 4", "seq 3", parse_keyed);
    reject(both_text, "seq 4", "seq 2", parse_keyed);
    for (size_t len = 0; len < sizeof written_text - 1; len++)
        T_EQ(parse_keyed(written_text, len), FIRN_EFORMAT, "%zu bytes", len);
    for (size_t len = 0; len < sizeof both_text - 1; len++)
        T_EQ(parse_keyed(both_text, len), FIRN_EFORMAT, "%zu bytes", len);
    /* More writers than there is room for. */
    char text[RECORD_TEXT_MAX];
    int n = snprintf(text, sizeof text, "%.*s", (int)(sizeof written_text - 2), written_text);
    for (unsigned i = 2; i <= SEQ_WRITERS; i++) {
        T_EQ(parse_keyed(strcat(text, "\n"), (size_t)n + 1), 0, "%u writers", i);
        n += snprintf(text + n, sizeof text - (size_t)n, " %08x00000000", i);
    }
    T_EQ(parse_keyed(strcat(text, "\n"), (size_t)n + 1), FIRN_EFORMAT);
}

T_TEST(record_rejects_bad_keys)
{
    static const char *const keyed[][2] = {
        { "seq 2", "seq 1" },
        { "seq 2", "seq 3" },
        { ":7:11:2", ":7:12:2" }, /* not 1 modulo 2 */
        { ":7:11:2", ":7:11:0" },
        { ":7:11:2", ":7:11:6" }, /* beyond next */
        { ":7:11:2", ":7:21:1" },
        { ":7:11:2", ":7:11:99999999" },
        { ":7:11:2", ":7:11" },
        { ":7:11:2", ":7:11:2:" },
        { ":7:11:2", ":07:11:2" },
        { "281474976710655", "281474976710656" },
        { "keys=00", "keys=0" },
        { "keys=00", "keys= 00" },
        { "keys=00", "keys=\n00" },
        { "101112131415161718191a1b1c1d1e1f", "000102030405060708090a0b0c0d0e0f" }, /* twice */
        { ":15:3\n", ":15:3" },
        { ":15:3\n", ":15:3 \n" },
        { ":15:3\n", ":15:3\n\n" },
        { "at=1700000000\n", "" },
    };
    static const char *const idem[][2] = {
        { "idem 1", "idem 2" },
        { "count=2", "count=0" },
        { "step=2", "step=0" },
        { "ids=", "ids=x" },
        { "args=7", "args=281474976710656" },
        { "period=20261116", "period=4294967296" },
        { "at=1700000000\n", "" },
    };
    for (size_t i = 0; i < T_LEN(keyed); i++)
        reject(keyed_text, keyed[i][0], keyed[i][1], parse_keyed);
    for (size_t i = 0; i < T_LEN(idem); i++)
        reject(idem_text, idem[i][0], idem[i][1], parse_idem);
    for (size_t len = 0; len < sizeof keyed_text - 1; len++)
        T_EQ(parse_keyed(keyed_text, len), FIRN_EFORMAT, "%zu bytes", len);
    for (size_t len = 0; len < sizeof idem_text - 1; len++)
        T_EQ(parse_idem(idem_text, len), FIRN_EFORMAT, "%zu bytes", len);
}

/* As many keys as fit are written, one more is not, and the most that can be there is never too
 * long. */
T_TEST(record_keys_fit)
{
    struct seq_record s = { .start = 1, .step = 1, .max = INT64_MAX - 1, .next = 100000 };
    struct seq_keys keys = { .at = INT64_MAX }, back_keys;
    struct seq_record back;
    char text[RECORD_TEXT_MAX];
    for (int longest = 0; longest < 2; longest++) {
        if (longest) {
            memset(s.note, 'n', RECORD_NOTE_MAX);
            s.next = INT64_MAX - 1;
        }
        uint32_t fit = 0;
        for (keys.n = 1; keys.n <= SEQ_KEYS_MAX; keys.n++) {
            keys.key[keys.n - 1] = (struct seq_keyed){ nonce_of((uint8_t)keys.n), RECORD_ARGS_MAX,
                                                       longest ? INT64_MAX - 1000000 : 5, 1 };
            size_t len = seq_encode_keyed(&s, &keys, text);
            T_OK(len <= RECORD_TEXT_MAX);
            if (len == 0)
                break;
            fit = keys.n;
            T_EQ(seq_parse_keyed(text, len, &back, &back_keys, NULL), 0);
            T_EQ(back_keys.n, keys.n);
        }
        T_OK(fit >= (longest ? 7u : 12u), "%u", fit);
    }
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

static int parse_meta(const char *p, size_t len)
{
    struct meta_record m;
    return meta_parse(p, len, &m, NULL);
}

T_TEST(record_rejects_contradictions)
{
    reject(seq_text, "next=100011", "next=100012", parse_keyed); /* even, and the offset is 1 */
    reject(seq_text, "next=100011", "next=99999", parse_keyed);  /* below start */
    reject(seq_text, "step=2", "step=0", parse_keyed);
    reject(seq_text, "offset=1", "offset=2", parse_keyed);
    reject(meta_text, "slot_hi=16", "slot_hi=0", parse_meta);
    reject(meta_text, "window=3000", "window=0", parse_meta);
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
