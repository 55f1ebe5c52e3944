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
