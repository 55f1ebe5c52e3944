/*
 * Servers that lend slots, clients that use them, and a store that loses answers: a world on one
 * seed.
 *
 * What clients do is the worst they may: a window, once told, is stamped at any later time, in any
 * order, by a client that was stopped for long, or that has given its slot back a moment ago from
 * another thread. The only rule they keep is libfirn's: never outside [from, until), never the same
 * tick twice under one grant. Servers are killed and started again, answers are lost and asked for
 * again, writes land late or not at all, clocks step. The oracle has every (slot, tick) that was
 * ever stamped: none may be stamped under two grants.
 */
#include "server/leases.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SERVERS = 3,
    CLIENTS = 12,
    SLOTS = 8,
    WINDOW_MS = 40,
    TICKS = 400 * 1000, /* of a world; it ends when F gets there */
    LATE_MAX = 4,
};

#define EPOCH_MS UINT64_C(1700000000000)

/* --- the world's clock --- */

static struct {
    int64_t ns;      /* of all clocks, from the epoch on */
    int64_t step_ns; /* by how much CLOCK_REALTIME is off */
} now;

static void read_clock(void *user, struct clock_reading *out)
{
    (void)user;
    *out = (struct clock_reading){ .real = (int64_t)EPOCH_MS * 1000000 + now.ns + now.step_ns,
                                   .mono = 1000000000 + now.ns,
                                   .boot = 1000000000 + now.ns };
}

static void random_bytes(void *user, void *out, size_t len)
{
    (void)user;
    t_random_bytes(out, len);
}

static void sleep_ms(void *user, uint64_t ms)
{
    (void)user;
    now.ns += (int64_t)ms * 1000000;
}

static const struct lease_world world = { .read_clock = read_clock,
                                          .random = random_bytes,
                                          .sleep_ms = sleep_ms };

/* --- a store that loses answers --- */

struct late { /* a write of unknown outcome, which may land yet */
    char key[STORE_KEY_MAX], old[STORE_VALUE_MAX], value[STORE_VALUE_MAX];
    size_t key_len, old_len, value_len;
};

static struct {
    struct firn_store base, *true_one;
    struct late late[LATE_MAX];
    size_t late_n;
    uint32_t trouble; /* of a hundred writes, this many */
    uint64_t lost, landed_late;
} faulty;

static int f_read(struct firn_store *s, struct firn_slice key, bool fresh, struct firn_record *out,
                  struct firn_diag *d)
{
    (void)s;
    if (t_random_below(100) < faulty.trouble / 2)
        return FIRN_EIO;
    return firn_store_read(faulty.true_one, key, fresh, out, d);
}

static int f_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each, void *user,
                  struct firn_diag *d)
{
    (void)s;
    return firn_store_scan(faulty.true_one, prefix, each, user, d);
}

static void put_off(const struct firn_cas *want)
{
    struct late *l = &faulty.late[faulty.late_n++];
    l->key_len = want->key.len;
    l->old_len = want->old.len;
    l->value_len = want->value.len;
    memcpy(l->key, want->key.p, l->key_len);
    memcpy(l->old, want->old.p, l->old_len);
    memcpy(l->value, want->value.p, l->value_len);
}

static int f_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    (void)s;
    if (t_random_below(100) >= faulty.trouble)
        return firn_store_cas(faulty.true_one, want, d);
    faulty.lost++;
    uint64_t how = t_random_below(3);
    if (how == 0 && firn_store_cas(faulty.true_one, want, d) != 0)
        return FIRN_EUNKNOWN;
    if (how == 1 && want->old.p && want->value.p && faulty.late_n < LATE_MAX)
        put_off(want);
    return FIRN_EUNKNOWN;
}

static void land_late_ones(void)
{
    while (faulty.late_n > 0 && t_random_below(2)) {
        struct late *l = &faulty.late[--faulty.late_n];
        struct firn_cas want = { firn_slice(l->key, l->key_len), firn_slice(l->old, l->old_len),
                                 firn_slice(l->value, l->value_len) };
        faulty.landed_late += firn_store_cas(faulty.true_one, &want, NULL) == 0;
    }
}

static int f_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    (void)s;
    return firn_store_identity(faulty.true_one, out, d);
}

static void f_close(struct firn_store *s)
{
    (void)s;
}

static const struct firn_store_ops faulty_ops = { .size = sizeof faulty_ops,
                                                  .scheme = "faulty",
                                                  .read = f_read,
                                                  .cas = f_cas,
                                                  .scan = f_scan,
                                                  .identity = f_identity,
                                                  .close = f_close };

/* --- servers --- */

static struct leases *server[SERVERS];

static void start(size_t i)
{
    struct leases_opts o = { .max = 6,
                             .world = &world,
                             .params = { .layout = "default",
                                         .epoch_ms = EPOCH_MS,
                                         .ts_bits = 41,
                                         .slots = SLOTS,
                                         .window_ms = WINDOW_MS,
                                         .max_drift_ms = 20,
                                         .name = "s" } };
    T_EQ(leases_new(&o, &server[i]), 0);
}

/* --- clients and the oracle --- */

struct grant_use { /* what a client may stamp, and what it has */
    uint32_t slot;
    uint64_t number, from, until, next;
    uint32_t owner; /* names the grant in the oracle's book; 0: none */
};

static struct client {
    size_t server;
    char id[LEASE_ID_LEN + 1];
    bool held;
    struct grant_use use,
        old; /* `old`: of the slot before, which another thread has not closed yet */
} client[CLIENTS];

static uint32_t *book; /* [slot][tick]: who stamped it */
static uint32_t owners;
static uint64_t stamps, repeats;
static uint64_t echoes, granted, extended, retold, moved, refused, unknown, returned, killed;
static uint32_t beyond; /* a mutant: ticks that clients use beyond their window */
static bool by_number;  /* a mutant: clients know a grant by the server's number of it alone */

static void stamp(struct grant_use *u)
{
    if (u->owner == 0)
        return;
    uint64_t end = u->until + beyond;
    for (uint64_t n = t_random_below(30); n > 0 && u->next < end; n--, u->next++) {
        T_OK(u->slot < SLOTS && u->next < TICKS, "slot %u, tick %llu", u->slot,
             (unsigned long long)u->next);
        uint32_t *who = &book[u->slot * (size_t)TICKS + u->next];
        repeats += *who != 0 && *who != u->owner;
        *who = u->owner;
        stamps++;
    }
    if (t_random_below(4) == 0) /* a clock that is not used up leaves ticks out */
        u->next += t_random_below(10);
}

struct waiting {
    struct lease_ask ask;
    struct client *c;
    bool lost; /* the answer will be */
    bool over;
};

static void use_grant(struct client *c, const struct lease_terms *t)
{
    bool same = by_number ? t->grant.gen == c->use.number && t->grant.slot == c->use.slot
                          : t->grant.from == c->use.from && t->grant.slot == c->use.slot;
    if (c->held && same) {
        extended += t->grant.until > c->use.until;
        if (t->grant.until > c->use.until)
            c->use.until = t->grant.until;
        return;
    }
    moved += c->held;
    c->old = c->use;
    c->use = (struct grant_use){ t->grant.slot,  t->grant.gen,  t->grant.from,
                                 t->grant.until, t->grant.from, ++owners };
    c->held = true;
    granted++;
}

static void done(struct lease_ask *a, int result)
{
    struct waiting *w = (struct waiting *)(void *)a;
    w->over = true;
    refused += result == FIRN_ENOSLOT;
    unknown += result == FIRN_ENOENT;
    if (w->c && !w->lost && result == 0 && a->what != LEASE_RETURN && strcmp(a->id, w->c->id) == 0)
        use_grant(w->c, &a->terms);
    if (w->c && result == FIRN_ENOENT)
        w->c->held = false; /* what is left of the window stays good */
    free(w);
}

static void ask(struct client *c, int what, bool lost)
{
    struct waiting *w = calloc(1, sizeof *w);
    w->c = c;
    w->lost = lost;
    w->ask.what = what;
    w->ask.done = done;
    w->ask.deadline_ms = (uint64_t)(1000 + now.ns / 1000000) + 20;
    w->ask.last = c->use.next;
    memcpy(w->ask.id, c->id, sizeof w->ask.id);
    leases_ask(server[c->server], &faulty.base, &w->ask);
}

static void take(struct client *c)
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < LEASE_ID_LEN; i++)
        c->id[i] = digits[t_random_below(16)];
    c->held = false;
    c->server = t_random_below(SERVERS);
    bool lost = t_random_below(4) == 0;
    ask(c, LEASE_TAKE, lost);
    if (lost && t_random_below(2)) { /* the answer did not come: the same question again */
        uint64_t before = granted;
        ask(c, LEASE_TAKE, false);
        retold += granted > before;
    }
}

/* A question to take comes again, late, on another connection: the server may have forgotten the
 * lease. */
static void echo(struct client *c)
{
    if (c->id[0]) {
        ask(c, LEASE_TAKE, true);
        echoes++;
    }
}

static void act(struct client *c)
{
    switch (t_random_below(13)) {
    case 12:
        if (t_random_below(3) == 0)
            echo(c);
        break;
    case 0:
        take(c);
        break;
    case 1:
    case 2:
        if (c->held)
            ask(c, LEASE_EXTEND, t_random_below(5) == 0);
        else
            take(c);
        break;
    case 3:
        if (c->held && t_random_below(4) == 0) {
            c->held = false;
            c->old =
                c->use; /* a thread that has not heard of it stamps on: the server cannot know */
            c->use.owner = 0;
            ask(c, LEASE_RETURN, false);
            returned++;
        }
        break;
    case 4:
        if (t_random_below(20) == 0)
            *c = (struct client){ .server = 0 }; /* gone without a word */
        break;
    case 5:
        stamp(&c->old);
        break;
    default:
        stamp(&c->use);
    }
}

static void forget_waiting(size_t i)
{
    (void)i;
    for (size_t k = 0; k < CLIENTS; k++)
        if (client[k].server == i && t_random_below(2))
            client[k].held = false;
}

static void step(void)
{
    now.ns += (int64_t)t_random_below(3) * 1000000;
    if (t_random_below(500) == 0)
        now.step_ns = ((int64_t)t_random_below(40) - 20) * 1000000;
    if (t_random_below(50) == 0)
        land_late_ones();
    if (t_random_below(300) == 0)
        faulty.trouble = (uint32_t)t_random_below(40);
    if (t_random_below(400) == 0) {
        size_t i = t_random_below(SERVERS);
        bool orderly = t_random_below(2);
        leases_free(server[i], orderly ? &faulty.base : NULL);
        killed += !orderly;
        forget_waiting(i);
        start(i);
    }
    uint64_t due = leases_step(server[t_random_below(SERVERS)], &faulty.base);
    (void)due;
    act(&client[t_random_below(CLIENTS)]);
}

static void run(uint64_t steps)
{
    T_EQ(firn_store_memory_new(&faulty.true_one), 0);
    faulty.base.ops = &faulty_ops;
    faulty.late_n = faulty.trouble = 0;
    memset(client, 0, sizeof client);
    memset(&now, 0, sizeof now);
    now.ns = INT64_C(1000) * 1000000;
    book = calloc((size_t)SLOTS * TICKS, sizeof *book);
    owners = 0;
    repeats = 0;
    for (size_t i = 0; i < SERVERS; i++)
        start(i);
    for (uint64_t i = 0; i < steps && now.ns / 1000000 < TICKS - 2000; i++)
        step();
    for (size_t i = 0; i < SERVERS; i++)
        leases_free(server[i], &faulty.base);
    free(book);
    firn_store_close(faulty.true_one);
}

T_TEST(no_tick_under_two_grants)
{
    for (int w = 0; w < 5; w++) {
        run(t_scale(60000));
        T_EQ(repeats, 0, "world %d", w);
    }
    printf("stamps %llu, grants %llu, extensions %llu, told again %llu, moved %llu, refused %llu, "
           "unknown %llu, returned %llu, servers killed %llu, writes lost %llu, landed late %llu\n",
           (unsigned long long)stamps, (unsigned long long)granted, (unsigned long long)extended,
           (unsigned long long)retold, (unsigned long long)moved, (unsigned long long)refused,
           (unsigned long long)unknown, (unsigned long long)returned, (unsigned long long)killed,
           (unsigned long long)faulty.lost, (unsigned long long)faulty.landed_late);
    /* A world in which these did not happen shows nothing. */
    T_OK(stamps > 10000 && granted > 100 && extended > 50 && retold > 5 && refused > 0);
    T_OK(echoes > 50 && unknown > 0 && returned > 5 && killed > 3 && faulty.lost > 100 &&
         faulty.landed_late > 0);
}

/* And the oracle sees what it should: clients that go beyond their windows repeat each other. */
T_TEST(the_oracle_bites)
{
    beyond = WINDOW_MS;
    run(t_scale(60000));
    beyond = 0;
    T_OK(repeats > 0);
}

/* Why a grant is known by its slot and its first tick. */
T_TEST(a_servers_number_is_not_enough)
{
    uint64_t seen = 0;
    by_number = true;
    for (int w = 0; w < 40 && seen == 0; w++) {
        run(60000);
        seen += repeats;
    }
    by_number = false;
    T_OK(seen > 0);
}
