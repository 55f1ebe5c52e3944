/*
 * fault.h - faults to inject into requests, for tests of what depends on a service: a delay, an
 * answer without asking the service, or both, for a share of the requests or those with a header.
 * Pure: randomness comes in. Any thread.
 */
#ifndef FIRN_PROXY_FAULT_H
#define FIRN_PROXY_FAULT_H

#include "wire/buf.h"

enum { FAULT_SHARE_ALL = 10000, FAULT_DELAY_MAX_MS = 600000 };

struct fault_rule {        /* zeroed: no fault. Texts borrowed */
    uint32_t delay_ms;     /* 0: no delay */
    uint32_t delay_share;  /* of 10,000 requests; 2,500 are 25 % */
    uint16_t abort_status; /* 200 to 599; 0: no abort */
    uint32_t abort_share;  /* independent of the delay's: a request may get both */
    const char *header;    /* lower case; NULL: any request. Else only those with this header */
    const char *value;     /* ... and this value; NULL: any value */
};

/* NULL if the rule can be used, else what is wrong with it. */
const char *fault_rule_wrong(const struct fault_rule *r);

struct fault {
    uint32_t delay_ms;
    uint16_t status; /* answer this instead of asking the service, after the delay; 0: ask it */
};

/* `header` is the request's value of rule->header, absent if it has none. The same `random` gives
 * the same fault. */
struct fault fault_pick(const struct fault_rule *r, struct slice header, uint64_t random);

#endif
