/* Values of the cache: what is written reads back, and nothing else does. */
#include "proxy/cached.h"
#include "t.h"

#include <stdlib.h>

static struct slice of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static const struct cached one = { .identity = { "products http shop.example", 26 },
                                   .status = 200,
                                   .stored_ms = 1800000000000,
                                   .until_ms = 1800000300000,
                                   .age_s = 7,
                                   .lines = { "A: b\r\nC:\r\n", 10 },
                                   .body = { "body\n\0x", 7 } };

static struct slice slice_of_value(const struct cache_value *v)
{
    return (struct slice){ v->p, v->len };
}

T_TEST(reads_what_it_wrote)
{
    struct cached m, empty = { .status = 204, .until_ms = 1 };
    struct cache_value *v = cached_write(&one);
    T_EQ(cached_read(slice_of_value(v), &m), 0);
    T_OK(m.status == 200 && m.stored_ms == one.stored_ms && m.until_ms == one.until_ms &&
         m.age_s == 7);
    T_OK(m.identity.len == 26 && memcmp(m.identity.p, one.identity.p, 26) == 0);
    T_OK(slice_is(m.lines, one.lines.p));
    T_OK(m.body.len == 7 && memcmp(m.body.p, one.body.p, 7) == 0);
    cache_value_unref(v);
    v = cached_write(&empty);
    T_EQ(cached_read(slice_of_value(v), &m), 0);
    T_OK(m.status == 204 && m.body.len == 0 && m.lines.len == 0);
    cache_value_unref(v);
}

/* Every value that is shorter, longer or differs in one bit. */
T_TEST(refuses_others)
{
    struct cached m;
    struct cache_value *v = cached_write(&one);
    char *copy = malloc(v->len + 1);
    for (size_t n = 0; n < v->len; n++)
        T_EQ(cached_read((struct slice){ v->p, n }, &m), FIRN_EFORMAT, "%zu bytes", n);
    memcpy(copy, v->p, v->len);
    copy[v->len] = 'x';
    T_EQ(cached_read((struct slice){ copy, v->len + 1 }, &m), FIRN_EFORMAT);
    for (size_t bit = 0; bit < 8 * v->len; bit++) {
        copy[bit / 8] = (char)(copy[bit / 8] ^ 1 << bit % 8);
        T_EQ(cached_read((struct slice){ copy, v->len }, &m), FIRN_EFORMAT, "bit %zu", bit);
        copy[bit / 8] = v->p[bit / 8];
    }
    T_EQ(cached_read(of("firn-cache 2 0123456789abcdef\nxyz"), &m), FIRN_EFORMAT);
    T_EQ(cached_read(of(""), &m), FIRN_EFORMAT);
    free(copy);
    cache_value_unref(v);
}

/* With the right checksum, too: numbers and lines are looked at. */
T_TEST(refuses_nonsense)
{
    struct cached m, bad = one;
    bad.lines = of("no line\r\n");
    struct cache_value *v = cached_write(&bad);
    T_EQ(cached_read(slice_of_value(v), &m), FIRN_EFORMAT);
    cache_value_unref(v);
    bad = one;
    bad.status = 101;
    v = cached_write(&bad);
    T_EQ(cached_read(slice_of_value(v), &m), FIRN_EFORMAT);
    cache_value_unref(v);
}

T_TEST(freshness)
{
    T_OK(cached_fresh(&one, one.stored_ms) && cached_fresh(&one, one.until_ms - 1));
    T_OK(!cached_fresh(&one, one.until_ms));
    T_OK(cached_fresh(&one, one.stored_ms - 10000) && !cached_fresh(&one, one.stored_ms - 10001));
    T_EQ(cached_age_s(&one, one.stored_ms + 2999), 9);
    T_EQ(cached_age_s(&one, one.stored_ms - 5000), 7);
    struct cached forever = one;
    forever.until_ms = INT64_MAX;
    T_OK(!cached_fresh(&forever, one.stored_ms));
}

T_TEST(etags)
{
    static const struct {
        const char *list, *etag;
        bool in;
    } row[] = {
        { "\"a\"", "\"a\"", true },     { "W/\"a\"", "\"a\"", true },
        { "\"a\"", "W/\"a\"", true },   { "\"b\", \"a,c\" ,W/\"a\"", "\"a\"", true },
        { "*", "\"a\"", true },         { "\"b\"", "\"a\"", false },
        { "\"ab\"", "\"a\"", false },   { "a", "\"a\"", false },
        { "\"b\", a", "\"a\"", false }, { "\"a", "\"a\"", false },
        { "", "\"a\"", false },
    };
    for (size_t i = 0; i < T_LEN(row); i++)
        T_EQ(cached_etag_in(of(row[i].list), of(row[i].etag)), row[i].in, "%s", row[i].list);
    T_OK(!cached_etag_in(of("*"), (struct slice){ NULL, 0 }));
}
