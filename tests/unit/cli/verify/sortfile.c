/* Sorting in bounded memory: what comes out is what went in, in order, whether it fits or is
 * spilled and merged; a duplicate cannot be lost. */
#include "cli/verify/sortfile.h"
#include "t.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    const struct sort_number *x = a, *y = b;
    return x->value != y->value ? (x->value < y->value ? -1 : 1)
                                : (x->where > y->where) - (x->where < y->where);
}

static void numbers(size_t n, uint64_t range, size_t memory)
{
    struct sortfile s;
    struct sort_item item;
    struct firn_diag d = { 0, "" };
    struct sort_number *in = malloc((n + 1) * sizeof *in);
    T_OK(in != NULL);
    sortfile_init(&s, SORT_NUMBERS, memory);
    for (size_t i = 0; i < n; i++) {
        in[i] = (struct sort_number){ range ? t_random_below(range) : t_random(), i };
        T_EQ(sortfile_add_number(&s, in[i].value, i, &d), 0, "%s", d.text);
        if (i == n / 2)
            T_EQ(sortfile_shrink(&s, memory / 2, &d), 0, "%s", d.text);
    }
    T_EQ(sortfile_finish(&s, &d), 0, "%s", d.text);
    qsort(in, n, sizeof *in, by_value);
    for (size_t i = 0; i < n; i++) {
        T_EQ(sortfile_next(&s, &item, &d), 1, "%s", d.text);
        T_EQ(item.value, in[i].value, "%zu of %zu", i, n);
        T_EQ(item.where, in[i].where, "%zu of %zu", i, n);
    }
    T_EQ(sortfile_next(&s, &item, &d), 0);
    sortfile_done(&s);
    free(in);
}

T_TEST(numbers_that_fit)
{
    static const size_t n[] = { 0, 1, 2, 3, 255, 256, 257, 20000 };
    for (size_t i = 0; i < T_LEN(n); i++) {
        numbers(n[i], 0, 64 << 20);
        numbers(n[i], 100, 64 << 20); /* most of them more than once */
    }
}

T_TEST(numbers_that_do_not_fit)
{
    numbers(300000, 0, SORT_MEMORY_MIN_BYTES); /* more runs than one merge takes: two passes */
    numbers(t_scale(200000), 1000, SORT_MEMORY_MIN_BYTES);
    numbers(t_scale(200000), 0, 2 * SORT_MEMORY_MIN_BYTES);
}

struct text {
    unsigned char len;
    char p[SORT_TEXT_MAX];
    uint64_t where;
};

static int by_text(const void *a, const void *b)
{
    const struct text *x = a, *y = b;
    int c = memcmp(x->p, y->p, x->len < y->len ? x->len : y->len);
    if (c == 0)
        c = x->len - y->len;
    return c ? c : (x->where > y->where) - (x->where < y->where);
}

static void texts(size_t n, size_t memory)
{
    struct sortfile s;
    struct sort_item item;
    struct firn_diag d = { 0, "" };
    struct text *in = malloc((n + 1) * sizeof *in);
    T_OK(in != NULL);
    sortfile_init(&s, SORT_TEXTS, memory);
    for (size_t i = 0; i < n; i++) {
        struct text *t = &in[i];
        *t = (struct text){ .len = (unsigned char)t_random_below(SORT_TEXT_MAX + 1), .where = i };
        if (i && t_random_below(8) == 0) { /* one of those before, or its beginning */
            const struct text *old = &in[t_random_below(i)];
            memcpy(t->p, old->p, sizeof t->p);
            t->len = (unsigned char)(t_random_below(2) ? old->len : t_random_below(old->len + 1u));
        } else {
            memset(t->p, 'a', sizeof t->p); /* long common beginnings, any byte behind them */
            if (t->len)
                t->p[t_random_below(t->len)] = (char)t_random();
        }
        T_EQ(sortfile_add_text(&s, t->p, t->len, i, &d), 0, "%s", d.text);
    }
    T_EQ(sortfile_finish(&s, &d), 0, "%s", d.text);
    qsort(in, n, sizeof *in, by_text);
    for (size_t i = 0; i < n; i++) {
        T_EQ(sortfile_next(&s, &item, &d), 1, "%s", d.text);
        T_EQ(item.where, in[i].where, "%zu of %zu", i, n);
        T_OK(item.len == in[i].len && memcmp(item.text, in[i].p, item.len) == 0, "%zu of %zu", i,
             n);
    }
    T_EQ(sortfile_next(&s, &item, &d), 0);
    sortfile_done(&s);
    free(in);
}

T_TEST(texts_in_order)
{
    static const size_t n[] = { 0, 1, 2, 3, 1000 };
    for (size_t i = 0; i < T_LEN(n); i++)
        texts(n[i], 64 << 20);
    texts(t_scale(100000), SORT_MEMORY_MIN_BYTES);
}

T_TEST(nowhere_to_spill_to)
{
    struct sortfile s;
    struct firn_diag d = { 0, "" };
    int r = 0;
    T_EQ(setenv("TMPDIR", "/nonexistent", 1), 0);
    sortfile_init(&s, SORT_NUMBERS, SORT_MEMORY_MIN_BYTES);
    for (uint64_t i = 0; i < 1000000 && r == 0; i++)
        r = sortfile_add_number(&s, i, i, &d);
    T_EQ(r, FIRN_EIO);
    T_OK(strstr(d.text, "/nonexistent") != NULL, "%s", d.text);
    sortfile_done(&s);
    unsetenv("TMPDIR");
}
