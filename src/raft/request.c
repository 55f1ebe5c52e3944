/*
 * What is asked of a member, from the first to the last moment.
 *
 * Every request waits first. Then, where this member leads: all writes that wait go into one entry of the
 * log (group commit; PROPOSALS_MAX entries may be on their way, so later ones collect meanwhile), all reads
 * that must be current wait for one barrier, and changes of members go one by one. Where another one leads:
 * they go there, over one connection. Reads that may be old are answered from our own map.
 *
 * What is certain is said with care. A write that was not proposed by its deadline, or that a leader gave
 * back, ends with FIRN_EIO or waits on. One that was proposed, or sent to a leader that went away, may have
 * happened: the member that took it in gave it a nonce, and asks the next leader again, which knows. Only
 * where none comes by the deadline it is FIRN_EUNKNOWN.
 */
#include "raft/node_in.h"
#include "id/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BUDGET_MS_MAX = 60 * 1000,
    PATIENCE_MS = 1000,
    PAGE_BYTES = 256 * 1024,
    /* That wait, of all who ask: peers must not fill the memory, and each turn walks over all. */
    REQUESTS_MAX = 2048,
    REQUEST_BYTES_MAX = 64 << 20,
};

static uint64_t wall_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static bool leads(struct node *n)
{
    return raft_state(&n->raft) == RAFT_LEADER && !n->change.transferring;
}

static bool changes_something(const struct request *q)
{
    return q->frame.type == FRAME_CAS || q->frame.type == FRAME_CHANGE;
}

/* ---- answers ---- */

void node_answer(struct node *n, struct request *q, const char *reply, size_t len)
{
    *(q->prev ? &q->prev->next : &n->requests.first) = q->next;
    *(q->next ? &q->next->prev : &n->requests.last) = q->prev;
    n->requests.bytes -= sizeof *q + q->len;
    n->requests.count--;
    if (q->wire && reply)
        wire_send(q->wire, reply, len);
    else if (q->done)
        q->done(q->user, reply, len);
    free(q);
}

static uint64_t index_now(struct node *n)
{
    return raft_last_applied(&n->raft);
}

void node_refuse(struct node *n, struct request *q, int result, const char *why)
{
    struct frame_out o = { .p = n->requests.room, .cap = FRAME_MAX };
    frame_refuse(&o, q->frame.number, result, result == FIRN_ENOENT ? index_now(n) : 0, why);
    node_answer(n, q, o.p, o.len);
}

struct frame_out node_reply(struct node *n, const struct request *q, uint64_t index)
{
    struct frame_out o = { .p = n->requests.room, .cap = FRAME_MAX };
    /* Our own process has this clock already: it would take it for another one's. */
    frame_reply(&o, q->frame.number, 0, index, q->wire ? wall_ms() : 0);
    return o;
}

void node_reply_send(struct node *n, struct request *q, struct frame_out *o)
{
    frame_end(o);
    if (o->full)
        node_refuse(n, q, FIRN_EIO, "the answer is too long");
    else
        node_answer(n, q, o->p, o->len);
}

static void answer_read(struct node *n, struct request *q)
{
    struct frame_in in = { q->frame.body, q->frame.len, false };
    (void)frame_get_u64(&in);
    (void)frame_get_u8(&in);
    struct firn_slice key = frame_get_text(&in, MAP_KEY_MAX);
    bool found;
    size_t i = map_find(&n->fsm.map, key, &found);
    if (!found) {
        node_refuse(n, q, FIRN_ENOENT, "");
        return;
    }
    struct frame_out o = node_reply(n, q, index_now(n));
    frame_text(&o, map_value(&n->fsm.map, i));
    node_reply_send(n, q, &o);
}

static void answer_scan(struct node *n, struct request *q)
{
    struct frame_in in = { q->frame.body, q->frame.len, false };
    (void)frame_get_u64(&in);
    struct firn_slice prefix = frame_get_text(&in, MAP_KEY_MAX);
    struct firn_slice behind = frame_get_text(&in, MAP_KEY_MAX);
    const struct map *m = &n->fsm.map;
    bool found, more = false;
    size_t i = map_find(m, behind.p ? behind : prefix, &found);
    uint32_t count = 0;
    struct frame_out o = node_reply(n, q, index_now(n));
    size_t head = o.len;
    frame_u8(&o, 0);
    frame_u32(&o, 0);
    for (i += behind.p && found; i < m->count; i++, count++) {
        struct firn_slice key = map_key(m, i);
        if (key.len < prefix.len || (prefix.len && memcmp(key.p, prefix.p, prefix.len) != 0))
            break;
        more = o.len > PAGE_BYTES;
        if (more)
            break;
        frame_text(&o, key);
        frame_text(&o, map_value(m, i));
    }
    o.p[head] = more;
    store_be32(o.p + head + 1, count);
    node_reply_send(n, q, &o);
}

static void answer_identity(struct node *n, struct request *q)
{
    if (n->fsm.incarnation == 0) { /* a new leader is about to name it */
        q->state = REQUEST_WAITING;
        q->retry_ms = uv_now(&n->loop.uv) + RETRY_MS;
        return;
    }
    struct frame_out o = node_reply(n, q, index_now(n));
    frame_u64(&o, n->fsm.incarnation);
    node_reply_send(n, q, &o);
}

static void answer_from_map(struct node *n, struct request *q)
{
    if (q->wire && !wire_works(q->wire)) { /* it did not take the answers before this one */
        node_answer(n, q, NULL, 0);
        return;
    }
    switch (q->frame.type) {
    case FRAME_READ:
        answer_read(n, q);
        break;
    case FRAME_SCAN:
        answer_scan(n, q);
        break;
    case FRAME_CAS: /* it does lead */
        node_refuse(n, q, FIRN_ESTORE,
                    "the cluster has forgotten what it knew: it was restored or wiped");
        break;
    default:
        answer_identity(n, q);
    }
}

static void answer_status(struct node *n, struct request *q)
{
    struct frame_out o = node_reply(n, q, index_now(n));
    struct text text = { .p = o.p + o.len, .cap = o.cap - o.len };
    node_status(n, q->frame.body[0] == STATUS_LINES, &text);
    o.len += text.len;
    o.full |= text.truncated;
    node_reply_send(n, q, &o);
}

/* ---- what waits ---- */

struct request *node_request(struct node *n, uint64_t number)
{
    for (struct request *q = n->requests.first; q; q = q->next)
        if (q->number == number)
            return q;
    return NULL;
}

/* The next leader is asked what became of it, if it is ours to ask. */
void node_ask_again(struct node *n, struct request *q, const char *why)
{
    if (q->frame.flags != 0) { /* the member that sent it asks */
        node_refuse(n, q, FIRN_EUNKNOWN, why);
        return;
    }
    q->maybe = true;
    q->bytes[FRAME_HEAD + CAS_AGAIN] = 1;
    q->state = REQUEST_WAITING;
    q->retry_ms = uv_now(&n->loop.uv) + RETRY_MS;
}

/* A read, or a write that asks for what this leader does not have. */
static bool needs_lead(struct node *n, const struct request *q)
{
    return request_due(n, q) && (!changes_something(q) || node_forgot(n, q));
}

static bool any_needs_lead(struct node *n)
{
    for (struct request *q = n->requests.first; q; q = q->next)
        if (needs_lead(n, q))
            return true;
    return false;
}

/* ---- what needs a lead that is sure ---- */

static void barrier_done(struct raft_barrier *req, int status)
{
    struct node *n = req->data;
    n->reads.under_way = false;
    if (status == 0) {
        n->reads.caught_up = true;
        check_settle(n);
    }
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->state != REQUEST_BARRIER)
            continue;
        if (status == 0) {
            answer_from_map(n, q);
        } else { /* it changed nothing: the next leader may answer */
            q->state = REQUEST_WAITING;
            q->retry_ms = uv_now(&n->loop.uv) + RETRY_MS;
        }
    }
    node_pump_soon(n);
}

static void read_current(struct node *n)
{
    n->reads.barrier.data = n;
    if (raft_barrier(&n->raft, &n->reads.barrier, barrier_done) != 0)
        return;
    n->reads.under_way = true;
    for (struct request *q = n->requests.first; q && check_passed(n); q = q->next)
        if (needs_lead(n, q))
            q->state = REQUEST_BARRIER;
}

/* ---- to the leader ---- */

void node_greet(struct wire *w)
{
    const struct node *n = wire_user(w);
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_hello(&o, FRAME_CLIENT, n->self.id, n->self.address);
    wire_send(w, o.p, o.len);
}

static void leader_frame(struct wire *w, const struct frame *f)
{
    struct node *n = wire_user(w);
    if (f->type == FRAME_WELCOME) {
        n->forward.up = true;
        node_pump(n);
        return;
    }
    struct request *q = f->type == FRAME_REPLY ? node_request(n, f->number) : NULL;
    struct frame_in in = { f->body, f->len, false };
    struct frame_answer a;
    if (!q || q->state != REQUEST_FORWARDED || frame_get_reply(&in, &a) != 0)
        return;
    bool change = q->frame.type == FRAME_CHANGE;
    if (a.result == FIRN_EAGAIN || (change && a.result == FIRN_EUNKNOWN)) { /* it leads no more, */
        q->maybe |= a.result == FIRN_EUNKNOWN; /* and did nothing, or does not know */
        q->state = REQUEST_WAITING;
        q->retry_ms = uv_now(&n->loop.uv) + RETRY_MS;
        return;
    }
    if (change && q->maybe && a.result == FIRN_ENOENT && q->frame.body[0] == CHANGE_REMOVE) {
        struct frame_out o = node_reply(n, q, a.index); /* the leader before this one removed it */
        node_reply_send(n, q, &o);
        return;
    }
    /* What this leader did not do says nothing about the one before it. That the store is another one does:
     * then nobody has it any more. */
    bool open = a.result == FIRN_EUNKNOWN || (q->maybe && a.result != 0 && a.result != FIRN_ESTORE);
    if (open && q->frame.type == FRAME_CAS && q->frame.flags == 0) {
        node_ask_again(n, q, "");
        return;
    }
    n->reads.caught_up |= a.index > 0 && raft_last_applied(&n->raft) >= a.index;
    size_t len = f->len + FRAME_HEAD;
    memcpy(n->requests.room, f->body - FRAME_HEAD, len);
    store_be64(n->requests.room + 12, q->frame.number);
    node_answer(n, q, n->requests.room, len);
}

void node_leader_lost(struct node *n)
{
    n->forward.wire = NULL;
    n->forward.up = false;
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->state != REQUEST_FORWARDED)
            continue;
        if (q->frame.type == FRAME_CAS) {
            node_ask_again(n, q, "the leader was lost before it answered");
        } else { /* nothing changes by it, or nothing more when it is done twice */
            q->maybe = q->frame.type == FRAME_CHANGE;
            q->state = REQUEST_WAITING;
            q->retry_ms = uv_now(&n->loop.uv) + RETRY_MS;
        }
    }
}

static void leader_gone(struct wire *w, const char *why)
{
    struct node *n = wire_user(w);
    (void)why;
    n->forward.other++;
    node_leader_lost(n);
}

const char *node_any_other(const struct node *n)
{
    const struct raft_configuration *c = &n->raft.configuration;
    for (unsigned i = 0; i < c->n; i++) {
        const struct raft_server *s = &c->servers[(n->forward.other + i) % c->n];
        if (s->id != n->self.id)
            return s->address;
    }
    return NULL;
}

static const struct wire_events leader_events = { node_greet, leader_frame, leader_gone };

static void forward(struct node *n, const char *address)
{
    if (n->forward.wire && strcmp(n->forward.address, address) != 0) {
        wire_close(n->forward.wire);
        node_leader_lost(n);
    }
    if (!n->forward.wire) {
        snprintf(n->forward.address, sizeof n->forward.address, "%s", address);
        n->forward.wire = wire_connect(&n->loop.uv, address, n->net.tls, &leader_events, n);
    }
    uint64_t now = uv_now(&n->loop.uv);
    for (struct request *q = n->requests.first, *next; q && n->forward.up; q = next) {
        next = q->next;
        if (!request_due(n, q) || (q->frame.flags & FRAME_FORWARDED))
            continue;
        q->state = REQUEST_FORWARDED;
        n->forward.requests[q->frame.type == FRAME_CAS]++;
        memcpy(n->requests.room, q->bytes, q->len);
        n->requests.room[5] = raft_state(&n->raft) == RAFT_UNAVAILABLE ? FRAME_PASSED
                                                                       : FRAME_FORWARDED;
        store_be32(n->requests.room + 8,
                   (uint32_t)(q->deadline_ms > now ? q->deadline_ms - now : 1));
        store_be64(n->requests.room + 12, q->number);
        wire_send(n->forward.wire, n->requests.room, q->len);
    }
}

/* ---- the turn of all ---- */

/* Old is good enough, and we are neither merely starting nor standing still. */
static void answer_local(struct node *n)
{
    bool current = n->reads.caught_up && !n->health.stalled && !check_differs(n) &&
                   raft_state(&n->raft) != RAFT_UNAVAILABLE;
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        if (request_due(n, q) && q->frame.type == FRAME_READ && current && !q->frame.body[8] &&
            load_be64(q->frame.body) <= index_now(n))
            answer_read(n, q);
        else if (request_due(n, q) && q->frame.type == FRAME_STATUS &&
                 (leads(n) || q->frame.body[0] == STATUS_OWN))
            answer_status(n, q);
    }
}

static void hand_back(struct node *n)
{
    bool cut_off = raft_state(&n->raft) == RAFT_UNAVAILABLE;
    int flags = FRAME_FORWARDED | (cut_off ? FRAME_PASSED : 0);
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->state == REQUEST_WAITING && (q->frame.flags & flags))
            node_refuse(n, q, q->maybe ? FIRN_EUNKNOWN : FIRN_EAGAIN, "this member does not lead");
    }
}

void node_pump(struct node *n)
{
    if (!n->health.raft_open || n->loop.closing)
        return;
    leader_commit_note(n);
    answer_local(n);
    if (!leads(n)) {
        n->proposals.turns.used = 0;
        raft_id id;
        const char *address;
        hand_back(n);
        raft_leader(&n->raft, &id, &address);
        if (raft_state(&n->raft) == RAFT_UNAVAILABLE)
            address = node_any_other(n); /* who leads is not known any more: it passes it on */
        else if (id == 0 || id == n->self.id)
            address = NULL;
        if (address)
            forward(n, address);
        return;
    }
    if (!check_passed(n))
        check_propose(n);
    else if (!n->proposals.naming && (n->fsm.incarnation == 0 || n->opts.restore))
        node_name_cluster(n);
    while (check_passed(n) && n->proposals.under_way < PROPOSALS_MAX && node_may_write(n) &&
           leads(n)) {
        unsigned before = n->proposals.under_way;
        node_propose(n);
        if (n->proposals.under_way == before)
            break;
    }
    if (!n->reads.under_way && leads(n) &&
        (check_passed(n) ? any_needs_lead(n) : !check_settled(n)))
        read_current(n);
    for (struct request *q = n->requests.first; q && !n->change.under_way; q = q->next)
        if (request_due(n, q) && q->frame.type == FRAME_CHANGE &&
            (check_passed(n) || q->frame.body[0] == CHANGE_TRANSFER)) {
            membership_change(n, q);
            break; /* the list may have changed; the rest has its turn when this one is done */
        }
}

/* ---- coming and going ---- */

static bool well_formed(const struct frame *f)
{
    struct frame_in in = { f->body, f->len, false };
    struct firn_cas want[FRAME_WRITES_MAX];
    size_t count;
    switch (f->type) {
    case FRAME_READ:
        (void)frame_get_u64(&in);
        (void)frame_get_u8(&in);
        return frame_get_text(&in, MAP_KEY_MAX).p && !in.bad && in.len == 0;
    case FRAME_SCAN:
        (void)frame_get_u64(&in);
        if (!frame_get_text(&in, MAP_KEY_MAX).p)
            return false;
        (void)frame_get_text(&in, MAP_KEY_MAX);
        return !in.bad && in.len == 0;
    case FRAME_CAS:
        for (int i = 0; i < CAS_COUNT; i++)
            (void)frame_get_u8(&in);
        return frame_get_cas(&in, want, &count) == 0 && in.len == 0;
    case FRAME_CHANGE:
        (void)frame_get_u8(&in);
        (void)frame_get_u64(&in);
        return frame_get_text(&in, FRAME_ADDRESS_MAX).p && !in.bad && in.len == 0;
    case FRAME_IDENTITY:
        return f->len == 0;
    case FRAME_STATUS:
        return f->len == 1;
    default:
        return false;
    }
}

/* Too much waits already. */
static void turn_away(struct node *n, const struct frame *f, struct wire *wire,
                      void (*done)(void *user, const char *reply, size_t len), void *user)
{
    struct frame_out o = { .p = n->requests.room, .cap = FRAME_MAX };
    frame_refuse(&o, f->number, FIRN_EIO, 0, "this member has too much to do: ask less at once");
    if (wire)
        wire_send(wire, o.p, o.len);
    else if (done)
        done(user, o.p, o.len);
}

void node_take(struct node *n, const char *bytes, size_t len, struct wire *wire,
               void (*done)(void *user, const char *reply, size_t len), void *user)
{
    struct request *q = calloc(1, sizeof *q + len);
    struct frame f;
    if (!q || frame_parse(bytes, len, &f) != (ssize_t)len || !well_formed(&f)) {
        free(q);
        if (wire)
            wire_close(wire), node_forget(n, wire);
        else if (done)
            done(user, NULL, 0);
        return;
    }
    if (n->requests.count == REQUESTS_MAX ||
        n->requests.bytes + sizeof *q + len > REQUEST_BYTES_MAX) {
        free(q);
        turn_away(n, &f, wire, done, user);
        return;
    }
    n->requests.bytes += sizeof *q + len;
    n->requests.count++;
    memcpy(q->bytes, bytes, len);
    q->len = len;
    q->frame = f;
    q->frame.body = q->bytes + FRAME_HEAD;
    q->wire = wire;
    q->done = done;
    q->user = user;
    q->number = ++n->requests.last_number;
    if (f.type == FRAME_CAS && f.flags == 0) {
        store_be64(q->bytes + FRAME_HEAD + CAS_NONCE, n->self.boot);
        store_be64(q->bytes + FRAME_HEAD + CAS_NONCE + 8, q->number);
        store_be64(q->bytes + FRAME_HEAD + CAS_SINCE, n->fsm.requests);
        q->bytes[FRAME_HEAD + CAS_AGAIN] = 0;
    }
    uint32_t budget = f.budget_ms < BUDGET_MS_MAX ? f.budget_ms : BUDGET_MS_MAX;
    q->since_ms = uv_now(&n->loop.uv);
    q->deadline_ms = q->since_ms + budget;
    q->prev = n->requests.last;
    *(n->requests.last ? &n->requests.last->next : &n->requests.first) = q;
    n->requests.last = q;
    (void)node_turn(n, q); /* if it is its turn, that it came in time counts */
}

void node_forget(struct node *n, const struct wire *w)
{
    turns_forget(&n->proposals.turns, (uintptr_t)w);
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->wire != w)
            continue;
        q->wire = NULL;
        if (q->state == REQUEST_WAITING) /* nothing of it has begun, and now nothing will */
            node_answer(n, q, NULL, 0);
    }
}

/* An election takes a moment, which is worth waiting for. What comes when there has been no leader for long is told at
 * once. */
static bool given_up(const struct node *n, uint64_t now)
{
    uint64_t patience = 10 * n->raft.election_timeout;
    return n->election.leaderless_ms != 0 &&
           now - n->election.leaderless_ms >= (patience > PATIENCE_MS ? patience : PATIENCE_MS);
}

/* Why it waited in vain, where nothing was done of it. */
static const char *late(struct node *n, const struct request *q)
{
    if (n->health.stopped)
        return "libraft has stopped in this member: see its log, and restart it";
    if (n->removal.removed)
        return "this member was removed from the cluster: end it, or delete its folder and let it join "
               "anew";
    if (!leads(n))
        return "no leader: fewer than half of the members are there";
    if (q->state == REQUEST_BARRIER || !changes_something(q))
        return "the leader did not hear from most members in time, which a current read waits for";
    return q->frame.type == FRAME_CAS
               ? "too much is written at once: it was not its turn in time"
               : "another change of the members is under way: try again when it is done";
}

void node_expire(struct node *n)
{
    uint64_t now = uv_now(&n->loop.uv);
    bool hopeless = given_up(n, now);
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        bool untouched = q->state == REQUEST_WAITING && !q->maybe;
        if (q->deadline_ms > now && !(hopeless && untouched))
            continue;
        if (q->frame.type == FRAME_STATUS)
            answer_status(n, q); /* what this member alone knows */
        else if (q->maybe)
            node_refuse(n, q, FIRN_EUNKNOWN, "the leader was lost, and no other one came in time");
        else if (untouched || q->state == REQUEST_BARRIER || !changes_something(q))
            node_refuse(n, q, FIRN_EIO, late(n, q));
        else if (q->state == REQUEST_FORWARDED)
            node_refuse(n, q, FIRN_EUNKNOWN, "the leader did not answer in time");
        else
            node_refuse(n, q, FIRN_EUNKNOWN, "the cluster did not confirm it in time");
    }
}

void node_end_requests(struct node *n)
{
    while (n->requests.first)
        node_answer(n, n->requests.first, NULL, 0);
}
