/* Secrets by their names: header fields, queries, JSON whole and cut off anywhere. */
#include "proxy/redact.h"
#include "t.h"

static const struct redact plain = { NULL };

static struct slice s(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static const char *done(struct buf *b)
{
    static char text[1024];
    T_OK(!b->failed && b->len < sizeof text);
    if (b->len)
        memcpy(text, b->p, b->len);
    text[b->len] = '\0';
    buf_done(b);
    return text;
}

static const char *query(const char *text)
{
    struct buf b;
    buf_init(&b, 4096);
    redact_query(&plain, s(text), &b);
    return done(&b);
}

static const char *json(const char *text)
{
    struct buf b;
    buf_init(&b, 4096);
    redact_json(&plain, s(text), &b);
    return done(&b);
}

T_TEST(fields)
{
    static const char *const secret[] = { "Authorization",
                                          "cookie",
                                          "Set-Cookie",
                                          "X-API-Key",
                                          "X-Auth-Token",
                                          "X_CSRF_TOKEN",
                                          "Proxy-Authorization",
                                          "X-Auth-Key",
                                          "X-Access-Key",
                                          "X-Jwt-Assertion",
                                          "Ocp-Apim-Subscription-Key",
                                          "X-XSRF" };
    static const char *const open[] = { "Accept",       "User-Agent",      "Content-Type",
                                        "X-Request-ID", "Idempotency-Key", "Host" };
    for (size_t i = 0; i < T_LEN(secret); i++)
        T_OK(redact_field(&plain, s(secret[i])), "%s", secret[i]);
    for (size_t i = 0; i < T_LEN(open); i++)
        T_OK(!redact_field(&plain, s(open[i])), "%s", open[i]);
    char *names[] = { (char[]){ "x-shop" } };
    const struct config_strings more = { names, 1 };
    const struct redact own = { &more };
    T_OK(redact_field(&own, s("X-Shop")) && redact_member(&own, s("x_shop")));
    T_OK(!redact_field(&plain, s("X-Shop")) && !redact_member(&plain, s("x_shop")));
}

T_TEST(queries)
{
    T_STR(query("a=1&token=x&b=2"), "a=1&token=[redacted]&b=2");
    T_STR(query("access_token=x&&Key=&password"),
          "access_token=[redacted]&&Key=[redacted]&password");
    T_STR(query(""), "");
    T_STR(query("keyed=1&monkey=2"), "keyed=1&monkey=2");
    T_STR(query("p%61ss%77ord=x&%6B%65y=y&p%61th=z&%=1&%6=2&%zz=3"),
          "p%61ss%77ord=[redacted]&%6B%65y=[redacted]&p%61th=z&%=1&%6=2&%zz=3");
    T_STR(query("a=b;password=x&c=d;e=f"), "a=b;password=[redacted]&c=d;e=f");
    T_STR(query("token=x;y?z#u&a=1"), "token=[redacted]&a=1");
    T_STR(query("to=http://a/?b=1?token=x"), "to=http://a/?b=1?token=[redacted]");
    T_STR(query("password?=x;y&p=1"), "password?=[redacted]&p=1");
    T_STR(query("to=/#token=x&to=1"), "to=/#token=[redacted]&to=1");
}

T_TEST(json_members)
{
    T_STR(json("{\"user\": \"u\", \"password\" : \"p\\\"q\", \"n\": 1}"),
          "{\"user\": \"u\", \"password\" : \"[redacted]\", \"n\": 1}");
    T_STR(json("{\"pin\":1234,\"list\":[\"password\",\"x\"]}"),
          "{\"pin\":\"[redacted]\",\"list\":[\"password\",\"x\"]}");
    T_STR(json("{\"token\":{\"id\":\"a\",\"secret\":\"b\"}}"), "{\"token\":\"[redacted]\"}");
    T_STR(json("{\"a\":\"password\",\"b\":\"c\"}"), "{\"a\":\"password\",\"b\":\"c\"}");
    T_STR(json("{\"o\":{\"otp\":[\"1\",2],\"b\":[3]}}"),
          "{\"o\":{\"otp\":\"[redacted]\",\"b\":[3]}}");
    T_STR(json("no JSON"), "no JSON");
}

/* Wherever a body is cut off, nothing of the secret is there. */
T_TEST(json_cut_off)
{
    static const char whole[] =
        "{\"a\":\"b\",\"password\":\"zzzz\",\"otp\":[1,{\"z\":\"]z\"}],\"otp\":\"zz\\\"zz\"}";
    for (size_t n = 0; n <= sizeof whole - 1; n++) {
        char part[sizeof whole];
        memcpy(part, whole, n);
        part[n] = '\0';
        T_OK(!strchr(json(part), 'z'), "%s", part);
    }
}
