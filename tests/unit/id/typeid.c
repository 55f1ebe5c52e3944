#include "t.h"

#include "firn/typeid.h"

#include <stdlib.h>

#define SUFFIX "01h455vb4pex5vsknk084sn02q"
#define MAX63  "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk"

/* Parse a copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int parse_exact(const char *text, size_t len, struct firn_typeid *out)
{
    char *p = malloc(len);
    memcpy(p, text, len);
    int r = firn_typeid_parse(p, len, out);
    free(p);
    return r;
}

T_TEST(typeid_parse_accepts)
{
    static const char *const good[] = { SUFFIX,          "a_" SUFFIX,    "user_" SUFFIX,
                                        "a_b_c_" SUFFIX, "a__b_" SUFFIX, MAX63 "_" SUFFIX };
    for (size_t i = 0; i < T_LEN(good); i++) {
        struct firn_typeid id;
        char text[FIRN_TYPEID_TEXT_BUF];
        T_EQ(parse_exact(good[i], strlen(good[i]), &id), 0, "'%s'", good[i]);
        T_EQ(firn_typeid_format(&id, text), strlen(good[i]));
        T_STR(text, good[i]);
    }
}

/* The type of a whole one has no digits, so nothing that is cut off is a TypeID. */
T_TEST(typeid_parse_truncated)
{
    static const char *const whole[] = { SUFFIX, "a_" SUFFIX, "user_" SUFFIX, "a_b_c_" SUFFIX,
                                         MAX63 "_" SUFFIX };
    for (size_t i = 0; i < T_LEN(whole); i++)
        for (size_t len = 0; len < strlen(whole[i]); len++) {
            struct firn_typeid id, before;
            memset(&id, 0x55, sizeof id);
            before = id;
            T_EQ(parse_exact(whole[i], len, &id), FIRN_EFORMAT, "'%.*s'", (int)len, whole[i]);
            T_OK(memcmp(&id, &before, sizeof id) == 0, "untouched on error");
        }
}

T_TEST(typeid_parse_every_byte)
{
    static const char sample[] = "a_b_" SUFFIX;
    for (size_t at = 0; at < sizeof sample - 1; at++)
        for (int c = 0; c < 256; c++) {
            char text[sizeof sample];
            struct firn_typeid id;
            memcpy(text, sample, sizeof text);
            text[at] = (char)c;
            int letter = c >= 'a' && c <= 'z', expect = FIRN_EFORMAT;
            if (at == 0 || at == 2)
                expect = letter ? 0 : FIRN_EFORMAT;
            else if (at == 1)
                expect = letter || c == '_' ? 0 : FIRN_EFORMAT;
            else if (at == 3)
                expect = c == '_' ? 0 : FIRN_EFORMAT;
            else if (c && strchr("0123456789abcdefghjkmnpqrstvwxyz", c))
                expect = at == 4 && c > '7' ? FIRN_ERANGE : 0;
            T_EQ(parse_exact(text, sizeof sample - 1, &id), expect, "byte %d at %zu", c, at);
        }
}

T_TEST(typeid_prefixes)
{
    static const char *const good[] = { "", "a", "user", "a_b", "a__b", MAX63 };
    static const char *const bad[] = { "_",       "__", "_a",    "a_",  "A",   "aB",
                                       "a1",      "1a", "a b",   "a-b", "a.b", "a\xc3\xa9",
                                       MAX63 "l", " ",  "user ", "`",   "{" };
    struct firn_rng *rng = firn_rng_thread();
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    for (size_t i = 0; i < T_LEN(good); i++) {
        struct firn_typeid id;
        uint64_t ms;
        T_EQ(firn_typeid_from_uuid(good[i], strlen(good[i]), &firn_uuid_max, &id), 0);
        T_STR(id.prefix, good[i]);
        T_EQ(firn_uuid_cmp(&id.uuid, &firn_uuid_max), 0);
        T_EQ(firn_typeid_new(good[i], strlen(good[i]), &g, 4711 + i, rng, &id), 0);
        T_STR(id.prefix, good[i]);
        T_EQ(firn_uuid_version(&id.uuid), 7);
        T_EQ(firn_uuid_unix_ms(&id.uuid, &ms), 0);
        T_EQ(ms, 4711 + i);
    }
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_typeid id, before;
        memset(&id, 0x55, sizeof id);
        before = id;
        T_EQ(firn_typeid_from_uuid(bad[i], strlen(bad[i]), &firn_uuid_max, &id), FIRN_EFORMAT,
             "'%s'", bad[i]);
        T_EQ(firn_typeid_new(bad[i], strlen(bad[i]), &g, 0, rng, &id), FIRN_EFORMAT, "'%s'",
             bad[i]);
        T_OK(memcmp(&id, &before, sizeof id) == 0, "untouched on error");
    }
    struct firn_typeid id;
    T_EQ(firn_typeid_from_uuid("a\0b", 3, &firn_uuid_max, &id), FIRN_EFORMAT);
    T_EQ(firn_typeid_new("a", 1, &g, UINT64_MAX, rng, &id), FIRN_ERANGE);
}

T_TEST(typeid_null_arguments)
{
    struct firn_rng *rng = firn_rng_thread();
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    struct firn_typeid id;
    T_EQ(firn_typeid_parse(NULL, 26, &id), FIRN_EINVAL);
    T_EQ(firn_typeid_parse(SUFFIX, 26, NULL), FIRN_EINVAL);
    T_EQ(firn_typeid_from_uuid(NULL, 0, &firn_uuid_nil, &id), 0);
    T_EQ(firn_typeid_from_uuid(NULL, 1, &firn_uuid_nil, &id), FIRN_EINVAL);
    T_EQ(firn_typeid_from_uuid("a", 1, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_typeid_from_uuid("a", 1, &firn_uuid_nil, NULL), FIRN_EINVAL);
    T_EQ(firn_typeid_new(NULL, 0, &g, 0, rng, &id), 0);
    T_EQ(firn_typeid_new(NULL, 1, &g, 0, rng, &id), FIRN_EINVAL);
    T_EQ(firn_typeid_new("a", 1, NULL, 0, rng, &id), FIRN_EINVAL);
    T_EQ(firn_typeid_new("a", 1, &g, 0, NULL, &id), FIRN_EINVAL);
    T_EQ(firn_typeid_new("a", 1, &g, 0, rng, NULL), FIRN_EINVAL);
}

T_TEST(typeid_cmp)
{
    static const char *const rising[] = {
        "00000000000000000000000000",    "7zzzzzzzzzzzzzzzzzzzzzzzzz",
        "a_00000000000000000000000000",  "a_00000000000000000000000001",
        "ab_00000000000000000000000000", "b_00000000000000000000000000"
    };
    for (size_t i = 0; i < T_LEN(rising); i++)
        for (size_t j = 0; j < T_LEN(rising); j++) {
            struct firn_typeid a, b;
            T_EQ(firn_typeid_parse(rising[i], strlen(rising[i]), &a), 0);
            T_EQ(firn_typeid_parse(rising[j], strlen(rising[j]), &b), 0);
            int c = firn_typeid_cmp(&a, &b);
            T_EQ((c > 0) - (c < 0), (i > j) - (i < j), "%s and %s", rising[i], rising[j]);
        }
}
