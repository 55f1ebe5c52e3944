/*
 * Runs INIT, recovery, FENCE and RETIRE (coord/survey.h) on a store.
 * Tests: tests/unit/drive/lease_shared.c; the simulator.
 */
#include "drive/setup.h"
#include "coord/mutant.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ROUNDS_MAX = 16 }; /* other processes may extend while we fence */

int setup_read_meta(struct firn_store *s, struct meta_record *out, struct firn_record *rec,
                    struct firn_diag *d)
{
    struct firn_record local;
    rec = rec ? rec : &local;
    int r = firn_store_read(s, firn_slice(META_KEY, META_KEY_LEN), true, rec, d);
    return r ? r : meta_parse(rec->value, rec->len, out, d);
}

static struct nonce draw(const struct setup *e)
{
    struct nonce n;
    e->random(e->user, n.b, sizeof n.b);
    return n;
}

static int add_one(void *user, struct firn_slice key, struct firn_slice value)
{
    survey_add(user, key, value);
    return 0;
}

/* All slots as a scan shows them. It may be stale: then the write conflicts, and the slot is read
 * again. survey_done() after 0. */
static int survey_init(struct slot_survey *w, const struct setup *e, uint32_t lo, uint32_t n,
                       struct firn_diag *d)
{
    *w = (struct slot_survey){ .lo = lo, .n = n, .slot = calloc(n, sizeof *w->slot) };
    if (!w->slot)
        return firn__diag(d, FIRN_ENOMEM, 0, "no memory for %u slots", n);
    int r = firn_store_scan(e->store, firn_slice("slot/", 5), add_one, w, d);
    if (r != 0)
        free(w->slot);
    return r;
}

static void survey_done(struct slot_survey *w)
{
    free(w->slot);
    w->slot = NULL;
}

static int read_slot(struct slot_survey *w, const struct setup *e, uint32_t i, struct firn_diag *d)
{
    struct firn_record rec;
    char key[RECORD_KEY_BUF];
    int r = firn_store_read(e->store, firn_slice(key, slot_key(w->lo + i, key)), true, &rec, d);
    if (r != 0 && r != FIRN_ENOENT)
        return r;
    return survey_set(w, i, rec.value, r ? 0 : rec.len, d);
}

/* One transaction where the engine has that, or side by side; one write after the other
 * elsewhere. */
static int write_some(struct firn_store *s, const struct firn_cas *cas, size_t n, int *result,
                      struct firn_diag *d)
{
    int r = firn_store_cas_many(s, cas, n, result, d);
    if (r != FIRN_ENOTSUP)
        return r;
    if (s->ops->cas_each) {
        r = s->ops->cas_each(s, cas, n, result, d);
        for (size_t i = 0; r == 0 && i < n; i++)
            r = result[i] == FIRN_ECONFLICT ? 0 : result[i];
        return r;
    }
    for (size_t i = 0; i < n; i++) {
        result[i] = firn_store_cas(s, &cas[i], d);
        if (result[i] != 0 && result[i] != FIRN_ECONFLICT)
            return result[i];
    }
    return 0;
}

/* Slots at .. at + n - 1 as the wish says; a slot that another process changed is read and tried
 * again. */
static int write_batch(struct slot_survey *w, const struct setup *e, uint32_t at, uint32_t n,
                       enum survey_wish wish, struct firn_diag *d)
{
    struct survey_batch b;
    int result[SURVEY_BATCH_MAX];
    survey_batch_init(&b, w, at, n, wish);
    for (int round = 0; round < ROUNDS_MAX; round++) {
        int r = 0;
        b.count = 0;
        for (uint32_t i = at; r == 0 && i < at + n; i++)
            if (survey_batch_wants(&b, i)) {
                struct nonce req = draw(e);
                r = survey_batch_add(&b, i, e->f, &req, d);
            }
        if (r != 0 || b.count == 0)
            return r;
        r = write_some(e->store, b.cas, b.count, result, d);
        for (size_t k = 0; r == 0 && k < b.count; k++)
            if (survey_batch_written(&b, k, result[k])) {
                r = read_slot(w, e, b.slot[k], d);
                survey_batch_reread(&b, k);
            }
        if (r != 0)
            return r;
    }
    return firn__diag(d, FIRN_EAGAIN, 0, "other processes keep writing: stop them, then try again");
}

static int write_all(struct slot_survey *w, const struct setup *e, enum survey_wish wish,
                     struct firn_diag *d)
{
    int r = 0;
    if (FIRN_MUTANT(no_fence) && wish != SURVEY_CREATE_ABSENT)
        return 0;
    for (uint32_t at = 0; r == 0 && at < w->n; at += SURVEY_BATCH_MAX)
        r = write_batch(w, e, at, w->n - at < SURVEY_BATCH_MAX ? w->n - at : SURVEY_BATCH_MAX, wish,
                        d);
    return r;
}

static int create_meta(const struct slot_survey *w, const struct setup *e,
                       const struct setup_spec *spec, struct firn_diag *d)
{
    struct meta_record m;
    struct nonce req = draw(e);
    char text[RECORD_TEXT_MAX];
    survey_meta(w, spec, &req, &m);
    int r = firn_store_identity(e->store, m.store_inc, d);
    if (r != 0)
        return r;
    struct firn_cas cas = { firn_slice(META_KEY, META_KEY_LEN), firn_slice(NULL, 0),
                            firn_slice(text, meta_encode(&m, text)) };
    r = firn_store_cas(e->store, &cas, d);
    return r != FIRN_ECONFLICT ? r : firn__diag(d, r, 0, "the store has its records already");
}

/* The process that creates the first slot names the cluster; a second one takes that name over. */
static int settle_cluster(struct slot_survey *w, const struct setup *e, struct firn_diag *d)
{
    struct slot_record s;
    int r = read_slot(w, e, 0, d);
    if (r == 0 && w->slot[0].len == 0)
        r = write_batch(w, e, 0, 1, SURVEY_CREATE_ABSENT, d);
    if (r == 0)
        r = read_slot(w, e, 0, d);
    if (r == 0 && w->slot[0].len == 0)
        r = firn__diag(d, FIRN_EAGAIN, 0, "the first slot's record vanished: try again");
    if (r == 0)
        r = survey_slot(w, 0, &s, d);
    if (r == 0)
        w->cluster = s.cluster;
    return r;
}

static int set_up(const struct setup *e, const struct setup_spec *spec, bool recover,
                  struct firn_diag *d)
{
    struct slot_survey w;
    struct meta_record m = { .window = spec->window,
                             .max_drift = spec->max_drift,
                             .skew_max = spec->skew_max };
    bool found, used;
    int r = setup_spec_check(spec, d);
    if (r == 0)
        r = survey_init(&w, e, spec->slot_lo, spec->slots, d);
    if (r != 0)
        return r;
    w.floor = spec->floor ? spec->floor : slot_fence_floor(&m, e->f, e->s);
    r = survey_cluster(&w, &found, &used, d);
    if (r == 0 && !found)
        w.cluster = draw(e);
    if (r == 0 && used && !recover)
        r = firn__diag(d, FIRN_ENOENT, 0,
                       "the store has slots that were in use, but no meta record: it was damaged; "
                       "stop all its users, then `firn admin init --recover`");
    if (r == 0)
        r = settle_cluster(&w, e, d);
    if (r == 0)
        r = write_all(&w, e, SURVEY_CREATE_ABSENT, d);
    if (r == 0 && recover)
        r = write_all(&w, e, SURVEY_RAISE_PRESENT, d);
    if (r == 0)
        r = create_meta(&w, e, spec, d);
    survey_done(&w);
    return r;
}

int setup_init(const struct setup *e, const struct setup_spec *spec, struct firn_diag *d)
{
    struct meta_record m;
    int r = setup_read_meta(e->store, &m, NULL, d);
    if (r == 0)
        return firn__diag(d, FIRN_ECONFLICT, 0, "the store has its records already");
    return r == FIRN_ENOENT ? set_up(e, spec, false, d) : r;
}

static int survey_of_meta(struct slot_survey *w, const struct setup *e, const struct meta_record *m,
                          struct firn_diag *d)
{
    int r = survey_init(w, e, (uint32_t)m->slot_lo, (uint32_t)(m->slot_hi - m->slot_lo), d);
    w->cluster = m->cluster;
    return r;
}

int setup_recover(const struct setup *e, const struct setup_spec *spec, struct firn_diag *d)
{
    struct meta_record m;
    int r = setup_read_meta(e->store, &m, NULL, d);
    if (r == FIRN_ENOENT)
        return set_up(e, spec, true, d);
    if (r != 0)
        return r;
    /* Meta exists: slots may be missing. They get the floor of a fence, which then raises the
     * others. */
    struct slot_survey w;
    r = survey_of_meta(&w, e, &m, d);
    if (r != 0)
        return r;
    w.floor = slot_fence_floor(&m, e->f, e->s);
    r = write_all(&w, e, SURVEY_CREATE_ABSENT, d);
    survey_done(&w);
    return r ? r : setup_fence(e, m.floor, NULL, d);
}

/* Reads everything; after 0 survey_done() is due. *out_done as survey_fenced(). */
static int look_at_fence(const struct setup *e, uint64_t known_floor, struct meta_record *m,
                         struct firn_record *rec, struct slot_survey *w, bool *out_done,
                         struct firn_diag *d)
{
    int r = setup_read_meta(e->store, m, rec, d);
    if (r == 0)
        r = survey_of_meta(w, e, m, d);
    if (r == 0)
        *out_done = survey_fenced(w, m, known_floor, e->reach);
    return r;
}

int setup_fence(const struct setup *e, uint64_t known_floor, bool *out_raised, struct firn_diag *d)
{
    struct meta_record m;
    struct firn_record old;
    char text[RECORD_TEXT_MAX];
    struct slot_survey w;
    bool done;
    int r = look_at_fence(e, known_floor, &m, &old, &w, &done, d);
    if (r != 0)
        return r;
    if (out_raised)
        *out_raised = !done;
    if (done) {
        survey_done(&w);
        return 0;
    }
    uint64_t floor = m.floor;
    /* Grants made after an earlier fence begin at its floor, and so reach further than the clock
     * tells; a store that forgot that fence forgot them, too. */
    m.floor = m.floor > e->floor ? m.floor : e->floor;
    w.floor = slot_fence_floor(&m, e->f, e->s);
    r = survey_whole(&w, d);
    if (r == 0)
        r = write_all(&w, e, SURVEY_RAISE_ALL, d);
    survey_done(&w);
    if (r == 0)
        r = firn_store_identity(e->store, m.store_inc, d);
    if (r != 0)
        return r;
    firn_assert(w.floor > floor && w.floor > e->floor, "floor %" PRIu64 " to %" PRIu64, floor,
                w.floor);
    m.floor = w.floor; /* last, so that an interrupted fence is begun again */
    m.req = draw(e);
    struct firn_cas cas = { firn_slice(META_KEY, META_KEY_LEN), firn_slice(old.value, old.len),
                            firn_slice(text, meta_encode(&m, text)) };
    r = firn_store_cas(e->store, &cas, d);
    if (r != FIRN_ECONFLICT)
        return r;
    /* Another process fenced meanwhile: its fence is as good, if it holds. */
    r = look_at_fence(e, known_floor, &m, &old, &w, &done, d);
    if (r == 0)
        survey_done(&w);
    return r == 0 && !done ? FIRN_EAGAIN : r;
}

int setup_retire(const struct setup *e, uint32_t slot, bool force, struct firn_diag *d)
{
    struct firn_record rec;
    struct slot_record s;
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_slice name = firn_slice(key, slot_key(slot, key));
    int r = firn_store_read(e->store, name, true, &rec, d);
    if (r == FIRN_ENOENT)
        return firn__diag(d, r, 0, "there is no slot %u", slot);
    if (r == 0)
        r = slot_parse(rec.value, rec.len, &s, d);
    if (r != 0 || s.state == SLOT_RETIRED)
        return r;
    if (s.state == SLOT_HELD && !force)
        return firn__diag(d, FIRN_ECONFLICT, 0, "slot %u is held by %s: stop it first, or force it",
                          slot, s.name[0] ? s.name : "a node without a name");
    struct nonce req = draw(e);
    slot_retired_record(&s, e->f, &req, &s);
    struct firn_cas cas = { name, firn_slice(rec.value, rec.len),
                            firn_slice(text, slot_encode(&s, text)) };
    r = firn_store_cas(e->store, &cas, d);
    return r == FIRN_ECONFLICT ? firn__diag(d, r, 0, "slot %u was just taken: try again", slot) : r;
}
