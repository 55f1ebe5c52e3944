/*
 * hot NAME COUNT: runs one hot path COUNT times and nothing else, for bench/callgrind to count its
 * instructions. Two runs must count the same: the clock stands still and the random numbers are
 * seeded. Without arguments it lists the names.
 */
#include "firn/gen.h"
#include "firn/ksuid.h"
#include "firn/random.h"
#include "firn/text.h"
#include "firn/ulid.h"
#include "firn/uuid.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILL = 4096 };
#define NOW_MS UINT64_C(1800000000000)

static struct firn_clock_virtual clock;
static struct firn_gen gen;
static struct firn_shared shared;
static struct firn_rng rng;
static struct firn_uuid_v7_gen v7 = FIRN_UUID_V7_GEN_INIT;
static uint64_t ids[FILL];

static struct firn_uuid uuid;
static struct firn_ulid ulid;
static struct firn_ksuid ksuid;
static uint64_t number;
static char uuid_text[FIRN_UUID_TEXT_BUF], ulid_text[FIRN_ULID_TEXT_BUF],
    ksuid_text[FIRN_KSUID_TEXT_BUF], number_text[FIRN_U64_TEXT_BUF];

static void must(int r)
{
    if (r != 0) {
        fprintf(stderr, "hot: %s\n", firn_error_message(r));
        exit(1);
    }
}

static void snowflake(void)
{
    must(firn_gen_next(&gen, ids));
}

static void snowflake_fill(void)
{
    size_t n;
    must(firn_gen_fill(&gen, ids, FILL, &n));
}

static void snowflake_shared(void)
{
    must(firn_shared_next(&shared, ids));
}

static void uuid4(void)
{
    firn_uuid_v4(&rng, &uuid);
}

static void uuid4_text(void)
{
    uuid4();
    firn_uuid_format(&uuid, uuid_text);
}

static void uuid7(void)
{
    must(firn_uuid_v7(&v7, NOW_MS, &rng, &uuid));
}

static void uuid7_text(void)
{
    uuid7();
    firn_uuid_format(&uuid, uuid_text);
}

static void ulid_make(void)
{
    must(firn_ulid_make(NOW_MS, &rng, &ulid));
}

static void ulid_make_text(void)
{
    ulid_make();
    firn_ulid_format(&ulid, ulid_text);
}

static void ksuid_make_text(void)
{
    must(firn_ksuid_make(NOW_MS, &rng, &ksuid));
    firn_ksuid_format(&ksuid, ksuid_text);
}

static void decimal_format(void)
{
    firn_u64_format(number, number_text);
}

static void uuid_parse(void)
{
    must(firn_uuid_parse(uuid_text, FIRN_UUID_TEXT_LEN, &uuid));
}

static void ulid_parse(void)
{
    must(firn_ulid_parse(ulid_text, FIRN_ULID_TEXT_LEN, &ulid));
}

static void ksuid_parse(void)
{
    must(firn_ksuid_parse(ksuid_text, FIRN_KSUID_TEXT_LEN, &ksuid));
}

static void decimal_parse(void)
{
    must(firn_u64_parse(number_text, 19, &number));
}

static const struct {
    const char *name;
    void (*run)(void);
} paths[] = {
    { "snowflake", snowflake },
    { "snowflake.fill4096", snowflake_fill },
    { "snowflake.shared", snowflake_shared },
    { "uuid4", uuid4 },
    { "uuid4.text", uuid4_text },
    { "uuid7", uuid7 },
    { "uuid7.text", uuid7_text },
    { "ulid", ulid_make },
    { "ulid.text", ulid_make_text },
    { "ksuid.text", ksuid_make_text },
    { "decimal.format", decimal_format },
    { "decimal.parse", decimal_parse },
    { "uuid.parse", uuid_parse },
    { "ulid.parse", ulid_parse },
    { "ksuid.parse", ksuid_parse },
};

/* Ticks of a second leave room for more IDs than anyone counts while the clock stands. */
static void make_generators(void)
{
    static const char text[] = "unused:1,time:31@1s,node:2,seq:30";
    struct firn_layout layout;
    struct firn_gen_opts opts = FIRN_GEN_OPTS_INIT;
    firn_clock_virtual_init(&clock, NOW_MS * 1000000);
    opts.clock = &clock.base;
    opts.policy = FIRN_POLICY_ERROR;
    /* From a tick that the clock shows already: a standing clock never reaches the next. */
    opts.from = 1;
    opts.until = UINT64_C(1) << 31;
    must(firn_layout_parse(text, strlen(text), 0, &layout, NULL));
    must(firn_gen_init(&gen, &layout, &opts));
    must(firn_shared_init(&shared, &layout, &opts));
}

int main(int argc, char **argv)
{
    static const uint8_t seed[FIRN_RNG_SEED_BYTES] = { 1, 2, 3 };
    if (argc != 3) {
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
            puts(paths[i].name);
        return argc == 1 ? 0 : 2;
    }
    firn_rng_init(&rng, seed);
    make_generators();
    number = UINT64_C(7301234567890123456);
    uuid7_text();
    ulid_make_text();
    ksuid_make_text();
    decimal_format();
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
        if (strcmp(paths[i].name, argv[1]) == 0) {
            for (long n = strtol(argv[2], NULL, 10); n > 0; n--)
                paths[i].run();
            return 0;
        }
    fprintf(stderr, "hot: no path '%s'\n", argv[1]);
    return 2;
}
