/*
 * census.h - how many sequences a store has, for the limit, a metric and DBSIZE. A store has no
 * counter that several servers could share, so each counts by itself: page by page at its start and
 * every CENSUS_MS, and in between what it creates and deletes. So with several servers the number
 * may be a few minutes old, and the limit may be exceeded by what others create meanwhile. For the
 * coordinator's thread.
 */
#ifndef FIRN_SERVER_CENSUS_H
#define FIRN_SERVER_CENSUS_H

#include "drive/ticket.h"

#include <stdatomic.h>

enum { CENSUS_MS = 300000, CENSUS_PAGE = 1000, CENSUS_REST_MS = 50 };

struct census {
    char at[TICKET_CURSOR_MAX + 1]; /* the walk under way: where it goes on; "": at the start */
    uint64_t walked;                /* sequences in it so far */
    int64_t changed;                /* created less deleted since it began */
    uint64_t due_ms;
    bool whole; /* a walk has come to its end */
};

/* The next page, if it is due. *count is what is known now. Returns when to call it again. */
uint64_t census_step(struct census *c, struct tickets *t, uint64_t now_ms, _Atomic uint64_t *count);

/* This process created (+1) or deleted (-1) a sequence. */
void census_changed(struct census *c, int by, _Atomic uint64_t *count);

#endif
