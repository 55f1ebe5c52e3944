/* What readiness learns of tickets that fail, on a coordinator without its thread. */
#include "coordinator_world.h"

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
