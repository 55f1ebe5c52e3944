/* Real IDs with known times, as their makers' documentation gives them. */
#include "t.h"

#include "firn/read.h"

static const struct {
    const char *layout, *id, *time;
    int64_t unix_ms;
} golden[] = {
    /* Twitter's own example in its documentation of Snowflake IDs: a Tweet of 2022. */
    { "twitter", "1541815603606036480", "2022-06-28T16:07:40.105Z", 1656432460105 },
    /* Discord's reference: "175928847299117063 was generated at 2016-04-30 11:18:25.796 UTC". */
    { "discord", "175928847299117063", "2016-04-30T11:18:25.796Z", 1462015105796 },
    /* Instagram's blog: 1,387,263,000 ms after its epoch, user 31341 % 2000 shards, 5001 % 1024. */
    { "instagram", "11637205501278089", "2011-09-09T22:28:04.721Z", 1315607284721 },
};

T_TEST(golden_layout_times)
{
    const struct firn_kind *kind = firn_kind_find("snowflake", 9);
    for (size_t i = 0; i < T_LEN(golden); i++) {
        struct firn_layout l;
        struct firn_reading r;
        T_EQ(firn_layout_parse(golden[i].layout, strlen(golden[i].layout), 0, &l, NULL), 0);
        T_EQ(firn_read(kind, golden[i].id, strlen(golden[i].id), &l, &r, NULL), 0);
        T_EQ(r.unix_us / 1000, golden[i].unix_ms, "%s %s", golden[i].layout, golden[i].id);
        T_STR(r.field[0].value, golden[i].time);
        T_STR(r.layout, golden[i].layout);
    }
}
