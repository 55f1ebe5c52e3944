#include "t.h"

#include "firn/layout.h"

#define NOW_MS INT64_C(1794787200000) /* 2026-11-15 */

static int parse(const char *text, struct firn_layout *l, struct firn_diag *d)
{
    return firn_layout_parse(text, strlen(text), NOW_MS, l, d);
}

T_TEST(layout_presets_parse_and_format)
{
    size_t n;
    const struct firn_preset *p = firn_layout_presets(&n);
    T_OK(n >= 13);
    for (size_t i = 0; i < n; i++) {
        struct firn_layout a, b;
        struct firn_diag d = { 0, "" };
        T_EQ(parse(p[i].name, &a, &d), 0, "%s: %s", p[i].name, d.text);
        char text[FIRN_LAYOUT_TEXT_BUF];
        T_EQ(firn_layout_format(&a, text), strlen(text));
        T_EQ(parse(text, &b, &d), 0, "%s: %s", text, d.text);
        T_OK(memcmp(&a, &b, sizeof a) == 0, "%s", text);
    }
}

T_TEST(layout_text_is_canonical)
{
    static const char *const same[] = {
        "unused:1,time:41@1ms,dc:5,node:5,seq:12;epoch=2021-01-01T00:00:00Z",
        "unused:11,time:41@1ms,node:5,seq:7;epoch=2021-01-01T00:00:00Z",
        "unused:4,time:32@1s,unused:4,shard:12,seq:12;epoch=2010-11-04T01:42:54.657Z",
        "time:48@1us,node:8,seq:8;epoch=1970-01-01T00:00:00Z;unsigned",
    };
    for (size_t i = 0; i < T_LEN(same); i++) {
        struct firn_layout l;
        struct firn_diag d = { 0, "" };
        char text[FIRN_LAYOUT_TEXT_BUF];
        T_EQ(parse(same[i], &l, &d), 0, "%s: %s", same[i], d.text);
        firn_layout_format(&l, text);
        T_STR(text, same[i]);
    }
}

T_TEST(layout_refuses_with_column_and_reason)
{
    static const struct {
        const char *text;
        int error;
        size_t column;
        const char *says;
    } bad[] = {
        { "", FIRN_ENOENT, 1, "no preset" },
        { "snowflake", FIRN_ENOENT, 1, "no preset" },
        { "tme:41,node:10", FIRN_EFORMAT, 1, "expected a field" },
        { "time41:41", FIRN_EFORMAT, 5, "expected ':'" },
        { "time:,node:10", FIRN_EFORMAT, 6, "expected a number" },
        { "time:0,node:10", FIRN_ERANGE, 6, "0 bits" },
        { "time:99,node:10", FIRN_ERANGE, 6, "above 64" },
        { "time:41@,node:10", FIRN_EFORMAT, 9, "number for the tick" },
        { "time:41@5m,node:10", FIRN_EFORMAT, 10, "unit" },
        { "time:41@0ms,node:10", FIRN_ERANGE, 9, "between 1us and 1s" },
        { "time:41@2s,node:10", FIRN_ERANGE, 9, "between 1us and 1s" },
        { "time:41,node:10@1ms", FIRN_EFORMAT, 16, "only the time field" },
        { "time:41,node:10,seq:14", FIRN_ERANGE, 17, "65 bits" },
        { "time:41,node:10,time:3", FIRN_EFORMAT, 17, "twice" },
        { "time:41,node:5,worker:5", FIRN_EFORMAT, 16, "node is there twice" },
        { "node:10,seq:12", FIRN_ERANGE, 0, "no time field" },
        { "time:41,seq:12", FIRN_ERANGE, 0, "no identity" },
        { "time:20,node:33", FIRN_ERANGE, 0, "32 is the most" },
        { "time:42,node:10,seq:12", FIRN_ERANGE, 0, "unsigned" },
        { "time:41,node:10,seq:12;", FIRN_EFORMAT, 24, "expected epoch=" },
        { "time:41,node:10;epoch=yesterday", FIRN_EFORMAT, 23, "2021-01-01T00:00:00Z" },
        { "time:41,node:10;epoch=2021-02-29T00:00:00Z", FIRN_EFORMAT, 23, "such as" },
        { "time:41,node:10;epoch=2121-01-01T00:00:00Z", FIRN_ERANGE, 23, "future" },
        { "time:41,node:10;epoch=1960-01-01T00:00:00Z", FIRN_ERANGE, 23, "1970" },
        { "time:41,node:10 ", FIRN_EFORMAT, 16, "expected ','" },
        { "time:41<<22,node:10", FIRN_EFORMAT, 1, "or none" },
        { "time:41<<30,node:10<<0", FIRN_ERANGE, 1, "do not fit" },
        /* The published layout that shifts a 16-bit data centre by 16 and the time by 24. */
        { "time:39<<24,dc:16<<16,worker:16<<0", FIRN_ERANGE, 13, "overlaps" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_layout l;
        struct firn_diag d = { 0, "" };
        T_EQ(parse(bad[i].text, &l, &d), bad[i].error, "%s: %s", bad[i].text, d.text);
        T_EQ(d.column, bad[i].column, "%s: %s", bad[i].text, d.text);
        T_OK(strstr(d.text, bad[i].says) != NULL, "%s: %s", bad[i].text, d.text);
    }
}

T_TEST(layout_compose_checks_ranges)
{
    struct firn_layout l;
    struct firn_diag d;
    T_EQ(parse("twitter", &l, NULL), 0);
    struct firn_parts parts = { { 1, 2, 3, 0, 4 } }, back;
    uint64_t id = 0;
    T_EQ(firn_layout_compose(&l, &parts, &id, &d), 0);
    T_EQ(id, 1u << 22 | 2u << 17 | 3u << 12 | 4);
    T_EQ(firn_layout_decompose(&l, id, &back), 0);
    T_OK(memcmp(&parts, &back, sizeof parts) == 0);
    parts.field[FIRN_FIELD_DC] = 32;
    T_EQ(firn_layout_compose(&l, &parts, &id, &d), FIRN_ERANGE);
    T_STR(d.text, "dc 32 is above 31, the most in 5 bits");
    parts.field[FIRN_FIELD_DC] = 31;
    parts.field[FIRN_FIELD_SHARD] = 1;
    T_EQ(firn_layout_compose(&l, &parts, &id, &d), FIRN_ERANGE);
    T_STR(d.text, "the layout has no field shard");
    T_EQ(firn_layout_decompose(&l, UINT64_C(1) << 63, &back), FIRN_ERANGE);
}

T_TEST(layout_slots_join_dc_and_worker)
{
    struct firn_layout l;
    T_EQ(parse("twitter", &l, NULL), 0);
    T_EQ(firn_layout_slots(&l), 1024);
    T_EQ(firn_layout_slot_bits(&l, 33), 1u << 17 | 1u << 12);
    T_EQ(parse("instagram", &l, NULL), 0);
    T_EQ(firn_layout_slots(&l), 8192);
    T_EQ(firn_layout_slot_bits(&l, 5), 5u << 10);
    T_EQ(parse("mastodon", &l, NULL), 0);
    T_EQ(firn_layout_slots(&l), 0);
}

T_TEST(layout_time_arithmetic)
{
    struct firn_layout l;
    T_EQ(parse("firn", &l, NULL), 0);
    T_EQ(firn_layout_ticks(&l, INT64_C(1609459200000000)), 0);
    T_EQ(firn_layout_ticks(&l, INT64_C(1609459200001999)), 1);
    T_EQ(firn_layout_ticks(&l, 0), 0);
    T_EQ(firn_layout_unix_us(&l, 1), INT64_C(1609459200001000));
    T_EQ(firn_layout_end_us(&l) / 1000000, (INT64_C(1609459200000) + (INT64_C(1) << 41)) / 1000);
    T_EQ(parse("uid-generator", &l, NULL), 0);
    T_EQ(firn_layout_end_us(&l) / 1000000, 1463673600 + (1 << 28));
    T_EQ(parse("time:60@1s,node:3;epoch=0", &l, NULL), 0);
    T_EQ(firn_layout_unix_us(&l, UINT64_C(1) << 59), INT64_MAX);
}

T_TEST(layout_sortable)
{
    struct firn_layout l;
    T_EQ(parse("sonyflake", &l, NULL), 0);
    T_EQ(firn_layout_sortable(&l), 1);
    T_EQ(parse("unused:1,node:10,time:41,seq:12", &l, NULL), 0);
    T_EQ(firn_layout_sortable(&l), 0);
}

T_TEST(layout_collisions)
{
    struct firn_layout a, b;
    struct firn_parts parts;
    uint64_t id = 0;
    const int64_t now_us = NOW_MS * 1000;
    T_EQ(parse("firn", &a, NULL), 0);
    T_EQ(firn_layout_collide(&a, &a, now_us, &id), 1);
    T_EQ(parse("twitter", &b, NULL), 0);
    T_EQ(firn_layout_collide(&a, &b, now_us, &id), 1); /* firn reaches Twitter's values in 2036 */
    T_EQ(firn_layout_decompose(&a, id, &parts), 0);
    T_OK(parts.field[FIRN_FIELD_TIME] >= firn_layout_ticks(&a, now_us));
    T_EQ(firn_layout_decompose(&b, id, &parts), 0);
    T_OK(parts.field[FIRN_FIELD_TIME] >= firn_layout_ticks(&b, now_us));
    T_EQ(parse("js53", &b, NULL), 0); /* 53 bits end far below what firn issues today */
    T_EQ(firn_layout_collide(&a, &b, now_us, &id), 0);
    T_EQ(firn_layout_collide(&b, &a, now_us, &id), 0);
    T_EQ(parse("uid-generator", &b, NULL), 0); /* issues nothing since 2024 */
    T_EQ(firn_layout_collide(&a, &b, now_us, &id), 0);
}
