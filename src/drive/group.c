/* The steps of coord/group.h as calls on a store. Tests: tests/unit/server/group_commit.c; the
 * simulator runs it with faults. */
#include "drive/group.h"
#include "coord/mutant.h"
#include "platform/assert.h"

static const struct nonce none;

static void tell(struct group_commit *g, const struct group_world *w)
{
    if (g->noted.set && w->note)
        w->note(w->user, &g->noted);
    g->noted.set = 0;
    if (g->done.first)
        w->done(w->user, job_take_all(&g->done));
}

static void locked(struct group_commit *g, const struct group_world *w)
{
    if (w->lock)
        w->lock(w->user);
    group_locked(g);
    if (w->unlock)
        w->unlock(w->user);
}

static void commit(struct group_commit *g, struct tickets *t)
{
    t->now_s = g->now_s;
    ticket_commit(t, g->ticket, g->n, &g->diag);
    group_committed(g);
}

static void keep(struct group_commit *g, struct tickets *t)
{
    for (size_t i = 0; i < g->keep_n; i++) {
        struct nonce *req = &g->keep[i]->idem.req;
        if (nonce_eq(req, &none))
            t->random(t->random_user, req->b, sizeof req->b);
    }
    keyed_keep(t->store, g->keep, g->keep_n, &g->diag);
    group_kept(g);
}

struct job *group_serve(struct group_commit *g, struct tickets *t, const struct group_world *w,
                        struct job *first)
{
    struct seq_record record;
    struct idem_record kept;
    struct group_now now;
    int r;
    group_run(g, first);
    for (;;) {
        w->now(w->user, &now);
        enum group_do what = group_next(g, &now);
        if (what == GROUP_LOCKED) {
            if (FIRN_MUTANT(tk_told_early))
                tell(g, w);
            locked(g, w);
            continue; /* jobs are handed back only after the table has the rest of their grant */
        }
        tell(g, w);
        switch (what) {
        case GROUP_LOCKED:
            break;
        case GROUP_DESCRIBE:
            r = ticket_describe(t, g->name, g->name_len, &record, &g->diag);
            group_described(g, r, &record);
            break;
        case GROUP_CREATE:
            r = w->create ? w->create(w->user, g->name, g->name_len, &g->spec, &record, &g->diag)
                          : ticket_create(t, g->name, g->name_len, &g->spec, &record, &g->diag);
            group_created(g, r, &record);
            break;
        case GROUP_FLUSH:
            group_flushed(g, ticket_flush(t, g->name, g->name_len, g->since_s, &g->diag));
            break;
        case GROUP_READ_KEY:
            r = keyed_read(t->store, g->key, &kept, &g->diag);
            group_key_read(g, r, &kept);
            break;
        case GROUP_COMMIT:
            commit(g, t);
            break;
        case GROUP_KEEP:
            keep(g, t);
            break;
        case GROUP_OTHER:
            w->other(w->user, g->job);
            break;
        case GROUP_DONE:
            return job_take_all(&g->again);
        }
    }
}
