/*
 * Group commit of writes on the leader: all writes that wait go into one log entry, and are
 * answered when it is applied. A client that lost the last comparison on a register goes first
 * (write_turn.h).
 */
#include "raft/member_in.h"
#include "raft/mutant.h"
#include "id/bytes.h"
#include "id/fnv.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- turns ---- */

static uint64_t key_hash(struct firn_slice key)
{
    return fnv(FNV_BEGIN, key.p, key.len);
}

/* The client, by the connection of its requests; this process has none, and is 0. */
static uintptr_t client_of(const struct request *q)
{
    return (uintptr_t)q->wire;
}

enum { TURN_MS_MAX = 100 };

static struct turns *turns_now(struct member *m)
{
    uint64_t turn = core_election_ms(m->core) /
                    10; /* round trips between members are shorter than that */
    m->proposals.turns.now_ms = m->now_ms;
    m->proposals.turns.for_ms = turn < TURN_MS_MAX ? turn : TURN_MS_MAX;
    return &m->proposals.turns;
}

static size_t writes_of(const struct request *q, struct firn_cas *want)
{
    struct frame_in in = { q->frame.body + CAS_COUNT, q->frame.len - CAS_COUNT, false };
    size_t count = 0;
    return frame_get_cas(&in, want, &count) == 0 ? count : 0;
}

enum turn_of member_turn(struct member *m, const struct request *q)
{
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    enum turn_of all = TURN_FREE;
    if (m->proposals.turns.used == 0 || q->frame.type != FRAME_CAS)
        return TURN_FREE;
    struct turns *t = turns_now(m);
    size_t count = writes_of(q, want);
    for (size_t i = 0; i < count; i++) {
        enum turn_of one = turns_ask(t, key_hash(want[i].key), client_of(q));
        if (one == TURN_OURS)
            return one;
        all = one == TURN_OTHERS ? one : all;
    }
    /* A request for many registers might find one of them taken again and again: its wait is
     * bounded. */
    return t->now_ms - q->since_ms > t->for_ms * TURN_LINE_MAX ? TURN_FREE : all;
}

static void turn_begins(struct member *m, const struct request *q)
{
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    size_t count = writes_of(q, want);
    for (size_t i = 0; i < count; i++)
        turns_begin(turns_now(m), key_hash(want[i].key), client_of(q));
}

/* A creation or removal that lost is not retried, and a client that is gone gets no turn. */
static void turn_ends(struct member *m, const struct request *q, const struct firn_cas *w,
                      bool lost)
{
    if (!q->wire && !q->done)
        return;
    firn_assert(w->key.p && w->key.len <= MAP_KEY_MAX, "key of %zu bytes", w->key.len);
    if (!lost)
        turns_won(turns_now(m), key_hash(w->key), client_of(q));
    else if (w->old.p && w->value.p)
        turns_lost(turns_now(m), key_hash(w->key), client_of(q));
}

/* ---- writes ---- */

/* `at` is the state machine's result of this request: an outcome, then a byte per write. */
static void answer_write(struct member *m, struct request *q, uint64_t index, const uint8_t *at,
                         uint32_t writes)
{
    uint8_t outcome = *at++;
    if (outcome != FSM_DONE) {
        member_refuse(
            m, q, outcome == FSM_OTHER ? FIRN_ESTORE : FIRN_EUNKNOWN,
            outcome == FSM_OTHER
                ? "the cluster was restored or recreated since this client opened it"
                : "the leader was lost, and the result of this write is no longer remembered");
        return;
    }
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    struct frame_out o = member_reply(m, q, index);
    size_t count = writes_of(q, want);
    firn_assert(count == writes, "request=%" PRIu64 " count=%zu writes=%u", q->number, count,
                writes);
    frame_u32(&o, writes);
    for (uint32_t k = 0; k < writes; k++) {
        bool found = false;
        size_t i = at[k] ? map_find(&m->fsm.map, want[k].key, &found) : 0;
        frame_u8(&o, at[k]);
        if (at[k])
            frame_text(&o, found ? map_value(&m->fsm.map, i) : (struct firn_slice){ NULL, 0 });
        turn_ends(m, q, &want[k], at[k] != 0);
    }
    member_reply_send(m, q, &o);
}

static void writes_done(struct member *m, const struct proposal *p, bool applied)
{
    const uint8_t *at = m->fsm.result, *end = at + m->fsm.result_len; /* valid only if applied */
    firn_assert(m->proposals.under_way > 0 && p->count > 0 && p->count <= FSM_REQUESTS_MAX,
                "under_way=%u requests=%u", m->proposals.under_way, p->count);
    m->proposals.under_way--;
    for (uint32_t i = 0; i < p->count; i++) {
        struct request *q = member_request(m, p->part[i].number);
        firn_assert(!q || q->state == REQUEST_PROPOSED, "request=%" PRIu64, p->part[i].number);
        firn_assert(!applied || (size_t)(end - at) > p->part[i].writes,
                    "request %u of %u lacks its result", i, p->count);
        if (q && applied)
            answer_write(m, q, p->index, at, p->part[i].writes);
        else if (q && MEMBER_MUTANT(rm_proposed_forgotten))
            request_wait(m, q, RETRY_MS);
        else if (q)
            member_ask_again(m, q, "the lead was lost while the write was under way");
        at = applied ? at + 1 + p->part[i].writes : at;
    }
    firn_assert(!applied || at == end, "%td bytes of results are left", end - at);
    turns_over(turns_now(m), p->entry);
}

/* A leader has every entry that was ever acknowledged, so it cannot be behind a client. But this
 * member may have been deposed, and not know it yet. */
bool member_forgot(struct member *m, const struct request *q)
{
    return q->frame.type == FRAME_CAS && load_be64(q->frame.body) > core_last(m->core);
}

/* Add the writes whose turn it is (`turn`), or all that need not wait for another client. False:
 * the entry is full. */
static bool add_writes(struct member *m, struct fsm_entry *e, struct proposal *p, bool turn)
{
    for (struct request *q = m->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->frame.type != FRAME_CAS || !request_due(m, q) || member_forgot(m, q))
            continue;
        enum turn_of whose = member_turn(m, q);
        if (turn ? whose != TURN_OURS : whose == TURN_OTHERS)
            continue;
        if (!fsm_entry_add(e, q->frame.body + CAS_INCARNATION, q->frame.len - CAS_INCARNATION))
            return false;
        firn_assert(p->count < FSM_REQUESTS_MAX && p->count + 1 == e->requests,
                    "requests=%u in entry=%u", p->count, e->requests);
        if (whose == TURN_OURS)
            turn_begins(m, q);
        p->part[p->count].writes = load_be32(q->frame.body + CAS_COUNT);
        p->part[p->count++].number = q->number;
        request_move(q, REQUEST_PROPOSED);
    }
    return true;
}

void member_propose(struct member *m)
{
    struct proposal *p = calloc(1, sizeof *p + FSM_REQUESTS_MAX * sizeof p->part[0]);
    char *room = malloc(FSM_ENTRY_MAX);
    struct fsm_entry e;
    if (!p || !room) {
        free(p);
        free(room);
        return; /* the requests wait, and end at their deadlines */
    }
    firn_assert(m->proposals.under_way < PROPOSALS_MAX, "under_way=%u", m->proposals.under_way);
    firn_assert(m->proposals.turns.entry == 0, "entry=%" PRIu64, m->proposals.turns.entry);
    m->proposals.turns.entry = p->entry = ++m->proposals.begun;
    fsm_entry_begin(&e, room, FSM_ENTRY_MAX);
    if (m->proposals.turns.used == 0 || add_writes(m, &e, p, true))
        (void)add_writes(m, &e, p, false);
    m->proposals.turns.entry = 0;
    size_t len = fsm_entry_end(&e);
    firn_assert(p->count == e.requests && len <= FSM_ENTRY_MAX, "requests=%u in entry=%u len=%zu",
                p->count, e.requests, len);
    if (p->count > 0 && proposal_append(m, p, room, len)) {
        free(room);
        return;
    }
    for (uint32_t i = 0; i < p->count; i++) { /* not in the log: they wait for the next leader */
        struct request *q = member_request(m, p->part[i].number);
        firn_assert(q && q->state == REQUEST_PROPOSED, "request=%" PRIu64, p->part[i].number);
        request_wait(m, q, RETRY_MS);
    }
    turns_over(turns_now(m), p->entry);
    free(room);
    free(p);
}

bool member_may_write(struct member *m)
{
    for (struct request *q = m->requests.first; q; q = q->next)
        if (q->frame.type == FRAME_CAS && request_due(m, q) && !member_forgot(m, q) &&
            member_turn(m, q) != TURN_OTHERS)
            return true;
    return false;
}

/* ---- the name of the cluster ---- */

static void named(struct member *m, bool applied)
{
    if (applied && m->opts.restore) {
        m->opts.restore = false;
        if (m->opts.restored)
            m->opts.restored(m->opts.user);
    }
    firn_assert(m->proposals.naming);
    m->proposals.naming = false;
}

void member_name_cluster(struct member *m)
{
    struct proposal *p = calloc(1, sizeof *p);
    char room[FSM_NAME_BYTES];
    uint64_t fresh = fnv_word(fnv_word(FNV_BEGIN, m->opts.random), m->fsm.incarnation);
    if (MEMBER_MUTANT(rm_restored_unnamed) && m->fsm.incarnation)
        fresh = m->fsm.incarnation;
    size_t len = fsm_entry_incarnation(room, sizeof room, m->fsm.incarnation, fresh ? fresh : 1);
    firn_assert(len == sizeof room, "len=%zu", len);
    if (!p)
        return;
    p->kind = PROPOSAL_NAME;
    if (!proposal_append(m, p, room, len))
        free(p);
}

/* ---- entries under way ---- */

void proposal_begun(struct member *m, struct proposal *p, uint64_t index)
{
    p->index = index;
    p->term = core_term(m->core);
    p->next = NULL;
    *m->proposals.last = p;
    m->proposals.last = &p->next;
    if (p->kind == PROPOSAL_WRITES) {
        m->proposals.under_way++;
        m->proposals.entries++;
        m->proposals.writes += p->count;
    }
    m->proposals.naming |= p->kind == PROPOSAL_NAME;
    m->check.under_way |= p->kind == PROPOSAL_CHECK;
    member_drain(m);
}

bool proposal_append(struct member *m, struct proposal *p, char *entry, size_t len)
{
    uint64_t index = core_last(m->core) + 1, at;
    firn_assert(len > 0 && len <= CORE_ENTRY_BYTES_MAX, "len=%zu", len);
    fsm_entry_place(entry, index);
    if (core_propose(m->core, entry, len, &at) != 0)
        return false;
    firn_assert(at == index, "proposed at %" PRIu64 ", expected %" PRIu64, at, index);
    proposal_begun(m, p, index);
    return true;
}

/* The first one is over. */
static void end_first(struct member *m, bool applied)
{
    struct proposal *p = m->proposals.first;
    m->proposals.first = p->next;
    if (!p->next)
        m->proposals.last = &m->proposals.first;
    switch (p->kind) {
    case PROPOSAL_WRITES:
        writes_done(m, p, applied);
        break;
    case PROPOSAL_NAME:
        named(m, applied);
        break;
    case PROPOSAL_CHECK:
        check_said(m, p->index, applied);
        break;
    case PROPOSAL_CHANGE:
        membership_stepped(m, p, applied);
        break;
    }
    free(p);
    m->dirty = true;
}

void proposals_applied(struct member *m, const struct core_entry *e)
{
    const struct proposal *p = m->proposals.first;
    if (!p || p->index > e->index)
        return;
    firn_assert(p->index == e->index, "applied=%" PRIu64 " proposed=%" PRIu64, e->index, p->index);
    end_first(m, p->term == e->term);
}

void proposals_watch(struct member *m)
{
    while (m->proposals.first && (m->health.stopped || core_state(m->core) != CORE_LEADER ||
                                  core_term(m->core) != m->proposals.first->term))
        end_first(m, false);
}

void proposals_free(struct member *m)
{
    for (struct proposal *p = m->proposals.first, *next; p; p = next) {
        next = p->next;
        free(p);
    }
}
