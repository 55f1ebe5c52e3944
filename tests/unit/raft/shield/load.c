/* What a member checks and keeps when libraft loads its files. */
#include "raft/shield/load.c"

#include "t.h"

#include <stdlib.h>
#include <unistd.h>

static struct node node;
static struct vote on_disk; /* libraft's */

static int their_load(struct raft_io *io, raft_term *term, raft_id *voted_for,
                      struct raft_snapshot **snapshot, raft_index *start_index,
                      struct raft_entry *entries[], size_t *n_entries)
{
    (void)io;
    *term = on_disk.term;
    *voted_for = on_disk.candidate;
    *snapshot = NULL;
    *start_index = 1;
    *entries = NULL;
    *n_entries = 0;
    return 0;
}

static int their_term(struct raft_io *io, raft_term term)
{
    (void)io;
    on_disk = (struct vote){ term, 0 };
    return 0;
}

static int load(void)
{
    raft_term term;
    raft_id vote;
    struct raft_snapshot *snapshot;
    raft_index start;
    struct raft_entry *entries;
    size_t n;
    node.shield.vote.last = (struct vote){ 0, 0 };
    return on_load(&node.io, &term, &vote, &snapshot, &start, &entries, &n);
}

T_TEST(a_kill_in_the_first_new_term)
{
    char path[] = "/tmp/firn-load-XXXXXX";
    T_OK(mkdtemp(path) != NULL);
    node.self.dir = path;
    node.io.load = their_load;
    node.io.set_term = their_term;
    node.io.data = &node;
    load_watch(&node);
    on_disk = (struct vote){ 1, 0 };
    T_EQ(load(), 0);
    their_term(&node.io, 2); /* killed between libraft's write and ours */
    T_EQ(load(), 0);
    T_OK(!node.shield.vote.damaged);
    T_EQ(on_term(&node.io, 3), 0);
    T_EQ(load(), 0);
    on_disk = (struct vote){ 2, 0 }; /* libraft's copy is older: it forgot a term */
    T_EQ(load(), RAFT_CORRUPT);
    T_OK(node.shield.vote.damaged);
    unlink(node.shield.vote.path);
    rmdir(path);
}

T_TEST(a_lost_copy_is_told)
{
    char path[] = "/tmp/firn-load-XXXXXX";
    T_OK(mkdtemp(path) != NULL);
    node.self.dir = path;
    node.io.load = their_load;
    node.io.set_term = their_term;
    load_watch(&node);
    on_disk = (struct vote){ 2, 0 };
    T_EQ(load(), RAFT_CORRUPT);
    T_OK(node.shield.vote.damaged);
    rmdir(path);
}
