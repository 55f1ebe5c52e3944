/*
 * Requests of clients, from arrival to reply.
 *
 * Every request waits first. On the leader, all writes that wait go into one log entry (group
 * commit; PROPOSALS_MAX entries may be under way, so later writes collect meanwhile), all reads
 * that must be current wait for one barrier, and membership changes run one by one. On any other
 * member, requests are forwarded to the leader over one connection. Reads that may be stale are
 * answered from this member's own map.
 *
 * A reply never claims more than is certain. A write that was not proposed by its deadline, or that
 * a leader gave back, ends with FIRN_EIO or waits on. A write that was proposed, or sent to a
 * leader that was lost, may have been applied: the member that took it from the client gave it a
 * nonce, and asks the next leader again, which knows. Only if no leader answers by the deadline the
 * reply is FIRN_EUNKNOWN.
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
    /* Of all clients together: they must not fill the memory, and each node_pump() walks over all
     * requests. */
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

/* ---- replies ---- */

void node_answer(struct node *n, struct request *q, const char *reply, size_t len)
{
    struct node_requests *all = &n->requests;
    firn_assert(all->count > 0 && all->bytes >= sizeof *q + q->len, "count=%zu bytes=%zu",
                all->count, all->bytes);
    firn_assert((q->prev ? q->prev->next : all->first) == q &&
                (q->next ? q->next->prev : all->last) == q);
    firn_assert(len <= FRAME_MAX, "len=%zu", len);
    *(q->prev ? &q->prev->next : &all->first) = q->next;
    *(q->next ? &q->next->prev : &all->last) = q->prev;
    all->bytes -= sizeof *q + q->len;
    all->count--;
    firn_assert((all->count == 0) == !all->first && (all->count == 0) == (all->bytes == 0));
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
    /* This process must not take its own clock for another member's. */
    frame_reply(&o, q->frame.number, 0, index, q->wire ? wall_ms() : 0);
    return o;
}

void node_reply_send(struct node *n, struct request *q, struct frame_out *o)
{
    frame_end(o);
    if (o->full)
        node_refuse(n, q, FIRN_EIO, "the reply is longer than a frame");
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
    firn_assert(o.full || head + 5 <= o.len, "head=%zu len=%zu", head, o.len);
    o.p[head] = more;
    store_be32(o.p + head + 1, count);
    node_reply_send(n, q, &o);
}

static void answer_identity(struct node *n, struct request *q)
{
    if (n->fsm.incarnation == 0) { /* a new leader is about to name the cluster */
        request_wait(n, q, RETRY_MS);
        return;
    }
    struct frame_out o = node_reply(n, q, index_now(n));
    frame_u64(&o, n->fsm.incarnation);
    node_reply_send(n, q, &o);
}

static void answer_from_map(struct node *n, struct request *q)
{
    if (q->wire && !wire_works(q->wire)) { /* the client did not read the replies before this one */
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
    case FRAME_CAS: /* node_forgot(): this member does lead */
        node_refuse(
            n, q, FIRN_ESTORE,
            "the cluster has lost data that this client has seen: it was restored or wiped");
        break;
    default:
        answer_identity(n, q);
    }
}

static void answer_status(struct node *n, struct request *q)
{
    struct frame_out o = node_reply(n, q, index_now(n));
    firn_assert(o.len < o.cap, "len=%zu cap=%zu", o.len, o.cap);
    struct buf text;
    buf_init(&text, o.cap - o.len);
    node_status(n, q->frame.body[0] == STATUS_LINES, &text);
    if (!text.failed && text.len > 0) {
        memcpy(o.p + o.len, text.p, text.len);
        o.len += text.len;
    }
    o.full |= text.failed;
    buf_done(&text);
    node_reply_send(n, q, &o);
}

/* ---- the requests that wait ---- */

struct request *node_request(struct node *n, uint64_t number)
{
    for (struct request *q = n->requests.first; q; q = q->next)
        if (q->number == number)
            return q;
    return NULL;
}

void node_ask_again(struct node *n, struct request *q, const char *why)
{
    firn_assert(q->frame.type == FRAME_CAS && q->len > FRAME_HEAD + CAS_AGAIN, "type=%d",
                (int)q->frame.type);
    if (q->frame.flags != 0) { /* the member that forwarded it asks */
        node_refuse(n, q, FIRN_EUNKNOWN, why);
        return;
    }
    q->maybe = true;
    q->bytes[FRAME_HEAD + CAS_AGAIN] = 1;
    request_wait(n, q, RETRY_MS);
}

/* A read, or a write whose client has seen more than this leader has. */
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

/* ---- requests that need proof of the lead ---- */

static void barrier_done(struct raft_barrier *req, int status)
{
    struct node *n = req->data;
    firn_assert(n->reads.under_way);
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
        } else { /* it changed nothing: the next leader can answer it */
            request_wait(n, q, RETRY_MS);
        }
    }
    node_pump_soon(n);
}

static void read_current(struct node *n)
{
    firn_assert(!n->reads.under_way);
    n->reads.barrier.data = n;
    if (raft_barrier(&n->raft, &n->reads.barrier, barrier_done) != 0)
        return;
    n->reads.under_way = true;
    for (struct request *q = n->requests.first; q && check_passed(n); q = q->next)
        if (needs_lead(n, q))
            request_move(q, REQUEST_BARRIER);
}

/* ---- forwarding to the leader ---- */

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
    firn_assert(w == n->forward.wire, "a frame of a connection that was closed");
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
    if (a.result == FIRN_EAGAIN ||
        (change && a.result == FIRN_EUNKNOWN)) { /* it no longer leads, */
        q->maybe |= a.result == FIRN_EUNKNOWN;   /* and did nothing, or does not know */
        request_wait(n, q, RETRY_MS);
        return;
    }
    if (change && q->maybe && a.result == FIRN_ENOENT && q->frame.body[0] == CHANGE_REMOVE) {
        struct frame_out o = node_reply(n, q, a.index); /* the leader before this one removed it */
        node_reply_send(n, q, &o);
        return;
    }
    /* A refusal of this leader says nothing about what the leader before it did. FIRN_ESTORE does:
     * in another incarnation no member has the write. */
    bool open = a.result == FIRN_EUNKNOWN || (q->maybe && a.result != 0 && a.result != FIRN_ESTORE);
    if (open && q->frame.type == FRAME_CAS && q->frame.flags == 0) {
        node_ask_again(n, q, "");
        return;
    }
    n->reads.caught_up |= a.index > 0 && raft_last_applied(&n->raft) >= a.index;
    size_t len = f->len + FRAME_HEAD;
    firn_assert(len <= FRAME_MAX, "len=%zu", len);
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
        } else { /* a read, or a change that may be made twice */
            q->maybe = q->frame.type == FRAME_CHANGE;
            request_wait(n, q, RETRY_MS);
        }
    }
}

static void leader_gone(struct wire *w, const char *why)
{
    struct node *n = wire_user(w);
    (void)why;
    firn_assert(w == n->forward.wire, "the end of a connection that was closed");
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
    firn_assert(n->forward.wire || !n->forward.up);
    for (struct request *q = n->requests.first, *next; q && n->forward.up; q = next) {
        next = q->next;
        if (!request_due(n, q) || (q->frame.flags & FRAME_FORWARDED))
            continue;
        firn_assert(q->len >= FRAME_HEAD && q->len <= FRAME_MAX, "len=%zu", q->len);
        request_move(q, REQUEST_FORWARDED);
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

/* ---- one pass over all requests ---- */

/* Stale reads, unless this member has just started or has stopped applying. */
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
    bool unavailable = raft_state(&n->raft) == RAFT_UNAVAILABLE;
    int flags = FRAME_FORWARDED | (unavailable ? FRAME_PASSED : 0);
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
            address = node_any_other(
                n); /* libraft has stopped: another member forwards it to the leader */
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
        firn_assert(n->proposals.under_way <= PROPOSALS_MAX, "under_way=%u",
                    n->proposals.under_way);
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
            break; /* the list may have changed; the next change begins when this one is done */
        }
}

/* ---- arrival and end of a request ---- */

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

/* Too many requests wait already. */
static void turn_away(struct node *n, const struct frame *f, struct wire *wire,
                      void (*done)(void *user, const char *reply, size_t len), void *user)
{
    struct frame_out o = { .p = n->requests.room, .cap = FRAME_MAX };
    frame_refuse(&o, f->number, FIRN_EIO, 0,
                 "too many requests wait on this member: send fewer at a time");
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
    firn_assert(n->requests.count <= REQUESTS_MAX && n->requests.bytes <= REQUEST_BYTES_MAX,
                "count=%zu bytes=%zu", n->requests.count, n->requests.bytes);
    memcpy(q->bytes, bytes, len);
    q->len = len;
    q->frame = f;
    q->frame.body = q->bytes + FRAME_HEAD;
    firn_assert(q->frame.len + FRAME_HEAD == len, "body=%zu frame=%zu", q->frame.len, len);
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
    firn_assert(q->number != 0);
    uint32_t budget = f.budget_ms < BUDGET_MS_MAX ? f.budget_ms : BUDGET_MS_MAX;
    q->since_ms = uv_now(&n->loop.uv);
    q->deadline_ms = q->since_ms + budget;
    firn_assert(!n->requests.last || n->requests.last->number < q->number);
    q->prev = n->requests.last;
    *(n->requests.last ? &n->requests.last->next : &n->requests.first) = q;
    n->requests.last = q;
    (void)node_turn(n, q); /* if it is its turn, this notes that it arrived in time */
}

void node_forget(struct node *n, const struct wire *w)
{
    turns_forget(&n->proposals.turns, (uintptr_t)w);
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->wire != w)
            continue;
        q->wire = NULL;
        if (q->state == REQUEST_WAITING) /* it has not begun, and does not begin now */
            node_answer(n, q, NULL, 0);
    }
}

/* Requests wait for the end of an election. Once there was no leader for longer, they are refused
 * at once. */
static bool given_up(const struct node *n, uint64_t now)
{
    uint64_t patience = 10 * n->raft.election_timeout;
    return n->election.leaderless_ms != 0 &&
           now - n->election.leaderless_ms >= (patience > PATIENCE_MS ? patience : PATIENCE_MS);
}

/* Why a request that never began has expired. */
static const char *late(struct node *n, const struct request *q)
{
    if (n->health.stopped)
        return "libraft has stopped in this member: see its log, and restart it";
    if (n->removal.removed)
        return "this member was removed from the cluster: stop it, or delete its folder and let it "
               "join again";
    if (!leads(n))
        return "no leader: fewer than half of the voters reach each other";
    if (q->state == REQUEST_BARRIER || !changes_something(q))
        return "the leader did not hear from a quorum in time, which a current read waits for";
    return q->frame.type == FRAME_CAS
               ? "too many writes at a time: this one was not proposed by its deadline"
               : "another membership change is under way: retry when it is done";
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
            answer_status(n, q); /* of this member alone */
        else if (q->maybe)
            node_refuse(n, q, FIRN_EUNKNOWN,
                        "the leader was lost, and no other was elected by the deadline");
        else if (untouched || q->state == REQUEST_BARRIER || !changes_something(q))
            node_refuse(n, q, FIRN_EIO, late(n, q));
        else if (q->state == REQUEST_FORWARDED)
            node_refuse(n, q, FIRN_EUNKNOWN, "the leader did not answer by the deadline");
        else
            node_refuse(n, q, FIRN_EUNKNOWN, "the cluster did not confirm it by the deadline");
    }
}

void node_end_requests(struct node *n)
{
    while (n->requests.first)
        node_answer(n, n->requests.first, NULL, 0);
    firn_assert(n->requests.count == 0 && n->requests.bytes == 0);
}
