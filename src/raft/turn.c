#include "raft/turn.h"

#include <string.h>

static void next_in_line(struct turn *u, uint64_t now_ms, uint64_t for_ms)
{
    u->n--;
    u->writes = false;
    memmove(u->line, u->line + 1, u->n * sizeof u->line[0]);
    u->until_ms = now_ms + for_ms;
}

/* NULL: nobody waits there. */
static struct turn *find(struct turns *t, uint64_t key, uint64_t now_ms, uint64_t for_ms)
{
    struct turn *found = NULL;
    while (t->used > 0 && t->turn[t->used - 1].n == 0)
        t->used--;
    for (unsigned i = 0; i < t->used && !found; i++)
        if (t->turn[i].n > 0 && t->turn[i].key == key)
            found = &t->turn[i];
    while (found && found->n > 0 && now_ms >= found->until_ms)
        next_in_line(found, now_ms, for_ms);
    return found && found->n > 0 ? found : NULL;
}

static struct turn *unused(struct turns *t, uint64_t now_ms)
{
    for (unsigned i = 0; i < t->used; i++)
        if (t->turn[i].n == 0 || now_ms >= t->turn[i].until_ms)
            return &t->turn[i];
    return t->used < TURNS_MAX ? &t->turn[t->used++] : NULL;
}

void turns_lost(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms, uint64_t for_ms)
{
    struct turn *u = find(t, key, now_ms, for_ms);
    if (!u) {
        u = unused(t, now_ms);
        if (u)
            *u = (struct turn){ .key = key, .until_ms = now_ms + for_ms, .n = 1, .line = { who } };
        return;
    }
    if (u->line[0] == who) { /* still its turn: it hears only now what to write on */
        u->writes = false;
        u->until_ms = now_ms + for_ms;
        return;
    }
    for (unsigned i = 1; i < u->n; i++)
        if (u->line[i] == who)
            return;
    if (u->n < TURN_LINE_MAX)
        u->line[u->n++] = who;
}

enum turn_of turns_ask(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms,
                       uint64_t for_ms)
{
    const struct turn *u = t->used > 0 ? find(t, key, now_ms, for_ms) : NULL;
    return !u || u->writes ? TURN_FREE : u->line[0] == who ? TURN_OURS : TURN_OTHERS;
}

void turns_begin(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms, uint64_t for_ms)
{
    struct turn *u = find(t, key, now_ms, for_ms);
    if (!u || u->line[0] != who)
        return;
    u->writes = true;
    u->until_ms = now_ms + TURN_WRITES_MS;
}

void turns_won(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms, uint64_t for_ms)
{
    struct turn *u = find(t, key, now_ms, for_ms);
    if (u && u->line[0] == who)
        next_in_line(u, now_ms, for_ms);
}
