/*
 * Clients of worlds of whole members: src/store/raft.c in coroutines. Some reach the cluster over
 * the network (src/store/raft_link.c on a twin of link.h), some through the member of their own
 * machine, as firnd does (raft/node.c). Their calls are the history that k_check_history() judges:
 * an answer is what it says, "nothing was done" too. The operator's requests are made here as well.
 */
#include "member_in.h"

#include "wire/link.h"
#include "store/raft.h"
#include "member_clock.h"
#include "wire/tls_context.h"

#include <stdio.h>
#include <ucontext.h>

enum { COS = CLIENTS + FIRNDS, CO_STACK = 512 * 1024, LATE_MS = 1000, OPERATOR = 100, CALLS = 64 };

struct co_client {
    ucontext_t context;
    unsigned n;
    uint64_t token; /* of the wait in hand */
    bool waits, started, local;
    bool opens, killed; /* opens: what it has allocated is its own; killed: it gives that back */
    struct firn_store *store;
    struct link *link; /* open; one at a time */
    size_t op;         /* of the history, if `busy` */
    bool busy, stops, failed, healed, knows[REGISTERS];
    bool stale, foreign; /* stale: its call is of an earlier history; foreign: to be opened again */
    uint32_t last[REGISTERS];

    /* A call through the member of its machine. */
    struct raft_channel channel;
    uint64_t call;
    bool answered;
    char *reply;
    size_t reply_len;
    _Alignas(64) char stack[CO_STACK];
};

static struct co_client client[COS];

static struct { /* the operator's requests under way */
    bool open;
    struct errand e;
    unsigned removed;      /* of that member, so far */
    uint64_t leader, term; /* then */
    bool in;
    uint64_t index; /* of the configuration */
} calls[CALLS];

static ucontext_t world_context;
static struct co_client *running;

/* ---- coroutines ---- */

static void wait_here(struct co_client *c)
{
    c->waits = true;
    swapcontext(&c->context, &world_context);
}

void client_wake(unsigned n, int64_t at)
{
    k_at(at > k_now() ? at : k_now(), K_WAKE, n, client[n].token, NULL);
}

void client_resume(unsigned n, uint64_t token)
{
    struct co_client *c = &client[n];
    if (!c->started || !c->waits || c->token != token || c->stops)
        return;
    c->token++;
    c->waits = false;
    running = c;
    swapcontext(&world_context, &c->context);
    running = NULL;
}

/* Until then, or until something happens to this client. */
static void wait_until(struct co_client *c, int64_t ms)
{
    if (c->killed)
        return;
    client_wake(c->n, (ms - INT64_C(1000000)) * 1000);
    wait_here(c);
}

int64_t k_client_ms(void)
{
    return k_now() / 1000 + INT64_C(1000000);
}

void k_client_sleep(int64_t ms)
{
    struct co_client *c = running;
    for (int64_t end = k_client_ms() + ms; k_client_ms() < end && !c->killed;)
        wait_until(c, end);
}

/* ---- link.h ---- */

struct link {
    struct co_client *c;
    struct wire *wire; /* NULL: it has ended */
    bool up;
    size_t len, at, room;
    char *in;
};

static void link_up(struct wire *w)
{
    struct link *l = wire_user(w);
    l->up = true;
    client_wake(l->c->n, k_now());
}

static void link_frame(struct wire *w, const struct frame *f)
{
    struct link *l = wire_user(w);
    size_t len = f->len + FRAME_HEAD;
    if (l->at == l->len)
        l->at = l->len = 0;
    if (l->len + len > l->room) {
        l->room = (l->len + len) * 2;
        l->in = realloc(l->in, l->room);
        if (!l->in)
            abort();
    }
    memcpy(l->in + l->len, f->body - FRAME_HEAD, len);
    l->len += len;
    client_wake(l->c->n, k_now());
}

static void link_gone(struct wire *w, const char *why)
{
    struct link *l = wire_user(w);
    (void)why;
    l->wire = NULL;
    client_wake(l->c->n, k_now());
}

static const struct wire_events link_events = { link_up, link_frame, link_gone };

int link_open(const char *host, uint16_t port, struct tls_context *tls, int64_t until_ms,
              struct link **out, struct firn_diag *d)
{
    static struct wire_host outside;
    struct co_client *c = running;
    struct link *l = calloc(1, sizeof *l);
    char address[300];
    (void)tls, (void)d;
    if (!l)
        abort();
    snprintf(address, sizeof address, "%s:%u", host, port);
    l->c = c;
    c->link = l;
    l->wire = wire_connect(&outside, address, &link_events, l);
    while (l->wire && !l->up && k_client_ms() < until_ms && !c->killed)
        wait_until(c, until_ms);
    if (!l->up) {
        link_close(l);
        return FIRN_EIO;
    }
    *out = l;
    return 0;
}

void link_close(struct link *l)
{
    if (!l)
        return;
    if (l->wire)
        wire_close(l->wire);
    l->c->link = NULL;
    free(l->in);
    free(l);
}

int link_send(struct link *l, const char *p, size_t len, int64_t until_ms, struct firn_diag *d)
{
    (void)until_ms, (void)d;
    if (!l->wire)
        return FIRN_EIO;
    wire_send(l->wire, p, len);
    return 0;
}

int link_recv(struct link *l, char *p, size_t cap, size_t *out_n, int64_t until_ms,
              struct firn_diag *d)
{
    (void)d;
    while (l->at == l->len && l->wire && k_client_ms() < until_ms && !l->c->killed)
        wait_until(l->c, until_ms);
    size_t n = l->len - l->at < cap ? l->len - l->at : cap;
    if (n == 0)
        return FIRN_EIO;
    memcpy(p, l->in + l->at, n);
    l->at += n;
    *out_n = n;
    return 0;
}

bool link_quiet(const struct link *l)
{
    return l->wire && l->at == l->len;
}

int link_tls_new(const char *ca, const char *cert, const char *key, struct tls_context **out,
                 struct firn_diag *d)
{
    (void)ca, (void)cert, (void)key, (void)out, (void)d;
    return FIRN_ENOTSUP;
}

/* ---- requests of a member's own process ---- */

static void take_done(void *user, const char *reply, size_t len)
{
    uint64_t tag = (uintptr_t)user;
    struct letter *l = calloc(1, sizeof *l + len);
    if (!l)
        abort();
    l->from = (unsigned)(tag >> 32);
    l->value = tag & UINT32_MAX;
    l->len = reply ? len : 0;
    if (l->len)
        memcpy(l->bytes, reply, len);
    k_at(k_now(), K_ANSWER, MACHINES, 0, l);
}

void whole_take(struct kmember *m, const struct letter *l)
{
    void *user = (void *)(uintptr_t)((uint64_t)l->from << 32 | (uint32_t)l->value);
    if (!m->up || m->dying) {
        take_done(user, NULL, 0);
        return;
    }
    whole_enter(m);
    member_take(m->whole, l->bytes, l->len, take_done, user);
    whole_left(m);
}

static void submit(unsigned from, uint64_t number, unsigned machine, const char *p, size_t len)
{
    struct letter *l = calloc(1, sizeof *l + len);
    if (!l)
        abort();
    l->from = from;
    l->value = number;
    l->len = len;
    memcpy(l->bytes, p, len);
    k_at(k_now() + 1 + (int64_t)rand_below(&k.rng, 200), K_TAKE, machine, 0, l);
}

/* As node.c's channel. */
static int local_call(struct raft_channel *base, const char *frame, size_t len, bool again,
                      int64_t until, char *reply, size_t *out_len, struct firn_diag *d)
{
    struct co_client *c = running;
    (void)base, (void)again, (void)d;
    c->answered = false;
    c->call++;
    sometimes.rm_local++;
    submit(c->n, c->call, c->n < CLIENTS ? c->n % k.c.members : c->n - CLIENTS, frame, len);
    while (!c->answered && k_client_ms() < until + LATE_MS && !c->killed)
        wait_until(c, until + LATE_MS);
    if (!c->answered || c->reply_len == 0)
        return FIRN_EUNKNOWN;
    memcpy(reply, c->reply, c->reply_len);
    *out_len = c->reply_len;
    return 0;
}

static void local_close(struct raft_channel *base)
{
    (void)base;
}

/* ---- calls ---- */

/* A coroutine that is to end may be in here. */
static int new_store(struct co_client *c, struct raft_channel *channel, struct firn_store **out)
{
    c->opens = true;
    int r = raft_store_new(channel, "", (uint32_t)(k.c.call_us / 1000), out, NULL);
    c->opens = false;
    while (c->killed)
        wait_here(c);
    return r;
}

static void end_open(struct co_client *c)
{
    if (!c->started || !c->opens)
        return;
    c->killed = true;
    running = c;
    swapcontext(&world_context, &c->context);
    running = NULL;
}

int client_store(struct firn_store **out)
{
    struct co_client *c = running;
    c->channel = (struct raft_channel){ local_call, local_close };
    return new_store(c, &c->channel, out);
}

static int open_store(struct co_client *c)
{
    struct store_url u = { .scheme = "raft" };
    struct raft_channel *channel = &c->channel;
    if (c->local) {
        c->channel = (struct raft_channel){ local_call, local_close };
    } else {
        u.host_n = MACHINES - k.c.others;
        for (unsigned i = 0; i < u.host_n; i++) {
            snprintf(u.host[i].name, sizeof u.host[i].name, "127.0.0.1");
            u.host[i].port = (uint16_t)(10001 + (i + c->n) % u.host_n);
        }
        int r = raft_link_new(&u, &channel, NULL);
        if (r != 0)
            return r;
    }
    return new_store(c, channel, &c->store);
}

static struct lin_op *begin_op(struct co_client *c, enum lin_kind kind, unsigned reg)
{
    c->op = k.ops++;
    c->busy = true;
    k.history[c->op] = (struct lin_op){ .kind = kind,
                                        .old = c->last[reg],
                                        .new = c->last[reg] + 1,
                                        .call = ++k.order,
                                        .user = reg + 1 };
    return &k.history[c->op];
}

static void ends_op(struct co_client *c)
{
    k.history[c->op].ret = ++k.order;
    c->busy = false;
    fold(k.w, k.history[c->op].ret << 8 | c->n);
}

static struct firn_slice key_of(unsigned reg)
{
    struct firn_slice full = k_key(reg);
    return firn_slice(full.p + 1, full.len - 1);
}

static uint32_t number_in(const struct firn_record *rec)
{
    char text[16] = { 0 };
    memcpy(text, rec->value, rec->len < sizeof text ? rec->len : sizeof text - 1);
    return (uint32_t)strtoul(text, NULL, 10);
}

static void lost_all(struct co_client *c, int r)
{
    c->foreign |= r == FIRN_ESTORE;
    if (r == FIRN_ESTORE && !k.disaster.survivor)
        violate(k.w, "store", "client %u is told that the cluster is another one", c->n);
}

static void read_one(struct co_client *c, unsigned reg, bool fresh)
{
    static struct firn_record rec[CLIENTS];
    struct firn_record *to = &rec[c->n];
    struct lin_op *op = fresh ? begin_op(c, LIN_READ, reg) : NULL;
    int r = firn_store_read(c->store, key_of(reg), fresh, to, NULL);
    uint32_t got = r == 0 ? number_in(to) : 0;
    trace(k.w, "client %u: reads register %u%s: %d, has %u", c->n, reg, fresh ? "" : ", stale", r,
          got);
    lost_all(c, r);
    if (c->stale)
        return;
    if (r == FIRN_EUNKNOWN)
        violate(k.w, "unknown", "client %u: a read changes nothing, and is unknown", c->n);
    bool told = r == 0 || r == FIRN_ENOENT;
    c->failed = !told;
    if (op) {
        op->old = got;
        op->user = told ? op->user : 0;
        ends_op(c);
    }
    sometimes.rc_read += told && fresh;
    sometimes.rm_stale += told && !fresh;
    /* Whatever the member, nothing that this handle has seen is missing. */
    if (told && got < c->last[reg] && !k.c.corrupts && !k.disaster.survivor)
        violate(k.w, "back", "client %u read %u of register %u, and has seen %u", c->n, got, reg,
                c->last[reg]);
    if (told) {
        c->last[reg] = got;
        c->knows[reg] = true;
    }
}

static void change_one(struct co_client *c, unsigned reg)
{
    static struct firn_record rec[CLIENTS];
    char old[16], new[16];
    struct lin_op *op = begin_op(c, LIN_UNKNOWN, reg);
    struct firn_cas want = { .key = key_of(reg) };
    int n = snprintf(new, sizeof new, "%u", op->new);
    want.value = firn_slice(new, (size_t)n);
    n = snprintf(old, sizeof old, "%u", op->old);
    want.old = op->old ? firn_slice(old, (size_t)n) : (struct firn_slice){ NULL, 0 };
    int r = firn_store_cas(c->store, &want, NULL);
    trace(k.w, "client %u: changes register %u to %u: %d", c->n, reg, op->new, r);
    lost_all(c, r);
    if (c->stale)
        return;
    switch (r) {
    case 0:
        if (k.given[reg][op->new])
            violate(k.w, "ticket", "ticket %u of register %u was given twice", op->new, reg);
        k.given[reg][op->new] = 1;
        op->kind = LIN_OK;
        c->last[reg] = op->new;
        k.w->ids++;
        k.healed_writes += k.healing;
        c->healed |= k.healing;
        sometimes.rc_ok++;
        break;
    case FIRN_ECONFLICT:
        op->kind = LIN_CONFLICT;
        sometimes.rc_conflict++;
        c->knows[reg] = false;
        if (c->store->ops->instead(c->store, 0, &rec[c->n]) == 0) {
            c->last[reg] = number_in(&rec[c->n]);
            c->knows[reg] = true;
        }
        break;
    case FIRN_EUNKNOWN:
        k.maybe[reg][op->new] = 1;
        sometimes.rc_unknown++;
        c->knows[reg] = false;
        break;
    case FIRN_ESTORE: /* see lost_all() */
    case FIRN_EIO:    /* nothing was done, and nothing will be */
        op->user = 0;
        c->failed = true;
        sometimes.rm_nothing++;
        break;
    default:
        violate(k.w, "answer", "client %u: %s", c->n, firn_error_name(r));
    }
    ends_op(c);
}

/* The program is started again, as an operator would. */
static void forget_store(struct co_client *c)
{
    firn_store_close(c->store);
    c->store = NULL;
    memset(c->knows, 0, sizeof c->knows);
    memset(c->last, 0, sizeof c->last);
    sometimes.rm_foreign++;
}

static void client_main(unsigned n)
{
    struct co_client *c = &client[n];
    for (;;) {
        k_client_sleep(1 + (int64_t)rand_below(&k.rng, (uint64_t)k.c.think_us / 1000));
        if (!c->store && open_store(c) != 0)
            c->store = NULL;
        if (!c->store || k.ops >= k.ops_max)
            continue;
        if (c->failed) /* so that there are calls left for the time after the faults */
            k_client_sleep(rand_between(&k.rng, 50, k.healing ? 1000 : 200));
        if (c->foreign)
            forget_store(c);
        c->failed = c->stale = c->foreign = false;
        if (!c->store || k.ops >= k.ops_max) /* others have asked meanwhile */
            continue;
        unsigned reg = (unsigned)rand_below(&k.rng, REGISTERS);
        if (c->knows[reg] && c->last[reg] + 1 < TICKETS_MAX && !rand_chance(&k.rng, 30))
            change_one(c, reg);
        else
            read_one(c, reg, !c->knows[reg] || rand_chance(&k.rng, 70));
    }
}

static void main_of(unsigned n)
{
    if (n < CLIENTS)
        client_main(n);
    else
        firnd_main(n - CLIENTS);
}

static void co_begin(unsigned n)
{
    struct co_client *c = &client[n];
    uint64_t token = c->token + 1, call = c->call + 1;
    memset(c, 0, offsetof(struct co_client, stack));
    c->n = n;
    c->token = token;
    c->call = call; /* answers of an earlier life are no answers */
    c->local = n < 2;
    getcontext(&c->context);
    c->context.uc_stack.ss_sp = c->stack;
    c->context.uc_stack.ss_size = sizeof c->stack;
    makecontext(&c->context, (void (*)(void))main_of, 1, n);
    c->started = c->waits = true;
    client_wake(n, k_now() + (int64_t)rand_below(&k.rng, 300000));
}

void whole_client_begin(unsigned n)
{
    if (n == 0)
        memset(calls, 0, sizeof calls);
    co_begin(n);
}

void whole_firnd_begin(unsigned n)
{
    co_begin(CLIENTS + n);
}

/* As its process does, wherever it was. */
void whole_firnd_end(unsigned n)
{
    struct co_client *c = &client[CLIENTS + n];
    if (!c->started)
        return;
    end_open(c);
    firnd_died(n);
    free(c->reply);
    c->reply = NULL;
    c->started = false;
}

/* A removed member answers nobody; a machine that was added later has no client of its own. */
bool client_healed(unsigned machine)
{
    for (unsigned i = 0; i < CLIENTS; i++)
        if (client[i].local && i % k.c.members == machine && !client[i].healed && k.ops < k.ops_max)
            return false;
    return true;
}

void whole_clients_era(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct co_client *c = &client[i];
        if (c->busy && k.history[c->op].kind == LIN_READ)
            k.history[c->op].user = 0;
        c->stale |= c->busy;
        c->busy = c->healed = false;
    }
}

void whole_clients_stop(void)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct co_client *c = &client[i];
        struct lin_op *op = &k.history[c->op];
        c->stops = true;
        if (!c->busy)
            continue;
        if (op->kind == LIN_READ)
            op->user = 0;
        else
            k.maybe[op->user - 1][op->new] = 1;
        ends_op(c);
    }
}

void whole_clients_end(void)
{
    for (unsigned i = 0; i < FIRNDS; i++)
        whole_firnd_end(i);
    for (unsigned i = 0; i < CLIENTS; i++) {
        struct co_client *c = &client[i];
        end_open(c);
        if (c->store)
            firn_store_close(c->store);
        link_close(c->link); /* one that was being opened */
        free(c->reply);
        c->store = NULL;
        c->reply = NULL;
        c->started = false;
    }
}

/* ---- the operator ---- */

static const enum frame_change what_of[] = { [ERRAND_ADD] = CHANGE_ADD,
                                             [ERRAND_PROMOTE] = CHANGE_PROMOTE,
                                             [ERRAND_REMOVE] = CHANGE_REMOVE,
                                             [ERRAND_TRANSFER] = CHANGE_TRANSFER };

/* NULL: none leads, or not one alone. */
static const struct kmember *only_leader(const struct side *of)
{
    const struct kmember *leader = NULL;
    unsigned n = 0;
    for (unsigned i = 0; i < MACHINES; i++) {
        const struct kmember *m = &k.member[i];
        if (m->side == of && m->up && core_state(m->core) == CORE_LEADER)
            leader = m, n++;
    }
    return n == 1 ? leader : NULL;
}

void whole_change(struct kmember *m, const struct errand *e)
{
    char room[400], address[32] = "";
    struct frame_out o = { .p = room, .cap = sizeof room };
    unsigned i = 0, under_way = 0;
    for (unsigned j = 0; j < CALLS; j++)
        under_way += calls[j].open && calls[j].e.id == e->id && calls[j].e.kind == e->kind &&
                     calls[j].e.at == e->at;
    while (i < CALLS && calls[i].open)
        i++;
    if (i == CALLS || under_way > (rand_chance(&k.rng, 10) ? 1 : 0) || e->id >= IDS_MAX)
        return;
    const struct kmember *at = k_member(e->id);
    if (e->kind == ERRAND_ADD && !at)
        return;
    if (at)
        whole_address(k_machine(at), address);
    calls[i].open = true;
    calls[i].e = *e;
    calls[i].removed = e->at->removed[e->id];
    const struct kmember *leader = only_leader(e->at);
    calls[i].leader = leader ? leader->id : 0;
    calls[i].term = leader ? leader->term : 0;
    calls[i].in = config_member(&e->at->config, e->id) != NULL;
    calls[i].index = e->at->config_index;
    frame_begin(&o, FRAME_CHANGE, 0, (uint32_t)rand_between(&k.rng, 100, 3000), 1);
    frame_u8(&o, (uint8_t)what_of[e->kind]);
    frame_u64(&o, e->id);
    frame_text(&o, firn_slice(address, e->kind == ERRAND_ADD ? strlen(address) : 0));
    frame_end(&o);
    submit(OPERATOR, i, k_machine(m), room, o.len);
}

static void end_errand(const struct errand *e)
{
    for (size_t i = 0; i < k.errands; i++)
        if (k.errand[i].kind == e->kind && k.errand[i].id == e->id && k.errand[i].at == e->at) {
            memmove(&k.errand[i], &k.errand[i + 1], (--k.errands - i) * sizeof *e);
            return;
        }
}

/* What a change that is done says must have been so at some moment since it was asked for. */
static void change_done(unsigned i)
{
    const struct errand *e = &calls[i].e;
    bool in = config_member(&e->at->config, e->id) != NULL;
    bool out = !in || !calls[i].in || e->at->removed[e->id] > calls[i].removed;
    if (e->kind == ERRAND_REMOVE && !out)
        violate(k.w, "answer", "member %" PRIu64 " is said to be removed, and is not", e->id);
    if (e->kind == ERRAND_ADD && !in && !calls[i].in && e->at->removed[e->id] == calls[i].removed)
        violate(k.w, "answer", "member %" PRIu64 " is said to be added, and is not", e->id);
    if (e->kind == ERRAND_PROMOTE && in && e->at->config_index == calls[i].index &&
        config_member(&e->at->config, e->id)->role != CORE_VOTER)
        violate(k.w, "answer", "member %" PRIu64 " is said to be a voter, and is none", e->id);
    sometimes.rm_change_done++;
    end_errand(e);
}

/* Whether the leader that was asked has an entry in its log in which this one is a member. */
static bool leader_knows(unsigned call)
{
    static struct core_config c;
    struct core_entry at;
    const struct kmember *m = only_leader(calls[call].e.at);
    if (!m || m->id != calls[call].leader || m->term != calls[call].term)
        return false;
    for (uint64_t x = core_first(m->core); x <= core_applied(m->core); x++)
        if (core_entry_at(m->core, x, &at) && at.type == ENTRY_CONFIG &&
            config_read(at.bytes, at.len, &c) == 0 && config_member(&c, calls[call].e.id))
            return true;
    return false;
}

static void change_answered(const struct letter *l)
{
    unsigned i = (unsigned)l->value;
    const struct errand e = calls[i].e;
    struct frame f;
    struct frame_answer a = { .result = FIRN_EUNKNOWN };
    if (!calls[i].open)
        return;
    calls[i].open = false;
    if (l->len > 0 && frame_parse(l->bytes, l->len, &f) == (ssize_t)l->len) {
        struct frame_in in = { f.body, f.len, false };
        if (frame_get_reply(&in, &a) != 0)
            violate(k.w, "answer", "the answer to the operator is none");
    }
    trace(k.w, "operator: errand %d for %" PRIu64 " is answered: %d", e.kind, e.id, a.result);
    if (a.result == FIRN_ENOENT && e.kind == ERRAND_REMOVE && calls[i].removed > 0 &&
        leader_knows(i))
        violate(k.w, "answer", "member %" PRIu64 " was removed, and is said to be unknown", e.id);
    if (a.result == 0) {
        change_done(i);
    } else if (a.result == FIRN_EUNKNOWN) {
        sometimes.rm_change_again++;
    } else if (a.result != FIRN_EIO && a.result != FIRN_EAGAIN) {
        sometimes.rm_change_refused++;
        end_errand(&e);
    }
}

void whole_answered(const struct letter *l)
{
    if (l->from == OPERATOR) {
        change_answered(l);
        return;
    }
    struct co_client *c = &client[l->from];
    if (!c->started || (uint32_t)c->call != l->value || c->answered)
        return;
    free(c->reply);
    c->reply = malloc(l->len + 1);
    if (!c->reply)
        abort();
    memcpy(c->reply, l->bytes, l->len);
    c->reply_len = l->len;
    c->answered = true;
    client_wake(l->from, k_now());
}
