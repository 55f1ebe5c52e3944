/* The blocking client: kept connections, stale ones, every framing, retries. */
#include "cli/url.c"
#include "wire/http_response.c"
#include "cli/http_client.c"
#include "stub_server.h"

static void expect(struct http_client *c, const char *want)
{
    const char *body;
    size_t len;
    T_EQ(http_client_get(c, &body, &len), 0, "%s", c->why);
    T_OK(len == strlen(want) && memcmp(body, want, len) == 0, "got '%.*s' for '%s'", (int)len, body,
         want);
}

static void open_client(struct http_client *c, const struct stub *s)
{
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%u/generate", s->port);
    T_EQ(http_client_init(c, url), 0, "%s", c->why);
}

static size_t by_length(unsigned n, char out[STUB_ANSWER_BYTES])
{
    return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n%02u", n % 100);
}

T_TEST(keeps_its_connection)
{
    static struct stub s = { .answer = by_length, .crumb = 5 };
    struct http_client c;
    stub_start(&s);
    open_client(&c, &s);
    expect(&c, "00");
    expect(&c, "01");
    expect(&c, "02");
    T_EQ(atomic_load(&s.conns), 1);
    T_EQ(c.retries, 0);
    http_client_done(&c);
    http_client_done(&c);
    stub_stop(&s);
}

T_TEST(opens_a_stale_connection_again_at_once)
{
    static struct stub s = { .answer = by_length, .close_after = true };
    struct http_client c;
    stub_start(&s);
    open_client(&c, &s);
    for (unsigned i = 0; i < 3; i++) {
        const char *body;
        size_t len;
        T_EQ(http_client_get(&c, &body, &len), 0, "%s", c.why);
        T_EQ(c.retries, 0);
        usleep(20000); /* the server's FIN arrives */
    }
    T_EQ(atomic_load(&s.conns), 3);
    http_client_done(&c);
    stub_stop(&s);
}

static size_t chunks(unsigned n, char out[STUB_ANSWER_BYTES])
{
    (void)n;
    return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
}

T_TEST(joins_chunks)
{
    static struct stub s = { .answer = chunks, .crumb = 1 };
    struct http_client c;
    stub_start(&s);
    open_client(&c, &s);
    expect(&c, "hello world");
    expect(&c, "hello world");
    T_EQ(atomic_load(&s.conns), 1);
    http_client_done(&c);
    stub_stop(&s);
}

static size_t until_close(unsigned n, char out[STUB_ANSWER_BYTES])
{
    (void)n;
    return (size_t)snprintf(out, STUB_ANSWER_BYTES, "HTTP/1.0 200 OK\r\n\r\nto the end");
}

T_TEST(reads_until_the_end)
{
    static struct stub s = { .answer = until_close, .close_after = true };
    struct http_client c;
    stub_start(&s);
    open_client(&c, &s);
    expect(&c, "to the end");
    expect(&c, "to the end");
    T_EQ(c.retries, 0);
    http_client_done(&c);
    stub_stop(&s);
}

static size_t late(unsigned n, char out[STUB_ANSWER_BYTES])
{
    return n == 0 ? 0 : by_length(n, out); /* hangs up once */
}

T_TEST(tries_again)
{
    static struct stub s = { .answer = late };
    struct http_client c;
    stub_start(&s);
    open_client(&c, &s);
    uint64_t start = mono_ns();
    expect(&c, "01");
    T_EQ(c.retries, 1);
    T_OK(mono_ns() - start >= HTTP_CLIENT_PAUSE_MS * UINT64_C(1000000));
    T_OK(c.answer_ns < HTTP_CLIENT_PAUSE_MS * UINT64_C(1000000), "the pause is not latency");
    http_client_done(&c);
    stub_stop(&s);
}

static size_t missing(unsigned n, char out[STUB_ANSWER_BYTES])
{
    (void)n;
    return (size_t)snprintf(out, STUB_ANSWER_BYTES, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
}

static size_t garbage(unsigned n, char out[STUB_ANSWER_BYTES])
{
    (void)n;
    return (size_t)snprintf(out, STUB_ANSWER_BYTES, "SSH-2.0-OpenSSH\r\n");
}

T_TEST(other_answers_are_errors_at_once)
{
    static struct stub s = { .answer = missing }, g = { .answer = garbage };
    struct http_client c;
    const char *body;
    size_t len;
    stub_start(&s);
    stub_start(&g);
    open_client(&c, &s);
    T_EQ(http_client_get(&c, &body, &len), FIRN_ENOTSUP);
    T_STR(c.why, "status 404");
    T_EQ(c.retries, 0);
    http_client_done(&c);
    open_client(&c, &g);
    T_EQ(http_client_get(&c, &body, &len), FIRN_EFORMAT);
    http_client_done(&c);
    stub_stop(&s);
    stub_stop(&g);
}

static const struct {
    const char *body, *why;
} refusals[] = {
    { "{\"title\":\"a\",\"detail\":\"no such thing\"}", "no such thing" },
    { "{\"detail\":\"send {\\\"id\\\":\\\"1\\\"}: \\u00e4, \\\\\"}",
      "send {\"id\":\"1\"}: \u00e4, \\" },
    { "{ \"detail\" : \"spaced\" }", "spaced" },
    { "{\"detail\":\"two\\nlines\\u001b[2J\"}", "two lines [2J" },
    { "{\"inner\":{\"detail\":\"not this\"},\"detail\":7}", "status 400" },
    { "{\"detail\":\"cut off", "status 400" },
    { "<html>\"detail\":\"no\"</html>", "status 400" },
    { "", "status 400" },
};

static size_t refusal(unsigned n, char out[STUB_ANSWER_BYTES])
{
    const char *body = refusals[n].body;
    return (size_t)snprintf(out, STUB_ANSWER_BYTES,
                            "HTTP/1.1 400 No\r\nContent-Length: %zu\r\n\r\n%s", strlen(body), body);
}

T_TEST(a_refusal_is_what_the_server_says)
{
    static struct stub s = { .answer = refusal };
    stub_start(&s);
    for (size_t i = 0; i < T_LEN(refusals); i++) {
        struct http_client client;
        const char *body;
        size_t len;
        open_client(&client, &s);
        T_EQ(http_client_get(&client, &body, &len), FIRN_ENOTSUP);
        T_STR(client.why, refusals[i].why, "%s", refusals[i].body);
        http_client_done(&client);
    }
    stub_stop(&s);
}

T_TEST(bad_addresses)
{
    struct http_client c;
    T_EQ(http_client_init(&c, "ftp://x/"), FIRN_EFORMAT);
    T_OK(c.why[0]);
    http_client_done(&c);
}
