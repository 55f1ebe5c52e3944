/*
 * Runs a membership (coord/membership.h) on a store, and lists the members.
 * Tests: tests/unit/drive/member.c.
 */
#include "drive/member.h"
#include "drive/real.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    TTL_MS_DEFAULT = 45000,
    BACKOFF_MIN_MS = 50,
    BACKOFF_MAX_MS = 1000,
    LEAVE_PAUSE_MS = 20, /* between two attempts to leave */
};

/* ---- the real world ---- */

/* Not CLOCK_MONOTONIC, which stands while the machine is suspended: other members count on. */
static uint64_t real_now(void *user)
{
    (void)user;
    return (uint64_t)real_clock_ns(CLOCK_BOOTTIME) / 1000000 + 1; /* never 0 */
}

static uint64_t real_unix(void *user)
{
    (void)user;
    return (uint64_t)real_clock_ns(CLOCK_REALTIME) / 1000000;
}

void member_world_real(struct member_world *w)
{
    *w = (struct member_world){
        .now_ms = real_now, .unix_ms = real_unix, .random = real_random, .sleep_ms = real_sleep
    };
}

static struct membership_now read_now(const struct member_world *w)
{
    return (struct membership_now){ w->now_ms(w->user), w->unix_ms(w->user) };
}

/* ---- the member ---- */

static int put(char *to, size_t size, const char *text, const char *what, struct firn_diag *d)
{
    size_t len = text ? strlen(text) : 0;
    if (len >= size)
        return firn__diag(d, FIRN_EINVAL, 0, "a member's %s has at most %zu bytes", what, size - 1);
    memcpy(to, text ? text : "", len);
    return 0;
}

int member_open(struct member *m, struct firn_store *store, const struct member_params *p,
                const struct member_world *w, struct firn_diag *d)
{
    struct membership_params mp = { .ttl_ms = p->ttl_ms ? p->ttl_ms : TTL_MS_DEFAULT,
                                    .backoff_min_ms = BACKOFF_MIN_MS,
                                    .backoff_max_ms = BACKOFF_MAX_MS,
                                    .keep_house = p->keep_house };
    int r = put(mp.kind, sizeof mp.kind, p->kind, "kind", d);
    if (r == 0)
        r = put(mp.name, sizeof mp.name, p->name, "name", d);
    if (r == 0)
        r = put(mp.address, sizeof mp.address, p->address, "address", d);
    if (r == 0)
        r = put(mp.slots, sizeof mp.slots, p->slots, "list of slots", d);
    if (r == 0)
        r = put(mp.version, sizeof mp.version, p->version, "version", d);
    if (r != 0)
        return r;
    if (p->cluster)
        mp.cluster = *p->cluster;
    memset(m, 0, sizeof *m);
    m->world = *w;
    m->store = store;
    return membership_init(&m->self, &mp, &m->roster, d);
}

struct listing {
    struct roster *roster;
    const struct member_world *world;
    member_each_fn *each;
    void *user;
};

static int list_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct listing *l = user;
    struct member_record r;
    uint32_t n;
    if (member_key_parse(key.p, key.len, &n) != 0 || n >= MEMBERS_MAX)
        return 0;
    uint64_t now_ms = l->world->now_ms(l->world->user);
    roster_add(l->roster, n, value.p, value.len, now_ms);
    if (!l->each || member_parse(value.p, value.len, &r, NULL) != 0)
        return 0;
    firn_assert(now_ms >= l->roster->seen[n].since_ms, "member %u", n);
    struct member_view v = { .number = n,
                             .record = &r,
                             .unchanged_ms = now_ms - l->roster->seen[n].since_ms,
                             .dead = roster_dead(l->roster, n, now_ms) };
    return l->each(l->user, &v);
}

int members_list(struct firn_store *store, struct roster *roster, const struct member_world *w,
                 member_each_fn *each, void *user, struct firn_diag *d)
{
    struct listing l = { roster, w, each, user };
    roster_begin(roster);
    return firn_store_scan(store, firn_slice(MEMBER_PREFIX, MEMBER_PREFIX_LEN), list_one, &l, d);
}

struct kept { /* a member that is up */
    struct member_view view;
    struct member_record record;
};

struct keeping {
    struct kept *list;
    size_t n, cap;
};

static int keep_one(void *user, const struct member_view *v)
{
    struct keeping *k = user;
    if (v->record->state == MEMBER_FREE)
        return 0;
    if (k->n == k->cap) {
        size_t cap = k->cap ? k->cap * 2 : 32;
        struct kept *grown = realloc(k->list, cap * sizeof *grown);
        if (!grown)
            return FIRN_ENOMEM;
        k->list = grown;
        k->cap = cap;
    }
    k->list[k->n++] = (struct kept){ *v, *v->record };
    return 0;
}

static bool has_later_run(const struct keeping *k, const struct member_record *r)
{
    for (size_t i = 0; i < k->n; i++)
        if (member_replaced(r, &k->list[i].record))
            return true;
    return false;
}

int members_current(struct firn_store *store, struct roster *roster, const struct member_world *w,
                    member_each_fn *each, void *user, struct firn_diag *d)
{
    struct keeping k = { NULL, 0, 0 };
    int r = members_list(store, roster, w, keep_one, &k, d);
    for (size_t i = 0; r == 0 && i < k.n; i++) {
        k.list[i].view.record = &k.list[i].record;
        if (!has_later_run(&k, &k.list[i].record))
            r = each(user, &k.list[i].view);
    }
    free(k.list);
    return r;
}

const char *member_state_name(const struct member_view *v, uint64_t age_ms)
{
    uint64_t silent = member_silent_after(v->record->ttl_ms);
    return v->record->state == MEMBER_FREE                 ? "left"
           : v->dead                                       ? "dead"
           : v->unchanged_ms >= silent || age_ms >= silent ? "silent"
                                                           : "up";
}

int member_list(struct member *m, member_each_fn *each, void *user, struct firn_diag *d)
{
    return members_list(m->store, &m->roster, &m->world, each, user, d);
}

uint64_t member_step(struct member *m)
{
    struct membership_action a;
    struct membership_now now = read_now(&m->world);
    struct firn_record rec;
    struct nonce fresh;
    char key[RECORD_KEY_BUF];
    m->world.random(m->world.user, fresh.b, sizeof fresh.b);
    membership_next(&m->self, &now, &fresh, &a);
    uint64_t unbroken = m->self.unbroken;
    struct firn_slice k = firn_slice(key, member_key(a.number, key));
    switch (a.what) {
    case MEMBERSHIP_DO_WAIT:
        m->error = m->self.full
                       ? firn__diag(&m->diag, FIRN_ENOSLOT, 0,
                                    "all %d member registers are held by live members", MEMBERS_MAX)
                       : m->error;
        return a.ms > now.ms ? a.ms - now.ms : 0;
    case MEMBERSHIP_DO_SCAN:
        m->error = member_list(m, NULL, NULL, &m->diag);
        now = read_now(&m->world);
        membership_scan_done(&m->self, &now, m->error);
        break;
    case MEMBERSHIP_DO_READ:
        m->error = firn_store_read(m->store, k, a.fresh, &rec, &m->diag);
        now = read_now(&m->world);
        membership_read_done(&m->self, &now, m->error, rec.value, m->error ? 0 : rec.len);
        break;
    case MEMBERSHIP_DO_CAS:
        firn_assert(a.number < MEMBERS_MAX && a.value_len > 0 && a.value_len <= RECORD_TEXT_MAX,
                    "member %u, %zu bytes", a.number, a.value_len);
        m->error = firn_store_cas(
            m->store,
            &(struct firn_cas){ k, firn_slice(a.old, a.old_len), firn_slice(a.value, a.value_len) },
            &m->diag);
        now = read_now(&m->world);
        membership_cas_done(&m->self, &now, m->error);
        break;
    }
    if (m->error == FIRN_ENOENT || m->error == FIRN_ECONFLICT)
        m->error = 0; /* the next step reads the register and decides */
    firn_assert(m->self.unbroken >= unbroken, "%" PRIu64, unbroken);
    return 0;
}

void member_describe(struct member *m, const char *address, const char *slots)
{
    membership_describe(&m->self, address, slots);
}

int member_leave(struct member *m, uint64_t timeout_ms)
{
    uint64_t end = member_now_ms(m) + timeout_ms;
    membership_leave(&m->self);
    while (m->self.state != MEMBERSHIP_LEFT) {
        uint64_t pause = member_step(m), now = member_now_ms(m);
        if (m->self.state == MEMBERSHIP_LEFT)
            break;
        if (now >= end)
            return FIRN_EAGAIN;
        if (pause > 0)
            m->world.sleep_ms(m->world.user, LEAVE_PAUSE_MS);
    }
    return 0;
}
