/*
 * firn/dated.h - date-prefixed counters such as 20261115-000042, as people like them on invoices.
 * A counter starts again at 1 with each day, month or year. They are unique only as far as one
 * counter hands them out, and they tell every reader how many there were: for the public, seal them
 * (firn/seal.h). Nothing here allocates or reads a clock. A struct firn_dated_gen belongs to one
 * thread; the other functions are pure and may be called from any.
 */
#ifndef FIRN_DATED_H
#define FIRN_DATED_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum firn_dated_reset {
    FIRN_DATED_DAY = 0,   /* yyyymmdd- */
    FIRN_DATED_MONTH = 1, /* yyyymm- */
    FIRN_DATED_YEAR = 2   /* yyyy- */
};

#define FIRN_DATED_DIGITS       6 /* what 0 means */
#define FIRN_DATED_DIGITS_MAX   18
#define FIRN_DATED_NUMBER_MAX   UINT64_C(999999999999999999)
#define FIRN_DATED_TEXT_LEN_MAX 27
#define FIRN_DATED_TEXT_BUF     28

struct firn_dated {
    uint32_t reset;  /* enum firn_dated_reset */
    uint32_t period; /* the prefix as a number: 20261115, 202611 or 2026 */
    uint32_t digits; /* width that the counter is padded to with zeros; 0 means FIRN_DATED_DIGITS */
    uint32_t unused_;
    uint64_t number; /* 1..FIRN_DATED_NUMBER_MAX */
};

/*
 * The prefix's length says when the counter resets. `digits` is the width that the texts are made
 * with: a shorter counter, or a longer one with a leading zero, is refused, so that an ID has one
 * text. 0 takes any width (for looking at texts of unknown origin). out->digits is the width that
 * was seen.
 * FIRN_EFORMAT: other text, a date that does not exist, the counter 0 or more than 18 digits.
 * FIRN_EINVAL: `digits` above FIRN_DATED_DIGITS_MAX.
 */
FIRN_API FIRN_MUSTUSE int firn_dated_parse(const char *p, size_t len, unsigned digits,
                                           struct firn_dated *out);

/*
 * Writes a NUL and answers the length without it; 0 and an empty text if a field is out of range.
 * A number with more than `digits` digits is written in full. From there on texts no longer sort
 * as the numbers do (20261115-1000000 before 20261115-999999): choose `digits` for the busiest
 * period.
 */
FIRN_API size_t firn_dated_format(const struct firn_dated *id, char out[FIRN_DATED_TEXT_BUF]);

/* By period, then by number: <0, 0, >0. Meant for IDs with the same reset. */
FIRN_API int firn_dated_cmp(const struct firn_dated *a, const struct firn_dated *b);

/* The period that a Unix time falls in, by UTC; for another zone add its offset to `unix_s`.
 * FIRN_EINVAL: no such reset. FIRN_ERANGE: outside the years 1 to 9999. */
FIRN_API FIRN_MUSTUSE int firn_dated_period(unsigned reset, int64_t unix_s, uint32_t *out);

/* A counter's whole state is the last ID that it gave; number 0 is "none yet". Store `last` before
 * you hand an ID out: a counter that resumes from an older state repeats itself. */
struct firn_dated_gen {
    struct firn_dated last;
};

/* `digits` 0 means FIRN_DATED_DIGITS. FIRN_EINVAL: no such reset, or too many digits. */
FIRN_API FIRN_MUSTUSE int firn_dated_gen_init(struct firn_dated_gen *g, unsigned reset,
                                              unsigned digits);

/* Go on after `last`, which was stored or parsed. FIRN_EINVAL: it is no ID. */
FIRN_API FIRN_MUSTUSE int firn_dated_gen_resume(struct firn_dated_gen *g,
                                                const struct firn_dated *last);

/*
 * The next ID: in the same period the next number, in a later one 1. If the clock went back to an
 * earlier period, counting goes on in the last one, so that no ID comes twice. The other side of
 * this: after one call with a time far in the future, that period stays until it is over.
 * FIRN_ERANGE: the time is outside the years 1 to 9999. FIRN_EOVERFLOW: the period's numbers are
 * used up.
 */
FIRN_API FIRN_MUSTUSE int firn_dated_next(struct firn_dated_gen *g, int64_t unix_s,
                                          struct firn_dated *out);

#ifdef __cplusplus
}
#endif
#endif
