/*
 * Worlds of tickets (docs/protocol.md section 8): nodes take numbers from a gapless and a range
 * sequence, on the same store with the same faults. Never a number twice. The gapless one has no
 * hole but for numbers that a process had in hand when it died, which are counted; and a request
 * made after a number was given gets a higher one.
 */
#include "world.h"

#include <inttypes.h>
#include <stdlib.h>

enum { SEQ_G, SEQ_R, SEQS, WRITES_MAX = 4096 };

static const char *const seq_name[SEQS] = { "orders", "blocks" };

struct write { /* one write that landed on the gapless sequence */
    uint64_t first, count;
    uint64_t boot, serial;
    int proc;
    bool answered;
};

struct ticket_truth {
    size_t writes;
    struct write write[WRITES_MAX];
    uint64_t next;    /* of the gapless sequence, as the store has it */
    uint64_t highest; /* of those handed out */
};

void tickets_reset(struct world *w)
{
    static struct ticket_truth truth; /* one world at a time */
    truth.writes = 0;
    truth.next = 1;
    truth.highest = 0;
    w->ticket = &truth;
}

static struct seen_id *place(struct world *w, int seq, uint64_t number)
{
    uint64_t id = (uint64_t)seq << 60 | number;
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
                *place(w, (int)(old[i].id >> 60), old[i].id & (UINT64_MAX >> 4)) = old[i];
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

/* Gapless numbers: how they come, and in what order. */
static void hand_gapless(struct world *w, struct proc *p, uint64_t asked_after,
                         const struct seq_range *r)
{
    struct ticket_truth *t = w->ticket;
    if (r->first <= asked_after)
        violate(w, "tickets", "orders %" PRIu64 " from proc %d, asked for after %" PRIu64, r->first,
                p->id, asked_after);
    for (size_t i = 0; i < t->writes && r->first < t->highest; i++)
        sometimes.ticket_late += t->write[i].first == r->first && !t->write[i].answered;
    if (seq_range_last(r) > t->highest)
        t->highest = seq_range_last(r);
    sometimes.ticket_gapless++;
}

static void hand(struct world *w, struct proc *p, int seq, const struct seq_range *r)
{
    for (uint64_t i = 0; i < r->count; i++) {
        uint64_t number = r->first + i * r->step;
        struct seen_id *s = place(w, seq, number);
        if (s->proc >= 0)
            violate(w, "tickets", "%s %" PRIu64 " from proc %d and proc %d", seq_name[seq], number,
                    s->proc, p->id);
        s->proc = p->id;
        w->ids++;
        sometimes.ticket_numbers++;
        fold(w, number);
    }
    trace(w, "%s: %" PRIu64 " to %" PRIu64 " handed out by proc %d", seq_name[seq], r->first,
          seq_range_last(r), p->id);
    sometimes.ticket_range += seq == SEQ_R;
}

void tickets_wrote(struct world *w, struct msg *m, struct change *c)
{
    struct seq_record old, r;
    struct ticket_truth *t = w->ticket;
    if (c->applied == 0 || c->result != 0 || !c->value || !c->old || c->key_len != 10 ||
        memcmp(c->key, "seq/orders", 10) != 0)
        return;
    if (seq_parse(c->old->p, c->old->len, &old, NULL) != 0 ||
        seq_parse(c->value->p, c->value->len, &r, NULL) != 0 || t->writes == WRITES_MAX)
        return;
    if (old.next != t->next)
        violate(w, "tickets", "a write took from %" PRIu64 ", next was %" PRIu64, old.next,
                t->next);
    t->next = r.next;
    trace(w, "orders: %" PRIu64 " to %" PRIu64 " written by proc %d%s", old.next, r.next - 1,
          m->proc, m->reply_after < 0 ? ", answer lost" : "");
    t->write[t->writes++] = (struct write){ old.next,   r.next - old.next, m->boot,
                                            c->applied, m->proc,           false };
}

void tickets_answered(struct world *w, struct msg *m)
{
    struct ticket_truth *t = w->ticket;
    for (size_t i = 0; i < m->count; i++) {
        sometimes.ticket_conflict += m->change[i].result == FIRN_ECONFLICT;
        for (size_t k = t->writes; k > 0 && m->change[i].applied; k--)
            if (t->write[k - 1].serial == m->change[i].applied)
                t->write[k - 1].answered = m->result == 0;
    }
}

static void nap(struct region *r, int64_t ms)
{
    struct proc *p = resident(r);
    post(r->world, r->world->now + ms * MS, EV_WAKE, p->id, ++p->token, NULL);
    co_wait(r);
}

static void make_sequences(struct region *r)
{
    struct tickets *t = &r->image->tickets;
    for (int i = 0; i < SEQS; i++) {
        struct seq_spec spec = { .mode = i == SEQ_G ? SEQ_GAPLESS : SEQ_RANGE };
        for (;;) {
            int e = ticket_create(t, seq_name[i], strlen(seq_name[i]), &spec, NULL, NULL);
            if (e == 0 || e == FIRN_ECONFLICT)
                break;
            nap(r, 200);
        }
    }
}

void tickets_main(struct region *r)
{
    struct world *w = r->world;
    struct tickets *t = &r->image->tickets;
    struct seq_cache cache;
    uint64_t waited = 0,
             floor = 0; /* numbers of the gapless one that could not be had; handed before */
    if (tickets_init(t, &r->image->handle.base, region_random, r) != 0)
        abort();
    seq_cache_init(&cache);
    make_sequences(r);
    for (;; nap(r, rand_between(&resident(r)->rng, 20, 1500))) {
        if (w->draining)
            continue;
        struct ticket_job job[SEQS];
        struct seq_range got;
        size_t n = 0;
        uint64_t *rng = &resident(r)->rng;
        uint64_t now_ms = (uint64_t)(w->now / MS);
        int of[SEQS];
        if (waited > 0 || rand_chance(rng, 70)) {
            if (waited == 0)
                floor = w->ticket->highest;
            job[n] = (struct ticket_job){ .name = seq_name[SEQ_G],
                                          .name_len = strlen(seq_name[SEQ_G]),
                                          .want = waited ? waited : rand_below(rng, 5) + 1,
                                          .waited = waited,
                                          .once = rand_chance(rng, 50) };
            of[n++] = SEQ_G;
        }
        while (rand_chance(rng, 60) &&
               seq_cache_some(&cache, rand_below(rng, 40) + 1, now_ms, &got) == 0)
            hand(w, resident(r), SEQ_R, &got);
        uint64_t want = seq_cache_ask(&cache);
        if (want > 0) {
            job[n] = (struct ticket_job){ .name = seq_name[SEQ_R],
                                          .name_len = strlen(seq_name[SEQ_R]),
                                          .want = want,
                                          .waited = want };
            of[n++] = SEQ_R;
        }
        if (n > 0)
            ticket_commit(t, job, n, NULL);
        for (size_t i = 0; i < n; i++) {
            if (job[i].result != 0) {
                if (of[i] == SEQ_R)
                    seq_cache_failed(&cache);
                else
                    waited = job[i].want;
            } else if (of[i] == SEQ_G) {
                hand_gapless(w, resident(r), floor, &job[i].range);
                hand(w, resident(r), SEQ_G, &job[i].range);
                waited = 0;
            } else {
                seq_cache_put(&cache, &job[i].range, (uint64_t)(w->now / MS));
            }
        }
    }
}

void tickets_healed(struct world *w)
{
    const struct ticket_truth *t = w->ticket;
    for (size_t i = 0; i < t->writes && !w->failed; i++) {
        const struct write *x = &t->write[i];
        uint64_t missing = 0;
        for (uint64_t k = 0; k < x->count; k++)
            missing += place(w, SEQ_G, x->first + k)->proc < 0;
        sometimes.ticket_adopted += !x->answered && missing == 0;
        if (missing == 0)
            continue;
        const struct proc *p = &w->proc[x->proc];
        bool crashed = !p->up || p->boot != x->boot;
        if (crashed)
            sometimes.ticket_lost_crash += missing;
        else
            violate(w, "tickets", "orders %" PRIu64 " and on: %" PRIu64 " numbers are lost",
                    x->first, missing);
    }
}
