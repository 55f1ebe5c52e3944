/*
 * write_turn.h - who may write a register next, where several members want it. Without that a leader's own writes win
 * nearly always: another member's has a way to go, and names a value that is gone when it arrives. So whoever lost
 * is next, in the order of losing, for a moment: until then others wait. Once it writes, others may go into the same
 * entry of the log, behind it: they lose, and hear what to write on. In no later one, as long as that entry is under
 * way: they would win, and the next in line would write on what is gone again.
 * Nothing depends on it but who waits how long; a write is compared as ever. Pure; belongs to one thread.
 */
#ifndef FIRN_RAFT_WRITE_TURN_H
#define FIRN_RAFT_WRITE_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_MAX = 32,
    TURN_LINE_MAX = 8,
    TURN_HELD_MS = 1000, /* one whose write is here, or under way; then it is forgotten */
};

struct turn {
    uint64_t key;      /* of the register, a hash */
    uint64_t until_ms; /* the first one in the line has it till then */
    uint64_t entry;    /* that its write is under way in; 0: none */
    bool here;         /* its write is here, and waits for an entry */
    unsigned n;        /* 0: not used */
    uintptr_t line[TURN_LINE_MAX];
};

struct turns { /* all zero is the beginning */
    uint64_t now_ms,
        for_ms;     /* set by the caller before each call: the time, and how long a turn is */
    uint64_t entry; /* the same: the one that is being filled; 0: none */
    unsigned used;  /* none behind these */
    struct turn turn[TURNS_MAX];
};

enum turn_of { TURN_FREE, TURN_OURS, TURN_OTHERS };

/* `who` lost on that register: it is the next one, or comes behind those who lost before. */
void turns_lost(struct turns *t, uint64_t key, uintptr_t who);

/* A write of `who` is here: whose turn it is. One that was not taken in time goes to the next one. */
enum turn_of turns_ask(struct turns *t, uint64_t key, uintptr_t who);

/* It goes into the entry. */
void turns_begin(struct turns *t, uint64_t key, uintptr_t who);

/* It was done: the next one's turn. */
void turns_won(struct turns *t, uint64_t key, uintptr_t who);

/* Nothing more is heard of that entry, or of that one. */
void turns_over(struct turns *t, uint64_t entry);
void turns_forget(struct turns *t, uintptr_t who);

#endif
