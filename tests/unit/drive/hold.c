/* The register that holds the sequences of a restored backup. */
#include "t.h"

#include "drive/hold.h"
#include "drive/lease.h"

#include <stdlib.h>

static void draw(void *user, void *out, size_t len)
{
    (void)user;
    t_random_bytes(out, len);
}

T_TEST(hold_is_made_read_and_lifted)
{
    struct firn_store *s;
    struct firn_diag d = { 0 };
    bool held = true;
    T_EQ(firn_store_memory_new(&s), 0);
    struct setup e = { .store = s, .random = draw };
    T_EQ(hold_read(s, &held, &d), 0);
    T_OK(!held);
    T_EQ(hold_lift(s, &d), 0); /* nothing to lift */
    T_EQ(hold_backup(&e, &d), 0, "%s", d.text);
    T_EQ(hold_backup(&e, &d), 0, "%s", d.text); /* a backup of a restored backup */
    T_EQ(hold_read(s, &held, &d), 0);
    T_OK(held);
    T_EQ(hold_lift(s, &d), 0, "%s", d.text);
    T_EQ(hold_read(s, &held, &d), 0);
    T_OK(!held);
    firn_store_close(s);
}

/* The lease on a restored backup fences it by itself and keeps the sequences shut, until an
 * operator has lifted the hold. */
T_TEST(hold_shuts_the_gate_of_sequences)
{
    static struct lease l;
    struct firn_store *s;
    struct firn_diag d = { 0 };
    struct lease_world w;
    struct lease_params p = { .name = "a", .layout = "x", .epoch_ms = 1600000000000 };
    T_EQ(firn_store_memory_new(&s), 0);
    lease_world_real(&w, NULL);
    T_EQ(lease_open(&l, s, &p, &w, &d), 0, "%s", d.text);
    lease_step(&l, 0);
    T_EQ(l.view.gate, LEASE_GATE_OPEN);
    T_EQ(l.view.fences, 0);
    struct setup e = { .store = s, .random = draw };
    T_EQ(hold_backup(&e, &d), 0, "%s", d.text);
    T_EQ(lease_open(&l, s, &p, &w, &d), 0, "%s", d.text);
    for (int i = 0; i < 4; i++)
        lease_step(&l, 0);
    T_EQ(l.view.fences, 1);
    T_EQ(l.view.gate, LEASE_GATE_SHUT);
    T_OK(l.view.held);
    T_EQ(hold_lift(s, &d), 0, "%s", d.text);
    lease_step(&l, 0);
    T_EQ(l.view.gate, LEASE_GATE_OPEN);
    firn_store_close(s);
}
