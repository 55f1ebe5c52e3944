/*
 * The commit of a group (group.h): serve from blocks in hand, build the tickets, share out what
 * they gave, keep keys. Tested by tests/unit/coord/group.c.
 */
#include "coord/group_in.h"
#include "coord/mutant.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>

static const struct firn_diag others_were_faster = {
    .text =
        "other servers keep winning the writes of this sequence: send its requests to one server"
};

enum group_do group_at_hand(struct group_commit *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->group_[i].seq->ahead)
            return ask(g, AT_BUILD, GROUP_LOCKED);
    return go(g, AT_BUILD);
}

/* A block may have arrived since these jobs were sent: jobs that it serves need no commit, and a
 * block is not fetched twice. In order: behind a job that waits, later ones wait. */
static void serve_from_hand(struct group_commit *g, struct group *p)
{
    struct seq_entry *e = p->seq;
    struct job *next = job_take_all(&p->plain);
    bool waits = false;
    for (struct job *j = next; j; j = next) {
        next = j->next;
        if (j->what == JOB_TAKE && !waits &&
            seq_cache_exactly(&e->cache, j->want, g->now_.ms, &j->range) == 0) {
            firn_assert(j->range.count == j->want, "count=%" PRIu64 " want=%" PRIu64,
                        j->range.count, j->want);
            (void)seq_cache_ask(&e->cache); /* noted as `asked` */
            j->record = e->record;
            j->result = 0;
            group_deliver(g, j);
            continue;
        }
        waits |= j->what == JOB_TAKE;
        job_append(&p->plain, j);
    }
    p->open = waits || e->cache.asked;
    p->block = e->cache.want;
    if (p->open)
        return;
    for (struct job *j = job_take_all(&p->plain); j; j = next) { /* fetches that came too late */
        next = j->next;
        group_job_done(g, j, 0);
    }
}

void group_serve_from_hand(struct group_commit *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->group_[i].seq->ahead)
            serve_from_hand(g, &g->group_[i]);
}

/* Lists move with their group: an empty one points into it. */
static void move_group(struct group *to, struct group *from)
{
    if (to == from)
        return;
    struct job *plain = from->plain.first, *keyed = from->keyed.first;
    *to = *from;
    job_list_init(&to->plain);
    job_list_init(&to->keyed);
    job_append_all(&to->plain, plain);
    job_append_all(&to->keyed, keyed);
}

/* One group's part of the commit. */
static void build_ticket(struct group_commit *g, struct group *p, struct ticket_job *t,
                         size_t *keyed_n)
{
    *t = (struct ticket_job){ .name = p->reg->name,
                              .name_len = p->reg->name_len,
                              .once = !p->seq->ahead };
    bool waited = true;
    for (const struct job *j = p->plain.first; j; j = j->next) {
        waited &= j->tried;
        t->waited += waited ? j->want : 0;
        t->want += j->want;
    }
    t->keyed = g->keyed_ + *keyed_n;
    for (const struct job *j = p->keyed.first; j; j = j->next, t->keyed_n++)
        g->keyed_[(*keyed_n)++] = j->keyed;
    firn_assert(*keyed_n <= GROUP_KEYED_MAX, "keyed=%zu", *keyed_n);
    const struct job *front = p->plain.first; /* NULL: only keys */
    t->least = front && !front->partial ? front->want : 1;
    if (p->seq->ahead) {
        t->want += p->block < SEQ_TAKE_MAX - t->want ? p->block : SEQ_TAKE_MAX - t->want;
        t->waited = t->want; /* blocks come in any order */
    }
    firn_assert(t->waited <= t->want && (t->want > 0 || t->keyed_n > 0),
                "waited=%" PRIu64 " want=%" PRIu64, t->waited, t->want);
}

enum group_do group_at_build(struct group_commit *g)
{
    size_t open = 0, keyed_n = 0;
    for (size_t i = 0; i < g->n; i++)
        if (g->group_[i].open)
            move_group(&g->group_[open++], &g->group_[i]);
    g->n = open;
    if (g->n == 0)
        return go(g, AT_KEEP);
    for (size_t i = 0; i < g->n; i++)
        build_ticket(g, &g->group_[i], &g->ticket[i], &keyed_n);
    firn_assert(g->n <= TICKET_JOBS_MAX && keyed_n <= g->keyed_n_, "n=%zu keyed=%zu of %zu", g->n,
                keyed_n, g->keyed_n_);
    g->now_s = g->now_.s > 0 ? (uint64_t)g->now_.s : 0;
    return ask(g, AT_COMMITTED, GROUP_COMMIT);
}

/* Give each job its share of the grant, in order. The rest is settled before any job is answered: a
 * range sequence keeps it in hand, a gapless one for the next commit. Jobs that got nothing
 * although there is more go back. */
static void share_out(struct group_commit *g, struct group *p, const struct ticket_job *t)
{
    struct seq_range range = t->range;
    struct job *j = job_take_all(&p->plain), *next;
    uint64_t given = 0;
    for (; j; j = next) {
        next = j->next;
        uint64_t n = j->want <= range.count ? j->want : j->partial ? range.count : 0;
        if (n == 0 && j->what == JOB_TAKE && t->more)
            break; /* and all behind it, or they would overtake it */
        j->range = (struct seq_range){ range.first, range.step, n };
        j->record = p->seq->record;
        j->period = p->seq->period;
        j->more = t->more;
        firn_assert(n <= range.count && n <= j->want, "n=%" PRIu64 " left=%" PRIu64, n,
                    range.count);
        range.first += n * range.step;
        range.count -= n;
        given += n;
        g->counts.tickets += n;
        j->result = n || j->what == JOB_FETCH ? 0 : FIRN_EOVERFLOW;
        if (j->result)
            (void)firn__diag(&j->diag, j->result, 0, "sequence %s has %s", j->name,
                             range.count ? "fewer numbers left than that"
                                         : "reached its last number");
        group_deliver(g, j);
    }
    firn_assert(given + range.count == t->range.count,
                "given=%" PRIu64 " left=%" PRIu64 " granted=%" PRIu64, given, range.count,
                t->range.count);
    p->rest = range;
    p->taken = given > 0;
    if (!p->seq->ahead)
        seq_table_return(p->reg, range);
    group_put_back(g, j, FIRN_EAGAIN, &(struct firn_diag){ 0, "" });
}

/* The jobs without a key. True: another server's write came first. */
static bool share_plain(struct group_commit *g, struct group *p, const struct ticket_job *t)
{
    bool lost = t->result == FIRN_ECONFLICT;
    if (t->result == 0 || t->result == FIRN_EOVERFLOW) {
        group_recovered(g);
        share_out(g, p, t);
        return false;
    }
    if (!lost)
        group_note_failure(g, p->reg->name, t->result, g->diag.text);
    p->gone |= t->result == FIRN_ENOENT;
    for (struct job *j = p->plain.first; j; j = j->next)
        j->tried = true;
    group_put_back(g, job_take_all(&p->plain), t->result, lost ? &others_were_faster : &g->diag);
    return lost;
}

/* And those with one. */
static bool share_keyed(struct group_commit *g, struct group *p)
{
    bool lost = false;
    struct job *next;
    for (struct job *j = job_take_all(&p->keyed); j; j = next) {
        struct keyed *k = j->keyed;
        next = j->next;
        j->next = NULL;
        j->record = p->seq->record;
        if (k->result == 0) {
            group_recovered(g);
            firn_assert(k->idem.count > 0 && k->idem.count <= k->ask.want,
                        "count=%" PRIu64 " want=%" PRIu64, k->idem.count, k->ask.want);
            g->counts.tickets += k->replayed ? 0 : k->idem.count;
            if (p->seq->dated && !k->kept && !FIRN_MUTANT(tk_dated_not_kept))
                group_keep_later(g, j);
            else
                group_finish_keyed(g, j);
        } else if (k->result == FIRN_EREUSED) {
            group_refuse_reused(g, j);
        } else {
            const struct firn_diag *why = &g->diag;
            struct firn_diag few;
            if (k->result == FIRN_EOVERFLOW) {
                (void)firn__diag(&few, k->result, 0, "sequence %s has fewer numbers left than that",
                                 j->name);
                why = &few;
            } else if (k->result == FIRN_ECONFLICT) {
                lost = true;
                why = &others_were_faster;
            } else if (k->result != FIRN_EAGAIN) {
                group_note_failure(g, p->reg->name, k->result, g->diag.text);
            }
            p->gone |= k->result == FIRN_ENOENT;
            group_put_back(g, j, k->result, why);
        }
    }
    return lost;
}

enum group_do group_at_committed(struct group_commit *g)
{
    bool blocks = false;
    g->counts.commits++;
    for (size_t i = 0; i < g->n; i++) {
        struct group *p = &g->group_[i];
        p->rest = (struct seq_range){ 0 };
        p->taken = p->gone = false;
        /* In this order they go back, too: no job waits behind more keys than a commit takes. */
        bool lost = g->ticket[i].want > 0 && share_plain(g, p, &g->ticket[i]);
        lost |= share_keyed(g, p);
        g->lost_ |= lost;
        g->counts.conflicts += lost;
        blocks |= p->seq->ahead || p->gone;
    }
    return blocks ? ask(g, AT_PUT, GROUP_LOCKED) : go(g, AT_KEEP);
}

/* The rest of each range sequence's grant becomes its block in hand. */
void group_put_blocks(struct group_commit *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct group *p = &g->group_[i];
        if (p->seq->ahead)
            seq_table_put(p->seq, &p->rest, p->taken, g->now_.ms);
        if (p->gone)
            seq_table_forget(g->table_, p->seq->name, p->seq->name_len);
    }
    g->at_ = AT_KEEP;
}

/* ---- keys whose numbers or IDs are known: create their registers, then answer ---- */

enum group_do group_at_keep(struct group_commit *g)
{
    if (!g->keep_.first)
        return go(g, AT_CYCLE);
    struct job *j = job_take_all(&g->keep_);
    for (g->keep_n = 0; j && g->keep_n < KEYED_KEEP_MAX; g->keep_n++) {
        struct job *next = j->next;
        struct idem_record *i = &j->keyed->idem;
        g->keeping_[g->keep_n] = j;
        g->keep[g->keep_n] = j->keyed;
        if (i->at == 0) { /* else a list has it, or this is not the first try */
            i->at = (uint64_t)g->now_.s;
            i->req = (struct nonce){ { 0 } };
        }
        j = next;
    }
    job_append_all(&g->keep_, j);
    return ask(g, AT_KEPT, GROUP_KEEP);
}

enum group_do group_at_kept(struct group_commit *g)
{
    g->counts.commits++;
    for (size_t i = 0; i < g->keep_n; i++) {
        struct job *j = g->keeping_[i];
        int r = g->keep[i]->result;
        j->next = NULL;
        if (r == 0) {
            group_recovered(g);
            group_finish_keyed(g, j);
        } else if (r == FIRN_EREUSED) {
            group_refuse_reused(g, j);
        } else {
            if (r != FIRN_EAGAIN)
                group_note_failure(g, j->name, r, g->diag.text);
            group_put_back(g, j, r, &g->diag);
        }
    }
    return go(g, AT_KEEP);
}
