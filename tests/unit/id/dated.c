#include "t.h"

#include <stdlib.h>

#include "firn/dated.h"

#define NOV_15 INT64_C(1794700800) /* 2026-11-15T00:00:00Z */
#define DAY    INT64_C(86400)

static const struct {
    struct firn_dated id;
    const char *text;
} good[] = {
    { { FIRN_DATED_DAY, 20261115, 6, 0, 42 }, "20261115-000042" },
    { { FIRN_DATED_DAY, 20240229, 1, 0, 7 }, "20240229-7" },
    { { FIRN_DATED_MONTH, 202611, 6, 0, 42 }, "202611-000042" },
    { { FIRN_DATED_YEAR, 2026, 6, 0, 42 }, "2026-000042" },
    { { FIRN_DATED_YEAR, 1, 2, 0, 1 }, "0001-01" },
    { { FIRN_DATED_DAY, 99991231, 18, 0, 1 }, "99991231-000000000000000001" },
    { { FIRN_DATED_DAY, 99991231, 18, 0, FIRN_DATED_NUMBER_MAX }, "99991231-999999999999999999" },
};

T_TEST(dated_round_trip)
{
    for (size_t i = 0; i < T_LEN(good); i++) {
        char text[FIRN_DATED_TEXT_BUF];
        T_EQ(firn_dated_format(&good[i].id, text), strlen(good[i].text));
        T_STR(text, good[i].text);
        for (unsigned any = 0; any < 2; any++) {
            struct firn_dated id = { 0 };
            unsigned digits = any ? 0 : good[i].id.digits;
            T_EQ(firn_dated_parse(text, strlen(text), digits, &id), 0, "'%s'", text);
            T_EQ(id.reset, good[i].id.reset, "'%s'", text);
            T_EQ(id.period, good[i].id.period, "'%s'", text);
            T_EQ(id.digits, good[i].id.digits, "'%s'", text);
            T_EQ(id.number, good[i].id.number, "'%s'", text);
        }
    }
}

T_TEST(dated_grows_longer)
{
    struct firn_dated id = { FIRN_DATED_DAY, 20261115, 3, 0, 999 }, back;
    char text[FIRN_DATED_TEXT_BUF];
    T_EQ(firn_dated_format(&id, text), 12);
    T_STR(text, "20261115-999");
    id.number = 1000;
    T_EQ(firn_dated_format(&id, text), 13);
    T_STR(text, "20261115-1000");
    T_EQ(firn_dated_parse(text, 13, 3, &back), 0);
    T_EQ(back.number, 1000);
    id.digits = 0; /* the default */
    firn_dated_format(&id, text);
    T_STR(text, "20261115-001000");
}

T_TEST(dated_parse_refuses)
{
    static const struct {
        const char *text;
        unsigned digits;
    } bad[] = {
        { "", 0 },
        { "-1", 0 },
        { "20261115", 0 },
        { "20261115-", 0 },
        { "20261115000042", 0 },
        { "20261115_000042", 0 },
        { "2026111-000042", 0 },
        { "202611150-000042", 0 },
        { "20261131-000042", 0 },
        { "20230229-000042", 0 },
        { "19000229-000042", 0 },
        { "20260001-000042", 0 },
        { "20261301-000042", 0 },
        { "20261100-000042", 0 },
        { "00001115-000042", 0 },
        { "99999999-000042", 0 },
        { "202600-000042", 0 },
        { "202613-000042", 0 },
        { "0000-000042", 0 },
        { "20261115-000000", 0 },
        { "20261115-00004x", 0 },
        { "20261115--00042", 0 },
        { "20261115-+00042", 0 },
        { "20261115- 00042", 0 },
        { "20261115-000042 ", 0 },
        { " 20261115-000042", 0 },
        { "2026-11-15-000042", 0 },
        { "20261115-1000000000000000000", 0 },
        { "20261115-0000000000000000001", 0 },
        { "20261115-42", 6 },      /* shorter than made */
        { "20261115-0000042", 6 }, /* longer than it needs to be */
        { "20261115-000042", 18 },
        { "20261115-000042", 5 },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_dated id = { .number = 77 };
        size_t len = strlen(bad[i].text);
        char *exact = malloc(len + !len); /* sanitizers see a read past its end */
        memcpy(exact, bad[i].text, len);
        T_EQ(firn_dated_parse(exact, len, bad[i].digits, &id), FIRN_EFORMAT, "'%s' %u", bad[i].text,
             bad[i].digits);
        free(exact);
        T_EQ(id.number, 77);
    }
    struct firn_dated id;
    T_EQ(firn_dated_parse("2026-1", 6, 19, &id), FIRN_EINVAL);
    T_EQ(firn_dated_parse(NULL, 6, 0, &id), FIRN_EINVAL);
    T_EQ(firn_dated_parse("2026-1", 6, 0, NULL), FIRN_EINVAL);
}

T_TEST(dated_format_refuses)
{
    static const struct firn_dated bad[] = {
        { 3, 20261115, 6, 0, 1 },
        { FIRN_DATED_DAY, 20261131, 6, 0, 1 },
        { FIRN_DATED_DAY, 2026, 6, 0, 1 },
        { FIRN_DATED_MONTH, 20261115, 6, 0, 1 },
        { FIRN_DATED_YEAR, 10000, 6, 0, 1 },
        { FIRN_DATED_YEAR, 4294967295u, 6, 0, 1 },
        { FIRN_DATED_MONTH, 42949673, 6, 0, 1 }, /* times 100 wraps to 4 */
        { FIRN_DATED_DAY, 20261115, 19, 0, 1 },
        { FIRN_DATED_DAY, 20261115, 6, 0, 0 },
        { FIRN_DATED_DAY, 20261115, 6, 0, FIRN_DATED_NUMBER_MAX + 1 },
    };
    struct firn_dated_gen g;
    for (size_t i = 0; i < T_LEN(bad); i++) {
        char text[FIRN_DATED_TEXT_BUF] = "x";
        T_EQ(firn_dated_format(&bad[i], text), 0, "row %zu", i);
        T_STR(text, "");
        T_EQ(firn_dated_gen_resume(&g, &bad[i]), FIRN_EINVAL, "row %zu", i);
    }
}

T_TEST(dated_cmp)
{
    struct firn_dated a = { FIRN_DATED_DAY, 20261115, 6, 0, 42 }, b = a;
    T_EQ(firn_dated_cmp(&a, &b), 0);
    b.number = 43;
    T_OK(firn_dated_cmp(&a, &b) < 0 && firn_dated_cmp(&b, &a) > 0);
    a.period = 20261116;
    T_OK(firn_dated_cmp(&a, &b) > 0 && firn_dated_cmp(&b, &a) < 0);
}

T_TEST(dated_period)
{
    uint32_t period = 77;
    T_EQ(firn_dated_period(FIRN_DATED_DAY, NOV_15, &period), 0);
    T_EQ(period, 20261115);
    T_EQ(firn_dated_period(FIRN_DATED_DAY, NOV_15 - 1, &period), 0);
    T_EQ(period, 20261114);
    T_EQ(firn_dated_period(FIRN_DATED_MONTH, NOV_15, &period), 0);
    T_EQ(period, 202611);
    T_EQ(firn_dated_period(FIRN_DATED_YEAR, NOV_15, &period), 0);
    T_EQ(period, 2026);
    T_EQ(firn_dated_period(FIRN_DATED_DAY, -1, &period), 0);
    T_EQ(period, 19691231);
    T_EQ(firn_dated_period(3, 0, &period), FIRN_EINVAL);
    T_EQ(firn_dated_period(FIRN_DATED_DAY, 0, NULL), FIRN_EINVAL);
    T_EQ(firn_dated_period(FIRN_DATED_DAY, INT64_MAX, &period), FIRN_ERANGE);
    T_EQ(firn_dated_period(FIRN_DATED_DAY, INT64_MIN, &period), FIRN_ERANGE);
    T_EQ(period, 19691231);
}

static void expect_next(struct firn_dated_gen *g, int64_t unix_s, const char *text)
{
    struct firn_dated id;
    char got[FIRN_DATED_TEXT_BUF];
    T_EQ(firn_dated_next(g, unix_s, &id), 0);
    T_OK(firn_dated_format(&id, got) > 0);
    T_STR(got, text);
}

T_TEST(dated_next)
{
    struct firn_dated_gen g;
    T_EQ(firn_dated_gen_init(&g, FIRN_DATED_DAY, 0), 0);
    expect_next(&g, NOV_15, "20261115-000001");
    expect_next(&g, NOV_15 + DAY - 1, "20261115-000002");
    expect_next(&g, NOV_15 + DAY, "20261116-000001");
    expect_next(&g, NOV_15, "20261116-000002"); /* the clock went back */
    expect_next(&g, NOV_15 - 400 * DAY, "20261116-000003");
    expect_next(&g, NOV_15 + DAY, "20261116-000004");
    expect_next(&g, NOV_15 + 3 * DAY, "20261118-000001"); /* a day without any */

    T_EQ(firn_dated_gen_init(&g, FIRN_DATED_MONTH, 3), 0);
    expect_next(&g, NOV_15, "202611-001");
    expect_next(&g, NOV_15 + 15 * DAY, "202611-002");
    expect_next(&g, NOV_15 + 16 * DAY, "202612-001");
    T_EQ(firn_dated_gen_init(&g, FIRN_DATED_YEAR, 1), 0);
    expect_next(&g, NOV_15, "2026-1");
    expect_next(&g, NOV_15 + 46 * DAY, "2026-2");
    expect_next(&g, NOV_15 + 47 * DAY, "2027-1");
}

T_TEST(dated_resume)
{
    struct firn_dated_gen g;
    struct firn_dated last, out = { .number = 77 };
    T_EQ(firn_dated_parse("20261115-000041", 15, 6, &last), 0);
    T_EQ(firn_dated_gen_resume(&g, &last), 0);
    expect_next(&g, NOV_15, "20261115-000042");

    last.number = FIRN_DATED_NUMBER_MAX;
    T_EQ(firn_dated_gen_resume(&g, &last), 0);
    T_EQ(firn_dated_next(&g, NOV_15, &out), FIRN_EOVERFLOW);
    T_EQ(firn_dated_next(&g, NOV_15 - DAY, &out), FIRN_EOVERFLOW);
    T_EQ(firn_dated_next(&g, INT64_MAX, &out), FIRN_ERANGE);
    T_EQ(out.number, 77);
    expect_next(&g, NOV_15 + DAY, "20261116-000001"); /* and a new day heals it */

    T_EQ(firn_dated_gen_init(&g, 3, 0), FIRN_EINVAL);
    T_EQ(firn_dated_gen_init(&g, FIRN_DATED_DAY, 19), FIRN_EINVAL);
    T_EQ(firn_dated_gen_init(NULL, FIRN_DATED_DAY, 6), FIRN_EINVAL);
    T_EQ(firn_dated_gen_resume(&g, NULL), FIRN_EINVAL);
}
