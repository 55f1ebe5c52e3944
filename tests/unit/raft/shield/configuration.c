/* Membership changes that are not committed: which is open after a load, how it is undone. */
#include "raft/shield/configuration.c"

#include "t.h"

#include <string.h>

static struct node node;
static struct raft_entry ring[8];
static int failures;

void log_failed(struct node *n, const char *why, const char *cure)
{
    (void)n, (void)why, (void)cure;
    failures++;
}

raft_index raft_last_index(struct raft *r)
{
    return r->log.offset + (r->log.back + r->log.size - r->log.front) % r->log.size;
}

/* A log behind `offset`; each letter is an entry, 'c' a change; all of term 2. */
static void log_is(raft_index offset, const char *entries)
{
    size_t n = strlen(entries);
    configuration_done(&node);
    raft_configuration_close(&node.raft.configuration);
    memset(&node, 0, sizeof node);
    failures = 0;
    node.raft.log = (struct raft_log){
        .entries = ring, .size = 8, .front = 5, .back = (5 + n) % 8, .offset = offset
    };
    for (size_t i = 0; i < n; i++)
        ring[(5 + i) % 8] = (struct raft_entry){ .term = 2,
                                                 .type = entries[i] == 'c' ? RAFT_CHANGE
                                                                           : RAFT_COMMAND };
    node.raft.current_term = 3;
    node.raft.state = RAFT_FOLLOWER;
    node.raft.commit_index = 1;
    node.raft.configuration_index = 1;
    T_EQ(raft_configuration_add(&node.raft.configuration, 9, "nine:1", RAFT_VOTER), 0);
}

static void snapshot_at(raft_index configuration_index, raft_index commit)
{
    struct raft_snapshot s = { .configuration_index = configuration_index };
    T_EQ(raft_configuration_add(&s.configuration, 1, "one:1", RAFT_VOTER), 0);
    T_EQ(raft_configuration_add(&s.configuration, 2, "two:1", RAFT_STANDBY), 0);
    T_EQ(configuration_save(&node, &s), 0);
    raft_configuration_close(&s.configuration);
    node.raft.commit_index = commit;
}

static void loaded(raft_index committed, raft_index open)
{
    configuration_loaded(&node);
    T_EQ(node.raft.configuration_index, committed);
    T_EQ(node.raft.configuration_uncommitted_index, open);
}

T_TEST(the_newest_change_is_open_after_a_load)
{
    log_is(0, "c");
    loaded(1, 0); /* the first entry is the same everywhere */
    log_is(0, "cxxcx");
    loaded(1, 4);
    log_is(0, "cxcxc");
    loaded(3, 5);
    log_is(0, "cxxx");
    loaded(1, 0);
}

T_TEST(a_snapshot_has_the_change_before)
{
    log_is(10, "xxcx");
    snapshot_at(7, 12);
    loaded(7, 13);
    log_is(10, "xcxx");
    snapshot_at(12, 12);
    node.raft.configuration_index = 12;
    loaded(12, 0); /* it is in the snapshot: committed */
    log_is(10, "xxx");
    snapshot_at(7, 12);
    node.raft.configuration_index = 7;
    loaded(7, 0);
}

/* A leader's message: entries of `term` behind prev, which has term 2 here. */
static struct raft_append_entries message(raft_index prev, unsigned n, raft_term term)
{
    struct raft_entry *e = n ? raft_calloc(n, sizeof *e) : NULL;
    void *batch = n ? raft_malloc(8) : NULL;
    for (unsigned i = 0; i < n; i++)
        e[i] = (struct raft_entry){ .term = term, .batch = batch };
    return (struct raft_append_entries){ .term = 3,
                                         .prev_log_index = prev,
                                         .prev_log_term = 2,
                                         .leader_commit = 100,
                                         .entries = e,
                                         .n_entries = n };
}

static void done(struct raft_append_entries *a)
{
    if (a->n_entries > 0)
        drop_entries(a);
}

static void open_change(void) /* at 13; what it goes back to, 7, is only in the snapshot */
{
    log_is(10, "xxcx");
    snapshot_at(7, 12);
    configuration_loaded(&node);
    T_EQ(node.raft.configuration_uncommitted_index, 13);
}

T_TEST(an_undone_change_goes_back_to_the_snapshot)
{
    open_change();
    struct raft_append_entries a = message(12, 2, 3);
    configuration_recv(&node, &a);
    T_EQ(a.n_entries, 2);
    T_EQ(a.leader_commit, 14);
    T_EQ(node.raft.configuration_uncommitted_index, 0);
    T_EQ(node.raft.configuration_index, 7);
    T_EQ(node.raft.configuration.n, 2);
    T_EQ(node.raft.configuration.servers[1].id, 2);
    T_STR(node.raft.configuration.servers[1].address, "two:1");
    T_EQ((int)node.raft.configuration.servers[1].role, RAFT_STANDBY);
    T_EQ(failures, 0);
    done(&a);
}

T_TEST(what_undoes_nothing_passes)
{
    static const struct {
        raft_index prev;
        unsigned n;
        raft_term term, entries, prev_term;
    } some[] = {
        { 12, 2, 3, 2, 2 }, /* the same entries */
        { 13, 2, 3, 3, 2 }, /* conflicts behind the change */
        { 12, 2, 1, 3, 2 }, /* an older leader */
        { 12, 2, 3, 3, 9 }, /* does not fit */
        { 12, 0, 3, 3, 2 }, { 40, 2, 3, 3, 2 },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        open_change();
        struct raft_append_entries a = message(some[i].prev, some[i].n, some[i].entries);
        a.term = some[i].term;
        a.prev_log_term = some[i].prev_term;
        configuration_recv(&node, &a);
        T_EQ(node.raft.configuration_uncommitted_index, 13, "%zu", i);
        T_EQ(node.raft.configuration.servers[0].id, 9, "%zu", i);
        T_EQ(a.n_entries, some[i].n, "%zu", i);
        T_EQ(a.leader_commit, some[i].prev + some[i].n, "%zu", i);
        done(&a);
    }
}

T_TEST(who_leads_steps_down_first)
{
    open_change();
    node.raft.state = RAFT_LEADER;
    struct raft_append_entries a = message(12, 2, 3);
    a.term = 4;
    configuration_recv(&node, &a);
    T_EQ(a.n_entries, 0);
    T_OK(!a.entries);
    T_EQ(a.leader_commit, 12); /* its own entries behind 12 are not committed by it */
    T_EQ(node.raft.configuration_uncommitted_index, 13);
}

T_TEST(without_a_way_back_nothing_is_taken)
{
    open_change();
    node.shield.saved.index = 6;
    struct raft_append_entries a = message(12, 2, 3);
    configuration_recv(&node, &a);
    T_EQ(failures, 1);
    T_EQ(a.n_entries, 0);
}

T_TEST(one_vote_a_term)
{
    struct raft_request_vote v = { .term = 3, .candidate_id = 5 };
    log_is(0, "c");
    T_OK(!configuration_votes_again(&node, &v));
    node.raft.voted_for = 5;
    T_OK(!configuration_votes_again(&node, &v));
    node.raft.voted_for = 6;
    T_OK(configuration_votes_again(&node, &v));
    v.pre_vote = true;
    T_OK(!configuration_votes_again(&node, &v));
    v = (struct raft_request_vote){ .term = 4, .candidate_id = 5 };
    T_OK(!configuration_votes_again(&node, &v));
    log_is(0, "c"); /* frees what the last test had */
    raft_configuration_close(&node.raft.configuration);
}
