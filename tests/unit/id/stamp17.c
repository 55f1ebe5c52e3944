#include "t.h"

#include "firn/stamp17.h"

T_TEST(stamp17_parse)
{
    static const struct {
        const char *text;
        int64_t unix_ms;
    } good[] = { { "19700101000000000", 0 },
                 { "19691231235959999", -1 },
                 { "20210101000000000", INT64_C(1609459200000) },
                 { "20101104014254657", INT64_C(1288834974657) },
                 { "20240229235959999", INT64_C(1709251199999) },
                 { "00010101000000000", INT64_C(-62135596800000) },
                 { "99991231235959999", INT64_C(253402300799999) } };
    for (size_t i = 0; i < T_LEN(good); i++) {
        int64_t ms = 77;
        T_EQ(firn_stamp17_parse(good[i].text, 17, &ms), 0, "'%s'", good[i].text);
        T_EQ(ms, good[i].unix_ms, "'%s'", good[i].text);
    }
}

T_TEST(stamp17_parse_refuses)
{
    static const char *const bad[] = {
        "",
        "2021010100000000",   /* 16 */
        "202101010000000000", /* 18 */
        "2021010100000000x",
        "x0210101000000000",
        " 0210101000000000",
        "+2021010100000000",
        "2021-01-010000000",
        "20210001000000000",
        "20211301000000000",
        "20210100000000000",
        "20210132000000000",
        "20210229000000000",
        "19000229000000000",
        "20210101240000000",
        "20210101006000000",
        "20161231235960000", /* a leap second that was */
        "00000101000000000",
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        int64_t ms = 77;
        T_EQ(firn_stamp17_parse(bad[i], strlen(bad[i]), &ms), FIRN_EFORMAT, "'%s'", bad[i]);
        T_EQ(ms, 77);
    }
    int64_t ms;
    T_EQ(firn_stamp17_parse(NULL, 17, &ms), FIRN_EINVAL);
    T_EQ(firn_stamp17_parse("20210101000000000", 17, NULL), FIRN_EINVAL);
}
