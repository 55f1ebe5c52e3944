#include "t.h"

#include "server/history.h"

static struct history h;
static struct history_row rows[HISTORY_PAGE];

T_TEST(history_has_differences_of_counters_and_values_of_gauges)
{
    history_init(&h);
    T_EQ(history_read(&h, 0, rows), 0);
    uint64_t v[] = { 1000, 5, (uint64_t)-7 };
    history_add(&h, 1000, v, 3, 2);
    v[0] = 1010, v[1] = 4, v[2] = UINT64_C(1) << 40;
    history_add(&h, 2000, v, 3, 2);
    v[0] = UINT64_C(1) << 50, v[1] = 6;
    history_add(&h, 3000, v, 3, 2);
    T_EQ(history_read(&h, 0, rows), 3);
    static const int32_t want[3][3] = { { 1000, 5, -7 },
                                        { 10, 0, INT32_MAX },
                                        { INT32_MAX, 2, INT32_MAX } };
    for (size_t i = 0; i < 3; i++) {
        T_EQ(rows[i].number, i + 1);
        T_EQ(rows[i].unix_ms, (i + 1) * 1000);
        for (size_t k = 0; k < HISTORY_COLUMNS; k++)
            T_EQ(rows[i].value[k], k < 3 ? want[i][k] : 0, "row %zu column %zu", i, k);
    }
    T_EQ(history_read(&h, 2, rows), 1);
    T_EQ(rows[0].number, 3);
    T_EQ(history_read(&h, 3, rows), 0);
    T_EQ(history_read(&h, 99, rows), 0); /* of a process before this one */
    history_done(&h);
}

/* The ring keeps the last HISTORY_ROWS, and readers get each once and in order. */
T_TEST(history_keeps_an_hour)
{
    uint64_t total = 2 * HISTORY_ROWS + 17;
    history_init(&h);
    for (uint64_t i = 1; i <= total; i++)
        history_add(&h, i * 1000, &i, 1, 0);
    uint64_t after = 0, seen = 0;
    for (size_t n; (n = history_read(&h, after, rows)) > 0; after = rows[n - 1].number)
        for (size_t i = 0; i < n; i++, seen++) {
            T_EQ(rows[i].number, total - HISTORY_ROWS + 1 + seen);
            T_EQ((uint64_t)rows[i].value[0], rows[i].number);
        }
    T_EQ(seen, HISTORY_ROWS);
    T_EQ(after, total);
    history_done(&h);
}
