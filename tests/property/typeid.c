#include "t.h"

#include "firn/typeid.h"

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

T_TEST(typeid_parse_undoes_format)
{
    struct firn_typeid last = { .prefix = "" };
    char before[FIRN_TYPEID_TEXT_BUF];
    firn_typeid_format(&last, before);
    for (uint64_t n = t_scale(1000000); n > 0; n--) {
        static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
        char prefix[FIRN_TYPEID_PREFIX_MAX], text[FIRN_TYPEID_TEXT_BUF];
        size_t len = n % 8 == 0 ? t_random_below(FIRN_TYPEID_PREFIX_MAX + 1) : t_random_below(6);
        for (size_t i = 0; i < len; i++)
            prefix[i] = letters[t_random_below(i == 0 || i == len - 1 ? 26 : 27)];
        struct firn_typeid id, again;
        struct firn_uuid uuid;
        uint64_t halves[2] = { t_random(), t_random() };
        memcpy(uuid.b, halves, sizeof uuid.b);
        T_EQ(firn_typeid_from_uuid(prefix, len, &uuid, &id), 0);
        if (n % 4 == 0) /* of the same type, for the order */
            T_EQ(firn_typeid_from_uuid(last.prefix, strlen(last.prefix), &uuid, &id), 0);
        size_t text_len = firn_typeid_format(&id, text);
        T_EQ(text_len, strlen(text));
        T_EQ(firn_typeid_parse(text, text_len, &again), 0, "'%s'", text);
        T_STR(again.prefix, id.prefix);
        T_EQ(firn_typeid_cmp(&id, &again), 0);
        if (n % 4 == 0) /* within a type the order of the texts is that of the UUIDs */
            T_EQ(sign(firn_typeid_cmp(&id, &last)), sign(strcmp(text, before)), "%s and %s", text,
                 before);
        last = id;
        memcpy(before, text, sizeof before);
    }
}

T_TEST(typeid_rises_as_text)
{
    struct firn_uuid_v7_gen g = FIRN_UUID_V7_GEN_INIT;
    char last[FIRN_TYPEID_TEXT_BUF] = "";
    for (uint64_t i = 0, n = t_scale(300000); i < n; i++) {
        struct firn_typeid id;
        char text[FIRN_TYPEID_TEXT_BUF];
        T_EQ(firn_typeid_new("user", 4, &g, UINT64_C(1700000000000) + t_random_below(i / 100 + 1),
                             firn_rng_thread(), &id),
             0);
        firn_typeid_format(&id, text);
        T_OK(strcmp(last, text) < 0, "%s and %s", last, text);
        memcpy(last, text, sizeof last);
    }
}
