/*
 * firnds of worlds of whole members: the ticket path and the slot lease (src/drive/serve.h, as
 * firnd's coordinator runs them) on src/store/raft.c, through the member of their own machine, in a
 * coroutine that dies with it. No ticket comes twice, and one that is asked for after another was
 * answered is higher; no slot and tick is stamped twice; after the faults each firnd whose member
 * is one gives tickets again.
 */
#include "member_in.h"

#include "drive/serve.h"
#include "drive/setup.h"
#include "member_clock.h"

enum { KEYS = 24, SEQS = 2, NUMBERS = 1 << 13, STAMPS = 1 << 15, EPOCH_S = 1600000000 };

struct firnd {
    unsigned machine;
    struct firn_store *store;
    struct lease lease;
    struct tickets tickets;
    struct group_commit group;
    struct serve serve;
    struct seq_table *table;
    struct job job;
    bool opened, busy, made, healed;
    bool stale; /* the job is of an earlier history */
    int key;    /* of the job; -1: none */
    struct keyed keyed;
    bool stamped; /* since the history began */
    unsigned seq;
    uint64_t floor;     /* answered before the request was made */
    uint64_t gen, last; /* of what it has stamped */
};

static struct firnd firnd[FIRNDS];
static const char *const seq_name[SEQS] = { "orders", "blocks" };
static uint8_t given[SEQS][NUMBERS];
static uint64_t highest; /* of the gapless one */
static struct {
    unsigned tries;
    struct seq_range range; /* count 0: not known */
} key[KEYS]; /* of all firnds together: a request that is sent again may reach another one */
static uint64_t stamped[STAMPS];
static size_t stamps;

/* ---- its machine ---- */

static struct kmember *machine_of(const struct firnd *f)
{
    return &k.member[f->machine];
}

static void read_clock(void *user, struct clock_reading *out)
{
    struct kmember *m = machine_of(user);
    int64_t mono = (int64_t)k_local_ms(m) * MS + SECOND;
    /* Steps of the wall clock within what the protocol asks of it. */
    int64_t real = INT64_C(1700000000) * SECOND + (k_now() + m->wall_us % CLOCK_WRONG_US) * 1000;
    *out = (struct clock_reading){ .real = real, .mono = mono, .boot = mono };
}

static void random_bytes(void *user, void *out, size_t len)
{
    (void)user;
    for (size_t i = 0; i < len; i++)
        ((uint8_t *)out)[i] = (uint8_t)rand_next(&k.rng);
}

static void sleep_ms(void *user, uint64_t ms)
{
    (void)user;
    k_client_sleep((int64_t)ms);
}

/* ---- stamps ---- */

static void stamp_one(struct firnd *f, uint64_t tick)
{
    uint64_t id = ((uint64_t)f->lease.view.grant.slot << 48 | tick) + 1;
    size_t at = (size_t)rand_mix(id) % STAMPS;
    while (stamped[at] && stamped[at] != id)
        at = (at + 1) % STAMPS;
    if (stamped[at])
        violate(k.w, "stamp", "slot %u stamps tick %" PRIu64 " a second time",
                f->lease.view.grant.slot, tick);
    stamped[at] = id;
    stamps++;
    k.w->ids++;
    sometimes.rm_stamped++;
    f->stamped = true;
    f->last = tick;
}

/* The rule at the top of drive/lease.h. */
static void stamp(struct firnd *f)
{
    const struct lease_view *v = &f->lease.view;
    struct clock_reading c;
    read_clock(f, &c);
    int64_t ns = c.mono + v->off_ns > v->floor_ns ? c.mono + v->off_ns : v->floor_ns;
    uint64_t now = (uint64_t)(ns / MS - INT64_C(1000) * EPOCH_S);
    uint64_t limit = (now > v->floor_tick ? now : v->floor_tick) + v->max_drift;
    for (unsigned n = (unsigned)rand_below(&k.rng, 4); n > 0; n--) {
        uint64_t tick = now > f->last ? now : f->last + 1;
        if (tick < v->grant.from)
            tick = v->grant.from;
        if (v->grant.gen == 0 || v->grant.closed || tick >= v->grant.until ||
            (tick > now && tick > limit) || (v->stamp_end && tick >= v->stamp_end) ||
            stamps > STAMPS / 2)
            return;
        stamp_one(f, tick);
    }
}

static uint64_t last_stamped(void *user)
{
    return ((struct firnd *)user)->last;
}

/* ---- tickets ---- */

static void now_of(void *user, struct group_now *out)
{
    struct clock_reading c;
    read_clock(user, &c);
    serve_now(&((struct firnd *)user)->lease, c.mono, out);
}

/* Whether the key had these numbers already. */
static bool answered_again(const struct firnd *f, const struct seq_range *r)
{
    struct seq_range *of = &key[f->key].range;
    if (of->count == 0) {
        *of = *r;
        return false;
    }
    if (of->first != r->first || of->count != r->count)
        violate(k.w, "key", "key %d stands for %" PRIu64 " and for %" PRIu64, f->key, of->first,
                r->first);
    sometimes.rm_replayed++;
    return true;
}

static void answered(struct firnd *f, const struct seq_range *r)
{
    uint64_t last = seq_range_last(r);
    f->healed |= k.healing;
    if (f->key >= 0 && answered_again(f, r))
        return;
    if (f->seq == 0 && (f->key < 0 || key[f->key].tries == 1) && r->first <= f->floor)
        violate(k.w, "order", "ticket %" PRIu64 " is given after %" PRIu64, r->first, f->floor);
    for (uint64_t i = r->first; i <= last && i < NUMBERS; i++) {
        if (given[f->seq][i])
            violate(k.w, "ticket", "%s %" PRIu64 " was given twice", seq_name[f->seq], i);
        given[f->seq][i] = 1;
    }
    if (f->seq == 0 && last > highest)
        highest = last;
    k.w->ids += r->count;
    sometimes.rm_tickets += r->count;
}

static void done(void *user, struct job *j)
{
    struct firnd *f = user;
    if (!j || j->next || j != &f->job || !f->busy)
        violate(k.w, "once", "a job is answered that was not asked for");
    f->busy = false;
    trace(k.w, "firnd %u: %s: %d, %" PRIu64, f->machine, seq_name[f->seq], j->result,
          j->result ? 0 : j->range.first);
    if (j->result == 0 && !f->stale)
        answered(f, &j->range);
}

static void other(void *user, struct job *j)
{
    (void)user, (void)j;
    abort(); /* nothing else is asked for */
}

static int create(void *user, const char *name, size_t len, const struct seq_spec *spec,
                  struct seq_record *out, struct firn_diag *d)
{
    struct firnd *f = user;
    int r = serve_may_create(&f->serve, d);
    return r ? r : ticket_create(&f->tickets, name, len, spec, out, d);
}

static bool make_sequences(struct firnd *f)
{
    for (unsigned i = 0; i < SEQS; i++) {
        struct seq_spec spec = { .mode = i == 0 ? SEQ_GAPLESS : SEQ_RANGE };
        int r = create(f, seq_name[i], strlen(seq_name[i]), &spec, NULL, NULL);
        if (r != 0 && r != FIRN_ECONFLICT)
            return false;
    }
    return true;
}

/* A key stands for one request. */
static void add_key(struct firnd *f, struct job *j)
{
    key[f->key].tries++;
    j->want = (uint64_t)f->key % 3 + 1;
    j->keyed = &f->keyed;
    f->keyed = (struct keyed){ .ask = { .args = j->want, .want = j->want } };
    f->keyed.ask.key.b[0] = (uint8_t)f->key;
    f->keyed.ask.key.b[15] = 1;
}

static struct job *next_job(struct firnd *f)
{
    struct job *j = &f->job;
    if (f->busy || !f->made)
        return NULL;
    f->key = rand_chance(&k.rng, 25) ? (int)rand_below(&k.rng, KEYS) : -1;
    f->seq = f->key >= 0 ? (unsigned)f->key % SEQS : rand_chance(&k.rng, 70) ? 0 : 1;
    f->floor = highest;
    f->stale = false;
    *j = (struct job){ .what = JOB_TAKE, .name_len = strlen(seq_name[f->seq]) };
    memcpy(j->name, seq_name[f->seq], j->name_len + 1);
    j->want = rand_below(&k.rng, 3) + 1;
    if (f->key >= 0)
        add_key(f, j);
    j->deadline_ms = UINT64_MAX;
    f->busy = true;
    return j;
}

/* ---- life ---- */

static bool open_firnd(struct firnd *f)
{
    struct lease_world lw = {
        .user = f, .read_clock = read_clock, .random = random_bytes, .sleep_ms = sleep_ms
    };
    struct lease_params lp = { .layout = "time:41@1ms,node:10,seq:12;epoch=1600000000000",
                               .epoch_ms = UINT64_C(1000) * EPOCH_S,
                               .tick_ms = 1,
                               .ts_bits = 41,
                               .slots = 8,
                               .name = "n",
                               .window_ms = 1000,
                               .skew_max_ms = 3000,
                               .init = true,
                               .fresh = true };
    struct group_rules rules = { .wait_ms = UINT64_MAX / 2, .retention_s = 86400 };
    struct firn_diag d = { 0 };
    if (client_store(&f->store) != 0)
        return false;
    if (lease_open(&f->lease, f->store, &lp, &lw, &d) != 0) {
        violate(k.w, "open", "lease_open: %s", d.text);
        return false;
    }
    f->table = tickets_table_new(8);
    if (!f->table)
        abort();
    tickets_init_table(&f->tickets, f->store, f->table, random_bytes, f);
    group_init(&f->group, f->table, &rules);
    f->serve = (struct serve){ .lease = &f->lease,
                               .tickets = &f->tickets,
                               .group = &f->group,
                               .last = last_stamped,
                               .retention_s = 86400 };
    f->serve.world = (struct group_world){
        .user = f, .now = now_of, .done = done, .other = other, .create = create
    };
    return true;
}

void firnd_main(unsigned n)
{
    struct firnd *f = &firnd[n];
    struct job *again = NULL;
    while (!open_firnd(f))
        k_client_sleep(100);
    for (;;) {
        struct clock_reading c;
        read_clock(f, &c);
        uint64_t ms = (uint64_t)(c.mono / MS);
        bool ready = ms >= f->serve.retry_ms;
        struct job *jobs = !ready ? NULL : again ? again : next_job(f);
        struct job *left = serve_turn(&f->serve, jobs);
        again = jobs ? left : again;
        if (!f->made && f->lease.view.gate == LEASE_GATE_OPEN)
            f->made = make_sequences(f);
        stamp(f);
        k_client_sleep(rand_between(&k.rng, 1, k.c.think_us / 500));
        if (k.main.committed > INDEX_MAX / 2) /* a world has so many entries */
            k_client_sleep(f->healed || k.main.committed > INDEX_MAX / 4 * 3 ? 20000 : 1000);
    }
}

void firnd_died(unsigned n)
{
    sometimes.rm_fenced += firnd[n].lease.view.fences;
    firn_store_close(firnd[n].store);
    free(firnd[n].table);
    bool healed = firnd[n].healed;
    memset(&firnd[n], 0, sizeof firnd[n]);
    firnd[n].machine = n;
    firnd[n].healed = healed;
}

void firnds_reset(void)
{
    memset(given, 0, sizeof given);
    memset(key, 0, sizeof key);
    memset(stamped, 0, sizeof stamped);
    highest = stamps = 0;
    for (unsigned n = 0; n < FIRNDS; n++)
        firnd_died(n), firnd[n].healed = false;
}

void firnds_era(void)
{
    memset(given, 0, sizeof given);
    for (unsigned n = 0; n < KEYS; n++) /* the cluster may know them, and what they stand for */
        key[n].range.count = 0;
    highest = 0;
    for (unsigned n = 0; n < FIRNDS; n++) {
        firnd[n].stale |= firnd[n].busy;
        firnd[n].floor = 0;
        firnd[n].healed = firnd[n].stamped = false;
    }
}

bool firnd_healed(unsigned machine)
{
    const struct firnd *f = &firnd[machine < FIRNDS ? machine : 0];
    bool fenced = k.disaster.over &&
                  !k.disaster.averted; /* then its slot has to be above all that was stamped */
    return machine >= FIRNDS || (f->healed && (f->stamped || !fenced));
}
