/* Rows as columns: the arrays of a batch have an element for each row, in the order of the rows. */
#include "t.h"

#include "auditlog/statement.h"

#include <stdlib.h>

static uint32_t u32(const char *p)
{
    return (uint32_t)(pg_read_int8(p) >> 32);
}

static struct row rows[3] = {
    { 11, { "a1", 2 }, { "x", 1 }, { "{}", 2 } },
    { 12, { "a2", 2 }, { "x", 1 }, { "{}", 2 } },
    { 13, { "a3", 2 }, { "x", 1 }, { "{}", 2 } },
};
static struct write_job *first, *second;

static void setup(void)
{
    first = calloc(1, sizeof *first);
    second = calloc(1, sizeof *second);
    T_OK(first && second);
    *first = (struct write_job){ .base = { .next = &second->base },
                                 .tenant = { "t", 1 },
                                 .user = { "u1", 2 },
                                 .rows_n = 2,
                                 .rows = rows };
    *second = (struct write_job){
        .tenant = { "t", 1 }, .user = { "u2", 2 }, .key = { "k", 1 }, .rows_n = 1, .rows = rows + 2
    };
}

static void done(struct columns *c)
{
    columns_done(c);
    free(first);
    free(second);
}

T_TEST(statement_rows_columns)
{
    struct columns c = { 0 };
    columns_init(&c);
    setup();
    for (int again = 0; again < 2; again++) { /* the memory is used again */
        struct query q = statement_rows(&c, first, 5, false, again);
        T_EQ(q.n, 10);
        for (int i = 0; i < 9; i++)
            T_EQ(u32(q.value[i] + 12), 3, "column %d", i);
        for (uint32_t i = 0; i < 3; i++)
            T_EQ(pg_read_int8(q.value[0] + 20 + 12 * i + 4), 11 + i);
        T_EQ(q.len[9], 8);
        T_EQ(pg_read_int8(q.value[9]), 5);
        T_EQ(u32(q.value[7] + 20), UINT32_MAX); /* no key */
        T_EQ(u32(q.value[7] + 28), 1);          /* the third row's key has one byte */
        /* The first ID of the request, for each of its rows. */
        T_EQ(pg_read_int8(q.value[8] + 24), 11);
        T_EQ(pg_read_int8(q.value[8] + 36), 11);
        T_EQ(pg_read_int8(q.value[8] + 48), 13);
        T_OK(strstr(q.sql, "firn_audit.log"));
        /* What is there is left alone only in a repetition. */
        T_EQ(strstr(q.sql, "ON CONFLICT") != NULL, again);
    }
    T_OK(strstr(statement_rows(&c, first, 5, true, false).sql, "firn_audit.legacy"));
    T_EQ(statement_present(&c, first, false).n, 7);
    done(&c);
}

T_TEST(statement_keys_only_of_those_with_one)
{
    struct columns c = { 0 };
    struct query q[2];
    columns_init(&c);
    setup();
    T_EQ(statement_keys(&c, first, q), 1);
    T_EQ(q[0].n, 5);
    T_EQ(q[1].n, 2);
    for (int i = 0; i < 5; i++)
        T_EQ(u32(q[0].value[i] + 12), 1, "column %d", i);
    T_EQ(pg_read_int8(q[0].value[2] + 24), 13);
    T_EQ(u32(q[0].value[3] + 20), 8); /* its IDs as bytes */
    T_EQ(pg_read_int8(q[0].value[3] + 24), 13);
    second->key.p = NULL;
    T_EQ(statement_keys(&c, first, q), 0);
    done(&c);
}

T_TEST(statement_read_of_an_id_and_of_a_user)
{
    struct read_params p;
    struct read_job *r = calloc(1, sizeof *r);
    T_OK(r);
    r->tenant = (struct slice){ "t", 1 };
    r->user = (struct slice){ "u", 1 };
    r->id = 7;
    struct query q = statement_read(r, &p, false);
    T_EQ(q.n, 2);
    T_EQ(pg_read_int8(q.value[1]), 7);
    r->id = 0;
    r->from = 3;
    r->before = 9;
    r->limit = 100;
    q = statement_read(r, &p, false);
    T_EQ(q.n, 7);
    T_EQ(pg_read_int8(q.value[1]), 3);
    T_EQ(pg_read_int8(q.value[2]), 9);
    T_EQ(pg_read_time(q.value[3]), 0);
    T_EQ(pg_read_int8(q.value[5]), 101);
    T_EQ(q.len[6], 1);
    free(r);
}
