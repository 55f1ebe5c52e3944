#include "t.h"

#include "firn/ticket.h"

T_TEST(ticket_round_trip)
{
    static const struct {
        uint64_t number;
        const char *text;
    } good[] = { { 1, "1" },
                 { 9, "9" },
                 { 10, "10" },
                 { 1234567890, "1234567890" },
                 { UINT64_C(999999999999999999), "999999999999999999" },
                 { UINT64_C(1000000000000000000), "1000000000000000000" },
                 { FIRN_TICKET_MAX, "9223372036854775807" } };
    for (size_t i = 0; i < T_LEN(good); i++) {
        char text[FIRN_TICKET_TEXT_BUF];
        uint64_t number = 0;
        T_EQ(firn_ticket_format(good[i].number, text), strlen(good[i].text));
        T_STR(text, good[i].text);
        T_EQ(firn_ticket_parse(text, strlen(text), &number), 0, "'%s'", text);
        T_EQ(number, good[i].number);
    }
    for (int i = 0; i < 10000; i++) {
        char text[FIRN_TICKET_TEXT_BUF];
        uint64_t number = (t_random() >> 1 >> t_random_below(63)) | 1, back = 0;
        size_t len = firn_ticket_format(number, text);
        T_EQ(firn_ticket_parse(text, len, &back), 0, "'%s'", text);
        T_EQ(back, number);
    }
}

T_TEST(ticket_parse_refuses)
{
    static const struct {
        const char *text;
        int error;
    } bad[] = { { "", FIRN_EFORMAT },
                { "01", FIRN_EFORMAT },
                { "00", FIRN_EFORMAT },
                { "+1", FIRN_EFORMAT },
                { "-1", FIRN_EFORMAT },
                { " 1", FIRN_EFORMAT },
                { "1 ", FIRN_EFORMAT },
                { "1\n", FIRN_EFORMAT },
                { "0x1", FIRN_EFORMAT },
                { "1e3", FIRN_EFORMAT },
                { "1.0", FIRN_EFORMAT },
                { "1/", FIRN_EFORMAT },
                { "1:", FIRN_EFORMAT },
                { "1\xb2", FIRN_EFORMAT },
                { "99999999999999999999999999999999x", FIRN_EFORMAT },
                { "0", FIRN_ERANGE },
                { "9223372036854775808", FIRN_ERANGE },
                { "9999999999999999999", FIRN_ERANGE },
                { "18446744073709551617", FIRN_ERANGE }, /* 2^64 + 1 is not 1 */
                { "99999999999999999999999999999999", FIRN_ERANGE } };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        uint64_t number = 77;
        T_EQ(firn_ticket_parse(bad[i].text, strlen(bad[i].text), &number), bad[i].error, "'%s'",
             bad[i].text);
        T_EQ(number, 77);
    }
    uint64_t number;
    T_EQ(firn_ticket_parse("1\0", 2, &number), FIRN_EFORMAT);
    T_EQ(firn_ticket_parse(NULL, 1, &number), FIRN_EINVAL);
    T_EQ(firn_ticket_parse("1", 1, NULL), FIRN_EINVAL);
}

T_TEST(ticket_format_refuses)
{
    char text[FIRN_TICKET_TEXT_BUF] = "x";
    T_EQ(firn_ticket_format(0, text), 0);
    T_STR(text, "");
    T_EQ(firn_ticket_format(FIRN_TICKET_MAX + 1, text), 0);
    T_STR(text, "");
}

T_TEST(ticket_masters)
{
    T_EQ(firn_ticket_check(1, 1, 2), 0); /* two masters: odd and even */
    T_EQ(firn_ticket_check(2, 2, 2), 0);
    T_EQ(firn_ticket_check(2, 1, 2), FIRN_ERANGE);
    T_EQ(firn_ticket_check(1, 2, 2), FIRN_ERANGE);
    T_EQ(firn_ticket_check(4, 0, 2), 0);
    T_EQ(firn_ticket_check(23, 3, 10), 0);
    T_EQ(firn_ticket_check(24, 3, 10), FIRN_ERANGE);
    T_EQ(firn_ticket_check(5, 1, 1), 0); /* one master has all */
    T_EQ(firn_ticket_check(FIRN_TICKET_MAX, 7, 10), 0);
    T_EQ(firn_ticket_check(0, 0, 2), FIRN_EINVAL);
    T_EQ(firn_ticket_check(FIRN_TICKET_MAX + 1, 0, 2), FIRN_EINVAL);
    T_EQ(firn_ticket_check(1, 0, 0), FIRN_EINVAL);
    T_EQ(firn_ticket_check(1, 3, 2), FIRN_EINVAL);

    for (uint64_t n = 1; n < 200; n++) { /* each number is exactly one master's */
        int owners = 0;
        for (uint64_t offset = 1; offset <= 7; offset++)
            owners += firn_ticket_check(n, offset, 7) == 0;
        T_EQ(owners, 1);
    }
}
