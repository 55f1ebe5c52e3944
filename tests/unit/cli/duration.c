#include "cli/duration.h"
#include "cli/duration.c"
#include "t.h"

T_TEST(durations)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } rows[] = {
        { 0, "0 ns" },
        { 999, "999 ns" },
        { 1000, "1.00 us" },
        { 9994, "9.99 us" },
        { 9996, "10.0 us" },
        { 99949, "99.9 us" },
        { 99951, "100 us" },
        { 999499, "999 us" },
        { 999500, "1.00 ms" },
        { 3070000, "3.07 ms" },
        { 999499999, "999 ms" },
        { 999500000, "1.00 s" },
        { 1500000000, "1.50 s" },
        { 3600000000000, "3600 s" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        char out[DURATION_BUF];
        T_STR(duration_text(rows[i].ns, out), rows[i].text);
    }
    char out[DURATION_BUF];
    T_STR(duration_text(UINT64_MAX, out), "18446744074 s");
}

T_TEST(counts)
{
    char out[GROUPED_BUF];
    T_STR(grouped_text(0, out), "0");
    T_STR(grouped_text(999, out), "999");
    T_STR(grouped_text(1000, out), "1,000");
    T_STR(grouped_text(1234567, out), "1,234,567");
    T_STR(grouped_text(UINT64_MAX, out), "18,446,744,073,709,551,615");
}

T_TEST(durations_as_people_write_them)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {
        { "0", 0 },       { "10", 10000 },   { "10s", 10000 },         { "500ms", 500 },
        { "5m", 300000 }, { "2h", 7200000 }, { "8784h", 31622400000 }, { "1d", 86400000 }
    };
    static const char *const bad[] = { "",    "s",    "-1s",   "1.5s",
                                       "1 s", "10 d", "8785h", "99999999999999999999s" };
    uint64_t ms;
    for (size_t i = 0; i < T_LEN(good); i++) {
        T_OK(duration_parse(good[i].text, &ms), "%s", good[i].text);
        T_EQ(ms, good[i].ms, "%s", good[i].text);
    }
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(!duration_parse(bad[i], &ms), "%s", bad[i]);
}
