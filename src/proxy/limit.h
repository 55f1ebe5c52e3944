/*
 * limit.h - limits on requests: how many of one client (an address, a user) pass in a period.
 *
 *   window  a fixed window that begins with a client's first request: `count` pass until it ends
 *   smooth  the generic cell rate algorithm (GCRA): `burst` at once, then one each period / count
 *
 * Three parts that decide alike: a pure step on the state of one client, a table of such states in
 * this process, and a Lua script for Redis, by which several gateways count together. The caller
 * asks Redis, and the table where Redis cannot be asked (enum limit_away).
 */
#ifndef FIRN_PROXY_LIMIT_H
#define FIRN_PROXY_LIMIT_H

#include "firn/error.h"
#include "proxy/siphash.h"
#include "wire/buf.h"

#include <stdbool.h>

enum limit_kind { LIMIT_WINDOW, LIMIT_SMOOTH };

/* What decides while Redis is away: this process's own table (each gateway then lets its own share
 * of `count` through), or nothing: every request is refused with 503. */
enum limit_away { LIMIT_AWAY_LOCAL, LIMIT_AWAY_CLOSED };

enum {
    LIMIT_COUNT_MAX = 1000 * 1000,
    LIMIT_PERIOD_MAX_S = 7 * 24 * 3600,
    LIMIT_KEY_BYTES_MAX = 512, /* of a key in Redis */
};

struct limit_rule {
    enum limit_kind kind;
    uint32_t count;     /* requests per period; 1 to LIMIT_COUNT_MAX */
    uint64_t period_us; /* up to LIMIT_PERIOD_MAX_S */
    uint32_t burst;     /* smooth: how many at once, 1 to LIMIT_COUNT_MAX */
};

/* NULL if the rule can be used, else what is wrong with it. */
const char *limit_rule_wrong(const struct limit_rule *r);

struct limit_state { /* zeroed: a client that nothing is known about */
    uint64_t at_us;  /* window: when it began. smooth: when all that passed is paid for */
    uint32_t count;  /* window: how many passed in it */
};

struct limit_answer {
    bool pass;
    uint32_t remaining; /* requests that would pass right after this one */
    uint64_t wait_us;   /* refused: until the next one passes. Passed: until the window ends, or
                         * until the whole burst is there again */
};

/* One request at `now_us`. The clock may be any that does not go back; if it does, by more than a
 * period ahead in `state`, the client begins anew. */
struct limit_answer limit_step(const struct limit_rule *r, struct limit_state *state,
                               uint64_t now_us);

/* Retry-After: whole seconds, at least 1. */
uint32_t limit_retry_after_s(const struct limit_answer *a);

/* ---- in this process ---- */

/* States of at most `places` clients (rounded up to a power of two, 32 bytes each). When there are
 * more, the one that used least of its limit is forgotten: a flood from many addresses does not
 * give an address that is over its limit new requests. Any thread. */
struct limit_table;

FIRN_MUSTUSE int limit_table_new(uint32_t places, struct siphash_key key, struct limit_table **out);
void limit_table_free(struct limit_table *t); /* NULL is fine */

/* `rule_id` keeps the rules of a configuration apart; `client` is its address or name. */
struct limit_answer limit_table_take(struct limit_table *t, const struct limit_rule *r,
                                     uint32_t rule_id, struct slice client, uint64_t now_us);

/* What Redis refused is refused here without asking it again until the wait is over: exact, because
 * no other gateway can shorten the wait. limit_table_refused() says for how long still; 0: ask. */
void limit_table_refuse(struct limit_table *t, uint32_t rule_id, struct slice client,
                        uint64_t until_us, uint64_t now_us);
uint64_t limit_table_refused(struct limit_table *t, uint32_t rule_id, struct slice client,
                             uint64_t now_us);

/* ---- in Redis ---- */

/* KEYS: the client's key. ARGV: kind (window or smooth), count, period_us, burst, and the time in
 * us, or "" for the clock of Redis, which all gateways share. Answers {pass, remaining, wait_us}.
 * The key expires by itself. */
extern const char limit_script[];

enum { LIMIT_SCRIPT_ARGS = 5, LIMIT_ARG_BUF = 24 };
/* The script's arguments, each with a NUL. now_us 0: the clock of Redis. */
void limit_script_args(const struct limit_rule *r, uint64_t now_us,
                       char out[LIMIT_SCRIPT_ARGS][LIMIT_ARG_BUF]);

/* "limit:NAME:CLIENT". Bytes of the client that are not letters, digits, '.', '-' or '_' are
 * percent-encoded, so that no client can write the key of another; one that is too long becomes its
 * SHA-256. `name` is the configuration's. */
void limit_key(struct buf *out, const char *name, struct slice client);

/* The script's answer from the three numbers in it. False: not an answer of the script. */
bool limit_script_answer(const int64_t n[3], struct limit_answer *out);

#endif
