/* The examples of MongoDB's manual; times as the npm package bson 7.3.4 decodes them. */
#include "t.h"

#include "firn/objectid.h"

static const struct {
    const char *text;
    uint64_t unix_ms;
    struct firn_objectid id;
} golden[] = {
    { "507f1f77bcf86cd799439011",
      1350508407000,
      { { 0x50, 0x7f, 0x1f, 0x77, 0xbc, 0xf8, 0x6c, 0xd7, 0x99, 0x43, 0x90, 0x11 } } },
    { "507f191e810c19729de860ea",
      1350506782000,
      { { 0x50, 0x7f, 0x19, 0x1e, 0x81, 0x0c, 0x19, 0x72, 0x9d, 0xe8, 0x60, 0xea } } },
    { "000000000000000000000000",
      0,
      { { 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00 } } },
    { "ffffffffffffffffffffffff",
      4294967295000,
      { { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff } } },
};

T_TEST(objectid_golden)
{
    for (size_t i = 0; i < T_LEN(golden); i++) {
        struct firn_objectid id;
        char text[FIRN_OBJECTID_TEXT_BUF];
        T_EQ(firn_objectid_parse(golden[i].text, strlen(golden[i].text), &id), 0, "'%s'",
             golden[i].text);
        T_OK(memcmp(&id, &golden[i].id, sizeof id) == 0, "'%s'", golden[i].text);
        T_EQ(firn_objectid_unix_ms(&id), golden[i].unix_ms, "'%s'", golden[i].text);
        firn_objectid_format(&golden[i].id, text);
        T_STR(text, golden[i].text);
    }
}
