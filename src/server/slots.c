/* The list of slots, with a cache of a few seconds. Tested in tests/unit/server/slots.c and
 * coordinator.c, tests/integration/http_api.py. */
#include "server/slots.h"
#include "coord/survey.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <stdlib.h>
#include <string.h>

struct listing {
    struct slots *s;
    const struct lease *lease;
    uint64_t f;
};

static int list_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct listing *l = user;
    struct slot_record r;
    uint32_t slot;
    if (slot_key_parse(key.p, key.len, &slot) != 0 || l->s->n == SLOTS_MAX)
        return 0;
    struct slot_listed *e = &l->s->list[l->s->n++];
    *e = (struct slot_listed){ .slot = slot, .state = "broken" };
    if (slot_parse(value.p, value.len, &r, NULL) != 0)
        return 0;
    const struct slot_grant *g = &l->lease->view.grant;
    bool mine = g->gen && g->slot == slot && nonce_eq(&r.owner, &l->lease->node.me);
    e->state = mine ? "mine" : survey_word(&l->lease->meta, &r, l->f, l->f);
    memcpy(e->name, r.name, sizeof e->name);
    e->from = r.from;
    e->until = r.until;
    return 0;
}

static int look(struct slots *s, struct firn_store *store, const struct lease *lease,
                uint64_t now_ms, struct firn_diag *d)
{
    struct listing l = { s, lease, lease_tick(lease, (int64_t)mono_ns()) };
    s->n = 0;
    int r = firn_store_scan(store, firn_slice("slot/", 5), list_one, &l, d);
    if (r)
        return r;
    uint32_t used = 0;
    for (uint32_t i = 0; i < s->n; i++)
        used += strcmp(s->list[i].state, "free") != 0 && strcmp(s->list[i].state, "lapsed") != 0;
    atomic_store_explicit(&s->used, used, memory_order_relaxed);
    atomic_store_explicit(&s->total, s->n, memory_order_relaxed);
    s->due_ms = now_ms + SLOTS_EVERY_MS;
    s->count_ms = now_ms + SLOTS_COUNT_MS;
    return 0;
}

uint64_t slots_step(struct slots *s, struct firn_store *store, const struct lease *lease,
                    uint64_t now_ms)
{
    bool first = s->count_ms == 0;
    if (now_ms >= s->count_ms) {
        s->count_ms = now_ms + SLOTS_COUNT_MS;
        if (!first && lease->view.grant.gen != 0)
            (void)look(s, store, lease, now_ms, NULL);
    }
    return s->count_ms;
}

int slots_list(struct slots *s, struct firn_store *store, const struct lease *lease,
               uint64_t now_ms, struct slot_listed **out, size_t *out_n, struct firn_diag *d)
{
    if (lease->view.grant.gen == 0)
        return firn__diag(d, FIRN_ENOSLOT, 0,
                          "this server has had no slot yet, and lists none before: /readyz says "
                          "what it waits for");
    if (now_ms >= s->due_ms) {
        int r = look(s, store, lease, now_ms, d);
        if (r)
            return r;
    }
    struct slot_listed *copy = malloc((s->n ? s->n : 1) * sizeof *copy);
    if (!copy)
        return FIRN_ENOMEM;
    memcpy(copy, s->list, s->n * sizeof *copy);
    *out = copy;
    *out_n = s->n;
    return 0;
}
