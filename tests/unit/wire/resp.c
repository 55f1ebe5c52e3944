/* Requests and replies of the Redis protocol: every split point, and what is refused. */
#include "t.h"

#include "guard.h"
#include "wire/resp.h"

#include <stdio.h>

static struct resp_request req;
static char err[RESP_ERROR_BUF];

static ssize_t parse(const char *text, size_t len)
{
    err[0] = 0;
    return resp_parse(guard_copy(text, len), len, &req, err);
}

static bool arg_is(size_t i, const char *text)
{
    return i < req.argc && req.argv[i].len == strlen(text) &&
           memcmp(req.argv[i].p, text, req.argv[i].len) == 0;
}

T_TEST(resp_every_split)
{
    static const char *const whole[] = {
        "*1\r\n$4\r\nPING\r\n",
        "*2\r\n$4\r\nINCR\r\n$0\r\n\r\n",
        "*3\r\n$6\r\nINCRBY\r\n$12\r\nhello\r\nworld\r\n$2\r\n10\r\n",
        "*-1\r\n",
        "*0\r\n",
        "*00000001\r\n$01\r\nx\r\n",
        "PING\r\n",
        "set a \"b c\"\n",
        "\r\n",
    };
    for (size_t i = 0; i < T_LEN(whole); i++) {
        size_t len = strlen(whole[i]);
        for (size_t cut = 0; cut < len; cut++)
            T_EQ(parse(whole[i], cut), FIRN_EAGAIN, "%zu at %zu: %s", i, cut, err);
        T_EQ(parse(whole[i], len), len, "%zu: %s", i, err);
    }
}

T_TEST(resp_arguments)
{
    T_EQ(parse("*2\r\n$4\r\nincr\r\n$3\r\na\r\n\r\n*1\r\n", 27), 23);
    T_EQ(req.argc, 2);
    T_OK(resp_is(&req, 0, "INCR") && resp_is(&req, 0, "incr") && !resp_is(&req, 0, "INC"));
    T_OK(!resp_is(&req, 2, "INCR"));
    T_OK(arg_is(1, "a\r\n"));
    T_EQ(parse("*-7\r\nPING\r\n", 11), 5);
    T_EQ(req.argc, 0);
}

T_TEST(resp_inline_words)
{
    static const struct {
        const char *line;
        size_t argc;
        const char *arg[4];
    } some[] = {
        { "\r\n", 0, { 0 } },
        { "   \t \n", 0, { 0 } },
        { "PING\r\n", 1, { "PING" } },
        { "  a  b\tc \r\n", 3, { "a", "b", "c" } },
        { "a \"b c\" d\n", 3, { "a", "b c", "d" } },
        { "\"\" ''\n", 2, { "", "" } },
        { "\"a\\x41\\n\\t\\\\\\\"\\q\"\n", 1, { "aA\n\t\\\"q" } },
        { "'a\\'b\\n'\n", 1, { "a'b\\n" } },
        { "a\"b c\"\n", 1, { "ab c" } },
        { "\"\\x4\" x\n", 2, { "x4", "x" } },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        T_EQ(parse(some[i].line, strlen(some[i].line)), strlen(some[i].line), "%zu: %s", i, err);
        T_EQ(req.argc, some[i].argc, "%zu", i);
        for (size_t k = 0; k < req.argc; k++)
            T_OK(arg_is(k, some[i].arg[k]), "%zu: %.*s", i, (int)req.argv[k].len, req.argv[k].p);
    }
}

/* The words are those of Redis, where Redis has the case; clients and people know them. */
T_TEST(resp_refuses)
{
    static const struct {
        const char *text, *error;
    } bad[] = {
        { "*1025\r\n", "Protocol error: invalid multibulk length" },
        { "*2147483648\r\n", "Protocol error: invalid multibulk length" },
        { "*99999999999999999999999", "Protocol error: invalid multibulk length" },
        { "*a\r\n", "Protocol error: invalid multibulk length" },
        { "*\r\n", "Protocol error: invalid multibulk length" },
        { "*+1\r\n", "Protocol error: invalid multibulk length" },
        { "*1 \r\n", "Protocol error: invalid multibulk length" },
        { "*-\r\n", "Protocol error: invalid multibulk length" },
        { "*1\n$4\nPING\n", "Protocol error: invalid multibulk length" },
        { "*1\r$4", "Protocol error: invalid multibulk length" },
        { "*1\r\nPING\r\n", "Protocol error: expected '$', got 'P'" },
        { "*1\r\n*1\r\n", "Protocol error: expected '$', got '*'" },
        { "*1\r\n:1\r\n", "Protocol error: expected '$', got ':'" },
        { "*1\r\n\r\n", "Protocol error: expected '$', got '?'" },
        { "*1\r\n$-1\r\n", "Protocol error: invalid bulk length" },
        { "*1\r\n$65537\r\n", "Protocol error: invalid bulk length" },
        { "*1\r\n$9223372036854775808\r\n", "Protocol error: invalid bulk length" },
        { "*1\r\n$x\r\n", "Protocol error: invalid bulk length" },
        { "*1\r\n$4\r\nPINGx", "Protocol error: expected CRLF after a bulk string" },
        { "*1\r\n$4\r\nPING\rx", "Protocol error: expected CRLF after a bulk string" },
        { "a \"b\r\n", "Protocol error: unbalanced quotes in request" },
        { "a 'b\r\n", "Protocol error: unbalanced quotes in request" },
        { "\"a\"b\r\n", "Protocol error: unbalanced quotes in request" },
        { "\"a\\\r\n", "Protocol error: unbalanced quotes in request" },
    };
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_EQ(parse(bad[i].text, strlen(bad[i].text)), FIRN_EFORMAT, "%zu: %s", i, bad[i].text);
        T_STR(err, bad[i].error, "%zu: %s", i, bad[i].text);
    }
}

static char big[GUARD_BYTES];

T_TEST(resp_limits)
{
    size_t at = (size_t)snprintf(big, sizeof big, "*%d\r\n", RESP_ARGS_MAX);
    for (int i = 0; i < RESP_ARGS_MAX; i++)
        at += (size_t)snprintf(big + at, sizeof big - at, "$1\r\nx\r\n");
    T_EQ(parse(big, at), at);
    T_EQ(req.argc, RESP_ARGS_MAX);

    at = (size_t)snprintf(big, sizeof big, "*2\r\n$%d\r\n", RESP_BULK_BYTES_MAX);
    memset(big + at, 'x', RESP_BULK_BYTES_MAX);
    at += RESP_BULK_BYTES_MAX;
    at += (size_t)snprintf(big + at, sizeof big - at, "\r\n$%d\r\n", RESP_BULK_BYTES_MAX);
    T_EQ(parse(big, at), FIRN_EFORMAT);
    T_STR(err, "Protocol error: too big request");

    memset(big, 'x', sizeof big);
    T_EQ(parse(big, RESP_INLINE_BYTES_MAX - 1), FIRN_EAGAIN);
    T_EQ(parse(big, RESP_INLINE_BYTES_MAX), FIRN_EFORMAT);
    T_STR(err, "Protocol error: too big inline request");
    for (size_t i = 1; i < 4096; i += 2)
        big[i] = ' ';
    big[4095] = '\n';
    T_EQ(parse(big, 4096), FIRN_EFORMAT);
    T_STR(err, "Protocol error: too many words in request");
}

T_TEST(resp_integers)
{
    static const struct {
        const char *text;
        int error;
        int64_t v;
    } some[] = {
        { "0", 0, 0 },
        { "10", 0, 10 },
        { "-1", 0, -1 },
        { "9223372036854775807", 0, INT64_MAX },
        { "-9223372036854775808", 0, INT64_MIN },
        { "9223372036854775808", FIRN_ERANGE, 0 },
        { "-9223372036854775809", FIRN_ERANGE, 0 },
        { "99999999999999999999", FIRN_ERANGE, 0 },
        { "", FIRN_EFORMAT, 0 },
        { "-", FIRN_EFORMAT, 0 },
        { "-0", FIRN_EFORMAT, 0 },
        { "01", FIRN_EFORMAT, 0 },
        { "+1", FIRN_EFORMAT, 0 },
        { " 1", FIRN_EFORMAT, 0 },
        { "1.0", FIRN_EFORMAT, 0 },
    };
    for (size_t i = 0; i < T_LEN(some); i++) {
        int64_t v = 77;
        size_t len = strlen(some[i].text);
        T_EQ(resp_i64((struct slice){ guard_copy(some[i].text, len), len }, &v), some[i].error,
             "'%s'", some[i].text);
        T_EQ(v, some[i].error ? 77 : some[i].v);
    }
}

T_TEST(resp_writes)
{
    struct buf b;
    buf_init(&b, 4096);
    for (int proto = 2; proto <= 3; proto++) {
        b.len = 0;
        resp_simple(&b, "O\r\nK");
        resp_error(&b, "ERR a\nb");
        resp_errorf(&b, "ERR %d", 5);
        resp_int(&b, -12);
        resp_int(&b, INT64_MIN);
        resp_bulk(&b, "a\0b", 3);
        resp_bulk_str(&b, "");
        resp_array(&b, 2);
        resp_map(&b, proto, 2);
        resp_set(&b, proto, 2);
        resp_null(&b, proto);
        resp_verbatim(&b, proto, "txt", "hi", 2);
        static const char two[] =
            "+O  K\r\n-ERR a b\r\n-ERR 5\r\n:-12\r\n:-9223372036854775808\r\n$3\r\na\0b\r\n$0\r\n\r\n"
            "*2\r\n*4\r\n*2\r\n$-1\r\n$2\r\nhi\r\n";
        static const char three[] =
            "+O  K\r\n-ERR a b\r\n-ERR 5\r\n:-12\r\n:-9223372036854775808\r\n$3\r\na\0b\r\n$0\r\n\r\n"
            "*2\r\n%2\r\n~2\r\n_\r\n=6\r\ntxt:hi\r\n";
        const char *expect = proto == 2 ? two : three;
        T_EQ(b.len, proto == 2 ? sizeof two - 1 : sizeof three - 1);
        T_OK(memcmp(b.p, expect, b.len) == 0, "RESP%d", proto);
    }
    buf_done(&b);
}
