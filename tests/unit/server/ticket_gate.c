/* The gate of sequences on a coordinator without its thread: which jobs pass, wait and are refused,
 * and what readiness learns. */
#include "coordinator_world.h"

#include "drive/setup.h"

static struct coordinator *c;

static void setup(enum lease_gate gate, const char *why)
{
    c = calloc(1, sizeof *c);
    c->lease = calloc(1, sizeof *c->lease);
    T_OK(c && c->lease);
    c->lease->clock.state = CLOCK_OK;
    c->lease->clock.off_ns = INT64_C(1700000000) * 1000000000;
    c->lease->view.gate = gate;
    snprintf(c->lease->view.diag.text, sizeof c->lease->view.diag.text, "%s", why);
    c->store = shaky_open();
    c->opts.wait_ms = 600000;
    T_EQ(tickets_init(&c->tickets, c->store, NULL, NULL), 0);
    ranges_init(&c->ranges);
    pthread_mutex_init(&c->mutex, NULL);
    c->tail = &c->first;
    c->again_tail = &c->again;
    c->keep_tail = &c->keep;
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

enum { N = 9 };

/* One job of each kind, in the order of enum job_what. */
static struct job *one_of_each(struct job j[N])
{
    for (int i = 0; i < N; i++)
        job_init(&j[i], (enum job_what)i, "a", 1)->deadline_ms = UINT64_MAX;
    return chain(j, N);
}

T_TEST(ticket_gate_open_lets_all_pass)
{
    struct job j[N], *jobs = one_of_each(j);
    setup(LEASE_GATE_OPEN, "");
    T_OK(ticket_gate(c, &jobs));
    T_OK(jobs == j && j[N - 2].next == &j[N - 1] && returned.n == 0);
    teardown();
}

T_TEST(ticket_gate_shut_refuses_with_the_cause)
{
    struct job j[N], *jobs = one_of_each(j);
    setup(LEASE_GATE_SHUT, "make it with `firn admin init`");
    T_OK(ticket_gate(c, &jobs));
    T_EQ(returned.n, 6);
    for (int i = JOB_TAKE; i <= JOB_DESCRIBE; i++) {
        T_EQ(j[i].result, FIRN_ESTORE);
        T_STR(j[i].diag.text, "halted: make it with `firn admin init`");
    }
    T_OK(jobs == &j[JOB_LIST] && jobs->next == &j[JOB_NODES]); /* to look is allowed */
    T_OK(j[JOB_NODES].next == &j[JOB_LEASE] && !j[JOB_LEASE].next);
    T_OK(!c->first);
    teardown();
}

T_TEST(ticket_gate_waits_until_the_deadline)
{
    struct job j[N], *jobs = one_of_each(j), late;
    setup(LEASE_GATE_WAIT, "");
    job_init(&late, JOB_TAKE, "b", 1);
    coordinator_submit(c, &late, &late); /* one that came meanwhile stays behind them */
    j[JOB_KEEP].deadline_ms = 0;
    T_OK(!ticket_gate(c, &jobs));
    T_EQ(returned.n, 1);
    T_EQ(j[JOB_KEEP].result, FIRN_EAGAIN);
    T_OK(c->first == &j[JOB_TAKE] && j[JOB_TAKE].next == &j[JOB_FETCH]);
    T_OK(j[JOB_DESCRIBE].next == &late && !late.next && c->tail == &late.next);
    T_OK(jobs == &j[JOB_LIST]);
    teardown();
}

T_TEST(ticket_gate_no_sequence_begins_in_a_wiped_store)
{
    struct firn_diag d = { 0, "" };
    struct setup_spec spec = {
        .layout = "x", .slots = 2, .window = 10, .max_drift = 5, .floor = 1
    };
    struct meta_record m;
    setup(LEASE_GATE_OPEN, "");
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
    setup(LEASE_GATE_OPEN, "");
    T_EQ(ticket_gate_watch(c, true), UINT64_MAX);
    T_OK(!coordinator_failing(c, &d));
    ticket_gate_failed(c, &d);
    c->failures = 1;
    c->failing_since_ms = mono_ms() - 5000;
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
    T_OK(!coordinator_failing(c, &d) && c->failures == 0);
    T_EQ(ticket_gate_watch(c, true), UINT64_MAX);
    T_EQ(atomic_load(&shaky.writes), 2);
    teardown();
}
