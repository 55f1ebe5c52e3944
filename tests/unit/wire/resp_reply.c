/* Replies of the Redis protocol, value by value: every type, every split point, what is refused. */
#include "wire/resp_reply.h"
#include "t.h"

#include <stdlib.h>

T_TEST(values)
{
    static const struct {
        const char *in;
        enum resp_type type;
        const char *text; /* NULL: absent */
        uint64_t members;
    } rows[] = {
        { ":42\r\n", RESP_NUMBER, "42", 0 },
        { ":-1\r\n", RESP_NUMBER, "-1", 0 },
        { "+OK\r\n", RESP_SIMPLE, "OK", 0 },
        { "_\r\n", RESP_SIMPLE, "", 0 },
        { "-ERR no\r\n", RESP_FAILURE, "ERR no", 0 },
        { "!6\r\nERR no\r\n", RESP_FAILURE, "ERR no", 0 },
        { "$3\r\na\nb\r\n", RESP_TEXT, "a\nb", 0 },
        { "$0\r\n\r\n", RESP_TEXT, "", 0 },
        { "=7\r\ntxt:abc\r\n", RESP_TEXT, "txt:abc", 0 },
        { "$-1\r\n", RESP_NULL, NULL, 0 },
        { "*2\r\n", RESP_CONTAINER, NULL, 2 },
        { "*-1\r\n", RESP_CONTAINER, NULL, 0 },
        { "%2\r\n", RESP_CONTAINER, NULL, 4 },
        { "~1\r\n", RESP_CONTAINER, NULL, 1 },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct resp_value v;
        size_t len = strlen(rows[i].in);
        for (size_t cut = 0; cut < len; cut++) {
            char *exact = malloc(cut ? cut : 1);
            memcpy(exact, rows[i].in, cut);
            T_EQ(resp_reply(exact, cut, &v), FIRN_EAGAIN, "row %zu cut at %zu", i, cut);
            free(exact);
        }
        T_EQ(resp_reply(rows[i].in, len, &v), len, "row %zu", i);
        T_EQ(v.type, rows[i].type, "row %zu", i);
        T_EQ(v.members, rows[i].members, "row %zu", i);
        T_OK(rows[i].text ? slice_is(v.text, rows[i].text) : !v.text.p, "row %zu", i);
    }
}

T_TEST(refused)
{
    static const char *const bad[] = { "x\r\n",
                                       "\r\n",
                                       ":1\n",
                                       "$x\r\n",
                                       "$-2\r\n",
                                       "$01\r\na\r\n",
                                       "$1\r\nabc",
                                       "*16777217\r\n",
                                       "$\r\n\r\n",
                                       "*99999999\r\n",
                                       "$99999999999\r\n",
                                       "HTTP/1.1 4\r\n" };
    static char endless[RESP_REPLY_LINE_MAX + 2];
    struct resp_value v;
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(resp_reply(bad[i], strlen(bad[i]), &v), FIRN_EFORMAT, "%s", bad[i]);
    memset(endless, '+', sizeof endless);
    T_EQ(resp_reply(endless, sizeof endless, &v), FIRN_EFORMAT);
}
