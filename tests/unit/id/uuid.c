#include "t.h"

#include "firn/uuid.h"
#include "id/uuid_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

typedef int parse_fn(const char *p, size_t len, struct firn_uuid *out);

/* Parse a copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int parse_exact(parse_fn *parse, const char *text, size_t len, struct firn_uuid *out)
{
    char *p = malloc(len);
    memcpy(p, text, len);
    int r = parse(p, len, out);
    free(p);
    return r;
}

static struct firn_uuid uuid(const char *text)
{
    struct firn_uuid id;
    T_EQ(firn_uuid_parse_any(text, strlen(text), &id), 0, "'%s'", text);
    return id;
}

static const char sample[] = "01234567-89ab-cdef-fedc-ba9876543210";
static const struct firn_uuid sample_id = { { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe,
                                              0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10 } };

T_TEST(uuid_parse_accepts)
{
    static const struct {
        const char *text;
        int strict; /* what firn_uuid_parse() answers; firn_uuid_parse_any() takes them all */
    } good[] = {
        { "01234567-89ab-cdef-fedc-ba9876543210", 0 },
        { "01234567-89AB-CDEF-FEDC-BA9876543210", 0 },
        { "01234567-89aB-cDeF-FedC-Ba9876543210", 0 },
        { "{01234567-89ab-cdef-fedc-ba9876543210}", FIRN_EFORMAT },
        { "{01234567-89AB-CDEF-FEDC-BA9876543210}", FIRN_EFORMAT },
        { "urn:uuid:01234567-89ab-cdef-fedc-ba9876543210", FIRN_EFORMAT },
        { "URN:UUID:01234567-89AB-CDEF-FEDC-BA9876543210", FIRN_EFORMAT },
        { "Urn:Uuid:01234567-89ab-cdef-fedc-ba9876543210", FIRN_EFORMAT },
        { "0123456789abcdeffedcba9876543210", FIRN_EFORMAT },
        { "0123456789ABCDEFfedcba9876543210", FIRN_EFORMAT },
    };
    for (size_t i = 0; i < T_LEN(good); i++) {
        struct firn_uuid id = firn_uuid_nil;
        size_t len = strlen(good[i].text);
        T_EQ(parse_exact(firn_uuid_parse, good[i].text, len, &id), good[i].strict, "'%s'",
             good[i].text);
        T_EQ(firn_uuid_cmp(&id, good[i].strict ? &firn_uuid_nil : &sample_id), 0);
        T_EQ(parse_exact(firn_uuid_parse_any, good[i].text, len, &id), 0, "'%s'", good[i].text);
        T_EQ(firn_uuid_cmp(&id, &sample_id), 0, "'%s'", good[i].text);
    }
}

T_TEST(uuid_parse_rejects)
{
    static const char *const bad[] = {
        "",
        "-",
        "01234567-89ab-cdef-fedc-ba987654321",
        "01234567-89ab-cdef-fedc-ba98765432100",
        " 01234567-89ab-cdef-fedc-ba987654321",
        "01234567-89ab-cdef-fedc-ba987654321 ",
        "01234567-89ab-cdef-fedc-ba987654321\n",
        "0123456-789ab-cdef-fedc-ba9876543210",
        "01234567-89abcdef--fedc-ba9876543210",
        "01234567-89ab-cdef-fedcba98-76543210",
        "01234567 89ab cdef fedc ba9876543210",
        "0x234567-89ab-cdef-fedc-ba9876543210",
        "+1234567-89ab-cdef-fedc-ba9876543210",
        "g1234567-89ab-cdef-fedc-ba9876543210",
        "0123456789abcdeffedcba987654321",
        "0123456789abcdeffedcba98765432100",
        "0123456789abcdeffedcba987654321g",
        "0123456789abcdef-fedcba987654321",
        "{01234567-89ab-cdef-fedc-ba9876543210",
        "01234567-89ab-cdef-fedc-ba9876543210}",
        "{01234567-89ab-cdef-fedc-ba9876543210)",
        "(01234567-89ab-cdef-fedc-ba9876543210)",
        "{0123456789abcdeffedcba9876543210}",
        "{{1234567-89ab-cdef-fedc-ba987654321}}",
        "urn:uuid:0123456789abcdeffedcba9876543210",
        "urn:uuid:{01234567-89ab-cdef-fedc-ba9876543210}",
        "urn:uuid01234567-89ab-cdef-fedc-ba9876543210",
        "urn uuid:01234567-89ab-cdef-fedc-ba9876543210",
        "urn:guid:01234567-89ab-cdef-fedc-ba9876543210",
        "urn\032uuid\03201234567-89ab-cdef-fedc-ba9876543210",
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_uuid id = sample_id;
        T_EQ(parse_exact(firn_uuid_parse, bad[i], strlen(bad[i]), &id), FIRN_EFORMAT, "'%s'",
             bad[i]);
        T_EQ(parse_exact(firn_uuid_parse_any, bad[i], strlen(bad[i]), &id), FIRN_EFORMAT, "'%s'",
             bad[i]);
        T_EQ(firn_uuid_cmp(&id, &sample_id), 0, "'%s' was refused but written", bad[i]);
    }
}

T_TEST(uuid_parse_truncated)
{
    static const char *const whole[] = {
        "01234567-89ab-cdef-fedc-ba9876543210",
        "{01234567-89ab-cdef-fedc-ba9876543210}",
        "urn:uuid:01234567-89ab-cdef-fedc-ba9876543210",
        "0123456789abcdeffedcba9876543210",
    };
    struct firn_uuid id;
    for (size_t i = 0; i < T_LEN(whole); i++)
        for (size_t len = 0; len < strlen(whole[i]); len++) {
            T_EQ(parse_exact(firn_uuid_parse, whole[i], len, &id), FIRN_EFORMAT);
            T_EQ(parse_exact(firn_uuid_parse_any, whole[i], len, &id), FIRN_EFORMAT, "'%.*s'",
                 (int)len, whole[i]);
        }
}

/* Every byte at every place: the parser's vectors know exactly the 22 digits and the hyphens. */
T_TEST(uuid_parse_every_byte)
{
    for (size_t at = 0; at < FIRN_UUID_TEXT_LEN; at++)
        for (int c = 0; c < 256; c++) {
            char text[FIRN_UUID_TEXT_BUF], again[FIRN_UUID_TEXT_BUF];
            struct firn_uuid id;
            memcpy(text, sample, sizeof text);
            text[at] = (char)c;
            int good = sample[at] == '-' ? c == '-' : c < 128 && isxdigit(c);
            T_EQ(parse_exact(firn_uuid_parse, text, FIRN_UUID_TEXT_LEN, &id),
                 good ? 0 : FIRN_EFORMAT, "byte %d at %zu", c, at);
            if (!good)
                continue;
            firn_uuid_format(&id, again);
            text[at] = (char)tolower(c);
            T_STR(again, text);
        }
}

/* The same for the form without hyphens, which other code gathers. */
T_TEST(uuid_parse_any_every_byte)
{
    static const char hex[] = "0123456789abcdeffedcba9876543210";
    for (size_t at = 0; at < sizeof hex - 1; at++)
        for (int c = 0; c < 256; c++) {
            char text[sizeof hex];
            struct firn_uuid id;
            memcpy(text, hex, sizeof text);
            text[at] = (char)c;
            T_EQ(parse_exact(firn_uuid_parse_any, text, sizeof hex - 1, &id),
                 c < 128 && isxdigit(c) ? 0 : FIRN_EFORMAT, "byte %d at %zu", c, at);
        }
}

/* Against snprintf(): each byte value at each place. */
T_TEST(uuid_format_every_byte)
{
    for (size_t at = 0; at < 16; at++)
        for (int c = 0; c < 256; c++) {
            struct firn_uuid id = sample_id;
            id.b[at] = (uint8_t)c;
            const uint8_t *b = id.b;
            char text[FIRN_UUID_TEXT_BUF], expect[FIRN_UUID_TEXT_BUF];
            memset(text, '?', sizeof text);
            firn_uuid_format(&id, text);
            snprintf(expect, sizeof expect,
                     "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                     b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
                     b[13], b[14], b[15]);
            T_STR(text, expect);
        }
}

T_TEST(uuid_null_arguments)
{
    struct firn_uuid id = sample_id;
    struct firn_rng *rng = firn_rng_thread();
    struct firn_uuid_v7_gen v7 = FIRN_UUID_V7_GEN_INIT;
    struct firn_uuid_gregorian_gen greg;
    firn_uuid_gregorian_init(&greg, NULL, rng);
    T_EQ(firn_uuid_parse(NULL, 36, &id), FIRN_EINVAL);
    T_EQ(firn_uuid_parse(sample, 36, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_parse_any(NULL, 36, &id), FIRN_EINVAL);
    T_EQ(firn_uuid_parse_any(sample, 36, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_v7(NULL, 0, rng, &id), FIRN_EINVAL);
    T_EQ(firn_uuid_v7(&v7, 0, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_uuid_v7(&v7, 0, rng, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_v1(NULL, 0, &id), FIRN_EINVAL);
    T_EQ(firn_uuid_v1(&greg, 0, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_v6(NULL, 0, &id), FIRN_EINVAL);
    T_EQ(firn_uuid_v6(&greg, 0, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_ticks(NULL, &(uint64_t){ 0 }), FIRN_EINVAL);
    T_EQ(firn_uuid_ticks(&id, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_unix_ms(NULL, &(uint64_t){ 0 }), FIRN_EINVAL);
    T_EQ(firn_uuid_unix_ms(&id, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_clock_seq(NULL, &(uint16_t){ 0 }), FIRN_EINVAL);
    T_EQ(firn_uuid_clock_seq(&id, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_node(NULL, (uint8_t[6]){ 0 }), FIRN_EINVAL);
    T_EQ(firn_uuid_node(&id, NULL), FIRN_EINVAL);
    T_EQ(firn_uuid_cmp(&id, &sample_id), 0);
}

T_TEST(uuid_variants)
{
    static const enum firn_uuid_variant by_digit[16] = {
        FIRN_UUID_NCS,       FIRN_UUID_NCS,       FIRN_UUID_NCS,    FIRN_UUID_NCS,
        FIRN_UUID_NCS,       FIRN_UUID_NCS,       FIRN_UUID_NCS,    FIRN_UUID_NCS,
        FIRN_UUID_RFC,       FIRN_UUID_RFC,       FIRN_UUID_RFC,    FIRN_UUID_RFC,
        FIRN_UUID_MICROSOFT, FIRN_UUID_MICROSOFT, FIRN_UUID_FUTURE, FIRN_UUID_FUTURE,
    };
    for (unsigned digit = 0; digit < 16; digit++)
        for (unsigned version = 0; version < 16; version++) {
            struct firn_uuid id = { { 0 } };
            id.b[6] = (uint8_t)(version << 4 | 0xa);
            id.b[8] = (uint8_t)(digit << 4 | 0xb);
            T_EQ(firn_uuid_variant(&id), by_digit[digit]);
            T_EQ(firn_uuid_version(&id),
                 by_digit[digit] == FIRN_UUID_RFC ? (int)version : FIRN_ENOTSUP);
        }
    T_EQ(firn_uuid_version(&firn_uuid_nil), FIRN_ENOTSUP);
    T_EQ(firn_uuid_version(&firn_uuid_max), FIRN_ENOTSUP);
}

T_TEST(uuid_fields_by_version)
{
    for (unsigned version = 0; version < 16; version++) {
        struct firn_uuid id = sample_id;
        uint64_t time = 77;
        uint16_t seq = 77;
        uint8_t node[6] = { 77 };
        id.b[6] = (uint8_t)(version << 4);
        id.b[8] = 0x80;
        int has_node = version == 1 || version == 6, has_time = has_node || version == 7;
        T_EQ(firn_uuid_ticks(&id, &time), has_time ? 0 : FIRN_ENOTSUP, "version %u", version);
        T_EQ(time != 77, has_time);
        T_EQ(firn_uuid_clock_seq(&id, &seq), has_node ? 0 : FIRN_ENOTSUP, "version %u", version);
        T_EQ(seq, has_node ? 0x00dc : 77);
        T_EQ(firn_uuid_node(&id, node), has_node ? 0 : FIRN_ENOTSUP, "version %u", version);
        T_EQ(node[0], has_node ? 0xba : 77);
    }
}

T_TEST(uuid_times)
{
    static const struct {
        const char *text;
        uint64_t ticks;
        int r;
        uint64_t ms;
    } times[] = {
        { "00000000-0000-1000-8000-000000000000", 0, FIRN_ERANGE, 5 },
        { "00000000-0000-6000-8000-000000000000", 0, FIRN_ERANGE, 5 },
        { "13813fff-1dd2-11b2-8000-000000000000", UINT64_C(0x01b21dd213813fff), FIRN_ERANGE, 5 },
        { "13814000-1dd2-11b2-8000-000000000000", UINT64_C(0x01b21dd213814000), 0, 0 },
        { "1b21dd21-3814-6000-8000-000000000000", UINT64_C(0x01b21dd213814000), 0, 0 },
        { "1b21dd21-3814-6001-8000-000000000000", UINT64_C(0x01b21dd213814001), 0, 0 },
        { "1b21dd21-3816-6710-8000-000000000000", UINT64_C(0x01b21dd213816710), 0, 1 },
        { "ffffffff-ffff-1fff-8000-000000000000", UINT64_C(0x0fffffffffffffff), 0,
          UINT64_C(103072857660684) },
        { "ffffffff-ffff-6fff-bfff-ffffffffffff", UINT64_C(0x0fffffffffffffff), 0,
          UINT64_C(103072857660684) },
        { "00000000-0000-7fff-bfff-ffffffffffff", FIRN_UUID_UNIX_EPOCH_TICKS, 0, 0 },
        { "ffffffff-ffff-7000-8000-000000000000",
          FIRN_UUID_UNIX_EPOCH_TICKS + UINT64_C(0xffffffffffff) * 10000, 0,
          UINT64_C(0xffffffffffff) },
    };
    for (size_t i = 0; i < T_LEN(times); i++) {
        struct firn_uuid id = uuid(times[i].text);
        uint64_t ticks, ms = 5;
        T_EQ(firn_uuid_ticks(&id, &ticks), 0);
        T_EQ(ticks, times[i].ticks, "'%s'", times[i].text);
        T_EQ(firn_uuid_unix_ms(&id, &ms), times[i].r, "'%s'", times[i].text);
        T_EQ(ms, times[i].ms, "'%s'", times[i].text);
    }
}

T_TEST(uuid_cmp_orders)
{
    static const char *const rising[] = {
        "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001",
        "00000000-0000-0000-7fff-ffffffffffff", "00000000-0000-0000-8000-000000000000",
        "00000000-0000-0001-0000-000000000000", "7fffffff-ffff-ffff-ffff-ffffffffffff",
        "80000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff",
    };
    for (size_t i = 0; i < T_LEN(rising); i++)
        for (size_t j = 0; j < T_LEN(rising); j++) {
            struct firn_uuid a = uuid(rising[i]), b = uuid(rising[j]);
            T_EQ(firn_uuid_cmp(&a, &b), (i > j) - (i < j), "%s and %s", rising[i], rising[j]);
        }
}

T_TEST(uuid_v8_keeps_122_bits)
{
    uint8_t custom[16];
    struct firn_uuid ones, zeros, expect;
    memset(custom, 0xff, sizeof custom);
    firn_uuid_v8(custom, &ones);
    expect = uuid("ffffffff-ffff-8fff-bfff-ffffffffffff");
    T_EQ(firn_uuid_cmp(&ones, &expect), 0);
    memset(custom, 0, sizeof custom);
    firn_uuid_v8(custom, &zeros);
    expect = uuid("00000000-0000-8000-8000-000000000000");
    T_EQ(firn_uuid_cmp(&zeros, &expect), 0);
}

static uint32_t v7_counter(const struct firn_uuid *id)
{
    return (uint32_t)((id->b[6] & 0x0f) << 22 | id->b[7] << 14 | (id->b[8] & 0x3f) << 8 | id->b[9]);
}

static void v7(struct firn_uuid_v7_gen *g, uint64_t clock_ms, uint64_t expect_ms,
               struct firn_uuid *out)
{
    uint64_t ms;
    T_EQ(firn_uuid_v7(g, clock_ms, firn_rng_thread(), out), 0);
    T_EQ(firn_uuid_version(out), 7);
    T_EQ(firn_uuid_unix_ms(out, &ms), 0);
    T_EQ(ms, expect_ms, "at clock %" PRIu64, clock_ms);
}

T_TEST(uuid_v7_counts_within_a_millisecond)
{
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    struct firn_uuid a, b;
    v7(&g, 1000, 1000, &a);
    T_OK(v7_counter(&a) < 1u << 25, "the top counter bit starts clear");
    v7(&g, 1000, 1000, &b);
    T_EQ(v7_counter(&b), v7_counter(&a) + 1);
    v7(&g, 900, 1000, &a); /* a step back: time stays */
    T_EQ(v7_counter(&a), v7_counter(&b) + 1);
    v7(&g, 1001, 1001, &b);
    T_OK(v7_counter(&b) < 1u << 25);
}

T_TEST(uuid_v7_counter_rolls_into_the_next_millisecond)
{
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    struct firn_uuid a, b;
    v7(&g, 1000, 1000, &a);
    g.counter_ = (1u << 26) - 2;
    v7(&g, 1000, 1000, &a);
    T_EQ(v7_counter(&a), (1u << 26) - 1);
    v7(&g, 1000, 1001, &b);
    T_OK(v7_counter(&b) < 1u << 25);
    v7(&g, 1001, 1001, &a); /* the clock comes after: the counter of the borrowed ms goes on */
    T_EQ(v7_counter(&a), v7_counter(&b) + 1);
}

T_TEST(uuid_v7_limits)
{
    const uint64_t max = (UINT64_C(1) << 48) - 1;
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    struct firn_uuid a;
    v7(&g, 0, 0, &a);
    v7(&g, max, max, &a);
    struct firn_uuid before = a;
    T_EQ(firn_uuid_v7(&g, max + 1, firn_rng_thread(), &a), FIRN_ERANGE);
    T_EQ(firn_uuid_v7(&g, UINT64_MAX, firn_rng_thread(), &a), FIRN_ERANGE);
    g.counter_ = (1u << 26) - 1; /* no millisecond left to go ahead to */
    T_EQ(firn_uuid_v7(&g, 0, firn_rng_thread(), &a), FIRN_ERANGE);
    T_EQ(firn_uuid_v7(&g, max, firn_rng_thread(), &a), FIRN_ERANGE);
    T_EQ(firn_uuid_cmp(&a, &before), 0, "untouched on error");
}

static uint16_t seq_of(const struct firn_uuid *id)
{
    uint16_t seq;
    T_EQ(firn_uuid_clock_seq(id, &seq), 0);
    return seq;
}

static uint64_t ticks_of(const struct firn_uuid *id)
{
    uint64_t ticks;
    T_EQ(firn_uuid_ticks(id, &ticks), 0);
    return ticks - FIRN_UUID_UNIX_EPOCH_TICKS;
}

T_TEST(uuid_gregorian_node)
{
    static const uint8_t mine[6] = { 0x02, 0x42, 0xac, 0x11, 0x00, 0x02 };
    struct firn_uuid_gregorian_gen g;
    struct firn_uuid id;
    uint8_t node[6];
    firn_uuid_gregorian_init(&g, mine, firn_rng_thread());
    T_EQ(firn_uuid_v1(&g, 1, &id), 0);
    T_EQ(firn_uuid_node(&id, node), 0);
    T_OK(memcmp(node, mine, sizeof mine) == 0);
    for (int i = 0; i < 100; i++) {
        firn_uuid_gregorian_init(&g, NULL, firn_rng_thread());
        T_EQ(firn_uuid_v6(&g, 1, &id), 0);
        T_EQ(firn_uuid_node(&id, node), 0);
        T_OK(node[0] & 1, "random nodes carry the multicast bit");
        T_OK(seq_of(&id) < 1 << 14);
    }
}

T_TEST(uuid_gregorian_clock)
{
    typedef int make_fn(struct firn_uuid_gregorian_gen *, uint64_t, struct firn_uuid *);
    static make_fn *const makes[] = { firn_uuid_v1, firn_uuid_v6 };
    static const struct {
        uint64_t clock, ticks;
        unsigned seq_change; /* since the start */
    } steps[] = {
        { 1000, 1000, 0 }, { 1000, 1001, 0 }, { 1000, 1002, 0 }, { 1001, 1003, 0 },
        { 1100, 1100, 0 }, { 1099, 1101, 1 }, { 1099, 1102, 1 }, { 5, 1103, 2 },
        { 6, 1104, 2 },    { 1103, 1105, 2 }, { 1106, 1106, 2 }, { 2000, 2000, 2 },
        { 0, 2001, 3 },
    };
    for (size_t m = 0; m < T_LEN(makes); m++) {
        struct firn_uuid_gregorian_gen g;
        struct firn_uuid id;
        firn_uuid_gregorian_init(&g, NULL, firn_rng_thread());
        g.clock_seq_ = 0x3ffe; /* so that it wraps within 14 bits */
        for (size_t i = 0; i < T_LEN(steps); i++) {
            T_EQ(makes[m](&g, steps[i].clock, &id), 0);
            T_EQ(ticks_of(&id), steps[i].ticks, "step %zu", i);
            T_EQ(seq_of(&id), (0x3ffe + steps[i].seq_change) & 0x3fff, "step %zu", i);
        }
        T_EQ(firn_uuid_version(&id), m == 0 ? 1 : 6);
    }
}

T_TEST(uuid_gregorian_limits)
{
    const uint64_t max = (UINT64_C(1) << 60) - 1 - FIRN_UUID_UNIX_EPOCH_TICKS;
    struct firn_uuid_gregorian_gen g;
    struct firn_uuid id;
    firn_uuid_gregorian_init(&g, NULL, firn_rng_thread());
    T_EQ(firn_uuid_v1(&g, max + 1, &id), FIRN_ERANGE);
    T_EQ(firn_uuid_v1(&g, UINT64_MAX, &id), FIRN_ERANGE);
    T_EQ(firn_uuid_v1(&g, max, &id), 0);
    T_EQ(ticks_of(&id), max);
    T_EQ(firn_uuid_v1(&g, max, &id), FIRN_ERANGE);
    T_EQ(firn_uuid_v6(&g, 0, &id), FIRN_ERANGE);
}

/* The example of RFC 9562, appendix A.1 and A.5: one time in both orders. */
T_TEST(uuid_v1_and_v6_are_one)
{
    struct firn_uuid one, six, out;
    T_EQ(firn_uuid_parse_str("c232ab00-9414-11ec-b3c8-9f6bdeced846", &one), 0);
    T_EQ(firn_uuid_parse_str("1ec9414c-232a-6b00-b3c8-9f6bdeced846", &six), 0);
    T_EQ(firn_uuid_v1_to_v6(&one, &out), 0);
    T_EQ(firn_uuid_cmp(&out, &six), 0);
    T_EQ(firn_uuid_v6_to_v1(&six, &out), 0);
    T_EQ(firn_uuid_cmp(&out, &one), 0);
    T_EQ(firn_uuid_v1_to_v6(&six, &out), FIRN_ENOTSUP);
    T_EQ(firn_uuid_v6_to_v1(&one, &out), FIRN_ENOTSUP);
    T_EQ(firn_uuid_v1_to_v6(&firn_uuid_nil, &out), FIRN_ENOTSUP);
    T_EQ(firn_uuid_v1_to_v6(NULL, &out), FIRN_EINVAL);
    for (int i = 0; i < 1000; i++) {
        t_random_bytes(one.b, sizeof one.b);
        one.b[6] = (uint8_t)(0x10 | (one.b[6] & 0x0f));
        one.b[8] = (uint8_t)(0x80 | (one.b[8] & 0x3f));
        T_OK(firn_uuid_v1_to_v6(&one, &six) == 0 && firn_uuid_v6_to_v1(&six, &out) == 0);
        T_EQ(firn_uuid_cmp(&out, &one), 0);
    }
}

T_TEST(uuid_nil)
{
    struct firn_uuid id = firn_uuid_nil;
    T_EQ(firn_uuid_is_nil(&id), 1);
    T_EQ(firn_uuid_is_nil(&firn_uuid_max), 0);
    for (int i = 0; i < 16; i++) {
        id.b[i] = 1;
        T_EQ(firn_uuid_is_nil(&id), 0);
        id.b[i] = 0;
    }
}

T_TEST(uuid_fill)
{
    static struct firn_uuid ids[3000];
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    size_t n = 9;
    T_EQ(firn_uuid_v7_fill(&g, 1800000000000, firn_rng_thread(), ids, T_LEN(ids), &n), 0);
    T_EQ(n, T_LEN(ids));
    for (size_t i = 1; i < n; i++)
        T_OK(firn_uuid_cmp(&ids[i - 1], &ids[i]) < 0 && firn_uuid_version(&ids[i]) == 7);
    T_EQ(firn_uuid_v7_fill(&g, UINT64_MAX, firn_rng_thread(), ids, 5, &n), FIRN_ERANGE);
    T_EQ(firn_uuid_v7_fill(&g, 0, firn_rng_thread(), NULL, 0, &n), 0);
    T_EQ(n, 0);
    T_EQ(firn_uuid_v7_fill(&g, 0, firn_rng_thread(), NULL, 1, &n), FIRN_EINVAL);
    firn_uuid_v4_fill(firn_rng_thread(), ids, T_LEN(ids));
    for (size_t i = 1; i < T_LEN(ids); i++)
        T_OK(firn_uuid_cmp(&ids[i - 1], &ids[i]) != 0 && firn_uuid_version(&ids[i]) == 4);
}

/* Both paths of the parser on every byte at every place, and on random texts. */
T_TEST(uuid_parse_paths_agree)
{
    static const char text[] = "017f22E2-79b0-7Cc3-98c4-dc0c0c07398F";
    for (size_t at = 0; at < FIRN_UUID_TEXT_LEN; at++)
        for (int c = 0; c < 256; c++) {
            struct firn_uuid a = { { 0 } }, b = { { 0 } };
            char copy[sizeof text];
            memcpy(copy, text, sizeof text);
            copy[at] = (char)c;
            T_EQ(firn_uuid_parse(copy, FIRN_UUID_TEXT_LEN, &a), firn__uuid_parse_portable(copy, &b),
                 "byte %d at %zu", c, at);
            T_EQ(firn_uuid_cmp(&a, &b), 0, "byte %d at %zu", c, at);
        }
    for (int i = 0; i < 10000; i++) {
        struct firn_uuid id, a, b;
        char out[FIRN_UUID_TEXT_BUF];
        t_random_bytes(id.b, sizeof id.b);
        firn_uuid_format(&id, out);
        T_EQ(firn_uuid_parse(out, FIRN_UUID_TEXT_LEN, &a), 0);
        T_EQ(firn__uuid_parse_portable(out, &b), 0);
        T_OK(firn_uuid_cmp(&a, &id) == 0 && firn_uuid_cmp(&b, &id) == 0);
    }
}
