/* Spans: what is kept of one, and its JSON. */
#include "t.h"

#include "daemon/span.h"
#include "wire/json_read.h"

#include <stdio.h>

static const struct span_resource resource = { "firnd", "1.2.3", "i\"1", NULL };

static struct slice slice(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static char *body_of(struct buf *b, const struct span *s, uint64_t real_ns)
{
    buf_init(b, 1 << 20);
    spans_begin(b, &resource);
    spans_add(b, s, real_ns);
    spans_end(b);
    buf_add(b, "", 1);
    T_OK(!b->failed);
    return b->p;
}

T_TEST(span_json)
{
    const struct trace_parent from = { { 0x0a, 0xf7 }, { 0xb7, 1, 2, 3, 4, 5, 6, 0xff }, 1 };
    struct buf b;
    struct span s;
    char want[2048], id[TRACE_SPAN_BUF];
    span_init_child(&s, &from, true, SPAN_SERVER);
    T_EQ(memcmp(s.self.trace, from.trace, sizeof from.trace), 0);
    T_OK(memcmp(s.self.span, from.span, sizeof from.span) != 0, "an ID of its own");
    T_EQ(s.self.flags, 1);
    snprintf(s.name, sizeof s.name, "GET /v1/ids/{kind}");
    s.start_ns = 5;
    s.end_ns = 1000000007;
    s.error = true;
    span_state(&s, slice("a=1"));
    span_text(&s, "url.path", slice("/v1/ids/\"x\""));
    span_number(&s, "http.response.status_code", 503);
    span_text(&s, "absent", (struct slice){ NULL, 0 });
    trace_hex(s.self.span, sizeof s.self.span, id);
    snprintf(want, sizeof want,
             "{\"resourceSpans\":[{\"resource\":{\"attributes\":["
             "{\"key\":\"service.name\",\"value\":{\"stringValue\":\"firnd\"}},"
             "{\"key\":\"service.version\",\"value\":{\"stringValue\":\"1.2.3\"}},"
             "{\"key\":\"service.instance.id\",\"value\":{\"stringValue\":\"i\\\"1\"}}]},"
             "\"scopeSpans\":[{\"scope\":{\"name\":\"firn\",\"version\":\"1.2.3\"},\"spans\":["
             "{\"traceId\":\"0af70000000000000000000000000000\",\"spanId\":\"%s\","
             "\"parentSpanId\":\"b7010203040506ff\",\"traceState\":\"a=1\",\"flags\":769,"
             "\"name\":\"GET /v1/ids/{kind}\",\"kind\":2,"
             "\"startTimeUnixNano\":\"1700000000000000005\","
             "\"endTimeUnixNano\":\"1700000001000000007\",\"attributes\":["
             "{\"key\":\"url.path\",\"value\":{\"stringValue\":\"/v1/ids/\\\"x\\\"\"}},"
             "{\"key\":\"http.response.status_code\",\"value\":{\"intValue\":\"503\"}}],"
             "\"status\":{\"code\":2}}]}]}]}",
             id);
    T_STR(body_of(&b, &s, UINT64_C(1700000000000000000)), want);
    buf_done(&b);
}

T_TEST(span_root)
{
    struct buf b;
    struct span s, other;
    span_init_root(&s, SPAN_SERVER);
    span_init_root(&other, SPAN_SERVER);
    T_OK(memcmp(s.self.trace, other.self.trace, sizeof s.self.trace) != 0);
    T_EQ(s.self.flags, TRACE_SAMPLED | TRACE_RANDOM);
    char *text = body_of(&b, &s, 0);
    T_OK(!strstr(text, "parentSpanId") && strstr(text, "\"flags\":259,"), "%s", text);
    T_OK(strstr(text, "\"status\":{}"), "%s", text);
    buf_done(&b);
}

static void ignore(void *user, const char *path, const char *value, bool string)
{
    (void)user, (void)path, (void)value, (void)string;
}

/* What does not fit is left out, the rest is whole. */
T_TEST(span_bounds)
{
    char long_text[SPAN_TEXT_BYTES + 1];
    struct buf b;
    struct span s;
    memset(long_text, '\x01', sizeof long_text);
    span_init_root(&s, SPAN_INTERNAL);
    span_text(&s, "too long", (struct slice){ long_text, SPAN_TEXT_BYTES + 1 });
    T_EQ(s.attributes, 0);
    span_text(&s, "all", (struct slice){ long_text, SPAN_TEXT_BYTES });
    span_text(&s, "more", (struct slice){ "x", 1 });
    span_state(&s, slice("a=1"));
    T_EQ(s.attributes, 1);
    T_EQ(s.state_len, 0);
    T_EQ(span_size(&s), offsetof(struct span, text) + SPAN_TEXT_BYTES);
    for (int i = 0; i < 2 * SPAN_ATTRIBUTES_MAX; i++)
        span_number(&s, "n", UINT64_MAX);
    T_EQ(s.attributes, SPAN_ATTRIBUTES_MAX);
    char *text = body_of(&b, &s, 0);
    T_EQ(json_each(text, strlen(text), ignore, NULL), 0);
    buf_done(&b);
}
