/*
 * linear.h - is a history of one register linearizable? Wing and Gong's search with Lowe's memory:
 * order the operations one by one, each while it was under way, so that each answer is right; never
 * look twice at the same set of ordered operations with the same value.
 *
 * Values are numbers, 0 is "absent". A write whose outcome is unknown may take effect at any time
 * after it was called, or never. An operation that surely did nothing (an error) is not part of the
 * history.
 */
#ifndef LINEAR_H
#define LINEAR_H

#include <stddef.h>
#include <stdint.h>

enum lin_kind { LIN_READ, LIN_OK, LIN_CONFLICT, LIN_UNKNOWN }; /* the last three: of a CAS */

struct lin_op {
    enum lin_kind kind;
    uint32_t old;       /* READ: what it showed */
    uint32_t new;       /* of a CAS */
    uint64_t call, ret; /* ret: not of UNKNOWN. At equal times calls come first */
    uint32_t user;      /* the caller's: a client, a line */
};

struct lin_found {  /* where the search got stuck, for people */
    size_t ordered; /* operations in the longest order */
    uint32_t value; /* the register's after them */
    size_t stuck;   /* this operation's answer could not be explained after that order */
    size_t looked;  /* states */
};

enum lin_verdict { LIN_YES, LIN_NO, LIN_TOO_HARD, LIN_NO_MEMORY };

/* `first` is the value before the history. The search stops at `states_max` states. */
enum lin_verdict lin_check(const struct lin_op *op, size_t n, uint32_t first, size_t states_max,
                           struct lin_found *out);

#endif
