#include "t.h"

#include "server/census.h"

#include <stdio.h>

static struct tickets tk;

static void create(const char *prefix, int from, int to)
{
    for (int i = from; i < to; i++) {
        char name[32];
        int n = snprintf(name, sizeof name, "%s%05d", prefix, i);
        T_EQ(ticket_create(&tk, name, (size_t)n, &(struct seq_spec){ .mode = SEQ_RANGE }, NULL,
                           NULL),
             0);
    }
}

/* Page by page at first, then every CENSUS_MS; in between what this process changed. */
T_TEST(census_counts_in_pages)
{
    struct firn_store *store;
    struct census c = { 0 };
    struct seq_record r;
    _Atomic uint64_t count = 0;
    T_EQ(firn_store_memory_new(&store), 0);
    T_EQ(tickets_init(&tk, store, NULL, NULL), 0);
    create("a", 0, 2 * CENSUS_PAGE + 10);
    T_EQ(census_step(&c, &tk, 0, &count), CENSUS_REST_MS);
    T_EQ(count, CENSUS_PAGE);
    T_EQ(census_step(&c, &tk, 1, &count), CENSUS_REST_MS); /* not due */
    T_EQ(count, CENSUS_PAGE);
    T_EQ(census_step(&c, &tk, 100, &count), 100 + CENSUS_REST_MS);
    T_EQ(census_step(&c, &tk, 200, &count), 200 + CENSUS_MS);
    T_EQ(count, 2 * CENSUS_PAGE + 10);
    census_changed(&c, 1, &count);
    census_changed(&c, 1, &count);
    census_changed(&c, -1, &count);
    T_EQ(count, 2 * CENSUS_PAGE + 11);
    T_EQ(ticket_delete(&tk, "a00000", 6, &r, NULL), 0); /* by another process */
    T_EQ(census_step(&c, &tk, 200 + CENSUS_MS, &count), 200 + CENSUS_MS + CENSUS_REST_MS);
    T_EQ(count, 2 * CENSUS_PAGE + 11); /* until the walk is whole */
    census_step(&c, &tk, 300 + CENSUS_MS, &count);
    census_step(&c, &tk, 400 + CENSUS_MS, &count);
    T_EQ(count, 2 * CENSUS_PAGE + 9);
    tickets_done(&tk);
    firn_store_close(store);
}
