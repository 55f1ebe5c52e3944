/* Places for connections: counters of all of them and by network, without a lock. */
#include "net/places.h"

#include "platform/assert.h"

#include <netinet/in.h>
#include <string.h>

_Static_assert(PLACES_EXTRA_PER_NETWORK < UINT8_MAX, "extra_count is a byte");

static uint64_t v4(uint32_t address)
{
    return UINT64_C(0xffff) << 32 | address; /* no IPv6 network begins with these bits */
}

struct network network_of(const struct sockaddr *sa)
{
    struct network n = { 0, false };
    if (sa->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)sa;
        uint32_t address = ntohl(in->sin_addr.s_addr);
        n = (struct network){ v4(address), address >> 24 == 127 };
    } else if (sa->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        uint32_t low;
        memcpy(&low, a->s6_addr + 12, sizeof low);
        if (IN6_IS_ADDR_V4MAPPED(a))
            return (struct network){ v4(ntohl(low)), a->s6_addr[12] == 127 };
        for (int i = 0; i < 8; i++)
            n.id = n.id << 8 | a->s6_addr[i];
        n.loopback = IN6_IS_ADDR_LOOPBACK(a);
        n.id = n.id ? n.id : 1; /* ::/64, where ::1 is */
    }
    return n;
}

void places_init(struct places *p, uint32_t max, uint32_t per_network, uint64_t salt)
{
    memset(p, 0, sizeof *p);
    p->max = max;
    p->per_network = per_network;
    p->salt = salt | 1;
}

static uint32_t bucket(const struct places *p, struct network from)
{
    uint64_t h = (from.id ^ p->salt) * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 32) * p->salt;
    return (uint32_t)(h >> 40) % PLACES_BUCKETS;
}

enum place places_take(struct places *p, struct network from)
{
    uint32_t b = bucket(p, from);
    uint32_t open = atomic_fetch_add_explicit(&p->open, 1, memory_order_relaxed);
    uint32_t here = atomic_fetch_add_explicit(&p->count[b], 1, memory_order_relaxed);
    bool crowded = p->per_network && !from.loopback && from.id && here >= p->per_network;
    if (!crowded && open < p->max)
        return PLACE_OPEN;
    uint32_t extra = atomic_fetch_add_explicit(&p->extra, 1, memory_order_relaxed);
    uint8_t extra_here = atomic_load_explicit(&p->extra_count[b], memory_order_relaxed);
    do
        if (extra >= PLACES_EXTRA || extra_here >= PLACES_EXTRA_PER_NETWORK) {
            atomic_fetch_sub_explicit(&p->extra, 1, memory_order_relaxed);
            return PLACE_NONE;
        }
    while (!atomic_compare_exchange_weak_explicit(&p->extra_count[b], &extra_here,
                                                  (uint8_t)(extra_here + 1), memory_order_relaxed,
                                                  memory_order_relaxed));
    return crowded ? PLACE_CROWDED : PLACE_EXTRA;
}

void places_give(struct places *p, struct network from, enum place place)
{
    uint32_t b = bucket(p, from);
    uint32_t open = atomic_fetch_sub_explicit(&p->open, 1, memory_order_relaxed);
    uint32_t here = atomic_fetch_sub_explicit(&p->count[b], 1, memory_order_relaxed);
    firn_assert(open > 0 && here > 0, "open=%u here=%u", open, here);
    if (place == PLACE_OPEN || place == PLACE_NONE)
        return;
    uint32_t extra = atomic_fetch_sub_explicit(&p->extra, 1, memory_order_relaxed);
    uint8_t extra_here = atomic_fetch_sub_explicit(&p->extra_count[b], 1, memory_order_relaxed);
    firn_assert(extra > 0 && extra_here > 0, "extra=%u here=%u", extra, extra_here);
}
