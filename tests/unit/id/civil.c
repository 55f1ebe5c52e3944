#include "t.h"

#include <stdlib.h>

#include "firn/error.h"
#include "id/civil.h"

T_TEST(date_valid)
{
    static const struct firn__date good[] = { { 1, 1, 1 },     { 2000, 2, 29 },  { 2024, 2, 29 },
                                              { 1900, 2, 28 }, { 2026, 11, 30 }, { 9999, 12, 31 } };
    static const struct firn__date bad[] = { { 0, 1, 1 },     { 10000, 1, 1 },  { 2026, 0, 1 },
                                             { 2026, 13, 1 }, { 2026, 1, 0 },   { 2026, 1, 32 },
                                             { 1900, 2, 29 }, { 2023, 2, 29 },  { 2100, 2, 29 },
                                             { 2024, 2, 30 }, { 2026, 11, 31 }, { -4, 1, 1 },
                                             { 2026, ~0u, 1 } };
    for (size_t i = 0; i < T_LEN(good); i++)
        T_OK(firn__date_valid(good[i]), "row %zu", i);
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(!firn__date_valid(bad[i]), "row %zu", i);
}

T_TEST(date_days)
{
    static const struct {
        int64_t days;
        struct firn__date date;
    } row[] = { { 0, { 1970, 1, 1 } },
                { -1, { 1969, 12, 31 } },
                { 11016, { 2000, 2, 29 } },
                { 19723, { 2024, 1, 1 } },
                { FIRN__UNIX_S_MIN / FIRN__DAY_S, { 1, 1, 1 } },
                { (FIRN__UNIX_S_MAX + 1) / FIRN__DAY_S - 1, { 9999, 12, 31 } } };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct firn__date date = firn__date_from_days(row[i].days);
        T_EQ(firn__date_to_days(row[i].date), row[i].days);
        T_EQ(date.year, row[i].date.year);
        T_EQ(date.month, row[i].date.month);
        T_EQ(date.day, row[i].date.day);
    }
    T_EQ(firn__unix_to_days(0), 0);
    T_EQ(firn__unix_to_days(-1), -1);
    T_EQ(firn__unix_to_days(-86400), -1);
    T_EQ(firn__unix_to_days(-86401), -2);
}

T_TEST(rfc3339_parse)
{
    static const struct {
        const char *text;
        int64_t unix_s;
        uint32_t ns;
    } good[] = {
        { "1970-01-01T00:00:00Z", 0, 0 },
        { "2021-01-01T00:00:00Z", 1609459200, 0 },
        { "2021-01-01t00:00:00z", 1609459200, 0 },
        { "2010-11-04T01:42:54.657Z", 1288834974, 657000000 }, /* Twitter's epoch */
        { "1969-12-31T23:59:59.999999999Z", -1, 999999999 },
        { "1970-01-01T00:00:00.000000001Z", 0, 1 },
        { "1970-01-01T00:00:00.1Z", 0, 100000000 },
        { "1970-01-01T01:30:00+01:30", 0, 0 },
        { "1969-12-31T16:00:00-08:00", 0, 0 },
        { "1970-01-01T00:00:00-00:00", 0, 0 },
        { "1985-04-12T23:20:50.52Z", 482196050, 520000000 }, /* RFC 3339, 5.8 */
        { "1996-12-19T16:39:57-08:00", 851042397, 0 },       /* the same as 1996-12-20T00:39:57Z */
        { "1937-01-01T12:00:27.87+00:20", -1041337173, 870000000 },
        { "0001-01-01T00:00:00Z", FIRN__UNIX_S_MIN, 0 },
        { "9999-12-31T23:59:59.999999999Z", FIRN__UNIX_S_MAX, 999999999 },
    };
    for (size_t i = 0; i < T_LEN(good); i++) {
        struct firn__time t = { 77, 77 };
        size_t len = strlen(good[i].text);
        char *exact = malloc(len); /* sanitizers see a read past its end */
        memcpy(exact, good[i].text, len);
        T_EQ(firn__rfc3339_parse(exact, len, &t), 0, "'%s'", good[i].text);
        free(exact);
        T_EQ(t.unix_s, good[i].unix_s, "'%s'", good[i].text);
        T_EQ(t.ns, good[i].ns, "'%s'", good[i].text);
    }
}

T_TEST(rfc3339_parse_refuses)
{
    static const struct {
        const char *text;
        int error;
    } bad[] = {
        { "", FIRN_EFORMAT },
        { "2021-01-01", FIRN_EFORMAT },
        { "2021-01-01T00:00:00", FIRN_EFORMAT },
        { "2021-01-01T00:00Z", FIRN_EFORMAT },
        { "2021-01-01 00:00:00Z", FIRN_EFORMAT },
        { " 2021-01-01T00:00:00Z", FIRN_EFORMAT },
        { "2021-01-01T00:00:00Z ", FIRN_EFORMAT },
        { "2021-01-01T00:00:00ZZ", FIRN_EFORMAT },
        { "2021-1-01T00:00:00.0Z", FIRN_EFORMAT },
        { "2021/01/01T00:00:00Z", FIRN_EFORMAT },
        { "2021-02-29T00:00:00Z", FIRN_EFORMAT },
        { "2021-13-01T00:00:00Z", FIRN_EFORMAT },
        { "2021-00-01T00:00:00Z", FIRN_EFORMAT },
        { "0000-01-01T00:00:00Z", FIRN_EFORMAT },
        { "2021-01-01T24:00:00Z", FIRN_EFORMAT },
        { "2021-01-01T00:60:00Z", FIRN_EFORMAT },
        { "1990-12-31T23:59:60Z", FIRN_EFORMAT }, /* a leap second that was */
        { "2021-01-01T00.00:00Z", FIRN_EFORMAT },
        { "2021-01-01T00:00.00Z", FIRN_EFORMAT },
        { "2021-01-01T00:00:00.Z", FIRN_EFORMAT },
        { "2021-01-01T00:00:00.", FIRN_EFORMAT },
        { "2021-01-01T00:00:00.123", FIRN_EFORMAT },
        { "2021-01-01T00:00:00,5Z", FIRN_EFORMAT },
        { "2021-01-01T00:00:00.1234567890Z", FIRN_EFORMAT },
        { "2021-01-01T00:00:00+0100", FIRN_EFORMAT },
        { "2021-01-01T00:00:00+01", FIRN_EFORMAT },
        { "2021-01-01T00:00:00+24:00", FIRN_EFORMAT },
        { "2021-01-01T00:00:00+01:60", FIRN_EFORMAT },
        { "2021-01-01T00:00:00+01:00Z", FIRN_EFORMAT },
        { "-021-01-01T00:00:00Z", FIRN_EFORMAT },
        { "12021-01-01T00:00:00Z", FIRN_EFORMAT },
        { "0001-01-01T00:00:00+00:01", FIRN_ERANGE },
        { "9999-12-31T23:59:59-00:01", FIRN_ERANGE },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn__time t = { 77, 77 };
        size_t len = strlen(bad[i].text);
        char *exact = malloc(len + !len);
        memcpy(exact, bad[i].text, len);
        T_EQ(firn__rfc3339_parse(exact, len, &t), bad[i].error, "'%s'", bad[i].text);
        free(exact);
        T_EQ(t.unix_s, 77);
    }
}

T_TEST(rfc3339_format)
{
    static const struct {
        struct firn__time t;
        unsigned digits;
        const char *text;
    } row[] = {
        { { 0, 0 }, 0, "1970-01-01T00:00:00Z" },
        { { 1609459200, 0 }, 3, "2021-01-01T00:00:00.000Z" },
        { { 1288834974, 657000000 }, 3, "2010-11-04T01:42:54.657Z" },
        { { -1, 999999999 }, 9, "1969-12-31T23:59:59.999999999Z" },
        { { -1, 999999999 }, 1, "1969-12-31T23:59:59.9Z" }, /* cut, not rounded */
        { { -1, 999999999 }, 0, "1969-12-31T23:59:59Z" },
        { { FIRN__UNIX_S_MIN, 0 }, 0, "0001-01-01T00:00:00Z" },
        { { FIRN__UNIX_S_MAX, 5 }, 9, "9999-12-31T23:59:59.000000005Z" },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        char text[FIRN__RFC3339_BUF] = "untouched";
        size_t len = strlen(row[i].text);
        T_EQ(firn__rfc3339_format(row[i].t, row[i].digits, text, len), 0, "no room for the NUL");
        T_STR(text, "untouched");
        T_EQ(firn__rfc3339_format(row[i].t, row[i].digits, text, len + 1), len);
        T_STR(text, row[i].text);
    }
    char text[64];
    T_EQ(firn__rfc3339_format((struct firn__time){ 0, 0 }, 10, text, sizeof text), 0);
    T_EQ(firn__rfc3339_format((struct firn__time){ 0, 1000000000 }, 0, text, sizeof text), 0);
    T_EQ(firn__rfc3339_format((struct firn__time){ FIRN__UNIX_S_MIN - 1, 0 }, 0, text, sizeof text),
         0);
    T_EQ(firn__rfc3339_format((struct firn__time){ FIRN__UNIX_S_MAX + 1, 0 }, 0, text, sizeof text),
         0);
}
