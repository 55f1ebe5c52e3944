/*
 * The simulated store: registers, and the messages to and from them. A request travels, is applied
 * at one moment, and its answer travels back; a request that is lost, late or doubled is a matter
 * of which of these events come when. Every write is kept with its history, so that a read can be
 * old and the whole store go back in time.
 */
#include "world.h"
#include "mutant.h"

#include <stdlib.h>

struct text *text_new(const char *p, size_t len)
{
    struct text *t = malloc(sizeof *t + len);
    if (!t)
        abort();
    t->refs = 1;
    t->len = (uint32_t)len;
    memcpy(t->p, p, len);
    return t;
}

struct text *text_ref(struct text *t)
{
    if (t)
        t->refs++;
    return t;
}

void text_unref(struct text *t)
{
    if (t && --t->refs == 0)
        free(t);
}

static bool text_eq(const struct text *a, const struct text *b)
{
    return (!a && !b) || (a && b && a->len == b->len && memcmp(a->p, b->p, a->len) == 0);
}

/* ---- cells ---- */

static int compare(const char *a, size_t a_len, const char *b, size_t b_len)
{
    int c = memcmp(a, b, a_len < b_len ? a_len : b_len);
    return c ? c : (a_len > b_len) - (a_len < b_len);
}

static size_t place(const struct store *s, const char *key, size_t len, bool *found)
{
    size_t lo = 0, hi = s->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int c = compare(s->cell[mid].key, s->cell[mid].key_len, key, len);
        if (c == 0) {
            *found = true;
            return mid;
        }
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    *found = false;
    return lo;
}

struct cell *store_find(struct world *w, const char *key, size_t len)
{
    bool found;
    size_t i = place(&w->store, key, len, &found);
    return found ? &w->store.cell[i] : NULL;
}

/* The cell of a key, made without a value if there is none. */
static struct cell *cell_of(struct world *w, const char *key, size_t len)
{
    struct store *s = &w->store;
    bool found;
    uint32_t slot;
    size_t i = place(s, key, len, &found);
    if (found)
        return &s->cell[i];
    if (s->count == s->room) {
        s->room = s->room ? s->room * 2 : 32;
        s->cell = realloc(s->cell, s->room * sizeof *s->cell);
        if (!s->cell)
            abort();
    }
    struct cell *c = &s->cell[i];
    memmove(c + 1, c, (s->count++ - i) * sizeof *c);
    *c = (struct cell){ .key_len = len };
    memcpy(c->key, key, len);
    c->slot = slot_key_parse(key, len, &slot) == 0 ? (int64_t)slot : -1;
    return c;
}

struct text *store_now(const struct cell *c)
{
    return c->count ? c->history[c->count - 1].text : NULL;
}

static const struct version *version_as_of(const struct cell *c, uint64_t serial)
{
    size_t i = c->count;
    while (i > 1 && c->history[i - 1].serial > serial)
        i--;
    return i == 0 || (c->dropped == 0 && c->history[i - 1].serial > serial) ? NULL
                                                                            : &c->history[i - 1];
}

static void put(struct world *w, struct cell *c, struct text *value)
{
    struct store *s = &w->store;
    if (c->count == s->keep) {
        text_unref(c->history[0].text);
        memmove(c->history, c->history + 1, (c->count - 1) * sizeof c->history[0]);
        c->count--;
        c->dropped++;
    }
    if (c->count == c->room) {
        c->room = c->room ? c->room * 2 : 4;
        c->history = realloc(c->history, c->room * sizeof c->history[0]);
        if (!c->history)
            abort();
    }
    uint64_t number = c->count && c->history[c->count - 1].text
                          ? c->history[c->count - 1].number + 1
                          : 1;
    c->history[c->count++] = (struct version){ ++s->serial, w->now, text_ref(value), number };
}

void store_reset(struct world *w)
{
    struct store *s = &w->store;
    for (size_t i = 0; i < s->count; i++) {
        for (size_t k = 0; k < s->cell[i].count; k++)
            text_unref(s->cell[i].history[k].text);
        free(s->cell[i].history);
    }
    s->count = 0;
    s->keep = w->scale ? 3 : 400;
    s->serial = s->made = 0;
    s->identity = 1;
    s->down_until = 0;
    s->ops = s->ops_this_s = s->ops_peak = 0;
}

void store_delete(struct world *w, struct cell *c)
{
    if (!store_now(c))
        return;
    struct slot_record r;
    if (c->slot >= 0 && slot_parse(store_now(c)->p, store_now(c)->len, &r, NULL) == 0)
        oracle_lost(w, (uint32_t)c->slot, 0);
    put(w, c, NULL);
}

/* Back to what it was then. Versions that a counter gave since are given again. */
void store_rewind(struct world *w, int64_t back_ns)
{
    struct store *s = &w->store;
    for (size_t i = 0; i < s->count; i++) {
        struct cell *c = &s->cell[i];
        size_t k = c->count;
        while (k > 1 && c->history[k - 1].at > w->now - back_ns)
            k--;
        if (k == 0 || k == c->count)
            continue;
        struct version old = c->history[k - 1];
        struct slot_record r;
        if (c->slot >= 0 && old.text && slot_parse(old.text->p, old.text->len, &r, NULL) == 0)
            oracle_lost(w, (uint32_t)c->slot, r.until);
        text_ref(old.text); /* the oldest version may make room */
        put(w, c, old.text);
        text_unref(old.text);
        c->history[c->count - 1].number = old.number;
    }
}

/* ---- requests ---- */

static struct msg *msg_new(enum msg_kind kind, size_t count)
{
    struct msg *m = calloc(1, sizeof *m + count * sizeof m->change[0]);
    if (!m)
        abort();
    m->kind = kind;
    m->count = count;
    return m;
}

void msg_free(struct msg *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++) {
        text_unref(m->change[i].old);
        text_unref(m->change[i].value);
        text_unref(m->change[i].instead);
    }
    text_unref(m->found);
    free(m);
}

static struct msg *msg_copy(const struct msg *m)
{
    struct msg *c = msg_new(m->kind, m->count);
    memcpy(c, m, sizeof *m + m->count * sizeof m->change[0]);
    c->found = NULL;
    for (size_t i = 0; i < m->count; i++) {
        text_ref(c->change[i].old);
        text_ref(c->change[i].value);
        c->change[i].instead = NULL;
    }
    return c;
}

/* One register's part of a write. */
static int apply_one(struct world *w, const struct msg *m, struct change *ch)
{
    struct cell *c = store_find(w, ch->key, ch->key_len);
    struct text *now = c ? store_now(c) : NULL;
    bool same = text_eq(now, ch->old);
    if (SIM_MUTANT(restartable_version) && now && ch->old)
        same = c->history[c->count - 1].number == ch->number;
    if (!same) {
        ch->instead = text_ref(now);
        return FIRN_ECONFLICT;
    }
    if (!c)
        c = cell_of(w, ch->key, ch->key_len);
    struct text *before = text_ref(now);
    put(w, c, ch->value);
    ch->applied = w->store.serial;
    oracle_write(w, m, c, before, ch->value);
    text_unref(before);
    return 0;
}

static void apply_cas(struct world *w, struct msg *m)
{
    if (m->identity != w->store.identity) {
        m->result = FIRN_ESTORE;
        return;
    }
    m->result = 0;
    for (size_t i = 0; i < m->count; i++) {
        m->change[i].result = apply_one(w, m, &m->change[i]);
        sometimes.conflict += m->change[i].result == FIRN_ECONFLICT;
    }
    if (!m->many)
        m->result = m->change[0].result;
    if (w->config->tickets)
        for (size_t i = 0; i < m->count; i++)
            tickets_wrote(w, m, &m->change[i]);
}

static uint64_t serial_at(const struct world *w, int64_t at)
{
    const struct store *s = &w->store;
    uint64_t serial = 0;
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = s->cell[i].count; k > 0; k--)
            if (s->cell[i].history[k - 1].at <= at) {
                uint64_t v = s->cell[i].history[k - 1].serial;
                serial = v > serial ? v : serial;
                break;
            }
    return serial;
}

void store_apply(struct world *w, struct msg *m)
{
    struct store *s = &w->store;
    s->ops++;
    if (w->scale) {
        int64_t second = w->now / SECOND;
        s->ops_this_s = second == s->ops_s ? s->ops_this_s + 1 : 1;
        s->ops_s = second;
        s->ops_peak = s->ops_this_s > s->ops_peak ? s->ops_this_s : s->ops_peak;
    }
    m->store_ms = w->config->store_time ? (uint64_t)(w->now / MS) : 0;
    m->as_of = s->serial;
    if (m->stale_ns > 0 && !m->fresh) {
        /* Not from before the store was made: such a replica could not be joined. */
        m->as_of = serial_at(w, w->now - m->stale_ns);
        m->as_of = m->as_of > s->made ? m->as_of : s->made;
        sometimes.stale_read += m->as_of != s->serial;
    }
    switch (m->kind) {
    case MSG_READ: {
        struct cell *c = store_find(w, m->change[0].key, m->change[0].key_len);
        const struct version *v = c ? version_as_of(c, m->as_of) : NULL;
        m->found = v ? text_ref(v->text) : NULL;
        m->result = m->found ? 0 : FIRN_ENOENT;
        break;
    }
    case MSG_CAS:
        apply_cas(w, m);
        break;
    case MSG_SCAN:
    case MSG_IDENTITY:
        m->result = 0;
        break;
    }
    if (m->kind == MSG_CAS && m->reply_after < 0) {
        const struct proc *p = &w->proc[m->proc];
        bool gone = p->boot != m->boot || p->token != m->token;
        sometimes.late += m->result == 0 && m->boot != 0 && gone;
        sometimes.repeated += m->result == FIRN_ECONFLICT && m->boot == 0;
    }
    fold(w, (uint64_t)m->kind << 32 | (uint32_t)m->result);
}

/* Fate decides how long the request and its answer take; -1 is for ever. */
static void travel(struct world *w, struct proc *p, const struct msg *m, int64_t *there,
                   int64_t *back, int64_t *again, bool *refused)
{
    bool write = m->kind == MSG_CAS;
    int64_t timeout = (int64_t)w->config->op_timeout_ms * MS;
    *there = rand_between(&p->rng, 100, w->config->embedded ? 2000 : 20000) * 1000;
    *back = rand_between(&p->rng, 100, w->config->embedded ? 2000 : 20000) * 1000;
    *again = -1;
    *refused = false;
    if (w->healed)
        return;
    if (w->now < p->cut_until || w->now < w->store.down_until) {
        if (rand_chance(&p->rng, 50))
            *there = -1;
        else
            *refused = true;
        return;
    }
    if (write && p->on_write.set) {
        p->on_write.set = false;
        switch (p->on_write.kind) {
        case FAULT_lose_request:
            *there = -1;
            break;
        case FAULT_lose_reply:
            *back = -1;
            sometimes.lost_reply++;
            break;
        case FAULT_late:
            *there = timeout + p->on_write.arg * MS;
            break;
        case FAULT_repeat:
            *again = *there + p->on_write.arg * MS;
            break;
        case FAULT_refuse:
            *refused = true;
            break;
        case FAULT_slow:
            *there = p->on_write.arg * MS / 2;
            *back = p->on_write.arg * MS / 2;
            break;
        default:
            break;
        }
    }
}

/* Send, and wait for the answer. The message that comes back belongs to the caller; NULL: none
 * came. */
static struct msg *call(struct region *r, struct msg *m)
{
    struct world *w = r->world;
    struct proc *p = resident(r);
    int64_t there, back, again, timeout = (int64_t)w->config->op_timeout_ms * MS;
    bool refused;
    m->proc = p->id;
    m->boot = p->boot;
    bool dies = p->dies_in > 0 && --p->dies_in == 0 && p->job == JOB_SERVE && !w->healed;
    bool after = p->dies_after;
    if (!w->healed && w->call_writes && w->calls < CALLS_MAX)
        w->call_writes[w->calls] = m->kind == MSG_CAS;
    if (!w->healed && ++w->calls == w->config->die_call) {
        dies = true;
        after = w->config->die_after;
    }
    bool meta = m->kind == MSG_READ && m->change[0].key_len == META_KEY_LEN &&
                memcmp(m->change[0].key, META_KEY, META_KEY_LEN) == 0;
    m->meta_at = p->meta_at;
    p->meta_at = meta ? w->now : 0;
    m->token = ++p->token;
    m->identity = r->image->handle.identity;
    oracle_send(w, p, m);
    travel(w, p, m, &there, &back, &again, &refused);
    if (dies && !after)
        there = -1;
    if (dies)
        post(w, w->now + (there >= 0 ? there + 1 : 0), EV_DIE, p->id, 0, NULL);
    if (m->kind != MSG_CAS && p->on_read.set && !m->fresh) {
        m->stale_ns = p->on_read.arg * MS;
        p->on_read.set = false;
    }
    if (again >= 0) {
        struct msg *copy = msg_copy(m);
        copy->reply_after = -1;
        copy->boot = 0; /* a repetition, not a late landing */
        post(w, w->now + again, EV_APPLY, p->id, 0, copy);
    }
    static const char *const kind_name[] = { "read", "cas", "scan", "identity" };
    trace(w, "proc %d sends %s %.*s%s", p->id, kind_name[m->kind],
          m->count ? (int)m->change[0].key_len : 0, m->count ? m->change[0].key : "",
          there < 0  ? ": lost"
          : back < 0 ? ": answer lost"
                     : "");
    p->waiting = true;
    if (refused) {
        m->result = FIRN_EIO;
        post(w, w->now + 5 * MS, EV_REPLY, p->id, m->token, m);
    } else if (there >= 0 && back >= 0 && there + back < timeout) {
        m->reply_after = back;
        post(w, w->now + there, EV_APPLY, p->id, m->token, m);
    } else {
        m->reply_after = -1;
        post(w, w->now + timeout, EV_WAKE, p->id, m->token, NULL);
        if (there >= 0)
            post(w, w->now + there, EV_APPLY, p->id, m->token, m);
        else
            msg_free(m);
    }
    if (SIM_MUTANT(publish_before_ok))
        proc_publish_early(w, p);
    co_wait(r);
    p = resident(r);
    m = p->reply;
    p->reply = NULL;
    p->waiting = false;
    trace(w, "proc %d gets %s", p->id, m ? firn_error_name(m->result) : "no answer");
    if (m)
        oracle_answered(w, p, m);
    return m;
}

static void set_key(struct change *c, struct firn_slice key)
{
    memcpy(c->key, key.p, key.len);
    c->key_len = key.len;
}

static int sim_read(struct firn_store *s, struct firn_slice key, bool fresh,
                    struct firn_record *out, struct firn_diag *d)
{
    struct region *r = ((struct handle *)s)->region;
    struct msg *m = msg_new(MSG_READ, 1);
    (void)d;
    set_key(&m->change[0], key);
    m->fresh = fresh;
    m = call(r, m);
    int result = m ? m->result : FIRN_EIO;
    if (result == 0) {
        memcpy(out->value, m->found->p, m->found->len);
        out->len = m->found->len;
        out->store_ms = m->store_ms;
    }
    msg_free(m);
    return result;
}

/* Which number the version had that the caller read, for the mutant that compares numbers. */
static uint64_t number_of(struct world *w, const struct change *ch)
{
    struct cell *c = store_find(w, ch->key, ch->key_len);
    for (size_t i = c ? c->count : 0; i > 0; i--)
        if (text_eq(c->history[i - 1].text, ch->old))
            return c->history[i - 1].number;
    return 0;
}

static struct msg *msg_write(struct world *w, const struct firn_cas *want, size_t count)
{
    struct msg *m = msg_new(MSG_CAS, count);
    for (size_t i = 0; i < count; i++) {
        struct change *c = &m->change[i];
        set_key(c, want[i].key);
        c->old = want[i].old.p && want[i].old.len ? text_new(want[i].old.p, want[i].old.len) : NULL;
        c->value = want[i].value.p ? text_new(want[i].value.p, want[i].value.len) : NULL;
        if (SIM_MUTANT(restartable_version))
            c->number = number_of(w, c);
    }
    return m;
}

static int sim_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    struct region *r = ((struct handle *)s)->region;
    struct msg *m = call(r, msg_write(r->world, want, 1));
    (void)d;
    int result = m ? m->result : FIRN_EUNKNOWN;
    if (m && r->world->config->tickets)
        tickets_answered(r->world, m);
    msg_free(m);
    return result;
}

static int sim_cas_many(struct firn_store *s, const struct firn_cas *want, size_t count,
                        int *result, struct firn_diag *d)
{
    struct handle *h = (struct handle *)s;
    struct region *r = h->region;
    struct msg *m = msg_write(r->world, want, count);
    (void)d;
    m->many = true;
    m = call(r, m);
    int answer = m ? m->result : FIRN_EUNKNOWN;
    h->refused = 0;
    for (size_t i = 0; answer == 0 && i < count; i++) {
        const struct text *instead = m->change[i].instead;
        result[i] = m->change[i].result;
        if (i >= INSTEAD_MAX)
            continue;
        h->refused = i + 1;
        h->instead[i].len = instead ? instead->len : 0;
        h->instead[i].store_ms = 0;
        if (instead)
            memcpy(h->instead[i].value, instead->p, instead->len);
    }
    if (m && r->world->config->tickets)
        tickets_answered(r->world, m);
    msg_free(m);
    return answer;
}

static int sim_instead(struct firn_store *s, size_t i, struct firn_record *out)
{
    const struct handle *h = (struct handle *)s;
    if (i >= h->refused || h->instead[i].len == 0)
        return FIRN_ENOENT;
    *out = h->instead[i];
    return 0;
}

static int sim_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                    void *user, struct firn_diag *d)
{
    struct region *r = ((struct handle *)s)->region;
    struct world *w = r->world;
    struct msg *m = call(r, msg_new(MSG_SCAN, 0));
    (void)d;
    int result = m ? m->result : FIRN_EIO;
    bool found;
    size_t i = place(&w->store, prefix.p, prefix.len, &found);
    for (; result == 0 && i < w->store.count; i++) {
        struct cell *c = &w->store.cell[i];
        if (c->key_len < prefix.len || memcmp(c->key, prefix.p, prefix.len) != 0)
            break;
        const struct version *v = version_as_of(c, m->as_of);
        if (v && v->text)
            result = each(user, firn_slice(c->key, c->key_len),
                          firn_slice(v->text->p, v->text->len));
    }
    msg_free(m);
    return result;
}

static int sim_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct handle *h = (struct handle *)s;
    struct region *r = h->region;
    struct msg *m = call(r, msg_new(MSG_IDENTITY, 0));
    (void)d;
    int result = m ? m->result : FIRN_EIO;
    if (result == 0) {
        h->identity = r->world->store.identity;
        snprintf(out, STORE_ID_TEXT_BUF, "store-%llu", (unsigned long long)h->identity);
    }
    msg_free(m);
    return result;
}

static void sim_close(struct firn_store *s)
{
    (void)s;
}

/* A service returns the value that was there instead, as raft: does; a file does not, and other
 * engines have no transactions. */
#define OPS(scheme_, shared_, cas_, many_, instead_)                                 \
    {                                                                                \
        .size = sizeof(struct firn_store_ops), .scheme = scheme_, .shared = shared_, \
        .read = sim_read, .cas = cas_, .cas_many = many_, .scan = sim_scan,          \
        .identity = sim_identity, .close = sim_close, .instead = instead_            \
    }
static const struct firn_store_ops file_ops = OPS("sim-file", false, sim_cas, sim_cas_many, NULL);
static const struct firn_store_ops shared_ops = OPS("sim", true, NULL, sim_cas_many, sim_instead);
static const struct firn_store_ops plain_ops = OPS("sim-plain", true, sim_cas, NULL, NULL);

void store_open(struct handle *h, struct region *r)
{
    const struct config *c = r->world->config;
    h->base.ops = c->embedded ? &file_ops : c->one_by_one ? &plain_ops : &shared_ops;
    h->region = r;
    h->identity = r->world->store.identity;
}
