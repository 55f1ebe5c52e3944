/*
 * The group commit's steps on a handful of registers in this file: what is read and written, and
 * what each answer means. tests/unit/drive/ticket.c has the same on a store.
 */
#include "t.h"

#include <stdio.h>

#include "coord/batch.h"

enum { REGISTERS = 64, LOG_MAX = 64 };

static struct {
    struct {
        char key[RECORD_KEY_BUF];
        size_t key_len, len;
        char value[RECORD_TEXT_MAX];
    } reg[REGISTERS];
    size_t n;
    bool many, instead;  /* what the store can do */
    int fail, fail_keys; /* the answer to the next write; to the next read of a client's key */
    bool fail_applies;   /* the write lands all the same */
    bool stranger;       /* before the next write another process takes a number */
    enum batch_do log[LOG_MAX];
    size_t logged;
    size_t written; /* registers in the last write */
} world;

static struct seq_entry entries[SEQ_TABLE_MAX];
static struct seq_table table;

static size_t find(const char *key, size_t len)
{
    size_t i = 0;
    while (i < world.n && (world.reg[i].key_len != len || memcmp(world.reg[i].key, key, len) != 0))
        i++;
    return i;
}

static void put(size_t i, struct firn_slice key, struct firn_slice value)
{
    T_OK(i < REGISTERS);
    memcpy(world.reg[i].key, key.p, key.len);
    world.reg[i].key_len = key.len;
    memcpy(world.reg[i].value, value.p, value.len);
    world.reg[i].len = value.len;
    world.n += i == world.n;
}

static int cas(const struct firn_cas *c)
{
    size_t i = find(c->key.p, c->key.len);
    bool there = i < world.n;
    if (there != (c->old.p != NULL) ||
        (there &&
         (world.reg[i].len != c->old.len || memcmp(world.reg[i].value, c->old.p, c->old.len) != 0)))
        return FIRN_ECONFLICT;
    put(i, c->key, c->value);
    return 0;
}

static struct nonce fresh(void)
{
    struct nonce v;
    t_random_bytes(v.b, sizeof v.b);
    return v;
}

static void create(const char *name, struct seq_spec spec)
{
    struct seq_record r;
    struct nonce req = fresh();
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    T_EQ(seq_new(&spec, &req, &r, NULL), 0);
    put(world.n, firn_slice(key, seq_key(name, strlen(name), key)),
        firn_slice(text, seq_encode(&r, text)));
}

static void begin(void)
{
    memset(&world, 0, sizeof world);
    memset(entries, 0, sizeof entries);
    seq_table_init(&table, entries, SEQ_TABLE_MAX);
    world.many = world.instead = true;
}

/* The first sequence's record, replaced by another process that takes one number. */
static void take_one(size_t i)
{
    struct seq_record r;
    struct seq_range got;
    struct nonce req = fresh();
    T_EQ(seq_parse(world.reg[i].value, world.reg[i].len, &r, NULL), 0);
    T_EQ(seq_take(&r, 1, &req, &r, &got), 0);
    world.reg[i].len = seq_encode(&r, world.reg[i].value);
}

static void write_batch(struct batch *b)
{
    int result[TICKET_JOBS_MAX], fail = world.fail;
    world.written = b->n + b->extra;
    T_OK(world.many || b->extra == 0);
    if (world.stranger)
        take_one(0);
    world.stranger = false;
    for (size_t i = 0; i < b->n + b->extra; i++)
        result[i] = fail && !world.fail_applies ? fail : cas(&b->cas[i]);
    world.fail = 0;
    for (size_t i = 0; i < b->n; i++)
        if (batch_answered(b, fail ? fail : result[i], NULL) && world.instead) {
            size_t k = find(b->cas[i].key.p, b->cas[i].key.len);
            batch_instead(b, world.reg[k].value, world.reg[k].len, NULL);
        }
}

static void read_key(struct batch *b)
{
    struct idem_record kept;
    char key[RECORD_KEY_BUF];
    size_t i = find(key, idem_key(b->client_key, key));
    int r = world.fail_keys ? world.fail_keys
            : i == world.n  ? FIRN_ENOENT
                            : idem_parse(world.reg[i].value, world.reg[i].len, &kept, NULL);
    world.fail_keys = 0;
    batch_key_done(b, r, &kept, NULL);
}

static void keep_list(struct batch *b)
{
    struct firn_cas create_it[SEQ_KEYS_MAX];
    struct keyed_text text[SEQ_KEYS_MAX];
    keyed_creates(b->record, b->list, b->period, create_it, text);
    for (uint32_t i = 0; i < b->list->n; i++)
        (void)cas(&create_it[i]);
    batch_list_done(b, 0);
}

static int commit(struct ticket_job *job, size_t count)
{
    struct batch b;
    int result = 1;
    batch_init(&b, &table, job, count, world.many, 1700000000);
    for (world.logged = 0;; world.logged++) {
        enum batch_do what = batch_next(&b, &result, NULL);
        T_OK(world.logged < LOG_MAX);
        world.log[world.logged] = what;
        size_t i;
        switch (what) {
        case BATCH_READ:
            i = find(b.key, b.key_len);
            batch_read_done(&b, i < world.n ? 0 : FIRN_ENOENT, world.reg[i].value, world.reg[i].len,
                            NULL);
            break;
        case BATCH_READ_KEY:
            read_key(&b);
            break;
        case BATCH_KEEP_LIST:
            keep_list(&b);
            break;
        case BATCH_DRAW:
            b.fresh = fresh();
            break;
        case BATCH_WRITE:
            write_batch(&b);
            break;
        case BATCH_DONE:
            return result;
        }
    }
}

/* The steps of the last commit as letters: Read, Key, List, Draw, Write, end. */
static const char *steps(void)
{
    static char text[LOG_MAX + 1];
    for (size_t i = 0; i < world.logged; i++)
        text[i] = "RKLDW"[world.log[i]];
    text[world.logged] = '\0';
    return text;
}

static struct ticket_job job_of(const char *name, uint64_t want)
{
    return (struct ticket_job){ .name = name, .name_len = strlen(name), .want = want };
}

T_TEST(batch_reads_once_then_only_writes)
{
    begin();
    create("a", (struct seq_spec){ 0 });
    create("b", (struct seq_spec){ .start = 100, .step = 10 });
    struct ticket_job job[2] = { job_of("a", 3), job_of("b", 2) };
    T_EQ(commit(job, 2), 0);
    T_STR(steps(), "RDRDW");
    T_EQ(world.written, 2);
    T_EQ(job[0].range.first, 1);
    T_EQ(job[0].range.count, 3);
    T_EQ(seq_range_last(&job[1].range), 110);
    T_OK(job[0].more && job[1].more);
    T_EQ(commit(job, 2), 0);
    T_STR(steps(), "DDW");
    T_EQ(job[0].range.first, 4);
    T_EQ(job[1].range.first, 120);
}

T_TEST(batch_of_bad_jobs)
{
    begin();
    create("a", (struct seq_spec){ .max = 3 });
    struct ticket_job job[3] = { job_of("no name", 1), job_of("absent", 1), job_of("a", 0) };
    T_EQ(commit(job, 3), FIRN_EINVAL);
    T_STR(steps(), "R");
    T_EQ(job[0].result, FIRN_EINVAL);
    T_EQ(job[1].result, FIRN_ENOENT);
    T_EQ(job[2].result, FIRN_EINVAL);
    /* One that is granted makes the commit a success; the last numbers are given as far as they
     * go. */
    job[2] = job_of("a", 5);
    T_EQ(commit(job, 3), 0);
    T_EQ(job[2].range.count, 3);
    T_OK(!job[2].more);
    T_EQ(commit(job + 2, 1), FIRN_EOVERFLOW);
    /* Fewer than `least` are not taken. */
    create("c", (struct seq_spec){ .max = 3 });
    job[0] = job_of("c", 5);
    job[0].least = 4;
    T_EQ(commit(job, 1), FIRN_EOVERFLOW);
    T_STR(steps(), "R");
}

T_TEST(batch_after_a_conflict)
{
    begin();
    create("a", (struct seq_spec){ 0 });
    struct ticket_job job = job_of("a", 1);
    T_EQ(commit(&job, 1), 0);
    world.stranger = true;
    T_EQ(commit(&job, 1), 0);
    T_STR(steps(), "DWDW"); /* the store told the current value */
    T_EQ(job.range.first, 3);
    world.stranger = true;
    world.instead = false;
    T_EQ(commit(&job, 1), 0);
    T_STR(steps(), "DWRDW");
    T_EQ(job.range.first, 5);
    /* `once`: the caller has more to ask for by now. */
    world.stranger = true;
    job.once = true;
    T_EQ(commit(&job, 1), FIRN_ECONFLICT);
    T_STR(steps(), "DW");
}

T_TEST(batch_whose_answer_is_lost)
{
    for (int landed = 0; landed < 2; landed++) {
        begin();
        create("a", (struct seq_spec){ 0 });
        struct ticket_job job = job_of("a", 4);
        world.fail = FIRN_EUNKNOWN;
        world.fail_applies = landed;
        T_EQ(commit(&job, 1), 0);
        T_STR(steps(), landed ? "RDWR" : "RDWRDW");
        T_EQ(job.range.first, 1);
        T_EQ(job.range.count, 4);
        T_EQ(commit(&job, 1), 0);
        T_EQ(job.range.first, 5, "landed %d", landed);
    }
}

T_TEST(batch_hands_back_what_is_left)
{
    begin();
    create("a", (struct seq_spec){ 0 });
    struct ticket_job job = job_of("a", 10);
    T_EQ(commit(&job, 1), 0);
    seq_table_return(batch_entry(&table, "a", 1), (struct seq_range){ 8, 1, 3 });
    seq_table_return(batch_entry(&table, "a", 1), (struct seq_range){ 6, 1, 2 }); /* joins it */
    job = job_of("a", 2);
    world.fail = FIRN_EIO; /* nothing was written: they stay in hand */
    T_EQ(commit(&job, 1), FIRN_EIO);
    T_EQ(commit(&job, 1), 0);
    T_EQ(job.range.first, 6);
    /* Another process took higher numbers: they are given up. */
    seq_table_return(batch_entry(&table, "a", 1), (struct seq_range){ 7, 1, 1 });
    world.stranger = true;
    T_EQ(commit(&job, 1), 0);
    T_EQ(job.range.first, 9);
}

static void ask(struct keyed *k, uint64_t want)
{
    *k = (struct keyed){ .ask = { .key = fresh(), .args = 1, .want = want } };
}

T_TEST(batch_keeps_what_is_left_over_an_unknown_outcome)
{
    for (int landed = 0; landed < 2; landed++) {
        begin();
        create("a", (struct seq_spec){ 0 });
        struct ticket_job plain = job_of("a", 10), job = job_of("a", 0);
        T_EQ(commit(&plain, 1), 0);
        seq_table_return(batch_entry(&table, "a", 1), (struct seq_range){ 8, 1, 3 });
        struct keyed k, *list[1] = { &k };
        job.keyed = list;
        job.keyed_n = 1;
        ask(&k, 3);
        world.fail = FIRN_EUNKNOWN;
        world.fail_applies = landed;
        T_EQ(commit(&job, 1), 0);
        T_EQ(k.idem.first, 8, "landed %d", landed);
        T_EQ(k.idem.count, 3, "landed %d", landed);
        T_EQ(commit(&plain, 1), 0);
        T_EQ(plain.range.first, 11, "landed %d", landed);
    }
}

T_TEST(batch_of_keys)
{
    for (int many = 0; many < 2; many++) {
        begin();
        world.many = many;
        create("a", (struct seq_spec){ 0 });
        struct keyed k[3], *list[3] = { &k[0], &k[1], &k[2] };
        struct ticket_job job = job_of("a", 1);
        job.keyed = list;
        job.keyed_n = 2;
        ask(&k[0], 2);
        ask(&k[1], 1);
        T_EQ(commit(&job, 1), 0);
        T_STR(steps(), "RKKDW");
        T_EQ(world.written, 1);
        T_EQ(job.range.first, 1);
        T_EQ(k[0].idem.first, 2);
        T_EQ(k[1].idem.first, 4);
        T_OK(!k[0].replayed && !k[0].kept);
        /* A retry is answered by the list, a new key takes numbers: then the list gets its
         * registers, in the transaction if there are such, before the write elsewhere. */
        ask(&k[2], 1);
        job.want = 0;
        job.keyed_n = 3;
        T_EQ(commit(&job, 1), 0);
        T_STR(steps(), many ? "KDW" : "KLDW");
        T_EQ(world.written, many ? 3 : 1);
        T_OK(k[0].replayed && k[1].replayed && !k[2].replayed);
        T_EQ(k[2].idem.first, 5);
        T_EQ(world.n, 3);
        /* Now by their registers; other arguments are refused. */
        k[1].ask.args = 2;
        T_EQ(commit(&job, 1), 0);
        T_STR(steps(), "KK");
        T_OK(k[0].kept && k[0].idem.first == 2);
        T_EQ(k[1].result, FIRN_EREUSED);
        T_OK(!k[2].kept && k[2].replayed);
    }
}

T_TEST(batch_of_keys_that_cannot_be_read)
{
    begin();
    create("a", (struct seq_spec){ 0 });
    struct keyed k[2], *list[2] = { &k[0], &k[1] };
    struct ticket_job job = job_of("a", 1);
    job.keyed = list;
    job.keyed_n = 2;
    ask(&k[0], 1);
    ask(&k[1], 1);
    world.fail_keys = FIRN_EIO;
    T_EQ(commit(&job, 1), 0); /* the number without a key */
    T_STR(steps(), "RKDW");
    T_EQ(job.range.first, 1);
    T_EQ(k[0].idem.count, 0);
    T_OK(k[0].result != 0 && k[1].result != 0);
}

T_TEST(batch_of_more_keys_than_a_record_lists)
{
    begin();
    create("a", (struct seq_spec){ 0 });
    struct keyed k[SEQ_KEYS_MAX + 4], *list[SEQ_KEYS_MAX + 4];
    struct ticket_job job = job_of("a", 0);
    for (size_t i = 0; i < T_LEN(k); i++) {
        ask(&k[i], 1);
        list[i] = &k[i];
    }
    job.keyed = list;
    job.keyed_n = T_LEN(k);
    for (uint64_t served = 0, calls = 0; served < T_LEN(k); calls++) {
        T_OK(calls < 8);
        T_EQ(commit(&job, 1), 0);
        served = 0;
        for (size_t i = 0; i < T_LEN(k); i++)
            served += k[i].result == 0;
    }
    for (size_t i = 0; i < T_LEN(k); i++)
        for (size_t j = 0; j < i; j++)
            T_OK(k[i].idem.first != k[j].idem.first, "keys %zu and %zu", i, j);
}

T_TEST(batch_table_keeps_numbers_in_flight)
{
    begin();
    char name[16];
    seq_table_return(batch_entry(&table, "kept", 4), (struct seq_range){ 5, 1, 2 });
    for (int i = 0; i < 2 * SEQ_TABLE_MAX; i++) {
        snprintf(name, sizeof name, "s%d", i);
        T_EQ(batch_entry(&table, name, strlen(name))->left.count, 0);
    }
    T_EQ(batch_entry(&table, "kept", 4)->left.count, 2);
}
