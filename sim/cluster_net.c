/* The messages and the event queue of a cluster's world. Messages travel as the bytes that members
 * send each other, so that their format is a part of what is simulated. */
#include "cluster_in.h"

static bool before(const struct kevent *a, const struct kevent *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void k_at(int64_t us, enum kevent_kind kind, unsigned who, uint64_t token, struct letter *letter)
{
    if (k.events == k.events_room) {
        k.events_room = k.events_room ? k.events_room * 2 : 1024;
        k.event = realloc(k.event, k.events_room * sizeof *k.event);
        if (!k.event)
            abort();
    }
    size_t i = k.events++;
    k.event[i] = (struct kevent){ us, k.order++, kind, who, token, letter };
    for (; i > 0 && before(&k.event[i], &k.event[(i - 1) / 2]); i = (i - 1) / 2) {
        struct kevent e = k.event[i];
        k.event[i] = k.event[(i - 1) / 2];
        k.event[(i - 1) / 2] = e;
    }
}

struct kevent k_take(void)
{
    struct kevent first = k.event[0];
    k.event[0] = k.event[--k.events];
    for (size_t i = 0, c; (c = 2 * i + 1) < k.events; i = c) {
        if (c + 1 < k.events && before(&k.event[c + 1], &k.event[c]))
            c++;
        if (!before(&k.event[c], &k.event[i]))
            break;
        struct kevent e = k.event[i];
        k.event[i] = k.event[c];
        k.event[c] = e;
    }
    return first;
}

void k_clear(void)
{
    while (k.events > 0)
        free(k.event[--k.events].letter);
}

int64_t k_way(void)
{
    return 100 + (int64_t)rand_below(&k.rng, (uint64_t)k.c.latency_us);
}

static void put_on_way(const struct letter *l, unsigned to, int64_t us)
{
    struct letter *copy = malloc(sizeof *l + l->len);
    if (!copy)
        abort();
    memcpy(copy, l, sizeof *l + l->len);
    k_at(k_now() + us, K_DELIVER, to, 0, copy);
}

void k_send(struct kmember *from, const struct core_message *m)
{
    static _Alignas(struct letter) char room[sizeof(struct letter) + CORE_MESSAGE_BYTES_MAX];
    struct letter *l = (struct letter *)room;
    struct kmember *to = k_member(m->to);
    unsigned f = k_machine(from);
    int64_t us = k_way();
    *l = (struct letter){ .from = f };
    l->len = message_write(m, l->bytes, CORE_MESSAGE_BYTES_MAX);
    if (l->len == 0) {
        violate(k.w, "message", "a message of type %d cannot be written", m->type);
        return;
    }
    if (!to)
        return;
    unsigned t = k_machine(to);
    if (k.lose[f] > 0) {
        k.lose[f]--;
        sometimes.rc_lost++;
        return;
    }
    if (!k.healing) {
        if (rand_below(&k.rng, 1000) < k.c.loss_pm)
            return;
        if (rand_below(&k.rng, 1000) < k.c.late_pm)
            us += (int64_t)rand_below(&k.rng, (uint64_t)k.c.election_ms * 3000);
        if (rand_below(&k.rng, 1000) < k.c.repeat_pm)
            put_on_way(l, t, us + (int64_t)rand_below(&k.rng, 100000));
    }
    if (k.late_us[f] > 0) {
        us += k.late_us[f];
        k.late_us[f] = 0;
        sometimes.rc_late++;
    }
    if (k.repeat_us[f] > 0) {
        put_on_way(l, t, us + k.repeat_us[f]);
        k.repeat_us[f] = 0;
        sometimes.rc_repeated++;
    }
    put_on_way(l, t, us);
}

void k_deliver(struct kmember *to, struct letter *l)
{
    static struct core_message_room room;
    struct core_message m;
    if (k.cut_until[l->from][k_machine(to)] > k_now()) {
        sometimes.rc_cut_off++;
        return;
    }
    if (message_read(l->bytes, l->len, &m, &room) != 0) {
        violate(k.w, "message", "a message that a member wrote cannot be read");
        return;
    }
    core_receive(to->core, &m, k_local_ms(to));
    k_after(to);
}
