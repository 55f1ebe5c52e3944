/* Times as people read them. */
#include "cli/when.h"
#include "t.h"

#define S INT64_C(1000000)

T_TEST(utc)
{
    static const struct {
        int64_t us;
        const char *text;
    } c[] = {
        { 0, "1970-01-01T00:00:00.000Z" },
        { 1609459200 * S + 1000, "2021-01-01T00:00:00.001Z" },
        { 1609459200 * S + 1, "2021-01-01T00:00:00.000001Z" },
        { -1, "1969-12-31T23:59:59.999999Z" },
        { -1000, "1969-12-31T23:59:59.999Z" },
        { INT64_MAX, "after the year 9999" },
        { INT64_MIN, "before the year 1" },
    };
    char out[WHEN_BUF];
    for (size_t i = 0; i < T_LEN(c); i++)
        T_STR(when_utc(c[i].us, out), c[i].text);
}

T_TEST(relative)
{
    static const struct {
        int64_t us; /* from now */
        const char *text, *about;
    } c[] = {
        { 0, "just now", "just now" },
        { -999999, "just now", "just now" },
        { 1, "in a moment", "in a moment" },
        { -1 * S, "1 second ago", "1 second ago" },
        { -90 * S, "1 minute and 30 seconds ago", "1 minute ago" },
        { 3600 * S, "in 1 hour", "in 1 hour" },
        { 2 * 86400 * S + 3600 * S, "in 2 days and 1 hour", "in 2 days" },
        { -INT64_C(31556952) * 2 * S - INT64_C(2629746) * 3 * S, "2 years and 3 months ago",
          "2 years ago" },
        { -INT64_C(31556952) * 812 * S - INT64_C(2629746) * 3 * S, "812 years ago",
          "812 years ago" },
    };
    const int64_t now = 1609459200 * S;
    char out[WHEN_BUF];
    for (size_t i = 0; i < T_LEN(c); i++) {
        T_STR(when_relative(now + c[i].us, now, out), c[i].text);
        T_STR(when_about(now + c[i].us, now, out), c[i].about);
    }
    when_relative(INT64_MIN, INT64_MAX, out); /* no overflow at the ends */
    when_relative(INT64_MAX, INT64_MIN, out);
}

T_TEST(span)
{
    char out[WHEN_BUF];
    T_STR(when_span(0, out), "0 milliseconds");
    T_STR(when_span(5003000, out), "5 seconds");
    T_STR(when_span(UINT64_C(61) * 60 * 1000000, out), "1 hour and 1 minute");
    when_span(UINT64_MAX, out);
}
