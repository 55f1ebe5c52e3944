/*
 * firn/stamp17.h - reading the 17-digit yyyyMMddHHmmssSSS form, found in old systems.
 * It is unsafe as an ID, so firn reads it and never makes it: the text is a wall-clock time and
 * nothing else. Two made in one millisecond are equal, on one machine or on two; a clock that steps
 * back, or the hour that comes twice when summer time ends, makes all of its texts again; and who
 * knows one can guess its neighbours. It also does not say its time zone. Use a ULID or a
 * Snowflake ID instead.
 * Pure functions: any thread may call them.
 */
#ifndef FIRN_STAMP17_H
#define FIRN_STAMP17_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_STAMP17_TEXT_LEN 17

/* The time that the digits say, taken as UTC, in milliseconds since 1970 (negative before). If they
 * were written in local time, subtract that zone's offset yourself.
 * FIRN_EFORMAT: not 17 digits, or no real date and time: second 60 is refused, and the year 0. */
FIRN_API FIRN_MUSTUSE int firn_stamp17_parse(const char *p, size_t len, int64_t *out_unix_ms);

#ifdef __cplusplus
}
#endif
#endif
