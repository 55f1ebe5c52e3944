/* When a writer commits, and how much. Tested in tests/unit/auditlog/pace.c. */
#include "auditlog/pace.h"

enum { BACKOFF_FIRST_MS = 50, BACKOFF_MAX_MS = 1000 };

bool batch_fits(const struct batch_limits *l, size_t rows, size_t bytes, size_t more_rows,
                size_t more_bytes)
{
    return rows == 0 || (more_rows <= l->rows && rows <= l->rows - more_rows &&
                         more_bytes <= l->bytes && bytes <= l->bytes - more_bytes);
}

uint64_t pace_wait_ns(uint64_t last_ns, uint64_t every_ns, uint64_t now_ns)
{
    uint64_t since = now_ns - last_ns;
    return last_ns == 0 || now_ns < last_ns || since >= every_ns ? 0 : every_ns - since;
}

uint32_t pace_backoff_ms(uint32_t failures)
{
    uint32_t shift = failures < 8 ? failures : 8, ms = BACKOFF_FIRST_MS << shift;
    return failures == 0 ? 0 : ms / 2 < BACKOFF_MAX_MS ? ms / 2 : BACKOFF_MAX_MS;
}
