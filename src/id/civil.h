/*
 * civil.h - days and civil dates, and RFC 3339 times, without the C library's time functions: those
 * read the time zone, and some take a lock for it. Everything is UTC in the Gregorian calendar,
 * carried back before its invention, for the years 1 to 9999: what four digits of text can say.
 */
#ifndef FIRN_ID_CIVIL_H
#define FIRN_ID_CIVIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIRN__UNIX_S_MIN (-62135596800) /* 0001-01-01T00:00:00Z */
#define FIRN__UNIX_S_MAX 253402300799   /* 9999-12-31T23:59:59Z */

enum { FIRN__DAY_S = 86400, FIRN__YEAR_MIN = 1, FIRN__YEAR_MAX = 9999 };

struct firn__date {
    int32_t year;
    uint32_t month, day; /* from 1 */
};

/* Seconds and nanoseconds apart: nanoseconds in one int64_t would end in the year 2262. */
struct firn__time {
    int64_t unix_s;
    uint32_t ns; /* 0..999999999, counted forwards, also before 1970 */
};

bool firn__date_valid(struct firn__date date);

/* Days since 1970-01-01. Any valid date; any number of days whose year fits an int32_t. */
int64_t firn__date_to_days(struct firn__date date);
struct firn__date firn__date_from_days(int64_t days);

/* The day that a Unix time falls on: the division rounds down before 1970, too. */
int64_t firn__unix_to_days(int64_t unix_s);

/* Exactly `n` (at most 9) decimal digits. False, and *out untouched, if there is any other byte. */
bool firn__digits_parse(const char *p, size_t n, uint32_t *out);
/* `value` with leading zeros in exactly `n` bytes, without a NUL. */
void firn__digits_format(uint64_t value, size_t n, char *out);

/*
 * 2021-01-01T00:00:00Z, with a fraction of 1 to 9 digits and, in place of the Z, +hh:mm or -hh:mm
 * if wanted; t and z are allowed as the RFC does. FIRN_EFORMAT: anything else, a date that does not
 * exist, and second 60: Unix time has no place for it. FIRN_ERANGE: the offset leads out of the
 * years.
 */
int firn__rfc3339_parse(const char *p, size_t len, struct firn__time *out);

#define FIRN__RFC3339_BUF 31 /* all nine digits and the NUL */

/* With `fraction_digits` 0..9 digits, cut, not rounded: a rounded time may lie in another second.
 * Writes a NUL, answers the length without it; 0, and nothing is written, if the time is out of the
 * years, its ns are no ns, or `cap` is too small. */
size_t firn__rfc3339_format(struct firn__time t, unsigned fraction_digits, char *out, size_t cap);

#endif
