/* The examples of rs/xid, whose tests name their fields; texts also as RFC 4648 base32hex of Python
 * gives them. (The npm package xid-js uses another alphabet: it does not read or write these.) */
#include "t.h"

#include "firn/xid.h"

static const struct {
    const char *text;
    uint64_t unix_ms;
    struct firn_xid id;
} golden[] = {
    { "9m4e2mr0ui3e8a215n4g",
      1300816219000,
      { { 0x4d, 0x88, 0xe1, 0x5b, 0x60, 0xf4, 0x86, 0xe4, 0x28, 0x41, 0x2d, 0xc9 } } },
    { "00000000000000000000",
      0,
      { { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00 } } },
    { "0000005anf6drrg0000g",
      0,
      { { 0x00, 0x00, 0x00, 0x00, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x00, 0x00, 0x01 } } },
    { "vvvvvvvvvvvvvvvvvvvg",
      4294967295000,
      { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } } },
};

T_TEST(xid_golden)
{
    for (size_t i = 0; i < T_LEN(golden); i++) {
        struct firn_xid id;
        char text[FIRN_XID_TEXT_BUF];
        T_EQ(firn_xid_parse(golden[i].text, strlen(golden[i].text), &id), 0, "'%s'",
             golden[i].text);
        T_OK(memcmp(&id, &golden[i].id, sizeof id) == 0, "'%s'", golden[i].text);
        T_EQ(firn_xid_unix_ms(&id), golden[i].unix_ms, "'%s'", golden[i].text);
        firn_xid_format(&golden[i].id, text);
        T_STR(text, golden[i].text);
    }
}

T_TEST(xid_golden_fields)
{
    T_OK(memcmp(firn_xid_machine(&golden[0].id), "\x60\xf4\x86", 3) == 0);
    T_EQ(firn_xid_pid(&golden[0].id), 0xe428);
    T_EQ(firn_xid_counter(&golden[0].id), 4271561);
    T_OK(memcmp(firn_xid_machine(&golden[2].id), "\xaa\xbb\xcc", 3) == 0);
    T_EQ(firn_xid_pid(&golden[2].id), 0xddee);
    T_EQ(firn_xid_counter(&golden[2].id), 1);
}
