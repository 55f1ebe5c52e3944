/* Lengths of time and counts as text. */
#include "cli/duration.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *duration_text(uint64_t ns, char out[DURATION_BUF])
{
    static const struct {
        uint64_t below_ns; /* values that round to 1000 belong to the next unit */
        double unit_ns;
        const char *name;
    } units[] = {
        { 1000, 1, "ns" }, { 999500, 1e3, "us" }, { 999500000, 1e6, "ms" }, { UINT64_MAX, 1e9, "s" }
    };
    size_t i = 0;
    while (units[i].below_ns != UINT64_MAX && ns >= units[i].below_ns)
        i++;
    double n = (double)ns / units[i].unit_ns;
    int digits = i == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
    snprintf(out, DURATION_BUF, "%.*f %s", digits, n, units[i].name);
    return out;
}

bool duration_parse(const char *text, uint64_t *out_ms)
{
    static const struct {
        const char *name;
        uint64_t ms;
    } units[] = { { "", 1000 },   { "ms", 1 },      { "s", 1000 },
                  { "m", 60000 }, { "h", 3600000 }, { "d", 86400000 } };
    const uint64_t year_ms = 366u * UINT64_C(86400000);
    uint64_t n = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && n <= year_ms; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    for (size_t i = 0; p > text && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(p, units[i].name) == 0 && n <= year_ms / units[i].ms) {
            *out_ms = n * units[i].ms;
            return true;
        }
    return false;
}

const char *grouped_text(uint64_t n, char out[GROUPED_BUF])
{
    char plain[24];
    int len = snprintf(plain, sizeof plain, "%" PRIu64, n), at = 0;
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = plain[i];
    }
    out[at] = '\0';
    return out;
}
