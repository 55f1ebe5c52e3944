#include "cli/duration.h"

#include <inttypes.h>
#include <stdio.h>

const char *duration_text(uint64_t ns, char out[DURATION_BUF])
{
    static const struct {
        uint64_t below_ns; /* what rounds to 1000 belongs to the next unit */
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
