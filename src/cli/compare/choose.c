#include "cli/compare/choose.h"

#define BIT(name) (UINT32_C(1) << CHOOSE_##name)

const struct choose_wish choose_wishes[CHOOSE_BITS] = {
    [CHOOSE_64BIT] = { "64bit", "Must it fit a 64-bit integer?", "fits a signed 64-bit integer",
                       "does not fit a 64-bit integer" },
    [CHOOSE_GAPLESS] = { "gapless", "Must no number be missing, as on invoices?", "leaves no hole",
                         "leaves holes" },
    [CHOOSE_SORTABLE] = { "sortable", "Should they sort by when they were made?",
                          "sorts by when it was made", "does not sort by when it was made" },
    [CHOOSE_STRICT] = { "strict", "Must each be above all that were handed out before, anywhere?",
                        "rises strictly, whoever asks",
                        "rises strictly on each connection or machine only, or not at all" },
    [CHOOSE_OFFLINE] = { "offline", "Must they be made without asking a server for each?",
                         "is made in process, no server is asked for each",
                         "is handed out by a server" },
    [CHOOSE_NO_SETUP] = { "no-setup", "Must it work without any setup: no worker number, no store?",
                          "needs no worker number, no lease and no store",
                          "needs a worker number, a lease or a store" },
    [CHOOSE_PUBLIC] = { "public", "Will strangers see them, who must not guess or count others?",
                        "cannot be guessed or counted", "can be guessed or counted" },
    [CHOOSE_HIDE_TIME] = { "hide-time", "Must they not tell when they were made?",
                           "does not tell when it was made", "tells when it was made" },
    [CHOOSE_STRINGS] = { "strings", "Should they be texts, not numbers?", "is a text",
                         "is a number" },
    [CHOOSE_SHORT] = { "short", "Will people read or type them: at most 13 characters?",
                       "has at most 13 characters for a long time to come",
                       "is longer than 13 characters" },
    [CHOOSE_UUID] = { "uuid", "Must they be UUIDs?", "is a UUID", "is no UUID" },
    [CHOOSE_JAVASCRIPT] = { "javascript", "Must they be numbers that JavaScript holds exactly?",
                            "stays below 2^53 for a long time to come", "is no number below 2^53" },
    [CHOOSE_FAST] = { "fast", "Do you need a million a second and more?",
                      "makes more than a million a second in one process",
                      "makes less than a million a second" },
    [CHOOSE_DATED] = { "dated", "Should people read a date in them?", "begins with the date",
                       "shows people no date" },
};

const struct choose_kind choose_kinds[CHOOSE_KINDS] = {
    { "snowflake", "Snowflake", BIT(64BIT) | BIT(SORTABLE) | BIT(OFFLINE) | BIT(FAST), 19,
      "time, worker and counter in 64 bits", "strangers can guess neighbours and read the time",
      "firnd: GET :9001/generate; in process: libfirn-node; firn gen snowflake --worker N" },
    { "uuidv7", "UUID v7",
      BIT(SORTABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(STRINGS) | BIT(UUID) |
          BIT(FAST),
      36, "Unix milliseconds, then random bits", "twice the size of a 64-bit number",
      "firn gen uuidv7; firn_uuid_v7()" },
    { "uuidv4", "UUID v4",
      BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(HIDE_TIME) | BIT(STRINGS) | BIT(UUID) |
          BIT(FAST),
      36, "122 random bits", "scatters over an index: slower to insert, larger on disk",
      "firn gen uuidv4; firn_uuid_v4()" },
    { "ticket-range", "Ticket, range",
      BIT(64BIT) | BIT(HIDE_TIME) | BIT(SHORT) | BIT(JAVASCRIPT) | BIT(FAST), 19,
      "a counter; servers take blocks of it",
      "a crash leaves a gap, and servers' blocks are out of order",
      "redis-cli INCR name; firnd: GET /v1/sequences/NAME/next, mode range" },
    { "ticket-gapless", "Ticket, gapless",
      BIT(64BIT) | BIT(GAPLESS) | BIT(SORTABLE) | BIT(STRICT) | BIT(HIDE_TIME) | BIT(SHORT) |
          BIT(JAVASCRIPT),
      19, "a counter, each number durable before it is answered",
      "waits for the disk: thousands a second, not millions",
      "firnd: GET :9002/generate, or /v1/sequences/NAME/next, mode gapless" },
    { "sealed", "Snowflake, sealed for the public",
      BIT(64BIT) | BIT(SORTABLE) | BIT(OFFLINE) | BIT(PUBLIC) | BIT(HIDE_TIME) | BIT(STRINGS), 23,
      "a 64-bit number inside, 23 encrypted characters outside",
      "a key to keep, and a step between inside and outside", "firn seal; firn_seal()" },
    { "tsid", "TSID",
      BIT(64BIT) | BIT(SORTABLE) | BIT(OFFLINE) | BIT(STRINGS) | BIT(SHORT) | BIT(FAST), 13,
      "a Snowflake as 13 characters", "strangers can guess neighbours", "firn gen tsid" },
    { "typeid", "TypeID",
      BIT(SORTABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(STRINGS) | BIT(FAST), 90,
      "a type and a UUID v7: user_01h4…", "longer than a UUID's 16 bytes unless you split it",
      "firn gen typeid --prefix user" },
    { "nanoid", "NanoID",
      BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(HIDE_TIME) | BIT(STRINGS) | BIT(FAST), 21,
      "21 random characters for URLs", "scatters over an index; upper and lower case matter",
      "firn gen nanoid" },
    { "ulid", "ULID", BIT(SORTABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(STRINGS) | BIT(FAST), 26,
      "milliseconds and 80 bits that count up within one",
      "the next of the same millisecond can be guessed; UUID v7 has more tools", "firn gen ulid" },
    { "ksuid", "KSUID",
      BIT(SORTABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(STRINGS) | BIT(FAST), 27,
      "seconds and 128 random bits", "20 bytes; no order within a second", "firn gen ksuid" },
    { "dated", "Dated ticket",
      BIT(GAPLESS) | BIT(SORTABLE) | BIT(STRICT) | BIT(STRINGS) | BIT(DATED), 18,
      "the date and a counter that starts again: 20261115-000042",
      "waits for the disk, and tells how many there were that day",
      "POST /v1/sequences with \"dated\"; firn gen dated" },
    { "multi-master", "Multi-master tickets",
      BIT(64BIT) | BIT(HIDE_TIME) | BIT(SHORT) | BIT(JAVASCRIPT), 19,
      "two counters, odd and even, that never meet",
      "holes and no common order; a third master needs planning",
      "two sequences with \"step\":2 and \"offset\" 0 and 1" },
    { "sonyflake", "Sonyflake", BIT(64BIT) | BIT(SORTABLE) | BIT(OFFLINE), 19,
      "10 ms ticks, sequence, 65,536 machines", "25,600 a second and machine",
      "firn gen sonyflake --worker N" },
    { "xid", "XID", BIT(SORTABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(STRINGS) | BIT(FAST), 20,
      "seconds, machine, process, counter in 12 bytes", "neighbours can be guessed",
      "firn gen xid" },
    { "objectid", "ObjectId",
      BIT(SORTABLE) | BIT(OFFLINE) | BIT(NO_SETUP) | BIT(STRINGS) | BIT(FAST), 24,
      "MongoDB's 12 bytes", "neighbours can be guessed; at home in MongoDB alone",
      "firn gen objectid" },
    { "cuid2", "CUID2", BIT(OFFLINE) | BIT(NO_SETUP) | BIT(PUBLIC) | BIT(HIDE_TIME) | BIT(STRINGS),
      24, "24 characters of a hash", "slow to make, scatters over an index", "firn gen cuid2" },
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

/* Take away wish after wish as long as no kind fits what is left: what stays is needed for the clash. */
static uint32_t shrink(uint32_t wishes)
{
    for (uint32_t bit = UINT32_C(1) << (CHOOSE_BITS - 1); bit; bit >>= 1)
        if (wishes & bit && first_with(wishes & ~bit) < 0)
            wishes &= ~bit;
    return wishes;
}

/* The smallest clash: a pair, if there is one, tells more than what shrink() may end with. */
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
        { BIT(GAPLESS) | BIT(OFFLINE),
          "a count without holes has one place that counts, and that place must be asked" },
        { BIT(GAPLESS) | BIT(NO_SETUP), "a count without holes has one place that counts" },
        { BIT(GAPLESS) | BIT(PUBLIC), "whoever sees a number without holes knows all the others" },
        { BIT(GAPLESS) | BIT(FAST),
          "a number that may not be lost is on disk before it is answered, and disks are slow" },
        { BIT(GAPLESS) | BIT(UUID), "UUIDs are drawn, not counted" },
        { BIT(STRICT) | BIT(OFFLINE),
          "one order over all machines takes one place that decides it for each ID" },
        { BIT(STRICT) | BIT(NO_SETUP),
          "one order over all machines takes one place that decides it" },
        { BIT(STRICT) | BIT(FAST), "one order over all machines takes a durable step for each ID" },
        { BIT(STRICT) | BIT(PUBLIC), "what rises one by one can be counted by strangers" },
        { BIT(STRICT) | BIT(UUID), "UUIDs of two machines have no strict order" },
        { BIT(64BIT) | BIT(NO_SETUP),
          "63 bits are too few to be random: two machines would meet, so somebody must deal out "
          "numbers" },
        { BIT(64BIT) | BIT(UUID), "a UUID has 128 bits" },
        { BIT(64BIT) | BIT(DATED), "a date that people can read takes digits that 64 bits lack" },
        { BIT(SHORT) | BIT(PUBLIC),
          "13 characters can be tried out one by one; what may not be guessed is longer" },
        { BIT(SHORT) | BIT(NO_SETUP), "13 characters are too few to be random without meeting" },
        { BIT(SHORT) | BIT(UUID), "a UUID has 36 characters" },
        { BIT(JAVASCRIPT) | BIT(OFFLINE),
          "53 bits have no room for a time and a worker; only a counter stays below" },
        { BIT(JAVASCRIPT) | BIT(PUBLIC), "53 bits can be guessed" },
        { BIT(JAVASCRIPT) | BIT(STRINGS), "a number is no text" },
        { BIT(JAVASCRIPT) | BIT(UUID), "a UUID is no number" },
        { BIT(HIDE_TIME) | BIT(DATED), "a date tells the time" },
        { BIT(UUID) | BIT(DATED), "a UUID shows people no date" },
        { BIT(OFFLINE) | BIT(DATED),
          "the number behind the date is a count of that day, kept in one place" },
        { BIT(NO_SETUP) | BIT(DATED),
          "the number behind the date is a count of that day, kept in one place" },
        { BIT(PUBLIC) | BIT(DATED), "the number behind the date can be counted by strangers" },
        { BIT(SHORT) | BIT(DATED), "the date alone takes eight characters" },
        { BIT(JAVASCRIPT) | BIT(DATED), "a number shows people no date" },
        { BIT(FAST) | BIT(DATED), "the number behind the date waits for the disk" },
        { BIT(JAVASCRIPT) | BIT(NO_SETUP),
          "53 bits are too few to be random: two machines would meet" },
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].wishes == conflict)
            return known[i].why;
    return "no kind that firn knows has all of these";
}
