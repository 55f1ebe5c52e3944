/* The calendar against the C library's, and the laws of dated counters over random clocks. */
#include "t.h"

#include <time.h>

#include "firn/dated.h"
#include "id/civil.h"

T_TEST(every_day_as_the_c_library)
{
    struct tm first = { .tm_year = 0, .tm_mday = 1 }, end = { .tm_year = 501, .tm_mday = 1 };
    int64_t from = timegm(&first) / FIRN__DAY_S, to = timegm(&end) / FIRN__DAY_S;
    T_EQ(from, -25567);
    for (int64_t days = from; days < to; days++) { /* 1900-01-01 to 2400-12-31 */
        time_t unix_s = days * FIRN__DAY_S;
        struct tm tm;
        T_OK(gmtime_r(&unix_s, &tm));
        struct firn__date date = firn__date_from_days(days);
        T_EQ(date.year, tm.tm_year + 1900, "day %" PRId64, days);
        T_EQ(date.month, tm.tm_mon + 1, "day %" PRId64, days);
        T_EQ(date.day, tm.tm_mday, "day %" PRId64, days);
        T_OK(firn__date_valid(date));
        T_EQ(firn__date_to_days(date), days);
        T_EQ(timegm(&tm) / FIRN__DAY_S, days);
    }
}

/* The rest of the years: each day follows the one before, and back again. */
T_TEST(every_day_round_trip)
{
    struct firn__date before = { 0, 12, 31 };
    for (int64_t days = FIRN__UNIX_S_MIN / FIRN__DAY_S; days <= FIRN__UNIX_S_MAX / FIRN__DAY_S;
         days++) {
        struct firn__date date = firn__date_from_days(days);
        T_OK(firn__date_valid(date), "day %" PRId64, days);
        T_EQ(firn__date_to_days(date), days);
        bool same_month = date.year == before.year && date.month == before.month;
        T_OK(same_month ? date.day == before.day + 1 : date.day == 1, "day %" PRId64, days);
        if (!same_month) /* the day after the last one of a month is never a date */
            T_OK(!firn__date_valid(
                (struct firn__date){ before.year, before.month, before.day + 1 }));
        before = date;
    }
    T_EQ(before.year, 9999);
    T_EQ(before.month * 100 + before.day, 1231);
}

static int64_t random_unix_s(void)
{
    return FIRN__UNIX_S_MIN + (int64_t)t_random_below(FIRN__UNIX_S_MAX - FIRN__UNIX_S_MIN + 1);
}

T_TEST(rfc3339_round_trip)
{
    for (uint64_t i = 0, n = t_scale(100000); i < n; i++) {
        struct firn__time t = { random_unix_s(), (uint32_t)t_random_below(1000000000) }, back;
        char text[FIRN__RFC3339_BUF], by_libc[32];
        size_t len = firn__rfc3339_format(t, 9, text, sizeof text);
        T_EQ(len, FIRN__RFC3339_BUF - 1);
        T_EQ(firn__rfc3339_parse(text, len, &back), 0, "'%s'", text);
        T_EQ(back.unix_s, t.unix_s, "'%s'", text);
        T_EQ(back.ns, t.ns, "'%s'", text);

        time_t unix_s = t.unix_s;
        struct tm tm;
        T_OK(gmtime_r(&unix_s, &tm));
        T_OK(strftime(by_libc, sizeof by_libc, "-%m-%dT%H:%M:%S", &tm) > 0);
        T_OK(memcmp(text + 4, by_libc, 15) == 0, "'%s' and '%s'", text, by_libc);
    }
}

/* However the clock jumps, a counter's IDs rise, and so do their texts while they fit the width. */
T_TEST(dated_next_rises)
{
    for (unsigned reset = FIRN_DATED_DAY; reset <= FIRN_DATED_YEAR; reset++) {
        struct firn_dated_gen g;
        struct firn_dated last = { 0 };
        char last_text[FIRN_DATED_TEXT_BUF] = "";
        T_EQ(firn_dated_gen_init(&g, reset, 6), 0);
        int64_t now = 1600000000;
        for (uint64_t i = 0, n = t_scale(50000); i < n; i++) {
            struct firn_dated id, back;
            char text[FIRN_DATED_TEXT_BUF];
            now += (int64_t)t_random_below(40000) - (t_random_below(4) ? 0 : 80000);
            T_EQ(firn_dated_next(&g, now, &id), 0);
            T_OK(firn_dated_cmp(&last, &id) < 0);
            size_t len = firn_dated_format(&id, text);
            T_OK(strcmp(last_text, text) < 0, "'%s' then '%s'", last_text, text);
            T_EQ(firn_dated_parse(text, len, 6, &back), 0, "'%s'", text);
            T_EQ(firn_dated_cmp(&id, &back), 0);
            uint32_t period;
            T_EQ(firn_dated_period(reset, now, &period), 0);
            T_OK(id.period >= period);
            last = id;
            memcpy(last_text, text, sizeof text);
        }
    }
}
