/* The table of kinds and requirements of firn choose, and the choice. */
#include "cli/compare/choose.h"

#define BIT(name) (UINT32_C(1) << CHOOSE_##name)

const struct choose_wish choose_wishes[CHOOSE_BITS] = {
    [CHOOSE_64BIT] = { "64bit", "Must it fit a 64-bit integer?", "fits a signed 64-bit integer",
                       "does not fit a 64-bit integer" },
    [CHOOSE_GAPLESS] = { "gapless", "Must no number be missing, as on invoices?", "leaves no gap",
                         "leaves gaps" },
    [CHOOSE_SORTABLE] = { "sortable", "Should they sort by creation time?",
                          "sorts by creation time", "does not sort by creation time" },
    [CHOOSE_STRICT] = { "strict",
                        "Must each be greater than all that were issued before, anywhere?",
                        "rises strictly over all clients",
                        "rises strictly on each connection or machine only, or not at all" },
    [CHOOSE_AVAILABLE] = { "available", "Must they be issued while the store cannot be reached?",
                           "is issued while its store is out of reach: for a window or a block, "
                           "or because it has none",
                           "stops while its store is out of reach" },
    [CHOOSE_OFFLINE] = { "offline", "Must they be generated without a server request for each?",
                         "is generated in process, without a server request for each",
                         "is issued by a server" },
    [CHOOSE_NO_SETUP] = { "no-setup", "Must it work without any setup: no worker number, no store?",
                          "needs no worker number, no lease and no store",
                          "needs a worker number, a lease or a store" },
    [CHOOSE_PUBLIC] = { "public",
                        "Will they be public, so that others must not be guessed or enumerated?",
                        "cannot be guessed or enumerated", "can be guessed or enumerated" },
    [CHOOSE_HIDE_TIME] = { "hide-time", "Must they hide their creation time?",
                           "hides its creation time", "reveals its creation time" },
    [CHOOSE_STRINGS] = { "strings", "Should they be texts, not numbers?", "is a text",
                         "is a number" },
    [CHOOSE_SHORT] = { "short", "Will people read or type them: at most 13 characters?",
                       "has at most 13 characters for a long time to come",
                       "is longer than 13 characters" },
    [CHOOSE_UUID] = { "uuid", "Must they be UUIDs?", "is a UUID", "is not a UUID" },
    [CHOOSE_JAVASCRIPT] = { "javascript",
                            "Must they be numbers that JavaScript represents exactly?",
                            "stays below 2^53 for a long time to come",
                            "is not a number below 2^53" },
    [CHOOSE_FAST] = { "fast", "Do you need a million per second or more?",
                      "generates more than a million per second in one process",
                      "generates less than a million per second" },
    [CHOOSE_DATED] = { "dated", "Should they show a readable date?", "begins with the date",
                       "shows no readable date" },
};

const struct choose_kind choose_kinds[CHOOSE_KINDS] = {
    { "snowflake", "Snowflake",
      BIT(64BIT) | BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(FAST), 19,
      "time, worker and counter in 64 bits", "neighbours can be guessed and the time can be read",
      "firnd: GET :9001/generate; in process: libfirn-node; firn gen snowflake --worker N" },
    { "uuidv7", "UUID v7",
      BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(STRINGS) |
          BIT(UUID) | BIT(FAST),
      36, "Unix milliseconds, then random bits", "twice the size of a 64-bit number",
      "firn gen uuidv7; firn_uuid_v7()" },
    { "uuidv4", "UUID v4",
      BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(HIDE_TIME) | BIT(STRINGS) |
          BIT(UUID) | BIT(FAST),
      36, "122 random bits", "random index positions: slower to insert, larger on disk",
      "firn gen uuidv4; firn_uuid_v4()" },
    { "ticket-range", "Ticket, range",
      BIT(64BIT) | BIT(AVAILABLE) | BIT(HIDE_TIME) | BIT(SHORT) | BIT(JAVASCRIPT) | BIT(FAST), 19,
      "a counter; servers reserve blocks of it",
      "a crash leaves a gap, and the blocks of servers are out of order",
      "redis-cli INCR name; firnd: GET /v1/sequences/NAME/next, mode range" },
    { "ticket-gapless", "Ticket, gapless",
      BIT(64BIT) | BIT(GAPLESS) | BIT(SORTABLE) | BIT(STRICT) | BIT(HIDE_TIME) | BIT(SHORT) |
          BIT(JAVASCRIPT),
      19, "a counter, each number durable before it is answered",
      "waits for the disk: thousands per second, not millions",
      "firnd: GET :9002/generate, or /v1/sequences/NAME/next, mode gapless" },
    { "sealed", "Snowflake, sealed",
      BIT(64BIT) | BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(PUBLIC) | BIT(HIDE_TIME) |
          BIT(STRINGS),
      23, "a 64-bit number internally, 23 encrypted characters externally",
      "a key to keep secret, and a conversion step", "firn seal; firn_seal()" },
    { "tsid", "TSID",
      BIT(64BIT) | BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(STRINGS) | BIT(SHORT) |
          BIT(FAST),
      13, "a Snowflake as 13 characters", "neighbours can be guessed", "firn gen tsid" },
    { "typeid", "TypeID",
      BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(STRINGS) |
          BIT(FAST),
      90, "a type and a UUID v7: user_01h4…", "longer than a UUID's 16 bytes unless you split it",
      "firn gen typeid --prefix user" },
    { "nanoid", "NanoID",
      BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(HIDE_TIME) | BIT(STRINGS) |
          BIT(FAST),
      21, "21 random characters for URLs", "random index positions; case-sensitive",
      "firn gen nanoid" },
    { "ulid", "ULID",
      BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(STRINGS) | BIT(FAST), 26,
      "milliseconds and 80 bits that increase within one",
      "the next of the same millisecond can be guessed; UUID v7 has more tools", "firn gen ulid" },
    { "ksuid", "KSUID",
      BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(STRINGS) |
          BIT(FAST),
      27, "seconds and 128 random bits", "20 bytes; no order within a second", "firn gen ksuid" },
    { "dated", "Dated ticket",
      BIT(GAPLESS) | BIT(SORTABLE) | BIT(STRICT) | BIT(STRINGS) | BIT(DATED), 18,
      "the date and a counter that starts again: 20261115-000042",
      "waits for the disk, and reveals the count of that day",
      "POST /v1/sequences with \"dated\"; firn gen dated" },
    { "multi-master", "Multi-master tickets",
      BIT(64BIT) | BIT(HIDE_TIME) | BIT(SHORT) | BIT(JAVASCRIPT), 19, "two counters, odd and even",
      "gaps and no common order; a third master needs planning",
      "two sequences with \"step\":2 and \"offset\" 0 and 1" },
    { "sonyflake", "Sonyflake", BIT(64BIT) | BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE), 19,
      "10 ms ticks, sequence, 65,536 machines", "25,600 per second and machine",
      "firn gen sonyflake --worker N" },
    { "xid", "XID",
      BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(STRINGS) | BIT(FAST), 20,
      "seconds, machine, process, counter in 12 bytes", "neighbours can be guessed",
      "firn gen xid" },
    { "objectid", "ObjectId",
      BIT(SORTABLE) | BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(STRINGS) | BIT(FAST), 24,
      "MongoDB's 12 bytes", "neighbours can be guessed; used in MongoDB only",
      "firn gen objectid" },
    { "cuid2", "CUID2",
      BIT(AVAILABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(HIDE_TIME) | BIT(STRINGS),
      24, "24 characters of a hash", "slow to generate, random index positions", "firn gen cuid2" },
};

static unsigned bits_in(uint32_t mask)
{
    return (unsigned)__builtin_popcount(mask);
}

static int first_with(uint32_t wishes)
{
    for (int i = 0; i < CHOOSE_KINDS; i++)
        if ((wishes & ~choose_kinds[i].has) == 0)
            return i;
    return -1;
}

/* Remove requirements one by one while no kind meets the rest: the remaining ones are all part
 * of the conflict. */
static uint32_t shrink(uint32_t wishes)
{
    for (uint32_t bit = UINT32_C(1) << (CHOOSE_BITS - 1); bit; bit >>= 1)
        if (wishes & bit && first_with(wishes & ~bit) < 0)
            wishes &= ~bit;
    return wishes;
}

/* The smallest conflict: a pair, if there is one, explains more than the result of shrink(). */
static uint32_t smallest(uint32_t wishes)
{
    for (unsigned a = 0; a < CHOOSE_BITS; a++)
        for (unsigned b = a + 1; b < CHOOSE_BITS; b++) {
            uint32_t pair = UINT32_C(1) << a | UINT32_C(1) << b;
            if ((wishes & pair) == pair && first_with(pair) < 0)
                return pair;
        }
    return shrink(wishes);
}

void choose(uint32_t wishes, struct choose_answer *out)
{
    unsigned n = 0;
    *out = (struct choose_answer){ .best = first_with(wishes) };
    for (unsigned lack = 0; lack <= CHOOSE_BITS; lack++)
        for (unsigned i = 0; i < CHOOSE_KINDS; i++) {
            out->lacks[i] = wishes & ~choose_kinds[i].has;
            if (bits_in(out->lacks[i]) == lack)
                out->order[n++] = (uint8_t)i;
        }
    if (out->best < 0)
        out->conflict = smallest(wishes);
}

const char *choose_why(uint32_t conflict)
{
    static const struct {
        uint32_t wishes;
        const char *why;
    } known[] = {
        { BIT(GAPLESS) | BIT(AVAILABLE),
          "without its store nobody knows which number is next: during a partition a gapless "
          "counter refuses (consistency before availability, see docs/choosing.md)" },
        { BIT(STRICT) | BIT(AVAILABLE),
          "during a partition nobody knows what the other side has issued" },
        { BIT(AVAILABLE) | BIT(DATED),
          "the number after the date is a counter of that day, kept in the store" },
        { BIT(GAPLESS) | BIT(OFFLINE),
          "a gapless counter exists in one place, which must be asked" },
        { BIT(GAPLESS) | BIT(NO_SETUP), "a gapless counter exists in one place" },
        { BIT(GAPLESS) | BIT(PUBLIC), "from one gapless number all others are known" },
        { BIT(GAPLESS) | BIT(FAST),
          "a number that must not be lost is on disk before it is issued, and disks are slow" },
        { BIT(GAPLESS) | BIT(UUID), "UUIDs are random, not counted" },
        { BIT(STRICT) | BIT(OFFLINE),
          "one order over all machines needs one place that decides it for each ID" },
        { BIT(STRICT) | BIT(NO_SETUP),
          "one order over all machines needs one place that decides it" },
        { BIT(STRICT) | BIT(FAST),
          "one order over all machines needs a durable write for each ID" },
        { BIT(STRICT) | BIT(PUBLIC), "numbers that rise one by one can be enumerated" },
        { BIT(STRICT) | BIT(UUID), "UUIDs of two machines have no strict order" },
        { BIT(64BIT) | BIT(NO_SETUP),
          "63 bits are too few to be random: two machines would collide, so that something "
          "must assign numbers" },
        { BIT(64BIT) | BIT(UUID), "a UUID has 128 bits" },
        { BIT(64BIT) | BIT(DATED), "a readable date needs digits that 64 bits do not have" },
        { BIT(SHORT) | BIT(PUBLIC),
          "13 characters can be tried out one by one; unguessable IDs are longer" },
        { BIT(SHORT) | BIT(NO_SETUP), "13 characters are too few to be random without collisions" },
        { BIT(SHORT) | BIT(UUID), "a UUID has 36 characters" },
        { BIT(JAVASCRIPT) | BIT(OFFLINE),
          "53 bits have no room for a time and a worker; only a counter stays below" },
        { BIT(JAVASCRIPT) | BIT(PUBLIC), "53 bits can be guessed" },
        { BIT(JAVASCRIPT) | BIT(STRINGS), "a number is not a text" },
        { BIT(JAVASCRIPT) | BIT(UUID), "a UUID is not a number" },
        { BIT(HIDE_TIME) | BIT(DATED), "a date reveals the time" },
        { BIT(UUID) | BIT(DATED), "a UUID shows no readable date" },
        { BIT(OFFLINE) | BIT(DATED),
          "the number after the date is a counter of that day, kept in one place" },
        { BIT(NO_SETUP) | BIT(DATED),
          "the number after the date is a counter of that day, kept in one place" },
        { BIT(PUBLIC) | BIT(DATED), "the number after the date can be enumerated" },
        { BIT(SHORT) | BIT(DATED), "the date alone takes eight characters" },
        { BIT(JAVASCRIPT) | BIT(DATED), "a number shows no readable date" },
        { BIT(FAST) | BIT(DATED), "the number after the date waits for the disk" },
        { BIT(JAVASCRIPT) | BIT(NO_SETUP),
          "53 bits are too few to be random: two machines would collide" },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].wishes == conflict)
            return known[i].why;
    return "no kind that firn knows meets all of these";
}
