/* when.h - times for people: as UTC, and how long ago. */
#ifndef FIRN_CLI_WHEN_H
#define FIRN_CLI_WHEN_H

#include <stdint.h>

#define WHEN_BUF 64

/* The system's clock, Unix microseconds. */
int64_t when_now_us(void);

/* 2021-01-01T00:00:00.000Z, with six digits where milliseconds are not exact; times outside the
 * years 1 to 9999 are named in words. Returns `out`. */
const char *when_utc(int64_t unix_us, char out[WHEN_BUF]);

/* "2 years and 3 months ago", "in 5 minutes", "just now". Returns `out`. */
const char *when_relative(int64_t unix_us, int64_t now_us, char out[WHEN_BUF]);

/* The same in one unit, "2 years ago", for tables. Returns `out`. */
const char *when_about(int64_t unix_us, int64_t now_us, char out[WHEN_BUF]);

/* "69 years and 8 months"; a length of time without a direction. Returns `out`. */
const char *when_span(uint64_t us, char out[WHEN_BUF]);

#endif
