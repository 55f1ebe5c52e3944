/* Turns of the thread that owns a store, on a store in memory and a clock that the test sets. */
#include "t.h"

#include "drive/keyed.h"
#include "drive/serve.h"
#include "drive/setup.h"

#include <stdlib.h>

enum { NOW_S = 1794916800, RETENTION_S = 86400 };

static struct lease lease;
static struct tickets tickets;
static struct group_commit group;
static struct serve serve;
static struct firn_store *store;
static uint64_t now_ms;
static int published;

static void read_clock(void *user, struct clock_reading *out)
{
    (void)user;
    int64_t mono = (int64_t)now_ms * 1000000;
    *out = (struct clock_reading){ .real = NOW_S * INT64_C(1000000000) + mono,
                                   .mono = mono,
                                   .boot = mono };
}

static void random_bytes(void *user, void *out, size_t len)
{
    (void)user;
    t_random_bytes(out, len);
}

static void now(void *user, struct group_now *out)
{
    (void)user;
    serve_now(&lease, (int64_t)now_ms * 1000000, out);
    out->s = NOW_S;
    out->clock = true;
}

static void done(void *user, struct job *first)
{
    (void)user;
    T_OK(!first->next);
}

static void publish(void *user)
{
    (void)user;
    published++;
}

static void setup(const char *layout)
{
    struct lease_world w = { .read_clock = read_clock, .random = random_bytes };
    struct lease_params p = { .layout = layout, .epoch_ms = 1609459200000, .slots = 4 };
    struct group_rules rules = { .retention_s = RETENTION_S };
    T_EQ(firn_store_memory_new(&store), 0);
    T_EQ(lease_open(&lease, store, &p, &w, NULL), 0);
    T_EQ(tickets_init(&tickets, store, random_bytes, NULL), 0);
    group_init(&group, tickets.table, &rules);
    serve = (struct serve){ .lease = &lease,
                            .tickets = &tickets,
                            .group = &group,
                            .publish = publish,
                            .retention_s = RETENTION_S };
    serve.world = (struct group_world){ .now = now, .done = done };
    now_ms = 1000;
    published = 0;
}

static void teardown(void)
{
    tickets_done(&tickets);
    firn_store_close(store);
}

T_TEST(serve_steps_the_lease_when_it_is_due)
{
    setup("x");
    T_OK(!serve_turn(&serve, NULL));
    T_EQ(published, 1);
    T_EQ(lease.view.gate, LEASE_GATE_OPEN);
    T_OK(serve.due_ms > now_ms);
    T_OK(!serve_turn(&serve, NULL));
    T_EQ(published, 1);
    now_ms = serve.step_ms_;
    T_OK(!serve_turn(&serve, NULL));
    T_EQ(published, 2);
    teardown();
}

T_TEST(serve_gives_numbers_and_gives_the_rest_back)
{
    struct seq_spec spec = { .mode = SEQ_RANGE };
    struct job j = { .what = JOB_TAKE, .name = "a", .name_len = 1, .want = 3, .deadline_ms = 9999 };
    struct seq_record r;
    setup("x");
    T_OK(!serve_turn(&serve, NULL));
    T_EQ(ticket_create(&tickets, "a", 1, &spec, NULL, NULL), 0);
    T_OK(!serve_turn(&serve, &j));
    T_EQ(j.result, 0);
    T_EQ(j.range.first, 1);
    T_EQ(serve.retry_ms, 0);
    T_OK(serve_end(&serve, UINT64_MAX) > 0);
    T_EQ(ticket_describe(&tickets, "a", 1, &r, NULL), 0);
    T_EQ(r.next, 4);
    teardown();
}

/* The store is made with another layout: the lease halts, and numbers in hand are no longer given,
 * nor given back. */
T_TEST(serve_drops_numbers_of_a_store_that_is_another)
{
    struct setup_spec spec = {
        .layout = "y", .slots = 4, .window = 10, .max_drift = 5, .floor = 1
    };
    struct seq_record r = { .mode = SEQ_RANGE, .start = 1, .step = 1, .max = 99, .next = 11 };
    struct seq_range block = { 1, 1, 10 }, got;
    bool fetch;
    setup("x");
    struct setup e = { .store = store, .f = 1, .random = random_bytes };
    T_EQ(setup_init(&e, &spec, NULL), 0);
    struct seq_entry *s = seq_table_open(tickets.table, "a", 1);
    seq_table_describe(s, &r);
    seq_table_put(s, &block, false, now_ms);
    struct job j = { .what = JOB_TAKE, .name = "a", .name_len = 1, .want = 1, .deadline_ms = 9999 };
    T_OK(serve_turn(&serve, &j) == &j, "it waits until the store was looked at");
    T_EQ(serve.retry_ms, now_ms + RETRY_PAUSE_MS);
    T_EQ(lease.view.gate, LEASE_GATE_SHUT);
    T_EQ(seq_table_take(tickets.table, "a", 1, 1, false, now_ms, &got, NULL, &fetch),
         SEQ_HAND_SHORT);
    T_EQ(serve_end(&serve, UINT64_MAX), 0);
    T_OK(!serve_turn(&serve, &j));
    T_EQ(j.result, FIRN_ESTORE);
    teardown();
}

T_TEST(serve_no_sequence_begins_in_a_wiped_store)
{
    struct firn_diag d = { 0, "" };
    setup("x");
    T_EQ(serve_may_create(&serve, &d), 0); /* the store was not looked at: the gate is not open */
    T_OK(!serve_turn(&serve, NULL));
    T_EQ(serve_may_create(&serve, &d), 0);
    lease.node.params.cluster.b[0] ^= 1; /* another cluster's */
    T_EQ(serve_may_create(&serve, &d), FIRN_ESTORE);
    lease.node.params.cluster.b[0] ^= 1;
    firn_store_close(store);
    T_EQ(firn_store_memory_new(&store), 0);
    tickets.store = store;
    T_EQ(serve_may_create(&serve, &d), FIRN_ESTORE);
    T_OK(strstr(d.text, "--recover"), "%s", d.text);
    teardown();
}

static void keep(uint8_t name, uint64_t at)
{
    struct keyed k = { .idem = { .count = 1, .first = 1, .step = 1, .at = at } }, *p = &k;
    k.ask.key.b[0] = name;
    keyed_keep(store, &p, 1, NULL);
    T_EQ(k.result, 0);
}

T_TEST(serve_removes_keys_after_their_retention)
{
    struct nonce old = { { 7 } }, young = { { 8 } };
    struct idem_record kept;
    setup("x");
    keep(7, NOW_S - RETENTION_S - 1);
    keep(8, NOW_S - RETENTION_S);
    for (int i = 0; i < KEYED_PARTS; i++) {
        T_OK(!serve_turn(&serve, NULL));
        now_ms = serve.sweep_ms_;
    }
    T_EQ(serve.keys_removed, 1);
    T_EQ(keyed_read(store, &old, &kept, NULL), FIRN_ENOENT);
    T_EQ(keyed_read(store, &young, &kept, NULL), 0);
    teardown();
}
