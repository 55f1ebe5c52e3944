/* Times libuuid (util-linux). Prints KEY, what, median and best ns a call, separated by tabs. */
#include <uuid/uuid.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9, RUN_NS = 20000000 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void use(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static void v4(void)
{
    uuid_t id;
    uuid_generate_random(id);
    use(id);
}

static void v4_text(void)
{
    uuid_t id;
    char text[UUID_STR_LEN];
    uuid_generate_random(id);
    uuid_unparse_lower(id, text);
    use(text);
}

static void v1(void)
{
    uuid_t id;
    uuid_generate_time(id);
    use(id);
}

static void parse(void)
{
    uuid_t id;
    if (uuid_parse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", id) != 0)
        abort();
    use(id);
}

static double ns_per_call(void (*call)(void))
{
    uint64_t n = 0, start = now_ns(), end = start;
    while (end < start + RUN_NS) {
        for (int i = 0; i < 64; i++)
            call();
        n += 64;
        end = now_ns();
    }
    return (double)(end - start) / (double)n;
}

static int cmp_double(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    static const struct {
        const char *key, *what;
        void (*call)(void);
    } rows[] = {
        { "uuid4", "uuid_generate_random", v4 },
        { "uuid4.text", "uuid_generate_random, unparse", v4_text },
        { "uuid1", "uuid_generate_time", v1 },
        { "uuid.parse", "uuid_parse", parse },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double round[ROUNDS];
        ns_per_call(rows[i].call); /* warm up */
        for (int r = 0; r < ROUNDS; r++)
            round[r] = ns_per_call(rows[i].call);
        qsort(round, ROUNDS, sizeof round[0], cmp_double);
        printf("%s\t%s\t%.3f\t%.3f\n", rows[i].key, rows[i].what, round[ROUNDS / 2], round[0]);
    }
    return 0;
}
