/* The examples of the TypeID specification, version 0.3: valid.yml and invalid.yml. */
#include "t.h"

#include "firn/typeid.h"

#define ZEROS "00000000000000000000000000"

T_TEST(typeid_spec_valid)
{
    static const struct {
        const char *name, *text, *prefix, *uuid;
    } valid[] = {
        { "nil", ZEROS, "", "00000000-0000-0000-0000-000000000000" },
        { "one", "00000000000000000000000001", "", "00000000-0000-0000-0000-000000000001" },
        { "ten", "0000000000000000000000000a", "", "00000000-0000-0000-0000-00000000000a" },
        { "sixteen", "0000000000000000000000000g", "", "00000000-0000-0000-0000-000000000010" },
        { "thirty-two", "00000000000000000000000010", "", "00000000-0000-0000-0000-000000000020" },
        { "max-valid", "7zzzzzzzzzzzzzzzzzzzzzzzzz", "", "ffffffff-ffff-ffff-ffff-ffffffffffff" },
        { "valid-alphabet", "prefix_0123456789abcdefghjkmnpqrs", "prefix",
          "0110c853-1d09-52d8-d73e-1194e95b5f19" },
        { "valid-uuidv7", "prefix_01h455vb4pex5vsknk084sn02q", "prefix",
          "01890a5d-ac96-774b-bcce-b302099a8057" },
        { "prefix-underscore", "pre_fix_" ZEROS, "pre_fix",
          "00000000-0000-0000-0000-000000000000" },
    };
    for (size_t i = 0; i < T_LEN(valid); i++) {
        struct firn_typeid id, made;
        struct firn_uuid uuid;
        char text[FIRN_TYPEID_TEXT_BUF], hex[FIRN_UUID_TEXT_BUF];
        T_EQ(firn_typeid_parse(valid[i].text, strlen(valid[i].text), &id), 0, "%s", valid[i].name);
        T_STR(id.prefix, valid[i].prefix, "%s", valid[i].name);
        firn_uuid_format(&id.uuid, hex);
        T_STR(hex, valid[i].uuid, "%s", valid[i].name);

        T_EQ(firn_uuid_parse(valid[i].uuid, FIRN_UUID_TEXT_LEN, &uuid), 0);
        T_EQ(firn_typeid_from_uuid(valid[i].prefix, strlen(valid[i].prefix), &uuid, &made), 0);
        T_EQ(firn_typeid_cmp(&made, &id), 0);
        T_EQ(firn_typeid_format(&made, text), strlen(valid[i].text));
        T_STR(text, valid[i].text, "%s", valid[i].name);
    }
}

T_TEST(typeid_spec_invalid)
{
    static const struct {
        const char *name, *text;
    } invalid[] = {
        { "prefix-uppercase", "PREFIX_" ZEROS },
        { "prefix-numeric", "12345_" ZEROS },
        { "prefix-period", "pre.fix_" ZEROS },
        { "prefix-non-ascii", "pr\xc3\xa9"
                              "fix_" ZEROS },
        { "prefix-spaces", "  prefix_" ZEROS },
        { "prefix-64-chars",
          "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl_" ZEROS },
        { "separator-empty-prefix", "_" ZEROS },
        { "separator-empty", "_" },
        { "suffix-short", "prefix_1234567890123456789012345" },
        { "suffix-long", "prefix_123456789012345678901234567" },
        { "suffix-spaces", "prefix_1234567890123456789012345 " },
        { "suffix-uppercase", "prefix_0123456789ABCDEFGHJKMNPQRS" },
        { "suffix-hyphens", "prefix_123456789-123456789-123456" },
        { "suffix-wrong-alphabet", "prefix_ooooooiiiiiiuuuuuuulllllll" },
        { "suffix-ambiguous-crockford", "prefix_i23456789ol23456789oi23456" },
        { "suffix-hyphens-crockford", "prefix_123456789-0123456789-0123456" },
        { "suffix-overflow", "prefix_8zzzzzzzzzzzzzzzzzzzzzzzzz" },
        { "prefix-underscore-start", "_prefix_" ZEROS },
        { "prefix-underscore-end", "prefix__" ZEROS },
    };
    for (size_t i = 0; i < T_LEN(invalid); i++) {
        struct firn_typeid id;
        int expect = strcmp(invalid[i].name, "suffix-overflow") == 0 ? FIRN_ERANGE : FIRN_EFORMAT;
        T_EQ(firn_typeid_parse(invalid[i].text, strlen(invalid[i].text), &id), expect, "%s",
             invalid[i].name);
    }
}
