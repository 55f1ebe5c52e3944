/* The table of open sequences: blocks in hand, what it forgets first, and what it keeps. */
#include "t.h"

#include "coord/seq_table.h"

#include <stdio.h>

enum { FEW = 8 };

static struct seq_entry entries[SEQ_TABLE_MAX];
static struct seq_table table;

static void begin(size_t max)
{
    memset(entries, 0, sizeof entries);
    seq_table_init(&table, entries, max);
}

static struct seq_entry *open_it(const char *name, enum seq_mode mode)
{
    struct seq_record record = { .mode = mode, .step = 1 };
    struct seq_entry *e = seq_table_open(&table, name, strlen(name));
    if (e && !e->known)
        seq_table_describe(e, &record);
    return e;
}

static void put(const char *name, uint64_t first, uint64_t count, bool fresh)
{
    struct seq_range block = { first, 1, count };
    seq_table_put(open_it(name, SEQ_RANGE), &block, fresh, 0);
}

/* The first number; 0: none. */
static uint64_t take(const char *name, uint64_t want, bool *fetch)
{
    struct seq_range got;
    struct seq_record of;
    bool ahead;
    enum seq_hand hand = seq_table_take(&table, name, strlen(name), want, false, 0, &got, &of,
                                        &ahead);
    if (fetch)
        *fetch = ahead;
    if (hand != SEQ_HAND_TAKEN)
        return 0;
    T_EQ(got.count, want);
    T_EQ(of.mode, SEQ_RANGE);
    return got.first;
}

T_TEST(seq_table_hands_out_a_block_and_asks_for_the_next_once)
{
    bool fetch;
    uint64_t next;
    begin(FEW);
    T_EQ(take("a", 1, &fetch), 0);
    T_OK(!fetch);
    T_EQ(seq_table_peek(&table, "a", 1, &next), FIRN_ENOENT);
    T_EQ(open_it("a", SEQ_RANGE)->cache.want, SEQ_BLOCK_MIN);
    put("a", 1, 100, true);
    T_EQ(seq_table_peek(&table, "a", 1, &next), 0);
    T_EQ(next, 1);
    T_EQ(take("a", 10, &fetch), 1);
    T_OK(!fetch);
    T_EQ(take("a", 50, &fetch), 11);
    T_OK(fetch); /* more than half is used */
    T_EQ(take("a", 1, &fetch), 61);
    T_OK(!fetch); /* it is under way */
    put("a", 101, 100, false);
    T_EQ(take("a", 39, NULL), 62);
    T_EQ(take("a", 1, NULL), 101);
}

T_TEST(seq_table_a_run_is_in_one_piece)
{
    struct seq_range got;
    bool fetch;
    begin(FEW);
    put("a", 1, 10, true);
    T_EQ(take("a", 11, &fetch), 0);
    T_EQ(seq_table_take(&table, "a", 1, 11, true, 0, &got, NULL, &fetch), SEQ_HAND_TAKEN);
    T_EQ(got.first, 1); /* or fewer */
    T_EQ(got.count, 10);
    T_EQ(take("a", 1, &fetch), 0);
}

/* A block that could not be fetched leaves what is in hand, and the next request asks again. */
T_TEST(seq_table_a_failed_fetch_costs_nothing)
{
    bool fetch;
    begin(FEW);
    put("a", 1, 100, true);
    T_EQ(take("a", 60, &fetch), 1);
    T_OK(fetch);
    put("a", 0, 0, false);
    T_EQ(take("a", 1, &fetch), 61);
    T_OK(fetch);
}

/* A job was given lower numbers of this very block: older blocks are below those. */
T_TEST(seq_table_a_fresh_block_drops_older_ones)
{
    begin(FEW);
    put("a", 1, 100, true);
    T_EQ(take("a", 1, NULL), 1);
    put("a", 501, 100, true);
    T_EQ(take("a", 1, NULL), 501);
    put("a", 701, 0, true); /* all of it was taken at once */
    T_EQ(take("a", 1, NULL), 0);
}

static const char *name_of(int i)
{
    static char name[16];
    snprintf(name, sizeof name, "s%d", i);
    return name;
}

T_TEST(seq_table_forgets_the_least_recently_used)
{
    begin(FEW);
    put("hot", 1, 100, true);
    for (int i = 0; i < 3 * FEW; i++) {
        T_OK(open_it(name_of(i), SEQ_GAPLESS));
        T_EQ(take("hot", 1, NULL), (uint64_t)i + 1); /* in use by the loops alone */
    }
    T_EQ(table.count, FEW);
    T_OK(!seq_table_find(&table, name_of(0), strlen(name_of(0))));
    for (int i = 2 * FEW + 1; i < 3 * FEW; i++)
        T_OK(seq_table_find(&table, name_of(i), strlen(name_of(i))), "%d", i);
}

/* The entries of a commit stay, whatever else would have to go: two sequences in one entry would
 * mix their numbers. */
T_TEST(seq_table_keeps_the_entries_of_a_turn)
{
    begin(FEW);
    for (int i = 0; i < FEW - 1; i++) /* with numbers in flight, so the last to go */
        seq_table_return(open_it(name_of(i), SEQ_GAPLESS), (struct seq_range){ 5, 1, 2 });
    struct seq_entry *a = open_it("a", SEQ_GAPLESS);
    seq_table_pin(&table, a);
    struct seq_entry *b = open_it("b", SEQ_GAPLESS);
    T_OK(a && b && a != b);
    T_STR(a->name, "a");
    for (size_t i = 0; i < FEW; i++)
        seq_table_pin(&table, &entries[i]);
    T_OK(!open_it("c", SEQ_GAPLESS));
    T_OK(open_it("b", SEQ_GAPLESS) == b);
    seq_table_end_turn(&table);
    T_OK(open_it("c", SEQ_GAPLESS));
}

T_TEST(seq_table_forget)
{
    begin(FEW);
    put("a", 1, 100, true);
    put("b", 1, 100, true);
    seq_table_forget(&table, "a", 1);
    seq_table_forget(&table, "none", 4);
    T_EQ(take("a", 1, NULL), 0);
    T_EQ(take("b", 1, NULL), 1);
    for (int i = 0; i < 4 * FEW; i++)
        T_OK(open_it(name_of(i), SEQ_RANGE));
    T_EQ(take("a", 1, NULL), 0);
}

T_TEST(seq_table_finds_each_of_many)
{
    begin(SEQ_TABLE_MAX);
    for (int i = 0; i < SEQ_TABLE_MAX; i++)
        put(name_of(i), (uint64_t)i + 1, 10, true);
    for (int i = 0; i < SEQ_TABLE_MAX; i++)
        T_EQ(take(name_of(i), 1, NULL), (uint64_t)i + 1);
}

T_TEST(seq_table_return_joins_the_halves_of_a_grant)
{
    begin(FEW);
    struct seq_entry *e = open_it("a", SEQ_GAPLESS);
    seq_table_return(e, (struct seq_range){ 5, 1, 2 });
    seq_table_return(e, (struct seq_range){ 3, 1, 2 });
    T_EQ(e->left.first, 3);
    T_EQ(e->left.count, 4);
    seq_table_return(e, (struct seq_range){ 100, 1, 3 }); /* the larger piece stays */
    T_EQ(e->left.first, 3);
    seq_table_return(e, (struct seq_range){ 0, 0, 0 });
    T_EQ(e->left.count, 4);
}

T_TEST(seq_table_drop)
{
    bool fetch;
    begin(FEW);
    put("a", 1, 100, true);
    T_EQ(take("a", 60, &fetch), 1);
    T_OK(fetch);
    seq_table_drop(&table);
    T_EQ(take("a", 1, NULL), 0);
    put("a", 101, 100, false);
    T_EQ(take("a", 60, &fetch), 101);
    T_OK(fetch); /* the block that was asked for before does not come */
}
