/* The group commit on a coordinator without its thread: what one run over the inbox does with jobs,
 * in good times and while the store fails. */
#include "coordinator_world.h"

static void create(const char *name, struct seq_spec spec)
{
    T_EQ(ticket_create(&c->tickets, name, strlen(name), &spec, NULL, NULL), 0);
    atomic_store(&shaky.writes, 0);
}

static void arrive(struct job *j, size_t n)
{
    coordinator_submit(c, chain(j, n), &j[n - 1]);
}

/* As the coordinator's thread does: take the whole inbox and run it. */
static void run(void)
{
    group_commit_turn(c, job_take_all(&c->inbox));
}

static size_t waiting(void)
{
    size_t n = 0;
    for (struct job *j = c->inbox.first; j; j = j->next)
        n++;
    return n;
}

T_TEST(group_commit_serves_in_the_order_of_arrival)
{
    struct job j[4];
    setup();
    create("a", (struct seq_spec){ 0 });
    create("b", (struct seq_spec){ .step = 2, .offset = 1 });
    job_init(&j[0], JOB_TAKE, "a", 3);
    job_init(&j[1], JOB_TAKE, "b", 2);
    job_init(&j[2], JOB_TAKE, "a", 1);
    job_init(&j[3], JOB_TAKE, "a", 5);
    arrive(j, 4);
    run();
    T_EQ(returned.n, 4);
    T_EQ(atomic_load(&shaky.writes), 1); /* one transaction for all */
    T_EQ(c->stats.commits, 1);
    T_EQ(c->stats.tickets, 11);
    T_TOOK(&j[0], 1, 3);
    T_TOOK(&j[1], 1, 2);
    T_EQ(j[1].range.step, 2);
    T_TOOK(&j[2], 4, 1);
    T_TOOK(&j[3], 5, 5);
    T_OK(returned.job[0] == &j[0] && returned.job[1] == &j[2] && returned.job[2] == &j[3]);
    teardown();
}

/* A job that only looks sees the numbers that were asked for before it, and not those behind it. */
T_TEST(group_commit_looks_between_takes)
{
    struct job j[3];
    setup();
    create("a", (struct seq_spec){ 0 });
    job_init(&j[0], JOB_TAKE, "a", 10);
    job_init(&j[1], JOB_DESCRIBE, "a", 0);
    job_init(&j[2], JOB_TAKE, "a", 10);
    arrive(j, 3);
    run();
    T_EQ(returned.n, 3);
    T_EQ(j[1].result, 0);
    T_EQ(j[1].record.next, 11);
    T_TOOK(&j[2], 11, 10);
    T_EQ(c->stats.commits, 2);
    teardown();
}

T_TEST(group_commit_sequences_that_do_not_exist)
{
    struct job j[3];
    setup();
    job_init(&j[0], JOB_TAKE, "none", 1);
    job_init(&j[1], JOB_TAKE, "made", 1)->create = true;
    job_init(&j[2], JOB_TAKE, DEFAULT_SEQUENCE, 2);
    arrive(j, 3);
    run();
    T_EQ(returned.n, 3);
    T_EQ(j[0].result, FIRN_ENOENT);
    T_OK(strstr(j[0].diag.text, "POST /v1/sequences"), "%s", j[0].diag.text);
    T_TOOK(&j[1], 1, 1);
    T_EQ(j[1].record.mode, SEQ_RANGE);
    T_TOOK(&j[2], 100001, 2);
    T_EQ(j[2].record.mode, SEQ_GAPLESS);
    teardown();
}

/* A write that was not done costs time, not numbers: jobs stay in front of later ones. */
T_TEST(group_commit_keeps_jobs_while_writes_fail)
{
    struct job j[3];
    setup();
    create("a", (struct seq_spec){ 0 });
    job_init(&j[0], JOB_TAKE, "a", 2);
    job_init(&j[1], JOB_TAKE, "a", 3);
    job_init(&j[2], JOB_TAKE, "a", 1);
    arrive(j, 2);
    for (int i = 0; i < 3; i++) {
        atomic_store(&shaky.refuse_writes, 1);
        run();
        T_EQ(returned.n, 0);
        T_EQ(waiting(), 2);
        T_OK(c->inbox.first == &j[0] && c->serve.retry_ms > 0);
    }
    T_EQ(c->stats.commit_errors, 3);
    arrive(&j[2], 1);
    run();
    T_EQ(returned.n, 3);
    T_TOOK(&j[0], 1, 2);
    T_TOOK(&j[1], 3, 3);
    T_TOOK(&j[2], 6, 1);
    T_EQ(c->serve.retry_ms, 0);
    teardown();
}

/* Numbers of a write whose outcome is unknown are found again: no hole and no repeat. */
T_TEST(group_commit_unknown_outcome)
{
    for (int done = 0; done < 2; done++) {
        struct job j[2];
        setup();
        create("a", (struct seq_spec){ 0 });
        job_init(&j[0], JOB_TAKE, "a", 4);
        arrive(j, 1);
        run(); /* the record is known now */
        job_init(&j[0], JOB_TAKE, "a", 4);
        job_init(&j[1], JOB_TAKE, "a", 1);
        arrive(j, 1);
        atomic_store(done ? &shaky.lose_answers : &shaky.lose_requests, 1);
        atomic_store(&shaky.fail_reads, 100);
        run();
        T_EQ(waiting(), 1, "done=%d", done);
        T_OK(j[0].tried);
        atomic_store(&shaky.fail_reads, 0);
        arrive(&j[1], 1);
        for (int i = 0; i < 3 && returned.n < 3; i++)
            run(); /* the job behind it may have to wait for the next commit */
        T_EQ(returned.n, 3);
        T_TOOK(&j[0], 5, 4);
        T_TOOK(&j[1], 9, 1);
        teardown();
    }
}

/* Another server's write between ours and the record that it was built on. */
static void rival_takes_ten(void)
{
    struct tickets other;
    struct ticket_job take = { .name = "a", .name_len = 1, .want = 10 };
    struct firn_diag d;
    if (tickets_init(&other, shaky.inner, NULL, NULL) != 0 ||
        ticket_commit(&other, &take, 1, &d) != 0)
        abort();
    tickets_done(&other);
}

T_TEST(group_commit_another_writer_was_faster)
{
    struct job j[2];
    setup();
    create("a", (struct seq_spec){ 0 });
    job_init(&j[0], JOB_TAKE, "a", 2);
    job_init(&j[1], JOB_TAKE, "a", 2);
    arrive(j, 1);
    run();
    T_TOOK(&j[0], 1, 2);
    arrive(&j[1], 1);
    shaky.before_write = rival_takes_ten;
    run();
    if (waiting() == 1) { /* lost: it goes into the next commit, at once */
        T_EQ(c->serve.retry_ms, 0);
        T_EQ(c->stats.conflicts, 1);
        run();
    }
    T_EQ(returned.n, 2);
    T_TOOK(&j[1], 13, 2);
    T_EQ(c->stats.commit_errors, 0);
    teardown();
}

T_TEST(group_commit_late_jobs_are_answered)
{
    struct job j[2];
    setup();
    create("a", (struct seq_spec){ 0 });
    job_init(&j[0], JOB_TAKE, "a", 1);
    job_init(&j[1], JOB_TAKE, "a", 1);
    arrive(j, 2);
    j[0].deadline_ms = mono_ms() - 1;
    atomic_store(&shaky.refuse_writes, 1);
    run();
    T_EQ(returned.n, 1);
    T_EQ(j[0].result, FIRN_EIO);
    T_STR(j[0].diag.text, "the disk is full");
    T_EQ(waiting(), 1);
    c->group.retry_.failing_since_ms = mono_ms() -
                                       c->opts.wait_ms; /* failing for as long as a job waits */
    atomic_store(&shaky.refuse_writes, 1);
    run();
    T_EQ(returned.n, 2);
    T_EQ(j[1].result, FIRN_EIO);
    run();
    teardown();
}

T_TEST(group_commit_the_end_of_a_sequence)
{
    struct job j[4];
    setup();
    create("a", (struct seq_spec){ .max = 5 });
    job_init(&j[0], JOB_TAKE, "a", 3);
    job_init(&j[1], JOB_TAKE, "a", 3); /* two are left */
    job_init(&j[2], JOB_TAKE, "a", 3)->partial = true;
    job_init(&j[3], JOB_TAKE, "a", 1);
    arrive(j, 4);
    for (int i = 0; i < 4 && returned.n < 4; i++)
        run();
    T_EQ(returned.n, 4);
    T_TOOK(&j[0], 1, 3);
    T_EQ(j[1].result, FIRN_EOVERFLOW);
    T_OK(strstr(j[1].diag.text, "fewer numbers left"), "%s", j[1].diag.text);
    T_TOOK(&j[2], 4, 2);
    T_EQ(j[3].result, FIRN_EOVERFLOW);
    T_OK(strstr(j[3].diag.text, "its last number"), "%s", j[3].diag.text);
    teardown();
}

/* More numbers than one write may take, and more sequences than one transaction has. */
T_TEST(group_commit_bounds)
{
    enum { MANY = TICKET_JOBS_MAX + 20 };
    static struct job j[MANY];
    setup();
    create("a", (struct seq_spec){ 0 });
    for (int i = 0; i < 3; i++)
        job_init(&j[i], JOB_TAKE, "a", SEQ_TAKE_MAX / 2);
    arrive(j, 3);
    run();
    T_EQ(returned.n, 3);
    T_EQ(c->stats.commits, 2);
    for (uint64_t i = 0; i < 3; i++)
        T_TOOK(&j[i], 1 + i * (SEQ_TAKE_MAX / 2), SEQ_TAKE_MAX / 2);

    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        create(name, (struct seq_spec){ 0 });
        job_init(&j[i], JOB_TAKE, name, 1);
    }
    returned.n = 0;
    arrive(j, MANY);
    for (int i = 0; i < 4 && returned.n < MANY; i++)
        run(); /* two names may share a place in the table: the second one waits for the next run */
    T_EQ(returned.n, MANY);
    for (int i = 0; i < MANY; i++)
        T_TOOK(&j[i], 1, 1);
    teardown();
}

/* A range sequence has numbers in hand: a fetch that fails takes none of them away. */
T_TEST(group_commit_numbers_in_hand_survive_a_failed_fetch)
{
    struct job j, fetch;
    struct seq_range got;
    struct seq_record record;
    bool ahead;
    setup();
    create("r", (struct seq_spec){ .mode = SEQ_RANGE });
    arrive(job_init(&j, JOB_TAKE, "r", 1), 1);
    run();
    T_TOOK(&j, 1, 1);
    T_EQ(ranges_take(&c->ranges, "r", 1, SEQ_BLOCK_MIN / 2 + 10, false, 0, &got, &record, &ahead),
         SEQ_HAND_TAKEN);
    T_EQ(got.first, 2);
    T_OK(ahead); /* half of the block is used */
    arrive(job_init(&fetch, JOB_FETCH, "r", 0), 1);
    atomic_store(&shaky.refuse_writes, 1);
    run();
    T_EQ(fetch.result, FIRN_EIO);
    T_EQ(ranges_take(&c->ranges, "r", 1, 1, false, 0, &got, &record, &ahead), SEQ_HAND_TAKEN);
    T_EQ(got.first, 2 + SEQ_BLOCK_MIN / 2 + 10);
    T_OK(ahead); /* the next request asks again */
    arrive(job_init(&fetch, JOB_FETCH, "r", 0), 1);
    run();
    T_EQ(fetch.result, 0);
    uint64_t last = got.first;
    for (int i = 0; i < SEQ_BLOCK_MIN; i++) { /* through the rest into the new block */
        T_EQ(ranges_take(&c->ranges, "r", 1, 1, false, 0, &got, &record, &ahead), SEQ_HAND_TAKEN,
             "%d", i);
        T_EQ(got.first, last + 1);
        last = got.first;
    }
    teardown();
}

static struct keyed key_of(uint8_t id, uint64_t args)
{
    struct keyed k = { .ask = { .args = args, .want = 2 } };
    k.ask.key.b[0] = id;
    return k;
}

T_TEST(group_commit_a_key_stands_for_the_same_numbers)
{
    static const char *const names[] = { "gapless", "range" };
    for (int range = 0; range < 2; range++) {
        struct job j[4];
        struct keyed k[4] = { key_of(1, 5), key_of(1, 5), key_of(1, 6), key_of(2, 5) };
        setup();
        create(names[range], (struct seq_spec){ .mode = range ? SEQ_RANGE : SEQ_GAPLESS });
        for (int i = 0; i < 4; i++) {
            job_init(&j[i], JOB_TAKE, names[range], 2)->keyed = &k[i];
            arrive(&j[i], 1);
            run();
            T_EQ(returned.n, (size_t)i + 1);
        }
        T_TOOK(&j[0], 1, 2);
        T_TOOK(&j[1], 1, 2);
        T_OK(!k[0].replayed && k[1].replayed);
        T_EQ(j[2].result, FIRN_EREUSED);
        T_TOOK(&j[3], 3, 2);
        T_EQ(c->stats.keys_kept, 2);
        T_EQ(c->stats.keys_replayed, 1);
        c->lease->clock.state = CLOCK_WAIT; /* a key of 1970 would be forgotten at once */
        arrive(job_init(&j[0], JOB_KEEP, "", 0), 1);
        j[0].keyed = &k[0];
        run();
        T_EQ(j[0].result, FIRN_ECLOCK);
        teardown();
    }
}
