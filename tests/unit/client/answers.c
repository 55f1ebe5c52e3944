/* Questions and answers as bytes, both protocols: every split point, every refusal. */
#include "client/http1.h"
#include "client/resp2.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>

static struct client_opts opts(const char *url)
{
    struct client_opts o;
    struct firn_diag d;
    T_EQ(client_url_parse(url, &o, &d), 0, "%s", d.text);
    return o;
}

static const struct request one = { .kind = REQUEST_NUMBERS, .n = 1 };
static const struct request many = { .kind = REQUEST_NUMBERS, .n = 5 };
static const struct request text = { .kind = REQUEST_TEXT, .n = 1 };

/* From memory of its own, so that a sanitizer sees a step too far. */
static long hear(bool resp, bool auth, const struct request *q, const char *p, size_t len,
                 struct response *a)
{
    char *copy = malloc(len ? len : 1);
    memcpy(copy, p, len);
    runs_free(&a->numbers);
    *a = (struct response){ 0 };
    long r = resp ? resp2_read(copy, len, auth, q, a) : http1_read(copy, len, q, a);
    free(copy);
    return r;
}

static void whole(bool resp, bool auth, const struct request *q, const char *p, struct response *a)
{
    size_t len = strlen(p);
    for (size_t cut = 0; cut < len; cut++)
        T_EQ(hear(resp, auth, q, p, cut, a), FIRN_EAGAIN, "cut after %zu of '%s'", cut, p);
    T_EQ(hear(resp, auth, q, p, len, a), len, "'%s'", p);
}

T_TEST(http_questions)
{
    char out[REQUEST_BYTES_MAX];
    struct client_opts o = opts("firn://a?token=secret");
    size_t n = http1_write(&o, &o.server[0], &many, out, sizeof out);
    T_OK(n > 0);
    T_OK(strstr(out, "GET /v1/ids/snowflake?n=5 HTTP/1.1\r\n"), "%s", out);
    T_OK(strstr(out, "Authorization: Bearer secret\r\n") && strstr(out, "Host: a:9001\r\n"));
    T_STR(out + n - 4, "\r\n\r\n");
    o = opts("firn://[::1]:5?seq=orders");
    struct request keyed = one;
    strcpy(keyed.key, "k1");
    n = http1_write(&o, &o.server[0], &keyed, out, sizeof out);
    T_OK(strstr(out, "POST /v1/sequences/orders/next HTTP/1.1\r\n"), "%s", out);
    T_OK(strstr(out, "Idempotency-Key: k1\r\n") && strstr(out, "Host: [::1]:5\r\n"));
    T_EQ(http1_write(&o, &o.server[0], &keyed, out, 40), 0);
    T_OK(!strstr(out, "X-Request-ID") && !strstr(out, "traceparent"));
    struct request named = one;
    strcpy(named.id, "req-17");
    strcpy(named.traceparent, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    n = http1_write(&o, &o.server[0], &named, out, sizeof out);
    T_OK(strstr(out, "X-Request-ID: req-17\r\n"), "%s", out);
    T_OK(strstr(out, "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"));
    T_STR(out + n - 4, "\r\n\r\n");
}

T_TEST(questions_with_a_shard)
{
    char out[REQUEST_BYTES_MAX];
    struct client_opts o = opts("firn://a");
    struct request q = one;
    T_OK(http1_write(&o, &o.server[0], &q, out, sizeof out) > 0);
    T_OK(!strstr(out, "shard"), "0 is no shard: %s", out);
    T_OK(resp2_write(&o, &q, out, sizeof out) > 0);
    T_OK(!strstr(out, "SHARD"), "%s", out);
    q.shard = 31;
    http1_write(&o, &o.server[0], &q, out, sizeof out);
    T_OK(strstr(out, "GET /v1/ids/snowflake?shard=31 HTTP/1.1\r\n"), "%s", out);
    q.n = 5;
    http1_write(&o, &o.server[0], &q, out, sizeof out);
    T_OK(strstr(out, "GET /v1/ids/snowflake?n=5&shard=31 HTTP/1.1\r\n"), "%s", out);
    strcpy(q.key, "k");
    T_EQ(resp2_write(&o, &q, out, sizeof out),
         strlen("*8\r\n$9\r\nFIRN.NEXT\r\n$9\r\nsnowflake\r\n$5\r\nCOUNT\r\n$1\r\n5\r\n"
                "$5\r\nSHARD\r\n$2\r\n31\r\n$3\r\nKEY\r\n$1\r\nk\r\n"));
    T_OK(strstr(out, "$5\r\nSHARD\r\n$2\r\n31\r\n"), "%s", out);
}

T_TEST(a_shard_that_there_is_not)
{
    static const char body[] =
        "{\"type\":\"urn:firn:problem:parameter\",\"detail\":"
        "\"shard: the shard does not fit, or the layout has no shard field\"}";
    struct response a = { 0 };
    char all[400];
    snprintf(all, sizeof all, "HTTP/1.1 400 X\r\nContent-Length: %zu\r\n\r\n%s", strlen(body),
             body);
    whole(false, false, &many, all, &a);
    T_EQ(a.error, FIRN_ERANGE);
    T_OK(!a.again);
    whole(true, false, &many, "-ERR the shard does not fit, or the layout has no shard field\r\n",
          &a);
    T_EQ(a.error, FIRN_ERANGE);
    T_OK(!a.again);
}

T_TEST(http_answers)
{
    struct response a = { 0 };
    whole(false, false, &one, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n42\n", &a);
    T_EQ(a.error, 0);
    T_EQ(a.numbers.v[0].first, 42);
    T_OK(!a.close);
    whole(false, false, &many,
          "HTTP/1.1 200 OK\r\ncontent-length:  6 \r\nConnection: close\r\n\r\n1\n2\n4\n", &a);
    T_EQ(a.numbers.numbers, 3);
    T_OK(a.close);
    whole(
        false, false, &many,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n1\n2\r\n3\r\n2\n4\r\n0\r\n\r\n",
        &a);
    T_EQ(a.numbers.numbers, 3);
    whole(false, false, &text, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc\n", &a);
    T_STR(a.text, "abc");
    static const char runs[] =
        "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.firn.runs\r\nContent-Length: "
        "24\r\n\r\n\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3";
    T_EQ(hear(false, false, &many, runs, sizeof runs - 1, &a), sizeof runs - 1);
    T_EQ(a.numbers.v[0].first, 7);
    T_EQ(a.numbers.v[0].step, 2);
    T_EQ(a.numbers.v[0].count, 3);
    runs_free(&a.numbers);
}

T_TEST(http_refusals)
{
    static const struct {
        int status, error;
        bool again, busy;
        const char *type;
    } rows[] = {
        { 400, FIRN_EINVAL, false, false, "" },     { 401, FIRN_EAUTH, false, false, "" },
        { 404, FIRN_ENOENT, false, false, "" },     { 409, FIRN_EOVERFLOW, false, false, "" },
        { 422, FIRN_EREUSED, false, false, "" },    { 429, FIRN_EAGAIN, true, false, "" },
        { 500, FIRN_EIO, true, false, "" },         { 503, FIRN_EAGAIN, true, true, "not-ready" },
        { 503, FIRN_EAGAIN, true, false, "store" }, { 503, FIRN_ENOSLOT, true, false, "no-slot" },
    };
    for (size_t i = 0; i < T_LEN(rows); i++) {
        struct response a = { 0 };
        char body[200], all[400];
        snprintf(body, sizeof body,
                 "{\"type\":\"urn:firn:problem:%s\",\"detail\":\"say \\\"so\\\"\"}", rows[i].type);
        snprintf(all, sizeof all, "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n%s", rows[i].status,
                 strlen(body), body);
        whole(false, false, &one, all, &a);
        T_EQ(a.error, rows[i].error, "%d", rows[i].status);
        T_EQ(a.again, rows[i].again, "%d", rows[i].status);
        T_EQ(a.busy, rows[i].busy, "%d", rows[i].status);
        T_OK(strstr(a.text, "say \"so\""), "%s", a.text);
    }
}

T_TEST(what_is_no_answer_is_refused)
{
    static const char *const http[] = {
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n1\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n1\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nx1\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n1\n2\n", /* more than asked for */
        "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.firn.runs\r\nContent-Length: 3\r\n\r\nabc",
    };
    static const char *const resp[] = {
        "x\r\n",  ":-1\r\n", ":x\r\n", "$-1\r\n", "*0\r\n", "$2\r\nxy\r\n", "*2\r\n:1\r\n:2\r\n",
        "+OK\r\n"
    };
    struct response a = { 0 };
    for (size_t i = 0; i < T_LEN(http); i++)
        T_EQ(hear(false, false, &one, http[i], strlen(http[i]), &a), FIRN_EFORMAT, "%s", http[i]);
    for (size_t i = 0; i < T_LEN(resp); i++)
        T_EQ(hear(true, false, &one, resp[i], strlen(resp[i]), &a), FIRN_EFORMAT, "%s", resp[i]);
    runs_free(&a.numbers);
}

T_TEST(resp_questions)
{
    char out[REQUEST_BYTES_MAX];
    struct client_opts o = opts("firn://a?proto=resp&seq=s&token=pw");
    struct request q = many;
    strcpy(q.key, "k");
    T_OK(resp2_write(&o, &q, out, sizeof out) > 0);
    T_STR(
        out,
        "*8\r\n$9\r\nFIRN.NEXT\r\n$6\r\nticket\r\n$3\r\nSEQ\r\n$1\r\ns\r\n$5\r\nCOUNT\r\n$1\r\n5\r\n"
        "$3\r\nKEY\r\n$1\r\nk\r\n");
    T_OK(resp2_write_auth(&o, out, sizeof out) > 0);
    T_STR(out, "*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n");
    T_EQ(resp2_write(&o, &q, out, 20), 0);
}

T_TEST(resp_answers)
{
    struct response a = { 0 };
    whole(true, false, &one, ":42\r\n", &a);
    T_EQ(a.numbers.v[0].first, 42);
    whole(true, false, &one, "$20\r\n18446744073709551615\r\n", &a);
    T_OK(a.numbers.v[0].first == UINT64_MAX);
    whole(true, false, &many, "*3\r\n$1\r\n7\r\n:8\r\n$1\r\n9\r\n", &a);
    T_EQ(a.numbers.numbers, 3);
    whole(true, false, &text, "$3\r\nabc\r\n", &a);
    T_STR(a.text, "abc");
    whole(true, true, &one, "+OK\r\n:5\r\n", &a);
    T_EQ(a.numbers.v[0].first, 5);
    whole(true, true, &one, "-WRONGPASS no\r\n", &a);
    T_EQ(a.error, FIRN_EAUTH);
    T_OK(a.close);
    whole(true, false, &one, "-TRYAGAIN later\r\n", &a);
    T_EQ(a.error, FIRN_EAGAIN);
    T_OK(a.again);
    whole(true, false, &one, "-ERR there is no sequence x\r\n", &a);
    T_EQ(a.error, FIRN_ENOENT);
    T_OK(!a.again);
    runs_free(&a.numbers);
}
