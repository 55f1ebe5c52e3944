/* Dated sequences: the note, the registers' names, and the periods that keys may be of. */
#include "t.h"

#include "coord/period.h"
#include "firn/dated.h"

T_TEST(period_note)
{
    char note[RECORD_NOTE_MAX + 1];
    uint32_t reset, digits;
    for (uint32_t i = 0; i < 3; i++) {
        dated_note_format(i, 4 + i, note);
        T_EQ(dated_note_parse(note, &reset, &digits), 0, "%s", note);
        T_EQ(reset, i);
        T_EQ(digits, 4 + i);
    }
    static const char *const bad[] = { "", "dated", "dated:week:6", "dated:day:0", "dated:day:19" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(dated_note_parse(bad[i], &reset, &digits), FIRN_EFORMAT, "%s", bad[i]);
}

T_TEST(period_register_names)
{
    char name[PERIOD_NAME_BUF], longest[RECORD_NAME_MAX + 1];
    T_EQ(period_name("orders", 20261116, name), 15);
    T_STR(name, "orders@20261116");
    memset(longest, 'a', sizeof longest);
    longest[55] = '\0';
    T_EQ(period_name(longest, 20261116, name), RECORD_NAME_MAX);
    longest[55] = 'a';
    longest[56] = '\0';
    T_EQ(period_name(longest, 20261116, name), 0);
}

/* Each period that overlaps the retention once, and not the current one. */
T_TEST(period_walk)
{
    enum { DAY = 86400, NOON = 1794916800 }; /* 2026-11-17 12:00 UTC */
    static const struct {
        uint32_t reset;
        uint64_t retention_s;
        uint32_t now, want[3];
    } rows[] = {
        { FIRN_DATED_DAY, DAY, 20261117, { 20261116 } },
        { FIRN_DATED_DAY, 2 * DAY, 20261117, { 20261116, 20261115 } },
        { FIRN_DATED_MONTH, DAY, 202611, { 0 } },
        { FIRN_DATED_MONTH, 40 * DAY, 202611, { 202610 } },
        { FIRN_DATED_YEAR, 400 * UINT64_C(86400), 2026, { 2025 } },
        { FIRN_DATED_DAY, 1, 20261117, { 20261116 } },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct period_walk w;
        uint32_t period, now;
        T_EQ(firn_dated_period(rows[i].reset, NOON, &now), 0);
        T_EQ(now, rows[i].now);
        period_walk_init(&w, rows[i].reset, now, NOON, rows[i].retention_s);
        size_t n = 0;
        for (; period_walk_next(&w, &period) == 1; n++)
            T_EQ(period, n < 3 ? rows[i].want[n] : 0, "row %zu", i);
        T_EQ(n == 3 || rows[i].want[n] == 0, true, "row %zu: %zu periods", i, n);
    }
}
