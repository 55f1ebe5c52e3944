/*
 * Days <-> dates by arithmetic. A year is counted from March, so that the leap day is its last day
 * and needs no case; 400 such years (an era) always have the same number of days. Inside an era,
 * months follow the line (153 * month + 2) / 5: 31, 30, 31, 30, 31 days, again and again.
 */
#include "id/civil.h"

#include <string.h>

#include "firn/error.h"

enum {
    ERA_YEARS = 400,
    ERA_DAYS = 146097,
    EPOCH_DAYS = 719468, /* 0000-03-01 to 1970-01-01 */
    NS_DIGITS = 9,
};

static const uint32_t pow10_u32[NS_DIGITS + 1] = {
    1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000
};

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static uint32_t month_days(int32_t year, uint32_t month)
{
    static const uint8_t days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

bool firn__date_valid(struct firn__date date)
{
    return date.year >= FIRN__YEAR_MIN && date.year <= FIRN__YEAR_MAX && date.month >= 1 &&
           date.month <= 12 && date.day >= 1 && date.day <= month_days(date.year, date.month);
}

int64_t firn__date_to_days(struct firn__date date)
{
    bool before_march = date.month < 3;
    int64_t year = (int64_t)date.year - before_march;
    int64_t month = (int64_t)date.month - 3 + (before_march ? 12 : 0);
    int64_t era = floor_div(year, ERA_YEARS);
    int64_t y = year - era * ERA_YEARS;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    return era * ERA_DAYS + y * 365 + y / 4 - y / 100 + day_of_year - EPOCH_DAYS;
}

struct firn__date firn__date_from_days(int64_t days)
{
    days += EPOCH_DAYS;
    int64_t era = floor_div(days, ERA_DAYS);
    int64_t d = days - era * ERA_DAYS;
    /* Less the leap days before d (in 4 years, not in 100, but in 400), a year has 365 days. */
    int64_t y = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    int64_t day_of_year = d - (y * 365 + y / 4 - y / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    bool before_march = month >= 10;
    return (struct firn__date){
        .year = (int32_t)(era * ERA_YEARS + y + before_march),
        .month = (uint32_t)(month + 3 - (before_march ? 12 : 0)),
        .day = (uint32_t)(day_of_year - (153 * month + 2) / 5 + 1),
    };
}

int64_t firn__unix_to_days(int64_t unix_s)
{
    return floor_div(unix_s, FIRN__DAY_S);
}

bool firn__digits_parse(const char *p, size_t n, uint32_t *out)
{
    uint32_t value = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t digit = (uint32_t)(unsigned char)p[i] - '0';
        if (digit > 9)
            return false;
        value = value * 10 + digit;
    }
    *out = value;
    return true;
}

void firn__digits_format(uint64_t value, size_t n, char *out)
{
    while (n > 0) {
        out[--n] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* hh:mm, as the offset has it and as the time of day begins. */
static bool hour_minute(const char *p, int64_t *out_s)
{
    uint32_t hour, minute;
    if (!firn__digits_parse(p, 2, &hour) || p[2] != ':' || !firn__digits_parse(p + 3, 2, &minute) ||
        hour > 23 || minute > 59)
        return false;
    *out_s = hour * 3600 + minute * 60;
    return true;
}

/* What follows the fraction: Z or an offset, and nothing after it. */
static bool zone(const char *p, const char *end, int64_t *out_s)
{
    if (end - p == 1 && (*p == 'Z' || *p == 'z')) {
        *out_s = 0;
        return true;
    }
    if (end - p != 6 || (*p != '+' && *p != '-') || !hour_minute(p + 1, out_s))
        return false;
    if (*p == '-')
        *out_s = -*out_s;
    return true;
}

int firn__rfc3339_parse(const char *p, size_t len, struct firn__time *out)
{
    enum { SECONDS_LEN = 19 }; /* 2021-01-01T00:00:00 */
    if (!p || !out)
        return FIRN_EINVAL;
    if (len < SECONDS_LEN + 1)
        return FIRN_EFORMAT;

    const char *end = p + len;
    uint32_t year, month, day, second;
    int64_t minutes_s, offset_s;
    if (!firn__digits_parse(p, 4, &year) || p[4] != '-' || !firn__digits_parse(p + 5, 2, &month) ||
        p[7] != '-' || !firn__digits_parse(p + 8, 2, &day) || (p[10] != 'T' && p[10] != 't') ||
        !hour_minute(p + 11, &minutes_s) || p[16] != ':' ||
        !firn__digits_parse(p + 17, 2, &second) || second > 59)
        return FIRN_EFORMAT;
    struct firn__date date = { (int32_t)year, month, day };
    if (!firn__date_valid(date))
        return FIRN_EFORMAT;

    p += SECONDS_LEN;
    uint32_t ns = 0;
    if (*p == '.') {
        p++;
        size_t n = 0;
        while (n < NS_DIGITS && p + n < end && p[n] >= '0' && p[n] <= '9')
            n++;
        if (n == 0 || !firn__digits_parse(p, n, &ns))
            return FIRN_EFORMAT;
        ns *= pow10_u32[NS_DIGITS - n];
        p += n; /* a tenth digit is no zone: refused below */
    }
    if (!zone(p, end, &offset_s))
        return FIRN_EFORMAT;

    int64_t unix_s = firn__date_to_days(date) * FIRN__DAY_S + minutes_s + second - offset_s;
    if (unix_s < FIRN__UNIX_S_MIN || unix_s > FIRN__UNIX_S_MAX)
        return FIRN_ERANGE;
    *out = (struct firn__time){ unix_s, ns };
    return 0;
}

size_t firn__rfc3339_format(struct firn__time t, unsigned fraction_digits, char *out, size_t cap)
{
    size_t len = sizeof "2021-01-01T00:00:00Z" - 1 + (fraction_digits ? 1 + fraction_digits : 0);
    if (!out || fraction_digits > NS_DIGITS || cap < len + 1 || t.unix_s < FIRN__UNIX_S_MIN ||
        t.unix_s > FIRN__UNIX_S_MAX || t.ns >= pow10_u32[NS_DIGITS])
        return 0;

    int64_t days = firn__unix_to_days(t.unix_s);
    uint32_t second = (uint32_t)(t.unix_s - days * FIRN__DAY_S);
    struct firn__date date = firn__date_from_days(days);
    memcpy(out, "yyyy-mm-ddThh:mm:ss", 19);
    firn__digits_format((uint32_t)date.year, 4, out);
    firn__digits_format(date.month, 2, out + 5);
    firn__digits_format(date.day, 2, out + 8);
    firn__digits_format(second / 3600, 2, out + 11);
    firn__digits_format(second / 60 % 60, 2, out + 14);
    firn__digits_format(second % 60, 2, out + 17);
    if (fraction_digits) {
        out[19] = '.';
        firn__digits_format(t.ns / pow10_u32[NS_DIGITS - fraction_digits], fraction_digits,
                            out + 20);
    }
    out[len - 1] = 'Z';
    out[len] = '\0';
    return len;
}
