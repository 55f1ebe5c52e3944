/*
 * The history as a list of events in time, calls and returns. From its head, every call before the
 * first return is of an operation that may be next. One that fits is taken off the list, and it
 * goes on from the head. At a return whose operation was not taken nothing fits: undo the last one
 * and try the next instead.
 */
#include "linear.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct event {
    uint64_t time;
    size_t op;
    bool is_return;
    struct event *before, *after, *other; /* other: the return of a call; NULL for UNKNOWN */
};

struct memory { /* the states that were seen: a hash table of (set of operations, value) */
    size_t words, room, used;
    uint64_t *entry; /* each: the words of the set, then the value + 1; 0 there: free */
};

static uint64_t hash(const uint64_t *p, size_t n)
{
    uint64_t h = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 29;
    }
    return h;
}

static uint64_t *place(const struct memory *m, const uint64_t *state)
{
    size_t at = hash(state, m->words) & (m->room - 1);
    while (m->entry[at * m->words + m->words - 1] != 0 &&
           memcmp(&m->entry[at * m->words], state, m->words * sizeof *state) != 0)
        at = (at + 1) & (m->room - 1);
    return &m->entry[at * m->words];
}

static bool grow(struct memory *m)
{
    struct memory bigger = { m->words, m->room ? m->room * 2 : 1024, m->used, NULL };
    bigger.entry = calloc(bigger.room, m->words * sizeof *m->entry);
    if (!bigger.entry)
        return false;
    for (size_t i = 0; i < m->room; i++) {
        const uint64_t *e = &m->entry[i * m->words];
        if (e[m->words - 1] != 0)
            memcpy(place(&bigger, e), e, m->words * sizeof *e);
    }
    free(m->entry);
    *m = bigger;
    return true;
}

/* 1: new, 0: seen before, -1: no memory. */
static int remember(struct memory *m, const uint64_t *state)
{
    if (m->used * 2 >= m->room && !grow(m))
        return -1;
    uint64_t *e = place(m, state);
    if (e[m->words - 1] != 0)
        return 0;
    memcpy(e, state, m->words * sizeof *e);
    m->used++;
    return 1;
}

/* Whether the operation's answer is right with this value, and the value after it. */
static bool fits(const struct lin_op *op, uint32_t value, uint32_t *after)
{
    *after = op->kind == LIN_OK || op->kind == LIN_UNKNOWN ? op->new : value;
    return (value == op->old) == (op->kind != LIN_CONFLICT);
}

static int by_time(const void *x, const void *y)
{
    const struct event *a = x, *b = y;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (int)a->is_return - (int)b->is_return;
}

static void take_off(struct event *e)
{
    e->before->after = e->after;
    if (e->after)
        e->after->before = e->before;
}

static void put_back(struct event *e)
{
    e->before->after = e;
    if (e->after)
        e->after->before = e;
}

struct search {
    const struct lin_op *op;
    struct event head; /* before the first event */
    struct event *event, **stack;
    uint32_t *values; /* before each operation on the stack */
    uint64_t *state;
    size_t depth;
    struct memory memory;
};

static void make_list(struct search *s, size_t n)
{
    size_t events = 0;
    for (size_t i = 0; i < n; i++) {
        s->event[events++] = (struct event){ .time = s->op[i].call, .op = i };
        if (s->op[i].kind != LIN_UNKNOWN)
            s->event[events++] = (struct event){ s->op[i].ret, i, true, NULL, NULL, NULL };
    }
    qsort(s->event, events, sizeof *s->event, by_time);
    struct event *last = &s->head;
    for (size_t i = 0; i < events; i++) {
        struct event *e = &s->event[i];
        e->before = last;
        last->after = e;
        last = e;
        if (!e->is_return) /* where the call of each operation is, for the next loop */
            s->stack[e->op] = e;
    }
    for (size_t i = 0; i < events; i++)
        if (s->event[i].is_return)
            s->stack[s->event[i].op]->other = &s->event[i];
}

static enum lin_verdict run(struct search *s, uint32_t value, size_t states_max,
                            struct lin_found *out)
{
    size_t last = s->memory.words - 1;
    for (struct event *e = s->head.after; e;) {
        uint32_t after;
        if (e->is_return) { /* nothing more before it: the last choice was wrong */
            if (s->depth >= out->ordered) {
                out->ordered = s->depth;
                out->value = value;
                out->stuck = e->op;
            }
            if (s->depth == 0)
                return LIN_NO;
            e = s->stack[--s->depth];
            value = s->values[s->depth];
            s->state[e->op / 64] &= ~(UINT64_C(1) << e->op % 64);
            if (e->other)
                put_back(e->other);
            put_back(e);
            e = e->after;
            continue;
        }
        if (!fits(&s->op[e->op], value, &after)) {
            e = e->after;
            continue;
        }
        s->state[e->op / 64] |= UINT64_C(1) << e->op % 64;
        s->state[last] = (uint64_t)after + 1;
        int new = remember(&s->memory, s->state);
        if (new < 0)
            return LIN_NO_MEMORY;
        if (new == 0) {
            s->state[e->op / 64] &= ~(UINT64_C(1) << e->op % 64);
            e = e->after;
            continue;
        }
        if (++out->looked > states_max)
            return LIN_TOO_HARD;
        s->stack[s->depth] = e;
        s->values[s->depth++] = value;
        value = after;
        take_off(e);
        if (e->other)
            take_off(e->other);
        e = s->head.after;
    }
    return LIN_YES; /* only unknown ones are left: they never happened */
}

enum lin_verdict lin_check(const struct lin_op *op, size_t n, uint32_t first, size_t states_max,
                           struct lin_found *out)
{
    struct search s = { .op = op };
    enum lin_verdict verdict = LIN_NO_MEMORY;
    *out = (struct lin_found){ 0 };
    s.memory.words = n / 64 + 2;
    s.event = calloc(2 * n + 1, sizeof *s.event);
    s.stack = calloc(n + 1, sizeof(struct event *));
    s.values = calloc(n + 1, sizeof *s.values);
    s.state = calloc(s.memory.words, sizeof *s.state);
    if (s.event && s.stack && s.values && s.state) {
        make_list(&s, n);
        verdict = run(&s, first, states_max, out);
    }
    free(s.memory.entry);
    free(s.state);
    free(s.values);
    free(s.stack);
    free(s.event);
    return verdict;
}
