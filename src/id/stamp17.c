/* yyyyMMddHHmmssSSS: read, checked against the calendar, never made. */
#include "firn/stamp17.h"

#include "id/civil.h"

int firn_stamp17_parse(const char *p, size_t len, int64_t *out_unix_ms)
{
    static const uint8_t width[] = { 4, 2, 2, 2, 2, 2, 3 };
    enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MS, FIELDS };
    if (!p || !out_unix_ms)
        return FIRN_EINVAL;
    if (len != FIRN_STAMP17_TEXT_LEN)
        return FIRN_EFORMAT;

    uint32_t f[FIELDS];
    for (int i = 0; i < FIELDS; p += width[i++])
        if (!firn__digits_parse(p, width[i], &f[i]))
            return FIRN_EFORMAT;
    struct firn__date date = { (int32_t)f[YEAR], f[MONTH], f[DAY] };
    if (!firn__date_valid(date) || f[HOUR] > 23 || f[MINUTE] > 59 || f[SECOND] > 59)
        return FIRN_EFORMAT;

    int64_t s = firn__date_to_days(date) * FIRN__DAY_S + f[HOUR] * 3600 + f[MINUTE] * 60 +
                f[SECOND];
    *out_unix_ms = s * 1000 + f[MS];
    return 0;
}
