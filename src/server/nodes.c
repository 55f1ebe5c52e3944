/* Membership in the store, one step at a time. Tested in tests/integration/coordination.py. */
#include "server/nodes.h"
#include "daemon/log.h"
#include "platform/mono.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NO_SLOT_MS = 1000, LEAVE_MS = 1000 };

struct nodes {
    struct member member;
    struct member_world world;
    bool open; /* member is */
    uint64_t lost_logged;
    bool up_logged;
    char name[RECORD_NAME_MAX + 1], addresses[MEMBER_ADDRESS_MAX + 1];
};

int nodes_new(const char *name, const char *addresses, struct nodes **out)
{
    struct nodes *n = calloc(1, sizeof *n);
    if (!n)
        return FIRN_ENOMEM;
    member_world_real(&n->world);
    snprintf(n->name, sizeof n->name, "%s", name ? name : "");
    size_t len = addresses ? strlen(addresses) : 0;
    if (len > MEMBER_ADDRESS_MAX)
        for (len = MEMBER_ADDRESS_MAX; len > 0 && addresses[len] != ',';)
            len--;
    memcpy(n->addresses, addresses ? addresses : "", len);
    *out = n;
    return 0;
}

void nodes_free(struct nodes *n)
{
    free(n);
}

static bool open_member(struct nodes *n, struct firn_store *store, const struct lease *lease)
{
    struct member_params p = { .kind = "firnd",
                               .name = n->name,
                               .address = n->addresses,
                               .version = FIRN_VERSION,
                               .cluster = &lease->meta.cluster,
                               .keep_house = true };
    struct firn_diag d = { 0, "" };
    int r = member_open(&n->member, store, &p, &n->world, &d);
    if (r)
        log_warn("member_trouble", "error=%s cause=%s", firn_error_name(r), d.text);
    return r == 0;
}

static void log_changes(struct nodes *n)
{
    const struct membership *m = &n->member.self;
    if (m->lost != n->lost_logged) {
        log_warn("member_lost", "number=%u cause=%s", m->number,
                 "it was silent for too long, or another process wrote its register");
        n->lost_logged = m->lost;
        n->up_logged = false;
    }
    if (m->state == MEMBERSHIP_UP && !n->up_logged) {
        log_info("member_up", "number=%u epoch=%llu", m->number, (unsigned long long)m->epoch);
        n->up_logged = true;
    }
}

uint64_t nodes_step(struct nodes *n, struct firn_store *store, const struct lease *lease)
{
    const struct slot_grant *g = &lease->view.grant;
    char slot[16];
    if (g->gen == 0)
        return mono_ms() + NO_SLOT_MS;
    if (!n->open && !(n->open = open_member(n, store, lease)))
        return UINT64_MAX;
    snprintf(slot, sizeof slot, "%u", g->slot);
    member_describe(&n->member, NULL, slot);
    uint64_t wait = member_step(&n->member);
    log_changes(n);
    return mono_ms() + wait;
}

void nodes_leave(struct nodes *n)
{
    if (n->open && member_leave(&n->member, LEAVE_MS) != 0)
        log_warn("member_leave_failed", "number=%u", n->member.self.number);
}

struct listing {
    const struct nodes *nodes;
    uint64_t unix_ms;
    struct node_listed *list;
    size_t n, cap;
};

static int list_one(void *user, const struct member_view *v)
{
    struct listing *l = user;
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 32;
        struct node_listed *grown = realloc(l->list, cap * sizeof *grown);
        if (!grown)
            return FIRN_ENOMEM;
        l->list = grown;
        l->cap = cap;
    }
    const struct membership *me = &l->nodes->member.self;
    uint64_t age_ms = l->unix_ms > v->record->at ? l->unix_ms - v->record->at : 0;
    l->list[l->n++] = (struct node_listed){
        .number = v->number,
        .record = *v->record,
        .state = member_state_name(v, age_ms),
        .self = l->nodes->open && me->state == MEMBERSHIP_UP && me->number == v->number &&
                me->epoch == v->record->epoch,
        .age_ms = age_ms,
    };
    return 0;
}

int nodes_list(struct nodes *n, struct firn_store *store, struct node_listed **out, size_t *out_n,
               struct firn_diag *d)
{
    struct listing l = { .nodes = n, .unix_ms = n->world.unix_ms(n->world.user) };
    int r = members_current(store, &n->member.roster, &n->world, list_one, &l, d);
    if (r) {
        free(l.list);
        return r;
    }
    *out = l.list;
    *out_n = l.n;
    return 0;
}
