/* Sequences and the state of the store, on a coordinator without its thread: what may be created,
 * and what readiness learns. */
#include "coordinator_world.h"

#include "drive/setup.h"

static struct coordinator *c;

static void setup(void)
{
    c = calloc(1, sizeof *c);
    c->lease = calloc(1, sizeof *c->lease);
    T_OK(c && c->lease);
    c->lease->clock.state = CLOCK_OK;
    c->lease->clock.off_ns = INT64_C(1700000000) * 1000000000;
    c->lease->view.gate = LEASE_GATE_OPEN;
    c->store = shaky_open();
    c->opts.wait_ms = 600000;
    T_EQ(ranges_init(&c->ranges), 0);
    tickets_init_table(&c->tickets, c->store, c->ranges.table, NULL, NULL);
    group_commit_init(c);
    pthread_mutex_init(&c->mutex, NULL);
    job_list_init(&c->inbox);
    returned.n = 0;
}

static void teardown(void)
{
    tickets_done(&c->tickets);
    firn_store_close(c->store);
    ranges_done(&c->ranges);
    pthread_mutex_destroy(&c->mutex);
    free(c->lease);
    free(c);
}

T_TEST(ticket_gate_no_sequence_begins_in_a_wiped_store)
{
    struct firn_diag d = { 0, "" };
    struct setup_spec spec = {
        .layout = "x", .slots = 2, .window = 10, .max_drift = 5, .floor = 1
    };
    struct meta_record m;
    setup();
    struct setup e = { .store = c->store, .f = 1, .random = c->tickets.random };
    T_EQ(setup_init(&e, &spec, &d), 0, "%s", d.text);
    T_EQ(setup_read_meta(c->store, &m, NULL, &d), 0);
    c->lease->born_ = true;
    c->lease->node.params.cluster = m.cluster;
    T_EQ(ticket_gate_create(c, &d), 0);
    c->lease->node.params.cluster.b[0] ^= 1; /* another cluster's */
    T_EQ(ticket_gate_create(c, &d), FIRN_ESTORE);
    firn_store_close(shaky.inner);
    T_EQ(firn_store_memory_new(&shaky.inner), 0);
    T_EQ(ticket_gate_create(c, &d), FIRN_ESTORE);
    T_OK(strstr(d.text, "--recover"), "%s", d.text);
    teardown();
}

T_TEST(ticket_gate_tells_readiness_and_tries_by_itself)
{
    struct firn_diag d = { 0, "the disk is full" };
    setup();
    T_EQ(ticket_gate_watch(c, true), UINT64_MAX);
    T_OK(!coordinator_failing(c, &d));
    ticket_gate_failed(c, d.text);
    c->group.retry_.failures = 1;
    c->group.retry_.failing_since_ms = mono_ms() - 5000;
    atomic_store(&shaky.refuse_writes, 1);
    ticket_gate_watch(c, false); /* jobs try for themselves */
    T_EQ(atomic_load(&shaky.writes), 0);
    d.text[0] = '\0';
    T_OK(coordinator_failing(c, &d));
    T_STR(d.text, "the disk is full");
    ticket_gate_watch(c, true);
    T_OK(coordinator_failing(c, &d));
    c->probe_ms = 0;
    ticket_gate_watch(c, true);
    T_OK(!coordinator_failing(c, &d) && c->group.retry_.failures == 0);
    T_EQ(ticket_gate_watch(c, true), UINT64_MAX);
    T_EQ(atomic_load(&shaky.writes), 2);
    teardown();
}
