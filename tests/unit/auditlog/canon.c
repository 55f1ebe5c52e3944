/* One form of JSON: what jsonb holds equal has one, what it does not has another. */
#include "auditlog/canon.h"
#include "t.h"

#include <stdio.h>

static struct canon canon;

static int form(const char *json, size_t len, struct buf *out)
{
    buf_done(out);
    buf_init(out, 1 << 20);
    return canon_json(&canon, (struct slice){ json, len }, out);
}

static void equal(const char *a, const char *b)
{
    struct buf x = { 0 }, y = { 0 };
    T_EQ(form(a, strlen(a), &x), 0, "%s", a);
    T_EQ(form(b, strlen(b), &y), 0, "%s", b);
    T_OK(x.len == y.len && memcmp(x.p, y.p, x.len) == 0, "%s and %s", a, b);
    buf_done(&x);
    buf_done(&y);
}

static void differ(const char *a, const char *b)
{
    struct buf x = { 0 }, y = { 0 };
    T_EQ(form(a, strlen(a), &x), 0, "%s", a);
    T_EQ(form(b, strlen(b), &y), 0, "%s", b);
    T_OK(x.len != y.len || memcmp(x.p, y.p, x.len) != 0, "%s and %s", a, b);
    buf_done(&x);
    buf_done(&y);
}

/* Each pair is a text and what PostgreSQL 15 makes of it as jsonb, read back as text. */
T_TEST(what_jsonb_holds_equal)
{
    static const char *const same[][2] = {
        { "{}", " { } " },
        { "[1,2]", "[1, 2]" },
        { "{\"b\":1,\"a\":2}", "{\"a\": 2, \"b\": 1}" },
        { "{\"aa\":1,\"b\":2}", "{\"b\": 2, \"aa\": 1}" },
        { "{\"a\":1,\"a\":2}", "{\"a\": 2}" },
        { "{\"a\":{\"c\":1,\"c\":3},\"a\":{\"z\":[],\"d\":{}}}",
          "{\"a\": {\"d\": {}, \"z\": []}}" },
        { "1e2", "100" },
        { "1.5e1", "15" },
        { "1.50", "1.5" },
        { "-0", "0" },
        { "0.0", "0" },
        { "-0.00e5", "0" },
        { "1E+2", "100" },
        { "1e-3", "0.001" },
        { "120e-1", "12" },
        { "1e00002", "100" },
        { "123456789012345678901234567890", "1.2345678901234567890123456789e29" },
        { "\"\\u0041\\/\\n\"", "\"A/\\n\"" },
        { "\"\\u00e9\\ud83d\\ude00\"", "\"é😀\"" },
        { "{\"\\u0061\":1}", "{\"a\":1}" },
        { "{\"a\":1,\"\\u0061\":2}", "{\"a\":2}" },
        { "[true,false,null]", "[true, false, null]" },
    };
    for (size_t i = 0; i < T_LEN(same); i++)
        equal(same[i][0], same[i][1]);
    canon_done(&canon);
}

T_TEST(what_it_tells_apart)
{
    static const char *const other[][2] = {
        { "1", "\"1\"" },
        { "[]", "{}" },
        { "[1,2]", "[2,1]" },
        { "[[1],2]", "[1,[2]]" },
        { "null", "\"\"" },
        { "true", "false" },
        { "1", "-1" },
        { "1", "10" },
        { "1.5", "15" },
        { "{\"a\":1}", "{\"a\":2}" },
        { "{\"a\":1}", "{\"b\":1}" },
        { "{\"a\":{}}", "{\"a\":[]}" },
        { "\"a\"", "\"A\"" },
        { "{\"a\":\"b\"}", "[\"a\",\"b\"]" },
        { "{\"a\":1,\"a\":2}", "{\"a\":1}" },
        { "0.1", "0.10000000000000000001" },
        { "1e308", "1e307" },
    };
    for (size_t i = 0; i < T_LEN(other); i++)
        differ(other[i][0], other[i][1]);
    canon_done(&canon);
}

T_TEST(the_bytes)
{
    static const char json[] = "{\"bb\":[-120,\"x\"],\"a\":null}";
    static const char want[] = "ok\0\0\0\1azk\0\0\0\2bban\0\0\0\5-12e1s\0\0\0\1xee";
    struct buf out = { 0 };
    T_EQ(form(json, sizeof json - 1, &out), 0);
    T_EQ(out.len, sizeof want - 1);
    T_OK(memcmp(out.p, want, out.len) == 0);
    buf_done(&out);
    canon_done(&canon);
}

T_TEST(what_is_refused_leaves_nothing)
{
    static const char *const bad[] = { "",
                                       " ",
                                       "{",
                                       "{\"a\"}",
                                       "[1,]",
                                       "01",
                                       "1 2",
                                       "\"\\u0000\"",
                                       "nul",
                                       "1e9999999999",
                                       "\"\xff\"",
                                       "{\"a\":1,}",
                                       "[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]" };
    struct buf out = { .max = 1 << 20 };
    buf_add(&out, "before", 6);
    for (size_t i = 0; i < T_LEN(bad); i++) {
        T_EQ(canon_json(&canon, (struct slice){ bad[i], strlen(bad[i]) }, &out), FIRN_EFORMAT, "%s",
             bad[i]);
        T_EQ(out.len, 6);
        T_OK(!out.failed);
    }
    struct buf small = { .max = 300 };
    char digits[1000];
    memset(digits, '1', sizeof digits);
    T_EQ(canon_json(&canon, (struct slice){ digits, sizeof digits }, &small), FIRN_ENOMEM);
    T_EQ(small.len, 0);
    buf_done(&small);
    buf_done(&out);
    canon_done(&canon);
}

/* --- any value, written in two ways --- */

struct pen {
    char p[65536];
    size_t len;
};

static void put(struct pen *w, const char *s)
{
    size_t n = strlen(s);
    T_OK(w->len + n < sizeof w->p);
    memcpy(w->p + w->len, s, n + 1);
    w->len += n;
}

static void space(struct pen *w)
{
    static const char *const s[] = { "", " ", "\n", "\t ", "\r\n" };
    put(w, s[t_random_below(T_LEN(s))]);
}

/* A letter of the name is escaped at random. */
static void put_string(struct pen *w, uint64_t n, bool other)
{
    char c[16];
    put(w, "\"");
    for (; n > 0; n /= 26) {
        snprintf(c, sizeof c, other && t_random_below(3) == 0 ? "\\u%04x" : "%c",
                 (unsigned)('a' + n % 26));
        put(w, c);
    }
    put(w, "\"");
}

static void put_number(struct pen *w, uint64_t n, bool other)
{
    char text[64];
    if (!other || n % 3 == 0)
        snprintf(text, sizeof text, "%s%llu", n % 2 ? "-" : "", (unsigned long long)n);
    else if (n % 3 == 1)
        snprintf(text, sizeof text, "%s%llu.000e+00", n % 2 ? "-" : "", (unsigned long long)n);
    else
        snprintf(text, sizeof text, "%s%llu0E-1", n % 2 ? "-" : "", (unsigned long long)n);
    put(w, text);
}

static uint64_t next(uint64_t *s)
{
    *s = *s * UINT64_C(6364136223846793005) + 1442695040888963407;
    return *s >> 33;
}

/* The value that `s` stands for; `other` writes it another way. */
static void put_value(struct pen *w, uint64_t s, int depth, bool other)
{
    static const char *const words[] = { "true", "false", "null" };
    uint64_t kind = next(&s) % (depth < 4 ? 7 : 3), n = next(&s) % 6;
    if (other)
        space(w);
    if (kind == 0) {
        put(w, words[next(&s) % 3]);
    } else if (kind == 1) {
        put_number(w, next(&s), other);
    } else if (kind == 2) {
        put_string(w, next(&s), other);
    } else if (kind < 5) {
        put(w, "[");
        for (uint64_t i = 0; i < n; i++) {
            put(w, i ? "," : "");
            put_value(w, next(&s) + i, depth + 1, other);
        }
        put(w, "]");
    } else {
        uint64_t at = other ? t_random_below(n + 1) : 0;
        put(w, "{");
        for (uint64_t i = 0; i < n;
             i++) { /* in another order; one of them first with a wrong value */
            uint64_t k = (i + at) % n;
            put(w, i ? "," : "");
            if (other && t_random_below(4) == 0) {
                put_string(w, k * k * 700 + 1, other);
                put(w, ":\"wrong\",");
            }
            put_string(w, k * k * 700 + 1, other);
            if (other)
                space(w);
            put(w, ":");
            put_value(w, s + k * 77, depth + 1, other);
        }
        put(w, "}");
    }
    if (other)
        space(w);
}

T_TEST(two_ways_of_one_value)
{
    static struct pen a, b, c;
    struct buf x = { 0 }, y = { 0 }, z = { 0 };
    for (uint64_t i = 0; i < t_scale(20000); i++) {
        uint64_t seed = t_random();
        a.len = b.len = c.len = 0;
        put_value(&a, seed, 0, false);
        put_value(&b, seed, 0, true);
        put_value(&c, t_random(), 0, false);
        T_EQ(form(a.p, a.len, &x), 0, "%s", a.p);
        T_EQ(form(b.p, b.len, &y), 0, "%s", b.p);
        T_OK(x.len == y.len && memcmp(x.p, y.p, x.len) == 0, "%s and %s", a.p, b.p);
        T_EQ(form(c.p, c.len, &z), 0, "%s", c.p);
        bool same = a.len == c.len && memcmp(a.p, c.p, a.len) == 0;
        T_EQ(x.len == z.len && memcmp(x.p, z.p, x.len) == 0, same, "%s and %s", a.p, c.p);
    }
    buf_done(&x);
    buf_done(&y);
    buf_done(&z);
    canon_done(&canon);
}
