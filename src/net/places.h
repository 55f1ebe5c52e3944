/*
 * places.h - how many connections are open, in all and from one network, and what a new one gets:
 * a place, or only a short answer. A few places are kept above the limit, for health checks: a
 * server that is full must still be able to say that it is alive. Any thread may call everything.
 */
#ifndef FIRN_NET_PLACES_H
#define FIRN_NET_PLACES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
    PLACES_EXTRA = 128,                          /* above the limit, at a time */
    PLACES_EXTRA_PER_NETWORK = PLACES_EXTRA / 2, /* so that one client cannot hold all of them */
    PLACES_BUCKETS = 16384, /* of networks: some share one and are limited together */
};

/* Where a client is: an IPv4 address, or the first 64 bits of an IPv6 address, which is what one
 * client usually has all of. */
struct network {
    uint64_t id;   /* 0: not known */
    bool loopback; /* this machine; not limited by `per_network`, it is where proxies are */
};

struct network network_of(const struct sockaddr *sa);

enum place {
    PLACE_OPEN,    /* served */
    PLACE_EXTRA,   /* the limit is reached: only health checks are answered */
    PLACE_CROWDED, /* the same, because its network has too many connections */
    PLACE_NONE,    /* close it at once */
};

struct places {                /* all private but max and open */
    uint32_t max, per_network; /* 0: no limit for one network */
    uint64_t salt;             /* so that no client can choose whom it shares a bucket with */
    _Atomic uint32_t open;     /* connections now, those above the limit too */
    _Atomic uint32_t extra;
    _Atomic uint32_t count[PLACES_BUCKETS]; /* by network: open; above the limit */
    _Atomic uint8_t extra_count[PLACES_BUCKETS];
};

void places_init(struct places *p, uint32_t max, uint32_t per_network, uint64_t salt);

/* Whatever it returns, places_give() follows once, with the same network and place. */
enum place places_take(struct places *p, struct network from);
void places_give(struct places *p, struct network from, enum place place);

#endif
