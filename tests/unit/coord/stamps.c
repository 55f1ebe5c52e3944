/* Generators on a grant: what they may stamp, and the shares of those who ask for it. */
#include "t.h"

#include "coord/stamps.h"

#include <string.h>

enum { MS = 1000000 };

static uint64_t now_ns;

static uint64_t read_clock(const struct firn_clock *c)
{
    (void)c;
    return now_ns;
}

static void no_sleep(const struct firn_clock *c, uint64_t ns)
{
    (void)c;
    (void)ns;
}

static const struct firn_clock hand = { read_clock, read_clock, no_sleep };
static struct stamp_plan plan;
static struct stamps stamps;
static struct stamps_above above;
static uint64_t per_tick, now;

static void begin(uint32_t slot, uint64_t gen)
{
    struct lease_view v = { .max_drift = 5000, .window = 3000 };
    v.grant = (struct slot_grant){ gen, slot, now, now + 60000, false };
    stamps_begin(&stamps, &plan, &v, &above, &hand);
}

static void setup(void)
{
    struct firn_layout l;
    T_EQ(firn_layout_parse("firn", 4, 0, &l, NULL), 0);
    T_EQ(stamp_plan_init(&plan, &l, NULL), 0);
    memset(&above, 0, sizeof above);
    now_ns = (uint64_t)l.epoch_ms * MS + UINT64_C(1000000) * MS;
    now = 1000000;
    per_tick = UINT64_C(1) << l.field[FIRN_FIELD_SEQ].width;
    begin(7, 1);
}

static uint64_t draw(size_t n)
{
    uint64_t ids[4096];
    size_t got = 0;
    struct firn_shared *g = stamps_generator(&stamps, &plan, LEASED_SNOWFLAKE);
    T_OK(g && n <= 4096 && firn_shared_fill(g, ids, n, &got) == 0);
    T_EQ(got, n);
    return ids[n - 1];
}

T_TEST(stamps_room_is_what_may_be_borrowed)
{
    struct stamps_room room;
    setup();
    stamps_room(&stamps, &plan, LEASED_SNOWFLAKE, &room);
    T_EQ(room.full, 5001 * per_tick);
    T_EQ(room.left, room.full);
    draw(4096);
    stamps_room(&stamps, &plan, LEASED_SNOWFLAKE, &room);
    T_EQ(room.left, 5001 * per_tick - 4096);
    now_ns += 100 * (uint64_t)MS; /* all of that is behind the clock now */
    stamps_room(&stamps, &plan, LEASED_SNOWFLAKE, &room);
    T_EQ(room.left, room.full);
    while (room.left > 0)
        draw(room.left < 4096 ? room.left : 4096),
            stamps_room(&stamps, &plan, LEASED_SNOWFLAKE, &room);
    uint64_t id;
    T_EQ(firn_shared_next(stamps_generator(&stamps, &plan, LEASED_SNOWFLAKE), &id), FIRN_EAGAIN);
    stamps_end(&stamps, &plan, &above);
    stamps_room(&stamps, &plan, LEASED_SNOWFLAKE, &room);
    T_EQ(room.left, 0);
}

/* A smaller slot in the same tick would make a smaller ID. */
T_TEST(stamps_a_new_grant_begins_above_the_last)
{
    setup();
    uint64_t last = draw(1);
    for (uint64_t gen = 2; gen < 9; gen++) {
        stamps_end(&stamps, &plan, &above);
        begin((uint32_t)(9 - gen), gen);
        uint64_t id = draw(1);
        T_OK(id > last);
        last = id;
    }
    T_OK(stamps_highest(&stamps, &plan) >= now + 7);
}

T_TEST(stamps_shares)
{
    static const struct {
        uint64_t left, n;
        int share;
    } rows[] = {
        { 100000, 1, 0 },    { 50000, 1, 0 },      { 49999, 1, 1 },      { 24999, 1, 2 },
        { 1, 1, 6 },         { 0, 1, 6 },          { 100000, 20000, 0 }, { 75000, 20000, 0 },
        { 74999, 20000, 1 }, { 70000, 20000, 1 },  { 69999, 20000, -1 }, { 50000, 1001, -1 },
        { 51001, 1001, 5 },  { 100000, 90000, 0 }, { 93750, 90000, 0 },  { 93749, 90000, -1 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct stamps_room room = { rows[i].left, 100000 };
        T_EQ(stamps_share(&room, rows[i].n), rows[i].share, "left=%llu n=%llu",
             (unsigned long long)rows[i].left, (unsigned long long)rows[i].n);
    }
    struct stamps_room none = { 0, 0 };
    T_EQ(stamps_share(&none, 5000), -1);
}
