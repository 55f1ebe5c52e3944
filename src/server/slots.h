/*
 * slots.h - the slots of the store as a list for /v1/slots, and their number for /metrics. Read
 * by the coordinator's thread, one scan of at most SLOTS_MAX registers every SLOTS_EVERY_MS for
 * requests (those in between get the same list), otherwise every SLOTS_COUNT_MS.
 */
#ifndef FIRN_SERVER_SLOTS_H
#define FIRN_SERVER_SLOTS_H

#include "drive/lease.h"

#include <stdatomic.h>

enum { SLOTS_EVERY_MS = 3000, SLOTS_COUNT_MS = 60000 };

struct slot_listed {
    uint32_t slot;
    const char *state; /* survey_word(), or "mine" */
    char name[RECORD_NAME_MAX + 1];
    uint64_t from, until; /* ticks of the lease */
};

struct slots { /* all zero at first */
    uint64_t due_ms, count_ms;
    _Atomic uint32_t used, total; /* any thread reads them; total 0: not counted yet */
    uint32_t n;
    struct slot_listed list[SLOTS_MAX];
};

/* *out is malloc'd, the caller frees it. FIRN_ENOSLOT: this process has had no slot yet. */
FIRN_MUSTUSE int slots_list(struct slots *s, struct firn_store *store, const struct lease *lease,
                            uint64_t now_ms, struct slot_listed **out, size_t *out_n,
                            struct firn_diag *d);

/* Counts the slots when that is due, at first SLOTS_COUNT_MS after the start. Returns when to call
 * again. While the store fails the numbers stay as they are. */
uint64_t slots_step(struct slots *s, struct firn_store *store, const struct lease *lease,
                    uint64_t now_ms);

#endif
