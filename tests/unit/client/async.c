/* What firn_client_submit() refuses before it asks any server. */
#include "t.h"

#include "firn/client.h"

T_TEST(ask_without_a_size)
{
    struct firn_client *c = NULL;
    struct firn_diag d = { 0, "" };
    T_EQ(firn_client_open("firn://127.0.0.1:1", &c, &d), 0, "%s", d.text);
    struct firn_client_ask ask = { .key = "order-1" }; /* the key would be dropped */
    T_EQ(firn_client_submit(c, &ask, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "FIRN_CLIENT_ASK_INIT"), "%s", d.text);
    struct {
        struct firn_client_ask ask;
        uint64_t more;
    } later = { .ask = { .size = sizeof later }, .more = 1 };
    T_EQ(firn_client_submit(c, &later.ask, &d), FIRN_ENOTSUP);
    firn_client_close(c);
}

T_TEST(names_that_are_no_header_values)
{
    static const struct {
        const char *id, *trace;
    } bad[] = { { "a b", NULL },
                { "", NULL },
                { "a\r\nX-User-ID: 1", NULL },
                { NULL, "" },
                { NULL, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331" },
                { "ok", "00-00000000000000000000000000000000-b7ad6b7169203331-01" } };
    struct firn_client *c = NULL;
    struct firn_diag d = { 0, "" };
    T_EQ(firn_client_open("firn://127.0.0.1:1", &c, &d), 0, "%s", d.text);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        struct firn_client_ask ask = FIRN_CLIENT_ASK_INIT;
        ask.request_id = bad[i].id;
        ask.traceparent = bad[i].trace;
        T_EQ(firn_client_submit(c, &ask, &d), FIRN_EINVAL, "case %zu", i);
        T_OK(strstr(d.text, bad[i].trace ? "traceparent" : "request_id"), "%s", d.text);
    }
    firn_client_close(c);
}
