/*
 * Balancing. Rendezvous hashing needs no ring and no memory: each server gets a score from the key
 * and its id, the highest wins, so a server that goes takes only its own keys with it. For weights
 * the score is weight / -ln(u) with u uniform in (0, 1).
 */
#include "proxy/balance.h"
#include "platform/assert.h"

#include <math.h>

enum { LOAD_PERCENT = 125 }; /* of its share that a server may have in flight with hash */

static bool has(uint64_t mask, size_t i)
{
    return (mask >> i & 1) != 0;
}

static bool ejected(const struct balance_server *s, uint64_t now_ms)
{
    return s->ejected_until_ms > now_ms;
}

uint64_t balance_usable(const struct balance_server *s, size_t n, uint64_t now_ms)
{
    uint64_t in = 0, up = 0, undrained = 0, all = 0;
    firn_assert(n <= BALANCE_SERVERS_MAX, "n=%zu", n);
    for (size_t i = 0; i < n; i++) {
        const uint64_t bit = s[i].turn.weight > 0 ? UINT64_C(1) << i : 0;
        all |= bit;
        if (s[i].drained)
            continue;
        undrained |= bit;
        up |= s[i].down ? 0 : bit;
        in |= s[i].down || ejected(&s[i], now_ms) ? 0 : bit;
    }
    return in ? in : up ? up : undrained ? undrained : all;
}

/* ---- in turn ---- */

/* Everyone gains its weight, the richest is chosen and pays what all gained. */
static size_t turn(struct balance_turn *first, size_t stride, size_t n, uint64_t mask)
{
    struct balance_turn *best = NULL;
    int64_t total = 0;
    size_t chosen = n;
    firn_assert(n <= BALANCE_SERVERS_MAX, "n=%zu", n);
    for (size_t i = 0; i < n; i++) {
        struct balance_turn *t = (struct balance_turn *)((char *)first + i * stride);
        if (!has(mask, i) || t->weight == 0)
            continue;
        t->current += t->weight;
        total += t->weight;
        if (!best || t->current > best->current) {
            best = t;
            chosen = i;
        }
    }
    if (best)
        best->current -= total;
    return chosen;
}

size_t balance_round_robin(struct balance_server *s, size_t n, uint64_t mask)
{
    return n ? turn(&s[0].turn, sizeof *s, n, mask) : 0;
}

size_t balance_split(struct balance_turn *t, size_t n)
{
    return turn(t, sizeof *t, n, UINT64_MAX);
}

/* ---- by load ---- */

/* Equally loaded ones take turns, else the first would get all of little traffic. */
size_t balance_least(struct balance_server *s, size_t n, uint64_t mask)
{
    uint64_t equal = 0;
    size_t best = n;
    for (size_t i = 0; i < n; i++) {
        if (!has(mask, i) || s[i].turn.weight == 0)
            continue;
        if (best < n) {
            uint64_t mine = (uint64_t)s[i].in_flight * s[best].turn.weight;
            uint64_t its = (uint64_t)s[best].in_flight * s[i].turn.weight;
            if (mine > its)
                continue;
            if (mine < its)
                equal = 0;
        }
        equal |= UINT64_C(1) << i;
        best = i;
    }
    return balance_round_robin(s, n, equal);
}

/* ---- by key ---- */

/* The finalizer of splitmix64: every bit of the input changes every bit of the output. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static double score(const struct balance_server *s, uint64_t key)
{
    double u = ((double)(mix(key ^ mix(s->id)) >> 11) + 0.5) / 9007199254740992.0;
    return s->turn.weight / -log(u);
}

size_t balance_hash(const struct balance_server *s, size_t n, uint64_t mask, uint64_t key)
{
    uint64_t weights = 0, flying = 1; /* with this request */
    size_t best = n;
    double best_score = 0;
    for (size_t i = 0; i < n; i++) {
        if (has(mask, i)) {
            weights += s[i].turn.weight;
            flying += s[i].turn.weight ? s[i].in_flight : 0;
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!has(mask, i) || s[i].turn.weight == 0)
            continue;
        /* in_flight < 1.25 × flying × weight / weights, without a division */
        if (s[i].in_flight * weights * 100 >= flying * s[i].turn.weight * LOAD_PERCENT)
            continue;
        double own = score(&s[i], key);
        if (best == n || own > best_score) {
            best = i;
            best_score = own;
        }
    }
    return best;
}

size_t balance_split_sticky(const struct balance_turn *t, size_t n, uint64_t key)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n; i++)
        total += t[i].weight;
    if (total == 0)
        return n;
    uint64_t at = (uint64_t)((unsigned __int128)mix(key) * total >> 64);
    size_t i = 0;
    while (at >= t[i].weight)
        at -= t[i++].weight;
    return i;
}

/* ---- outliers ---- */

bool balance_answer(struct balance_server *s, size_t n, size_t i, const struct outlier_rules *r,
                    bool good, uint64_t now_ms)
{
    struct balance_server *me = &s[i];
    size_t out = 0, most = n * r->ejected_percent_max / 100;
    firn_assert(i < n, "i=%zu n=%zu", i, n);
    if (good) {
        me->bad_in_a_row = 0;
        if (me->ejections > 0 && !ejected(me, now_ms) && now_ms - me->ejected_until_ms >= r->max_ms)
            me->ejections = 0; /* well for long: the next time is a first time */
        return false;
    }
    me->bad_in_a_row++;
    if (r->consecutive == 0 || me->bad_in_a_row < r->consecutive || ejected(me, now_ms))
        return false;
    for (size_t k = 0; k < n; k++)
        out += ejected(&s[k], now_ms);
    if (most == 0 && n > 1 && r->ejected_percent_max > 0)
        most = 1;
    if (out >= most)
        return false;
    uint64_t ms = (uint64_t)r->base_ms * ++me->ejections;
    me->bad_in_a_row = 0;
    me->ejected_until_ms = now_ms + (ms < r->max_ms ? ms : r->max_ms);
    return true;
}
