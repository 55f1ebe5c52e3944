/*
 * RFC 9562, appendices A and B: each example is read field by field and made again from its fields.
 * Further names: as other implementations hash them.
 */
#include "t.h"

#include "firn/uuid.h"

/* Tue Feb 22 2022 14:22:22 GMT-05:00, the moment of all the RFC's examples. */
#define MOMENT_MS UINT64_C(1645557742000)

static void check(const struct firn_uuid *made, const char *expect)
{
    char text[FIRN_UUID_TEXT_BUF];
    struct firn_uuid read;
    firn_uuid_format(made, text);
    T_STR(text, expect);
    T_EQ(firn_uuid_parse(expect, FIRN_UUID_TEXT_LEN, &read), 0);
    T_EQ(firn_uuid_cmp(made, &read), 0);
    T_EQ(firn_uuid_variant(made), FIRN_UUID_RFC);
}

/* A generator whose next bytes are these. */
static void rng_of(struct firn_rng *r, const void *bytes, size_t len)
{
    static const uint8_t seed[FIRN_RNG_SEED_BYTES];
    firn_rng_init(r, seed);
    memcpy(r->pool_ + FIRN_RNG_POOL_BYTES - len, bytes, len);
    r->left_ = (uint32_t)len;
    r->end_ = FIRN_RNG_POOL_BYTES;
}

static void check_gregorian(const struct firn_uuid *id)
{
    static const uint8_t expect[6] = { 0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46 };
    uint64_t ticks, ms;
    uint16_t seq;
    uint8_t node[6];
    T_EQ(firn_uuid_ticks(id, &ticks), 0);
    T_EQ(ticks, UINT64_C(0x1ec9414c232ab00));
    T_EQ(firn_uuid_unix_ms(id, &ms), 0);
    T_EQ(ms, MOMENT_MS);
    T_EQ(firn_uuid_clock_seq(id, &seq), 0);
    T_EQ(seq, 0x33c8);
    T_EQ(firn_uuid_node(id, node), 0);
    T_OK(memcmp(node, expect, sizeof node) == 0);
}

static void gregorian(struct firn_uuid_gregorian_gen *g)
{
    static const uint8_t node[6] = { 0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46 };
    firn_uuid_gregorian_init(g, node, firn_rng_thread());
    g->clock_seq_ = 0x33c8;
}

T_TEST(rfc9562_a1_version_1)
{
    struct firn_uuid_gregorian_gen g;
    struct firn_uuid id;
    gregorian(&g);
    T_EQ(firn_uuid_v1(&g, MOMENT_MS * 10000, &id), 0);
    check(&id, "c232ab00-9414-11ec-b3c8-9f6bdeced846");
    T_EQ(firn_uuid_version(&id), 1);
    check_gregorian(&id);
}

T_TEST(rfc9562_a2_version_3)
{
    struct firn_uuid id;
    firn_uuid_v3(&firn_uuid_ns_dns, "www.example.com", 15, &id);
    check(&id, "5df41881-3aed-3515-88a7-2f4a814cf09e");
    T_EQ(firn_uuid_version(&id), 3);
}

T_TEST(rfc9562_a3_version_4)
{
    static const uint8_t random[16] = { 0x91, 0x91, 0x08, 0xf7, 0x52, 0xd1, 0x33, 0x20,
                                        0x5b, 0xac, 0xf8, 0x47, 0xdb, 0x41, 0x48, 0xa8 };
    struct firn_rng rng;
    struct firn_uuid id;
    rng_of(&rng, random, sizeof random);
    firn_uuid_v4(&rng, &id);
    check(&id, "919108f7-52d1-4320-9bac-f847db4148a8");
    T_EQ(firn_uuid_version(&id), 4);
}

T_TEST(rfc9562_a4_version_5)
{
    struct firn_uuid id;
    firn_uuid_v5(&firn_uuid_ns_dns, "www.example.com", 15, &id);
    check(&id, "2ed6657d-e927-568b-95e1-2665a8aea6a2");
    T_EQ(firn_uuid_version(&id), 5);
}

T_TEST(rfc9562_a5_version_6)
{
    struct firn_uuid_gregorian_gen g;
    struct firn_uuid id;
    gregorian(&g);
    T_EQ(firn_uuid_v6(&g, MOMENT_MS * 10000, &id), 0);
    check(&id, "1ec9414c-232a-6b00-b3c8-9f6bdeced846");
    T_EQ(firn_uuid_version(&id), 6);
    check_gregorian(&id);
}

/* rand_a 0xcc3 and the first 14 bits of rand_b, 0x18c4, are our counter; it stands one before. */
T_TEST(rfc9562_a6_version_7)
{
    static const uint64_t random = UINT64_C(0xdc0c0c07398f) << 16;
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    struct firn_rng rng;
    struct firn_uuid id;
    uint64_t ms;
    g.fresh_ms_ = MOMENT_MS + 1;
    g.counter_ = (0xcc3 << 14 | 0x18c4) - 1;
    rng_of(&rng, &random, sizeof random);
    T_EQ(firn_uuid_v7(&g, MOMENT_MS, &rng, &id), 0);
    check(&id, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f");
    T_EQ(firn_uuid_version(&id), 7);
    T_EQ(firn_uuid_unix_ms(&id, &ms), 0);
    T_EQ(ms, UINT64_C(0x017f22e279b0));
    T_EQ(ms, MOMENT_MS);
}

T_TEST(rfc9562_b1_version_8_of_time)
{
    /* custom_a 0x2489e9ad2ee2, custom_b 0xe00, custom_c 0x0ec932d5f69181c0; other bits do not
     * matter */
    static const uint8_t custom[16] = { 0x24, 0x89, 0xe9, 0xad, 0x2e, 0xe2, 0xfe, 0x00,
                                        0xce, 0xc9, 0x32, 0xd5, 0xf6, 0x91, 0x81, 0xc0 };
    struct firn_uuid id;
    firn_uuid_v8(custom, &id);
    check(&id, "2489e9ad-2ee2-8e00-8ec9-32d5f69181c0");
    T_EQ(firn_uuid_version(&id), 8);
}

T_TEST(rfc9562_b2_version_8_of_name)
{
    /* SHA-256 of the DNS namespace and "www.example.com" begins so. */
    static const uint8_t custom[16] = { 0x5c, 0x14, 0x6b, 0x14, 0x3c, 0x52, 0x4a, 0xfd,
                                        0x93, 0x8a, 0x37, 0x5d, 0x0d, 0xf1, 0xfb, 0xf6 };
    struct firn_uuid id;
    firn_uuid_v8(custom, &id);
    check(&id, "5c146b14-3c52-8afd-938a-375d0df1fbf6");
    T_EQ(firn_uuid_version(&id), 8);
}

T_TEST(rfc9562_nil_max_and_namespaces)
{
    static const struct {
        const struct firn_uuid *id;
        const char *text;
    } constants[] = {
        { &firn_uuid_nil, "00000000-0000-0000-0000-000000000000" },
        { &firn_uuid_max, "ffffffff-ffff-ffff-ffff-ffffffffffff" },
        { &firn_uuid_ns_dns, "6ba7b810-9dad-11d1-80b4-00c04fd430c8" },
        { &firn_uuid_ns_url, "6ba7b811-9dad-11d1-80b4-00c04fd430c8" },
        { &firn_uuid_ns_oid, "6ba7b812-9dad-11d1-80b4-00c04fd430c8" },
        { &firn_uuid_ns_x500, "6ba7b814-9dad-11d1-80b4-00c04fd430c8" },
    };
    for (size_t i = 0; i < T_LEN(constants); i++) {
        char text[FIRN_UUID_TEXT_BUF];
        firn_uuid_format(constants[i].id, text);
        T_STR(text, constants[i].text);
    }
}

T_TEST(uuid_names)
{
    static char x200[201];
    memset(x200, 'x', 200);
    static const struct {
        const struct firn_uuid *ns;
        const char *name, *v3, *v5;
    } names[] = {
        { &firn_uuid_ns_dns, "", "c87ee674-4ddc-3efe-a74e-dfe25da5d7b3",
          "4ebd0208-8328-5d69-8c44-ec50939c0967" },
        { &firn_uuid_ns_dns, "a", "4c104dd0-4821-30d5-9ce3-0e7a1f8b7c0d",
          "4f3f2898-69e3-5a0d-820a-c4e87987dbce" },
        { &firn_uuid_ns_url, "http://www.example.com/", "556cf76b-3b36-3ae6-85f9-50424b369b50",
          "fcde3c85-2270-590f-9e7c-ee003d65e0e2" },
        { &firn_uuid_ns_oid, "1.3.6.1.4.1.343", "77bc1dc3-0a9f-3e7e-bfa5-3f611a660c80",
          "6aab0456-7392-582a-b92a-ba5a7096945d" },
        { &firn_uuid_ns_x500, x200, "cd64f0f1-001c-3a2b-8564-53c3d9b731e1",
          "39811165-d164-5de5-8890-275135d783ef" },
    };
    for (size_t i = 0; i < T_LEN(names); i++) {
        struct firn_uuid id;
        firn_uuid_v3(names[i].ns, names[i].name, strlen(names[i].name), &id);
        check(&id, names[i].v3);
        firn_uuid_v5(names[i].ns, names[i].name, strlen(names[i].name), &id);
        check(&id, names[i].v5);
    }
}
