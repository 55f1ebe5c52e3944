#include "raft/write_turn.h"

#include <string.h>

static void leave(struct turn *u, unsigned i)
{
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

/* Time that has passed is counted: a line that was left alone long ago is over. */
static bool is_over(struct turns *t, struct turn *u)
{
    while (u->n > 0 && t->now_ms >= u->until_ms) {
        leave(u, 0);
        u->until_ms += t->for_ms;
    }
    return u->n == 0;
}

/* NULL: nobody waits there. */
static struct turn *find(struct turns *t, uint64_t key)
{
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
    return t->used < TURNS_MAX ? &t->turn[t->used++] : NULL;
}

/* n: not in the line. */
static unsigned place(const struct turn *u, uintptr_t who)
{
    unsigned i = 0;
    while (i < u->n && u->line[i] != who)
        i++;
    return i;
}

void turns_lost(struct turns *t, uint64_t key, uintptr_t who)
{
    struct turn *u = find(t, key);
    uint64_t until = t->now_ms + t->for_ms;
    if (!u) {
        u = unused(t);
        if (u)
            *u = (struct turn){ .key = key, .until_ms = until, .n = 1, .line = { who } };
        return;
    }
    unsigned i = place(u, who);
    if (i == 0) { /* still its turn: it hears only now what to write on */
        u->here = false;
        u->entry = 0;
        u->until_ms = until;
    } else if (i == u->n && u->n < TURN_LINE_MAX) {
        u->line[u->n++] = who;
    }
}

enum turn_of turns_ask(struct turns *t, uint64_t key, uintptr_t who)
{
    struct turn *u = find(t, key);
    if (!u)
        return TURN_FREE;
    if (u->entry != 0)
        return u->entry == t->entry ? TURN_FREE : TURN_OTHERS;
    if (u->line[0] != who)
        return TURN_OTHERS;
    if (!u->here)
        u->until_ms = t->now_ms + TURN_HELD_MS;
    u->here = true;
    return TURN_OURS;
}

void turns_begin(struct turns *t, uint64_t key, uintptr_t who)
{
    struct turn *u = find(t, key);
    if (!u || u->line[0] != who)
        return;
    u->here = false;
    u->entry = t->entry;
    u->until_ms = t->now_ms + TURN_HELD_MS;
}

void turns_won(struct turns *t, uint64_t key, uintptr_t who)
{
    struct turn *u = find(t, key);
    unsigned i = u ? place(u, who) : 0;
    if (!u || i == u->n)
        return;
    if (i == 0)
        next_in_line(t, u);
    else
        leave(u, i);
}

void turns_over(struct turns *t, uint64_t entry)
{
    for (unsigned i = 0; i < t->used; i++)
        if (t->turn[i].n > 0 && t->turn[i].entry == entry)
            next_in_line(t, &t->turn[i]);
}

void turns_forget(struct turns *t, uintptr_t who)
{
    for (unsigned k = 0; k < t->used; k++) {
        struct turn *u = &t->turn[k];
        unsigned i = place(u, who);
        if (u->n > 0 && i == 0)
            next_in_line(t, u);
        else if (i < u->n)
            leave(u, i);
    }
}
