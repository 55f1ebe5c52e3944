/*
 * The two algorithms, once in C and once in Lua. They must decide alike: tests/unit/proxy/limit.c
 * checks the laws of the one, tests/integration/proxy_redis.py compares the other with it.
 *
 * All times are whole microseconds. The interval of GCRA is rounded up, so that the rate is never
 * exceeded. In Lua numbers are doubles, exact up to 2^53: Unix time in microseconds is far below.
 */
#include "proxy/limit.h"
#include "platform/assert.h"
#include "proxy/key.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STRIPES = 64, WAYS = 8 };

const char *limit_rule_wrong(const struct limit_rule *r)
{
    if (r->count < 1 || r->count > LIMIT_COUNT_MAX)
        return "the number of requests must be 1 to 1000000";
    if (r->period_us < 1000 || r->period_us > LIMIT_PERIOD_MAX_S * UINT64_C(1000000))
        return "the period must be 1 ms to 7 days";
    if (r->kind == LIMIT_SMOOTH && (r->burst < 1 || r->burst > LIMIT_COUNT_MAX))
        return "the burst must be 1 to 1000000";
    return NULL;
}

static uint64_t interval_of(const struct limit_rule *r)
{
    return (r->period_us + r->count - 1) / r->count;
}

static struct limit_answer step_window(const struct limit_rule *r, struct limit_state *s,
                                       uint64_t now)
{
    if (s->count == 0 || now < s->at_us || now - s->at_us >= r->period_us)
        *s = (struct limit_state){ .at_us = now };
    uint64_t left = r->period_us - (now - s->at_us);
    if (s->count >= r->count)
        return (struct limit_answer){ false, 0, left };
    s->count++;
    return (struct limit_answer){ true, r->count - s->count, left };
}

static struct limit_answer step_smooth(const struct limit_rule *r, struct limit_state *s,
                                       uint64_t now)
{
    const uint64_t interval = interval_of(r), slack = (r->burst - 1) * interval;
    uint64_t from = s->at_us > now ? s->at_us : now;
    if (from - now > slack + interval) /* no request can owe so much: the clock went back */
        from = now;
    if (from - now > slack)
        return (struct limit_answer){ false, 0, from - now - slack };
    uint64_t ahead = from + interval - now;
    s->at_us = from + interval;
    return (struct limit_answer){ true, (uint32_t)((slack + interval - ahead) / interval), ahead };
}

struct limit_answer limit_step(const struct limit_rule *r, struct limit_state *state,
                               uint64_t now_us)
{
    return (r->kind == LIMIT_WINDOW ? step_window : step_smooth)(r, state, now_us);
}

uint32_t limit_retry_after_s(const struct limit_answer *a)
{
    uint64_t s = a->wait_us / 1000000 + (a->wait_us % 1000000 != 0);
    return s ? (uint32_t)s : 1;
}

/* ---- the table ---- */

struct place {
    uint64_t client;   /* 0: free */
    uint64_t until_us; /* when its state means nothing any more */
    struct limit_state state;
};

struct limit_table {
    struct siphash_key key;
    size_t sets; /* a power of two */
    struct place *place;
    pthread_mutex_t lock[STRIPES]; /* of the sets whose number modulo STRIPES it is */
};

int limit_table_new(uint32_t places, struct siphash_key key, struct limit_table **out)
{
    struct limit_table *t = calloc(1, sizeof *t);
    if (!t)
        return FIRN_ENOMEM;
    t->key = key;
    for (t->sets = 1; t->sets * WAYS < places;)
        t->sets *= 2;
    t->place = calloc(t->sets * WAYS, sizeof *t->place);
    if (!t->place) {
        free(t);
        return FIRN_ENOMEM;
    }
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_init(&t->lock[i], NULL);
    *out = t;
    return 0;
}

void limit_table_free(struct limit_table *t)
{
    if (!t)
        return;
    for (int i = 0; i < STRIPES; i++)
        pthread_mutex_destroy(&t->lock[i]);
    free(t->place);
    free(t);
}

/* States and refusals of one client have different hashes. */
enum use { USE_STATE, USE_REFUSAL };

static uint64_t hash(const struct limit_table *t, uint32_t rule_id, enum use use, struct slice c)
{
    struct siphash_key key = { t->key.k0 ^ ((uint64_t)rule_id << 1 | use), t->key.k1 };
    uint64_t h = siphash(key, c.p, c.len);
    return h ? h : 1;
}

static pthread_mutex_t *lock_of(struct limit_table *t, uint64_t client)
{
    return &t->lock[(client & (t->sets - 1)) % STRIPES];
}

/* The client's place. With `make` also a new one: a free one, else one whose state means nothing
 * any more, else the one that does so soonest. */
static struct place *find(struct limit_table *t, uint64_t client, uint64_t now_us, bool make)
{
    struct place *set = &t->place[(client & (t->sets - 1)) * WAYS], *to = set;
    for (int i = 0; i < WAYS; i++)
        if (set[i].client == client)
            return &set[i];
    if (!make)
        return NULL;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].client == 0 || set[i].until_us <= now_us) {
            to = &set[i];
            break;
        }
        if (set[i].state.count < to->state.count ||
            (set[i].state.count == to->state.count && set[i].until_us < to->until_us))
            to = &set[i];
    }
    *to = (struct place){ .client = client };
    return to;
}

struct limit_answer limit_table_take(struct limit_table *t, const struct limit_rule *r,
                                     uint32_t rule_id, struct slice client, uint64_t now_us)
{
    uint64_t id = hash(t, rule_id, USE_STATE, client);
    pthread_mutex_lock(lock_of(t, id));
    struct place *p = find(t, id, now_us, true);
    struct limit_answer a = limit_step(r, &p->state, now_us);
    p->until_us = r->kind == LIMIT_WINDOW ? p->state.at_us + r->period_us : p->state.at_us;
    pthread_mutex_unlock(lock_of(t, id));
    return a;
}

void limit_table_refuse(struct limit_table *t, uint32_t rule_id, struct slice client,
                        uint64_t until_us, uint64_t now_us)
{
    uint64_t id = hash(t, rule_id, USE_REFUSAL, client);
    pthread_mutex_lock(lock_of(t, id));
    struct place *p = find(t, id, now_us, true);
    if (until_us > p->until_us)
        p->until_us = until_us;
    pthread_mutex_unlock(lock_of(t, id));
}

uint64_t limit_table_refused(struct limit_table *t, uint32_t rule_id, struct slice client,
                             uint64_t now_us)
{
    uint64_t id = hash(t, rule_id, USE_REFUSAL, client), left = 0;
    pthread_mutex_lock(lock_of(t, id));
    struct place *p = find(t, id, now_us, false);
    if (p && p->until_us > now_us)
        left = p->until_us - now_us;
    pthread_mutex_unlock(lock_of(t, id));
    return left;
}

/* ---- Redis ---- */

/* Redis counts in its own time, so the gateways' clocks do not matter. A value that is none of ours
 * counts as none. */
const char limit_script[] =
    "local kind, count, period = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])\n"
    "local burst, now = tonumber(ARGV[4]), tonumber(ARGV[5])\n"
    "if not now then\n"
    "  local t = redis.call('TIME')\n"
    "  now = t[1] * 1000000 + t[2]\n"
    "end\n"
    "local at, n = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')\n"
    "at, n = tonumber(at or 0), tonumber(n or 0)\n"
    "local answer, keep\n"
    "if kind == 'window' then\n"
    "  if n == 0 or now < at or now - at >= period then at, n = now, 0 end\n"
    "  keep = period - (now - at)\n"
    "  if n >= count then return {0, 0, keep} end\n"
    "  n = n + 1\n"
    "  answer = {1, count - n, keep}\n"
    "else\n"
    "  local interval = math.ceil(period / count)\n"
    "  local slack = (burst - 1) * interval\n"
    "  local from = math.max(at, now)\n"
    "  if from - now > slack + interval then from = now end\n"
    "  if from - now > slack then return {0, 0, from - now - slack} end\n"
    "  at, n, keep = from + interval, 1, from + interval - now\n"
    "  answer = {1, math.floor((slack + interval - keep) / interval), keep}\n"
    "end\n"
    "redis.call('SET', KEYS[1], string.format('%.0f %.0f', at, n), 'PX', math.ceil(keep / 1000))\n"
    "return answer\n";

void limit_script_args(const struct limit_rule *r, uint64_t now_us,
                       char out[LIMIT_SCRIPT_ARGS][LIMIT_ARG_BUF])
{
    snprintf(out[0], LIMIT_ARG_BUF, "%s", r->kind == LIMIT_WINDOW ? "window" : "smooth");
    snprintf(out[1], LIMIT_ARG_BUF, "%u", r->count);
    snprintf(out[2], LIMIT_ARG_BUF, "%llu", (unsigned long long)r->period_us);
    snprintf(out[3], LIMIT_ARG_BUF, "%u", r->burst);
    out[4][0] = '\0';
    if (now_us)
        snprintf(out[4], LIMIT_ARG_BUF, "%llu", (unsigned long long)now_us);
}

void limit_key(struct buf *out, const char *name, struct slice client)
{
    buf_add_str(out, "limit:");
    key_part(out, name, strlen(name));
    buf_add(out, ":", 1);
    key_part(out, client.p, client.len);
}

bool limit_script_answer(const int64_t n[3], struct limit_answer *out)
{
    if ((n[0] != 0 && n[0] != 1) || n[1] < 0 || n[1] > LIMIT_COUNT_MAX || n[2] < 0)
        return false;
    *out = (struct limit_answer){ n[0] == 1, (uint32_t)n[1], (uint64_t)n[2] };
    return true;
}
