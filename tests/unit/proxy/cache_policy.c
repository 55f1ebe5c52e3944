/* What may be stored and for how long, dates, keys that no request can make for another. */
#include "proxy/cache_policy.h"
#include "t.h"

#define S(text)                \
    {                          \
        text, sizeof(text) - 1 \
    }

static const char *const by_language[] = { "accept-language" };
static const struct cache_route products = { .on = true, .ttl_s = 300, .name = "products" };
static const int64_t now = 784111777; /* Sun, 06 Nov 1994 08:49:37 GMT */

static const struct cache_request get = { .method = S("GET"), .path = S("/products/123") };
static const struct cache_answer ok = { .status = 200 };

static uint32_t ttl(const struct cache_route *r, const struct cache_request *q,
                    const struct cache_answer *a)
{
    return cache_may_store(r, q, a, now, NULL);
}

T_TEST(plain_answers_get_the_routes_ttl)
{
    T_EQ(ttl(&products, &get, &ok), 300);
    T_EQ(cache_may_look(&products, &get), CACHE_HIT);
    struct cache_route off = products;
    off.on = false;
    T_EQ(ttl(&off, &get, &ok), 0);
    T_EQ(cache_may_look(&off, &get), CACHE_BYPASS);
    struct cache_route none = products;
    none.ttl_s = 0;
    T_EQ(ttl(&none, &get, &ok), 0);
    T_STR(cache_outcome_name(CACHE_BYPASS), "BYPASS");
}

T_TEST(answers)
{
    static const struct {
        struct cache_answer a;
        uint32_t ttl;
    } row[] = {
        { { .status = 200, .cache_control = S("max-age=60") }, 60 },
        { { .status = 200, .cache_control = S("Max-Age=\"60\", public") }, 60 },
        { { .status = 200, .cache_control = S("max-age=60, s-maxage=10") }, 10 },
        { { .status = 200, .cache_control = S("max-age=0") }, 0 },
        { { .status = 200, .cache_control = S("max-age=99999999999999999999") }, CACHE_TTL_MAX_S },
        { { .status = 200, .cache_control = S("max-age=-1") }, 0 },
        { { .status = 200, .cache_control = S("max-age=60, max-age=61") }, 0 },
        { { .status = 200, .cache_control = S("max-age") }, 0 },
        { { .status = 200, .cache_control = S("no-store") }, 0 },
        { { .status = 200, .cache_control = S("max-age=60,NO-STORE") }, 0 },
        { { .status = 200, .cache_control = S("private") }, 0 },
        { { .status = 200, .cache_control = S("private=\"x-a, x-b\", max-age=60") }, 0 },
        { { .status = 200, .cache_control = S("no-cache") }, 0 },
        { { .status = 200, .cache_control = S("x=\"no-store\", max-age=60") }, 60 },
        { { .status = 200, .cache_control = S("x=\"a\\\", no-store, \", max-age=60") }, 60 },
        { { .status = 200, .cache_control = S("public") }, 300 },
        { { .status = 200, .pragma = S("no-cache") }, 0 },
        { { .status = 200, .set_cookie = S("a=1") }, 0 },
        { { .status = 200, .set_cookie = S("") }, 0 },
        { { .status = 200, .vary = S("*") }, 0 },
        { { .status = 200, .vary = S("Accept-Language") }, 0 },
        { { .status = 200, .vary = S("") }, 300 },
        { { .status = 206 }, 0 },
        { { .status = 200, .content_range = S("bytes 0-1/2") }, 0 },
        { { .status = 302 }, 0 },
        { { .status = 500 }, 0 },
        { { .status = 503 }, 0 },
        { { .status = 404 }, 0 },
        { { .status = 404, .cache_control = S("max-age=60") }, 60 },
        { { .status = 410, .expires = S("Sun, 06 Nov 1994 08:50:37 GMT") }, 60 },
        { { .status = 200, .cache_control = S("max-age=60"), .age = S("20") }, 40 },
        { { .status = 200, .cache_control = S("max-age=60"), .age = S("60") }, 0 },
        { { .status = 200, .cache_control = S("max-age=60"), .age = S("x") }, 0 },
        { { .status = 200,
            .cache_control = S("max-age=60"),
            .date = S("Sun, 06 Nov 1994 08:49:07 GMT") },
          30 },
        { { .status = 200, .expires = S("Sun, 06 Nov 1994 08:50:37 GMT") }, 60 },
        { { .status = 200,
            .expires = S("Sun, 06 Nov 1994 08:50:37 GMT"),
            .date = S("Sun, 06 Nov 1994 08:49:27 GMT") },
          60 },
        { { .status = 200, .expires = S("Sun, 06 Nov 1994 08:49:37 GMT") }, 0 },
        { { .status = 200, .expires = S("0") }, 0 },
        { { .status = 200, .expires = S("0"), .cache_control = S("max-age=5") }, 5 },
    };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_EQ(ttl(&products, &get, &row[i].a), row[i].ttl, "row %zu", i);
}

T_TEST(requests)
{
    static const struct {
        struct cache_request q;
        enum cache_outcome look;
        uint32_t ttl;
    } row[] = {
        { { .method = S("HEAD") }, CACHE_HIT, 0 },
        { { .method = S("POST") }, CACHE_BYPASS, 0 },
        { { .method = S("get") }, CACHE_BYPASS, 0 },
        { { .method = S("GET"), .has_body = true }, CACHE_BYPASS, 0 },
        { { .method = S("GET"), .authorization = S("Bearer x") }, CACHE_BYPASS, 0 },
        { { .method = S("GET"), .authorization = S("") }, CACHE_BYPASS, 0 },
        { { .method = S("GET"), .range = S("bytes=0-1") }, CACHE_BYPASS, 0 },
        { { .method = S("GET"), .upgrade = S("websocket") }, CACHE_BYPASS, 0 },
        { { .method = S("GET"), .cache_control = S("no-store") }, CACHE_BYPASS, 0 },
        { { .method = S("GET"), .cache_control = S("no-cache") }, CACHE_MISS, 300 },
        { { .method = S("GET"), .cache_control = S("max-age=0") }, CACHE_MISS, 300 },
        { { .method = S("GET"), .cache_control = S("max-age=10") }, CACHE_HIT, 300 },
        { { .method = S("GET"), .pragma = S("no-cache") }, CACHE_MISS, 300 },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        T_EQ(cache_may_look(&products, &row[i].q), row[i].look, "row %zu", i);
        T_EQ(ttl(&products, &row[i].q, &ok), row[i].ttl, "row %zu", i);
    }
}

T_TEST(settings_of_a_route)
{
    struct cache_route r = products;
    struct cache_request q = get;
    struct cache_answer a = ok;
    const char *why;
    r.public_with_auth = true;
    q.authorization = (struct slice)S("Bearer x");
    T_EQ(ttl(&r, &q, &a), 300);
    a.cache_control = (struct slice)S("private");
    T_EQ(cache_may_store(&r, &q, &a, now, &why), 0);
    T_STR(why, "private");
    r = products;
    r.ttl_max_s = 20;
    a.cache_control = (struct slice)S("max-age=60");
    T_EQ(ttl(&r, &get, &a), 20);
    r.ignore_cache_control = true;
    a.cache_control = (struct slice)S("no-cache, max-age=1");
    T_EQ(ttl(&r, &get, &a), 20);
    a.cache_control = (struct slice)S("no-store");
    T_EQ(ttl(&r, &get, &a), 0);
    r = products;
    r.vary = by_language;
    r.vary_n = 1;
    a = (struct cache_answer){ .status = 200, .vary = S("accept-LANGUAGE, ") };
    T_EQ(ttl(&r, &get, &a), 300);
    a.vary = (struct slice)S("Accept-Language, Cookie");
    T_EQ(ttl(&r, &get, &a), 0);
    r = products;
    r.mints = true;
    T_OK(strstr(cache_route_wrong(&r), "duplicate ID"));
    T_EQ(ttl(&r, &get, &ok), 0);
    T_EQ(cache_may_look(&r, &get), CACHE_BYPASS);
    T_OK(!cache_route_wrong(&products));
}

T_TEST(dates)
{
    static const struct {
        const char *text;
        int64_t s;
    } row[] = {
        { "Sun, 06 Nov 1994 08:49:37 GMT", 784111777 },
        { "Sunday, 06-Nov-94 08:49:37 GMT", 784111777 },
        { "Sun Nov  6 08:49:37 1994", 784111777 },
        { "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
        { "Wed, 01 Jan 2070 00:00:00 GMT", 3155760000 },
        { "Wednesday, 01-Jan-69 00:00:00 GMT", 3124224000 },
    };
    static const char *const bad[] = { "",
                                       "0",
                                       "-1",
                                       "Sun, 06 Nov 1994 08:49:37",
                                       "Sun, 06 Nov 1994 24:49:37 GMT",
                                       "Sun, 06 Nov 1994 08:49:37 CET",
                                       "Sun, 06 XXX 1994 08:49:37 GMT",
                                       "Sun, 00 Nov 1994 08:49:37 GMT",
                                       "Sun Nov 36 08:49:37 1994",
                                       "Sunday, 06-Nov-94 08:49:37 GM",
                                       "1994-11-06T08:49:37Z" };
    int64_t s;
    for (size_t i = 0; i < T_LEN(row); i++) {
        T_OK(cache_date((struct slice){ row[i].text, strlen(row[i].text) }, &s), "%s", row[i].text);
        T_EQ(s, row[i].s, "%s", row[i].text);
    }
    for (size_t i = 0; i < T_LEN(bad); i++)
        T_OK(!cache_date((struct slice){ bad[i], strlen(bad[i]) }, &s), "%s", bad[i]);
}

static const char *key(const struct cache_route *r, const struct cache_request *q)
{
    static char text[2][CACHE_KEY_BYTES_MAX + 1];
    static int turn;
    char *out = text[turn ^= 1];
    struct buf b;
    buf_init(&b, CACHE_KEY_BYTES_MAX);
    cache_key(&b, r, q);
    T_OK(!b.failed && b.len > 0);
    memcpy(out, b.p, b.len);
    out[b.len] = '\0';
    buf_done(&b);
    return out;
}

T_TEST(keys)
{
    struct cache_route r = products;
    r.vary = by_language;
    T_STR(key(&products, &get), "cache:products:123");
#define KEY(r_, path_, ...) key(r_, &(struct cache_request){ .path = S(path_), __VA_ARGS__ })
    T_STR(KEY(&products, "/products"), "cache:products:*");
    T_STR(KEY(&products, "/products/"), "cache:products:");
    T_STR(KEY(&products, "/products//x"), "cache:products:%2Fx");
    T_STR(KEY(&products, "/productsx"), "cache:products:/%2Fproductsx");
    T_STR(KEY(&products, "/x"), "cache:products:/%2Fx");
    T_STR(KEY(&products, "/products/1", .query = S("a=1&b=2")), "cache:products:1?a%3D1%26b%3D2");
    T_STR(KEY(&products, "/products/1", .query = S("")), "cache:products:1?");
    T_STR(KEY(&products, "/products/1\r\nDEL *"), "cache:products:1%0D%0ADEL%20%2A");
    r.vary_n = 1;
    T_STR(KEY(&r, "/products/1", .vary = { S("de, en") }),
          "cache:products:1:accept-language=de%2C%20en");
    T_STR(KEY(&r, "/products/1"), "cache:products:1:accept-language!");
}

/* Random requests out of the characters that keys are made of: equal keys only for equal ones. */
T_TEST(different_requests_different_keys)
{
    static const char set[] = "/:?=!*%a2F";
    struct cache_route r = products;
    r.name = "a";
    r.vary = by_language;
    r.vary_n = 1;
    for (uint64_t i = 0; i < t_scale(100000); i++) {
        char text[2][3][4];
        struct cache_request q[2] = { 0 };
        for (int k = 0; k < 2; k++) {
            struct slice *part[3] = { &q[k].path, &q[k].query, &q[k].vary[0] };
            for (int n = 0; n < 3; n++) {
                size_t len = t_random_below(4);
                for (size_t c = 0; c < 4; c++)
                    text[k][n][c] = set[t_random_below(sizeof set - 1)];
                if (n == 0)
                    text[k][0][0] = '/';
                *part[n] = (struct slice){ n && t_random_below(3) == 0 ? NULL : text[k][n],
                                           n ? len : 1 + t_random_below(3) };
                if (!part[n]->p)
                    part[n]->len = 0;
            }
        }
        bool same = true;
        struct slice *a[3] = { &q[0].path, &q[0].query, &q[0].vary[0] };
        struct slice *b[3] = { &q[1].path, &q[1].query, &q[1].vary[0] };
        for (int n = 0; n < 3; n++)
            same = same && !a[n]->p == !b[n]->p && a[n]->len == b[n]->len &&
                   (a[n]->len == 0 || memcmp(a[n]->p, b[n]->p, a[n]->len) == 0);
        T_EQ(strcmp(key(&r, &q[0]), key(&r, &q[1])) == 0, same);
    }
}

T_TEST(what_the_client_takes)
{
    static const struct {
        struct slice control;
        uint64_t age, left;
        bool use;
    } row[] = {
        { S("max-age=10"), 10, 5, true },     { S("max-age=10"), 11, 5, false },
        { S("min-fresh=10"), 0, 10, true },   { S("min-fresh=10"), 0, 9, false },
        { S("only-if-cached"), 99, 1, true }, { { NULL, 0 }, 99, 1, true },
    };
    for (size_t i = 0; i < T_LEN(row); i++) {
        struct cache_request q = get;
        q.cache_control = row[i].control;
        T_EQ(cache_may_use(&products, &q, row[i].age, row[i].left), row[i].use, "row %zu", i);
        T_EQ(cache_only(&q), i == 4);
    }
    struct cache_route deaf = products;
    deaf.ignore_cache_control = true;
    struct cache_request q = get;
    q.cache_control = (struct slice){ "max-age=1", 9 };
    T_OK(cache_may_use(&deaf, &q, 99, 1));
}

/* Where Accept-Encoding is not passed on, a Vary on it is no obstacle. */
T_TEST(plain_answers)
{
    struct cache_route r = products;
    struct cache_answer a = { .status = 200, .vary = S("Accept-Encoding") };
    T_EQ(ttl(&r, &get, &a), 0);
    r.plain = true;
    T_EQ(ttl(&r, &get, &a), 300);
    a.vary = (struct slice)S("accept-encoding, Cookie");
    T_EQ(ttl(&r, &get, &a), 0);
}
