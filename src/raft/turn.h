/*
 * turn.h - who may write a register next, where several members want it. Without that a leader's own writes win
 * nearly always: another member's has a way to go, and names a value that is gone when it arrives. So whoever lost
 * is next, in the order of losing, for a moment: until then others wait. Nothing depends on it but who waits how
 * long; a write is compared as ever. Pure; belongs to one thread, all zero is the beginning.
 */
#ifndef FIRN_RAFT_TURN_H
#define FIRN_RAFT_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TURNS_MAX = 32, TURN_LINE_MAX = 8, TURN_WRITES_MS = 1000 /* then it is forgotten */ };

struct turn {
    uint64_t key;      /* of the register, a hash */
    uint64_t until_ms; /* the first one in the line has it till then */
    unsigned n;        /* 0: not used */
    bool writes;       /* it is at it: nobody has to wait any more */
    uintptr_t line[TURN_LINE_MAX];
};

struct turns {
    unsigned used; /* none after this one */
    struct turn turn[TURNS_MAX];
};

enum turn_of { TURN_FREE, TURN_OURS, TURN_OTHERS };

/* `who` lost on that register: it is the next one, or comes behind those who lost before. A turn is `for_ms`. */
void turns_lost(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms, uint64_t for_ms);

/* Whose turn it is. One that was not taken in time goes to the next one. */
enum turn_of turns_ask(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms,
                       uint64_t for_ms);

/* A write of it is under way: who else writes now loses, and hears what the register holds then. */
void turns_begin(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms, uint64_t for_ms);

/* It was done: the next one's turn. */
void turns_won(struct turns *t, uint64_t key, uintptr_t who, uint64_t now_ms, uint64_t for_ms);

#endif
