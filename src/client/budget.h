/*
 * budget.h - how many retries are allowed.
 * Each call earns a fifth of a retry: when all servers fail, the clients add a fifth to their load
 * instead of multiplying it by four. Pure.
 */
#ifndef FIRN_CLIENT_BUDGET_H
#define FIRN_CLIENT_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { BUDGET_RETRY = 5, BUDGET_MAX = 200 * BUDGET_RETRY }; /* in fifths; 200 retries in a burst */

struct budget {
    uint32_t fifths;
};

static inline void budget_init(struct budget *b)
{
    b->fifths = BUDGET_MAX;
}

static inline void budget_earn(struct budget *b)
{
    b->fifths += b->fifths < BUDGET_MAX;
}

static inline bool budget_spend(struct budget *b)
{
    if (b->fifths < BUDGET_RETRY)
        return false;
    b->fifths -= BUDGET_RETRY;
    return true;
}

#endif
