/* The harness of t.h: a list of tests, one after another, each ended by a longjmp when it fails. */
#include "t.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define T_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define T_SANITIZED 1
#endif
#ifndef T_SANITIZED
#define T_SANITIZED 0
#endif

static struct t_test *first, **tail = &first;
static jmp_buf on_failure;
static uint64_t seed;
static _Thread_local uint64_t state;
static int passed, failed;

void t_register(struct t_test *t)
{
    *tail = t;
    tail = &t->next;
}

static void report(const char *file, int line, const char *what)
{
    const char *slash = strstr(file, "tests/");
    printf("    %s:%d: %s", slash ? slash : file, line, what);
}

static void details(const char *fmt, va_list args)
{
    if (fmt[0] != '\0') {
        printf("; ");
        vprintf(fmt, args);
    }
    printf("\n");
}

void t_fail(const char *file, int line, const char *what, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(file, line, what);
    details(fmt, args);
    va_end(args);
    longjmp(on_failure, 1);
}

void t_fail_eq(const char *file, int line, const char *what, long long a, long long b,
               const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(file, line, what);
    printf(": %lld is not %lld", a, b);
    details(fmt, args);
    va_end(args);
    longjmp(on_failure, 1);
}

void t_fail_str(const char *file, int line, const char *what, const char *a, const char *b,
                const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    report(file, line, what);
    printf(": '%s' is not '%s'", a, b);
    details(fmt, args);
    va_end(args);
    longjmp(on_failure, 1);
}

/* splitmix64: every seed gives a good stream. */
uint64_t t_random(void)
{
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t t_random_below(uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)t_random() * bound) >> 64);
}

void t_random_bytes(void *p, size_t len)
{
    unsigned char *b = p;
    for (size_t i = 0; i < len; i++)
        b[i] = (unsigned char)t_random();
}

uint64_t t_scale(uint64_t n)
{
    uint64_t scaled = T_SANITIZED || getenv("FIRN_TEST_QUICK") ? n / 10 : n;
    return scaled ? scaled : 1;
}

/* Apart from main(), so that longjmp() finds none of its variables. */
static void run(const struct t_test *t)
{
    state = seed;
    if (setjmp(on_failure) == 0) {
        t->run();
        passed++;
        printf("ok   %s\n", t->name);
    } else {
        failed++;
        printf("FAIL %s\n", t->name);
    }
}

int main(int argc, char **argv)
{
    const char *filter = "";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 0);
        else
            filter = argv[i];
    }

    setvbuf(stdout, NULL, _IOLBF, 4096);
    printf("seed %" PRIu64 "\n", seed);
    for (const struct t_test *t = first; t; t = t->next)
        if (strstr(t->name, filter))
            run(t);
    printf("%d passed, %d failed\n", passed, failed);
    return failed || passed == 0 ? 1 : 0;
}
