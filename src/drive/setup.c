/*
 * Slots first, meta last, so that a store with a meta record is complete. The cluster's identity is decided by
 * whoever creates the first slot: an INIT that finds it there goes on with that identity, so two at once
 * make one store.
 */
#include "drive/setup.h"
#include "coord/mutant.h"
#include "coord/slot.h"
#include "id/diag.h"

#include <stdlib.h>

enum {
    BATCH_MAX = 64,  /* registers in one transaction */
    ROUNDS_MAX = 16, /* others may extend while we fence */
};

struct slot_text { /* a slot's register as it was read; len 0: absent */
    size_t len;
    char text[RECORD_TEXT_MAX];
};

struct work { /* one operation over all slots */
    const struct setup *e;
    uint32_t lo, n;
    struct slot_text *slot; /* n */
    struct nonce cluster;
    uint64_t floor;
};

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

static int take_in(void *user, struct firn_slice key, struct firn_slice value)
{
    struct work *w = user;
    uint32_t slot;
    if (slot_key_parse(key.p, key.len, &slot) != 0 || slot < w->lo || slot - w->lo >= w->n ||
        value.len > RECORD_TEXT_MAX)
        return 0;
    struct slot_text *t = &w->slot[slot - w->lo];
    memcpy(t->text, value.p, value.len);
    t->len = value.len;
    return 0;
}

/* All slots as a scan shows them. It may be stale: then the write conflicts, and one is read anew. */
static int work_init(struct work *w, const struct setup *e, uint32_t lo, uint32_t n,
                     struct firn_diag *d)
{
    *w = (struct work){ .e = e, .lo = lo, .n = n, .slot = calloc(n, sizeof *w->slot) };
    if (!w->slot)
        return firn__diag(d, FIRN_ENOMEM, 0, "no memory for %u slots", n);
    int r = firn_store_scan(e->store, firn_slice("slot/", 5), take_in, w, d);
    if (r != 0) {
        free(w->slot);
        w->slot = NULL;
    }
    return r;
}

static int parse_slot(const struct work *w, uint32_t i, struct slot_record *out,
                      struct firn_diag *d)
{
    struct firn_diag why = { 0 };
    if (slot_parse(w->slot[i].text, w->slot[i].len, out, &why) != 0)
        return firn__diag(d, FIRN_EFORMAT, 0, "slot %u cannot be read: %s", w->lo + i, why.text);
    return 0;
}

static int read_anew(struct work *w, uint32_t i, struct firn_diag *d)
{
    struct firn_record rec;
    char key[RECORD_KEY_BUF];
    int r = firn_store_read(w->e->store, firn_slice(key, slot_key(w->lo + i, key)), true, &rec, d);
    if (r == FIRN_ENOENT) {
        w->slot[i].len = 0;
        return 0;
    }
    if (r == 0 && rec.len > RECORD_TEXT_MAX)
        r = firn__diag(d, FIRN_EFORMAT, 0, "slot %u cannot be read: it is too long", w->lo + i);
    if (r == 0) {
        memcpy(w->slot[i].text, rec.value, rec.len);
        w->slot[i].len = rec.len;
    }
    return r;
}

/* One transaction where the engine has that, or side by side; one write after the other elsewhere. */
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

enum wish { CREATE_ABSENT, RAISE_PRESENT, RAISE_ALL };

/* What is to become of slot i: false, nothing. */
static bool wanted(const struct work *w, uint32_t i, enum wish wish, bool done)
{
    bool absent = w->slot[i].len == 0;
    return !done && (wish == RAISE_ALL || absent == (wish == CREATE_ABSENT));
}

/* Slots [at, at + n) as the wish says; a slot that somebody else changed is read and tried again. */
static int write_batch(struct work *w, uint32_t at, uint32_t n, enum wish wish, struct firn_diag *d)
{
    struct firn_cas cas[BATCH_MAX];
    char key[BATCH_MAX][RECORD_KEY_BUF], text[BATCH_MAX][RECORD_TEXT_MAX];
    uint32_t which[BATCH_MAX];
    int result[BATCH_MAX];
    bool done[BATCH_MAX] = { false };
    for (int round = 0; round < ROUNDS_MAX; round++) {
        size_t count = 0;
        for (uint32_t i = 0; i < n; i++) {
            struct slot_text *t = &w->slot[at + i];
            struct slot_record old, s;
            if (!wanted(w, at + i, wish, done[i]))
                continue;
            int r = t->len ? parse_slot(w, at + i, &old, d) : 0;
            if (r != 0)
                return r;
            struct nonce req = draw(w->e);
            slot_fenced_record(&w->cluster, t->len ? &old : NULL, w->floor, w->e->f, &req, &s);
            cas[count].key = firn_slice(key[count], slot_key(w->lo + at + i, key[count]));
            cas[count].old = t->len ? firn_slice(t->text, t->len) : firn_slice(NULL, 0);
            cas[count].value = firn_slice(text[count], slot_encode(&s, text[count]));
            which[count++] = i;
        }
        if (count == 0)
            return 0;
        int r = write_some(w->e->store, cas, count, result, d);
        if (r != 0)
            return r;
        for (size_t i = 0; i < count; i++) {
            done[which[i]] = result[i] == 0;
            r = result[i] == 0 ? 0 : read_anew(w, at + which[i], d);
            if (r != 0)
                return r;
            /* A creation that came too late is over: somebody else's stands there. */
            done[which[i]] |= wish == CREATE_ABSENT && w->slot[at + which[i]].len != 0;
        }
    }
    return firn__diag(d, FIRN_EAGAIN, 0, "others keep writing: stop them, then try again");
}

static int write_all(struct work *w, enum wish wish, struct firn_diag *d)
{
    int r = 0;
    if (FIRN_MUTANT(no_fence) && wish != CREATE_ABSENT)
        return 0;
    for (uint32_t at = 0; r == 0 && at < w->n; at += BATCH_MAX)
        r = write_batch(w, at, w->n - at < BATCH_MAX ? w->n - at : BATCH_MAX, wish, d);
    return r;
}

static int create_meta(struct work *w, const struct setup_spec *spec, struct firn_diag *d)
{
    struct meta_record m = {
        .cluster = w->cluster,
        .slot_lo = spec->slot_lo,
        .slot_hi = spec->slot_lo + spec->slots,
        .window = spec->window,
        .max_drift = spec->max_drift,
        .skew_max = spec->skew_max,
        .floor = w->floor,
        .req = draw(w->e),
    };
    char text[RECORD_TEXT_MAX];
    memcpy(m.layout, spec->layout, strlen(spec->layout) + 1);
    int r = firn_store_identity(w->e->store, m.store_inc, d);
    if (r != 0)
        return r;
    struct firn_cas cas = { firn_slice(META_KEY, META_KEY_LEN), firn_slice(NULL, 0),
                            firn_slice(text, meta_encode(&m, text)) };
    r = firn_store_cas(w->e->store, &cas, d);
    return r != FIRN_ECONFLICT ? r : firn__diag(d, r, 0, "the store has its records already");
}

/* The cluster that the slots belong to, or a new one. `used` tells whether any of them was ever held. */
static int find_cluster(struct work *w, bool *used, struct firn_diag *d)
{
    bool found = false;
    *used = false;
    for (uint32_t i = 0; i < w->n; i++) {
        struct slot_record s;
        if (w->slot[i].len == 0)
            continue;
        int r = parse_slot(w, i, &s, d);
        if (r != 0)
            return r;
        if (found && !nonce_eq(&s.cluster, &w->cluster))
            return firn__diag(d, FIRN_ESTORE, 0, "slot %u belongs to another cluster than others",
                              w->lo + i);
        w->cluster = s.cluster;
        found = true;
        *used |= s.epoch != 0;
    }
    if (!found)
        w->cluster = draw(w->e);
    return 0;
}

/* Whoever creates the first slot names the cluster; who comes second takes that name over. */
static int settle_cluster(struct work *w, struct firn_diag *d)
{
    struct slot_record s;
    int r = read_anew(w, 0, d);
    if (r == 0 && w->slot[0].len == 0)
        r = write_batch(w, 0, 1, CREATE_ABSENT, d);
    if (r == 0)
        r = read_anew(w, 0, d);
    if (r == 0 && w->slot[0].len == 0)
        r = firn__diag(d, FIRN_EAGAIN, 0, "the first slot's record vanished: try again");
    if (r == 0)
        r = parse_slot(w, 0, &s, d);
    if (r == 0)
        w->cluster = s.cluster;
    return r;
}

static int check_spec(const struct setup_spec *spec, struct firn_diag *d)
{
    if (spec->slots == 0 || spec->slots > SLOTS_MAX || strlen(spec->layout) > RECORD_LAYOUT_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "a store has 1 to %d slots", SLOTS_MAX);
    if (spec->window == 0)
        return firn__diag(d, FIRN_EINVAL, 0, "the window needs at least a tick");
    return 0;
}

static int set_up(const struct setup *e, const struct setup_spec *spec, bool recover,
                  struct firn_diag *d)
{
    struct work w;
    struct meta_record m = { .window = spec->window,
                             .max_drift = spec->max_drift,
                             .skew_max = spec->skew_max };
    bool used;
    int r = check_spec(spec, d);
    if (r == 0)
        r = work_init(&w, e, spec->slot_lo, spec->slots, d);
    if (r != 0)
        return r;
    w.floor = spec->floor ? spec->floor : slot_fence_floor(&m, e->f, e->s);
    r = find_cluster(&w, &used, d);
    if (r == 0 && used && !recover)
        r = firn__diag(d, FIRN_ENOENT, 0,
                       "the store has slots that were in use, but no meta record: it was damaged; "
                       "stop all its users, then `firn admin init --recover`");
    if (r == 0)
        r = settle_cluster(&w, d);
    if (r == 0)
        r = write_all(&w, CREATE_ABSENT, d);
    if (r == 0 && recover)
        r = write_all(&w, RAISE_PRESENT, d);
    if (r == 0)
        r = create_meta(&w, spec, d);
    free(w.slot);
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

int setup_recover(const struct setup *e, const struct setup_spec *spec, struct firn_diag *d)
{
    struct meta_record m;
    int r = setup_read_meta(e->store, &m, NULL, d);
    if (r == FIRN_ENOENT)
        return set_up(e, spec, true, d);
    if (r != 0)
        return r;
    /* Meta is there: slots may be missing. They get the floor of a fence, which then lifts the others. */
    struct work w;
    r = work_init(&w, e, (uint32_t)m.slot_lo, (uint32_t)(m.slot_hi - m.slot_lo), d);
    if (r != 0)
        return r;
    w.cluster = m.cluster;
    w.floor = slot_fence_floor(&m, e->f, e->s);
    r = write_all(&w, CREATE_ABSENT, d);
    free(w.slot);
    return r ? r : setup_fence(e, m.floor, NULL, d);
}

/* Looks at everything. *out_done: somebody has fenced since `known_floor` was read, and that holds. A higher
 * floor alone does not say so: a store that went back in the middle of a fence has the new meta record
 * and the old slots. Unless it returns an error, w->slot is to be freed. */
static int look_at_fence(const struct setup *e, uint64_t known_floor, struct meta_record *m,
                         struct firn_record *rec, struct work *w, bool *out_done,
                         struct firn_diag *d)
{
    int r = setup_read_meta(e->store, m, rec, d);
    if (r == 0)
        r = work_init(w, e, (uint32_t)m->slot_lo, (uint32_t)(m->slot_hi - m->slot_lo), d);
    if (r != 0)
        return r;
    *out_done = m->floor > known_floor && m->floor >= e->reach;
    for (uint32_t i = 0; i < w->n; i++) {
        struct slot_record s;
        *out_done &= w->slot[i].len != 0 && parse_slot(w, i, &s, NULL) == 0 && s.until >= m->floor;
    }
    return 0;
}

/* Every slot has a record that can be read: or a fence would raise some, stop at the bad one, and begin
 * again and again. */
static int check_whole(const struct work *w, struct firn_diag *d)
{
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < w->n; i++) {
        struct slot_record s;
        if (w->slot[i].len == 0)
            r = firn__diag(d, FIRN_ENOENT, 0,
                           "slot %u has no record: stop all users of the store, then `firn admin "
                           "init --recover`",
                           w->lo + i);
        else
            r = parse_slot(w, i, &s, d);
    }
    return r;
}

int setup_fence(const struct setup *e, uint64_t known_floor, bool *out_raised, struct firn_diag *d)
{
    struct meta_record m;
    struct firn_record old;
    char text[RECORD_TEXT_MAX];
    struct work w;
    bool done;
    int r = look_at_fence(e, known_floor, &m, &old, &w, &done, d);
    if (r != 0)
        return r;
    if (out_raised)
        *out_raised = !done;
    if (done) {
        free(w.slot);
        return 0;
    }
    w.cluster = m.cluster;
    /* Grants made after an earlier fence begin at its floor, and so reach further than the clock tells; a
     * store that forgot that fence forgot them, too. */
    m.floor = m.floor > e->floor ? m.floor : e->floor;
    w.floor = slot_fence_floor(&m, e->f, e->s);
    r = check_whole(&w, d);
    if (r == 0)
        r = write_all(&w, RAISE_ALL, d);
    free(w.slot);
    if (r == 0)
        r = firn_store_identity(e->store, m.store_inc, d);
    if (r != 0)
        return r;
    m.floor = w.floor; /* last, so that a fence cut short is begun again */
    m.req = draw(e);
    struct firn_cas cas = { firn_slice(META_KEY, META_KEY_LEN), firn_slice(old.value, old.len),
                            firn_slice(text, meta_encode(&m, text)) };
    r = firn_store_cas(e->store, &cas, d);
    if (r != FIRN_ECONFLICT)
        return r;
    /* Another one fenced meanwhile: what it wrote is as good, if it holds. */
    r = look_at_fence(e, known_floor, &m, &old, &w, &done, d);
    if (r == 0)
        free(w.slot);
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
    s.state = SLOT_RETIRED;
    s.owner = (struct nonce){ { 0 } };
    s.epoch++;
    s.at = e->f;
    s.req = draw(e);
    struct firn_cas cas = { name, firn_slice(rec.value, rec.len),
                            firn_slice(text, slot_encode(&s, text)) };
    r = firn_store_cas(e->store, &cas, d);
    return r == FIRN_ECONFLICT ? firn__diag(d, r, 0, "slot %u was just taken: try again", slot) : r;
}
