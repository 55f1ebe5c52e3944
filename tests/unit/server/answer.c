/* Lists of IDs: the bytes are right for every format, and the length is known or found. */
#include "server/answer.h"
#include "net/conn.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct loop *loop; /* only its date is used */
static struct reply reply;

static void no_http(struct service_ctx *ctx, const struct http_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    (void)r;
}

static void no_resp(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    (void)r;
}

static void begin(void)
{
    static struct places places;
    static const struct service service = { .http = no_http, .resp = no_resp };
    if (!loop)
        T_EQ(loop_new(NULL, &service, &places, &loop), 0);
    buf_done(&reply.own);
    reply = (struct reply){ .loop = loop, .minor = 1, .keep_alive = true };
    buf_init(&reply.own, 64 * 1024 * 1024);
    reply.out = &reply.own;
}

static const char *body(size_t *len)
{
    buf_add(&reply.own, "", 1);
    const char *l = strstr(reply.own.p, "Content-Length: "), *b = strstr(reply.own.p, "\r\n\r\n");
    T_OK(l && b);
    T_OK(strstr(reply.own.p, "Cache-Control: no-store\r\n"));
    *len = reply.own.len - 1 - (size_t)(b + 4 - reply.own.p);
    T_EQ(strtoull(l + 16, NULL, 10), *len);
    T_EQ(reply.body_at, (size_t)(b + 4 - reply.own.p));
    return b + 4;
}

/* The obvious way. */
static size_t expected(const struct answer *a, const uint64_t *ids, size_t n, char *out)
{
    char *p = out;
    if (a->format == ANSWER_JSON)
        p += sprintf(p, a->list ? "{\"ids\":[" : "{\"id\":");
    for (size_t i = 0; i < n; i++) {
        char text[FIRN_CODEC_TEXT_BUF];
        if (a->format == ANSWER_OCTETS) {
            for (int k = 7; k >= 0; k--)
                *p++ = (char)(ids[i] >> (8 * k));
            continue;
        }
        if (a->codec)
            T_EQ(firn_codec_encode64(a->codec, ids[i], text, sizeof text, NULL), 0);
        else
            sprintf(text, "%llu", (unsigned long long)ids[i]);
        const char *quote = a->format == ANSWER_JSON ? "\"" : "";
        p += sprintf(p, "%s%s%s%s%s", quote, a->prefix ? a->prefix : "", a->prefix ? "_" : "", text,
                     quote);
        if (a->format == ANSWER_TEXT || i + 1 < n)
            *p++ = a->format == ANSWER_TEXT ? '\n' : ',';
    }
    if (a->format == ANSWER_JSON)
        p += sprintf(p, a->list ? "]}\n" : "}\n");
    return (size_t)(p - out);
}

static void compare(const struct answer *a, const uint64_t *ids, size_t n)
{
    static char want[4 * 1024 * 1024];
    size_t want_len = expected(a, ids, n, want), len;
    begin();
    answer_numbers(&reply, a, ids, n);
    const char *got = body(&len);
    T_EQ(len, want_len);
    T_OK(memcmp(got, want, len) == 0, "format %d list %d n %zu", a->format, a->list, n);
}

T_TEST(numbers_in_every_format)
{
    static uint64_t ids[3000];
    size_t codecs;
    const struct firn_codec *codec = firn_codec_list(&codecs);
    static const size_t counts[] = { 1, 2, 3, 100, 3000 };
    for (size_t c = 0; c <= codecs; c++)
        for (int f = ANSWER_JSON; f <= ANSWER_OCTETS; f++)
            for (size_t k = 0; k < T_LEN(counts); k++)
                for (int prefix = 0; prefix < 2; prefix++) {
                    struct answer a = { .format = (enum answer_format)f,
                                        .list = counts[k] > 1,
                                        .codec = c < codecs ? &codec[c] : NULL };
                    if (f == ANSWER_OCTETS && (prefix || a.codec))
                        continue;
                    if (prefix) {
                        a.prefix = "ord";
                        a.prefix_len = 3;
                    }
                    uint64_t v = t_random() >> t_random_below(64); /* digits change on the way */
                    for (size_t i = 0; i < counts[k]; i++) {
                        ids[i] = v;
                        v += t_random_below(1000);
                    }
                    compare(&a, ids, counts[k]);
                }
}

T_TEST(edges)
{
    static const uint64_t sets[][3] = { { 0, 1, 2 },
                                        { 8, 9, 10 },
                                        { 9, 10, 11 },
                                        { 99, 100, UINT64_MAX },
                                        { UINT64_MAX - 2, UINT64_MAX - 1, UINT64_MAX },
                                        { 5, 4, 3 },
                                        { 5, 400, 6 } };
    for (size_t i = 0; i < T_LEN(sets); i++)
        for (int f = ANSWER_JSON; f <= ANSWER_OCTETS; f++) {
            struct answer a = { .format = (enum answer_format)f, .list = true };
            compare(&a, sets[i], 3);
            compare(&a, sets[i], 1);
            a.list = false;
            compare(&a, sets[i], 1);
        }
}

T_TEST(ranges_are_their_numbers)
{
    static uint64_t ids[2000];
    static char want[64 * 1024];
    for (int f = ANSWER_JSON; f <= ANSWER_OCTETS; f++)
        for (size_t n = 1; n < 2000; n += 1 + n / 3) {
            struct answer a = { .format = (enum answer_format)f, .list = true };
            struct seq_range r = { 95, 3, n };
            for (size_t i = 0; i < n; i++)
                ids[i] = 95 + 3 * i;
            size_t want_len = expected(&a, ids, n, want), len;
            begin();
            answer_range(&reply, &a, &r);
            const char *got = body(&len);
            T_EQ(len, want_len);
            T_OK(memcmp(got, want, len) == 0);
        }
}

static int count_up(void *user, size_t i, char out[FIRN_MINT_TEXT_BUF])
{
    if (i == *(size_t *)user)
        return FIRN_EAGAIN;
    return sprintf(out, "t%zu", i);
}

T_TEST(texts)
{
    struct answer a = { .format = ANSWER_JSON, .list = true };
    size_t never = SIZE_MAX, second = 2, len;
    begin();
    T_EQ(answer_texts(&reply, &a, 3, count_up, &never), 0);
    T_STR(body(&len), "{\"ids\":[\"t0\",\"t1\",\"t2\"]}\n");
    a.format = ANSWER_TEXT;
    begin();
    T_EQ(answer_texts(&reply, &a, 2, count_up, &never), 0);
    T_STR(body(&len), "t0\nt1\n");
    begin(); /* an error takes everything back */
    T_EQ(answer_texts(&reply, &a, 3, count_up, &second), FIRN_EAGAIN);
    T_EQ(reply.own.len, 0);
    T_EQ(reply.body_at, 0);
}

T_TEST(one)
{
    size_t len;
    static const uint64_t ids[] = { 0, 7, 777378526356570112, UINT64_MAX };
    for (size_t i = 0; i < T_LEN(ids); i++)
        for (int minor = 0; minor < 2; minor++) {
            char want[64];
            begin();
            reply.minor = (uint8_t)minor;
            answer_one(&reply, ids[i]);
            sprintf(want, "{\"id\":\"%llu\"}\n", (unsigned long long)ids[i]);
            T_STR(body(&len), want);
            T_EQ(strstr(reply.own.p, "Connection: keep-alive\r\n") != NULL, minor == 0);
        }
    begin();
    reply.keep_alive = false;
    answer_one(&reply, 1);
    T_OK(strstr(body(&len) - 120, "Connection: close\r\n"));
}

T_TEST(accept)
{
    static const struct {
        const char *accept;
        enum answer_format want;
    } rows[] = {
        { "*/*", ANSWER_JSON },
        { "text/plain", ANSWER_TEXT },
        { "TEXT/PLAIN; charset=utf-8", ANSWER_TEXT },
        { "text/plain;q=0", ANSWER_JSON },
        { "application/octet-stream", ANSWER_OCTETS },
        { "application/json, text/plain", ANSWER_JSON },
        { "text/html,application/xhtml+xml,*/*;q=0.8", ANSWER_JSON },
        { "", ANSWER_JSON },
        { "image/png", ANSWER_JSON },
    };
    T_EQ(answer_format((struct slice){ NULL, 0 }), ANSWER_JSON);
    for (size_t i = 0; i < T_LEN(rows); i++)
        T_EQ(answer_format((struct slice){ rows[i].accept, strlen(rows[i].accept) }), rows[i].want,
             "%s", rows[i].accept);
}

/* Large answers allocate the answer and no more than its doubling growth needs. */
T_TEST(large_answers_stay_within_their_bound)
{
    static uint64_t ids[100000];
    for (size_t i = 0; i < T_LEN(ids); i++)
        ids[i] = 777378526356570112 + i;
    struct answer a = { .format = ANSWER_JSON, .list = true };
    begin();
    answer_numbers(&reply, &a, ids, T_LEN(ids));
    T_OK(!reply.own.failed);
    T_OK(reply.own.len <= answer_bytes(&a, T_LEN(ids), 20) + 512);
    T_OK(reply.own.cap <= 2 * reply.own.len + 512);
}
