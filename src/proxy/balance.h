/*
 * balance.h - which server of a service gets the next request, and which are avoided.
 *
 *   round robin  smooth and weighted, as nginx has it: 5:1:1 gives a a b a c a a, not a a a a a b c
 *   least        the fewest requests in flight for its weight
 *   hash         the same key to the same server while the servers stay the same (rendezvous
 *                hashing), but never more than 1.25 times its share of what is in flight
 *
 * A split (canary 90/10) uses the same round robin over groups of servers: of 10,000 requests
 * exactly 1,000 take the tenth. Pure; one thread. A set of servers is a bit mask, so there are at
 * most 64.
 */
#ifndef FIRN_PROXY_BALANCE_H
#define FIRN_PROXY_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BALANCE_SERVERS_MAX = 64, BALANCE_WEIGHT_MAX = 1000 };

struct balance_turn {
    uint32_t weight; /* 0: never */
    int64_t current; /* private; begins with 0 */
};

struct balance_server {
    struct balance_turn turn;
    uint64_t id;        /* a hash of its address: the same in all gateways and after a restart */
    uint32_t in_flight; /* kept by the caller */
    bool down;          /* as its health checks say */
    bool drained;       /* an operator wants it to get no more requests */
    /* Outlier ejection: private but `ejections`. */
    uint32_t bad_in_a_row, ejections;
    uint64_t ejected_until_ms; /* 0: it is in */
};

/* The servers that requests may go to now. Servers that are ejected come back by time. If none is
 * left, those that are not down; if all are down, all: a poor server is better than none. Those
 * that are drained get nothing unless all are. */
uint64_t balance_usable(const struct balance_server *s, size_t n, uint64_t now_ms);

/* Each returns the server's number, or n if no server in `mask` has a weight. */
size_t balance_round_robin(struct balance_server *s, size_t n, uint64_t mask);
size_t balance_least(struct balance_server *s, size_t n, uint64_t mask);
size_t balance_hash(const struct balance_server *s, size_t n, uint64_t mask, uint64_t key);

/* The group of a split: in turn, or always the same one for the same key (a hash). n: no weight. */
size_t balance_split(struct balance_turn *t, size_t n);
size_t balance_split_sticky(const struct balance_turn *t, size_t n, uint64_t key);

struct outlier_rules {
    uint32_t consecutive;         /* failures in a row that eject a server; 0: none is ejected */
    uint32_t base_ms, max_ms;     /* how long: base_ms times the number of its ejections */
    uint32_t ejected_percent_max; /* of the servers, but at least one where there are two */
};
#define OUTLIER_RULES_INIT   \
    {                        \
        5, 30000, 300000, 50 \
    }

/* How a request to server `i` ended: good, or not (no connection, time-out, 5xx). True: it is
 * ejected now. */
bool balance_answer(struct balance_server *s, size_t n, size_t i, const struct outlier_rules *r,
                    bool good, uint64_t now_ms);

#endif
