/*
 * Leases and set-up on a store that many machines share: explicit INIT, quarantine in place of lock
 * bytes, a store that turns out to be another one. The store is memory with a mask over it.
 */
#include "t.h"

#include "drive/lease.h"
#include "drive/setup.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 3 };
static const int64_t MS = 1000000;
static const uint64_t EPOCH_MS = 1609459200000;

static struct {
    int64_t real, mono; /* ms */
} world;

/* ---- the mask ---- */

struct mask {
    struct firn_store base;
    struct firn_store *inner;
    char identity[STORE_ID_TEXT_BUF];
    bool changed;    /* writes answer FIRN_ESTORE until identity() is asked */
    bool down;       /* nothing is answered */
    int writes_left; /* < 0: no limit; then the store is down */
    uint64_t store_ms;
    int writes;
};

static int mask_read(struct firn_store *s, struct firn_slice key, bool fresh,
                     struct firn_record *out, struct firn_diag *d)
{
    struct mask *m = (struct mask *)s;
    if (m->down)
        return FIRN_EIO;
    int r = firn_store_read(m->inner, key, fresh, out, d);
    out->store_ms = m->store_ms;
    return r;
}

static int mask_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    struct mask *m = (struct mask *)s;
    if (m->down || m->writes_left == 0)
        return FIRN_EUNKNOWN;
    m->writes_left -= m->writes_left > 0;
    m->writes++;
    return m->changed ? FIRN_ESTORE : firn_store_cas(m->inner, want, d);
}

static int mask_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                     void *user, struct firn_diag *d)
{
    struct mask *m = (struct mask *)s;
    return m->down ? FIRN_EIO : firn_store_scan(m->inner, prefix, each, user, d);
}

static int mask_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    (void)d;
    struct mask *m = (struct mask *)s;
    if (m->down)
        return FIRN_EIO;
    m->changed = false;
    memcpy(out, m->identity, sizeof m->identity);
    return 0;
}

static void mask_close(struct firn_store *s)
{
    (void)s;
}

static const struct firn_store_ops mask_ops = {
    .size = sizeof mask_ops,
    .scheme = "mask",
    .shared = true,
    .read = mask_read,
    .cas = mask_cas,
    .scan = mask_scan,
    .identity = mask_identity,
    .close = mask_close,
};

static struct firn_store *inner;
static struct mask mask[NODES]; /* a connection for each node */
static struct lease lease[NODES];

/* ---- the world ---- */

static void read_clock(void *user, struct clock_reading *out)
{
    (void)user;
    *out = (struct clock_reading){ .real = world.real * MS,
                                   .mono = world.mono * MS,
                                   .boot = world.mono * MS };
}

static void random_bytes(void *user, void *out, size_t len)
{
    (void)user;
    t_random_bytes(out, len);
}

static void sleep_ms(void *user, uint64_t ms)
{
    (void)user;
    world.real += (int64_t)ms;
    world.mono += (int64_t)ms;
}

static const struct lease_world lease_world = { .read_clock = read_clock,
                                                .random = random_bytes,
                                                .sleep_ms = sleep_ms };

static uint64_t tick_now(void)
{
    return (uint64_t)world.real - EPOCH_MS;
}

static void begin(void)
{
    firn_store_close(inner);
    T_EQ(firn_store_memory_new(&inner), 0);
    world.real = 1800000000000;
    world.mono = 1000000;
    for (int i = 0; i < NODES; i++)
        mask[i] = (struct mask){
            .base = { &mask_ops }, .inner = inner, .identity = "one", .writes_left = -1
        };
}

static struct setup setup_at(int i)
{
    return (struct setup){ .store = &mask[i].base, .f = tick_now(), .random = random_bytes };
}

static const struct setup_spec spec = {
    .layout = "default", .slots = 100, .window = 60000, .max_drift = 5000, .skew_max = 10000
};

static struct lease *boot(int i)
{
    struct firn_diag d = { 0 };
    struct lease_params p = { .layout = "default", .epoch_ms = EPOCH_MS, .name = "n" };
    T_EQ(lease_open(&lease[i], &mask[i].base, &p, &lease_world, &d), 0, "%s", d.text);
    return &lease[i];
}

static void step(int i)
{
    uint64_t due;
    int n = 0;
    do
        due = lease_step(&lease[i], 0);
    while (due <= (uint64_t)world.mono && ++n < 20);
    T_OK(n < 20);
}

static void run(int i, int64_t ms)
{
    for (int64_t end = world.mono + ms; world.mono < end;) {
        step(i);
        sleep_ms(NULL, 500);
    }
}

static uint64_t meta_floor(void)
{
    struct meta_record m;
    T_EQ(setup_read_meta(inner, &m, NULL, NULL), 0);
    return m.floor;
}

/* ---- set-up ---- */

T_TEST(init_is_explicit_and_once)
{
    begin();
    struct lease *l = boot(0);
    step(0);
    T_EQ(l->view.error, FIRN_ENOENT);
    T_OK(strstr(l->view.diag.text, "firn admin init"), "%s", l->view.diag.text);
    struct setup e = setup_at(1);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0, "%s", d.text);
    T_EQ(setup_init(&e, &spec, &d), FIRN_ECONFLICT);
    sleep_ms(NULL, 30000); /* the floor lies a window and more ahead of the clock */
    step(0);
    T_EQ(l->view.state, SLOT_ACTIVE, "%s", l->view.diag.text);
    T_OK(l->view.grant.from >= meta_floor());
    T_EQ(l->view.window, 60000);
}

/* A fence reaches as far as the store's skew_max: no node's clock may be further ahead. */
T_TEST(the_store_says_how_far_clocks_may_be_apart)
{
    begin();
    struct setup e = setup_at(1);
    struct setup_spec tight = spec;
    tight.skew_max = 2000;
    T_EQ(setup_init(&e, &tight, NULL), 0);
    const struct lease *l = boot(0);
    T_EQ(l->clock.params.skew_max_ns, 10000 * MS);
    sleep_ms(NULL, 30000);
    step(0);
    T_EQ(l->view.state, SLOT_ACTIVE);
    T_EQ(l->clock.params.skew_max_ns, 2000 * MS);
}

T_TEST(init_goes_on_where_it_was_cut)
{
    for (int cut = 0; cut <= 101; cut += 7) {
        begin();
        struct setup e = setup_at(0), other = setup_at(1);
        struct firn_diag d = { 0 };
        mask[0].writes_left = cut;
        T_EQ(setup_init(&e, &spec, &d), FIRN_EUNKNOWN, "cut at %d", cut);
        T_EQ(setup_init(&other, &spec, &d), 0, "cut at %d: %s", cut, d.text);
        boot(2);
        sleep_ms(NULL, 60000);
        step(2);
        T_EQ(lease[2].view.state, SLOT_ACTIVE, "cut at %d: %s", cut, lease[2].view.diag.text);
    }
}

static int remove_one(const char *key)
{
    struct firn_record rec;
    struct firn_slice k = firn_slice(key, strlen(key));
    T_EQ(firn_store_read(inner, k, true, &rec, NULL), 0);
    struct firn_cas cas = { k, firn_slice(rec.value, rec.len), firn_slice(NULL, 0) };
    return firn_store_cas(inner, &cas, NULL);
}

T_TEST(a_damaged_store_is_not_taken_for_an_empty_one)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    struct lease *l = boot(0);
    sleep_ms(NULL, 60000);
    run(0, 2000);
    uint64_t until = l->view.grant.until;
    T_EQ(remove_one("meta"), 0);
    /* Not the one that was held: without it nothing tells a damaged store from an INIT that was
     * cut. */
    T_EQ(remove_one(l->view.grant.slot == 42 ? "slot/00043" : "slot/00042"), 0);
    e = setup_at(1);
    T_EQ(setup_init(&e, &spec, &d), FIRN_ENOENT);
    T_OK(strstr(d.text, "--recover"), "%s", d.text);
    T_EQ(setup_recover(&e, &spec, &d), 0, "%s", d.text);
    boot(1);
    sleep_ms(NULL, 30000);
    step(1);
    T_EQ(lease[1].view.state, SLOT_ACTIVE, "%s", lease[1].view.diag.text);
    T_OK(lease[1].view.grant.from >= until);
    /* A slot that is missing while meta is there. */
    T_EQ(remove_one("slot/00007"), 0);
    T_EQ(setup_fence(&e, meta_floor(), NULL, &d), FIRN_ENOENT);
    e = setup_at(1);
    T_EQ(setup_recover(&e, &spec, &d), 0, "%s", d.text);
    T_EQ(setup_fence(&e, meta_floor(), NULL, &d), 0, "%s", d.text);
}

T_TEST(a_node_waits_for_the_operator)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    struct lease *l = boot(0);
    sleep_ms(NULL, 100000);
    run(0, 2000);
    T_EQ(l->view.state, SLOT_ACTIVE);
    uint64_t until = l->view.grant.until;
    char key[RECORD_KEY_BUF];
    key[slot_key(l->view.grant.slot, key)] = '\0';
    T_EQ(remove_one(key), 0);
    run(0, 25000);
    T_EQ(l->view.state, SLOT_HALTED);
    T_EQ(l->view.grant.until, until);
    e = setup_at(1);
    T_EQ(setup_recover(&e, &spec, &d), 0, "%s", d.text);
    run(0, 60000);
    T_EQ(l->view.state, SLOT_ACTIVE, "%s", l->view.diag.text);
    T_OK(l->view.grant.from >= until);
}

T_TEST(retire)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    struct lease *l = boot(0);
    sleep_ms(NULL, 100000);
    step(0);
    T_EQ(setup_retire(&e, l->view.grant.slot, false, &d), FIRN_ECONFLICT);
    uint32_t other = l->view.grant.slot == 5 ? 6 : 5;
    T_EQ(setup_retire(&e, other, false, &d), 0, "%s", d.text);
    T_EQ(setup_retire(&e, 100, false, &d), FIRN_ENOENT);
    uint32_t slot = l->view.grant.slot;
    T_EQ(setup_retire(&e, slot, true, &d), 0, "%s", d.text);
    run(0, 30000);
    T_EQ(l->view.state, SLOT_ACTIVE);
    T_OK(l->view.grant.slot != slot && l->view.grant.slot != other);
}

/* ---- leases ---- */

T_TEST(a_dead_nodes_slot_waits_out_its_quarantine)
{
    begin();
    struct setup e = setup_at(0);
    struct setup_spec one = spec;
    struct firn_diag d = { 0 };
    one.slots = 1;
    one.floor = tick_now();
    T_EQ(setup_init(&e, &one, &d), 0, "%s", d.text);
    struct lease *a = boot(0), *b = boot(1);
    step(0);
    T_EQ(a->view.state, SLOT_ACTIVE, "%s", a->view.diag.text);
    uint64_t until = a->view.grant.until; /* and here it dies */
    run(1, 100000);
    T_EQ(b->view.state, SLOT_NO_SLOT);
    run(1, 25000);
    T_EQ(b->view.state, SLOT_ACTIVE);
    T_OK(b->view.grant.from >= until);
}

T_TEST(a_store_that_changed_is_fenced_once_by_many)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    sleep_ms(NULL, 100000);
    uint64_t until = 0;
    for (int i = 0; i < NODES; i++) {
        boot(i);
        step(i);
        T_EQ(lease[i].view.state, SLOT_ACTIVE, "%s", lease[i].view.diag.text);
        until = lease[i].view.grant.until > until ? lease[i].view.grant.until : until;
    }
    for (int named = 0; named < 2;
         named++) { /* it may tell by its name, or only by a counter that fell */
        uint64_t before = meta_floor();
        for (int i = 0; i < NODES; i++) {
            mask[i].changed = true;
            if (named)
                memcpy(mask[i].identity, "two", 4);
        }
        for (int i = 0; i < NODES; i++)
            run(i, 21000);
        T_OK(meta_floor() > before);
        T_OK(meta_floor() <= tick_now() + 60000 + 5000 + 20000, "fenced again and again");
        for (int i = 0; i < NODES; i++) {
            run(i, 30000);
            T_EQ(lease[i].view.state, SLOT_ACTIVE, "%s", lease[i].view.diag.text);
            T_OK(lease[i].view.grant.from >= until);
        }
        for (int i = 0; i < NODES; i++)
            until = lease[i].view.grant.until > until ? lease[i].view.grant.until : until;
    }
    T_EQ(lease[0].view.fences + lease[1].view.fences + lease[2].view.fences, 2);
}

/* A ticket's write meets the other store long before the slot's next one would: a Redis that was
 * restarted must not cost the rest of the renewal interval. */
T_TEST(a_doubt_is_looked_into_at_once)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    sleep_ms(NULL, 100000);
    boot(0);
    step(0);
    T_EQ(lease[0].view.state, SLOT_ACTIVE, "%s", lease[0].view.diag.text);
    struct slot_grant had = lease[0].view.grant;
    uint64_t before = meta_floor();
    lease_doubt(&lease[1]); /* not running: nothing to look at */
    mask[0].changed = true;
    memcpy(mask[0].identity, "two", 4);
    step(0);
    T_EQ(lease[0].view.fences, 0, "its own next write is due in a while");
    lease_doubt(&lease[0]);
    step(0);
    step(0);
    T_EQ(lease[0].view.fences, 1);
    T_OK(meta_floor() > before && !mask[0].changed);
    T_OK(lease[0].view.grant.gen == had.gen && lease[0].view.grant.until == had.until &&
             !lease[0].view.grant.closed,
         "confirmed ticks stay usable");
    run(0, 50000);
    T_EQ(lease[0].view.state, SLOT_ACTIVE, "%s", lease[0].view.diag.text);
    T_OK(lease[0].view.grant.from >= had.until);
    T_EQ(lease[0].view.fences, 1, "once");
}

/* One damaged record stops the node that meets it, not those that run. */
T_TEST(a_damaged_slot_leaves_others_alone)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    sleep_ms(NULL, 100000);
    boot(0);
    run(0, 1000);
    boot(1);
    run(1, 1000);
    uint32_t slot = 99;
    while (slot == lease[0].view.grant.slot || slot == lease[1].view.grant.slot)
        slot--; /* not one that runs: nodes choose their slots by chance */
    char text[RECORD_KEY_BUF];
    struct firn_record rec;
    struct firn_slice key = firn_slice(text, slot_key(slot, text));
    T_EQ(firn_store_read(inner, key, true, &rec, NULL), 0);
    struct firn_cas cas = { key, firn_slice(rec.value, rec.len), firn_slice("junk", 4) };
    T_EQ(firn_store_cas(inner, &cas, NULL), 0);
    boot(2);
    for (int i = 0; i < 60; i++) {
        run(2, 500);
        run(0, 500);
        run(1, 500);
    }
    T_EQ(lease[2].view.state, SLOT_HALTED);
    T_EQ(lease[0].view.state, SLOT_ACTIVE, "%s", lease[0].view.diag.text);
    T_EQ(lease[1].view.state, SLOT_ACTIVE, "%s", lease[1].view.diag.text);
    T_EQ(lease[0].view.fences + lease[1].view.fences + lease[2].view.fences, 0);
}

/* With fence: manual a node that was forgotten waits for the operator, and then goes on by
 * itself. */
T_TEST(a_manual_fence_frees_a_forgotten_node)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    sleep_ms(NULL, 100000);
    struct lease_params p = {
        .layout = "default", .epoch_ms = EPOCH_MS, .name = "n", .manual_fence = true
    };
    struct lease *l = &lease[0];
    T_EQ(lease_open(l, &mask[0].base, &p, &lease_world, &d), 0);
    run(0, 1000);
    char name[RECORD_KEY_BUF];
    struct firn_slice key = firn_slice(name, slot_key(l->view.grant.slot, name));
    struct firn_record old, new;
    T_EQ(firn_store_read(inner, key, true, &old, NULL), 0);
    run(0, 45000);
    T_EQ(firn_store_read(inner, key, true, &new, NULL), 0);
    struct firn_cas back = { key, firn_slice(new.value, new.len), firn_slice(old.value, old.len) };
    T_EQ(firn_store_cas(inner, &back, NULL), 0);
    run(0, 60000);
    T_EQ(l->view.state, SLOT_REGRESSED);
    T_OK(strstr(l->view.diag.text, "firn admin fence"), "%s", l->view.diag.text);
    uint64_t until = l->view.grant.until;
    e = setup_at(1);
    T_EQ(setup_fence(&e, meta_floor(), NULL, &d), 0, "%s", d.text);
    run(0, 60000);
    T_EQ(l->view.state, SLOT_ACTIVE, "%s", l->view.diag.text);
    T_OK(l->view.grant.from >= until);
}

T_TEST(the_stores_clock_speaks_for_ours)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    sleep_ms(NULL, 60000);
    mask[0].store_ms = (uint64_t)world.real - 3600000;
    struct lease *l = boot(0);
    step(0);
    T_EQ(l->view.error, FIRN_ECLOCK);
    T_OK(strstr(l->view.diag.text, "the store's"), "%s", l->view.diag.text);
    mask[0].store_ms = (uint64_t)world.real;
    step(0);
    T_EQ(l->view.state, SLOT_ACTIVE, "%s", l->view.diag.text);
    world.real += 3600000; /* our clock leaps, the store's does not */
    mask[0].store_ms += 30000;
    run(0, 30000);
    T_EQ(l->view.clock, CLOCK_SUSPECT);
    T_OK(l->view.grant.until < tick_now() - 3000000);
}

T_TEST(an_idle_node_writes_three_times_a_minute)
{
    begin();
    struct setup e = setup_at(0);
    struct firn_diag d = { 0 };
    T_EQ(setup_init(&e, &spec, &d), 0);
    sleep_ms(NULL, 60000);
    boot(0);
    run(0, 5000);
    mask[0].writes = 0;
    run(0, 600000);
    T_OK(mask[0].writes <= 31, "%d writes", mask[0].writes);
}
