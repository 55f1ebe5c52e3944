/*
 * Caches: the headers of a request and its answer, any text, one per line. Whatever they say, the
 * decision keeps its promises; and two requests have one key only if what counts is the same.
 */
#include "proxy/cache_policy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NOW = 1700000000 };

static void check(int ok)
{
    if (!ok)
        abort();
}

static struct slice line(struct slice *rest)
{
    const char *end = rest->len ? memchr(rest->p, '\n', rest->len) : NULL;
    struct slice w = { rest->p, end ? (size_t)(end - rest->p) : rest->len };
    size_t used = w.len + (end != NULL);
    *rest = (struct slice){ rest->p + used, rest->len - used };
    if (w.len == 0)
        w.p = NULL; /* the header is not there */
    return w;
}

static int same(struct slice a, struct slice b)
{
    return !a.p == !b.p && a.len == b.len && (a.len == 0 || memcmp(a.p, b.p, a.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const vary[] = { "accept", "host" };
    if (size < 2 || size > 64 * 1024)
        return 0;
    char *exact = malloc(size - 1);
    check(exact != NULL);
    memcpy(exact, data + 1, size - 1);
    struct slice rest = { exact, size - 1 };
    const struct cache_route r = { .on = true,
                                   .ttl_s = data[0] & 1 ? 60 : 0,
                                   .ttl_max_s = data[0] & 2 ? 300 : 0,
                                   .ignore_cache_control = data[0] & 4,
                                   .public_with_auth = data[0] & 8,
                                   .name = "products",
                                   .vary = vary,
                                   .vary_n = data[0] >> 4 & 1 ? 2 : 0 };
    struct cache_request q = { .method = { "GET", 3 } }, other = q;
    q.path = line(&rest);
    q.query = line(&rest);
    other.path = line(&rest);
    other.query = line(&rest);
    for (size_t i = 0; i < 2; i++) {
        q.vary[i] = line(&rest);
        other.vary[i] = line(&rest);
    }
    q.cache_control = line(&rest);
    q.pragma = line(&rest);
    if (data[0] & 32)
        q.authorization = (struct slice){ "x", 1 };
    struct cache_answer a = { .status = 200 };
    a.cache_control = line(&rest);
    a.expires = line(&rest);
    a.date = line(&rest);
    a.age = line(&rest);
    a.vary = line(&rest);
    a.pragma = line(&rest);
    if (data[0] & 64)
        a.set_cookie = (struct slice){ "x", 1 };

    enum cache_outcome look = cache_may_look(&r, &q);
    const char *why = NULL;
    uint32_t ttl = cache_may_store(&r, &q, &a, NOW, &why);
    check((ttl > 0) == (why == NULL));
    check(ttl <= (r.ttl_max_s ? r.ttl_max_s : CACHE_TTL_MAX_S));
    check(ttl == 0 || (look != CACHE_BYPASS && !a.set_cookie.p));
    check(ttl == 0 || !q.authorization.p || r.public_with_auth);
    check(ttl == 0 || !a.vary.p || r.vary_n > 0 || !memchr(a.vary.p, '*', a.vary.len));

    struct buf one, two;
    buf_init(&one, 64 * 1024);
    buf_init(&two, 64 * 1024);
    cache_key(&one, &r, &q);
    cache_key(&two, &r, &other);
    bool alike = same(q.path, other.path) && same(q.query, other.query);
    for (size_t i = 0; i < r.vary_n; i++)
        alike = alike && same(q.vary[i], other.vary[i]);
    check(!one.failed && one.len <= CACHE_KEY_BYTES_MAX);
    check(alike == (one.len == two.len && memcmp(one.p, two.p, one.len) == 0));
    for (size_t i = 0; i < one.len; i++)
        check(one.p[i] > 0x20 && one.p[i] < 0x7f);
    buf_done(&one);
    buf_done(&two);
    free(exact);
    return 0;
}
