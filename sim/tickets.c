/*
 * Worlds of tickets (docs/protocol.md section 8): clients ask nodes for numbers of gapless, range
 * and dated sequences, with and without keys. Each node is firnd's own ticket path: a table of
 * sequences, numbers in hand, jobs, drive/group.c on the simulated store, and the lease whose gate
 * says whether the store may be used, in the turns of drive/serve.c.
 *
 * The rules: no number twice; a key has one answer; a request made after a number was answered gets
 * a higher one (gapless: of any node; range: of the same node); a gapless sequence has no hole but
 * for numbers that a process had when it died, which are counted; a halted node gives none; after
 * healing every request is answered. What the store forgot may come again, and is counted.
 */
#include "world.h"
#include "mutant.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    SEQ_G, /* gapless */
    SEQ_R, /* range */
    SEQ_D, /* dated */
    SEQ_S, /* gapless with a step and an end */
    SEQ_M, /* and more, so that the table of sequences is too small */
    SEQS = SEQ_M + 6,
    NUMBERS_MAX = 1 << 14, /* of a gapless sequence, as far as holes are looked for */
    REQUESTS_MAX = 512,
    KEYS_MAX = 256,
    TABLE_MAX = 6,
    PERIODS_PER_RUN = 3, /* days go by faster than seconds */
    RETENTION_S = 2 * 86400,
};

static const char *const seq_name[SEQS] = { "orders", "blocks", "daily", "short", "m0",
                                            "m1",     "m2",     "m3",    "m4",    "m5" };

struct answer_of_key { /* what a client was told, or may be told */
    bool answered;
    struct seq_range range;
    uint32_t period;
    int seq;
    uint64_t want;
    uint32_t tries;
    int64_t born; /* true time */
};

struct request { /* of a client */
    struct job job;
    struct keyed keyed;
    bool busy;
    int seq, proc, key; /* key -1: none */
    uint64_t boot;
    uint64_t floor, own_floor; /* numbers that were answered before it was made */
    uint64_t losses;
};

struct number {    /* of a gapless sequence, as the store has it */
    uint64_t boot; /* of the process whose write took it */
    int16_t proc;
    bool taken, handed, keyed;
    bool unanswered; /* the answer to that write was lost */
};

struct seq_truth {
    uint64_t next, top;              /* as the store has it; the highest that it ever was */
    uint64_t highest;                /* of those handed out */
    uint64_t forgot_from, forgot_to; /* what the store forgot: it may come again */
    struct number number[NUMBERS_MAX];
};

struct ticket_truth {
    struct seq_truth seq[SEQS];
    struct request request[REQUESTS_MAX];
    struct answer_of_key key[KEYS_MAX];
    size_t keys;
    uint64_t losses; /* of the store */
    int64_t lost_at; /* when it last was */
    bool evicts, impatient;
    bool wobbles;      /* the time of day goes back at times, although F does not */
    int64_t days_from; /* the run's first second */
};

/* A node's tickets, outside its image: worlds of tickets know no clones. */
struct ticket_node {
    struct group_commit group;
    struct serve serve;
    struct job_list inbox;
    uint64_t highest_own; /* range numbers that it has answered */
    uint32_t period;      /* the latest of its dated answers without a key */
    bool idle;
    struct seq_table *table;
};

void tickets_reset(struct world *w)
{
    static struct ticket_truth truth; /* one world at a time */
    struct ticket_truth *t = &truth;
    uint64_t r = rand_split(w->config->seed, 20);
    memset(t, 0, sizeof *t);
    for (int i = 0; i < SEQS; i++) {
        t->seq[i].next = t->seq[i].top = 1;
        t->seq[i].forgot_from = UINT64_MAX;
    }
    t->evicts = rand_chance(&r, 40);
    t->impatient = rand_chance(&r, 30);
    t->wobbles = rand_chance(&r, 20) && !t->evicts; /* a replaced entry forgets its period */
    t->days_from = w->config->start_ns / SECOND;
    w->ticket = t;
}

/* ---- what was given ---- */

/* Sequence, period and number in one. */
static uint64_t id_of(int seq, uint32_t period, uint64_t number)
{
    return (uint64_t)seq << 58 | (uint64_t)(period % 100000) << 40 | number;
}

static struct seen_id *place(struct world *w, uint64_t id)
{
    if (w->id_count * 2 >= w->id_room) {
        struct seen_id *old = w->id;
        size_t room = w->id_room;
        w->id_room = room ? room * 2 : 1 << 14;
        w->id = calloc(w->id_room, sizeof *w->id);
        if (!w->id)
            abort();
        w->id_count = 0;
        for (size_t i = 0; i < room; i++)
            if (old[i].epoch == w->id_epoch)
                *place(w, old[i].id) = old[i];
        free(old);
    }
    size_t k = rand_mix(id) & (w->id_room - 1);
    while (w->id[k].epoch == w->id_epoch && w->id[k].id != id)
        k = (k + 1) & (w->id_room - 1);
    if (w->id[k].epoch != w->id_epoch) {
        w->id[k] = (struct seen_id){ .id = id, .proc = -1, .epoch = w->id_epoch };
        w->id_count++;
    }
    return &w->id[k];
}

static struct number *number_of(struct ticket_truth *t, int seq, uint64_t number)
{
    uint64_t i = seq == SEQ_S ? number / 3 : number;
    bool tracked = seq != SEQ_R && seq != SEQ_D && i < NUMBERS_MAX;
    return tracked ? &t->seq[seq].number[i] : NULL;
}

static bool forgot(const struct ticket_truth *t, int seq, uint64_t number)
{
    return number >= t->seq[seq].forgot_from && number < t->seq[seq].forgot_to;
}

static void hand(struct world *w, const struct proc *p, int seq, uint32_t period,
                 const struct seq_range *r)
{
    struct ticket_truth *t = w->ticket;
    for (uint64_t i = 0; i < r->count; i++) {
        uint64_t number = r->first + i * r->step;
        struct seen_id *s = place(w, id_of(seq, period, number));
        struct number *n = number_of(t, seq, number);
        if (s->proc >= 0 && !forgot(t, seq, number))
            violate(w, "twice", "%s %u %" PRIu64 " from proc %d and proc %d", seq_name[seq], period,
                    number, s->proc, p->id);
        sometimes.ticket_forgotten += s->proc >= 0;
        s->proc = p->id;
        if (n) {
            sometimes.ticket_adopted += n->unanswered;
            n->handed = true;
        }
        w->ids++;
        sometimes.ticket_numbers++;
        fold(w, number);
    }
    if (seq_range_last(r) > t->seq[seq].highest)
        t->seq[seq].highest = seq_range_last(r);
    trace(w, "%s: %" PRIu64 " to %" PRIu64 " handed out by proc %d", seq_name[seq], r->first,
          seq_range_last(r), p->id);
    sometimes.ticket_range += seq == SEQ_R;
    sometimes.ticket_gapless += seq == SEQ_G;
    sometimes.ticket_dated += seq == SEQ_D;
}

static int64_t days_speed(const struct world *w)
{
    return PERIODS_PER_RUN * 86400 / (w->config->duration_ns / SECOND);
}

/* So much of a key's retention may be over, whatever clock tells it. */
static bool forgettable(const struct world *w, const struct answer_of_key *k, int64_t percent)
{
    return (w->now - k->born) / SECOND * days_speed(w) > RETENTION_S * percent / 100;
}

/* A client got numbers. */
static void answer(struct world *w, struct proc *p, struct request *q, const struct seq_range *r,
                   uint32_t period)
{
    struct ticket_truth *t = w->ticket;
    struct ticket_node *n = image_of(w, p)->tk;
    const struct lease_view *v = &image_of(w, p)->lease.view;
    struct answer_of_key *k = q->key >= 0 ? &t->key[q->key] : NULL;
    if (v->gate == LEASE_GATE_SHUT)
        violate(w, "halted", "proc %d gave %s %" PRIu64 " although it is halted", p->id,
                seq_name[q->seq], r->first);
    if (r->count == 0 || r->count > q->job.want ||
        (r->count < q->job.want && !q->job.partial && !k))
        violate(w, "count", "%s: %" PRIu64 " numbers instead of %" PRIu64, seq_name[q->seq],
                r->count, q->job.want);
    bool same = k && k->answered && k->range.first == r->first && k->range.count == r->count &&
                k->period == period;
    if (same || (k && k->answered && q->losses == t->losses && !forgettable(w, k, 75))) {
        if (!same)
            violate(w, "key", "key %d stands for %" PRIu64 " and for %" PRIu64, q->key,
                    k->range.first, r->first);
        sometimes.ticket_replayed++;
        return;
    }
    bool first = (!k || k->tries == 1) && q->losses == t->losses && q->seq != SEQ_D;
    uint64_t floor = q->seq == SEQ_R ? q->own_floor : q->floor;
    if (first && r->first <= floor && !forgot(t, q->seq, r->first))
        violate(w, "order", "%s %" PRIu64 " from proc %d, asked for after %" PRIu64,
                seq_name[q->seq], r->first, p->id, floor);
    const struct number *x = number_of(t, q->seq, r->first);
    sometimes.ticket_late += x && x->taken && r->first < t->seq[q->seq].highest && !k;
    if (q->seq == SEQ_D && !k && period < n->period)
        violate(w, "period", "%s went back from %u to %u at proc %d", seq_name[q->seq], n->period,
                period, p->id);
    if (!k && period > n->period)
        n->period = period;
    hand(w, p, q->seq, period, r);
    if (q->seq == SEQ_R && !k && seq_range_last(r) > n->highest_own) /* a key's may be another's */
        n->highest_own = seq_range_last(r);
    if (!k)
        return;
    k->answered = true;
    k->range = *r;
    k->period = period;
}

/* ---- what was written ---- */

static int seq_of(const char *key, size_t len)
{
    for (int i = 0; i < SEQS; i++)
        if (len == 4 + strlen(seq_name[i]) && memcmp(key, "seq/", 4) == 0 &&
            memcmp(key + 4, seq_name[i], len - 4) == 0)
            return i;
    return -1;
}

static void mark(struct world *w, const struct msg *m, int seq, const struct seq_record *old,
                 const struct seq_record *r, const struct seq_keys *keys)
{
    struct ticket_truth *t = w->ticket;
    struct number *n;
    for (uint64_t x = r->next; x < old->next && (n = number_of(t, seq, x)); x += r->step)
        n->taken = false; /* given back */
    for (uint64_t x = old->next; x < r->next && (n = number_of(t, seq, x)); x += r->step)
        *n = (struct number){
            m->boot, (int16_t)m->proc, true, n->handed, false, m->reply_after < 0
        };
    for (uint32_t i = 0; i < keys->n; i++)
        for (uint64_t k = 0; k < keys->key[i].count; k++)
            if ((n = number_of(t, seq, keys->key[i].first + k * r->step)))
                n->keyed = true;
}

void tickets_wrote(struct world *w, struct msg *m, struct change *c)
{
    struct seq_record old, r;
    struct seq_keys keys;
    struct ticket_truth *t = w->ticket;
    int seq = seq_of(c->key, c->key_len);
    if (c->applied == 0 || c->result != 0 || seq < 0 || !c->value ||
        seq_parse_keyed(c->value->p, c->value->len, &r, &keys, NULL) != 0)
        return;
    const struct cell *meta = store_find(w, META_KEY, META_KEY_LEN);
    /* A file without records is new. Its first process makes them once it knows the time; sequences
     * need no clock. */
    struct proc *p = &w->proc[m->proc];
    bool fresh = w->config->embedded && p->up && p->boot == m->boot && !image_of(w, p)->lease.born_;
    bool looked = m->meta_at != 0 && t->lost_at >= m->meta_at; /* the store was wiped since */
    if (!c->old && (!meta || !store_now(meta)) && !looked && !fresh)
        violate(w, "begins", "%s begins in a store that has no records", seq_name[seq]);
    if (c->old && seq_parse(c->old->p, c->old->len, &old, NULL) == 0) {
        if (old.next != t->seq[seq].next)
            violate(w, "chain", "a write of %s took from %" PRIu64 ", next was %" PRIu64,
                    seq_name[seq], old.next, t->seq[seq].next);
        mark(w, m, seq, &old, &r, &keys);
        trace(w, "%s: next %" PRIu64 " to %" PRIu64 " written by proc %d%s", seq_name[seq],
              old.next, r.next, m->proc, m->reply_after < 0 ? ", answer lost" : "");
        sometimes.ticket_given_back += r.next < old.next && w->proc[m->proc].leaving;
    }
    t->seq[seq].next = r.next;
    if (r.next > t->seq[seq].top)
        t->seq[seq].top = r.next;
}

void tickets_answered(struct world *w, struct msg *m)
{
    (void)w;
    for (size_t i = 0; i < m->count; i++)
        sometimes.ticket_conflict += m->change[i].result == FIRN_ECONFLICT;
}

/* The store went back, or is empty: what it forgot may come again. */
void tickets_lost(struct world *w)
{
    struct ticket_truth *t = w->ticket;
    t->losses++;
    t->lost_at = w->now;
    sometimes.ticket_store_lost++;
    for (int i = 0; i < SEQS; i++) {
        char key[RECORD_KEY_BUF];
        struct seq_record r = { .next = 1 };
        struct cell *c = store_find(w, key, seq_key(seq_name[i], strlen(seq_name[i]), key));
        if (c && store_now(c) && seq_parse(store_now(c)->p, store_now(c)->len, &r, NULL) != 0)
            r.next = 1;
        t->seq[i].next = r.next;
        if (r.next < t->seq[i].forgot_from)
            t->seq[i].forgot_from = r.next;
        t->seq[i].forgot_to = t->seq[i].top;
    }
    t->seq[SEQ_D].forgot_from = 0;
    t->seq[SEQ_D].forgot_to = UINT64_MAX;
    for (size_t i = 0; i < t->keys; i++)
        t->key[i].tries = UINT32_MAX / 2; /* they may be forgotten, too: not asked for again */
}

/* ---- clients ---- */

static struct request *spare_request(struct ticket_truth *t)
{
    for (int i = 0; i < REQUESTS_MAX; i++)
        if (!t->request[i].busy)
            return &t->request[i];
    return NULL;
}

static bool asked_enough(const struct world *w, const struct answer_of_key *k)
{
    return k->tries >= 8 || w->config->wild_clocks || forgettable(w, k, 60);
}

/* A key that was used before, or a new one. */
static int pick_key(struct world *w, uint64_t *rng, int seq)
{
    struct ticket_truth *t = w->ticket;
    if (t->keys > 0 && rand_chance(rng, 50)) {
        size_t k = rand_below(rng, t->keys), i = 0;
        while (i < t->keys && (t->key[k].seq != seq || asked_enough(w, &t->key[k]))) {
            k = (k + 1) % t->keys;
            i++;
        }
        return i < t->keys ? (int)k : -1;
    }
    if (t->keys == KEYS_MAX)
        return -1;
    int k = (int)t->keys++;
    t->key[k] = (struct answer_of_key){ .seq = seq, .born = w->now };
    t->key[k].want = rand_below(rng, 3) + 1;
    return k;
}

static void submit(struct ticket_node *n, struct request *q)
{
    struct job *j = &q->job;
    j->taken = j->tried = false;
    job_append(&n->inbox, j);
}

static void fetch_ahead(struct world *w, struct proc *p, struct ticket_node *n, int seq)
{
    struct request *q = spare_request(w->ticket);
    if (!q)
        return;
    *q = (struct request){ .busy = true, .seq = seq, .proc = p->id, .boot = p->boot, .key = -1 };
    q->job.what = JOB_FETCH;
    q->job.name_len = strlen(seq_name[seq]);
    memcpy(q->job.name, seq_name[seq], q->job.name_len + 1);
    q->job.deadline_ms = UINT64_MAX;
    submit(n, q);
}

static int pick_sequence(const struct ticket_truth *t, uint64_t *rng)
{
    static const uint8_t mix[] = { SEQ_G, SEQ_G, SEQ_G, SEQ_R, SEQ_R, SEQ_D, SEQ_D, SEQ_S };
    int seq = mix[rand_below(rng, sizeof mix)];
    return t->evicts && rand_chance(rng, 40) ? SEQ_M + (int)rand_below(rng, SEQS - SEQ_M) : seq;
}

static void ask(struct world *w, struct proc *p, struct ticket_node *n, int seq, uint64_t now_ms)
{
    struct ticket_truth *t = w->ticket;
    uint64_t *rng = &p->rng;
    struct request *q = spare_request(t);
    if (!q)
        return;
    *q = (struct request){ .busy = true, .seq = seq, .proc = p->id, .boot = p->boot, .key = -1 };
    q->floor = t->seq[seq].highest;
    q->own_floor = n->highest_own;
    q->losses = t->losses;
    if (rand_chance(rng, 25))
        q->key = pick_key(w, rng, seq);
    struct job *j = &q->job;
    j->what = JOB_TAKE;
    j->name_len = strlen(seq_name[seq]);
    memcpy(j->name, seq_name[seq], j->name_len + 1);
    j->want = seq == SEQ_R ? rand_below(rng, 40) + 1 : rand_below(rng, 4) + 1;
    j->partial = rand_chance(rng, 30);
    j->deadline_ms = t->impatient ? now_ms + 3000 : UINT64_MAX;
    if (q->key >= 0) {
        struct answer_of_key *k = &t->key[q->key];
        k->tries++;
        j->want = k->want;
        j->keyed = &q->keyed;
        q->keyed.ask = (struct seq_ask){ .args = k->want, .want = k->want, .partial = true };
        memcpy(q->keyed.ask.key.b, &q->key, sizeof q->key);
        q->keyed.ask.key.b[15] = 1;
    }
    struct seq_range got;
    bool fetch = false;
    enum seq_hand hand = q->key >= 0 ? SEQ_HAND_UNKNOWN
                                     : seq_table_take(n->table, j->name, j->name_len, j->want,
                                                      false, now_ms, &got, NULL, &fetch);
    if (fetch)
        fetch_ahead(w, p, n, seq);
    if (hand == SEQ_HAND_TAKEN) {
        answer(w, p, q, &got, 0);
        q->busy = false;
        return;
    }
    submit(n, q);
}

static uint64_t mono_ms_of(const struct world *w, const struct proc *p)
{
    struct clock_reading c;
    clock_read(w, p, &c);
    return (uint64_t)c.mono / (uint64_t)MS;
}

/* A turn of the node's loops: some requests arrive at once. */
void tickets_ask(struct world *w, struct proc *p)
{
    struct ticket_node *n = image_of(w, p)->tk;
    if (!n || w->draining || p->leaving)
        return;
    uint64_t now_ms = mono_ms_of(w, p);
    for (uint64_t i = rand_below(&p->rng, 4) + 1; i > 0 && !w->failed; i--)
        ask(w, p, n, pick_sequence(w->ticket, &p->rng), now_ms);
    if (n->inbox.first && n->idle)
        proc_kick(w, p);
}

/* A client that waits for its answer asks again as soon as it has it. */
static void ask_again(struct world *w, struct proc *p, int seq)
{
    struct ticket_node *n = image_of(w, p)->tk;
    if (!w->draining && !w->failed && !p->leaving && rand_chance(&p->rng, 10))
        ask(w, p, n, seq, mono_ms_of(w, p));
}

/* ---- a node ---- */

static void node_now(void *user, struct group_now *out)
{
    struct region *r = user;
    struct world *w = r->world;
    const struct image *m = r->image;
    struct clock_reading c;
    clock_read(w, resident(r), &c);
    serve_now(&m->lease, c.mono, out);
    /* Days go by so fast that the run has some midnights. */
    int64_t f = out->s, from = w->ticket->days_from;
    out->s = f > from / 2 ? from + (f - from) * days_speed(w) : f;
    if (w->ticket->wobbles && rand_chance(&resident(r)->rng, 20))
        out->s -= rand_between(&resident(r)->rng, 0, 3600);
    if (out->s < 0)
        out->s = 0;
}

static void node_done(void *user, struct job *j)
{
    struct region *r = user;
    struct world *w = r->world;
    while (j) {
        struct job *next = j->next;
        struct request *q = (struct request *)(void *)j;
        if (!q->busy)
            violate(w, "once", "a job was answered twice");
        q->busy = false;
        if (j->result == 0 && j->what == JOB_TAKE) {
            answer(w, resident(r), q, &j->range, j->period);
            ask_again(w, resident(r), q->seq);
        } else if (j->result == FIRN_EREUSED)
            violate(w, "key", "key %d was refused", q->key);
        sometimes.ticket_ended += j->result == FIRN_EOVERFLOW;
        sometimes.ticket_refused += j->result == FIRN_ESTORE;
        j = next;
    }
}

static void node_other(void *user, struct job *j)
{
    (void)user, (void)j;
    abort(); /* no such job is asked for here */
}

static int node_create(void *user, const char *name, size_t len, const struct seq_spec *spec,
                       struct seq_record *out, struct firn_diag *d)
{
    struct region *r = user;
    int e = serve_may_create(&r->image->tk->serve, d);
    return e ? e : ticket_create(&r->image->tickets, name, len, spec, out, d);
}

static void node_publish(void *user)
{
    struct image *m = ((struct region *)user)->image;
    m->view = m->lease.view;
}

/* All sequences, made by whichever node comes first. */
static bool make_sequences(struct region *r)
{
    struct tickets *t = &r->image->tickets;
    for (int i = 0; i < SEQS; i++) {
        struct seq_spec spec = { .mode = i == SEQ_R ? SEQ_RANGE : SEQ_GAPLESS };
        struct seq_record there;
        if (i == SEQ_D)
            spec.note = "dated:day:6";
        if (i == SEQ_S)
            spec = (struct seq_spec){ .step = 3, .offset = 1, .max = 120 };
        int e = ticket_describe(t, seq_name[i], strlen(seq_name[i]), &there, NULL);
        if (e == FIRN_ENOENT)
            e = node_create(r, seq_name[i], strlen(seq_name[i]), &spec, NULL, NULL);
        if (e != 0 && e != FIRN_ECONFLICT)
            return false;
    }
    return true;
}

static struct ticket_node *node_new(struct region *r)
{
    struct world *w = r->world;
    struct ticket_node *n = calloc(1, sizeof *n);
    if (!n || !(n->table = tickets_table_new(w->ticket->evicts ? TABLE_MAX : 16)))
        abort();
    struct group_rules rules = { .wait_ms = w->ticket->impatient ? 3000 : UINT64_MAX / 2,
                                 .retention_s = RETENTION_S };
    group_init(&n->group, n->table, &rules);
    job_list_init(&n->inbox);
    tickets_init_table(&r->image->tickets, &r->image->handle.base, n->table, region_random, r);
    n->serve = (struct serve){ .lease = &r->image->lease,
                               .tickets = &r->image->tickets,
                               .group = &n->group,
                               .publish = node_publish,
                               .retention_s = RETENTION_S };
    n->serve.world = (struct group_world){
        .user = r, .now = node_now, .done = node_done, .other = node_other, .create = node_create
    };
    r->image->tk = n;
    return n;
}

/* Its clients' connections end. */
static void drop_requests(struct world *w, const struct proc *p)
{
    for (int i = 0; i < REQUESTS_MAX; i++) {
        struct request *q = &w->ticket->request[i];
        if (q->busy && q->proc == p->id)
            q->busy = false;
    }
}

/* The process is gone, as by kill -9. */
void tickets_end(struct world *w, struct proc *p)
{
    struct ticket_node *n = p->region->image->tk;
    if (!n)
        return;
    drop_requests(w, p);
    free(n->table);
    free(n);
    p->region->image->tk = NULL;
}

static void wait_until(struct region *r, uint64_t ms)
{
    struct world *w = r->world;
    struct proc *p = resident(r);
    int64_t wait = ((int64_t)ms - (int64_t)mono_ms_of(w, p)) * MS;
    struct ticket_node *n = r->image->tk;
    n->idle = true;
    post(w, w->now + (wait > MS ? wait : MS), EV_WAKE, p->id, ++p->token, NULL);
    co_wait(r);
    n->idle = false;
}

/* As server/coordinator.c: a turn whenever jobs came or something is due. */
void tickets_main(struct region *r)
{
    struct world *w = r->world;
    struct image *m = r->image;
    struct ticket_node *n = node_new(r);
    bool made = false;
    while (!m->release) {
        bool ready = mono_ms_of(w, resident(r)) >= n->serve.retry_ms;
        job_prepend_all(&n->inbox, serve_turn(&n->serve, ready ? job_take_all(&n->inbox) : NULL));
        if (!made && m->lease.view.gate == LEASE_GATE_OPEN && !m->release)
            made = make_sequences(r);
        if (m->release)
            break;
        uint64_t next = made ? UINT64_MAX : mono_ms_of(w, resident(r)) + 200;
        if (n->inbox.first)
            next = n->serve.retry_ms;
        wait_until(r, next < n->serve.due_ms ? next : n->serve.due_ms);
    }
    drop_requests(w, resident(r));
    job_list_init(&n->inbox);
    (void)serve_end(&n->serve, UINT64_MAX);
    int released = lease_release(&m->lease, 0, 2000);
    trace(w, "proc %d released: %s", resident(r)->id, firn_error_name(released));
    resident(r)->ended = true;
}

/* ---- the end ---- */

/* Numbers in hand of nodes that live are not lost. */
static void mark_left(struct world *w)
{
    for (int i = 0; i < w->procs; i++) {
        struct ticket_node *n = w->proc[i].up ? image_of(w, &w->proc[i])->tk : NULL;
        for (size_t k = 0; n && k < n->table->count; k++) {
            const struct seq_entry *e = &n->table->entry[k];
            char key[RECORD_KEY_BUF];
            int seq = e->name_len ? seq_of(key, seq_key(e->name, e->name_len, key)) : -1;
            for (uint64_t x = 0; seq >= 0 && x < e->left.count; x++) {
                struct number *m = number_of(w->ticket, seq, e->left.first + x * e->left.step);
                if (m)
                    m->handed = true;
            }
        }
    }
}

void tickets_healed(struct world *w)
{
    struct ticket_truth *t = w->ticket;
    for (int i = 0; i < REQUESTS_MAX && t->losses == 0; i++)
        if (t->request[i].busy && t->request[i].job.what == JOB_TAKE) {
            violate(w, "answered", "a request for %s at proc %d was never answered",
                    seq_name[t->request[i].seq], t->request[i].proc);
            return;
        }
    if (t->losses > 0 || t->evicts || t->impatient)
        return; /* holes are possible then */
    mark_left(w);
    for (int seq = 0; seq < SEQS; seq++)
        for (uint64_t x = 0; x < NUMBERS_MAX && !w->failed; x++) {
            const struct number *n = &t->seq[seq].number[x];
            if (!n->taken || n->handed || n->keyed)
                continue;
            const struct proc *p = &w->proc[n->proc];
            if (!p->up || p->boot != n->boot)
                sometimes.ticket_lost_crash++;
            else
                violate(w, "hole", "%s %" PRIu64 " is lost", seq_name[seq],
                        seq == SEQ_S ? x * 3 + 1 : x);
        }
}
