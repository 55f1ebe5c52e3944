/* The bytes that etcd gets, and what its answers mean; the answers are those of etcd 3.4.23. */
#include "t.h"

#include "store/etcd_json.h"

#include <stdio.h>
#include <stdlib.h>

#define HEADER                                                                          \
    "\"header\":{\"cluster_id\":\"324952591200643719\",\"member_id\":\"331981464276\"," \
    "\"revision\":\"5\",\"raft_term\":\"2\"}"
#define KV(key_, value_) "{\"key\":\"" key_ "\",\"version\":\"1\",\"value\":\"" value_ "\"}"

static struct firn_slice text(const char *p)
{
    return (struct firn_slice){ p, p ? strlen(p) : 0 };
}

static struct etcd_text out;

static const char *said(bool good)
{
    T_OK(good);
    char *end = buf_room(&out.out, 1);
    T_OK(end);
    *end = '\0';
    return out.out.p;
}

T_TEST(cas_bytes)
{
    const struct firn_slice root = text("/firn/");
    struct firn_cas replace = { text("a"), text("one"), text("two") };
    T_STR(said(etcd_encode_cas(&out, root, &replace)),
          "{\"compare\":[{\"key\":\"L2Zpcm4vYQ==\",\"target\":\"VALUE\",\"result\":\"EQUAL\","
          "\"value\":\"b25l\"}],\"success\":[{\"request_put\":{\"key\":\"L2Zpcm4vYQ==\","
          "\"value\":\"dHdv\"}}]}");
    T_EQ(out.compares, 1);
    struct firn_cas create = { text("a"), text(NULL), text("two") };
    T_STR(said(etcd_encode_cas(&out, root, &create)),
          "{\"compare\":[{\"key\":\"L2Zpcm4vYQ==\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
          "\"create_revision\":\"0\"}],\"success\":[{\"request_put\":{\"key\":\"L2Zpcm4vYQ==\","
          "\"value\":\"dHdv\"}}]}");
    T_EQ(out.compares, 1);
    struct firn_cas remove = { text("a"), text("one"), text(NULL) };
    T_STR(
        said(etcd_encode_cas(&out, root, &remove)),
        "{\"compare\":[{\"key\":\"L2Zpcm4vYQ==\",\"target\":\"VALUE\",\"result\":\"EQUAL\","
        "\"value\":\"b25l\"}],\"success\":[{\"request_delete_range\":{\"key\":\"L2Zpcm4vYQ==\"}}]}");
    T_EQ(out.compares, 1);
    struct firn_cas empty = { text(""), text(""), text("") }; /* present, and empty */
    T_STR(
        said(etcd_encode_cas(&out, root, &empty)),
        "{\"compare\":[{\"key\":\"L2Zpcm4v\",\"target\":\"VALUE\",\"result\":\"EQUAL\","
        "\"value\":\"\"}],\"success\":[{\"request_put\":{\"key\":\"L2Zpcm4v\",\"value\":\"\"}}]}");
    struct firn_cas bytes = { text("\xff/"), firn_slice("\0\n\"", 3),
                              firn_slice("\xfb\xef\xbe\xff", 4) };
    T_STR(said(etcd_encode_cas(&out, text("/"), &bytes)),
          "{\"compare\":[{\"key\":\"L/8v\",\"target\":\"VALUE\",\"result\":\"EQUAL\","
          "\"value\":\"AAoi\"}],\"success\":[{\"request_put\":{\"key\":\"L/8v\","
          "\"value\":\"++++/w==\"}}]}");
}

T_TEST(cas_many_bytes)
{
    struct firn_cas want[] = { { text("a"), text(NULL), text("1") },
                               { text("b"), text("2"), text(NULL) } };
    T_STR(
        said(etcd_encode_cas_many(&out, text("/"), want, 2)),
        "{\"success\":["
        "{\"request_txn\":{\"compare\":[{\"key\":\"L2E=\",\"target\":\"CREATE\",\"result\":\"EQUAL\","
        "\"create_revision\":\"0\"}],\"success\":[{\"request_put\":{\"key\":\"L2E=\","
        "\"value\":\"MQ==\"}}]}},"
        "{\"request_txn\":{\"compare\":[{\"key\":\"L2I=\",\"target\":\"VALUE\",\"result\":\"EQUAL\","
        "\"value\":\"Mg==\"}],\"success\":[{\"request_delete_range\":{\"key\":\"L2I=\"}}]}}]}");
    T_EQ(out.compares, 2);
}

T_TEST(other_bytes)
{
    const struct firn_slice root = text("/firn/"), none = text(NULL);
    T_STR(said(etcd_encode_read(&out, root, text("a"), true)), "{\"key\":\"L2Zpcm4vYQ==\"}");
    T_STR(said(etcd_encode_read(&out, root, text("a"), false)),
          "{\"key\":\"L2Zpcm4vYQ==\",\"serializable\":true}");
    /* "/firn/slot/" up to "/firn/slot0" */
    T_STR(said(etcd_encode_scan(&out, root, text("slot/"), none, 7)),
          "{\"key\":\"L2Zpcm4vc2xvdC8=\",\"range_end\":\"L2Zpcm4vc2xvdDA=\",\"limit\":\"7\"}");
    /* after "/firn/slot/9" */
    T_STR(said(etcd_encode_scan(&out, root, text("slot/"), text("slot/9"), 7)),
          "{\"key\":\"L2Zpcm4vc2xvdC85AA==\",\"range_end\":\"L2Zpcm4vc2xvdDA=\",\"limit\":\"7\"}");
    /* the highest byte has no next one: "/firn/\xff\xff" ends at "/firn0" */
    T_STR(said(etcd_encode_scan(&out, root, text("\xff\xff"), none, 7)),
          "{\"key\":\"L2Zpcm4v//8=\",\"range_end\":\"L2Zpcm4w\",\"limit\":\"7\"}");
    T_STR(
        said(etcd_encode_watch(&out, root, text("a"), 18446744073709551615u)),
        "{\"create_request\":{\"key\":\"L2Zpcm4vYQ==\",\"start_revision\":\"18446744073709551615\"}}");
    T_STR(said(etcd_encode_status(&out)), "{}");
    T_STR(said(etcd_encode_login(&out, "a\"b", "p\\w\n\xc3\xa9")),
          "{\"name\":\"a\\\"b\",\"password\":\"p\\\\w\\u000a\xc3\xa9\"}");
    T_OK(!etcd_encode_login(&out, "a", "\xff"), "not UTF-8");
    etcd_text_done(&out);
    etcd_text_done(&out);
}

/* The longest request there is. */
T_TEST(a_full_transaction)
{
    static char key[ETCD_MANY_MAX][STORE_KEY_MAX], value[STORE_VALUE_MAX], root[ETCD_ROOT_MAX];
    static struct firn_cas want[ETCD_MANY_MAX];
    memset(root, '/', sizeof root);
    t_random_bytes(value, sizeof value);
    for (size_t i = 0; i < ETCD_MANY_MAX; i++) {
        memset(key[i], (int)i, sizeof key[i]);
        want[i] = (struct firn_cas){ firn_slice(key[i], sizeof key[i]),
                                     firn_slice(value, sizeof value),
                                     firn_slice(value, sizeof value) };
    }
    T_OK(etcd_encode_cas_many(&out, firn_slice(root, sizeof root), want, ETCD_MANY_MAX));
    T_EQ(out.compares, ETCD_MANY_MAX);
    T_OK(out.out.len < 1024 * 1024, "far below the 1.5 MB that etcd takes: %zu", out.out.len);
    etcd_text_done(&out);
}

/* ---- answers ---- */

T_TEST(cas_answers)
{
    static const struct {
        const char *body;
        bool remove;
        int result;
    } c[] = {
        { "{" HEADER
          ",\"succeeded\":true,\"responses\":[{\"response_put\":{\"header\":{\"revision\":\"5\"}}}]}",
          false, 0 },
        { "{" HEADER "}", false, FIRN_ECONFLICT },
        { "{" HEADER ",\"succeeded\":false}", false, FIRN_ECONFLICT },
        { "{" HEADER ",\"succeeded\":false,\"responses\":[]}", true, FIRN_ECONFLICT },
        { "{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_delete_range\":{\"header\":{},"
          "\"deleted\":\"1\"}}]}",
          true, 0 },
        { "{" HEADER
          ",\"succeeded\":true,\"responses\":[{\"response_delete_range\":{\"header\":{}}}]}",
          true, FIRN_EFORMAT },
        { "{" HEADER ",\"succeeded\":true,\"responses\":[{\"response_put\":{}}]}", true,
          FIRN_EFORMAT },
        { "{" HEADER
          ",\"succeeded\":true,\"responses\":[{\"response_put\":{}},{\"response_put\":{}}]}",
          false, FIRN_EFORMAT },
        { "{" HEADER ",\"succeeded\":true,\"responses\":[]}", false, FIRN_EFORMAT },
        { "{" HEADER ",\"succeeded\":true}", false, FIRN_EFORMAT },
        { "{" HEADER ",\"succeeded\":\"true\",\"responses\":[{\"response_put\":{}}]}", false,
          FIRN_EFORMAT },
        { "{" HEADER ",\"succeeded\":1,\"responses\":[{\"response_put\":{}}]}", false,
          FIRN_EFORMAT },
        { "{" HEADER ",\"responses\":[{\"response_put\":{}}]}", false, FIRN_EFORMAT },
        { "{" HEADER ",\"responses\":{}}", false, FIRN_EFORMAT },
        { "{" HEADER ",\"succeeded\":true,\"succeeded\":false}", false, FIRN_EFORMAT },
        { "{}", false, FIRN_EFORMAT },
        { "", false, FIRN_EFORMAT },
        { "[]", false, FIRN_EFORMAT },
        { "null", false, FIRN_EFORMAT },
        { "{" HEADER "} {" HEADER "}", false, FIRN_EFORMAT },
        { "{" HEADER, false, FIRN_EFORMAT },
        { "{\"header\":{\"cluster_id\":\"1\"}}", false, FIRN_EFORMAT },
        { "{\"header\":{\"revision\":\"1\"}}", false, FIRN_EFORMAT },
        { "{\"header\":{\"cluster_id\":\"1\",\"revision\":5}}", false, FIRN_EFORMAT },
        { "{\"header\":{\"cluster_id\":\"1\",\"revision\":\"-5\"}}", false, FIRN_EFORMAT },
        { "{\"header\":{\"cluster_id\":\"1\",\"revision\":\"5.0\"}}", false, FIRN_EFORMAT },
        { "{\"header\":{\"cluster_id\":\"1\",\"revision\":\"\"}}", false, FIRN_EFORMAT },
        { "{\"header\":{\"cluster_id\":\"1\",\"revision\":\"18446744073709551616\"}}", false,
          FIRN_EFORMAT },
        { "<html>502 Bad Gateway</html>", false, FIRN_EFORMAT },
    };
    for (size_t i = 0; i < T_LEN(c); i++) {
        struct etcd_head head = { 7, 7 };
        T_EQ(etcd_decode_cas(text(c[i].body), c[i].remove, &head), c[i].result, "%s", c[i].body);
        bool good = c[i].result != FIRN_EFORMAT;
        T_EQ(head.cluster, good ? 324952591200643719 : 7, "%s", c[i].body);
        T_EQ(head.revision, good ? 5 : 7, "%s", c[i].body);
    }
}

T_TEST(cas_many_answers)
{
    struct firn_cas want[] = { { text("a"), text(NULL), text("1") },
                               { text("b"), text("2"), text(NULL) } };
    struct etcd_head head;
    int result[2] = { 1, 1 };
#define PUT \
    "{\"response_txn\":{\"header\":{},\"succeeded\":true,\"responses\":[{\"response_put\":{}}]}}"
#define REMOVE \
    "{\"response_txn\":{\"header\":{},\"succeeded\":true,\"responses\":[{\"response_delete_range\":{\"deleted\":\"1\"}}]}}"
#define LOST       "{\"response_txn\":{\"header\":{}}}"
#define MANY(list) "{" HEADER ",\"succeeded\":true,\"responses\":[" list "]}"
    T_EQ(etcd_decode_cas_many(text(MANY(PUT "," LOST)), want, 2, result, &head), 0);
    T_EQ(result[0], 0);
    T_EQ(result[1], FIRN_ECONFLICT);
    T_EQ(etcd_decode_cas_many(text(MANY(LOST "," REMOVE)), want, 2, result, &head), 0);
    T_EQ(result[0], FIRN_ECONFLICT);
    T_EQ(result[1], 0);
    T_EQ(head.revision, 5);
    static const char *const bad[] = {
        MANY(PUT),
        MANY(PUT "," PUT),
        MANY(REMOVE "," REMOVE),
        MANY(PUT "," LOST "," LOST),
        MANY(PUT ",{}"),
        MANY(PUT ",null"),
        "{" HEADER "}",
        MANY(""),
        "{\"succeeded\":true,\"responses\":[" PUT "," LOST "]}",
        "{" HEADER ",\"responses\":[" PUT "," LOST "]}",
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        result[0] = result[1] = 1;
        T_EQ(etcd_decode_cas_many(text(bad[i]), want, 2, result, &head), FIRN_EFORMAT, "%s",
             bad[i]);
        T_OK(result[0] == 1 && result[1] == 1, "%s", bad[i]);
    }
}

struct heard {
    char text[200];
    int answer; /* of the second call */
    int calls;
};

static int hear(void *user, struct firn_slice key, struct firn_slice value)
{
    struct heard *h = user;
    size_t n = strlen(h->text);
    snprintf(h->text + n, sizeof h->text - n, "%.*s=%.*s ", (int)key.len, key.p, (int)value.len,
             value.p);
    return ++h->calls == 2 ? h->answer : 0;
}

static int hear_all(const char *body, struct heard *h, struct etcd_range *range)
{
    *h = (struct heard){ .answer = h->answer };
    *range = (struct etcd_range){ .root = text("/"), .prefix = text("s"), .each = hear, .user = h };
    return etcd_decode_range(text(body), range);
}

T_TEST(range_answers)
{
    struct heard h = { .calls = 0 };
    struct etcd_range range;
    T_EQ(hear_all("{" HEADER "}", &h, &range), 0);
    T_STR(h.text, "");
    T_EQ(range.head.revision, 5);
    /* "/s", "/s1" with an empty value, "/s2" */
    T_EQ(hear_all("{" HEADER ",\"kvs\":[" KV("L3M=", "YQ==") ",{\"key\":\"L3Mx\"}," KV(
                      "L3My", "Yg==") "],\"more\":true,\"count\":\"9\"}",
                  &h, &range),
         0);
    T_STR(h.text, "s=a s1= s2=b ");
    T_OK(range.more && range.last_len == 2 && memcmp(range.last, "s2", 2) == 0);
    /* the next page goes on from there, or not at all */
    T_EQ(etcd_decode_range(text("{" HEADER ",\"kvs\":[" KV("L3My", "Yg==") "]}"), &range),
         FIRN_EFORMAT);
    T_EQ(etcd_decode_range(text("{" HEADER ",\"kvs\":[" KV("L3Mz", "Yw==") "]}"), &range), 0);
    T_OK(!range.more && range.count == 4);

    h.answer = FIRN_EAGAIN;
    T_EQ(hear_all("{" HEADER
                  ",\"kvs\":[" KV("L3M=", "YQ==") "," KV("L3Mx", "") "," KV("L3My", "") "]}",
                  &h, &range),
         FIRN_EAGAIN);
    T_OK(h.calls == 2 && range.stopped);

    /* another cluster's registers are not handed on */
    range = (struct etcd_range){ .cluster = 7, .root = text("/"), .each = hear, .user = &h };
    h.calls = 0;
    T_EQ(etcd_decode_range(text("{" HEADER ",\"kvs\":[" KV("L3M=", "YQ==") "]}"), &range),
         FIRN_ESTORE);
    T_OK(h.calls == 0 && !range.stopped);

    static const char *const bad[] = {
        "{}",
        "{\"kvs\":[]}",
        "{" HEADER ",\"kvs\":{}}",
        "{" HEADER ",\"kvs\":[null]}",
        "{" HEADER ",\"kvs\":[{}]}",
        "{" HEADER ",\"more\":true}",
        "{" HEADER ",\"more\":\"no\"}",
        "{" HEADER ",\"kvs\":[" KV("L3Q=", "YQ==") "]}", /* "/t" */
        "{" HEADER ",\"kvs\":[" KV("cw==", "YQ==") "]}", /* "s" */
        "{" HEADER ",\"kvs\":[" KV("L3Mx", "") "," KV("L3M=", "") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M=", "") "," KV("L3M=", "") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M", "YQ==") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M=", "YQ=") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M=", "YR==") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M=", "Y===") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M=", "Y=Q=") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M=", "YQ==YQ==") "]}",
        "{" HEADER ",\"kvs\":[" KV("L3M=", "Y-_=") "]}",
        "{" HEADER ",\"kvs\":[{\"key\":\"L3M=\",\"value\":7}]}",
    };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(hear_all(bad[i], &h, &range), FIRN_EFORMAT, "%s", bad[i]);
}

static int expect(void *user, struct firn_slice key, struct firn_slice value)
{
    struct firn_slice *want = user;
    (void)key;
    T_EQ(value.len, want->len);
    T_OK(memcmp(value.p, want->p, want->len) == 0);
    return 0;
}

/* Whatever bytes a register has, they come back; one more than fits does not. */
T_TEST(range_carries_all_bytes)
{
    static char value[STORE_VALUE_MAX + 1], body[4096];
    for (size_t round = 0; round < t_scale(500); round++) {
        struct firn_slice old = { value, t_random_below(sizeof value + 1) };
        t_random_bytes(value, old.len);
        struct firn_cas want = { text("k"), old, text(NULL) };
        const char *p = strstr(said(etcd_encode_cas(&out, text("/"), &want)), "\"value\":");
        T_OK(p);
        snprintf(body, sizeof body, "{" HEADER ",\"kvs\":[{\"key\":\"L2s=\",%.*s}]}",
                 (int)(strchr(p, '}') - p), p);
        struct etcd_range range = { .root = text("/"), .each = expect, .user = &old };
        bool fits = old.len <= STORE_VALUE_MAX;
        T_EQ(etcd_decode_range(text(body), &range), fits ? 0 : FIRN_EFORMAT);
        T_EQ(range.count, fits);
    }
    etcd_text_done(&out);
}

T_TEST(login_answers)
{
    char token[ETCD_TOKEN_BUF] = "old", body[ETCD_TOKEN_BUF + 100], longest[ETCD_TOKEN_BUF + 1];
    T_EQ(etcd_decode_login(text("{" HEADER ",\"token\":\"aBc.12\"}"), token), 0);
    T_STR(token, "aBc.12");
    static const char *const bad[] = { "{}",
                                       "{\"token\":\"\"}",
                                       "{\"token\":7}",
                                       "",
                                       "{\"token\":\"a\\r\\nX: y\"}",
                                       "{\"token\":\"a b\"}" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(etcd_decode_login(text(bad[i]), token), FIRN_EFORMAT, "%s", bad[i]);
    T_STR(token, "aBc.12");
    for (size_t len = ETCD_TOKEN_BUF - 1; len <= ETCD_TOKEN_BUF; len++) {
        memset(longest, 'x', len);
        longest[len] = '\0';
        snprintf(body, sizeof body, "{\"token\":\"%s\"}", longest);
        T_EQ(etcd_decode_login(text(body), token), len < ETCD_TOKEN_BUF ? 0 : FIRN_EFORMAT);
    }
}

T_TEST(status_answers)
{
    unsigned v[3];
    T_EQ(etcd_decode_status(text("{" HEADER ",\"version\":\"3.4.23\"}"), v), 0);
    T_OK(v[0] == 3 && v[1] == 4 && v[2] == 23);
    T_EQ(etcd_decode_status(text("{\"version\":\"3.6.0-rc.1\"}"), v), 0);
    T_OK(v[0] == 3 && v[1] == 6 && v[2] == 0);
    static const char *const bad[] = { "{}",
                                       "{\"version\":\"\"}",
                                       "{\"version\":\"3.4\"}",
                                       "{\"version\":\"3..4\"}",
                                       "{\"version\":3}",
                                       "3.4.23" };
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_EQ(etcd_decode_status(text(bad[i]), v), FIRN_EFORMAT, "%s", bad[i]);
}

T_TEST(error_answers)
{
    char message[20];
    T_EQ(etcd_decode_error(
             text("{\"error\":\"x\",\"message\":\"etcdserver:\\nno leader\",\"code\":14}"), message,
             sizeof message),
         14);
    T_STR(message, "etcdserver: no lead");
    T_EQ(etcd_decode_error(text("Not Found\n"), message, sizeof message), 0);
    T_STR(message, "");
    T_EQ(etcd_decode_error(text("{\"code\":99999999999}"), message, sizeof message), 0);
    T_EQ(etcd_decode_error(text("{\"code\":\"16\"}"), message, sizeof message), 0);
}
