/*
 * The connections of worlds of whole members: the twin of raft/wire.h, and, for clients, of
 * wire/link.h. As TCP does it, bytes arrive in their order or not at all: a loss delays, a
 * partition delays or, after WIRE_SILENT_MS, breaks; a process that is killed ends its connections,
 * one whose machine has lost its power ends them when its peers notice.
 */
#include "member_in.h"

enum chunk_kind { CHUNK_FRAME, CHUNK_UP, CHUNK_END };

struct chunk { /* on its way */
    struct chunk *next;
    enum chunk_kind kind;
    int64_t at, sent;
    size_t len;
    char bytes[];
};

struct wire {
    const struct wire_events *events;
    void *user;
    struct wire *peer;
    struct kmember *m; /* NULL: a client's */
    uint32_t life;
    uint64_t number;
    unsigned to; /* the machine that it connects to */
    bool client, closed, begun, posted;
    int64_t since;
    struct chunk *first, **last; /* towards this end */
    size_t unread;
};

static struct {
    struct wire **wire;
    uint64_t count, room;
} all;

static void forget_chunks(struct wire *w)
{
    while (w->first) {
        struct chunk *c = w->first;
        w->first = c->next;
        free(c);
    }
    w->last = &w->first;
    w->unread = 0;
}

void wires_clear(void)
{
    for (uint64_t i = 0; i < all.count; i++) {
        forget_chunks(all.wire[i]);
        free(all.wire[i]);
    }
    all.count = 0;
}

static struct wire *wire_new(struct kmember *m, const struct wire_events *e, void *user)
{
    struct wire *w = calloc(1, sizeof *w);
    if (all.count == all.room) {
        all.room = all.room ? all.room * 2 : 256;
        all.wire = realloc(all.wire, all.room * sizeof(struct wire *));
    }
    if (!w || !all.wire)
        abort();
    *w = (struct wire){ .events = e, .user = user, .m = m, .number = all.count, .since = k_now() };
    w->life = m ? m->life : 0;
    w->last = &w->first;
    all.wire[all.count++] = w;
    return w;
}

static unsigned at_machine(const struct wire *w)
{
    return w->m ? k_machine(w->m) : MACHINES;
}

static bool is_cut(unsigned from, unsigned to)
{
    return from < MACHINES && to < MACHINES && k.cut_until[from][to] > k_now();
}

static void look_again(struct wire *w, int64_t at)
{
    if (w->posted)
        return;
    w->posted = true;
    k_at(at > k_now() ? at : k_now(), K_WIRE, at_machine(w), w->number, NULL);
}

static void push(struct wire *to, enum chunk_kind kind, const char *p, size_t len, int64_t us)
{
    struct chunk *c = malloc(sizeof *c + len);
    if (!c)
        abort();
    *c = (struct chunk){ .kind = kind, .at = k_now() + us, .sent = k_now(), .len = len };
    if (len > 0)
        memcpy(c->bytes, p, len);
    *to->last = c;
    to->last = &c->next;
    to->unread += len;
    look_again(to, to->first->at);
}

static void push_end(struct wire *to, int64_t us)
{
    if (to && !to->closed)
        push(to, CHUNK_END, NULL, 0, us);
}

/* ---- wire.h ---- */

struct wire *wire_connect(struct wire_host *h, const char *address, const struct wire_events *e,
                          void *user)
{
    const char *colon = strrchr(address, ':');
    struct wire *w = wire_new(h->m, e, user);
    w->client = true;
    w->to = colon ? (unsigned)strtoul(colon + 1, NULL, 10) - 10001 : MACHINES;
    if (w->to >= MACHINES) {
        w->closed = true;
        return NULL;
    }
    k_at(k_now() + k_way(), K_CONNECT, MACHINES, w->number, NULL);
    k_at(k_now() + WIRE_SILENT_MS * 1000, K_SILENT, MACHINES, w->number, NULL);
    return w;
}

void *wire_user(const struct wire *w)
{
    return w->user;
}

bool wire_works(const struct wire *w)
{
    return !w->closed;
}

bool wire_first(const struct wire *w)
{
    return !w->begun;
}

size_t wire_unsent(const struct wire *w)
{
    return w->peer ? w->peer->unread : 0;
}

/* A lost segment comes again a little later, and all behind it waits. */
static int64_t way(const struct wire *w)
{
    int64_t us = k_way();
    struct kmember *m = w->m ? w->m : w->peer->m;
    unsigned x = m ? k_machine(m) : 0;
    if (k.healing || !m)
        return us;
    if (k.lose[x] > 0 || rand_below(&k.rng, 1000) < k.c.loss_pm) {
        k.lose[x] -= k.lose[x] > 0;
        us += rand_between(&k.rng, 20000, 250000);
        sometimes.rc_lost++;
    }
    if (k.late_us[x] > 0) {
        us += k.late_us[x];
        k.late_us[x] = 0;
        sometimes.rc_late++;
    }
    return us;
}

static void look_sent(struct kmember *m, const char *p, size_t len)
{
    static struct core_message_room room;
    struct core_message msg;
    struct frame f;
    if (frame_parse(p, len, &f) != (ssize_t)len)
        return;
    const struct core_config *c = core_config(m->core);
    if (f.type == FRAME_CHANGE && f.flags == 0 && m->was_in && c->count > 0 &&
        !config_member(c, m->id))
        violate(k.w, "join", "member %" PRIu64 " was removed, and asks to join again", m->id);
    if (f.type != FRAME_RAFT)
        return;
    if (message_read(f.body, f.len, &msg, &room) != 0)
        violate(k.w, "message", "a message that a member wrote cannot be read");
    else
        k_look_send(m, &msg);
}

void wire_send(struct wire *w, const char *p, size_t len)
{
    if (w->closed || !w->peer || w->peer->closed)
        return;
    if (w->m) {
        look_sent(w->m, p, len);
        if (!k_io(w->m))
            return;
    }
    push(w->peer, CHUNK_FRAME, p, len, way(w));
}

void wire_close(struct wire *w)
{
    if (w->closed)
        return;
    w->closed = true;
    forget_chunks(w);
    push_end(w->peer, k_way());
}

/* ---- events ---- */

static void gone(struct wire *w, const char *why)
{
    if (w->closed)
        return;
    if (w->m)
        whole_enter(w->m);
    wire_close(w);
    w->events->gone(w, why);
    if (w->m)
        whole_left(w->m);
}

static void up(struct wire *w)
{
    if (w->m)
        whole_enter(w->m);
    w->events->up(w);
    if (w->m)
        whole_left(w->m);
}

static void frame(struct wire *w, const struct chunk *c)
{
    struct frame f;
    if (frame_parse(c->bytes, c->len, &f) != (ssize_t)c->len) {
        violate(k.w, "message", "a frame cannot be read");
        return;
    }
    if (w->m)
        whole_enter(w->m);
    w->events->frame(w, &f);
    w->begun = true;
    if (w->m)
        whole_left(w->m);
}

static void connected(struct wire *w)
{
    struct kmember *to = &k.member[w->to];
    unsigned from = at_machine(w);
    if (w->closed)
        return;
    if (is_cut(from, w->to) || is_cut(w->to, from)) {
        k_at(k_now() + rand_between(&k.rng, 50000, 300000), K_CONNECT, MACHINES, w->number, NULL);
    } else if (!to->up) {
        push_end(w, k_way());
    } else {
        struct wire *other = wire_new(to, &member_events, to->whole);
        other->peer = w;
        w->peer = other;
        push(w, CHUNK_UP, NULL, 0, k_way());
        k_at(k_now() + WIRE_GREETING_MS * 1000, K_SILENT, MACHINES, other->number, NULL);
    }
}

/* The bytes are not acknowledged for too long: the sender gives up, and this end sees it later. */
static void break_here(struct wire *w)
{
    sometimes.rm_broken++;
    forget_chunks(w);
    push_end(w, rand_between(&k.rng, 1000, 3000000));
    if (w->peer && !w->peer->closed) {
        forget_chunks(w->peer);
        push_end(w->peer, 0);
    }
}

static void arrived(struct wire *w)
{
    struct chunk *c = w->first;
    w->posted = false;
    if (w->closed || !c)
        return;
    unsigned from = w->peer ? at_machine(w->peer) : w->to;
    if (c->at > k_now()) {
        look_again(w, c->at);
        return;
    }
    if (is_cut(from, at_machine(w)) && c->kind != CHUNK_END) {
        if (k_now() - c->sent > WIRE_SILENT_MS * 1000)
            break_here(w);
        else
            look_again(w, k_now() + rand_between(&k.rng, 10000, 200000));
        return;
    }
    w->first = c->next;
    if (!w->first)
        w->last = &w->first;
    w->unread -= c->len;
    if (w->first)
        look_again(w, w->first->at);
    if (c->kind == CHUNK_END)
        gone(w, "the peer closed the connection");
    else if (c->kind == CHUNK_UP)
        up(w);
    else
        frame(w, c);
    free(c);
}

bool wires_happen(struct kevent *e)
{
    struct wire *w = all.wire[e->token];
    struct kmember *m = w->m;
    if (m && m->life != w->life)
        w->closed = true;
    if (m && !w->closed && m->paused_until > k_now()) {
        k_at(m->paused_until, e->kind, e->who, e->token, NULL);
        return true;
    }
    if (e->kind == K_CONNECT)
        connected(w);
    else if (e->kind == K_WIRE)
        arrived(w);
    else if (!w->begun)
        gone(w, "no answer");
    return true;
}

void wires_crash(struct kmember *m, bool power)
{
    for (uint64_t i = 0; i < all.count; i++) {
        struct wire *w = all.wire[i];
        if (w->m != m || w->closed)
            continue;
        w->closed = true;
        forget_chunks(w);
        push_end(w->peer, power ? rand_between(&k.rng, 1000, 2000000) : k_way());
    }
}

void wires_break(struct kmember *m)
{
    for (uint64_t i = 0; i < all.count; i++) {
        struct wire *w = all.wire[i];
        if (w->m == m && !w->closed && w->peer && !w->peer->closed && rand_chance(&k.rng, 50))
            break_here(w);
    }
}
