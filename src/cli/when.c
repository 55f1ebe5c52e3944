/* Times for people: UTC, and relative to now. */
#include "cli/when.h"
#include "id/civil.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define US_PER_S 1000000

int64_t when_now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * US_PER_S + t.tv_nsec / 1000;
}

const char *when_utc(int64_t unix_us, char out[WHEN_BUF])
{
    int64_t s = unix_us / US_PER_S, us = unix_us % US_PER_S;
    if (us < 0) {
        us += US_PER_S;
        s--;
    }
    struct firn__time t = { .unix_s = s, .ns = (uint32_t)us * 1000 };
    if (firn__rfc3339_format(t, us % 1000 ? 6 : 3, out, WHEN_BUF) == 0)
        snprintf(out, WHEN_BUF, "%s", s < 0 ? "before the year 1" : "after the year 9999");
    return out;
}

/* A month is a twelfth of a year of 365.2425 days: good enough for an approximate length. */
static const struct {
    const char *name;
    uint64_t us;
} units[] = {
    { "year", UINT64_C(31556952) * US_PER_S },
    { "month", UINT64_C(2629746) * US_PER_S },
    { "day", UINT64_C(86400) * US_PER_S },
    { "hour", UINT64_C(3600) * US_PER_S },
    { "minute", UINT64_C(60) * US_PER_S },
    { "second", US_PER_S },
    { "millisecond", 1000 },
};
enum { UNITS = sizeof units / sizeof units[0] };

/* The second unit is shown only where it matters: not "812 years and 3 months", not "5 s and 3
 * ms". */
static void span(uint64_t us, bool second, char out[WHEN_BUF])
{
    size_t u = 0;
    while (u + 1 < UNITS && us < units[u].us)
        u++;
    uint64_t n = us / units[u].us, rest = us % units[u].us;
    int len = snprintf(out, WHEN_BUF, "%" PRIu64 " %s%s", n, units[u].name, n == 1 ? "" : "s");
    if (second && n < 100 && u + 2 < UNITS && rest >= units[u + 1].us) {
        n = rest / units[u + 1].us;
        snprintf(out + len, WHEN_BUF - (size_t)len, " and %" PRIu64 " %s%s", n, units[u + 1].name,
                 n == 1 ? "" : "s");
    }
}

const char *when_span(uint64_t us, char out[WHEN_BUF])
{
    span(us, true, out);
    return out;
}

static const char *relative(int64_t unix_us, int64_t now_us, bool second, char out[WHEN_BUF])
{
    char length[WHEN_BUF];
    bool past = unix_us <= now_us;
    uint64_t us = past ? (uint64_t)now_us - (uint64_t)unix_us
                       : (uint64_t)unix_us - (uint64_t)now_us;
    if (us < US_PER_S) {
        snprintf(out, WHEN_BUF, "%s", past ? "just now" : "in a moment");
        return out;
    }
    span(us, second, length);
    snprintf(out, WHEN_BUF, "%s%.50s%s", past ? "" : "in ", length, past ? " ago" : "");
    return out;
}

const char *when_relative(int64_t unix_us, int64_t now_us, char out[WHEN_BUF])
{
    return relative(unix_us, now_us, true, out);
}

const char *when_about(int64_t unix_us, int64_t now_us, char out[WHEN_BUF])
{
    return relative(unix_us, now_us, false, out);
}
