/*
 * Group commit of writes on the leader: all writes that wait go into one log entry, and are
 * answered when it is applied. A client that lost the last comparison on a register goes first
 * (write_turn.h).
 */
#include "raft/node_in.h"
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

static struct turns *turns_now(struct node *n)
{
    uint64_t turn = n->raft.election_timeout /
                    10; /* round trips between members are shorter than that */
    n->proposals.turns.now_ms = uv_now(&n->loop.uv);
    n->proposals.turns.for_ms = turn < TURN_MS_MAX ? turn : TURN_MS_MAX;
    return &n->proposals.turns;
}

static size_t writes_of(const struct request *q, struct firn_cas *want)
{
    struct frame_in in = { q->frame.body + CAS_COUNT, q->frame.len - CAS_COUNT, false };
    size_t count = 0;
    return frame_get_cas(&in, want, &count) == 0 ? count : 0;
}

enum turn_of node_turn(struct node *n, const struct request *q)
{
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    enum turn_of all = TURN_FREE;
    if (n->proposals.turns.used == 0 || q->frame.type != FRAME_CAS)
        return TURN_FREE;
    struct turns *t = turns_now(n);
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

static void turn_begins(struct node *n, const struct request *q)
{
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    size_t count = writes_of(q, want);
    for (size_t i = 0; i < count; i++)
        turns_begin(turns_now(n), key_hash(want[i].key), client_of(q));
}

/* A creation or removal that lost is not retried, and a client that is gone gets no turn. */
static void turn_ends(struct node *n, const struct request *q, const struct firn_cas *w, bool lost)
{
    if (!q->wire && !q->done)
        return;
    firn_assert(w->key.p && w->key.len <= MAP_KEY_MAX, "key of %zu bytes", w->key.len);
    if (!lost)
        turns_won(turns_now(n), key_hash(w->key), client_of(q));
    else if (w->old.p && w->value.p)
        turns_lost(turns_now(n), key_hash(w->key), client_of(q));
}

/* ---- writes ---- */

struct proposal {
    struct raft_apply req;
    struct node *node;
    uint64_t entry; /* its number, for turns */
    uint32_t count; /* requests in the entry */
    struct {
        uint64_t number; /* of the request, which may have ended meanwhile */
        uint32_t writes;
    } part[FSM_REQUESTS_MAX];
};

/* `at` is the state machine's result of this request: an outcome, then a byte per write. */
static void answer_write(struct node *n, struct request *q, uint64_t index, const uint8_t *at,
                         uint32_t writes)
{
    uint8_t outcome = *at++;
    if (outcome != FSM_DONE) {
        node_refuse(
            n, q, outcome == FSM_OTHER ? FIRN_ESTORE : FIRN_EUNKNOWN,
            outcome == FSM_OTHER
                ? "the cluster was restored or recreated since this client opened it"
                : "the leader was lost, and the result of this write is no longer remembered");
        return;
    }
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    struct frame_out o = node_reply(n, q, index);
    size_t count = writes_of(q, want);
    firn_assert(count == writes, "request=%" PRIu64 " count=%zu writes=%u", q->number, count,
                writes);
    frame_u32(&o, writes);
    for (uint32_t k = 0; k < writes; k++) {
        bool found = false;
        size_t i = at[k] ? map_find(&n->fsm.map, want[k].key, &found) : 0;
        frame_u8(&o, at[k]);
        if (at[k])
            frame_text(&o, found ? map_value(&n->fsm.map, i) : (struct firn_slice){ NULL, 0 });
        turn_ends(n, q, &want[k], at[k] != 0);
    }
    node_reply_send(n, q, &o);
}

static void proposal_done(struct raft_apply *req, int status, void *result)
{
    struct proposal *p = req->data;
    struct node *n = p->node;
    const uint8_t *at = result; /* valid only if status is 0 */
    const uint8_t *end = status == 0 ? n->fsm.result + n->fsm.result_len : NULL;
    firn_assert(n->proposals.under_way > 0 && p->count > 0 && p->count <= FSM_REQUESTS_MAX,
                "under_way=%u requests=%u", n->proposals.under_way, p->count);
    n->proposals.under_way--;
    for (uint32_t i = 0; i < p->count; i++) {
        struct request *q = node_request(n, p->part[i].number);
        firn_assert(!q || q->state == REQUEST_PROPOSED, "request=%" PRIu64, p->part[i].number);
        firn_assert(status != 0 || (size_t)(end - at) > p->part[i].writes,
                    "request %u of %u lacks its result", i, p->count);
        if (q && status == 0)
            answer_write(n, q, req->index, at, p->part[i].writes);
        else if (q)
            node_ask_again(n, q, "the lead was lost while the write was under way");
        at = status == 0 ? at + 1 + p->part[i].writes : NULL;
    }
    firn_assert(status != 0 || at == end, "%td bytes of results are left", end - at);
    turns_over(turns_now(n), p->entry);
    free(p);
    node_pump_soon(n);
}

/* A leader has every entry that was ever acknowledged, so it cannot be behind a client. But this
 * member may have been deposed, and not know it yet. */
bool node_forgot(struct node *n, const struct request *q)
{
    return q->frame.type == FRAME_CAS && load_be64(q->frame.body) > raft_last_index(&n->raft);
}

/* Add the writes whose turn it is (`turn`), or all that need not wait for another client. False:
 * the entry is full. */
static bool add_writes(struct node *n, struct fsm_entry *e, struct proposal *p, bool turn)
{
    for (struct request *q = n->requests.first, *next; q; q = next) {
        next = q->next;
        if (q->frame.type != FRAME_CAS || !request_due(n, q) || node_forgot(n, q))
            continue;
        enum turn_of whose = node_turn(n, q);
        if (turn ? whose != TURN_OURS : whose == TURN_OTHERS)
            continue;
        if (!fsm_entry_add(e, q->frame.body + CAS_INCARNATION, q->frame.len - CAS_INCARNATION))
            return false;
        firn_assert(p->count < FSM_REQUESTS_MAX && p->count + 1 == e->requests,
                    "requests=%u in entry=%u", p->count, e->requests);
        if (whose == TURN_OURS)
            turn_begins(n, q);
        p->part[p->count].writes = load_be32(q->frame.body + CAS_COUNT);
        p->part[p->count++].number = q->number;
        request_move(q, REQUEST_PROPOSED);
    }
    return true;
}

void node_propose(struct node *n)
{
    struct proposal *p = calloc(1, sizeof *p);
    char *room = raft_malloc(FSM_ENTRY_MAX);
    struct fsm_entry e;
    if (!p || !room) {
        free(p);
        raft_free(room);
        return; /* the requests wait, and end at their deadlines */
    }
    firn_assert(n->proposals.under_way < PROPOSALS_MAX, "under_way=%u", n->proposals.under_way);
    p->node = n;
    p->req.data = p;
    firn_assert(n->proposals.turns.entry == 0, "entry=%" PRIu64, n->proposals.turns.entry);
    n->proposals.turns.entry = p->entry = ++n->proposals.begun;
    fsm_entry_begin(&e, room, FSM_ENTRY_MAX);
    if (n->proposals.turns.used == 0 || add_writes(n, &e, p, true))
        (void)add_writes(n, &e, p, false);
    n->proposals.turns.entry = 0;
    struct raft_buffer b = { room, fsm_entry_end(&e) };
    firn_assert(p->count == e.requests && b.len <= FSM_ENTRY_MAX, "requests=%u in entry=%u len=%zu",
                p->count, e.requests, b.len);
    if (p->count > 0) {
        char *shrunk = raft_realloc(b.base,
                                    b.len); /* the log keeps it until a snapshot replaces it */
        b.base = shrunk ? shrunk : b.base;
    }
    int r = p->count ? node_append(n, &p->req, &b, proposal_done) : RAFT_NOTFOUND;
    if (r == 0) {
        n->proposals.under_way++;
        n->proposals.entries++;
        n->proposals.writes += p->count;
        firn_assert(n->proposals.writes >= n->proposals.entries);
        return;
    }
    raft_free(b.base);
    for (uint32_t i = 0; i < p->count; i++) { /* not in the log: they wait for the next leader */
        struct request *q = node_request(n, p->part[i].number);
        firn_assert(q && q->state == REQUEST_PROPOSED, "request=%" PRIu64, p->part[i].number);
        request_wait(n, q, RETRY_MS);
    }
    turns_over(turns_now(n), p->entry);
    free(p);
}

bool node_may_write(struct node *n)
{
    for (struct request *q = n->requests.first; q; q = q->next)
        if (q->frame.type == FRAME_CAS && request_due(n, q) && !node_forgot(n, q) &&
            node_turn(n, q) != TURN_OTHERS)
            return true;
    return false;
}

static void named(struct raft_apply *req, int status, void *result)
{
    struct node *n = req->data;
    (void)result;
    if (status == 0 && n->opts.restore) {
        n->opts.restore = false;
        identity_note_restore(n);
    }
    firn_assert(n->proposals.naming);
    n->proposals.naming = false;
    free(req);
    node_pump_soon(n);
}

void node_name_cluster(struct node *n)
{
    struct raft_apply *req = calloc(1, sizeof *req);
    struct raft_buffer b = { raft_malloc(FSM_NAME_BYTES), FSM_NAME_BYTES };
    uint64_t fresh = 0;
    if (req && b.base && uv_random(NULL, NULL, &fresh, sizeof fresh, 0, NULL) == 0 && fresh) {
        size_t len = fsm_entry_incarnation(b.base, b.len, n->fsm.incarnation, fresh);
        firn_assert(len == b.len, "len=%zu", len);
        req->data = n;
        if (node_append(n, req, &b, named) == 0) {
            n->proposals.naming = true;
            return;
        }
    }
    free(req);
    raft_free(b.base);
}
