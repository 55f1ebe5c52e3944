/*
 * retry_budget.h - how many retries are allowed: a share of the requests.
 * When an upstream fails, retries add at most that share to its load instead of multiplying it.
 * Each request earns `percent` hundredths of a retry; a few are saved up, so that a service with
 * little traffic may retry at all. Pure; one thread. Tested in tests/unit/proxy/retry_budget.c.
 */
#ifndef FIRN_PROXY_RETRY_BUDGET_H
#define FIRN_PROXY_RETRY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum { RETRY_PERCENT = 20, RETRY_SAVED = 10 }; /* the defaults */

struct retry_budget {
    uint32_t percent; /* 0: no retries */
    uint32_t saved;   /* how many retries may be saved up; the budget begins with so many */
    uint64_t hundredths;
};

static inline void retry_budget_init(struct retry_budget *b, uint32_t percent, uint32_t saved)
{
    *b = (struct retry_budget){ percent, saved, percent ? saved * UINT64_C(100) : 0 };
}

/* A request came (not a retry of one). */
static inline void retry_budget_request(struct retry_budget *b)
{
    const uint64_t most = b->saved * UINT64_C(100);
    b->hundredths += b->percent;
    if (b->hundredths > most)
        b->hundredths = most;
}

/* Whether a retry may be sent; it is counted then. */
static inline bool retry_budget_take(struct retry_budget *b)
{
    if (b->hundredths < 100)
        return false;
    b->hundredths -= 100;
    return true;
}

#endif
