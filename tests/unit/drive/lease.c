/* Whole leases on a virtual clock: the rows of the failure matrix that an embedded store can
 * meet. */
#include "t.h"

#include "drive/lease.h"
#include "store/slotlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { NODES = 4, STAMPS_MAX = 100000, SLOTS = 16 };
static const int64_t MS = 1000000;
static const uint64_t EPOCH_MS = 1609459200000;
static const int64_t NOW = 1800000000000; /* Unix ms when these tests begin */

static struct {
    int64_t real, mono; /* ms */
    int locked_by[SLOTS];
} world;

struct node { /* one process */
    struct lease l;
    struct lease_world w;
    int id;
    uint64_t last, gen, t;
    bool up;
};

static struct node node[NODES];
static struct firn_store *store;
static struct {
    uint32_t slot;
    uint64_t tick;
} stamp[STAMPS_MAX];
static size_t stamps;

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

static void pass(int64_t ms)
{
    world.real += ms;
    world.mono += ms;
}

static void sleep_ms(void *user, uint64_t ms)
{
    (void)user;
    pass((int64_t)ms);
}

static int lock(void *user, uint32_t slot)
{
    struct node *n = user;
    if (world.locked_by[slot] >= 0 && world.locked_by[slot] != n->id)
        return FIRN_ECONFLICT;
    world.locked_by[slot] = n->id;
    return 0;
}

static void unlock(void *user, uint32_t slot)
{
    (void)user;
    world.locked_by[slot] = -1;
}

static void begin(struct firn_store *s)
{
    firn_store_close(store);
    store = s;
    stamps = 0;
    memset(node, 0, sizeof node);
    world.real = NOW;
    world.mono = 1000000;
    for (int i = 0; i < SLOTS; i++)
        world.locked_by[i] = -1;
}

static void begin_memory(void)
{
    struct firn_store *s;
    T_EQ(firn_store_memory_new(&s), 0);
    begin(s);
}

static struct node *boot_with(int id, struct lease_params p)
{
    struct node *n = &node[id];
    struct firn_diag d = { 0 };
    memset(n, 0, sizeof *n);
    n->id = id;
    n->up = true;
    n->w = (struct lease_world){ .user = n,
                                 .read_clock = read_clock,
                                 .random = random_bytes,
                                 .sleep_ms = sleep_ms,
                                 .lock = lock,
                                 .unlock = unlock };
    p.layout = p.layout ? p.layout : "default";
    p.epoch_ms = EPOCH_MS;
    p.slots = p.slots ? p.slots : SLOTS;
    T_EQ(lease_open(&n->l, store, &p, &n->w, &d), 0, "%s", d.text);
    return n;
}

static struct node *boot(int id)
{
    return boot_with(id, (struct lease_params){ .name = "n" });
}

static void kill_9(struct node *n)
{
    n->up = false;
    for (int i = 0; i < SLOTS; i++)
        if (world.locked_by[i] == n->id)
            world.locked_by[i] = -1;
}

/* Step until it says to wait. */
static uint64_t step(struct node *n)
{
    uint64_t due;
    int i = 0;
    do
        due = lease_step(&n->l, n->last);
    while (due <= (uint64_t)world.mono && ++i < 10);
    T_OK(i < 10);
    return due;
}

/* Stamp a tick, as a generator that uses one counter value each. */
static bool emit(struct node *n)
{
    const struct lease_view *v = &n->l.view;
    if (v->grant.gen == 0 || v->grant.closed)
        return false;
    if (v->grant.gen != n->gen) {
        n->gen = v->grant.gen;
        n->t = v->grant.from - 1 > n->last ? v->grant.from - 1 : n->last;
    }
    uint64_t f = lease_tick(&n->l, world.mono * MS);
    uint64_t limit = (f > v->floor_tick ? f : v->floor_tick) + v->max_drift;
    uint64_t t = n->t + 1 > f ? n->t + 1 : f;
    if (t >= v->grant.until || (t > f && t > limit))
        return false;
    for (size_t i = 0; i < stamps; i++)
        T_OK(stamp[i].slot != v->grant.slot || stamp[i].tick != t, "slot %u tick %" PRIu64,
             v->grant.slot, t);
    T_OK(stamps < STAMPS_MAX && t >= v->grant.from && t > n->last);
    stamp[stamps].slot = v->grant.slot;
    stamp[stamps++].tick = t;
    n->last = n->t = t;
    return true;
}

static int64_t ahead_ms(const struct node *n)
{
    return (int64_t)(n->last + EPOCH_MS) - world.real;
}

T_TEST(lease_serves_at_once)
{
    begin_memory();
    struct node *n = boot(0);
    uint64_t due = step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE);
    T_EQ(n->l.view.error, 0);
    T_OK(n->l.view.ready);
    T_EQ(due, world.mono + 1000);
    T_OK(emit(n));
    /* A lost file may have granted up to max_drift + window ahead: a fresh one begins above. */
    T_EQ(ahead_ms(n), 8000);
    for (int i = 0; i < 60; i++) {
        pass(1000);
        step(n);
        T_OK(n->l.view.ready, "after %d s", i);
        T_OK(emit(n));
    }
    T_EQ(ahead_ms(n), 0); /* the clock has caught up */
    T_EQ(n->l.view.grant.gen, 1);
    T_EQ(lease_release(&n->l, n->last, 1000), 0);
    T_EQ(n->l.view.state, SLOT_CLOSED);
    T_OK(!emit(n));
}

T_TEST(lease_restart_in_the_same_ms)
{
    begin_memory();
    struct node *n = boot(0);
    step(n);
    pass(20000);
    step(n);
    T_OK(emit(n));
    uint64_t before = n->last;
    for (int how = 0; how < 2; how++) {
        if (how == 0)
            kill_9(n);
        else
            T_EQ(lease_release(&n->l, n->last, 1000), 0);
        n = boot(0);
        step(n);
        T_EQ(n->l.view.state, SLOT_ACTIVE);
        T_OK(emit(n));
        T_OK(n->last > before); /* the same slot again, so order holds over the restart */
        T_OK(ahead_ms(n) <= 3001, "%d", (int)ahead_ms(n));
        before = n->last;
    }
}

/* kill -9 faster than the window: every slot ends up ahead of the clock. It waits, never gives
 * up. */
T_TEST(lease_crash_loop)
{
    begin_memory();
    struct node *n = boot(0);
    step(n);
    pass(60000);
    int waits = 0;
    for (int i = 0; i < 64; i++) {
        kill_9(n);
        pass(60);
        n = boot(0);
        int64_t began = world.mono;
        for (uint64_t due = step(n); n->l.view.state != SLOT_ACTIVE; due = step(n)) {
            T_EQ(n->l.view.state, SLOT_NO_SLOT);
            T_EQ(n->l.view.error, FIRN_ENOSLOT);
            T_OK(due > (uint64_t)world.mono && world.mono - began < 10000);
            pass((int64_t)due - world.mono);
            waits++;
        }
        for (int k = 0; k < 20; k++)
            emit(n);
        T_OK(n->last > 0);
        T_OK(ahead_ms(n) <= 5000 + 3000);
    }
    T_OK(waits > 0);
}

T_TEST(lease_many_processes_share_a_store)
{
    begin_memory();
    for (int i = 0; i < NODES; i++)
        step(boot_with(i, (struct lease_params){ .name = "same" }));
    for (int s = 0; s < 100; s++) {
        pass((int64_t)t_random_below(1500));
        int who = (int)t_random_below(NODES);
        if (t_random_below(10) == 0) {
            kill_9(&node[who]);
            boot_with(who, (struct lease_params){ .name = "same" });
        }
        for (int i = 0; i < NODES; i++) {
            step(&node[i]);
            for (int k = 0; k < 5; k++)
                emit(&node[i]);
            /* A new one may wait for a slot of its name that is ahead of the clock. */
            if (node[i].l.view.state == SLOT_NO_SLOT && node[i].l.view.grant.gen == 0)
                continue;
            T_EQ(node[i].l.view.state, SLOT_ACTIVE);
            for (int k = 0; k < i; k++)
                T_OK(node[k].l.view.grant.gen == 0 ||
                     node[k].l.view.grant.slot != node[i].l.view.grant.slot);
        }
    }
}

T_TEST(lease_clock_back_an_hour_while_running)
{
    begin_memory();
    struct node *n = boot(0);
    step(n);
    pass(30000);
    step(n);
    T_OK(emit(n));
    uint64_t before = n->last;
    world.real -= 3600000;
    for (int i = 0; i < 100; i++) {
        pass(1000);
        step(n);
        T_EQ(n->l.view.clock, CLOCK_HELD);
        T_EQ(n->l.view.state, SLOT_ACTIVE);
        emit(n); /* one tick each; a real generator would use 4096 numbers of it first */
    }
    T_OK(n->last > before && n->last <= before + 1000 + 100);
    world.real += 3600000;
    pass(1000);
    step(n);
    T_EQ(n->l.view.clock, CLOCK_OK);
    T_OK(emit(n));
    T_EQ(ahead_ms(n), 0);
}

T_TEST(lease_clock_back_an_hour_over_a_restart)
{
    begin_memory();
    world.real -= 7200000; /* the store is two hours old */
    struct node *n = boot(0);
    step(n);
    pass(7200000);
    step(n);
    T_OK(emit(n));
    kill_9(n);
    world.real -= 3600000;
    n = boot(0);
    step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE); /* another slot: its timestamps are still to come */
    T_OK(emit(n));
    T_EQ(ahead_ms(n), 0);
}

/* A slot of one's choice is leased like any other: the second node waits and says for whom. */
T_TEST(lease_pinned_slots_clash)
{
    begin_memory();
    struct lease_params p = { .name = "a", .pinned = true, .pin = 5 };
    struct node *a = boot_with(0, p);
    step(a);
    pass(30000);
    step(a);
    T_EQ(a->l.view.state, SLOT_ACTIVE);
    T_EQ(a->l.view.grant.slot, 5);
    p.name = "b";
    struct node *b = boot_with(1, p);
    step(b);
    T_EQ(b->l.view.state, SLOT_NO_SLOT);
    T_EQ(b->l.view.error, FIRN_ENOSLOT);
    T_OK(strstr(b->l.view.diag.text, "slot 5") && strstr(b->l.view.diag.text, "held by 'a'"), "%s",
         b->l.view.diag.text);
    T_OK(!emit(b));
    struct node *c = boot(2); /* without a choice there are others */
    step(c);
    T_EQ(c->l.view.state, SLOT_ACTIVE);
    T_OK(c->l.view.grant.slot != 5);
    kill_9(a);
    pass(3000);
    step(b);
    T_EQ(b->l.view.state, SLOT_ACTIVE);
    T_EQ(b->l.view.grant.slot, 5);
    T_OK(emit(b));
    p.pin = SLOTS; /* the store has none such */
    struct node *n = boot_with(3, p);
    step(n);
    T_EQ(n->l.view.state, SLOT_HALTED);
    T_EQ(n->l.view.error, FIRN_ERANGE);
}

T_TEST(lease_clock_of_1970)
{
    begin_memory();
    struct node *n = boot(0);
    step(n);
    kill_9(n);
    world.real = 5000;
    n = boot(0);
    step(n);
    T_EQ(n->l.view.state, SLOT_WAIT_CLOCK);
    T_EQ(n->l.view.error, FIRN_ECLOCK);
    T_OK(n->l.view.diag.text[0] != '\0' && !n->l.view.ready && !emit(n));
    world.real = (int64_t)EPOCH_MS + 1000; /* after the epoch, but long before every slot */
    pass(1000);
    step(n);
    T_EQ(n->l.view.state, SLOT_WAIT_CLOCK);
    T_EQ(n->l.view.error, FIRN_ECLOCK);
    world.real = NOW + 60000;
    pass(1000);
    step(n);
    pass(2000);
    step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE);
    T_EQ(n->l.view.error, 0);
    T_OK(emit(n));
}

T_TEST(lease_clock_forward_a_year)
{
    const int64_t year = 366ll * 86400000;
    begin_memory();
    struct node *n = boot(0);
    step(n);
    pass(30000);
    step(n);
    world.real += year;
    for (int i = 0; i < 20; i++) {
        pass(1000);
        step(n);
        T_EQ(n->l.view.clock, CLOCK_SUSPECT);
        T_EQ(n->l.view.state, SLOT_ACTIVE); /* still serving, at the old pace */
        T_OK(emit(n));
        T_EQ(ahead_ms(n), -year);
    }
    kill_9(n);
    n = boot(0); /* started with that clock: refused */
    step(n);
    T_EQ(n->l.view.error, FIRN_ECLOCK);
    T_OK(strstr(n->l.view.diag.text, "accept"));
    T_OK(!emit(n));
    n = boot_with(0,
                  (struct lease_params){ .accept_clock = true }); /* unless told that it is right */
    step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE);
}

T_TEST(lease_long_pause)
{
    begin_memory();
    struct node *n = boot(0);
    step(n);
    pass(60000);
    step(n);
    T_OK(emit(n));
    pass(600000);   /* SIGSTOP */
    T_OK(!emit(n)); /* outside the window */
    step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE);
    T_OK(emit(n));
    T_EQ(ahead_ms(n), 0);
}

/* The store answers nothing for a while: serves to the end of its window, says so before, comes
 * back. */
static struct {
    struct firn_store base;
    struct firn_store *inner;
    bool down;
} shaky;

static int shaky_read(struct firn_store *s, struct firn_slice key, bool fresh,
                      struct firn_record *out, struct firn_diag *d)
{
    (void)s;
    return shaky.down ? FIRN_EIO : firn_store_read(shaky.inner, key, fresh, out, d);
}

static int shaky_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    (void)s;
    return shaky.down ? FIRN_EUNKNOWN : firn_store_cas(shaky.inner, want, d);
}

static int shaky_cas_many(struct firn_store *s, const struct firn_cas *want, size_t count,
                          int *result, struct firn_diag *d)
{
    (void)s;
    return firn_store_cas_many(shaky.inner, want, count, result, d);
}

static int shaky_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                      void *user, struct firn_diag *d)
{
    (void)s;
    return shaky.down ? FIRN_EIO : firn_store_scan(shaky.inner, prefix, each, user, d);
}

static int shaky_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    (void)s;
    return firn_store_identity(shaky.inner, out, d);
}

static void shaky_close(struct firn_store *s)
{
    (void)s;
    firn_store_close(shaky.inner);
}

static const struct firn_store_ops shaky_ops = { .size = sizeof shaky_ops,
                                                 .scheme = "shaky",
                                                 .read = shaky_read,
                                                 .cas = shaky_cas,
                                                 .cas_many = shaky_cas_many,
                                                 .scan = shaky_scan,
                                                 .identity = shaky_identity,
                                                 .close = shaky_close };

T_TEST(lease_store_down)
{
    shaky.base.ops = &shaky_ops;
    shaky.down = false;
    T_EQ(firn_store_memory_new(&shaky.inner), 0);
    begin(&shaky.base);
    struct node *n = boot(0);
    step(n);
    pass(30000);
    step(n);
    shaky.down = true;
    bool told = false;
    int served = 0;
    for (int i = 0; i < 100; i++) {
        pass(100);
        step(n);
        told |= !n->l.view.ready;
        bool ok = emit(n);
        served += ok;
        T_OK(ok || told); /* readiness ends before authority does */
        T_EQ(ok, i < 29, "after %d ms", i * 100);
    }
    T_EQ(served, 29);
    T_EQ(n->l.view.state, SLOT_DRY);
    T_OK(n->l.view.error != 0 && n->l.view.store_errors > 2);
    shaky.down = false;
    pass(2000);
    step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE);
    T_EQ(n->l.view.error, 0);
    T_OK(n->l.view.ready && emit(n));
    T_EQ(n->l.view.grant.gen, 1); /* the same slot all the time */
    shaky.down = true;
    T_EQ(lease_release(&n->l, n->last, 3000), FIRN_EAGAIN); /* stays closed all the same */
    T_OK(!emit(n));
}

T_TEST(lease_layout_is_immutable)
{
    begin_memory();
    step(boot(0));
    struct node *n = boot_with(1, (struct lease_params){ .layout = "other" });
    step(n);
    T_EQ(n->l.view.state, SLOT_HALTED);
    T_EQ(n->l.view.error, FIRN_ESTORE);
    T_OK(strstr(n->l.view.diag.text, "default") && strstr(n->l.view.diag.text, "other"));
    T_OK(!emit(n));
}

T_TEST(lease_more_processes_than_slots)
{
    begin_memory();
    for (int i = 0; i < NODES; i++)
        step(boot_with(i, (struct lease_params){ .slots = 3 }));
    T_EQ(node[3].l.view.state, SLOT_NO_SLOT);
    T_EQ(node[3].l.view.error, FIRN_ENOSLOT);
    kill_9(&node[1]);
    pass(10000);
    step(&node[3]);
    T_EQ(node[3].l.view.state, SLOT_ACTIVE);
    T_EQ(node[3].l.view.error, 0);
}

/* ---- on a real file ---- */

static char folder[] = "/tmp/firn-lease-XXXXXX", path[64];

static void open_file(void)
{
    struct firn_store *s;
    struct firn_diag d = { 0 };
    T_EQ(firn_store_sqlite_open(path, 0, &s, &d), 0, "%s", d.text);
    firn_store_close(store);
    store = s;
}

static void begin_file(void)
{
    char cmd[100];
    if (path[0] == '\0') {
        T_OK(mkdtemp(folder));
        snprintf(path, sizeof path, "%s/firn.db", folder);
    }
    snprintf(cmd, sizeof cmd, "rm -rf %s/*", folder);
    T_EQ(system(cmd), 0);
    struct firn_store *s;
    T_EQ(firn_store_sqlite_open(path, 0, &s, NULL), 0);
    begin(s);
}

__attribute__((destructor)) static void clean_up(void)
{
    char cmd[100];
    firn_store_close(store);
    snprintf(cmd, sizeof cmd, "rm -rf %s", folder);
    if (path[0] != '\0' && system(cmd) != 0)
        printf("could not remove %s\n", folder);
}

T_TEST(lease_file_deleted)
{
    begin_file();
    struct node *n = boot(0);
    step(n);
    T_OK(emit(n));
    char cmd[100];
    snprintf(cmd, sizeof cmd, "rm %s*", path);
    T_EQ(system(cmd), 0);
    pass(9000);
    step(n);
    T_EQ(n->l.view.state, SLOT_HALTED);
    T_EQ(n->l.view.error, FIRN_ESTORE);
    kill_9(n);
    open_file(); /* restarted: a new file, whose floor lies above all that the old one granted */
    n = boot(0);
    step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE);
    for (int i = 0; i < 100; i++) { /* at the clock's pace, until it has caught up */
        T_OK(emit(n));
        T_OK(!emit(n), "further ahead than the floor of the next lost file would be");
        pass(1);
        step(n);
    }
}

T_TEST(lease_file_restored)
{
    begin_file();
    struct node *n = boot(0);
    step(n);
    pass(20000);
    step(n);
    kill_9(n);
    char cmd[300];
    snprintf(cmd, sizeof cmd, "cp %s %s.bak", path, path);
    firn_store_close(store); /* moves the WAL into the file */
    store = NULL;
    T_EQ(system(cmd), 0);
    open_file();
    n = boot(0);
    step(n);
    for (int i = 0; i < 5; i++) {
        pass(500);
        step(n);
        emit(n);
    }
    uint64_t fenced_before = n->l.view.fenced_count;
    T_EQ(fenced_before, 0);
    kill_9(n);
    snprintf(cmd, sizeof cmd, "rm -f %s-wal %s-shm; mv %s.bak %s", path, path, path, path);
    firn_store_close(store);
    store = NULL;
    T_EQ(system(cmd), 0);
    open_file();
    n = boot(0); /* the copy forgot some grants: fenced, it begins above them */
    step(n);
    T_EQ(n->l.view.state, SLOT_ACTIVE);
    T_EQ(n->l.view.fenced_count, 1);
    for (int i = 0; i < 100; i++) {
        T_OK(emit(n));
        pass(1);
        step(n);
    }
    kill_9(n);
    n = boot(0); /* once is enough */
    step(n);
    T_EQ(n->l.view.fenced_count, 0);

    snprintf(cmd, sizeof cmd, "cp %s %s.bak; mv %s.bak %s", path, path, path, path);
    firn_store_close(store);
    store = NULL;
    T_EQ(system(cmd), 0);
    open_file();
    n = boot_with(0, (struct lease_params){ .manual_fence = true });
    step(n);
    T_EQ(n->l.view.state, SLOT_HALTED);
    T_OK(strstr(n->l.view.diag.text, "fence"));
}

T_TEST(lease_records_deleted)
{
    begin_file();
    struct node *n = boot(0);
    step(n);
    unsigned other = (n->l.view.grant.slot + 1) % SLOTS; /* the one held tells that all were used */
    kill_9(n);
    char cmd[200];
    if (system("command -v sqlite3 >/dev/null") != 0)
        return;
    snprintf(cmd, sizeof cmd, "sqlite3 %s \"DELETE FROM register WHERE key = 'slot/%05u'\"", path,
             other);
    T_EQ(system(cmd), 0);
    n = boot(0);
    step(n);
    T_EQ(n->l.view.state, SLOT_HALTED); /* never "free" */
    T_OK(!emit(n));
    kill_9(n);
    snprintf(cmd, sizeof cmd, "sqlite3 %s \"DELETE FROM register WHERE key = 'meta'\"", path);
    T_EQ(system(cmd), 0);
    n = boot(0);
    step(n);
    T_EQ(n->l.view.state, SLOT_HALTED);
    T_EQ(n->l.view.error, FIRN_ENOENT);
}

/* The system's own clock and lock bytes. */
T_TEST(lease_in_the_real_world)
{
    begin_file();
    static struct lease a, b;
    struct lease_world wa, wb;
    struct slot_lock slots[2];
    struct lease_params p = { .layout = "default", .epoch_ms = EPOCH_MS, .name = "x" };
    for (int i = 0; i < 2; i++)
        T_EQ(slot_lock_open(path, "default", SLOTS_MAX, &slots[i], NULL), 0);
    lease_world_real(&wa, &slots[0]);
    lease_world_real(&wb, &slots[1]);
    T_EQ(lease_open(&a, store, &p, &wa, NULL), 0);
    T_EQ(lease_open(&b, store, &p, &wb, NULL), 0);
    lease_step(&a, 0);
    lease_step(&b, 0);
    T_EQ(a.view.state, SLOT_ACTIVE);
    T_EQ(b.view.state, SLOT_ACTIVE);
    T_OK(a.view.grant.slot != b.view.grant.slot);
    T_EQ(lease_release(&a, 0, 1000), 0);
    T_EQ(lease_release(&b, 0, 1000), 0);
    slot_lock_close(&slots[0]);
    slot_lock_close(&slots[1]);
}
