/*
 * t.h - the test harness: small, ours, without dependency.
 * A test program is a file of T_TEST()s; the harness has main(). It takes --seed N (printed, so
 * that a failure of a property test can be replayed) and a filter: names that contain it are run. A
 * failed check prints where and what, ends its test and lets the others run.
 */
#ifndef T_H
#define T_H

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct t_test {
    const char *name;
    void (*run)(void);
    struct t_test *next;
};

void t_register(struct t_test *t);

#define T_TEST(name_)                                                      \
    static void t_run_##name_(void);                                       \
    static struct t_test t_test_##name_ = { #name_, t_run_##name_, NULL }; \
    __attribute__((constructor)) static void t_ctor_##name_(void)          \
    {                                                                      \
        t_register(&t_test_##name_);                                       \
    }                                                                      \
    static void t_run_##name_(void)

#define T_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* Ends the running test. Call it on the thread that runs the test. */
__attribute__((format(printf, 4, 5), noreturn)) void t_fail(const char *file, int line,
                                                            const char *what, const char *fmt, ...);

#define T_OK(cond, ...)                                        \
    do {                                                       \
        if (!(cond))                                           \
            t_fail(__FILE__, __LINE__, #cond, "" __VA_ARGS__); \
    } while (0)

/* Integers, compared as 64 bits; both values are printed when they differ. */
#define T_EQ(a, b, ...)                                                              \
    do {                                                                             \
        long long t_a_ = (long long)(a), t_b_ = (long long)(b);                      \
        if (t_a_ != t_b_)                                                            \
            t_fail_eq(__FILE__, __LINE__, #a " == " #b, t_a_, t_b_, "" __VA_ARGS__); \
    } while (0)

#define T_STR(a, b, ...)                                                              \
    do {                                                                              \
        const char *t_a_ = (a), *t_b_ = (b);                                          \
        if (strcmp(t_a_, t_b_) != 0)                                                  \
            t_fail_str(__FILE__, __LINE__, #a " == " #b, t_a_, t_b_, "" __VA_ARGS__); \
    } while (0)

__attribute__((format(printf, 6, 7), noreturn)) void t_fail_eq(const char *file, int line,
                                                               const char *what, long long a,
                                                               long long b, const char *fmt, ...);
__attribute__((format(printf, 6, 7), noreturn)) void t_fail_str(const char *file, int line,
                                                                const char *what, const char *a,
                                                                const char *b, const char *fmt,
                                                                ...);

/* Random numbers that the printed seed reproduces; each test starts again from the seed. */
uint64_t t_random(void);
uint64_t t_random_below(uint64_t bound);
void t_random_bytes(void *p, size_t len);

/* How much work a property test does: n normally, n/10 under sanitizers (they are 10 times slower)
 * and with FIRN_TEST_QUICK in the environment (scripts/check); never 0. */
uint64_t t_scale(uint64_t n);

#endif
