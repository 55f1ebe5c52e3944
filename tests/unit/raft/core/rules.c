/* The rules of Raft one by one: a few cores whose network does what the case needs, or one core
 * that hears what the case says. */
#include "members.h"

static void cut_off(struct cluster *k, uint64_t id, bool cut)
{
    for (unsigned i = 1; i <= MEMBERS; i++)
        k->cut[id][i] = k->cut[i][id] = cut;
}

static struct member *elected(struct cluster *k)
{
    run(k, 1000);
    struct member *m = leader_of(k);
    T_OK(m && core_settled(m->c));
    return m;
}

/* ---- one core ---- */

static void on_disk(struct cluster *k, uint64_t term, enum core_type type,
                    const struct core_config *config)
{
    struct member *m = &k->m[1];
    char bytes[CORE_CONFIG_BYTES_MAX] = "data";
    size_t len = config ? config_write(config, bytes, sizeof bytes) : 4;
    char *copy = malloc(len);
    T_OK(copy && len > 0);
    memcpy(copy, bytes, len);
    m->log[m->count++] = (struct stored){ term, type, copy, len };
    m->term = term > m->term ? term : m->term;
}

static void snapshot_on_disk(struct cluster *k, uint64_t index, uint64_t term,
                             const struct core_config *config)
{
    struct member *m = &k->m[1];
    char *bytes = calloc(1, 16);
    T_OK(bytes);
    memcpy(bytes, &index, 8);
    m->snapshot = (struct core_snapshot){ index, term, *config, bytes, 16 };
    m->has_snapshot = true;
    m->term = term;
    m->first = index + 1;
    k->last = index; /* what the oracles know */
    k->term_at[index] = term;
}

/* Member 1 with a configuration of these voters as its first entry, of term 1. */
static struct cluster *one_of(const char *voters)
{
    struct cluster *k = cluster_new(5);
    struct core_config config = config_of(voters, "");
    on_disk(k, 1, ENTRY_CONFIG, &config);
    return k;
}

static void hear(struct cluster *k, struct core_message m)
{
    m.to = 1;
    core_receive(k->m[1].c, &m, k->now);
    pump(k, &k->m[1]);
}

/* What member 1 said last of this type, and forget all of it. False: nothing. */
static bool said(struct cluster *k, uint64_t to, enum core_message_type type,
                 struct core_message *out)
{
    static char bytes[CORE_MESSAGE_BYTES_MAX];
    static struct core_message_room room;
    bool found = false;
    for (unsigned i = 0; i < k->wires; i++) {
        struct core_message m;
        memcpy(bytes, k->wire[i].bytes, k->wire[i].len);
        T_EQ(message_read(bytes, k->wire[i].len, &m, &room), 0);
        if (m.to == to && m.type == type) {
            *out = m;
            found = true;
        }
    }
    while (k->wires)
        drop(k, k->wires - 1);
    return found;
}

static void saved(struct cluster *k, unsigned n)
{
    save_some(k, &k->m[1], n);
}

/* Member 1 becomes the leader by the votes of 2 and 3. */
static void let_lead(struct cluster *k)
{
    struct core *c = k->m[1].c;
    for (unsigned i = 0; i < 40 && core_state(c) != CORE_CANDIDATE; i++)
        tick(k, 10);
    for (uint64_t from = 2; from <= 3; from++)
        hear(k, (struct core_message){ .type = MESSAGE_VOTE_RESULT,
                                       .from = from,
                                       .term = core_term(c) + 1,
                                       .pre = true,
                                       .ok = true });
    saved(k, SAVES_MAX);
    for (uint64_t from = 2; from <= 3; from++)
        hear(k, (struct core_message){
                    .type = MESSAGE_VOTE_RESULT, .from = from, .term = core_term(c), .ok = true });
    T_EQ(core_state(c), CORE_LEADER);
}

static struct core_message ack(struct cluster *k, uint64_t from, uint64_t index, uint64_t round)
{
    return (struct core_message){ .type = MESSAGE_APPEND_RESULT,
                                  .from = from,
                                  .term = core_term(k->m[1].c),
                                  .ok = true,
                                  .index = index,
                                  .round = round };
}

static struct core_message append(uint64_t from, uint64_t term, uint64_t index, uint64_t index_term,
                                  uint64_t commit, const struct core_entry *e, size_t entries)
{
    return (struct core_message){ .type = MESSAGE_APPEND,
                                  .from = from,
                                  .term = term,
                                  .index = index,
                                  .index_term = index_term,
                                  .commit = commit,
                                  .entry = e,
                                  .entries = entries };
}

static struct core_message vote(uint64_t from, uint64_t term, uint64_t index, uint64_t index_term)
{
    return (struct core_message){
        .type = MESSAGE_VOTE, .from = from, .term = term, .index = index, .index_term = index_term
    };
}

/* ---- replication ---- */

T_TEST(three_elect_and_commit)
{
    struct cluster *k = cluster_of("123", 1);
    struct member *m = elected(k);
    for (unsigned i = 0; i < 1000; i++)
        T_EQ(propose(k, m, i), 0);
    run(k, 100);
    for (unsigned i = 1; i <= 3; i++)
        T_EQ(core_applied(k->m[i].c), core_last(m->c));
    cluster_free(k);
}

T_TEST(one_alone_does_not_wait)
{
    struct cluster *k = cluster_of("1", 1);
    run(k, 20);
    T_OK(core_settled(k->m[1].c));
    uint64_t ask = core_ask(k->m[1].c);
    T_EQ(core_shown(k->m[1].c), ask);
    cluster_free(k);
}

T_TEST(figure_8_older_terms_are_not_counted)
{
    struct cluster *k = one_of("12345");
    on_disk(k, 2, ENTRY_DATA, NULL);
    start(k, 1);
    let_lead(k); /* of term 3, with entry 3 */
    saved(k, SAVES_MAX);
    hear(k, ack(k, 2, 2, 0));
    hear(k, ack(k, 3, 2, 0));
    T_EQ(core_committed(k->m[1].c), 0, "entry 2 of term 2 is on three of five");
    hear(k, ack(k, 2, 3, 0));
    T_EQ(core_committed(k->m[1].c), 0);
    hear(k, ack(k, 3, 3, 0));
    T_EQ(core_committed(k->m[1].c), 3);
    cluster_free(k);
}

T_TEST(own_entries_count_when_saved)
{
    struct cluster *k = one_of("123");
    start(k, 1);
    let_lead(k);
    hear(k, ack(k, 2, 2, 0));
    T_EQ(core_committed(k->m[1].c), 0, "it is on one disk");
    saved(k, SAVES_MAX);
    T_EQ(core_committed(k->m[1].c), 2);
    cluster_free(k);
}

T_TEST(acknowledges_only_what_the_leader_showed)
{
    struct cluster *k = one_of("123");
    struct core_message m;
    for (unsigned i = 0; i < 4; i++)
        on_disk(k, 1, ENTRY_DATA, NULL);
    start(k, 1);
    hear(k, append(2, 2, 2, 1, 5, NULL, 0)); /* commit 5, and shows 2 */
    saved(k, SAVES_MAX);
    T_OK(said(k, 2, MESSAGE_APPEND_RESULT, &m) && m.ok);
    T_EQ(m.index, 2);
    T_EQ(core_committed(k->m[1].c), 2);
    T_EQ(core_last(k->m[1].c), 5, "nothing differs: nothing is truncated");
    cluster_free(k);
}

T_TEST(what_no_leader_can_send_is_dropped)
{
    struct cluster *k = one_of("123");
    struct core *c;
    struct core_entry other = { .index = 3, .term = 3, .type = ENTRY_DATA, .bytes = "x", .len = 1 };
    for (unsigned i = 0; i < 4; i++)
        on_disk(k, 1, ENTRY_DATA, NULL);
    start(k, 1);
    c = k->m[1].c;
    hear(k, append(2, 2, 4, 1, 4, NULL, 0));
    T_EQ(core_committed(c), 4);
    hear(k, append(3, 2, 4, 1, 4, NULL, 0)); /* another leader of this term */
    T_EQ(core_impossible(c), 1);
    T_EQ(core_leader(c), 2);
    hear(k, append(3, 3, 3, 2, 4, NULL, 0));   /* another entry before its first */
    hear(k, append(3, 3, 2, 1, 4, &other, 1)); /* another entry in place of a committed one */
    T_EQ(core_impossible(c), 3);
    hear(k, (struct core_message){ .type = MESSAGE_APPEND_RESULT, .from = 77, .term = 9 });
    T_EQ(core_term(c), 2, "the answer of one that was not asked");
    T_EQ(core_last(c), 5);
    cluster_free(k);
    k = one_of("123");
    start(k, 1);
    let_lead(k);
    c = k->m[1].c;
    hear(k, append(2, core_term(c), 1, 1, 1, NULL, 0));
    T_EQ(core_impossible(c), 1);
    T_EQ(core_state(c), CORE_LEADER);
    cluster_free(k);
}

T_TEST(saves_overtaken_by_a_truncation_do_not_count)
{
    struct cluster *k = one_of("123");
    struct core_entry old[2] = { { 2, 2, ENTRY_DATA, "a", 1 }, { 3, 2, ENTRY_DATA, "b", 1 } };
    struct core_entry new[2] = { { 2, 3, ENTRY_DATA, "c", 1 }, { 3, 3, ENTRY_DATA, "d", 1 } };
    struct core_message m;
    k->m[1].term = 2;
    start(k, 1);
    hear(k, append(2, 2, 1, 1, 0, old, 2));
    T_EQ(k->m[1].saves, 1);
    hear(k, append(3, 3, 1, 1, 0, new, 2));
    T_EQ(k->m[1].saves, 2);
    saved(k, 1);
    T_EQ(core_last_saved(k->m[1].c), 1, "the disk has entries that are not in the log");
    T_OK(!said(k, 3, MESSAGE_APPEND_RESULT, &m), "the term is not saved either");
    saved(k, 1);
    T_EQ(core_last_saved(k->m[1].c), 3);
    T_OK(said(k, 3, MESSAGE_APPEND_RESULT, &m) && m.ok && m.index == 3);
    cluster_free(k);
}

T_TEST(entries_of_an_earlier_lead_do_not_count)
{
    struct cluster *k = one_of("123");
    struct core_entry e = { 2, 3, ENTRY_NOTHING, NULL, 0 };
    start(k, 1);
    let_lead(k); /* term 2; its entry 2 and three more are not saved */
    for (unsigned i = 0; i < 3; i++)
        T_EQ(propose(k, &k->m[1], i), 0);
    hear(k, append(3, 3, 1, 1, 0, &e, 1)); /* they are overwritten */
    T_EQ(core_last(k->m[1].c), 2);
    let_lead(k);
    T_EQ(core_last(k->m[1].c), 3);
    T_EQ(core_last_saved(k->m[1].c), 2, "entry 3 of this term is not on the disk");
    hear(k, ack(k, 2, 3, 0));
    T_EQ(core_committed(k->m[1].c), 0);
    saved(k, SAVES_MAX);
    T_EQ(core_committed(k->m[1].c), 3);
    cluster_free(k);
}

T_TEST(a_slow_disk_does_not_silence_a_follower)
{
    struct cluster *k = one_of("123");
    struct core_entry e = { 2, 2, ENTRY_DATA, "a", 1 };
    struct core_message m;
    k->m[1].term = 2;
    start(k, 1);
    hear(k, append(2, 2, 1, 1, 0, &e, 1));
    (void)said(k, 2, MESSAGE_APPEND_RESULT, &m);
    hear(k, append(2, 2, 2, 2, 2, NULL, 0));
    T_OK(said(k, 2, MESSAGE_APPEND_RESULT, &m) && m.ok);
    T_EQ(m.index, 1, "entry 2 is not saved");
    T_EQ(core_committed(k->m[1].c), 2);
    saved(k, 1);
    T_OK(said(k, 2, MESSAGE_APPEND_RESULT, &m) && m.ok && m.index == 2);
    cluster_free(k);
}

T_TEST(a_leader_of_an_earlier_term_is_told)
{
    struct cluster *k = one_of("123");
    struct core_entry e = { 2, 2, ENTRY_DATA, "a", 1 };
    struct core_message m;
    k->m[1].term = 5;
    start(k, 1);
    hear(k, append(2, 4, 1, 1, 1, &e, 1));
    T_EQ(core_last(k->m[1].c), 1);
    T_EQ(core_leader(k->m[1].c), 0);
    T_OK(said(k, 2, MESSAGE_APPEND_RESULT, &m) && !m.ok && m.term == 5);
    cluster_free(k);
}

T_TEST(catching_up_is_not_one_by_one)
{
    struct cluster *k = cluster_of("123", 9);
    struct member *m = elected(k), *other = &k->m[m->id % 3 + 1];
    cut_off(k, m->id, true);
    for (unsigned i = 0; i < 1500; i++) /* which nobody gets */
        T_EQ(propose(k, m, i), 0);
    run(k, 600);
    struct member *next = leader_of(k);
    T_OK(next && next != m);
    for (unsigned i = 0; i < 1000; i++)
        T_EQ(propose(k, next, 5000 + i), 0);
    run(k, 100);
    cut_off(k, m->id, false);
    unsigned messages = 0;
    for (unsigned i = 0; i < 400 && core_last(m->c) != core_last(next->c); i++) {
        for (unsigned n = 1; n <= 3; n++)
            save_some(k, &k->m[n], SAVES_MAX);
        if (k->wires) {
            messages += k->wire[0].to == m->id;
            deliver(k, 0, false);
        } else {
            tick(k, 10);
        }
    }
    (void)other;
    run(k, 100);
    T_EQ(m->sum, next->sum);
    T_OK(messages < 40, "%u messages", messages);
    cluster_free(k);
}

/* ---- votes ---- */

T_TEST(one_vote_a_term_and_saved_before_said)
{
    struct cluster *k = one_of("123");
    struct core_message m;
    start(k, 1);
    hear(k, vote(2, 5, 1, 1));
    T_OK(!said(k, 2, MESSAGE_VOTE_RESULT, &m), "it is not on the disk");
    saved(k, SAVES_MAX);
    T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && m.ok && m.term == 5);
    hear(k, vote(3, 5, 9, 4));
    T_OK(said(k, 3, MESSAGE_VOTE_RESULT, &m) && !m.ok);
    stop(k, &k->m[1], false);
    start(k, 1);
    hear(k, vote(3, 5, 9, 4));
    T_OK(said(k, 3, MESSAGE_VOTE_RESULT, &m) && !m.ok, "after a restart");
    hear(k, vote(2, 5, 1, 1));
    T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && m.ok, "the same again");
    cluster_free(k);
}

T_TEST(a_vote_within_a_known_term_is_saved_before_said)
{
    struct cluster *k = one_of("123");
    struct core_message m;
    k->m[1].term = 5; /* nothing to save but the vote */
    start(k, 1);
    hear(k, vote(2, 5, 1, 1));
    T_OK(!said(k, 2, MESSAGE_VOTE_RESULT, &m));
    saved(k, SAVES_MAX);
    T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && m.ok);
    cluster_free(k);
}

T_TEST(a_leader_that_hands_over_votes_once)
{
    struct cluster *k = one_of("123");
    struct core_message m, v;
    start(k, 1);
    let_lead(k);
    saved(k, SAVES_MAX);
    hear(k, ack(k, 2, 2, 0));
    uint64_t term = core_term(k->m[1].c);
    T_EQ(core_transfer(k->m[1].c, 2), 0);
    pump(k, &k->m[1]);
    T_OK(said(k, 2, MESSAGE_TIMEOUT_NOW, &m) && m.term == term);
    v = vote(2, term, 2, term - 1); /* in a term in which it voted for itself */
    v.transfer = true;
    hear(k, v);
    T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && !m.ok);
    v = vote(2, term + 1, 2, term);
    hear(k, v);
    T_EQ(core_state(k->m[1].c), CORE_LEADER, "not without `transfer`");
    v.transfer = true;
    hear(k, v);
    saved(k, SAVES_MAX);
    T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && m.ok);
    v.from = 3;
    hear(k, v);
    saved(k, SAVES_MAX);
    T_OK(said(k, 3, MESSAGE_VOTE_RESULT, &m) && !m.ok);
    cluster_free(k);
}

T_TEST(no_vote_for_a_log_that_is_behind)
{
    struct cluster *k = one_of("123");
    struct core_message m;
    on_disk(k, 3, ENTRY_DATA, NULL);
    start(k, 1);
    const uint64_t behind[][2] = { { 1, 3 }, { 9, 2 }, { 0, 0 } },
                   fine[][2] = { { 2, 3 }, { 1, 4 } };
    for (unsigned i = 0; i < 3; i++) {
        hear(k, vote(2, 5 + i, behind[i][0], behind[i][1]));
        saved(k, SAVES_MAX);
        T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && !m.ok, "%u", i);
    }
    for (unsigned i = 0; i < 2; i++) {
        hear(k, vote(2, 10 + i, fine[i][0], fine[i][1]));
        saved(k, SAVES_MAX);
        T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && m.ok, "%u", i);
    }
    cluster_free(k);
}

T_TEST(a_candidate_asks_when_its_vote_is_saved)
{
    struct cluster *k = one_of("123");
    struct core_message m;
    start(k, 1);
    for (unsigned i = 0; i < 30 && core_state(k->m[1].c) != CORE_CANDIDATE; i++)
        tick(k, 10);
    T_OK(said(k, 2, MESSAGE_VOTE, &m) && m.pre);
    T_EQ(core_term(k->m[1].c), 1, "a pre-vote changes nothing");
    hear(k, (struct core_message){
                .type = MESSAGE_VOTE_RESULT, .from = 2, .term = 2, .pre = true, .ok = true });
    T_EQ(core_term(k->m[1].c), 2);
    T_OK(!said(k, 2, MESSAGE_VOTE, &m));
    hear(k, (struct core_message){ .type = MESSAGE_VOTE_RESULT, .from = 2, .term = 2, .ok = true });
    T_EQ(core_state(k->m[1].c), CORE_CANDIDATE, "its own vote is not saved");
    saved(k, SAVES_MAX);
    T_EQ(core_state(k->m[1].c), CORE_LEADER);
    cluster_free(k);
}

T_TEST(a_member_without_the_entry_that_made_it_a_voter_votes)
{
    struct cluster *k = cluster_new(1);
    struct core_message m;
    start(k, 1); /* knows nothing */
    hear(k, vote(2, 5, 9, 4));
    saved(k, SAVES_MAX);
    T_OK(said(k, 2, MESSAGE_VOTE_RESULT, &m) && m.ok);
    for (unsigned i = 0; i < 100; i++)
        tick(k, 10);
    T_EQ(core_state(k->m[1].c), CORE_FOLLOWER, "but does not stand");
    cluster_free(k);
}

T_TEST(who_hears_its_leader_supports_no_candidate)
{
    struct cluster *k = one_of("123");
    struct core_message m, v = vote(3, 9, 9, 8);
    k->m[1].term = 2;
    start(k, 1);
    hear(k, append(2, 2, 1, 1, 0, NULL, 0));
    tick(k, 99);
    hear(k, v);
    v.pre = true;
    hear(k, v);
    T_EQ(core_term(k->m[1].c), 2);
    T_OK(!said(k, 3, MESSAGE_VOTE_RESULT, &m));
    k->now++; /* an election time-out */
    hear(k, v);
    T_OK(said(k, 3, MESSAGE_VOTE_RESULT, &m) && m.ok && m.pre);
    T_EQ(core_term(k->m[1].c), 2);
    cluster_free(k);
}

T_TEST(a_process_that_slept_judges_nobody)
{
    struct cluster *k = cluster_of("123", 4);
    struct member *m = elected(k);
    uint64_t term = core_term(m->c);
    k->paused[1] = k->paused[2] = k->paused[3] = true;
    tick(k, 5000);
    memset(k->paused, 0, sizeof k->paused);
    run(k, 500);
    T_OK(core_state(m->c) == CORE_LEADER && core_term(m->c) == term);
    cluster_free(k);
}

T_TEST(a_leader_that_hears_no_majority_steps_down)
{
    struct cluster *k = cluster_of("123", 4);
    struct member *m = elected(k);
    cut_off(k, m->id, true);
    run(k, 110);
    T_EQ(core_state(m->c) == CORE_LEADER, false);
    T_OK(!core_leads(m->c));
    cluster_free(k);
}

/* ---- reads ---- */

T_TEST(a_leader_that_does_not_know_of_the_next_shows_nothing)
{
    struct cluster *k = cluster_of("123", 4);
    struct member *m = elected(k);
    cut_off(k, m->id, true);
    k->paused[m->id] = true;
    run(k, 600);
    T_OK(leader_of(k) != m && core_state(m->c) == CORE_LEADER);
    T_EQ(propose(k, leader_of(k), 1), 0);
    run(k, 50);
    uint64_t ask = core_ask(m->c);
    T_OK(ask > 0 && core_shown(m->c) < ask);
    cut_off(k, m->id, false);
    pump(k, m);
    run(k, 200);
    T_OK(core_shown(m->c) < ask && core_state(m->c) == CORE_FOLLOWER);
    cluster_free(k);
}

T_TEST(a_leader_shows_nothing_before_a_commit_of_its_term)
{
    struct cluster *k = one_of("123");
    struct core_message m;
    start(k, 1);
    let_lead(k);
    saved(k, SAVES_MAX);
    (void)said(k, 2, MESSAGE_APPEND, &m);
    uint64_t ask = core_ask(k->m[1].c);
    pump(k, &k->m[1]);
    T_OK(said(k, 2, MESSAGE_APPEND, &m) && m.round == ask, "asks at once");
    hear(k, ack(k, 2, 1, ask));
    T_OK(core_shown(k->m[1].c) < ask);
    hear(k, ack(k, 2, 2, ask));
    T_EQ(core_shown(k->m[1].c), ask);
    cluster_free(k);
}

/* ---- members ---- */

T_TEST(an_uncommitted_configuration_goes_with_its_entry)
{
    struct cluster *k = one_of("123");
    struct core_config two = config_of("12", "");
    struct core_entry e = { 2, 3, ENTRY_NOTHING, NULL, 0 };
    on_disk(k, 2, ENTRY_CONFIG, &two);
    start(k, 1);
    T_EQ(core_config(k->m[1].c)->count, 2);
    T_OK(core_changing(k->m[1].c));
    hear(k, append(3, 3, 1, 1, 0, &e, 1));
    T_EQ(core_config(k->m[1].c)->count, 3);
    saved(k, SAVES_MAX);
    stop(k, &k->m[1], false);
    start(k, 1);
    T_EQ(core_config(k->m[1].c)->count, 3);
    cluster_free(k);
}

T_TEST(a_configuration_goes_back_to_that_of_a_snapshot)
{
    struct cluster *k = cluster_new(1);
    struct core_config three = config_of("123", ""), two = config_of("12", "");
    struct core_entry e = { 6, 3, ENTRY_NOTHING, NULL, 0 };
    snapshot_on_disk(k, 5, 1, &three);
    on_disk(k, 2, ENTRY_CONFIG, &two);
    start(k, 1);
    T_EQ(core_config(k->m[1].c)->count, 2);
    hear(k, append(3, 3, 5, 1, 5, &e, 1));
    T_EQ(core_config(k->m[1].c)->count, 3);
    T_OK(!core_changing(k->m[1].c));
    cluster_free(k);
}

T_TEST(a_snapshot_has_the_configuration_of_its_index)
{
    struct cluster *k = one_of("123");
    struct core_config two = config_of("12", "");
    uint64_t index;
    start(k, 1);
    let_lead(k);
    saved(k, SAVES_MAX);
    hear(k, ack(k, 2, 2, 0));
    hear(k, ack(k, 3, 2, 0));
    T_EQ(core_applied(k->m[1].c), 2);
    T_EQ(core_change(k->m[1].c, &two, &index), 0);
    T_EQ(take_snapshot(k, &k->m[1], 0, 0), 0);
    saved(k, SAVES_MAX);
    T_EQ(k->m[1].snapshot.config.count, 3);
    T_EQ(core_config(k->m[1].c)->count, 2);
    cluster_free(k);
}

T_TEST(one_change_at_a_time_after_a_commit_of_the_own_term)
{
    struct cluster *k = one_of("123");
    struct core_config two = config_of("12", ""), none = config_of("", "123"),
                       same = config_of("123", ""), five = config_of("1234", "5"),
                       four = config_of("123", "4");
    uint64_t index;
    start(k, 1);
    T_EQ(core_change(k->m[1].c, &two, &index), FIRN_EAGAIN, "does not lead");
    let_lead(k);
    saved(k, SAVES_MAX);
    T_EQ(core_change(k->m[1].c, &two, &index), FIRN_EAGAIN, "nothing of its term is committed");
    hear(k, ack(k, 3, 2, 0));
    T_EQ(core_change(k->m[1].c, &none, &index), FIRN_EINVAL);
    T_EQ(core_change(k->m[1].c, &same, &index), FIRN_EINVAL);
    T_EQ(core_change(k->m[1].c, &five, &index), FIRN_EINVAL);
    T_EQ(core_change(k->m[1].c, &two, &index), FIRN_ECONFLICT, "2 was not heard");
    T_EQ(core_change(k->m[1].c, &four, &index), 0);
    T_EQ(index, 3);
    four.member[3].role = CORE_VOTER;
    T_EQ(core_change(k->m[1].c, &four, &index), FIRN_EAGAIN, "the last is not committed");
    saved(k, SAVES_MAX);
    pump(k, &k->m[1]);
    saved(k, SAVES_MAX);
    hear(k, ack(k, 3, 3, 0));
    T_OK(!core_changing(k->m[1].c));
    T_EQ(core_change(k->m[1].c, &four, &index), FIRN_ECONFLICT, "1 and 3 are heard, of four");
    hear(k, ack(k, 4, 3, 0));
    T_EQ(core_change(k->m[1].c, &four, &index), 0, "and 4 has caught up");
    cluster_free(k);
}

T_TEST(no_change_before_a_commit_of_the_own_term)
{
    struct cluster *k = cluster_new(1);
    struct core_config three = config_of("123", ""), two = config_of("12", "");
    uint64_t index;
    snapshot_on_disk(k, 5, 1, &three); /* so that the last change is known to be committed */
    start(k, 1);
    let_lead(k);
    saved(k, SAVES_MAX);
    hear(k, ack(k, 2, 5, 0));
    hear(k, ack(k, 3, 5, 0));
    T_OK(!core_changing(k->m[1].c));
    T_EQ(core_change(k->m[1].c, &two, &index), FIRN_EAGAIN);
    hear(k, ack(k, 2, 6, 0));
    T_EQ(core_change(k->m[1].c, &two, &index), 0);
    cluster_free(k);
}

T_TEST(a_removed_leader_does_not_count_itself_and_goes)
{
    struct cluster *k = one_of("123");
    struct core_config rest = config_of("23", "");
    struct core_message m;
    uint64_t index;
    start(k, 1);
    let_lead(k);
    saved(k, SAVES_MAX);
    hear(k, ack(k, 2, 2, 0));
    hear(k, ack(k, 3, 2, 0));
    T_EQ(core_change(k->m[1].c, &rest, &index), 0);
    pump(k, &k->m[1]);
    saved(k, SAVES_MAX);
    hear(k, ack(k, 2, 3, 0));
    T_EQ(core_committed(k->m[1].c), 2, "1 and 2 are no majority of 2 and 3");
    T_EQ(core_state(k->m[1].c), CORE_LEADER);
    hear(k, ack(k, 3, 3, 0));
    T_EQ(core_committed(k->m[1].c), 3);
    T_EQ(core_state(k->m[1].c), CORE_FOLLOWER);
    T_OK(said(k, 2, MESSAGE_TIMEOUT_NOW, &m) || said(k, 3, MESSAGE_TIMEOUT_NOW, &m));
    for (unsigned i = 0; i < 100; i++)
        tick(k, 10);
    T_EQ(core_state(k->m[1].c), CORE_FOLLOWER);
    cluster_free(k);
}

T_TEST(a_leader_whose_removal_only_it_has_can_return)
{
    struct cluster *k = cluster_of("12", 6);
    struct member *m = elected(k), *other = &k->m[3 - m->id];
    struct core_config rest = config_of(m->id == 1 ? "2" : "1", "");
    uint64_t index;
    cut_off(k, m->id, true);
    T_EQ(core_change(m->c, &rest, &index), 0);
    pump(k, m);
    run(k, 500);
    T_OK(!leader_of(k));
    cut_off(k, m->id, false);
    run(k, 1500);
    T_EQ(core_state(other->c), CORE_LEADER);
    T_EQ(core_config(other->c)->count, 1);
    cluster_free(k);
}

T_TEST(a_forced_configuration)
{
    struct cluster *k = one_of("123");
    struct core_config one = config_of("1", ""), none = config_of("", "1");
    on_disk(k, 4, ENTRY_DATA, NULL);
    start(k, 1);
    T_EQ(core_force(k->m[1].c, &none), FIRN_EINVAL);
    T_EQ(core_force(k->m[1].c, &one), 0);
    T_EQ(core_term(k->m[1].c), 5);
    pump(k, &k->m[1]);
    run(k, 50);
    T_OK(core_settled(k->m[1].c));
    T_EQ(core_committed(k->m[1].c), 4);
    T_EQ(core_force(k->m[1].c, &one), FIRN_EINVAL, "too late");
    cluster_free(k);
}

T_TEST(bootstrap_only_once)
{
    struct cluster *k = one_of("123");
    struct core_config one = config_of("1", "");
    start(k, 1);
    T_EQ(core_bootstrap(k->m[1].c, &one), FIRN_EINVAL);
    cluster_free(k);
}

/* ---- transfer ---- */

T_TEST(the_lead_is_handed_over)
{
    struct cluster *k = cluster_of("123", 3);
    struct member *m = elected(k), *to = &k->m[m->id % 3 + 1];
    T_EQ(core_transfer(m->c, 9), FIRN_ENOENT);
    T_EQ(core_transfer(m->c, m->id), FIRN_ENOENT);
    T_EQ(core_transfer(m->c, to->id), 0);
    T_OK(!core_leads(m->c) && core_transferring(m->c));
    T_EQ(propose(k, m, 1), FIRN_EAGAIN);
    pump(k, m);
    run(k, 50);
    T_EQ(core_state(to->c), CORE_LEADER);
    T_EQ(core_leader(m->c), to->id);
    cut_off(k, m->id, true); /* a target that does not answer: it ends */
    T_EQ(core_transfer(to->c, m->id), 0);
    run(k, 120);
    T_OK(core_leads(to->c) && propose(k, to, 1) == 0);
    cluster_free(k);
}

T_TEST(stands_at_once_only_for_its_leader)
{
    struct cluster *k = one_of("123");
    struct core_message m, now = { .type = MESSAGE_TIMEOUT_NOW, .from = 3, .term = 2 };
    k->m[1].term = 2;
    start(k, 1);
    hear(k, append(2, 2, 1, 1, 0, NULL, 0));
    hear(k, now);
    T_EQ(core_state(k->m[1].c), CORE_FOLLOWER);
    now.from = 2;
    now.term = 1;
    hear(k, now);
    T_EQ(core_state(k->m[1].c), CORE_FOLLOWER);
    now.term = 2;
    hear(k, now);
    T_EQ(core_state(k->m[1].c), CORE_CANDIDATE);
    T_OK(!said(k, 2, MESSAGE_VOTE, &m));
    saved(k, SAVES_MAX);
    T_OK(said(k, 2, MESSAGE_VOTE, &m) && !m.pre && m.transfer && m.term == 3);
    cluster_free(k);
}

/* ---- snapshots ---- */

T_TEST(a_snapshot_catches_up)
{
    struct cluster *k = cluster_of("123", 2);
    struct member *m = elected(k), *late = &k->m[m->id % 3 + 1];
    cut_off(k, late->id, true);
    for (unsigned i = 0; i < 100; i++)
        T_EQ(propose(k, m, i), 0);
    run(k, 50);
    T_EQ(take_snapshot(k, m, 3, 4000), 0);
    run(k, 50);
    T_EQ(core_snapshot_index(m->c), core_last(m->c));
    T_EQ(core_first(m->c), core_last(m->c) - 2);
    cut_off(k, late->id, false);
    run(k, 1000);
    T_EQ(late->sum, leader_of(k)->sum);
    T_EQ(core_snapshot_index(late->c), core_snapshot_index(m->c));
    cluster_free(k);
}

static struct core_message chunk(const char *state, uint64_t offset, size_t len,
                                 const struct core_config *config)
{
    return (struct core_message){ .type = MESSAGE_SNAPSHOT,
                                  .from = 2,
                                  .term = 5,
                                  .index = 9,
                                  .index_term = 4,
                                  .offset = offset,
                                  .total = 16,
                                  .bytes = state + offset,
                                  .len = len,
                                  .config = config };
}

T_TEST(a_leaders_snapshot_is_saved_before_it_is_said)
{
    struct cluster *k = one_of("123");
    struct core_config three = config_of("123", "");
    struct core_message m;
    struct core_entry e = { 10, 5, ENTRY_DATA, "a", 1 };
    char state[16] = { 9 };
    for (unsigned i = 0; i < 11; i++)
        on_disk(k, 3, ENTRY_DATA, NULL); /* 2 to 12: not the leader's */
    k->m[1].term = 5;
    k->last = 9;
    k->term_at[9] = 4;
    start(k, 1);
    hear(k, chunk(state, 0, 7, &three));
    T_OK(said(k, 2, MESSAGE_SNAPSHOT_RESULT, &m) && m.ok && m.offset == 7);
    hear(k, chunk(state, 0, 7, &three)); /* again */
    T_OK(said(k, 2, MESSAGE_SNAPSHOT_RESULT, &m) && m.ok && m.offset == 7);
    hear(k, chunk(state, 7, 9, &three));
    T_OK(!said(k, 2, MESSAGE_SNAPSHOT_RESULT, &m));
    T_EQ(k->m[1].saves, 1);
    hear(k, append(2, 5, 9, 4, 9, &e, 1));
    T_EQ(core_last(k->m[1].c), 12, "entries are ignored");
    T_OK(said(k, 2, MESSAGE_APPEND_RESULT, &m) && m.ok && m.index == 0);
    k->now += 100;
    hear(k, vote(3, 6, 12, 3)); /* votes go on, with the old log */
    for (unsigned i = 0; i < 100; i++)
        tick(k, 10);
    T_EQ(core_state(k->m[1].c), CORE_FOLLOWER, "it has no state to lead with");
    saved(k, SAVES_MAX);
    T_EQ(core_vote(k->m[1].c), 3);
    T_EQ(core_last(k->m[1].c), 9);
    T_EQ(core_first(k->m[1].c), 10);
    T_EQ(core_applied(k->m[1].c), 9);
    T_EQ(k->m[1].count, 0);
    cluster_free(k);
}

T_TEST(a_snapshot_that_is_lost_in_a_crash_comes_again)
{
    for (unsigned half = 0; half < 2; half++) {
        struct cluster *k = cluster_of("123", 2);
        struct member *m = elected(k), *late = &k->m[m->id % 3 + 1];
        cut_off(k, late->id, true);
        for (unsigned i = 0; i < 20; i++)
            T_EQ(propose(k, m, i), 0);
        run(k, 50);
        T_EQ(take_snapshot(k, m, 0, 0), 0);
        run(k, 50);
        late->term = core_term(m->c); /* only the snapshot is to be saved */
        cut_off(k, late->id, false);
        for (unsigned i = 0; i < 1000; i++) {
            for (unsigned n = 1; n <= 3; n++)
                if (n != late->id || !late->saves || !late->save[late->saves - 1].s.snapshot)
                    save_some(k, &k->m[n], SAVES_MAX);
            if (late->saves && late->save[late->saves - 1].s.snapshot)
                break;
            if (k->wires)
                deliver(k, 0, false);
            else
                tick(k, 10);
        }
        T_OK(late->saves && late->save[0].s.snapshot);
        for (unsigned i = 0; i < 20 && k->wires; i++)
            deliver(k, 0, false);
        stop(k, late, half);
        T_OK(core_state(m->c) == CORE_LEADER);
        start(k, late->id);
        run(k, 1000);
        T_EQ(late->sum, m->sum);
        T_EQ(core_state(m->c), CORE_LEADER, "without another election");
        cluster_free(k);
    }
}

T_TEST(a_large_snapshot_over_a_bad_network)
{
    struct cluster *k = cluster_of("123", 2);
    struct member *m = elected(k), *late = &k->m[m->id % 3 + 1];
    static char bytes[3 * CORE_CHUNK_BYTES + 7];
    cut_off(k, late->id, true);
    for (unsigned i = 0; i < 20; i++)
        T_EQ(propose(k, m, i), 0);
    run(k, 50);
    for (size_t i = 16; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7 + i / 1000);
    memcpy(bytes, &m->applied, 8);
    memcpy(bytes + 8, &m->sum, 8);
    T_EQ(core_snapshot(m->c, bytes, sizeof bytes, 0), 0);
    pump(k, m);
    run(k, 50);
    cut_off(k, late->id, false);
    for (unsigned i = 0; i < 3000 && core_snapshot_index(late->c) == 0; i++) {
        for (unsigned n = 1; n <= 3; n++)
            save_some(k, &k->m[n], SAVES_MAX);
        if (!k->wires)
            tick(k, 10);
        else if (below(k, 4) == 0)
            drop(k, 0);
        else
            deliver(k, 0, below(k, 4) == 0);
    }
    run(k, 1000);
    T_EQ(late->snapshot.len, sizeof bytes);
    T_OK(memcmp(late->snapshot.bytes, bytes, sizeof bytes) == 0);
    T_EQ(late->sum, m->sum);
    cluster_free(k);
}

T_TEST(a_snapshot_waits_for_the_entries_that_it_contains)
{
    struct cluster *k = one_of("123");
    k->m[1].term = 2;
    start(k, 1);
    for (uint64_t i = 2; i < 102; i++) { /* more than saves can be under way */
        struct core_entry e = { i, 2, ENTRY_DATA, "a", 1 };
        hear(k, append(2, 2, i - 1, i == 2 ? 1 : 2, i, &e, 1));
        if (i % 10 == 0) {
            struct core_message m;
            (void)said(k, 2, MESSAGE_APPEND_RESULT, &m);
        }
    }
    T_EQ(k->m[1].saves, CORE_SAVES_MAX);
    T_EQ(core_applied(k->m[1].c), 101);
    T_EQ(take_snapshot(k, &k->m[1], 0, 0), 0);
    saved(k, 1); /* the harness checks that entries have no hole */
    saved(k, SAVES_MAX);
    saved(k, SAVES_MAX);
    T_EQ(core_snapshot_index(k->m[1].c), 101);
    T_EQ(k->m[1].snapshot.index, 101);
    T_EQ(k->m[1].count, 0);
    cluster_free(k);
}

/* ---- loading ---- */

T_TEST(what_cannot_be_a_log_is_refused)
{
    struct core_opts o = { .id = 1, .election_ms = 100 };
    struct core_entry e[3] = { { 1, 2, ENTRY_DATA, "a", 1 },
                               { 2, 2, ENTRY_DATA, "b", 1 },
                               { 3, 3, ENTRY_NOTHING, NULL, 0 } };
    struct core_saved_state s = { .term = 3, .first = 1, .entry = e, .entries = 3 };
    struct core *c;
    T_EQ(core_new(&o, &s, 0, &c), 0);
    T_EQ(core_last(c), 3);
    core_free(c);
    e[2].index = 4;
    T_EQ(core_new(&o, &s, 0, &c), FIRN_EFORMAT, "a hole");
    e[2].index = 3;
    e[2].term = 1;
    T_EQ(core_new(&o, &s, 0, &c), FIRN_EFORMAT, "terms go back");
    e[2].term = 3;
    e[2].type = ENTRY_CONFIG;
    T_EQ(core_new(&o, &s, 0, &c), FIRN_EFORMAT, "no configuration");
    e[2].type = ENTRY_NOTHING;
    s.first = 2;
    s.entry = e + 1;
    s.entries = 2;
    T_EQ(core_new(&o, &s, 0, &c), FIRN_EFORMAT, "no beginning");
    struct core_snapshot snap = { 1, 2, config_of("1", ""), "x", 1 };
    s.snapshot = &snap;
    T_EQ(core_new(&o, &s, 0, &c), 0);
    T_EQ(core_last(c), 3);
    T_EQ(core_committed(c), 1);
    core_free(c);
    snap.index = 3;
    snap.term = 9; /* the log is not the one that the snapshot is of */
    T_EQ(core_new(&o, &s, 0, &c), 0);
    T_EQ(core_last(c), 3);
    T_EQ(core_first(c), 4);
    T_EQ(core_term(c), 9);
    struct core_save save;
    T_OK(core_save(c, &save) && save.snapshot && save.truncate == 4 && save.log_first == 4);
    core_free(c);
}

T_TEST(saves_under_way_are_bounded)
{
    struct cluster *k = one_of("1");
    start(k, 1);
    tick(k, 10);
    saved(k, SAVES_MAX);
    for (unsigned i = 0; i < 200; i++)
        T_EQ(propose(k, &k->m[1], i), 0);
    T_EQ(k->m[1].saves, CORE_SAVES_MAX);
    saved(k, 1);
    T_EQ(k->m[1].saves, CORE_SAVES_MAX);
    T_OK(k->m[1].save[CORE_SAVES_MAX - 1].s.entries > 100, "the rest is one save");
    saved(k, SAVES_MAX);
    T_EQ(core_committed(k->m[1].c), core_last(k->m[1].c));
    cluster_free(k);
}
