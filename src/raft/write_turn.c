/* Turns to write a register: for each contended register a short line of clients. */
#include "raft/write_turn.h"
#include "platform/assert.h"

#include <string.h>

static void leave(struct turn *u, unsigned i)
{
    firn_assert(i < u->n && u->n <= TURN_LINE_MAX, "place=%u line=%u", i, u->n);
    u->n--;
    memmove(u->line + i, u->line + i + 1, (u->n - i) * sizeof u->line[0]);
    if (i == 0) {
        u->here = false;
        u->entry = 0;
    }
}

static void next_in_line(struct turns *t, struct turn *u)
{
    leave(u, 0);
    u->until_ms = t->now_ms + t->for_ms;
}

/* Every turn whose time has passed since the last call ends. */
static bool is_over(struct turns *t, struct turn *u)
{
    while (u->n > 0 && t->now_ms >= u->until_ms) {
        leave(u, 0);
        u->until_ms += t->for_ms;
    }
    return u->n == 0;
}

/* NULL: no client waits for that register. */
static struct turn *find(struct turns *t, uint64_t key)
{
    firn_assert(t->used <= TURNS_MAX, "used=%u", t->used);
    while (t->used > 0 && is_over(t, &t->turn[t->used - 1]))
        t->used--;
    for (unsigned i = 0; i < t->used; i++)
        if (t->turn[i].key == key && !is_over(t, &t->turn[i]))
            return &t->turn[i];
    return NULL;
}

static struct turn *unused(struct turns *t)
{
    for (unsigned i = 0; i < t->used; i++)
        if (is_over(t, &t->turn[i]))
            return &t->turn[i];
    return t->used < TURNS_MAX ? &t->turn[t->used++] : NULL; /* NULL: this loser gets no turn */
}

/* u->n: not in line. */
static unsigned place(const struct turn *u, uintptr_t client)
{
    unsigned i = 0;
    firn_assert(u->n <= TURN_LINE_MAX, "line=%u", u->n);
    while (i < u->n && u->line[i] != client)
        i++;
    return i;
}

void turns_lost(struct turns *t, uint64_t key, uintptr_t client)
{
    struct turn *u = find(t, key);
    uint64_t until = t->now_ms + t->for_ms;
    if (!u) {
        u = unused(t);
        if (u)
            *u = (struct turn){ .key = key, .until_ms = until, .n = 1, .line = { client } };
        return;
    }
    unsigned i = place(u, client);
    if (i == 0) { /* still its turn: it learns the new value only now */
        u->here = false;
        u->entry = 0;
        u->until_ms = until;
    } else if (i == u->n && u->n < TURN_LINE_MAX) {
        u->line[u->n++] = client;
    }
}

enum turn_of turns_ask(struct turns *t, uint64_t key, uintptr_t client)
{
    struct turn *u = find(t, key);
    if (!u)
        return TURN_FREE;
    if (u->entry != 0)
        return u->entry == t->entry ? TURN_FREE : TURN_OTHERS;
    firn_assert(u->n > 0);
    if (u->line[0] != client)
        return TURN_OTHERS;
    if (!u->here)
        u->until_ms = t->now_ms + TURN_HELD_MS;
    u->here = true;
    return TURN_OURS;
}

void turns_begin(struct turns *t, uint64_t key, uintptr_t client)
{
    struct turn *u = find(t, key);
    if (!u || u->line[0] != client)
        return;
    firn_assert(t->entry != 0, "no entry is being filled");
    u->here = false;
    u->entry = t->entry;
    u->until_ms = t->now_ms + TURN_HELD_MS;
}

void turns_won(struct turns *t, uint64_t key, uintptr_t client)
{
    struct turn *u = find(t, key);
    unsigned i = u ? place(u, client) : 0;
    if (!u || i == u->n)
        return;
    if (i == 0)
        next_in_line(t, u);
    else
        leave(u, i);
}

void turns_over(struct turns *t, uint64_t entry)
{
    firn_assert(entry != 0 && t->used <= TURNS_MAX, "used=%u", t->used);
    for (unsigned i = 0; i < t->used; i++)
        if (t->turn[i].n > 0 && t->turn[i].entry == entry)
            next_in_line(t, &t->turn[i]);
}

void turns_forget(struct turns *t, uintptr_t client)
{
    for (unsigned k = 0; k < t->used; k++) {
        struct turn *u = &t->turn[k];
        unsigned i = place(u, client);
        if (u->n > 0 && i == 0)
            next_in_line(t, u);
        else if (i < u->n)
            leave(u, i);
    }
}
