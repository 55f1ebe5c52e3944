/*
 * write_turn.h - which client may write a register next, where several members write the same one.
 * Without turns a leader's own writes win nearly always: another member's write takes longer to
 * arrive, and names an old value that is replaced by then. So a client whose compare-and-swap lost
 * gets the next turn, in the order of losing, for a short time, and the writes of other clients
 * wait for it. While its write is in an entry, writes of other clients may go into the same entry
 * behind it: they lose, and learn the new value. They may not go into a later entry: they would win
 * there, and the next client in line would lose again. Turns affect only who waits how long; each
 * write is compared with the register all the same. Pure; belongs to one thread.
 */
#ifndef FIRN_RAFT_WRITE_TURN_H
#define FIRN_RAFT_WRITE_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_MAX = 32,
    TURN_LINE_MAX = 8,
    TURN_HELD_MS = 1000, /* longest turn of a client whose write has arrived or is in an entry */
};

struct turn {
    uint64_t key;      /* hash of the register's key */
    uint64_t until_ms; /* the turn of the first client in line ends then */
    uint64_t entry;    /* number of the entry that has its write; 0: none */
    bool here;         /* its write has arrived, and waits for an entry */
    unsigned n;        /* clients in line; 0: unused */
    uintptr_t line[TURN_LINE_MAX];
};

struct turns { /* all zero is the beginning */
    /* Set by the caller before each call: the time, the length of a turn, the entry being filled
     * (0: none). */
    uint64_t now_ms, for_ms, entry;
    unsigned used; /* every turn behind these is unused */
    struct turn turn[TURNS_MAX];
};

enum turn_of { TURN_FREE, TURN_OURS, TURN_OTHERS };

/* `client` lost on that register: it goes to the end of the line. */
void turns_lost(struct turns *t, uint64_t key, uintptr_t client);

/* A write of `client` has arrived: whose turn is it? A turn that was not used in time goes to the
 * next client. */
enum turn_of turns_ask(struct turns *t, uint64_t key, uintptr_t client);

/* Its write goes into the entry. */
void turns_begin(struct turns *t, uint64_t key, uintptr_t client);

/* Its write was applied, and won: the next client's turn. */
void turns_won(struct turns *t, uint64_t key, uintptr_t client);

/* That entry is applied or lost; that client is gone. */
void turns_over(struct turns *t, uint64_t entry);
void turns_forget(struct turns *t, uintptr_t client);

#endif
