/*
 * The rows of `firn bench lib`. Each is the loop that a caller would write, with a clock read where
 * a caller needs one: an ID that carries a time includes the cost of reading it. Generators are
 * made once, so that rows measure generating IDs, not making generators.
 */
#include "cli/bench/bench_rows.h"

#include "firn/cuid2.h"
#include "firn/gen.h"
#include "firn/ksuid.h"
#include "firn/nanoid.h"
#include "firn/objectid.h"
#include "firn/random.h"
#include "firn/text.h"
#include "firn/ulid.h"
#include "firn/uuid.h"
#include "firn/xid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

enum {
    FILL = 4096,
    BATCH = 16,
    INPUTS = 256, /* more than a branch predictor memorizes, few enough for the first-level cache */
    CACHE_LINE = 64,
    REAL_TIME_TICKS = 150
};

/* Calls for one ID never use up the 2^20 numbers of a millisecond. A fill would: it gets 2^24. */
#define WIDE  "unused:1,time:41@1ms,node:2,seq:20"
#define WIDER "unused:1,time:38@1ms,node:1,seq:24"

static struct firn_gen *gen_coarse, *gen_precise, *gen_tsc, *gen_fill, *gen_real_time, *gen_lane[2];
static struct firn_shared *shared;
static struct firn_clock_tsc tsc_clock;
static struct firn_uuid_v7_gen v7 = FIRN_UUID_V7_GEN_INIT;
static struct firn_uuid_gregorian_gen v1;
static struct firn_ulid_gen ulid_gen = FIRN_ULID_GEN_INIT;
static struct firn_xid_gen xid_gen;
static struct firn_objectid_gen objectid_gen;
static struct firn_cuid2_gen cuid2_gen;
static struct firn_rng *rng;

/* Input of the format and parse rows: random values with the current time. */
static struct {
    struct firn_uuid uuid;
    struct firn_ulid ulid;
    struct firn_ksuid ksuid;
    uint64_t number;
} value[INPUTS];
static char uuid_text_in[INPUTS][FIRN_UUID_TEXT_BUF], ulid_text_in[INPUTS][FIRN_ULID_TEXT_BUF],
    ksuid_text_in[INPUTS][FIRN_KSUID_TEXT_BUF], decimal_text_in[INPUTS][FIRN_U64_TEXT_BUF];
static size_t decimal_len[INPUTS];

static _Alignas(CACHE_LINE) uint64_t ids[2][FILL];
static _Alignas(CACHE_LINE) uint64_t contended;
static __thread uint64_t local_count;

/* Makes the compiler assume that the bytes at `p` are read here and that any memory may change. */
static inline void use(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static inline void use_value(uint64_t v)
{
    __asm__ volatile("" : : "r"(v));
}

static __attribute__((noinline, cold)) _Noreturn void give_up(int error)
{
    fprintf(stderr, "firn bench: a generator failed: %s\n", firn_error_message(error));
    exit(1);
}

/* A generator that fails would make its row fast and wrong. */
static inline void must(int r)
{
    if (__builtin_expect(r != 0, 0))
        give_up(r);
}

static inline uint64_t read_clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000u + (uint64_t)t.tv_nsec / 1000000u;
}

#define ROW(name) static void name(uint64_t n, __attribute__((unused)) unsigned thread)

/* --- baselines --- */

ROW(clock_coarse)
{
    while (n--)
        use_value(read_clock_ns(CLOCK_MONOTONIC_COARSE));
}

ROW(clock_precise)
{
    while (n--)
        use_value(read_clock_ns(CLOCK_REALTIME));
}

#if defined(__x86_64__)
ROW(tsc)
{
    while (n--)
        use_value(__rdtsc());
}
#endif

ROW(increment)
{
    while (n--) {
        local_count++;
        use(&local_count);
    }
}

ROW(fetch_add)
{
    while (n--)
        use_value(__atomic_fetch_add(&contended, 1, __ATOMIC_ACQ_REL));
}

/* The minimum work of a shared generator. Between two additions the other thread accesses the
 * word, so this costs more than the sum of its parts. */
ROW(clock_fetch_add)
{
    while (n--) {
        use_value(read_clock_ns(CLOCK_REALTIME_COARSE));
        use_value(__atomic_fetch_add(&contended, 1, __ATOMIC_ACQ_REL));
    }
}

/* One store instruction per number. */
ROW(stores)
{
    for (; n >= FILL; n -= FILL)
        for (size_t i = 0; i < FILL; i++)
            __atomic_store_n(&ids[thread][i], n + i, __ATOMIC_RELAXED);
}

/* The same with the compiler's vectors: the fastest that plain C can be. */
ROW(stores_vector)
{
    for (; n >= FILL; n -= FILL) {
        for (size_t i = 0; i < FILL; i++)
            ids[thread][i] = n + i;
        use(ids[thread]);
    }
}

/* --- snowflakes --- */

static inline void one_by_one(struct firn_gen *g, uint64_t n)
{
    while (n--) {
        uint64_t id;
        must(firn_gen_next(g, &id));
        use_value(id);
    }
}

static inline void fill_by_fill(struct firn_gen *g, uint64_t n)
{
    for (; n >= FILL; n -= FILL) {
        for (size_t done = 0, part; done < FILL; done += part)
            must(firn_gen_fill(g, ids[0] + done, FILL - done, &part));
        use(ids[0]);
    }
}

ROW(one_coarse)
{
    one_by_one(gen_coarse, n);
}

ROW(one_precise)
{
    one_by_one(gen_precise, n);
}

ROW(one_tsc)
{
    one_by_one(gen_tsc, n);
}

ROW(fill)
{
    fill_by_fill(gen_fill, n);
}

ROW(fill_real_time)
{
    fill_by_fill(gen_real_time, n);
}

/* Use up the tick that the coarse clock shows, then the one that the precise clock shows, then
 * the next: the run begins where a tick does. */
static void to_tick_start(void)
{
    fill_by_fill(gen_real_time, 3 * FILL);
}

ROW(one_lane)
{
    one_by_one(gen_lane[thread], n);
}

ROW(one_shared)
{
    while (n--) {
        uint64_t id;
        must(firn_shared_next(shared, &id));
        use_value(id);
    }
}

ROW(batch_shared)
{
    for (; n >= BATCH; n -= BATCH) {
        for (size_t done = 0, part; done < BATCH; done += part)
            must(firn_shared_fill(shared, ids[thread] + done, BATCH - done, &part));
        use(ids[thread]);
    }
}

ROW(one_decimal)
{
    char text[FIRN_U64_TEXT_BUF];
    while (n--) {
        uint64_t id;
        must(firn_gen_next(gen_coarse, &id));
        firn_u64_format(id, text);
        use(text);
    }
}

/* --- the other formats: make one, and make one as text --- */

#define MAKE_ROWS(name, type, text_buf, make) \
    ROW(name)                                 \
    {                                         \
        struct type id;                       \
        while (n--) {                         \
            make;                             \
            use(&id);                         \
        }                                     \
    }                                         \
    ROW(name##_text)                          \
    {                                         \
        struct type id;                       \
        char text[text_buf];                  \
        while (n--) {                         \
            make;                             \
            type##_format(&id, text);         \
            use(text);                        \
        }                                     \
    }

MAKE_ROWS(uuid4, firn_uuid, FIRN_UUID_TEXT_BUF, firn_uuid_v4(rng, &id))
MAKE_ROWS(uuid7, firn_uuid, FIRN_UUID_TEXT_BUF, must(firn_uuid_v7(&v7, now_ms(), rng, &id)))
MAKE_ROWS(uuid1, firn_uuid, FIRN_UUID_TEXT_BUF,
          must(firn_uuid_v1(&v1, read_clock_ns(CLOCK_REALTIME) / 100, &id)))
MAKE_ROWS(ulid, firn_ulid, FIRN_ULID_TEXT_BUF, must(firn_ulid_make(now_ms(), rng, &id)))
MAKE_ROWS(ulid_mono, firn_ulid, FIRN_ULID_TEXT_BUF,
          must(firn_ulid_next(&ulid_gen, now_ms(), rng, &id)))
MAKE_ROWS(ksuid, firn_ksuid, FIRN_KSUID_TEXT_BUF, must(firn_ksuid_make(now_ms(), rng, &id)))

/* These two generate at most 2^24 IDs per second by design. To measure their speed, the bench
 * lets them borrow seconds of the future. */
static uint64_t ahead_ms;

#define LENDING(call)                          \
    do {                                       \
        int r = call;                          \
        if (__builtin_expect(r != 0, 0)) {     \
            ahead_ms += 1000;                  \
            must(r == FIRN_EAGAIN ? call : r); \
        }                                      \
    } while (0)

MAKE_ROWS(xid, firn_xid, FIRN_XID_TEXT_BUF,
          LENDING(firn_xid_next(&xid_gen, now_ms() + ahead_ms, &id)))
MAKE_ROWS(objectid, firn_objectid, FIRN_OBJECTID_TEXT_BUF,
          LENDING(firn_objectid_next(&objectid_gen, now_ms() + ahead_ms, &id)))

ROW(nanoid)
{
    char text[FIRN_NANOID_LEN + 1];
    while (n--) {
        must(firn_nanoid(NULL, FIRN_NANOID_LEN, rng, text));
        use(text);
    }
}

ROW(cuid2)
{
    char text[FIRN_CUID2_LEN + 1];
    while (n--) {
        must(firn_cuid2(&cuid2_gen, FIRN_CUID2_LEN, now_ms(), rng, text));
        use(text);
    }
}

/* --- text alone --- */

#define TEXT_ROWS(name, text_buf)                                                     \
    ROW(name##_format)                                                                \
    {                                                                                 \
        char text[text_buf];                                                          \
        while (n--) {                                                                 \
            firn_##name##_format(&value[n % INPUTS].name, text);                      \
            use(text);                                                                \
        }                                                                             \
    }                                                                                 \
    ROW(name##_parse)                                                                 \
    {                                                                                 \
        struct firn_##name id;                                                        \
        while (n--) {                                                                 \
            must(firn_##name##_parse(name##_text_in[n % INPUTS], (text_buf)-1, &id)); \
            use(&id);                                                                 \
        }                                                                             \
    }

TEXT_ROWS(uuid, FIRN_UUID_TEXT_BUF)
TEXT_ROWS(ulid, FIRN_ULID_TEXT_BUF)
TEXT_ROWS(ksuid, FIRN_KSUID_TEXT_BUF)

ROW(decimal_format)
{
    char text[FIRN_U64_TEXT_BUF];
    while (n--) {
        use_value(firn_u64_format(value[n % INPUTS].number, text));
        use(text);
    }
}

ROW(decimal_parse)
{
    while (n--) {
        uint64_t v;
        must(firn_u64_parse(decimal_text_in[n % INPUTS], decimal_len[n % INPUTS], &v));
        use_value(v);
    }
}

/* --- the table --- */

const struct bench_row bench_rows[] = {
    { "clock.coarse", "baseline", "read CLOCK_MONOTONIC_COARSE", clock_coarse, NULL, 1, 0 },
    { "clock.precise", "baseline", "read CLOCK_REALTIME", clock_precise, NULL, 1, 0 },
#if defined(__x86_64__)
    { "tsc", "baseline", "read the time stamp counter", tsc, NULL, 1, 0 },
#endif
    { "increment", "baseline", "increment a thread-local", increment, NULL, 1, 0 },
    { "fetch_add.2", "baseline", "fetch_add, 2 threads on one word", fetch_add, NULL, 2, 0 },
    { "clock.fetch_add.2", "baseline", "coarse clock read and fetch_add, 2 threads",
      clock_fetch_add, NULL, 2, 0 },
    { "stores", "baseline", "store 8 bytes, array of 4096", stores, NULL, 1, 0 },
    { "stores.vector", "baseline", "the same by vectors", stores_vector, NULL, 1, 0 },

    { "snowflake", "snowflake", "one, coarse clock", one_coarse, NULL, 1, 0 },
    { "snowflake.precise", "snowflake", "one, precise clock", one_precise, NULL, 1, 0 },
    { "tsc.snowflake", "snowflake", "one, TSC clock", one_tsc, NULL, 1, 0 },
    { "snowflake.text", "snowflake", "one, as decimal text", one_decimal, NULL, 1, 0 },
    { "snowflake.fill", "snowflake", "fill of 4096, wide sequence", fill, NULL, 1, 0 },
    { "snowflake.real_time", "snowflake", "fill of 4096 limited by real time, 12 bits",
      fill_real_time, to_tick_start, 1, REAL_TIME_TICKS *FILL },
    { "shared", "snowflake", "shared, 1 thread", one_shared, NULL, 1, 0 },
    { "shared.2", "snowflake", "shared, 2 threads, one by one", one_shared, NULL, 2, 0 },
    { "shared.2.batch", "snowflake", "shared, 2 threads, 16 at a time", batch_shared, NULL, 2, 0 },
    { "lanes.2", "snowflake", "lanes, 2 threads, one by one", one_lane, NULL, 2, 0 },

    { "uuid4", "uuid", "v4", uuid4, NULL, 1, 0 },
    { "uuid4.text", "uuid", "v4 as text", uuid4_text, NULL, 1, 0 },
    { "uuid7", "uuid", "v7 with clock read", uuid7, NULL, 1, 0 },
    { "uuid7.text", "uuid", "v7 with clock read as text", uuid7_text, NULL, 1, 0 },
    { "uuid1", "uuid", "v1 with precise clock read", uuid1, NULL, 1, 0 },
    { "uuid1.text", "uuid", "v1 with precise clock read as text", uuid1_text, NULL, 1, 0 },
    { "ulid", "ulid", "with clock read", ulid, NULL, 1, 0 },
    { "ulid.text", "ulid", "with clock read as text", ulid_text, NULL, 1, 0 },
    { "ulid.mono", "ulid", "monotonic with clock read", ulid_mono, NULL, 1, 0 },
    { "ulid.mono.text", "ulid", "monotonic with clock read as text", ulid_mono_text, NULL, 1, 0 },
    { "ksuid", "ksuid", "with clock read", ksuid, NULL, 1, 0 },
    { "ksuid.text", "ksuid", "with clock read as text", ksuid_text, NULL, 1, 0 },
    { "xid", "xid", "with clock read", xid, NULL, 1, 0 },
    { "xid.text", "xid", "with clock read as text", xid_text, NULL, 1, 0 },
    { "objectid", "objectid", "with clock read", objectid, NULL, 1, 0 },
    { "objectid.text", "objectid", "with clock read as text", objectid_text, NULL, 1, 0 },
    { "nanoid.text", "nanoid", "21 characters", nanoid, NULL, 1, 0 },
    { "cuid2.text", "cuid2", "24 characters with clock read", cuid2, NULL, 1, 0 },

    { "uuid.format", "text", "format a UUID", uuid_format, NULL, 1, 0 },
    { "ulid.format", "text", "format a ULID", ulid_format, NULL, 1, 0 },
    { "ksuid.format", "text", "format a KSUID", ksuid_format, NULL, 1, 0 },
    { "decimal.format", "text", "format a 64-bit ID as decimal", decimal_format, NULL, 1, 0 },
    { "uuid.parse", "text", "parse a UUID", uuid_parse, NULL, 1, 0 },
    { "ulid.parse", "text", "parse a ULID", ulid_parse, NULL, 1, 0 },
    { "ksuid.parse", "text", "parse a KSUID", ksuid_parse, NULL, 1, 0 },
    { "decimal.parse", "text", "parse a decimal 64-bit ID", decimal_parse, NULL, 1, 0 },
};
const size_t bench_rows_n = sizeof bench_rows / sizeof bench_rows[0];

/* --- setup --- */

static int make_gen(const char *layout, struct firn_gen_opts opts, struct firn_gen **out)
{
    struct firn_layout l;
    int r = firn_layout_parse(layout, strlen(layout), 0, &l, NULL);
    if (r)
        return r;
    /* An epoch one day ago: the wide sequences leave few bits for the time. */
    if (l.field[FIRN_FIELD_TIME].width < 41)
        l.epoch_ms = (int64_t)now_ms() - 86400000;
    return firn_gen_new(&l, &opts, out);
}

static int make_gens(int has_tsc)
{
    const struct firn_gen_opts init = FIRN_GEN_OPTS_INIT;
    struct firn_gen_opts precise = init, counter = init, lane[2] = { init, init };
    precise.clock = firn_clock_precise();
    counter.clock = &tsc_clock.base;
    lane[0].lanes = lane[1].lanes = 2;
    lane[1].lane = 1;
    struct firn_layout wide;
    int r = firn_layout_parse(WIDE, strlen(WIDE), 0, &wide, NULL);
    r = r ? r : firn_shared_new(&wide, &init, &shared);
    r = r ? r : make_gen(WIDE, init, &gen_coarse);
    r = r ? r : make_gen(WIDE, precise, &gen_precise);
    r = r || !has_tsc ? r : make_gen(WIDE, counter, &gen_tsc);
    r = r ? r : make_gen(WIDER, init, &gen_fill);
    r = r ? r : make_gen("firn", init, &gen_real_time);
    for (int i = 0; i < 2; i++)
        r = r ? r : make_gen(WIDE, lane[i], &gen_lane[i]);
    return r;
}

int bench_rows_init(int *out_tsc)
{
    int has_tsc = firn_clock_tsc_init(&tsc_clock) == 0;
    int r = make_gens(has_tsc);
    rng = firn_rng_thread();
    firn_uuid_gregorian_init(&v1, NULL, rng);
    firn_objectid_gen_init(&objectid_gen, rng);
    firn_xid_gen_init(&xid_gen, (const uint8_t *)"abc", (uint16_t)getpid(), 0);
    firn_cuid2_init(&cuid2_gen, NULL, 0, rng);
    for (size_t i = 0; i < INPUTS && r == 0; i++) {
        firn_uuid_v4(rng, &value[i].uuid);
        r = firn_ulid_make(now_ms(), rng, &value[i].ulid);
        r = r ? r : firn_ksuid_make(now_ms(), rng, &value[i].ksuid);
        value[i].number = firn_rng_u64(rng) >> 1 >> i % 4; /* mostly 19 digits, as IDs have */
        firn_uuid_format(&value[i].uuid, uuid_text_in[i]);
        firn_ulid_format(&value[i].ulid, ulid_text_in[i]);
        firn_ksuid_format(&value[i].ksuid, ksuid_text_in[i]);
        decimal_len[i] = firn_u64_format(value[i].number, decimal_text_in[i]);
    }
    *out_tsc = has_tsc;
    return r;
}
