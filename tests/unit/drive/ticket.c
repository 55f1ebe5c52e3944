#include "t.h"

#include "drive/ticket.h"

#include <stdio.h>

/* A store around another that loses the answer, or the request, when told to. */
static struct flaky {
    struct firn_store base;
    struct firn_store *inner;
    int lose_answers, lose_requests, fail_reads, refuse;
    int cas_calls, read_calls;
} flaky;

static int flaky_read(struct firn_store *s, struct firn_slice key, bool fresh,
                      struct firn_record *out, struct firn_diag *d)
{
    (void)s;
    flaky.read_calls++;
    if (flaky.fail_reads > 0 && flaky.fail_reads--)
        return FIRN_EIO;
    return firn_store_read(flaky.inner, key, fresh, out, d);
}

static int flaky_cas_many(struct firn_store *s, const struct firn_cas *want, size_t count,
                          int *result, struct firn_diag *d)
{
    (void)s;
    flaky.cas_calls++;
    if (flaky.refuse > 0 && flaky.refuse--)
        return FIRN_EIO;
    if (flaky.lose_requests > 0 && flaky.lose_requests--)
        return FIRN_EUNKNOWN;
    int r = firn_store_cas_many(flaky.inner, want, count, result, d);
    if (flaky.lose_answers > 0 && flaky.lose_answers--)
        return FIRN_EUNKNOWN;
    return r;
}

static int flaky_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    int result, r = flaky_cas_many(s, want, 1, &result, d);
    return r ? r : result;
}

static int flaky_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                      void *user, struct firn_diag *d)
{
    (void)s;
    return firn_store_scan(flaky.inner, prefix, each, user, d);
}

/* Counts the registers that a scan shows. */
static struct counting {
    firn_record_fn *each;
    void *user;
    size_t shown, scans;
} counting;

static int show_counted(void *user, struct firn_slice key, struct firn_slice value)
{
    (void)user;
    counting.shown++;
    return counting.each(counting.user, key, value);
}

static int counting_scan(struct firn_store *s, struct firn_slice prefix, struct firn_slice after,
                         firn_record_fn *each, void *user, struct firn_diag *d)
{
    (void)s;
    counting.each = each;
    counting.user = user;
    counting.scans++;
    return firn_store_scan_after(flaky.inner, prefix, after, show_counted, NULL, d);
}

static void flaky_close(struct firn_store *s)
{
    (void)s;
    firn_store_close(flaky.inner);
}

/* What the register held is what it holds: no other client writes between two calls. */
static int flaky_instead(struct firn_store *s, size_t i, struct firn_record *out)
{
    (void)s;
    T_EQ(i, 0);
    return firn_store_read(flaky.inner, firn_slice("seq/a", 5), true, out, NULL);
}

static const struct firn_store_ops flaky_ops = {
    .size = sizeof flaky_ops,
    .scheme = "flaky",
    .read = flaky_read,
    .cas = flaky_cas,
    .cas_many = flaky_cas_many,
    .scan = flaky_scan,
    .close = flaky_close,
};

static const struct firn_store_ops telling_ops = {
    .size = sizeof telling_ops,
    .scheme = "telling",
    .read = flaky_read,
    .cas_many = flaky_cas_many,
    .scan = flaky_scan,
    .close = flaky_close,
    .instead = flaky_instead,
};

static const struct firn_store_ops counting_ops = {
    .size = sizeof counting_ops,
    .scheme = "counting",
    .read = flaky_read,
    .cas = flaky_cas,
    .cas_many = flaky_cas_many,
    .scan_after = counting_scan,
    .close = flaky_close,
};

static struct tickets tk;

static void setup(void)
{
    memset(&flaky, 0, sizeof flaky);
    flaky.base.ops = &flaky_ops;
    T_EQ(firn_store_memory_new(&flaky.inner), 0);
    T_EQ(tickets_init(&tk, &flaky.base, NULL, NULL), 0);
}

static void teardown(void)
{
    tickets_done(&tk);
    firn_store_close(&flaky.base);
}

static struct ticket_job job_of(const char *name, uint64_t want)
{
    return (struct ticket_job){ .name = name, .name_len = strlen(name), .want = want };
}

static void create(const char *name, struct seq_spec spec)
{
    T_EQ(ticket_create(&tk, name, strlen(name), &spec, NULL, NULL), 0);
}

T_TEST(ticket_one_transaction_for_all)
{
    setup();
    create("a", (struct seq_spec){ .start = 100001 });
    create("b", (struct seq_spec){ .step = 2, .offset = 1 });
    struct ticket_job job[3] = { job_of("a", 50), job_of("b", 3), job_of("none", 1) };
    flaky.cas_calls = 0;
    T_EQ(ticket_commit(&tk, job, 3, NULL), 0);
    T_EQ(flaky.cas_calls, 1);
    T_EQ(job[0].range.first, 100001);
    T_EQ(job[0].range.count, 50);
    T_EQ(job[1].range.first, 1);
    T_EQ(seq_range_last(&job[1].range), 5);
    T_EQ(job[2].result, FIRN_ENOENT);
    int reads = flaky.read_calls;
    T_EQ(ticket_commit(&tk, job, 2, NULL), 0);
    T_EQ(job[0].range.first, 100051);
    T_EQ(job[1].range.first, 7);
    T_EQ(flaky.read_calls, reads); /* the usual commit reads nothing */
    teardown();
}

T_TEST(ticket_lost_answer_leaves_no_hole)
{
    for (int lost_request = 0; lost_request < 2; lost_request++) {
        setup();
        create("a", (struct seq_spec){ 0 });
        *(lost_request ? &flaky.lose_requests : &flaky.lose_answers) = 1;
        struct ticket_job job = job_of("a", 10);
        T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
        T_EQ(job.range.first, 1);
        T_EQ(job.range.count, 10);
        job = job_of("a", 1);
        T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
        T_EQ(job.range.first, 11);
        teardown();
    }
}

/* The store goes away after the write; those who waited have given up when it comes back. Their
 * numbers go to the next in line, and what that one does not want back into the record. */
T_TEST(ticket_numbers_of_the_gone_are_kept)
{
    setup();
    create("a", (struct seq_spec){ 0 });
    struct ticket_job job = job_of("a", 1);
    T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
    flaky.lose_answers = 1;
    flaky.fail_reads = 1;
    job = job_of("a", 10);
    T_EQ(ticket_commit(&tk, &job, 1, NULL), FIRN_EIO);
    job = job_of("a", 3);
    T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
    T_EQ(job.range.first, 2);
    T_EQ(job.range.count, 3);
    for (int i = 0; i < 3; i++) { /* a full disk costs time, not numbers */
        flaky.refuse = 1;
        job = job_of("a", 20);
        T_EQ(ticket_commit(&tk, &job, 1, NULL), FIRN_EIO);
    }
    job = job_of("a", 20);
    T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
    T_EQ(job.range.first, 5);
    T_EQ(job.range.count, 20);
    seq_table_return(batch_entry(tk.table, "a", 1), (struct seq_range){ 20, 1, 5 });
    job = job_of("a", 2);
    T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
    T_EQ(job.range.first, 20);
    teardown();
}

/* A write lands, its answer is lost, and before its sender can look, another server writes. */
T_TEST(ticket_numbers_that_others_overtook)
{
    struct tickets other;
    for (uint64_t waited = 0; waited <= 10; waited += 5) {
        setup();
        create("a", (struct seq_spec){ 0 });
        T_EQ(tickets_init(&other, &flaky.base, NULL, NULL), 0);
        struct ticket_job job = job_of("a", 1);
        T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
        flaky.lose_answers = 1;
        flaky.fail_reads = 1;
        job = job_of("a", 10);
        T_EQ(ticket_commit(&tk, &job, 1, NULL), FIRN_EIO);
        for (uint64_t i = 0; i < 20; i++) {
            job = job_of("a", 1);
            T_EQ(ticket_commit(&other, &job, 1, NULL), 0);
            T_EQ(job.range.first, 12 + i);
        }
        /* Who has waited gets them; who came later must not, others have higher ones by now. */
        job = job_of("a", 10);
        job.waited = waited;
        T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
        T_EQ(job.range.first, waited ? 2 : 32);
        T_EQ(job.range.count, waited ? waited : 10);
        T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
        T_EQ(job.range.first, waited ? 32 : 42);
        /* Nor does a rest that was handed back, once somebody has taken more. */
        seq_table_return(batch_entry(tk.table, "a", 1),
                         (struct seq_range){ waited ? 37 : 47, 1, 5 });
        job = job_of("a", 1);
        T_EQ(ticket_commit(&other, &job, 1, NULL), 0);
        T_EQ(job.range.first, waited ? 42 : 52);
        T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
        T_EQ(job.range.first, waited ? 43 : 53);
        tickets_done(&other);
        teardown();
    }
}

/* Where another server was faster a job that goes `once` comes back; one of its store's kind that
 * tells what is there instead reads nothing. */
T_TEST(ticket_others_were_faster)
{
    for (int once = 0; once < 2; once++)
        for (int tells = 0; tells < 2; tells++) {
            struct tickets other;
            setup();
            flaky.base.ops = tells ? &telling_ops : &flaky_ops;
            create("a", (struct seq_spec){ 0 });
            T_EQ(tickets_init(&other, &flaky.base, NULL, NULL), 0);
            struct ticket_job job = job_of("a", 1);
            T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
            T_EQ(ticket_commit(&other, &job, 1, NULL), 0);
            int reads = flaky.read_calls;
            job = job_of("a", 5);
            job.once = once;
            T_EQ(ticket_commit(&tk, &job, 1, NULL), once ? FIRN_ECONFLICT : 0);
            if (once) {
                T_EQ(job.range.count, 0);
                job.want = 8; /* more wait by now */
                T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
            }
            T_EQ(job.range.first, 3);
            T_EQ(job.range.count, once ? 8 : 5);
            T_EQ(flaky.read_calls - reads, tells ? 0 : 1);
            tickets_done(&other);
            teardown();
        }
}

T_TEST(ticket_two_servers)
{
    setup();
    create("a", (struct seq_spec){ 0 });
    struct tickets other;
    T_EQ(tickets_init(&other, &flaky.base, NULL, NULL), 0);
    uint64_t next = 1;
    for (int i = 0; i < 200; i++) {
        struct ticket_job job = job_of("a", 1 + t_random_below(9));
        T_EQ(ticket_commit(t_random_below(2) ? &tk : &other, &job, 1, NULL), 0);
        T_EQ(job.range.first, next); /* dense, for every client */
        next += job.range.count;
    }
    tickets_done(&other);
    teardown();
}

static int count_one(void *user, const char *name, size_t len, const struct seq_record *r)
{
    (void)name, (void)r;
    *(size_t *)user += len;
    return 0;
}

T_TEST(ticket_create_describe_list)
{
    setup();
    struct seq_spec spec = { .mode = SEQ_RANGE, .start = 7, .note = "x" };
    struct seq_record r;
    struct firn_diag d = { 0 };
    T_EQ(ticket_create(&tk, "one", 3, &spec, &r, &d), 0);
    T_EQ(r.next, 7);
    spec.start = 9;
    T_EQ(ticket_create(&tk, "one", 3, &spec, &r, &d), FIRN_ECONFLICT);
    T_EQ(r.start, 7);
    T_EQ(ticket_create(&tk, "a/b", 3, &spec, &r, &d), FIRN_EINVAL);
    flaky.lose_answers = 1;
    T_EQ(ticket_create(&tk, "two", 3, &spec, &r, &d), 0); /* ours: the nonce says so */
    T_EQ(ticket_describe(&tk, "two", 3, &r, &d), 0);
    T_EQ(r.next, 9);
    T_EQ(ticket_describe(&tk, "three", 5, &r, &d), FIRN_ENOENT);
    size_t letters = 0;
    T_EQ(ticket_list(&tk, count_one, &letters, &d), 0);
    T_EQ(letters, 6);
    /* A register that another program left, with a name that no sequence can have, is named. */
    char key[] = "seq/0123456789012345678901234567890123456789012345678901234567890123456789";
    struct firn_record rec;
    T_EQ(firn_store_read(flaky.inner, firn_slice("seq/one", 7), true, &rec, &d), 0);
    struct firn_cas cas = { firn_slice(key, sizeof key - 1), { NULL, 0 }, { rec.value, rec.len } };
    T_EQ(firn_store_cas(flaky.inner, &cas, &d), 0);
    T_EQ(ticket_list(&tk, count_one, &letters, &d), FIRN_EFORMAT);
    T_OK(strstr(d.text, "seq/0123") != NULL, "%s", d.text);
    teardown();
}

/* --- pages --- */

struct seen {
    char last[RECORD_NAME_MAX + 1];
    size_t n;
};

static int see_one(void *user, const char *name, size_t len, const struct seq_record *r)
{
    struct seen *s = user;
    char text[RECORD_NAME_MAX + 1] = "";
    memcpy(text, name, len);
    T_OK(strcmp(text, s->last) > 0 && !strchr(text, RECORD_INNER) && r->next == 1, "%s after %s",
         text, s->last);
    memcpy(s->last, text, sizeof text);
    s->n++;
    return 0;
}

static size_t walk_pages(size_t max, size_t *out_pages)
{
    struct seen s = { "", 0 };
    char at[TICKET_CURSOR_MAX + 1] = "";
    bool more = true;
    for (*out_pages = 0; more; ++*out_pages) {
        size_t before = s.n;
        counting.shown = counting.scans = 0;
        T_EQ(ticket_page(&tk, at, max, see_one, &s, &more, NULL), 0);
        T_OK(s.n - before <= max);
        /* What a page costs: what it shows, one register more, and one for each jump. */
        T_OK(counting.shown <= s.n - before + 1 + counting.scans &&
                 counting.scans <= TICKET_PAGE_JUMPS,
             "%zu registers and %zu scans for %zu", counting.shown, counting.scans, s.n - before);
    }
    return s.n;
}

T_TEST(ticket_pages_cost_what_they_show)
{
    enum { NAMES = 52500, DATED = 70, PERIODS = 40 };
    setup();
    flaky.base.ops = &counting_ops;
    char name[RECORD_NAME_MAX + 1];
    struct seq_spec spec = { .mode = SEQ_RANGE };
    size_t pages;
    for (int i = 0; i < NAMES - DATED; i++) {
        snprintf(name, sizeof name, "name-%d", i);
        create(name, spec);
    }
    for (int i = 0; i < DATED; i++) {
        snprintf(name, sizeof name, "dated-%02d", i);
        create(name, spec);
        for (int k = 0; k < PERIODS; k++) {
            snprintf(name, sizeof name, "dated-%02d%c%d", i, RECORD_INNER, 20260101 + k);
            create(name, spec);
        }
    }
    T_EQ(walk_pages(100, &pages), NAMES);
    T_OK(pages <= NAMES / 100 + 3, "%zu", pages);
    T_EQ(walk_pages(1000, &pages), NAMES);
    T_EQ(walk_pages(7, &pages), NAMES);
    struct seen s = { "", 0 };
    char at[TICKET_CURSOR_MAX + 1] = "zzz";
    bool more = true;
    T_EQ(ticket_page(&tk, at, 5, see_one, &s, &more, NULL), 0);
    T_OK(s.n == 0 && !more);
    static const struct {
        const char *prefix;
        uint64_t max, n;
    } counts[] = { { "dated-", 1000, DATED }, { "dated-", 50, 50 }, { "dated-0", 1000, 10 },
                   { "name-5242", 1000, 11 }, { "zzz", 1000, 0 },   { "", 3000, 3000 } };
    for (size_t i = 0; i < T_LEN(counts); i++) {
        uint64_t n;
        T_EQ(ticket_count(&tk, counts[i].prefix, strlen(counts[i].prefix), counts[i].max, &n, NULL),
             0);
        T_EQ(n, counts[i].n, "%s", counts[i].prefix);
    }
    teardown();
}

/* Deleted: this process, and another that knows the record, find no number; created again, it goes
 * on above all that were given, whatever answers get lost. */
T_TEST(ticket_deleted)
{
    struct seq_spec spec = { .mode = SEQ_GAPLESS };
    struct seq_record r;
    struct firn_diag d = { 0 };
    struct tickets other;
    for (int lost = 0; lost < 4; lost++) {
        setup();
        T_EQ(tickets_init(&other, flaky.inner, NULL, NULL), 0);
        create("a", spec);
        struct ticket_job j = job_of("a", 3), k = job_of("a", 2);
        T_EQ(ticket_commit(&tk, &j, 1, &d), 0);
        T_EQ(ticket_commit(&other, &k, 1, &d), 0);
        T_EQ(k.range.first, 4);
        flaky.lose_answers = lost & 1;
        flaky.lose_requests = lost >> 1;
        T_EQ(ticket_delete(&tk, "a", 1, &r, &d), 0);
        T_OK(seq_deleted(&r) && r.next == 6);
        T_EQ(ticket_delete(&tk, "a", 1, &r, &d), FIRN_ENOENT);
        T_EQ(r.next, 6);
        T_EQ(ticket_delete(&tk, "b", 1, &r, &d), FIRN_ENOENT);
        T_EQ(r.step, 0);
        j = job_of("a", 1);
        k = job_of("a", 1);
        T_EQ(ticket_commit(&tk, &j, 1, &d), FIRN_ENOENT);
        T_EQ(ticket_commit(&other, &k, 1, &d), FIRN_ENOENT);
        spec.start = 5;
        T_EQ(ticket_create(&tk, "a", 1, &spec, &r, &d), FIRN_ECONFLICT);
        T_OK(seq_deleted(&r));
        spec.start = 6;
        flaky.lose_answers = lost & 1 ? 2 : 0;
        T_EQ(ticket_create(&tk, "a", 1, &spec, &r, &d), 0);
        T_OK(!seq_deleted(&r));
        T_EQ(ticket_create(&other, "a", 1, &spec, &r, &d), FIRN_ECONFLICT); /* it exists */
        T_OK(!seq_deleted(&r));
        k = job_of("a", 1); /* both notice that it is there again */
        T_EQ(ticket_commit(&other, &k, 1, &d), 0);
        T_EQ(k.range.first, 6);
        j = job_of("a", 1);
        T_EQ(ticket_commit(&tk, &j, 1, &d), 0);
        T_EQ(j.range.first, 7);
        spec.start = 0;
        tickets_done(&other);
        teardown();
    }
}

T_TEST(ticket_exhausted)
{
    setup();
    create("a", (struct seq_spec){ .max = 3 });
    struct ticket_job job = job_of("a", 10);
    T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
    T_EQ(job.range.count, 3);
    T_EQ(ticket_commit(&tk, &job, 1, NULL), FIRN_EOVERFLOW);
    teardown();
}

/* More sequences than are kept open. */
T_TEST(ticket_many_sequences)
{
    setup();
    char name[16];
    for (int round = 1; round <= 3; round++)
        for (int i = 0; i < SEQ_TABLE_MAX + 40; i++) {
            snprintf(name, sizeof name, "s%d", i);
            if (round == 1)
                create(name, (struct seq_spec){ 0 });
            struct ticket_job job = job_of(name, 1);
            T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
            T_EQ(job.range.first, round);
        }
    teardown();
}

/* A clean end gives back what no request got, so that the next process goes on there. */
T_TEST(ticket_give_back_at_a_clean_end)
{
    struct ticket_job job = { .name = "r", .name_len = 1, .want = 100 };
    struct seq_spec spec = { .mode = SEQ_RANGE };
    struct seq_record r;
    struct seq_range got;
    bool fetch;
    setup();
    T_EQ(ticket_create(&tk, "r", 1, &spec, &r, NULL), 0);
    struct seq_entry *e = batch_entry(tk.table, "r", 1);
    seq_table_describe(e, &r);
    for (int rival = 0; rival < 2; rival++) {
        T_EQ(ticket_commit(&tk, &job, 1, NULL), 0);
        seq_table_put(e, &job.range, true, 0);
        T_EQ(seq_table_take(tk.table, "r", 1, 1, false, 0, &got, NULL, &fetch), SEQ_HAND_TAKEN);
        T_EQ(got.first, (uint64_t)rival + 1); /* not a block further */
        if (rival) {
            struct tickets other;
            struct ticket_job one = { .name = "r", .name_len = 1, .want = 1 };
            T_EQ(tickets_init(&other, &flaky.base, NULL, NULL), 0);
            T_EQ(ticket_commit(&other, &one, 1, NULL), 0);
            T_EQ(one.range.first, 102);
            tickets_done(&other);
        }
        T_EQ(ticket_give_back(&tk, UINT64_MAX), rival ? 0 : 99);
        T_EQ(ticket_describe(&tk, "r", 1, &r, NULL), 0);
        T_EQ(r.next, rival ? 103 : 2); /* taken beyond: nothing goes back */
        T_EQ(seq_table_take(tk.table, "r", 1, 1, false, 0, &got, NULL, &fetch), SEQ_HAND_SHORT);
        T_EQ(ticket_give_back(&tk, UINT64_MAX), 0);
    }
    teardown();
}
