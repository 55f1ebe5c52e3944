/* What firn_client_submit(), mint() and open_with() refuse before they ask any server. */
#include "t.h"

#include "firn/client.h"
#include "id/gen_setup.h"

#include <stddef.h>
#include <stdio.h>

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

T_TEST(asks_that_mean_nothing)
{
    struct firn_client *c = NULL;
    struct firn_diag d = { 0, "" };
    uint64_t ids[2];
    char text[FIRN_CLIENT_TEXT_BUF];
    T_EQ(firn_client_open("firn://127.0.0.1:1/?retries=0&timeout=1s", &c, &d), 0, "%s", d.text);
    struct firn_client_ask ask = { .shard = 3 };
    T_EQ(firn_client_mint(c, &ask, ids, 1, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "FIRN_CLIENT_ASK_INIT"), "%s", d.text);
    T_EQ(firn_client_mint_text(c, &ask, text, sizeof text, &d), FIRN_EINVAL);
    ask = (struct firn_client_ask)FIRN_CLIENT_ASK_INIT;
    ask.key = "k";
    T_EQ(firn_client_mint(c, &ask, ids, 2, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "one ID"), "%s", d.text);
    ask.key = NULL;
    ask.text = 1;
    T_EQ(firn_client_mint(c, &ask, ids, 1, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "firn_client_mint_text"), "%s", d.text);
    T_EQ(firn_client_mint(c, NULL, ids, 1, &d), FIRN_EINVAL);
    ask.text = 0;
    T_EQ(firn_client_mint(c, &ask, ids, 1, &d), FIRN_EIO, "now the server is asked: %s", d.text);
    ask.size = SIZE_UP_TO(struct firn_client_ask, traceparent); /* before there were shards */
    ask.shard = 99;
    T_EQ(firn_client_mint(c, &ask, ids, 1, &d), FIRN_EIO, "%s", d.text);
    firn_client_close(c);

    static const char *const others[] = { "seq=orders", "kind=sonyflake",
                                          "kind=sonyflake&mode=prefetch" };
    for (size_t i = 0; i < T_LEN(others); i++) {
        char url[100];
        snprintf(url, sizeof url, "firn://127.0.0.1:1/?%s", others[i]);
        T_EQ(firn_client_open(url, &c, &d), 0, "%s", d.text);
        ask = (struct firn_client_ask)FIRN_CLIENT_ASK_INIT;
        ask.shard = 1;
        T_EQ(firn_client_mint(c, &ask, ids, 1, &d), FIRN_EINVAL, "%s", url);
        T_OK(strstr(d.text, "kind=snowflake"), "%s", d.text);
        T_EQ(firn_client_submit(c, &ask, &d), FIRN_EINVAL, "%s", url);
        firn_client_close(c);
    }
}

static void nothing(void *user, const struct firn_client_attempt *a)
{
    (void)user;
    (void)a;
}

T_TEST(options_of_another_size)
{
    struct firn_client *c = NULL;
    struct firn_diag d = { 0, "" };
    struct {
        struct firn_client_opts opts;
        uint64_t more;
    } later = { .opts = { .size = sizeof later, .attempt_end = nothing }, .more = 1 };
    T_EQ(firn_client_open_with("firn://a", &later.opts, &c, &d), FIRN_ENOTSUP);
    T_OK(strstr(d.text, "newer"), "%s", d.text);
    later.opts.size = 0;
    T_EQ(firn_client_open_with("firn://a", &later.opts, &c, &d), FIRN_EINVAL);
    T_OK(strstr(d.text, "FIRN_CLIENT_OPTS_INIT"), "%s", d.text);
    later.opts.size = offsetof(struct firn_client_opts, attempt_end);
    T_EQ(firn_client_open_with("firn://a", &later.opts, &c, &d), FIRN_EINVAL);
    T_OK(c == NULL);
    later.opts.size = sizeof later;
    later.more = 0; /* a tail that asks for nothing */
    T_EQ(firn_client_open_with("firn://a", &later.opts, &c, &d), 0, "%s", d.text);
    firn_client_close(c);
    c = NULL;
    T_EQ(firn_client_open_with("firn://a", NULL, &c, &d), 0, "%s", d.text);
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
