/*
 * A small world from a seed: several coordinators over one store, clients that ask again and again
 * for the same keys. The store loses requests and answers, applies requests late or twice, and
 * while one coordinator waits for it the others go on; coordinators die in the middle of a commit,
 * or after it with the answers unsent, and start anew knowing nothing.
 * Never: two answers for one key, a number for two. With keys alone also never a hole: when all is
 * well again, and every client has got its answer, the numbers of the keys are all that were given.
 */
#include "t.h"

#include "drive/ticket.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    NODES = 3,
    KEYS = 48,
    SEQS = 2,
    LATE_MAX = 8,
    BATCH_MAX = 24,
    NUMBERS = 4096,
    DEPTH_MAX = 3
};

struct late { /* a request whose sender no longer waits */
    bool used, removes;
    size_t n;
    struct firn_cas cas[32];
    char text[32][3][RECORD_TEXT_MAX];
};

struct client { /* of one key */
    struct nonce key;
    uint64_t want;
    size_t seq;
    bool asked, answered;
    struct seq_range got;
    uint64_t period;
};

struct world_node {
    struct tickets tickets;
    bool busy; /* inside a commit, further up the stack */
    bool dead; /* its process has died: nothing that it does happens any more */
};

static struct world {
    struct firn_store base;
    struct firn_store *inner;
    bool many;   /* the store has transactions */
    bool plain;  /* some requests have no key */
    bool healed; /* no faults any more */
    unsigned fault_percent;
    int depth, active;
    struct late late[LATE_MAX];
    struct world_node node[NODES];
    struct client client[KEYS];
    uint16_t owner[SEQS][NUMBERS]; /* key + 1, or PLAIN */
    uint64_t answers, replays, conflicts, crashes, landed_late, burned;
} w;

enum { PLAIN = 10000 };

static bool chance(unsigned percent)
{
    return t_random_below(100) < percent;
}

static void commit_somewhere(void);

/* --- the store --- */

static void land(struct late *l)
{
    int result[32];
    l->used = chance(20); /* and again, later */
    T_EQ(firn_store_cas_many(w.inner, l->cas, l->n, result, NULL), 0);
    for (size_t i = 0; i < l->n; i++)
        w.landed_late += result[i] == 0;
}

static void keep_late(const struct firn_cas *want, size_t n)
{
    struct late *l = &w.late[t_random_below(LATE_MAX)];
    l->used = true;
    l->n = n < 32 ? n : 0;
    for (size_t i = 0; i < l->n; i++) {
        const struct firn_slice *from[3] = { &want[i].key, &want[i].old, &want[i].value };
        struct firn_slice *to[3] = { &l->cas[i].key, &l->cas[i].old, &l->cas[i].value };
        for (int k = 0; k < 3; k++) {
            *to[k] = *from[k];
            if (!from[k]->p)
                continue;
            memcpy(l->text[i][k], from[k]->p, from[k]->len);
            to[k]->p = l->text[i][k];
        }
    }
}

/* Time passes while somebody waits for the store. */
static void meanwhile(void)
{
    if (w.healed)
        return;
    if (chance(10) && w.late[t_random_below(LATE_MAX)].used)
        for (size_t i = 0; i < LATE_MAX; i++)
            if (w.late[i].used && chance(50))
                land(&w.late[i]);
    if (w.depth < DEPTH_MAX && chance(15)) {
        int active = w.active;
        commit_somewhere();
        w.active = active;
    }
    if (w.active >= 0 && chance(1)) {
        w.node[w.active].dead = true;
        w.crashes++;
    }
}

static int sim_read(struct firn_store *s, struct firn_slice key, bool fresh,
                    struct firn_record *out, struct firn_diag *d)
{
    (void)s;
    meanwhile();
    if (w.node[w.active].dead || (!w.healed && chance(w.fault_percent / 4)))
        return FIRN_EIO;
    int r = firn_store_read(w.inner, key, fresh, out, d);
    meanwhile(); /* before the answer is used */
    return w.node[w.active].dead ? FIRN_EIO : r;
}

static int sim_write(const struct firn_cas *want, size_t n, int *result)
{
    meanwhile();
    if (w.node[w.active].dead)
        return FIRN_EUNKNOWN;
    if (!w.healed && chance(w.fault_percent)) {
        switch (t_random_below(4)) {
        case 0:
            return FIRN_EIO;
        case 1:
            return FIRN_EUNKNOWN;
        case 2:
            keep_late(want, n);
            return FIRN_EUNKNOWN;
        case 3:
            T_EQ(firn_store_cas_many(w.inner, want, n, result, NULL), 0);
            if (chance(30))
                keep_late(want, n); /* the network repeats it */
            meanwhile();
            return FIRN_EUNKNOWN;
        }
    }
    T_EQ(firn_store_cas_many(w.inner, want, n, result, NULL), 0);
    for (size_t i = 0; i < n; i++)
        w.conflicts += result[i] == FIRN_ECONFLICT;
    meanwhile();
    return w.node[w.active].dead ? FIRN_EUNKNOWN : 0;
}

static int sim_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    int result, r = sim_write(want, 1, &result);
    (void)s;
    (void)d;
    return r ? r : result;
}

static int sim_cas_many(struct firn_store *s, const struct firn_cas *want, size_t n, int *result,
                        struct firn_diag *d)
{
    (void)s;
    (void)d;
    return sim_write(want, n, result);
}

static const struct firn_store_ops many_ops = { .size = sizeof many_ops,
                                                .scheme = "sim",
                                                .read = sim_read,
                                                .cas = sim_cas,
                                                .cas_many = sim_cas_many };
static const struct firn_store_ops single_ops = {
    .size = sizeof single_ops, .scheme = "sim", .read = sim_read, .cas = sim_cas
};

static void random_bytes(void *user, void *out, size_t len)
{
    (void)user;
    t_random_bytes(out, len);
}

/* --- clients --- */

static const char *const seq_names[SEQS] = { "a", "b" };

static void own(size_t seq, const struct seq_range *r, uint16_t who)
{
    for (uint64_t i = 0; i < r->count; i++) {
        uint64_t n = r->first + i * r->step;
        if (n >= NUMBERS)
            continue;
        T_OK(w.owner[seq][n] == 0 || (w.owner[seq][n] == who && who != PLAIN),
             "%s %llu is for %u and %u", seq_names[seq], (unsigned long long)n, w.owner[seq][n],
             who);
        w.owner[seq][n] = who;
    }
}

static void answer(struct client *c, const struct keyed *k)
{
    struct seq_range got = { k->idem.first, k->idem.step, k->idem.count };
    w.answers++;
    w.replays += k->replayed;
    T_EQ(got.count, c->want);
    if (c->answered)
        T_OK(got.first == c->got.first && k->idem.period == c->period,
             "key %zu has %llu of %llu and %llu of %llu", (size_t)(c - w.client),
             (unsigned long long)c->got.first, (unsigned long long)c->period,
             (unsigned long long)got.first, (unsigned long long)k->idem.period);
    c->answered = true;
    c->got = got;
    c->period = k->idem.period;
}

static void restart(struct world_node *n)
{
    tickets_done(&n->tickets);
    T_EQ(tickets_init(&n->tickets, &w.base, random_bytes, NULL), 0);
    n->dead = false;
}

/* One commit of a coordinator that is not in one, on one or both sequences. */
static void commit_somewhere(void)
{
    size_t who = t_random_below(NODES);
    struct world_node *n = &w.node[who];
    struct keyed keyed[SEQS][BATCH_MAX], *list[SEQS][BATCH_MAX];
    size_t client[SEQS][BATCH_MAX];
    struct ticket_job job[SEQS];
    if (n->busy)
        return;
    n->busy = true;
    w.active = (int)who;
    w.depth++;
    for (size_t s = 0; s < SEQS; s++) {
        job[s] = (struct ticket_job){ .name = seq_names[s], .name_len = 1, .keyed = list[s] };
        job[s].want = w.plain && chance(40) ? 1 + t_random_below(3) : 0;
        size_t most = 1 + t_random_below(w.healed ? BATCH_MAX : BATCH_MAX / 4);
        for (size_t i = 0; i < most; i++) {
            size_t c = t_random_below(KEYS);
            if (w.client[c].seq != s || (w.healed && !w.client[c].asked))
                continue;
            struct keyed *k = &keyed[s][job[s].keyed_n];
            *k = (struct keyed){
                .ask = { .key = w.client[c].key, .args = c, .want = w.client[c].want }
            };
            w.client[c].asked = true;
            client[s][job[s].keyed_n] = c;
            list[s][job[s].keyed_n++] = k;
        }
    }
    n->tickets.now_s = 1700000000;
    ticket_commit(&n->tickets, job, SEQS, NULL);
    bool unsent = n->dead || (!w.healed && chance(5));
    for (size_t s = 0; s < SEQS; s++) {
        if (!unsent && job[s].want > 0 && job[s].result == 0)
            own(s, &job[s].range, PLAIN);
        for (size_t i = 0; i < job[s].keyed_n; i++) {
            T_OK(keyed[s][i].result != FIRN_EREUSED);
            if (unsent || keyed[s][i].result != 0)
                continue;
            struct client *c = &w.client[client[s][i]];
            answer(c, &keyed[s][i]);
            own(s, &c->got, (uint16_t)(client[s][i] + 1));
        }
    }
    if (unsent)
        restart(n);
    w.depth--;
    n->busy = false;
}

static void begin(void)
{
    memset(&w, 0, sizeof w);
    w.many = t_random_below(2);
    w.plain = t_random_below(2);
    w.fault_percent = (unsigned)t_random_below(30);
    w.base.ops = w.many ? &many_ops : &single_ops;
    w.active = 0;
    T_EQ(firn_store_memory_new(&w.inner), 0);
    for (size_t i = 0; i < NODES; i++)
        T_EQ(tickets_init(&w.node[i].tickets, &w.base, random_bytes, NULL), 0);
    w.healed = true;
    for (size_t s = 0; s < SEQS; s++)
        T_EQ(
            ticket_create(&w.node[0].tickets, seq_names[s], 1, &(struct seq_spec){ 0 }, NULL, NULL),
            0);
    w.healed = false;
    for (size_t i = 0; i < KEYS; i++) {
        t_random_bytes(w.client[i].key.b, sizeof w.client[i].key.b);
        w.client[i].seq = t_random_below(SEQS);
        w.client[i].want = 1 + t_random_below(3);
    }
}

static void finish(void)
{
    for (size_t i = 0; i < NODES; i++)
        tickets_done(&w.node[i].tickets);
    firn_store_close(w.inner);
}

static bool all_answered(void)
{
    for (size_t i = 0; i < KEYS; i++)
        if (w.client[i].asked && !w.client[i].answered)
            return false;
    return true;
}

T_TEST(keyed_one_number_no_hole)
{
    uint64_t answers = 0, replays = 0, conflicts = 0, crashes = 0, late = 0;
    for (uint64_t run = 0; run < t_scale(400); run++) {
        begin();
        for (int i = 0; i < 120; i++)
            commit_somewhere();
        w.healed = true;
        for (size_t i = 0; i < LATE_MAX; i++)
            if (w.late[i].used)
                land(&w.late[i]);
        for (int i = 0; i < 2000 && !all_answered(); i++)
            commit_somewhere();
        T_OK(all_answered());
        for (size_t s = 0; s < SEQS && !w.plain; s++) {
            struct seq_record r;
            T_EQ(ticket_describe(&w.node[0].tickets, seq_names[s], 1, &r, NULL), 0);
            for (uint64_t n = 1; n < r.next; n++)
                T_OK(w.owner[s][n] != 0, "%s %llu of %llu is a hole", seq_names[s],
                     (unsigned long long)n, (unsigned long long)r.next);
        }
        answers += w.answers;
        replays += w.replays;
        conflicts += w.conflicts;
        crashes += w.crashes;
        late += w.landed_late;
        finish();
    }
    /* Everything that is to be survived did happen. */
    T_OK(answers > t_scale(10000) && replays > t_scale(1000) && conflicts > t_scale(1000) &&
             crashes > t_scale(1000) && late > t_scale(100),
         "%llu answers, %llu replays, %llu conflicts, %llu crashes, %llu late",
         (unsigned long long)answers, (unsigned long long)replays, (unsigned long long)conflicts,
         (unsigned long long)crashes, (unsigned long long)late);
}

/* --- first the ID, then the register: IDs, and dated sequences, whose records change at midnight
 * --- */

static uint64_t minted;

/* A request for a key as the coordinator serves it: on the record of the period that this node's
 * clock shows, then kept before anybody hears of it. */
static int ask_dated(struct world_node *n, struct keyed *k, uint32_t period)
{
    char name[16];
    struct keyed *const list[1] = { k };
    int r = 0;
    for (uint32_t p = 1; p < period && r == 0; p++) {
        int len = snprintf(name, sizeof name, "d%c%u", RECORD_INNER, p);
        r = ticket_flush(&n->tickets, name, (size_t)len, 0, NULL);
    }
    if (r)
        return r;
    struct ticket_job job = { .name = name, .keyed = list, .keyed_n = 1 };
    job.name_len = (size_t)snprintf(name, sizeof name, "d%c%u", RECORD_INNER, period);
    ticket_commit(&n->tickets, &job, 1, NULL);
    if (k->result == 0 && !k->kept)
        keyed_keep(&w.base, list, 1, NULL);
    return k->result;
}

static int ask_minted(struct keyed *k)
{
    struct keyed *const list[1] = { k };
    if (k->idem.count == 0) {
        k->idem = (struct idem_record){ .args = k->ask.args, .count = 1, .at = 1 };
        k->idem.first = ++minted;
        k->idem.step = 1;
        t_random_bytes(k->idem.req.b, sizeof k->idem.req.b);
    }
    keyed_keep(&w.base, list, 1, NULL);
    return k->result;
}

static void one_answer(bool dated)
{
    static uint16_t owner[8][NUMBERS];
    uint64_t answers = 0, replays = 0;
    for (uint64_t run = 0; run < t_scale(300); run++) {
        begin();
        w.depth = DEPTH_MAX; /* no other server commits: the requests here take turns */
        memset(owner, 0, sizeof owner);
        minted = 0;
        w.healed = true;
        for (uint32_t p = 1; p <= 4 && dated; p++) {
            char name[16];
            int len = snprintf(name, sizeof name, "d%c%u", RECORD_INNER, p);
            T_EQ(ticket_create(&w.node[0].tickets, name, (size_t)len, &(struct seq_spec){ 0 }, NULL,
                               NULL),
                 0);
        }
        for (int i = 0; i < 600; i++) {
            size_t c = t_random_below(KEYS), who = t_random_below(NODES);
            struct world_node *n = &w.node[who];
            w.healed = i >= 500;
            w.active = (int)who;
            w.client[c].want = 1;
            struct keyed k = { .ask = { .key = w.client[c].key, .args = c, .want = 1 } };
            uint32_t midnight = 1 + (uint32_t)i / 150;
            uint32_t period = midnight + (chance(20) && midnight < 4); /* clocks differ */
            n->tickets.now_s = 1700000000;
            int r = FIRN_EIO;
            for (int tries = 0; tries < 3 && r != 0 && !n->dead; tries++)
                r = dated ? ask_dated(n, &k, period) : ask_minted(&k);
            T_OK(r != FIRN_EREUSED);
            if (r == 0 && !n->dead) {
                answer(&w.client[c], &k);
                uint16_t *o = &owner[k.idem.period][k.idem.first];
                T_OK(*o == 0 || *o == c + 1);
                *o = (uint16_t)(c + 1);
            }
            if (n->dead || (!w.healed && chance(5)))
                restart(n);
        }
        answers += w.answers;
        replays += w.replays;
        finish();
    }
    T_OK(answers > t_scale(10000) && replays > t_scale(1000));
}

T_TEST(keyed_dated_one_answer)
{
    one_answer(true);
}

T_TEST(keyed_minted_one_answer)
{
    one_answer(false);
}

/* Only what is too old goes, little by little, and all of it. */
T_TEST(keyed_sweep_bounded)
{
    begin();
    w.healed = true;
    size_t old = 0, removed = 0;
    for (size_t i = 0; i < 3000; i++) {
        struct keyed k = { .idem = { .step = 1, .count = 1, .at = 1000 + i } };
        struct keyed *const list[1] = { &k };
        t_random_bytes(k.ask.key.b, sizeof k.ask.key.b);
        k.ask.key.b[0] %= 4; /* full parts */
        keyed_keep(&w.base, list, 1, NULL);
        T_EQ(k.result, 0);
        old += k.idem.at < 2500;
    }
    for (uint32_t part = 0; part < KEYED_PARTS; part++)
        for (bool more = true; more;) {
            size_t n = 0;
            T_EQ(keyed_sweep(w.inner, part, 2500, &n, &more, NULL), 0);
            T_OK(n <= KEYED_SWEEP_MAX && (more || n > 0 || part >= 4 || removed > 0));
            removed += n;
        }
    T_EQ(removed, old);
    size_t n;
    bool more;
    for (uint32_t part = 0; part < KEYED_PARTS; part++) {
        T_EQ(keyed_sweep(w.inner, part, 2500, &n, &more, NULL), 0);
        T_OK(n == 0 && !more);
    }
    finish();
}
