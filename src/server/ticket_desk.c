/*
 * Tickets as one loop sees them. A sequence is unknown at first: its request goes to the coordinator,
 * whose answer says whether it is gapless (then every request goes there) or a range (then blocks
 * are fetched ahead and requests are answered from them at once). Dated sequences change their
 * register with the period, so they always go to the coordinator.
 */
#include "server/minter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Open sequences of one loop; the one unused longest makes room, and the rest of its block is lost: a
 * gap, as range sequences may have. */
enum { OPEN_MAX = 64 };

struct fetch { /* a block under way */
    struct job job;
    struct ticket_desk *desk;
    size_t index;
    uint64_t serial; /* of the entry that asked: it may have been evicted since */
};

struct entry {
    char name[RECORD_NAME_MAX + 1];
    size_t name_len; /* 0: free */
    uint64_t used_ms, serial;
    struct seq_cache cache;
    struct ticket_wait *waiting, **waiting_tail; /* for the block under way */
    struct fetch *fetch;                         /* not NULL while one is under way */
    struct seq_record record;
};

struct ticket_desk {
    struct coordinator *coordinator;
    struct outbox *back;
    struct job *first, **tail, *last; /* to be submitted at the end of the turn */
    struct entry entry[OPEN_MAX];
    uint64_t serials, now_ms;
};

static void add_job(struct ticket_desk *d, struct job *j)
{
    j->back = d->back;
    j->next = NULL;
    *d->tail = j;
    d->tail = &j->next;
    d->last = j;
}

void ticket_submit(struct ticket_desk *d, struct job *j)
{
    add_job(d, j);
}

void ticket_desk_turn(struct ticket_desk *d)
{
    if (!d->first)
        return;
    struct job *first = d->first, *last = d->last;
    d->first = NULL;
    d->tail = &d->first;
    coordinator_submit(d->coordinator, first, last);
}

static struct entry *find(struct ticket_desk *d, const char *name, size_t len)
{
    for (size_t i = 0; i < OPEN_MAX; i++)
        if (d->entry[i].name_len == len && memcmp(d->entry[i].name, name, len) == 0)
            return &d->entry[i];
    return NULL;
}

static struct entry *open_entry(struct ticket_desk *d, const struct job *j)
{
    struct entry *e = NULL;
    for (size_t i = 0; i < OPEN_MAX; i++) {
        struct entry *c = &d->entry[i];
        if (c->fetch)
            continue; /* somebody waits there */
        if (c->name_len == 0 || !e || c->used_ms < e->used_ms)
            e = c;
        if (c->name_len == 0)
            break;
    }
    if (!e)
        return NULL;
    *e = (struct entry){ .name_len = j->name_len, .serial = ++d->serials, .record = j->record };
    memcpy(e->name, j->name, j->name_len);
    e->waiting_tail = &e->waiting;
    seq_cache_init(&e->cache);
    return e;
}

static int serve(struct entry *e, struct ticket_wait *w, uint64_t now_ms)
{
    int r = w->exact ? seq_cache_exactly(&e->cache, w->job.want, now_ms, &w->job.range)
                     : seq_cache_some(&e->cache, w->job.want, now_ms, &w->job.range);
    if (r == 0) {
        w->job.result = 0;
        w->job.record = e->record;
        e->used_ms = now_ms;
    }
    return r;
}

static void fetched(struct job *j);

/* Ask for the next block if it is time. False: no memory, and nobody will call fetched(). */
static bool fetch_ahead(struct ticket_desk *d, struct entry *e)
{
    uint64_t want = e->fetch ? 0 : seq_cache_ask(&e->cache);
    if (want == 0)
        return true;
    struct fetch *f = calloc(1, sizeof *f);
    if (!f) {
        seq_cache_failed(&e->cache);
        return false;
    }
    f->desk = d;
    f->index = (size_t)(e - d->entry);
    f->serial = e->serial;
    f->job.what = JOB_TAKE;
    f->job.done = fetched;
    f->job.want = want;
    f->job.name_len = e->name_len;
    memcpy(f->job.name, e->name, e->name_len + 1);
    e->fetch = f;
    add_job(d, &f->job);
    return true;
}

static void fail(struct ticket_wait *w, const struct job *j, int error)
{
    w->job.result = error;
    w->job.diag = j->diag;
    w->done(w);
}

static void fetched(struct job *j)
{
    struct fetch *f = (struct fetch *)(void *)j;
    struct ticket_desk *d = f->desk;
    struct entry *e = &d->entry[f->index];
    e->fetch = NULL;
    if (j->result == 0)
        seq_cache_put(&e->cache, &j->range, d->now_ms);
    else
        seq_cache_failed(&e->cache);
    struct ticket_wait *w = e->waiting;
    e->waiting = NULL;
    e->waiting_tail = &e->waiting;
    while (w) {
        struct ticket_wait *next = (struct ticket_wait *)(void *)w->job.next;
        int r = serve(e, w, d->now_ms);
        if (r == 0) {
            w->done(w);
        } else if (j->result) {
            fail(w, j, j->result);
        } else { /* the block was too short for all that waited: the next one is asked for below */
            w->job.next = NULL;
            *e->waiting_tail = w;
            e->waiting_tail = (struct ticket_wait **)(void *)&w->job.next;
        }
        w = next;
    }
    free(f);
    if (!fetch_ahead(d, e) && e->waiting) {
        struct job none = { .diag = { 0, "out of memory" } };
        for (w = e->waiting, e->waiting = NULL, e->waiting_tail = &e->waiting; w;) {
            struct ticket_wait *next = (struct ticket_wait *)(void *)w->job.next;
            fail(w, &none, FIRN_ENOMEM);
            w = next;
        }
    }
    ticket_desk_turn(d);
}

/* The coordinator's answer to a single request: remember a range sequence for the next one. */
static void answered(struct job *j)
{
    struct ticket_wait *w = (struct ticket_wait *)(void *)j;
    struct ticket_desk *d = j->user;
    if (j->result == 0 && j->record.mode == SEQ_RANGE && j->period == 0 &&
        !find(d, j->name, j->name_len))
        open_entry(d, j);
    if (j->result == 0 && w->exact && j->range.count < j->want) {
        j->result = FIRN_EOVERFLOW;
        snprintf(j->diag.text, sizeof j->diag.text,
                 "the sequence has fewer numbers left than were asked for");
    }
    w->done(w);
}

int ticket_take(struct ticket_desk *d, struct ticket_wait *w, uint64_t now_ms)
{
    d->now_ms = now_ms;
    w->job.what = JOB_TAKE;
    struct entry *e = find(d, w->job.name, w->job.name_len);
    if (!e) {
        w->job.done = answered;
        w->job.user = d;
        add_job(d, &w->job);
        return FIRN_EAGAIN;
    }
    int r = e->waiting ? FIRN_EAGAIN : serve(e, w, now_ms); /* nobody overtakes those who wait */
    bool asked = fetch_ahead(d, e);
    if (r != FIRN_EAGAIN)
        return r;
    if (!asked || !e->fetch)
        return FIRN_ENOMEM;
    w->job.next = NULL;
    *e->waiting_tail = w;
    e->waiting_tail = (struct ticket_wait **)(void *)&w->job.next;
    return FIRN_EAGAIN;
}

int ticket_desk_new(struct coordinator *c, struct outbox *back, struct ticket_desk **out)
{
    struct ticket_desk *d = calloc(1, sizeof *d);
    if (!d)
        return FIRN_ENOMEM;
    d->coordinator = c;
    d->back = back;
    d->tail = &d->first;
    *out = d;
    return 0;
}

void ticket_desk_free(struct ticket_desk *d)
{
    free(d);
}
