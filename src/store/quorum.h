/*
 * quorum.h - a store made of an odd number of stores, of which a majority must be available: each
 * register is kept by CASPaxos (coord/paxos.h), each underlying store is an acceptor.
 *     quorum:URL|URL|URL          3, 5 or 7 of them, in any order
 *     quorum:restart_ok|URL|...   a store that became another one by its own account (a Redis that
 *                                 was restarted) stays a member. Only where no store ever comes
 *                                 back with less than it had: no restore of a backup, no fail-over
 * The first user to find all of them empty makes them a quorum.
 */
#ifndef FIRN_STORE_QUORUM_H
#define FIRN_STORE_QUORUM_H

#include "store/store.h"

/* `existing`: nothing is created, as firn_store_open_existing(). */
FIRN_MUSTUSE int firn_store_quorum_open(const char *urls, uint32_t timeout_ms, bool existing,
                                        struct firn_store **out, struct firn_diag *d);

/* Check the text behind "quorum:". */
FIRN_MUSTUSE int firn_store_quorum_check(const char *urls, struct firn_diag *d);

/* One underlying store in its present state, as soon as that is known or the time-out is over. */
struct firn_quorum_view {
    char url[128];     /* without passwords */
    const char *state; /* "member", "refused", "unfit", "away", "silent", "blank" */
    uint64_t floor;
    size_t
        server; /* the first of the stores that seems to be in the same server, or its own number */
    char why[320]; /* it does not take part, and what can be done; "": it does */
};
#define QUORUM_STORES_MAX 7
FIRN_MUSTUSE int firn_quorum_view(struct firn_store *s, struct firn_quorum_view *out,
                                  size_t *out_n);

/* The same for one that cannot be opened. Returns what opening it says: FIRN_ESTORE where so
 * many stores are refused that none of them can be admitted by a majority of the others.
 * `*out_n` is 0 where the URL is wrong. */
FIRN_MUSTUSE int firn_quorum_examine(const char *urls, uint32_t timeout_ms,
                                     struct firn_quorum_view *out, size_t *out_n,
                                     struct firn_diag *d);

/*
 * Let an underlying store that was refused take part again; `url` as it stands in the store's URL.
 * The store is given all registers by a majority of the other stores (coord/paxos.h, safety, 5), so
 * it may be empty or old. Clients that still use its former server (an old primary) must be stopped
 * first. After an error: try again.
 */
FIRN_MUSTUSE int firn_quorum_admit(struct firn_store *s, const char *url, struct firn_diag *d);

/* The same for a store that surely has all it had, and was only restarted or moved; needs no
 * majority. */
FIRN_MUSTUSE int firn_quorum_admit_as_is(const char *url, uint32_t timeout_ms, struct firn_diag *d);

#endif
