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
#include "raft/member_in.h"
#include "raft/mutant.h"
#include "id/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BUDGET_MS_MAX = 60 * 1000,
    PATIENCE_MS = 1000,
    PAGE_BYTES = 256 * 1024,
    /* Of all clients together: they must not fill the memory, and each member_pump() walks over all
     * requests. */
    REQUESTS_MAX = 2048,
    REQUEST_BYTES_MAX = 64 << 20,
};

static bool leads(struct member *m)
{
    return core_leads(m->core) && !m->health.stopped;
}

static bool changes_something(const struct request *q)
{
    return q->frame.type == FRAME_CAS || q->frame.type == FRAME_CHANGE;
}

/* ---- replies ---- */

void member_answer(struct member *m, struct request *q, const char *reply, size_t len)
{
    struct member_requests *all = &m->requests;
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

static uint64_t index_now(struct member *m)
{
    return core_applied(m->core);
}

void member_refuse(struct member *m, struct request *q, int result, const char *why)
{
    struct frame_out o = { .p = m->requests.room, .cap = FRAME_MAX };
    if (MEMBER_MUTANT(rm_unknown_is_no) && result == FIRN_EUNKNOWN)
        result = FIRN_EIO;
    frame_refuse(&o, q->frame.number, result, result == FIRN_ENOENT ? index_now(m) : 0, why);
    member_answer(m, q, o.p, o.len);
}

struct frame_out member_reply(struct member *m, const struct request *q, uint64_t index)
{
    struct frame_out o = { .p = m->requests.room, .cap = FRAME_MAX };
    /* This process must not take its own clock for another member's. */
    frame_reply(&o, q->frame.number, 0, index, q->wire ? m->wall_ms : 0);
    return o;
}

void member_reply_send(struct member *m, struct request *q, struct frame_out *o)
{
    frame_end(o);
    if (o->full)
        member_refuse(m, q, FIRN_EIO, "the reply is longer than a frame");
    else
        member_answer(m, q, o->p, o->len);
}

static void answer_read(struct member *m, struct request *q)
{
    struct frame_in in = { q->frame.body, q->frame.len, false };
    (void)frame_get_u64(&in);
    (void)frame_get_u8(&in);
    struct firn_slice key = frame_get_text(&in, MAP_KEY_MAX);
    bool found;
    size_t i = map_find(&m->fsm.map, key, &found);
    if (!found) {
        member_refuse(m, q, FIRN_ENOENT, "");
        return;
    }
    struct frame_out o = member_reply(m, q, index_now(m));
    frame_text(&o, map_value(&m->fsm.map, i));
    member_reply_send(m, q, &o);
}

static void answer_scan(struct member *m, struct request *q)
{
    struct frame_in in = { q->frame.body, q->frame.len, false };
    (void)frame_get_u64(&in);
    struct firn_slice prefix = frame_get_text(&in, MAP_KEY_MAX);
    struct firn_slice behind = frame_get_text(&in, MAP_KEY_MAX);
    const struct map *map = &m->fsm.map;
    bool found, more = false;
    size_t i = map_find(map, behind.p ? behind : prefix, &found);
    uint32_t count = 0;
    struct frame_out o = member_reply(m, q, index_now(m));
    size_t head = o.len;
    frame_u8(&o, 0);
    frame_u32(&o, 0);
    for (i += behind.p && found; i < map->count; i++, count++) {
        struct firn_slice key = map_key(map, i);
        if (key.len < prefix.len || (prefix.len && memcmp(key.p, prefix.p, prefix.len) != 0))
            break;
        more = o.len > PAGE_BYTES;
        if (more)
            break;
        frame_text(&o, key);
        frame_text(&o, map_value(map, i));
    }
    firn_assert(o.full || head + 5 <= o.len, "head=%zu len=%zu", head, o.len);
    o.p[head] = more;
    store_be32(o.p + head + 1, count);
    member_reply_send(m, q, &o);
}

static void answer_identity(struct member *m, struct request *q)
{
    if (m->fsm.incarnation == 0) { /* a new leader is about to name the cluster */
        request_wait(m, q, RETRY_MS);
        return;
    }
    struct frame_out o = member_reply(m, q, index_now(m));
    frame_u64(&o, m->fsm.incarnation);
    member_reply_send(m, q, &o);
}

static void answer_from_map(struct member *m, struct request *q)
{
    if (q->wire && !wire_works(q->wire)) { /* the client did not read the replies before this one */
        member_answer(m, q, NULL, 0);
        return;
    }
    switch (q->frame.type) {
    case FRAME_READ:
        answer_read(m, q);
        break;
    case FRAME_SCAN:
        answer_scan(m, q);
        break;
    case FRAME_CAS: /* member_forgot(): this member does lead */
        member_refuse(
            m, q, FIRN_ESTORE,
            "the cluster has lost data that this client has seen: it was restored or wiped");
        break;
    default:
        answer_identity(m, q);
    }
}

static void answer_status(struct member *m, struct request *q)
{
    struct frame_out o = member_reply(m, q, index_now(m));
    firn_assert(o.len < o.cap, "len=%zu cap=%zu", o.len, o.cap);
    struct buf text;
    buf_init(&text, o.cap - o.len);
    member_status(m, q->frame.body[0] == STATUS_LINES, &text);
    if (!text.failed && text.len > 0) {
        memcpy(o.p + o.len, text.p, text.len);
        o.len += text.len;
    }
    o.full |= text.failed;
    buf_done(&text);
    member_reply_send(m, q, &o);
}

/* ---- the requests that wait ---- */

struct request *member_request(struct member *m, uint64_t number)
{
    for (struct request *q = m->requests.first; q; q = q->next)
        if (q->number == number)
            return q;
    return NULL;
}

void member_ask_again(struct member *m, struct request *q, const char *why)
{
    firn_assert(q->frame.type == FRAME_CAS && q->len > FRAME_HEAD + CAS_AGAIN, "type=%d",
                (int)q->frame.type);
    if (q->frame.flags != 0) { /* the member that forwarded it asks */
        member_refuse(m, q, FIRN_EUNKNOWN, why);
        return;
    }
    q->maybe = true;
    q->bytes[FRAME_HEAD + CAS_AGAIN] = !MEMBER_MUTANT(rm_again_as_new);
    request_wait(m, q, RETRY_MS);
}

/* A read, or a write whose client has seen more than this leader has. */
static bool needs_lead(struct member *m, const struct request *q)
{
    return request_due(m, q) && (!changes_something(q) || member_forgot(m, q));
}

static bool any_needs_lead(struct member *m)
{
    for (struct request *q = m->requests.first; q; q = q->next)
        if (needs_lead(m, q))
            return true;
    return false;
}

/* ---- requests that need proof of the lead ---- */

void member_read_done(struct member *m)
{
    struct member_reads *r = &m->reads;
    if (!r->under_way)
        return;
    bool lost = core_state(m->core) != CORE_LEADER || core_term(m->core) != r->term;
    bool shown = !lost && core_shown(m->core) >= r->question && core_applied(m->core) >= r->index;
    if (!lost && !shown)
        return;
    r->under_way = false;
    m->dirty = true;
    for (struct request *q = m->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->state != REQUEST_BARRIER)
            continue;
        if (shown)
            answer_from_map(m, q);
        else /* it changed nothing: the next leader can answer it */
            request_wait(m, q, RETRY_MS);
    }
}

static void read_current(struct member *m)
{
    struct member_reads *r = &m->reads;
    firn_assert(!r->under_way);
    r->question = core_ask(m->core);
    if (r->question == 0)
        return;
    r->index = core_committed(m->core);
    r->term = core_term(m->core);
    r->under_way = true;
    for (struct request *q = m->requests.first; q; q = q->next)
        if (needs_lead(m, q))
            request_move(q, REQUEST_BARRIER);
    member_drain(m);
}

/* ---- forwarding to the leader ---- */

void member_greet(struct wire *w)
{
    const struct member *m = wire_user(w);
    char room[FRAME_HEAD + FRAME_ADDRESS_MAX + 32];
    struct frame_out o = { .p = room, .cap = sizeof room };
    frame_hello(&o, FRAME_CLIENT, m->self.id, m->self.address);
    wire_send(w, o.p, o.len);
}

static void leader_frame(struct wire *w, const struct frame *f)
{
    struct member *m = wire_user(w);
    firn_assert(w == m->forward.wire, "a frame of a connection that was closed");
    if (f->type == FRAME_WELCOME) {
        m->forward.up = m->dirty = true;
        return;
    }
    struct request *q = f->type == FRAME_REPLY ? member_request(m, f->number) : NULL;
    struct frame_in in = { f->body, f->len, false };
    struct frame_answer a;
    if (!q || q->state != REQUEST_FORWARDED || frame_get_reply(&in, &a) != 0)
        return;
    bool change = q->frame.type == FRAME_CHANGE;
    if (a.result == FIRN_EAGAIN ||
        (change && a.result == FIRN_EUNKNOWN)) { /* it no longer leads, */
        q->maybe |= a.result == FIRN_EUNKNOWN;   /* and did nothing, or does not know */
        request_wait(m, q, RETRY_MS);
        return;
    }
    if (change && q->maybe && a.result == FIRN_ENOENT && q->frame.body[0] == CHANGE_REMOVE) {
        struct frame_out o = member_reply(m, q,
                                          a.index); /* the leader before this one removed it */
        member_reply_send(m, q, &o);
        return;
    }
    /* A refusal of this leader says nothing about what the leader before it did. FIRN_ESTORE does:
     * in another incarnation no member has the write. */
    bool open = a.result == FIRN_EUNKNOWN || (q->maybe && a.result != 0 && a.result != FIRN_ESTORE);
    if (open && q->frame.type == FRAME_CAS && q->frame.flags == 0) {
        member_ask_again(m, q, "");
        return;
    }
    m->reads.caught_up |= a.index > 0 && core_applied(m->core) >= a.index;
    size_t len = f->len + FRAME_HEAD;
    firn_assert(len <= FRAME_MAX, "len=%zu", len);
    memcpy(m->requests.room, f->body - FRAME_HEAD, len);
    store_be64(m->requests.room + 12, q->frame.number);
    member_answer(m, q, m->requests.room, len);
}

void member_leader_lost(struct member *m)
{
    m->forward.wire = NULL;
    m->forward.up = false;
    for (struct request *q = m->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->state != REQUEST_FORWARDED)
            continue;
        if (q->frame.type == FRAME_CAS && !MEMBER_MUTANT(rm_lost_forgotten)) {
            member_ask_again(m, q, "the leader was lost before it answered");
        } else { /* a read, or a change that may be made twice */
            q->maybe = q->frame.type == FRAME_CHANGE;
            request_wait(m, q, RETRY_MS);
        }
    }
}

static void leader_gone(struct wire *w, const char *why)
{
    struct member *m = wire_user(w);
    (void)why;
    firn_assert(w == m->forward.wire, "the end of a connection that was closed");
    m->forward.other++;
    member_leader_lost(m);
}

const char *member_any_other(const struct member *m)
{
    const struct core_config *c = core_config(m->core);
    for (unsigned i = 0; i < c->count; i++) {
        const struct core_member *other = &c->member[(m->forward.other + i) % c->count];
        if (other->id != m->self.id)
            return other->address;
    }
    return NULL;
}

static const struct wire_events leader_events = { member_greet, leader_frame, leader_gone };

static void forward(struct member *m, const char *address)
{
    if (m->forward.wire && strcmp(m->forward.address, address) != 0) {
        wire_close(m->forward.wire);
        member_leader_lost(m);
    }
    if (!m->forward.wire) {
        snprintf(m->forward.address, sizeof m->forward.address, "%s", address);
        m->forward.wire = wire_connect(m->opts.wires, address, &leader_events, m);
    }
    uint64_t now = m->now_ms;
    firn_assert(m->forward.wire || !m->forward.up);
    for (struct request *q = m->requests.first, *next; q && m->forward.up; q = next) {
        next = q->next;
        if (!request_due(m, q) || (q->frame.flags & FRAME_FORWARDED) ||
            MEMBER_MUTANT(rm_not_forwarded))
            continue;
        firn_assert(q->len >= FRAME_HEAD && q->len <= FRAME_MAX, "len=%zu", q->len);
        request_move(q, REQUEST_FORWARDED);
        m->forward.requests[q->frame.type == FRAME_CAS]++;
        memcpy(m->requests.room, q->bytes, q->len);
        m->requests.room[5] = m->health.stopped ? FRAME_PASSED : FRAME_FORWARDED;
        store_be32(m->requests.room + 8,
                   (uint32_t)(q->deadline_ms > now ? q->deadline_ms - now : 1));
        store_be64(m->requests.room + 12, q->number);
        wire_send(m->forward.wire, m->requests.room, q->len);
    }
}

/* ---- one pass over all requests ---- */

/* Stale reads, unless this member has just started or has stopped applying. */
static void answer_local(struct member *m)
{
    bool current = m->reads.caught_up && !m->health.stalled && !check_differs(m) &&
                   !m->health.stopped;
    for (struct request *q = m->requests.first, *next; q; q = next) {
        next = q->next;
        if (request_due(m, q) && q->frame.type == FRAME_READ && current &&
            (!q->frame.body[8] || MEMBER_MUTANT(rm_read_local)) &&
            (load_be64(q->frame.body) <= index_now(m) || MEMBER_MUTANT(rm_seen_ignored)))
            answer_read(m, q);
        else if (request_due(m, q) && q->frame.type == FRAME_STATUS &&
                 (leads(m) || q->frame.body[0] == STATUS_OWN))
            answer_status(m, q);
    }
}

static void hand_back(struct member *m)
{
    int flags = FRAME_FORWARDED | (m->health.stopped ? FRAME_PASSED : 0);
    for (struct request *q = m->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->state == REQUEST_WAITING && (q->frame.flags & flags))
            member_refuse(m, q, q->maybe ? FIRN_EUNKNOWN : FIRN_EAGAIN,
                          "this member does not lead");
    }
}

/* Where this member does not lead: the leader's address, if it is known and another one. */
static const char *leader_address(const struct member *m)
{
    if (m->health.stopped)
        return member_any_other(m); /* which forwards it to the leader */
    uint64_t id = core_leader(m->core);
    const struct core_member *leader = config_member(core_config(m->core), id);
    return leader && id != m->self.id ? leader->address : NULL;
}

/* The first change that may begin. */
static void change_members(struct member *m)
{
    for (struct request *q = m->requests.first; q && !m->change.under_way; q = q->next) {
        bool transfers = q->frame.type == FRAME_CHANGE && q->frame.body[0] == CHANGE_TRANSFER;
        if (q->frame.type != FRAME_CHANGE || !request_due(m, q) ||
            (!transfers && (!check_passed(m) || m->opts.restore)))
            continue;
        if (!transfers && !check_proved(m)) {
            q->waiting = "no majority of the members has confirmed the leader's registers yet";
            check_propose(m);
            return;
        }
        membership_change(m, q);
        m->dirty = true; /* the list may have changed: the next one in another pass */
        return;
    }
}

void member_pump(struct member *m)
{
    answer_local(m);
    if (!leads(m)) {
        m->proposals.turns.used = 0;
        hand_back(m);
        const char *address = leader_address(m);
        if (address)
            forward(m, address);
        return;
    }
    m->reads.caught_up |= core_settled(m->core);
    if (!check_passed(m))
        check_propose(m);
    else if (!m->proposals.naming && (m->fsm.incarnation == 0 || m->opts.restore))
        member_name_cluster(m);
    while (leads(m) && check_passed(m) && m->proposals.under_way < PROPOSALS_MAX &&
           (!m->opts.restore || m->proposals.naming) && member_may_write(m)) {
        uint64_t before = m->proposals.entries;
        member_propose(m);
        firn_assert(m->proposals.under_way <= PROPOSALS_MAX, "under_way=%u",
                    m->proposals.under_way);
        if (m->proposals.entries == before)
            break;
    }
    /* A restored cluster answers nobody under its old name. */
    bool named = !m->opts.restore && !m->proposals.naming;
    if (named && !m->reads.under_way && leads(m) && check_passed(m) && any_needs_lead(m)) {
        if (check_proved(m))
            read_current(m);
        else
            check_propose(m);
    }
    if (leads(m))
        change_members(m);
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
static void turn_away(struct member *m, const struct frame *f, struct wire *wire,
                      void (*done)(void *user, const char *reply, size_t len), void *user)
{
    struct frame_out o = { .p = m->requests.room, .cap = FRAME_MAX };
    frame_refuse(&o, f->number, FIRN_EIO, 0,
                 "too many requests wait on this member: send fewer at a time");
    if (wire)
        wire_send(wire, o.p, o.len);
    else if (done)
        done(user, o.p, o.len);
}

void request_take(struct member *m, const char *bytes, size_t len, struct wire *wire,
                  void (*done)(void *user, const char *reply, size_t len), void *user)
{
    struct request *q = calloc(1, sizeof *q + len);
    struct frame f;
    if (!q || frame_parse(bytes, len, &f) != (ssize_t)len || !well_formed(&f)) {
        free(q);
        if (wire)
            wire_close(wire), member_forget(m, wire);
        else if (done)
            done(user, NULL, 0);
        return;
    }
    if (m->requests.count == REQUESTS_MAX ||
        m->requests.bytes + sizeof *q + len > REQUEST_BYTES_MAX) {
        free(q);
        turn_away(m, &f, wire, done, user);
        return;
    }
    m->requests.bytes += sizeof *q + len;
    m->requests.count++;
    firn_assert(m->requests.count <= REQUESTS_MAX && m->requests.bytes <= REQUEST_BYTES_MAX,
                "count=%zu bytes=%zu", m->requests.count, m->requests.bytes);
    memcpy(q->bytes, bytes, len);
    q->len = len;
    q->frame = f;
    q->frame.body = q->bytes + FRAME_HEAD;
    firn_assert(q->frame.len + FRAME_HEAD == len, "body=%zu frame=%zu", q->frame.len, len);
    q->wire = wire;
    q->done = done;
    q->user = user;
    q->number = ++m->requests.last_number;
    if (f.type == FRAME_CAS && (f.flags == 0 || MEMBER_MUTANT(rm_new_nonce))) {
        store_be64(q->bytes + FRAME_HEAD + CAS_NONCE, m->opts.random);
        store_be64(q->bytes + FRAME_HEAD + CAS_NONCE + 8, q->number);
        store_be64(q->bytes + FRAME_HEAD + CAS_SINCE, m->fsm.requests);
        q->bytes[FRAME_HEAD + CAS_AGAIN] = 0;
    }
    firn_assert(q->number != 0);
    uint32_t budget = f.budget_ms < BUDGET_MS_MAX ? f.budget_ms : BUDGET_MS_MAX;
    q->since_ms = m->now_ms;
    q->deadline_ms = q->since_ms + budget;
    firn_assert(!m->requests.last || m->requests.last->number < q->number);
    q->prev = m->requests.last;
    *(m->requests.last ? &m->requests.last->next : &m->requests.first) = q;
    m->requests.last = q;
    (void)member_turn(m, q); /* if it is its turn, this notes that it arrived in time */
}

void member_forget(struct member *m, const struct wire *w)
{
    turns_forget(&m->proposals.turns, (uintptr_t)w);
    for (struct request *q = m->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->wire != w)
            continue;
        q->wire = NULL;
        if (q->state == REQUEST_WAITING) /* it has not begun, and does not begin now */
            member_answer(m, q, NULL, 0);
    }
}

/* Requests wait for the end of an election. Once there was no leader for longer, they are refused
 * at once. */
static bool given_up(const struct member *m, uint64_t now)
{
    uint64_t patience = 10 * core_election_ms(m->core);
    return m->election.leaderless_ms != 0 &&
           now - m->election.leaderless_ms >= (patience > PATIENCE_MS ? patience : PATIENCE_MS);
}

/* Why a request that never began has expired. */
static const char *late(struct member *m, const struct request *q)
{
    if (m->health.stopped)
        return "this member has stopped: see its log, and restart it";
    if (m->removal.removed)
        return "this member was removed from the cluster: stop it, or delete its folder and let it "
               "join again";
    if (!leads(m) && q->frame.type == FRAME_CHANGE)
        return "no leader: fewer than half of the voters reach each other; where all other members "
               "are lost for good: firn cluster remove --force";
    if (!leads(m))
        return "no leader: fewer than half of the voters reach each other";
    if (q->waiting)
        return q->waiting;
    if (q->state == REQUEST_BARRIER || !changes_something(q))
        return "the leader did not hear from a quorum in time, which a current read waits for";
    return q->frame.type == FRAME_CAS
               ? "too many writes at a time: this one was not proposed by its deadline"
               : "another membership change is under way: retry when it is done";
}

void member_expire(struct member *m)
{
    uint64_t now = m->now_ms;
    bool hopeless = given_up(m, now);
    for (struct request *q = m->requests.first, *next; q; q = next) {
        next = q->next;
        bool untouched = q->state == REQUEST_WAITING && !q->maybe;
        if (q->deadline_ms > now && !(hopeless && untouched))
            continue;
        if (q->frame.type == FRAME_STATUS)
            answer_status(m, q); /* of this member alone */
        else if (q->maybe)
            member_refuse(m, q, FIRN_EUNKNOWN,
                          "the leader was lost, and no other was elected by the deadline");
        else if (untouched || q->state == REQUEST_BARRIER || !changes_something(q))
            member_refuse(m, q, FIRN_EIO, late(m, q));
        else if (q->state == REQUEST_FORWARDED)
            member_refuse(m, q, FIRN_EUNKNOWN,
                          "the leader did not answer by the deadline: ask again");
        else
            member_refuse(m, q, FIRN_EUNKNOWN,
                          "the cluster did not confirm it by the deadline: ask again");
    }
}

void member_end_requests(struct member *m)
{
    while (m->requests.first)
        member_answer(m, m->requests.first, NULL, 0);
    firn_assert(m->requests.count == 0 && m->requests.bytes == 0);
}
