/*
 * IDs of layouts whose makers publish arithmetic rather than examples, worked out by hand. Each
 * case says how; none of the numbers came from firn.
 *
 * Sonyflake, as sony/sonyflake documents and composes it: 39 bits of 10 ms since 2014-09-01, 8 bits
 * of sequence, 16 bits of machine; id = time << 24 | sequence << 16 | machine. Its Decompose()
 * gives msb, time, sequence and machine-id.
 */
#include "t.h"

#include "firn/gen.h"
#include "firn/read.h"

static const struct golden {
    const char *layout, *id, *time;
    uint64_t parts[FIRN_FIELDS]; /* time, dc, node, shard, seq */
    int64_t unix_us;
} golden[] = {
    /* 2024-01-01 is 1704067200000 ms; less 1409529600000 are 294537600000 ms, 29453760000 ticks.
     * Machine 10.0.1.2 is its low 16 bits, 1 * 256 + 2 = 258.
     * 29453760000 * 16777216 = 494152093532160000; + 5 * 65536 = 327680; + 258. */
    { "sonyflake",
      "494152093532487938",
      "2024-01-01T00:00:00.000Z",
      { 29453760000, 0, 258, 0, 5 },
      INT64_C(1704067200000000) },
    /* One tick after the epoch, all else full: 16777216 + 255 * 65536 + 65535 = 33554431. */
    { "sonyflake",
      "33554431",
      "2014-09-01T00:00:00.010Z",
      { 1, 0, 65535, 0, 255 },
      INT64_C(1409529600010000) },
    /* The last one: 2^39 - 1 = 549755813887 ticks are 5497558138870 ms, 174 years as its README
     * says; + 1409529600000 = 6907087738870. All 63 bits are set: 2^63 - 1. */
    { "sonyflake",
      "9223372036854775807",
      "2188-11-16T03:28:58.870Z",
      { 549755813887, 0, 65535, 0, 255 },
      INT64_C(6907087738870000) },

    /* CockroachDB's unique_rowid(): 10 us since 2015-01-01 << 15 | node.
     * 2024-01-01T00:00:00.12345Z: 1704067200123.45 - 1420070400000 ms = 283996800123.45 ms =
     * 28399680012345 ticks;
     * * 32768 = 930600714644520960; + node 7. */
    { "cockroach",
      "930600714644520967",
      "2024-01-01T00:00:00.123450Z",
      { 28399680012345, 0, 7, 0, 0 },
      INT64_C(1704067200123450) },

    /* 41/5/5/13 since 2024-01-01. 1800000000000 - 1704067200000 = 95932800000 ms; * 2^23 =
     * 804742653542400000; + dc 19 * 2^18 = 4980736; + worker 7 * 2^13 = 57344; + seq 8191. */
    { "mission-8192",
      "804742653547446271",
      "2027-01-15T08:00:00.000Z",
      { 95932800000, 19, 7, 0, 8191 },
      INT64_C(1800000000000000) },
    /* The first millisecond that needs bit 63: 2^40 ms, so 2^63 + 1 * 262144 + 2 * 8192 + 3; as
     * int64 it would be negative. 2^40 + 1704067200000 = 2803578827776. */
    { "mission-8192",
      "9223372036855054339",
      "2058-11-03T19:53:47.776Z",
      { UINT64_C(1) << 40, 1, 2, 0, 3 },
      INT64_C(2803578827776000) },
    /* All bits: 2^64 - 1, at 2^41 - 1 + 1704067200000 = 3903090455551 ms. */
    { "mission-8192",
      "18446744073709551615",
      "2093-09-06T15:47:35.551Z",
      { (UINT64_C(1) << 41) - 1, 31, 31, 0, 8191 },
      INT64_C(3903090455551000) },

    /* 41/5/7 since 2021-01-01. 1800000000000 - 1609459200000 = 190540800000 ms; * 4096 =
     * 780455116800000; + node 31 * 128 = 3968; + seq 127. */
    { "js53",
      "780455116804095",
      "2027-01-15T08:00:00.000Z",
      { 190540800000, 0, 31, 0, 127 },
      INT64_C(1800000000000000) },
    /* All bits: 2^53 - 1, Number.MAX_SAFE_INTEGER, at 2^41 - 1 + 1609459200000 ms. */
    { "js53",
      "9007199254740991",
      "2090-09-07T15:47:35.551Z",
      { (UINT64_C(1) << 41) - 1, 0, 31, 0, 127 },
      INT64_C(3808482455551000) },
};

static struct firn_layout layout_of(const struct golden *g)
{
    struct firn_layout l;
    T_EQ(firn_layout_parse(g->layout, strlen(g->layout), 0, &l, NULL), 0);
    return l;
}

static struct firn_reading read_of(const struct golden *g, const struct firn_layout *l)
{
    struct firn_reading r;
    T_EQ(firn_read(firn_kind_find("snowflake", 9), g->id, strlen(g->id), l, &r, NULL), 0, "%s",
         g->id);
    return r;
}

T_TEST(composed_by_hand)
{
    for (size_t i = 0; i < T_LEN(golden); i++) {
        struct firn_layout l = layout_of(&golden[i]);
        struct firn_parts parts;
        uint64_t id;
        memcpy(parts.field, golden[i].parts, sizeof parts.field);
        T_EQ(firn_layout_compose(&l, &parts, &id, NULL), 0);
        T_EQ(id, read_of(&golden[i], &l).number, "%s %s", golden[i].layout, golden[i].id);
    }
}

T_TEST(read_as_documented)
{
    for (size_t i = 0; i < T_LEN(golden); i++) {
        struct firn_layout l = layout_of(&golden[i]);
        struct firn_reading r = read_of(&golden[i], &l);
        struct firn_parts parts;
        T_EQ(r.unix_us, golden[i].unix_us, "%s %s", golden[i].layout, golden[i].id);
        T_STR(r.field[0].value, golden[i].time);
        T_EQ(firn_layout_decompose(&l, r.number, &parts), 0);
        for (int f = 0; f < FIRN_FIELDS; f++)
            T_EQ(parts.field[f], golden[i].parts[f], "%s %s", golden[i].layout,
                 firn_field_name((enum firn_field)f));
    }
}

/* A generator at that time, on that slot, issues the golden ID as the last of its sequence
 * numbers. */
T_TEST(generated_at_that_time)
{
    for (size_t i = 0; i < T_LEN(golden); i++) {
        struct firn_layout l = layout_of(&golden[i]);
        struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
        struct firn_clock_virtual clock;
        struct firn_gen g;
        uint64_t id = 0;
        const uint64_t *part = golden[i].parts;
        firn_clock_virtual_init(&clock, (uint64_t)golden[i].unix_us * 1000);
        opts.clock = &clock.base;
        opts.from = part[FIRN_FIELD_TIME];
        opts.slot = (uint32_t)(part[FIRN_FIELD_DC] << l.field[FIRN_FIELD_NODE].width |
                               part[FIRN_FIELD_NODE]);
        T_EQ(firn_gen_init(&g, &l, &opts), 0);
        for (uint64_t n = 0; n <= part[FIRN_FIELD_SEQ]; n++)
            T_EQ(firn_gen_next(&g, &id), 0);
        T_EQ(id, read_of(&golden[i], &l).number, "%s %s", golden[i].layout, golden[i].id);
    }
}
