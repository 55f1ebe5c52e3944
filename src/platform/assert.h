/*
 * assert.h - invariants that stay on in release builds.
 *
 *     firn_assert(from <= until);
 *     firn_assert(from <= until, "slot=%u from=%" PRIu64 " until=%" PRIu64, slot, from, until);
 *
 * A broken invariant would become a duplicate, a hole or a corrupt record, so the process prints
 * the expression, its place and the values, and aborts. Input is never asserted: it gets an error.
 */
#ifndef FIRN_PLATFORM_ASSERT_H
#define FIRN_PLATFORM_ASSERT_H

#define firn_assert(condition, ...)                                                      \
    (__builtin_expect(!(condition), 0)                                                   \
         ? firn__assert_failed(#condition, __FILE__, __LINE__, __func__, "" __VA_ARGS__) \
         : (void)0)

/* Prints one line on stderr and aborts. `format` is empty where there are no values to show. */
__attribute__((noreturn, cold, format(printf, 5, 6))) void firn__assert_failed(
    const char *condition, const char *file, int line, const char *function, const char *format,
    ...);

#endif
