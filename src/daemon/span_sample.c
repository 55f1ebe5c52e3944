/* The share of requests that are sampled (span_sample.h). Tested in tests/integration/tracing.py
 * and tests/unit/server/tracing.c. */
#include "daemon/span_sample.h"
#include "daemon/config.h"
#include "firn/random.h"
#include "id/diag.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double span_sample_read(const char *text)
{
    char *end;
    if (strspn(text, "0123456789.") != strlen(text))
        return -1; /* no sign, no exponent, no nan */
    double v = strtod(text, &end);
    return end != text && *end == '\0' && v <= 1 ? v : -1;
}

int span_sample_check(const char *text, struct firn_diag *why)
{
    char shown[CONFIG_SHOWN_BUF];
    return span_sample_read(text) >= 0
               ? 0
               : firn__diag(why, FIRN_EFORMAT, 0,
                            "'%s' is no ratio; give a number from 0 (none) to 1 (all), as in 0.01",
                            config_shown(text, shown));
}

uint64_t span_sample_next(double ratio)
{
    const double none = (double)UINT64_MAX;
    if (!(ratio > 0))
        return UINT64_MAX;
    if (ratio >= 1)
        return 0;
    double u = (double)((firn_rng_u64(firn_rng_thread()) >> 11) + 1) / (double)(1ULL << 53);
    double n = log(u) / log1p(-ratio);
    return n < none ? (uint64_t)n : UINT64_MAX;
}
