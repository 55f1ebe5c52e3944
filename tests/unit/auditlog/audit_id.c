/* The fields of a row's ID, compared with the preset of the library, and the stamp of legacy. */
#include "t.h"

#include "auditlog/audit_id.h"
#include "firn/layout.h"
#include "firn/stamp17.h"

#include <stdio.h>

T_TEST(audit_id_agrees_with_the_layout)
{
    struct firn_layout l;
    T_EQ(firn_layout_parse("audit", 5, 0, &l, NULL), 0);
    for (int i = 0; i < 10000; i++) {
        struct firn_parts p = { { 0 } };
        uint64_t id = t_random() & firn_layout_mask(&l);
        T_EQ(firn_layout_decompose(&l, id, &p), 0);
        T_EQ(audit_id_shard(id), p.field[FIRN_FIELD_SHARD]);
        T_EQ(audit_id_unix_ms(id) * 1000, firn_layout_unix_us(&l, p.field[FIRN_FIELD_TIME]));
        T_OK(audit_id_floor(audit_id_unix_ms(id)) <= id);
        T_OK(audit_id_floor(audit_id_unix_ms(id) + 1) > id);
    }
    T_EQ(firn_layout_mask(&l), AUDIT_ID_MAX);
}

T_TEST(audit_id_floor_has_ends)
{
    T_EQ(audit_id_floor(INT64_MIN), 0);
    T_EQ(audit_id_floor(1609459200000), 0);
    T_EQ(audit_id_floor(1609459200001), 1 << 22);
    T_EQ(audit_id_floor(INT64_C(1) << 60), AUDIT_ID_MAX);
}

T_TEST(audit_id_plausible_wants_shard_and_time)
{
    const int64_t now = 1795000000000;
    const uint64_t id = audit_id_floor(now) | UINT64_C(7) << 17;
    T_OK(audit_id_plausible(id, 7, now));
    T_OK(!audit_id_plausible(id, 6, now));
    T_OK(!audit_id_plausible(id, 7, now + 2 * 86400000));
    T_OK(!audit_id_plausible(id, 7, now - 2 * 86400000));
    T_OK(!audit_id_plausible(id | UINT64_C(1) << 63, 7, now));
}

T_TEST(audit_id_reads_digits_alone)
{
    static const struct {
        const char *text;
        int error;
    } rows[] = { { "1", 0 },
                 { "9223372036854775807", 0 },
                 { "9223372036854775808", FIRN_ERANGE },
                 { "0", FIRN_ERANGE },
                 { "", FIRN_EFORMAT },
                 { "-1", FIRN_EFORMAT },
                 { "1 ", FIRN_EFORMAT },
                 { "0x1", FIRN_EFORMAT } };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        uint64_t id = 77;
        T_EQ(audit_id_read((struct slice){ rows[i].text, strlen(rows[i].text) }, &id),
             rows[i].error, "'%s'", rows[i].text);
        T_OK((id == 77) == (rows[i].error != 0));
    }
}

T_TEST(legacy_id_is_a_stamp)
{
    T_EQ(legacy_id(INT64_C(1609459200000)), INT64_C(20210101000000000));
    T_EQ(legacy_id(INT64_C(1709210096789)), INT64_C(20240229123456789));
    for (int i = 0; i < 1000; i++) {
        int64_t ms = (int64_t)t_random_below(UINT64_C(4000000000000)), back;
        char text[32];
        snprintf(text, sizeof text, "%llu", (unsigned long long)legacy_id(ms));
        T_EQ(firn_stamp17_parse(text, strlen(text), &back), 0, "%s", text);
        T_EQ(back, ms);
    }
}
