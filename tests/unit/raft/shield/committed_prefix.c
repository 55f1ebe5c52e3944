/* What of a leader's message reaches libraft. */
#include "raft/shield/committed_prefix.c"

#include "t.h"

#include <stdlib.h>

static struct raft_append_entries taken;
static struct node node;

/* Entries behind `prev`, each of the term that its index is. */
static void receive(raft_index prev, unsigned count)
{
    struct raft_entry *e = count ? raft_calloc(count, sizeof *e) : NULL;
    void *batch = count ? raft_malloc(8) : NULL;
    for (unsigned i = 0; i < count; i++)
        e[i] = (struct raft_entry){ .term = prev + 1 + i, .batch = batch };
    taken = (struct raft_append_entries){
        .term = 9, .prev_log_index = prev, .prev_log_term = prev, .entries = e, .n_entries = count
    };
    committed_prefix_drop(&node, &taken);
}

static void done(void)
{
    if (taken.n_entries > 0)
        raft_free(taken.entries[0].batch);
    raft_free(taken.entries);
}

T_TEST(what_is_committed_is_taken_off)
{
    node.raft.log.offset = 15; /* it begins with 16, and has a snapshot of 20 */
    node.raft.commit_index = 22;
    receive(0, 30);
    T_EQ(taken.prev_log_index, 22);
    T_EQ(taken.prev_log_term, 22);
    T_EQ(taken.n_entries, 8);
    T_EQ(taken.entries[0].term, 23);
    T_EQ(taken.entries[7].term, 30);
    done();
    receive(14, 9);
    T_EQ(taken.prev_log_index, 22);
    T_EQ(taken.n_entries, 1);
    T_EQ(taken.entries[0].term, 23);
    done();
}

T_TEST(all_of_it)
{
    node.raft.log.offset = 15;
    node.raft.commit_index = 22;
    receive(0, 22);
    T_EQ(taken.prev_log_index, 22);
    T_EQ(taken.prev_log_term, 22);
    T_EQ(taken.n_entries, 0);
    T_OK(!taken.entries);
    receive(3, 4); /* libraft does not have 7 any more, and says so */
    T_EQ(taken.prev_log_index, 7);
    T_EQ(taken.n_entries, 0);
}

T_TEST(the_rest_is_libraft_s_to_judge)
{
    node.raft.log.offset = 15;
    node.raft.commit_index = 22;
    receive(15, 3);
    T_EQ(taken.prev_log_index, 15);
    T_EQ(taken.n_entries, 3);
    done();
    receive(40, 0);
    T_EQ(taken.prev_log_index, 40);
    node.raft.log.offset = 0; /* it has everything */
    receive(0, 30);
    T_EQ(taken.prev_log_index, 0);
    T_EQ(taken.n_entries, 30);
    done();
}
