#include "cli/verify/offenders.c"

#include "cli/verify/number.h"
#include "t.h"

#include <inttypes.h>
#include <stdio.h>

static int rising(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Whatever the order in which they are found: the first by line stay. */
T_TEST(the_first_by_line_stay)
{
    enum { N = 200 };
    uint64_t found[N];
    for (size_t max = 0; max < 40; max++) {
        struct offenders o;
        size_t n = t_random_below(N) + 1;
        T_EQ(offenders_init(&o, max), 0);
        for (size_t i = 0; i < n; i++) {
            found[i] = t_random_below(1000) * N + i; /* no two on one line */
            struct offender *room = offenders_room(&o, found[i]);
            T_OK(room == NULL || room->where == found[i]);
            if (room)
                room->id = (struct id){ .value = found[i] };
        }
        qsort(found, n, sizeof found[0], rising);
        offenders_sort(&o);
        T_EQ(o.count, n);
        T_EQ(o.len, n < max ? n : max);
        for (size_t i = 0; i < o.len; i++) {
            T_EQ(o.list[i].where, found[i], "%zu of %zu", i, n);
            T_EQ(o.list[i].id.value, found[i]);
        }
        offenders_done(&o);
    }
}

T_TEST(numbers_have_one_spelling)
{
    static const char *const texts[] = { "00",
                                         "007",
                                         "+1",
                                         "-1",
                                         " 1",
                                         "1 ",
                                         "1234567:",
                                         "1234567/",
                                         "12345678:",
                                         "1234567890123456a",
                                         "18446744073709551616",
                                         "99999999999999999999",
                                         "100000000000000000000" };
    uint64_t v;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        T_OK(!number_parse(texts[i], strlen(texts[i]), &v), "%s", texts[i]);
    for (int i = 0; i < 100000; i++) {
        uint64_t n = i < 2 ? (uint64_t)-i : t_random() >> t_random_below(64);
        char text[24];
        int len = snprintf(text, sizeof text, "%" PRIu64, n);
        T_OK(number_parse(text, (size_t)len, &v) && v == n, "%s", text);
        size_t at = t_random_below((uint64_t)len);
        char other = (char)t_random_below(256);
        if (other >= '0' && other <= '9')
            continue;
        text[at] = other;
        T_OK(!number_parse(text, (size_t)len, &v), "byte %d at %zu of %d", other, at, len);
    }
}
