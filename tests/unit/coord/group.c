/* The group commit's steps without a store: this file is the store, one answer at a time.
 * tests/unit/server/group_commit.c has the same on a store. */
#include "t.h"

#include "coord/group.h"

#include <stdio.h>

enum { TABLE = 4 };

static struct seq_entry entries[SEQ_TABLE_MAX];
static struct seq_table table;
static struct group_commit g;
static struct group_now now;
static struct job *answered[64];
static size_t answered_n;

static void begin(size_t table_max)
{
    struct group_rules rules = {
        .wait_ms = 5000, .retention_s = 86400, .first_name = "default", .first = { .start = 100001 }
    };
    memset(entries, 0, sizeof entries);
    seq_table_init(&table, entries, table_max);
    group_init(&g, &table, &rules);
    now = (struct group_now){ .ms = 1000, .s = 1794916800, .clock = true };
    now.gate = LEASE_GATE_OPEN;
    answered_n = 0;
}

static struct job *make(struct job *j, enum job_what what, const char *name, uint64_t want)
{
    *j = (struct job){ .what = what, .name_len = strlen(name), .want = want, .result = 77 };
    memcpy(j->name, name, j->name_len + 1);
    j->deadline_ms = 6000;
    return j;
}

static struct job *chain(struct job *j, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        j[i].next = &j[i + 1];
    return j;
}

/* The next step that is not GROUP_LOCKED. */
static enum group_do step(void)
{
    enum group_do what;
    while ((what = group_next(&g, &now)) == GROUP_LOCKED)
        group_locked(&g);
    for (struct job *j = job_take_all(&g.done), *next; j; j = next) {
        next = j->next;
        answered[answered_n++] = j;
    }
    return what;
}

static struct seq_record record_of(enum seq_mode mode, const char *note)
{
    struct seq_record r = { .mode = mode, .start = 1, .step = 1, .max = 1000000, .next = 1 };
    snprintf(r.note, sizeof r.note, "%s", note);
    return r;
}

static void describe(enum seq_mode mode, const char *note)
{
    struct seq_record r = record_of(mode, note);
    T_EQ(step(), GROUP_DESCRIBE);
    group_described(&g, 0, &r);
}

/* The store grants `count` numbers from `first` on to the i-th sequence of the commit. */
static void grant(size_t i, uint64_t first, uint64_t count, bool more)
{
    g.ticket[i].result = 0;
    g.ticket[i].range = (struct seq_range){ first, 1, count };
    g.ticket[i].more = more;
}

T_TEST(group_gathers_by_sequence_and_shares_in_order)
{
    struct job j[4];
    begin(TABLE);
    make(&j[0], JOB_TAKE, "a", 3);
    make(&j[1], JOB_TAKE, "b", 1);
    make(&j[2], JOB_TAKE, "a", 2);
    make(&j[3], JOB_TAKE, "a", 1);
    group_run(&g, chain(j, 4));
    describe(SEQ_GAPLESS, "");
    T_STR(g.name, "a");
    describe(SEQ_GAPLESS, "");
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(g.n, 2);
    T_EQ(g.ticket[0].want, 6);
    T_EQ(g.ticket[0].least, 3);
    T_EQ(g.ticket[0].waited, 0);
    T_OK(g.ticket[0].once);
    T_EQ(answered_n, 0); /* nothing is answered before the commit */
    grant(0, 10, 6, true);
    grant(1, 1, 1, true);
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, 4);
    T_EQ(j[0].range.first, 10);
    T_EQ(j[2].range.first, 13);
    T_EQ(j[3].range.first, 15);
    T_EQ(j[1].range.first, 1);
    T_EQ(g.counts.tickets, 7);
    T_OK(!g.again.first && !g.failed);
}

/* Fewer numbers than were asked for: the job that they are too few for waits, and all behind it. */
T_TEST(group_no_job_overtakes)
{
    struct job j[4];
    begin(TABLE);
    make(&j[0], JOB_TAKE, "a", 2);
    make(&j[1], JOB_TAKE, "a", 5);
    make(&j[2], JOB_TAKE, "a", 1);
    make(&j[3], JOB_DESCRIBE, "a", 0);
    group_run(&g, chain(j, 4));
    describe(SEQ_GAPLESS, "");
    T_EQ(step(), GROUP_COMMIT);
    grant(0, 1, 4, true);
    group_committed(&g);
    T_EQ(step(), GROUP_DONE); /* also the job that would look waits */
    T_EQ(answered_n, 1);
    T_OK(g.again.first == &j[1] && j[1].next == &j[2] && j[2].next == &j[3]);
    T_EQ(seq_table_find(&table, "a", 1)->left.count, 2); /* the rest is for them */
    T_OK(!g.failed);                                     /* at once */
}

T_TEST(group_a_failed_store_keeps_the_order)
{
    struct job j[3];
    begin(TABLE);
    make(&j[0], JOB_TAKE, "a", 1);
    make(&j[1], JOB_TAKE, "b", 1);
    make(&j[2], JOB_TAKE, "b", 1);
    group_run(&g, chain(j, 3));
    describe(SEQ_GAPLESS, "");
    T_EQ(step(), GROUP_DESCRIBE);
    group_described(&g, FIRN_EIO, NULL); /* then no later job of b may be gathered */
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(g.n, 1);
    g.ticket[0].result = FIRN_EUNKNOWN;
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, 0);
    T_OK(g.failed);
    T_OK(g.again.first == &j[1] && j[1].next == &j[0] && j[0].next == &j[2]);
    T_OK(j[0].tried && !j[1].tried);
    T_EQ(g.noted.set, 1 << GROUP_NOTE_FAILED);
    T_STR(g.noted.failed, "b");

    now.ms = 6000; /* the deadline */
    group_run(&g, job_take_all(&g.again));
    T_EQ(step(), GROUP_DESCRIBE);
    group_described(&g, FIRN_EIO, NULL);
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, 1);
    T_EQ(j[1].result, FIRN_EIO);
}

T_TEST(group_lost_writes_are_tried_again_at_once)
{
    struct job j;
    begin(TABLE);
    group_run(&g, make(&j, JOB_TAKE, "a", 2));
    describe(SEQ_GAPLESS, "");
    T_EQ(step(), GROUP_COMMIT);
    g.ticket[0].result = FIRN_ECONFLICT;
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_OK(!g.failed && g.again.first == &j && j.tried);
    T_EQ(g.counts.conflicts, 1);
    group_run(&g, job_take_all(&g.again));
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(g.ticket[0].waited, 2); /* a late grant may be its */
    now.ms = 6000;
    g.ticket[0].result = FIRN_ECONFLICT;
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j.result, FIRN_ECONFLICT);
    T_OK(strstr(j.diag.text, "one server"), "%s", j.diag.text);
    T_OK(g.noted.set & 1 << GROUP_NOTE_STARVED);
}

/* The rest of a range sequence's grant is in hand before its jobs are answered. */
T_TEST(group_range_sequences)
{
    struct job j[3];
    struct seq_range got;
    bool fetch;
    begin(TABLE);
    group_run(&g, make(&j[0], JOB_TAKE, "r", 1));
    describe(SEQ_RANGE, "");
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(g.ticket[0].want, 1 + SEQ_BLOCK_MIN);
    T_EQ(g.ticket[0].waited, 1 + SEQ_BLOCK_MIN);
    T_OK(!g.ticket[0].once);
    grant(0, 1, 1 + SEQ_BLOCK_MIN, true);
    group_committed(&g);
    T_EQ(group_next(&g, &now), GROUP_LOCKED);
    group_locked(&g);
    T_EQ(seq_table_take(&table, "r", 1, 1, false, 0, &got, NULL, &fetch), SEQ_HAND_TAKEN);
    T_EQ(got.first, 2);
    T_EQ(answered_n, 0);
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, 1);
    T_EQ(j[0].range.first, 1);

    /* From the block, without a commit; a fetch that came too late needs none. */
    make(&j[0], JOB_TAKE, "r", 2);
    make(&j[1], JOB_FETCH, "r", 0);
    group_run(&g, chain(j, 2));
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, 3);
    T_EQ(j[0].range.first, 3);
    T_EQ(g.counts.commits, 1);

    /* Behind one that is too large for the block, a small one waits. */
    make(&j[0], JOB_TAKE, "r", 500);
    make(&j[1], JOB_TAKE, "r", 1);
    group_run(&g, chain(j, 2));
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(answered_n, 3);
    grant(0, 1000, g.ticket[0].want, true);
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j[0].range.first, 1000);
    T_EQ(j[1].range.first, 1500);
    T_EQ(seq_table_take(&table, "r", 1, 1, false, 0, &got, NULL, &fetch), SEQ_HAND_TAKEN);
    T_EQ(got.first, 1501); /* the old block is below numbers that were given: dropped */
}

T_TEST(group_creates_what_may_be_created)
{
    struct job j[3];
    struct seq_record r = record_of(SEQ_RANGE, "");
    begin(TABLE);
    make(&j[0], JOB_TAKE, "none", 1);
    make(&j[1], JOB_TAKE, "made", 1)->create = true;
    make(&j[2], JOB_DESCRIBE, "default", 1);
    group_run(&g, chain(j, 3));
    T_EQ(step(), GROUP_DESCRIBE);
    group_described(&g, FIRN_ENOENT, NULL);
    T_EQ(step(), GROUP_DESCRIBE);
    T_EQ(j[0].result, FIRN_ENOENT);
    group_described(&g, FIRN_ENOENT, NULL);
    T_EQ(step(), GROUP_CREATE);
    T_EQ(g.spec.mode, SEQ_RANGE);
    group_created(&g, FIRN_ECONFLICT, &r); /* another process was faster */
    T_EQ(step(), GROUP_COMMIT);
    grant(0, 1, 101, true);
    group_committed(&g);
    T_EQ(step(), GROUP_DESCRIBE); /* only now: it sees what was asked for before */
    group_described(&g, FIRN_ENOENT, NULL);
    T_EQ(step(), GROUP_CREATE);
    T_EQ(g.spec.start, 100001);
    group_created(&g, 0, &r);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j[2].result, 0);
}

/* More sequences than the table has room for: a commit for those that are there, then the rest. */
T_TEST(group_a_full_table_ends_the_commit)
{
    struct job j[TABLE + 2];
    begin(TABLE);
    for (size_t i = 0; i < T_LEN(j); i++) {
        char name[8];
        snprintf(name, sizeof name, "s%zu", i);
        make(&j[i], JOB_TAKE, name, 1);
    }
    group_run(&g, chain(j, T_LEN(j)));
    for (size_t i = 0; i < TABLE + 1; i++)
        describe(SEQ_GAPLESS, "");
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(g.n, TABLE);
    for (size_t i = 0; i < TABLE; i++)
        grant(i, 1, 1, true);
    group_committed(&g);
    for (size_t i = 0; i < 2; i++)
        describe(SEQ_GAPLESS, "");
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(g.n, 2);
    grant(0, 1, 1, true);
    grant(1, 1, 1, true);
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, T_LEN(j));
}

static struct keyed key_of(uint8_t id, uint64_t want)
{
    struct keyed k = { .ask = { .want = want } };
    k.ask.key.b[0] = id;
    return k;
}

/* A key of a range sequence: look, take from the block, keep, and only then answer. */
T_TEST(group_keys_of_a_range_sequence)
{
    struct job j;
    struct keyed k = key_of(1, 2);
    struct idem_record kept = { .first = 7, .step = 1, .count = 2 };
    begin(TABLE);
    make(&j, JOB_TAKE, "r", 2)->keyed = &k;
    group_run(&g, &j);
    describe(SEQ_RANGE, "");
    T_EQ(step(), GROUP_READ_KEY);
    T_OK(g.key == &k.ask.key);
    group_key_read(&g, FIRN_ENOENT, NULL);
    T_EQ(step(), GROUP_COMMIT);
    T_EQ(g.ticket[0].keyed_n, 0);
    grant(0, 1, g.ticket[0].want, true);
    group_committed(&g);
    T_EQ(step(), GROUP_KEEP);
    T_EQ(answered_n, 0);
    T_EQ(g.keep_n, 1);
    T_EQ(k.idem.first, 1);
    T_EQ(k.idem.at, (uint64_t)now.s);
    k.result = FIRN_EUNKNOWN;
    group_kept(&g);
    T_EQ(step(), GROUP_DONE);
    T_OK(g.again.first == &j && j.taken && g.failed);
    group_run(&g, job_take_all(&g.again)); /* only the key is left to do */
    T_EQ(step(), GROUP_KEEP);
    k.result = 0;
    group_kept(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j.result, 0);
    T_EQ(j.range.first, 1);
    T_EQ(g.counts.keys_kept, 1);

    make(&j, JOB_TAKE, "r", 2)->keyed = &k; /* a retry */
    group_run(&g, &j);
    T_EQ(step(), GROUP_READ_KEY);
    group_key_read(&g, 0, &kept);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j.range.first, 7);
    T_EQ(g.counts.keys_replayed, 1);
    make(&j, JOB_TAKE, "r", 2)->keyed = &k; /* the same key for another request */
    k.ask.args = 5;
    group_run(&g, &j);
    T_EQ(step(), GROUP_READ_KEY);
    group_key_read(&g, 0, &kept);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j.result, FIRN_EREUSED);
}

/* A dated sequence: its period's register is made once, and keys of earlier periods are settled
 * before the first key of a new one. */
T_TEST(group_dated_sequences)
{
    struct job j[2];
    struct keyed k = key_of(1, 1);
    struct seq_record r = record_of(SEQ_GAPLESS, "");
    begin(TABLE);
    make(&j[0], JOB_TAKE, "d", 1)->plain = true;
    make(&j[1], JOB_TAKE, "d", 1)->keyed = &k;
    group_run(&g, chain(j, 2));
    describe(SEQ_GAPLESS, "dated:day:6");
    T_EQ(step(), GROUP_CREATE);
    T_STR(g.name, "d@20261117");
    group_created(&g, 0, &r);
    T_EQ(step(), GROUP_FLUSH);
    T_EQ(j[0].result, FIRN_EINVAL); /* bare numbers come again each day */
    T_STR(g.name, "d@20261116");
    group_flushed(&g, 0);
    T_EQ(step(), GROUP_COMMIT);
    T_STR(g.ticket[0].name, "d@20261117");
    T_EQ(g.ticket[0].keyed_n, 1);
    k.result = 0;
    k.idem = (struct idem_record){ .first = 1, .step = 1, .count = 1, .period = 20261117, .at = 5 };
    g.ticket[0].result = 0;
    group_committed(&g);
    T_EQ(step(), GROUP_KEEP);
    k.result = 0;
    group_kept(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j[1].period, 20261117);

    now.s -= 86400; /* a clock that was set back: the period does not go back */
    group_run(&g, make(&j[0], JOB_TAKE, "d", 1));
    T_EQ(step(), GROUP_COMMIT);
    T_STR(g.ticket[0].name, "d@20261117");
    grant(0, 2, 1, true);
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j[0].period, 20261117);
    now.clock = false;
    group_run(&g, make(&j[0], JOB_TAKE, "d", 1));
    T_EQ(step(), GROUP_DONE);
    T_EQ(j[0].result, FIRN_ECLOCK);
}

enum { KINDS = JOB_LEASE + 1 };

/* One job of each kind, in the order of enum job_what. */
static struct job *one_of_each(struct job j[KINDS])
{
    for (int i = 0; i < KINDS; i++)
        make(&j[i], (enum job_what)i, "a", 1);
    return chain(j, KINDS);
}

T_TEST(group_a_halted_store_gives_no_tickets)
{
    struct job j[KINDS];
    begin(TABLE);
    now.gate = LEASE_GATE_SHUT;
    now.gate_why = "make it with `firn admin init`";
    group_run(&g, one_of_each(j));
    for (int i = JOB_LIST; i < KINDS; i++) { /* to look is allowed */
        T_EQ(step(), GROUP_OTHER);
        T_OK(g.job == &j[i]);
    }
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, 6);
    for (int i = JOB_TAKE; i <= JOB_DESCRIBE; i++) {
        T_EQ(j[i].result, FIRN_ESTORE);
        T_STR(j[i].diag.text, "halted: make it with `firn admin init`");
    }
    T_OK(!g.again.first && !g.waits && !g.failed);
}

/* Held, as after a restore: numbers are refused, IDs may be kept under their keys. */
T_TEST(group_held_sequences_do_not_keep_back_keys)
{
    struct job j[2];
    begin(TABLE);
    now.gate = LEASE_GATE_SHUT;
    now.held = true;
    now.clock = false; /* which a key needs: the answer shows that it came so far */
    make(&j[0], JOB_TAKE, "a", 1);
    make(&j[1], JOB_KEEP, "", 0);
    group_run(&g, chain(j, 2));
    T_EQ(step(), GROUP_DONE);
    T_EQ(j[0].result, FIRN_ESTORE);
    T_EQ(j[1].result, FIRN_ECLOCK);
}

T_TEST(group_jobs_wait_for_the_gate_until_their_deadline)
{
    struct job j[KINDS];
    begin(TABLE);
    now.gate = LEASE_GATE_WAIT;
    one_of_each(j);
    j[JOB_KEEP].deadline_ms = 0;
    group_run(&g, j);
    for (int i = JOB_LIST; i < KINDS; i++)
        T_EQ(step(), GROUP_OTHER);
    T_EQ(step(), GROUP_DONE);
    T_EQ(answered_n, 1);
    T_EQ(j[JOB_KEEP].result, FIRN_EAGAIN);
    T_OK(g.waits && !g.failed);
    T_OK(g.again.first == &j[JOB_TAKE] && j[JOB_TAKE].next == &j[JOB_FETCH]);
    T_OK(j[JOB_DELETE].next == &j[JOB_DESCRIBE] && !j[JOB_DESCRIBE].next);
    (void)job_take_all(&g.again);
    now.gate_error = FIRN_ECLOCK;
    now.ms = 6000;
    group_run(&g, make(&j[0], JOB_TAKE, "a", 1));
    T_EQ(step(), GROUP_DONE);
    T_EQ(j[0].result, FIRN_ECLOCK);
}

/* What another server deleted is looked at anew, here as a commit finds out, and when a period
 * begins. */
T_TEST(group_forgets_deleted_sequences)
{
    struct job j;
    struct seq_record r = record_of(SEQ_RANGE, "");
    begin(TABLE);
    group_run(&g, make(&j, JOB_TAKE, "r", 1));
    describe(SEQ_RANGE, "");
    T_EQ(step(), GROUP_COMMIT);
    g.ticket[0].result = FIRN_ENOENT;
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j.result, FIRN_ENOENT);
    T_OK(!seq_table_find(&table, "r", 1)->known);
    group_run(&g, make(&j, JOB_TAKE, "r", 1));
    T_EQ(step(), GROUP_DESCRIBE);
    seq_delete(&r, &(struct nonce){ { 1 } });
    group_described(&g, 0, &r);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j.result, FIRN_ENOENT);

    group_run(&g, make(&j, JOB_TAKE, "d", 1));
    describe(SEQ_GAPLESS, "dated:day:6");
    T_EQ(step(), GROUP_CREATE);
    struct seq_record of_day = record_of(SEQ_GAPLESS, "");
    group_created(&g, 0, &of_day);
    T_EQ(step(), GROUP_COMMIT);
    grant(0, 1, 1, true);
    group_committed(&g);
    T_EQ(step(), GROUP_DONE);
    now.s += 86400;
    group_run(&g, make(&j, JOB_TAKE, "d", 1));
    T_EQ(step(), GROUP_DESCRIBE);
    T_STR(g.name, "d");
    seq_delete(&of_day, &(struct nonce){ { 2 } });
    group_described(&g, 0, &of_day);
    T_EQ(step(), GROUP_DONE);
    T_EQ(j.result, FIRN_ENOENT);
    T_OK(!seq_table_find(&table, "d", 1)->known);
}
