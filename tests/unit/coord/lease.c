/* A lease's parameters and decisions, and the view that it publishes. */
#include "t.h"

#include "coord/lease.h"

static struct lease_params params(bool shared)
{
    struct lease_params p = { .epoch_ms = 1000 };
    T_OK(lease_params_complete(&p, shared));
    return p;
}

T_TEST(lease_params_defaults_and_limits)
{
    struct lease_params p = params(false), q = params(true);
    T_EQ(p.window_ms, 3000);
    T_EQ(p.slots, SLOTS_MAX);
    T_EQ(q.window_ms, 60000);
    T_EQ(q.slots, SLOTS_MAX);
    T_STR(p.name, "");
    static const struct lease_params bad[] = {
        { .name = "a b" },
        { .ts_bits = 63 },
        { .tick_ms = 60001 },
        { .window_ms = 86400001 },
        { .window_ms = 1000, .renew_every_ms = 1000 },
        { .epoch_ms = INT64_MAX / 4000000 },
        { .name = "12345678901234567890123456789012345678901234567890123456789012345" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        p = bad[i];
        T_OK(!lease_params_complete(&p, true), "row %zu", i);
    }
}

T_TEST(lease_ticks_and_unix_time)
{
    struct lease_params p = { .epoch_ms = 1000, .tick_ms = 10 };
    T_EQ(lease_ticks(&p, 0), 0);
    T_EQ(lease_ticks(&p, 1), 1);
    T_EQ(lease_ticks(&p, 10), 1);
    T_EQ(lease_ticks(&p, 11), 2);
    T_EQ(lease_tick_ns(&p, 0), 0);
    T_EQ(lease_tick_ns(&p, 3), 1030000000);
    T_EQ(lease_tick_at(&p, 1030000000), 3);
    T_EQ(lease_tick_at(&p, 1029999999), 2);
    T_EQ(lease_tick_at(&p, 999999999), 0);
    T_OK(lease_tick_ns(&p, UINT64_MAX) > 0); /* saturates */
}

T_TEST(lease_node_parameters)
{
    struct lease_params p = params(true);
    struct meta_record m = { .slot_lo = 3, .slot_hi = 7, .window = 900, .skew_max = 5000 };
    struct slot_params s;
    p.name = "n1";
    lease_slot_params(&p, &m, true, false, &s);
    T_EQ(s.slot_lo, 3);
    T_EQ(s.slot_hi, 7);
    T_EQ(s.renew_every_ms, 300);
    T_EQ(s.quarantine, 5300); /* skew_max and a renewal */
    T_OK(!s.give_back && !s.use_lock);
    T_STR(s.name, "n1");
    p.renew_every_ms = 2000; /* longer than this store's window: a third of that */
    m.skew_max = 0;
    lease_slot_params(&p, &m, true, false, &s);
    T_EQ(s.renew_every_ms, 300);
    T_EQ(s.quarantine, 900);
    lease_slot_params(&p, &m, false, true, &s);
    T_EQ(s.quarantine, 0);
    T_OK(s.give_back && s.use_lock);
}

/* A note counts as far as a clock that runs may have stamped; beyond that it was set back. */
T_TEST(lease_noted_near_the_clock)
{
    struct lease_params p = { .tick_ms = 1 };
    struct slot_params s = { .window = 3000, .max_drift = 5000 };
    static const uint64_t f = 1000000;
    static const struct {
        uint64_t noted, counts;
    } row[] = { { 0, 0 },        { 1, 1 },         { f, f }, { f + 8000, f + 8000 },
                { f + 8001, 0 }, { UINT64_MAX, 0 } };
    for (size_t i = 0; i < T_LEN(row); i++) {
        p.noted = row[i].noted;
        T_EQ(lease_noted(&p, &s, f), row[i].counts, "row %zu", i);
    }
}

T_TEST(lease_pinned_to_a_slot)
{
    struct lease_params p = params(true);
    struct meta_record m = { .slot_lo = 3, .slot_hi = 7, .window = 900, .skew_max = 5000 };
    struct slot_params s;
    struct firn_diag d = { 0 };
    T_EQ(lease_pin_check(&p, &m, &d), 0);
    p.pinned = true;
    for (p.pin = 0; p.pin < 10; p.pin++) {
        bool has = p.pin >= 3 && p.pin < 7;
        T_EQ(lease_pin_check(&p, &m, &d), has ? 0 : FIRN_ERANGE, "slot %u", p.pin);
        if (!has)
            T_OK(strstr(d.text, "slots 3 to 6"), "%s", d.text);
        lease_slot_params(&p, &m, true, false, &s);
        T_OK(s.pinned && s.slot_lo == p.pin && s.slot_hi == p.pin + 1);
    }
}

T_TEST(lease_clock_reasons)
{
    struct lease_params p = params(true);
    struct firn_diag d;
    struct clock_reading r = { .real = 999999999, .store = 5 };
    T_EQ(lease_clock_wrong(&p, &r, 0, &d), FIRN_ECLOCK);
    T_OK(strstr(d.text, "before the layout's epoch"));
    r.real = INT64_C(90000) * 1000000000;
    T_EQ(lease_clock_wrong(&p, &r, 0, &d), FIRN_ECLOCK);
    T_OK(strstr(d.text, "the store's says"));
    r.store = 0;
    T_EQ(lease_clock_wrong(&p, &r, 1, &d), FIRN_ECLOCK);
    T_OK(strstr(d.text, "1 days after"), "%s", d.text);
}

T_TEST(lease_view_clock_never_goes_back)
{
    struct clock_f c;
    struct lease_view v = { 0 };
    struct clock_f_params fp = { .skew_max_ns = 10000, .accept = true };
    clock_f_init(&c, &fp);
    lease_view_clock(&v, &c, 100);
    T_EQ(v.clock, CLOCK_WAIT);
    T_EQ(v.floor_ns, 0);
    clock_f_update(&c, &(struct clock_reading){ .real = 1000, .mono = 100, .boot = 100 }, 0);
    lease_view_clock(&v, &c, 100);
    T_EQ(v.floor_ns, 1000);
    T_EQ(v.off_ns, 900);
    /* The real clock stepped back by 50 at mono 200; the step then blocked until mono 250, while
     * the generators showed 250 + 900. */
    clock_f_update(&c, &(struct clock_reading){ .real = 1050, .mono = 200, .boot = 200 }, 0);
    lease_view_clock(&v, &c, 250);
    T_EQ(v.off_ns, 850);
    T_EQ(v.floor_ns, 1150);
}

T_TEST(lease_view_of_a_node)
{
    static struct slot_node n; /* large */
    struct lease_view v = { .state = SLOT_START };
    struct slot_now now = { .f = 100 };
    n.params.window = 40;
    n.params.max_drift = 5;
    n.params.ts_end = 1000;
    n.state = SLOT_NO_SLOT;
    lease_view_node(&v, &n, &now, true);
    T_EQ(v.error, FIRN_ENOSLOT);
    T_OK(!v.ready);
    v.error = 0;
    n.state = SLOT_ACTIVE;
    n.grant = (struct slot_grant){ .gen = 1, .slot = 2, .from = 100, .until = 140 };
    lease_view_node(&v, &n, &now, true);
    T_EQ(v.state, SLOT_ACTIVE);
    T_OK(v.ready && v.ready_until == 130);
    T_EQ(v.floor_tick, 0);
    now.f = 131; /* a quarter of the window is left: a new server is better elsewhere */
    lease_view_node(&v, &n, &now, true);
    T_OK(!v.ready);
    now.f = 140;
    lease_view_node(&v, &n, &now, true);
    T_EQ(v.state, SLOT_DRY);
    /* Just after a fence the floor counts. */
    n.floor = 150;
    lease_view_node(&v, &n, &now, true);
    T_EQ(v.floor_tick, 150);
    T_EQ(v.stamp_end, 155);
    /* While the lease looks at the store, its error stays and the grant is still shown. */
    n.state = SLOT_HALTED;
    n.why = FIRN_ESTORE;
    v.error = FIRN_EIO;
    lease_view_node(&v, &n, &now, false);
    T_EQ(v.error, FIRN_EIO);
    T_EQ(v.state, SLOT_DRY);
    lease_view_node(&v, &n, &now, true);
    T_EQ(v.error, FIRN_ESTORE);
    T_OK(lease_fenced_since(&n, 150, 149) && !lease_fenced_since(&n, 150, 150));
    T_OK(!lease_fenced_since(&n, 139, 100)); /* below its own window's end */
}

T_TEST(lease_gate_of_sequences)
{
    static const struct {
        bool sound;
        enum slot_state state;
        int error;
        enum lease_gate gate;
    } rows[] = {
        { false, SLOT_START, 0, LEASE_GATE_WAIT },
        { false, SLOT_START, FIRN_EIO, LEASE_GATE_WAIT },
        { false, SLOT_WAIT_CLOCK, FIRN_ECLOCK, LEASE_GATE_WAIT },
        { true, SLOT_WAIT_CLOCK, FIRN_ECLOCK, LEASE_GATE_OPEN },
        { false, SLOT_HALTED, FIRN_ENOENT, LEASE_GATE_SHUT }, /* never initialised */
        { true, SLOT_START, 0, LEASE_GATE_OPEN },
        { true, SLOT_ACTIVE, FIRN_EIO, LEASE_GATE_OPEN }, /* commits find out themselves */
        { true, SLOT_DRY, 0, LEASE_GATE_OPEN },
        { true, SLOT_NO_SLOT, FIRN_ENOSLOT, LEASE_GATE_OPEN },
        { true, SLOT_FENCED, 0, LEASE_GATE_OPEN },
        { true, SLOT_REGRESSED, 0, LEASE_GATE_WAIT },
        { true, SLOT_REGRESSED, FIRN_ESTORE, LEASE_GATE_SHUT }, /* fence: manual */
        { true, SLOT_HALTED, FIRN_ESTORE, LEASE_GATE_SHUT },
        { true, SLOT_HALTED, FIRN_EEXHAUSTED, LEASE_GATE_OPEN },
        { false, SLOT_ACTIVE, 0, LEASE_GATE_WAIT }, /* the store may be another one */
        { false, SLOT_HALTED, FIRN_EIO, LEASE_GATE_SHUT },
    };
    for (size_t i = 0; i < T_LEN(rows); i++)
        T_EQ(lease_gate_of(rows[i].sound, false, rows[i].state, rows[i].error), rows[i].gate,
             "row %zu", i);
    T_EQ(lease_gate_of(true, true, SLOT_ACTIVE, 0), LEASE_GATE_SHUT);
    T_EQ(lease_gate_of(false, true, SLOT_START, 0), LEASE_GATE_WAIT);
    T_EQ(lease_gate_of(true, true, SLOT_HALTED, FIRN_EEXHAUSTED), LEASE_GATE_SHUT);
}
