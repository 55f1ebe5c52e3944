#include "t.h"

#include "firn/xid.h"

#include <stdlib.h>

/* A copy that ends where its memory ends: AddressSanitizer sees a read past it. */
static int parse(const char *s, size_t len, struct firn_xid *out)
{
    char *p = malloc(len ? len : 1);
    T_OK(p != NULL);
    memcpy(p, s, len);
    int r = firn_xid_parse(p, len, out);
    free(p);
    return r;
}

T_TEST(xid_refuses)
{
    static const char *const bad[] = {
        "",
        "invalid",
        "c6e52g2mrqcjl44hf179", /* bits behind the last byte, as in the reference's test */
        "9M4E2MR0UI3E8A215N4G", /* upper case */
        "9m4e2mr0ui3e8a215n4w",
        "TYjhW2D0huQoQS",
        "TYjhW2D0huQoQS3kdk",
    };
    struct firn_xid id;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(parse(bad[i], strlen(bad[i]), &id), FIRN_EFORMAT, "'%s'", bad[i]);
}

T_TEST(xid_next_fills_fields)
{
    static const uint8_t machine[3] = { 0x60, 0xf4, 0x86 };
    struct firn_xid_gen g;
    struct firn_xid id;
    char text[FIRN_XID_TEXT_BUF];
    firn_xid_gen_init(&g, machine, 0xe428, 4271561);
    T_EQ(firn_xid_next(&g, 1300816219999, &id), 0);
    firn_xid_format(&id, text);
    T_STR(text, "9m4e2mr0ui3e8a215n4g"); /* the reference's example, made again */
    T_EQ(firn_xid_next(&g, 1300816219999, &id), 0);
    T_EQ(firn_xid_unix_ms(&id), 1300816219000);
    T_OK(memcmp(firn_xid_machine(&id), machine, 3) == 0);
    T_EQ(firn_xid_pid(&id), 0xe428);
    T_EQ(firn_xid_counter(&id), 4271562);
}

T_TEST(xid_counter_wraps_and_runs_out)
{
    struct firn_xid_gen g;
    struct firn_xid id;
    firn_xid_gen_init(&g, (const uint8_t[3]){ 1, 2, 3 }, 4, 0xaaffffff); /* the low 24 bits count */
    T_EQ(firn_xid_next(&g, 1000, &id), 0);
    T_EQ(firn_xid_counter(&id), FIRN_XID_COUNTER_MAX);
    T_EQ(firn_xid_pid(&id), 4);
    for (uint32_t i = 0; i < FIRN_XID_COUNTER_MAX; i++) {
        if (firn_xid_next(&g, 1000 + i % 1000, &id) != 0 || firn_xid_counter(&id) != i)
            T_OK(0, "counter %u is %u", i, firn_xid_counter(&id));
    }
    struct firn_xid last = id;
    T_EQ(firn_xid_next(&g, 1999, &id), FIRN_EAGAIN); /* one more would be the first again */
    T_EQ(firn_xid_next(&g, 0, &id), FIRN_EAGAIN);
    T_EQ(firn_xid_cmp(&id, &last), 0);
    T_EQ(firn_xid_next(&g, 2000, &id), 0);
    T_EQ(firn_xid_counter(&id), FIRN_XID_COUNTER_MAX);
}

T_TEST(xid_keeps_the_second_when_the_clock_steps_back)
{
    struct firn_xid_gen g;
    struct firn_xid a, b;
    firn_xid_gen_init(&g, (const uint8_t[3]){ 1, 2, 3 }, 4, 5);
    T_EQ(firn_xid_next(&g, 10000, &a), 0);
    T_EQ(firn_xid_next(&g, 3000, &b), 0);
    T_EQ(firn_xid_unix_ms(&b), 10000);
    T_OK(firn_xid_cmp(&a, &b) < 0);
}

T_TEST(xid_truncated)
{
    static const char whole[] = "9m4e2mr0ui3e8a215n4g9m4e2mr0ui3e8a215n4g";
    struct firn_xid id;
    for (size_t len = 0; len < sizeof whole; len++)
        T_EQ(parse(whole, len, &id), len == FIRN_XID_TEXT_LEN ? 0 : FIRN_EFORMAT, "length %zu",
             len);
}

/* Every byte at every place. */
T_TEST(xid_every_byte)
{
    for (size_t at = 0; at < FIRN_XID_TEXT_LEN; at++)
        for (int c = 1; c < 256; c++) {
            char text[] = "00000000000000000000";
            struct firn_xid id;
            text[at] = (char)c;
            int r = parse(text, FIRN_XID_TEXT_LEN, &id);
            if (!strchr("0123456789abcdefghijklmnopqrstuv", c))
                T_EQ(r, FIRN_EFORMAT, "byte %d at %zu", c, at);
            else
                T_EQ(r, at < 19 || c == '0' || c == 'g' ? 0 : FIRN_EFORMAT, "byte %d at %zu", c,
                     at);
        }
    struct firn_xid id;
    T_EQ(firn_xid_parse("00000000000000000000\0", FIRN_XID_TEXT_LEN + 1, &id), FIRN_EFORMAT);
    char nul[] = "00000000000000000000";
    nul[3] = '\0';
    T_EQ(parse(nul, FIRN_XID_TEXT_LEN, &id), FIRN_EFORMAT);
}

T_TEST(xid_mistakes)
{
    struct firn_xid id;
    T_EQ(firn_xid_parse(NULL, FIRN_XID_TEXT_LEN, &id), FIRN_EINVAL);
    T_EQ(firn_xid_parse("9m4e2mr0ui3e8a215n4g", FIRN_XID_TEXT_LEN, NULL), FIRN_EINVAL);
    struct firn_xid_gen g;
    firn_xid_gen_init(&g, (const uint8_t[3]){ 1, 2, 3 }, 4, 5);
    T_EQ(firn_xid_next(NULL, 0, &id), FIRN_EINVAL);
    T_EQ(firn_xid_next(&g, 0, NULL), FIRN_EINVAL);
    T_EQ(firn_xid_next(&g, ((uint64_t)UINT32_MAX + 1) * 1000, &id), FIRN_ERANGE);
    T_EQ(firn_xid_next(&g, UINT64_MAX, &id), FIRN_ERANGE);
}

T_TEST(xid_error_leaves_output)
{
    struct firn_xid id, before;
    memset(&id, 0x5a, sizeof id);
    before = id;
    T_EQ(parse("9M4E2MR0UI3E8A215N4G", FIRN_XID_TEXT_LEN, &id), FIRN_EFORMAT);
    T_EQ(firn_xid_cmp(&id, &before), 0);
}
