/*
 * Writes, where this member leads: all that wait go into one entry of the log, and are answered when it is applied.
 * Who was too slow last time goes first (write_turn.h).
 */
#include "raft/node_in.h"
#include "id/bytes.h"
#include "id/fnv.h"

#include <stdlib.h>

/* ---- whose turn it is ---- */

static uint64_t key_hash(struct firn_slice key)
{
    return fnv(FNV_BEGIN, key.p, key.len);
}

/* A member, by the connection that its requests come over; this one has none to itself. */
static uintptr_t asker(const struct request *q)
{
    return (uintptr_t)q->wire;
}

enum { TURN_MS_MAX = 100 };

static struct turns *turns_now(struct node *n)
{
    uint64_t turn = n->raft.election_timeout / 10; /* members are no farther apart than that */
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
        enum turn_of one = turns_ask(t, key_hash(want[i].key), asker(q));
        if (one == TURN_OURS)
            return one;
        all = one == TURN_OTHERS ? one : all;
    }
    /* Of many registers one or another may always be somebody's. */
    return t->now_ms - q->since_ms > t->for_ms * TURN_LINE_MAX ? TURN_FREE : all;
}

static void turn_begins(struct node *n, const struct request *q)
{
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    size_t count = writes_of(q, want);
    for (size_t i = 0; i < count; i++)
        turns_begin(turns_now(n), key_hash(want[i].key), asker(q));
}

/* A creation or removal that lost is not tried again as such, and nobody waits for one who went away. */
static void turn_ends(struct node *n, const struct request *q, const struct firn_cas *w, bool lost)
{
    if (!q->wire && !q->done)
        return;
    if (!lost)
        turns_won(turns_now(n), key_hash(w->key), asker(q));
    else if (w->old.p && w->value.p)
        turns_lost(turns_now(n), key_hash(w->key), asker(q));
}

/* ---- writes ---- */

struct proposal {
    struct raft_apply req;
    struct node *node;
    uint64_t entry; /* its number, for turns */
    uint32_t count;
    struct {
        uint64_t number; /* of the request, which may have ended meanwhile */
        uint32_t writes;
    } part[FSM_REQUESTS_MAX];
};

/* `at` is what the state machine said about this request. */
static void answer_write(struct node *n, struct request *q, uint64_t index, const uint8_t *at,
                         uint32_t writes)
{
    uint8_t outcome = *at++;
    if (outcome != FSM_DONE) {
        node_refuse(n, q, outcome == FSM_OTHER ? FIRN_ESTORE : FIRN_EUNKNOWN,
                    outcome == FSM_OTHER
                        ? "the cluster was restored or made anew since it was opened"
                        : "the leader was lost, and too much happened since");
        return;
    }
    static _Thread_local struct firn_cas want[FRAME_WRITES_MAX];
    struct frame_out o = node_reply(n, q, index);
    (void)writes_of(q, want); /* as many as it said */
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
    const uint8_t *at = result; /* only where it was applied */
    n->proposals.under_way--;
    for (uint32_t i = 0; i < p->count; i++) {
        struct request *q = node_request(n, p->part[i].number);
        if (q && status == 0)
            answer_write(n, q, req->index, at, p->part[i].writes);
        else if (q)
            node_ask_again(n, q, "the lead was lost while it was written");
        at = at ? at + 1 + p->part[i].writes : NULL;
    }
    turns_over(turns_now(n), p->entry);
    free(p);
    node_pump_soon(n);
}

/* Behind what the client has seen, this cluster cannot be: a leader has all that was ever acknowledged. But it may be
 * one no more, and not know it yet. */
bool node_forgot(struct node *n, const struct request *q)
{
    return q->frame.type == FRAME_CAS && load_be64(q->frame.body) > raft_last_index(&n->raft);
}

/* Those whose turn it is, or all that do not have to wait for another one. False: the entry is full. */
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
        if (whose == TURN_OURS)
            turn_begins(n, q);
        p->part[p->count].writes = load_be32(q->frame.body + CAS_COUNT);
        p->part[p->count++].number = q->number;
        q->state = REQUEST_PROPOSED;
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
        return; /* they wait on, and end at their deadline */
    }
    p->node = n;
    p->req.data = p;
    n->proposals.turns.entry = p->entry = ++n->proposals.begun;
    fsm_entry_begin(&e, room, FSM_ENTRY_MAX);
    if (n->proposals.turns.used == 0 || add_writes(n, &e, p, true))
        (void)add_writes(n, &e, p, false);
    n->proposals.turns.entry = 0;
    struct raft_buffer b = { room, fsm_entry_end(&e) };
    if (p->count > 0) {
        char *shrunk = raft_realloc(b.base, b.len); /* the log keeps it for long */
        b.base = shrunk ? shrunk : b.base;
    }
    int r = p->count ? node_append(n, &p->req, &b, proposal_done) : RAFT_NOTFOUND;
    if (r == 0) {
        n->proposals.under_way++;
        n->proposals.entries++;
        n->proposals.writes += p->count;
        return;
    }
    raft_free(b.base);
    for (uint32_t i = 0; i < p->count; i++) { /* not in the log: they wait for the next leader */
        struct request *q = node_request(n, p->part[i].number);
        q->state = REQUEST_WAITING;
        q->retry_ms = uv_now(&n->loop.uv) + RETRY_MS;
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

/* A cluster gets its name from its first leader, and another one when it is restored. */
static void named(struct raft_apply *req, int status, void *result)
{
    struct node *n = req->data;
    (void)result;
    if (status == 0 && n->opts.restore) {
        n->opts.restore = false;
        identity_note_restore(n);
    }
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
        (void)fsm_entry_incarnation(b.base, b.len, n->fsm.incarnation, fresh);
        req->data = n;
        if (node_append(n, req, &b, named) == 0) {
            n->proposals.naming = true;
            return;
        }
    }
    free(req);
    raft_free(b.base);
}
