/* The cache in memory against a simple model; its bound; one fetch for many requests. */
#include "proxy/cache_memory.h"
#include "t.h"

#include <stdio.h>

static struct slice of(const char *text)
{
    return (struct slice){ text, strlen(text) };
}

static struct cache_memory *cache(size_t bytes, size_t entry)
{
    struct cache_memory *c;
    T_EQ(cache_memory_new(bytes, entry, (struct siphash_key){ t_random(), 1 }, &c), 0);
    return c;
}

static bool put(struct cache_memory *c, struct slice key, struct slice text, uint64_t ttl,
                uint64_t now)
{
    struct cache_value *v = cache_value_new(text.len);
    memcpy(v->p, text.p, text.len);
    bool ok = cache_memory_put(c, key, v, ttl, now);
    cache_value_unref(v);
    return ok;
}

static bool get(struct cache_memory *c, struct slice key, uint64_t now, struct slice *out)
{
    struct cache_value *v = cache_memory_get(c, key, now);
    if (v)
        *out = (struct slice){ v->p, v->len };
    return v != NULL;
}

/* Who sends a value keeps it, whatever the cache does. */
T_TEST(values_are_shared)
{
    struct cache_memory *c = cache(1 << 20, 1 << 16);
    T_OK(put(c, of("a"), of("abc"), 10, 0));
    struct cache_value *v = cache_value_ref(cache_memory_get(c, of("a"), 0));
    T_OK(put(c, of("a"), of("other"), 10, 0));
    cache_memory_free(c);
    T_OK(v->len == 3 && memcmp(v->p, "abc", 3) == 0);
    cache_value_unref(v);
    cache_value_unref(NULL);
}

T_TEST(kept_until_its_time)
{
    struct slice v;
    struct cache_memory *c = cache(1 << 20, 1 << 16);
    T_OK(!get(c, of("cache:products:123"), 0, &v));
    T_OK(put(c, of("cache:products:123"), of("abc"), 300000, 1000));
    T_OK(get(c, of("cache:products:123"), 300999, &v) && slice_is(v, "abc"));
    T_OK(!get(c, of("cache:products:12"), 1000, &v));
    T_OK(!get(c, of("cache:products:123"), 301000, &v));
    struct cache_memory_stats s;
    cache_memory_stats(c, &s);
    T_EQ(s.hits, 1);
    T_EQ(s.misses, 3);
    T_EQ(s.expired, 1);
    T_EQ(s.bytes + s.entries, 0);
    T_OK(put(c, of("a"), of("1"), 10, 0) && put(c, of("a"), of("2"), 10, 0));
    T_OK(get(c, of("a"), 0, &v) && slice_is(v, "2"));
    T_OK(cache_memory_drop(c, of("a")) && !cache_memory_drop(c, of("a")));
    T_OK(put(c, of(""), of(""), 10, 0) && get(c, of(""), 0, &v) && v.len == 0);
    cache_memory_free(c);
}

T_TEST(the_least_recently_used_goes)
{
    struct slice v;
    static char kib[900];
    struct cache_memory *c = cache(4096, 4096);
    const struct slice large = { kib, sizeof kib };
    for (int i = 0; i < 4; i++)
        T_OK(put(c, of((const char *[]){ "a", "b", "c", "d" }[i]), large, 10, 0));
    T_OK(get(c, of("a"), 0, &v));
    T_OK(put(c, of("e"), large, 10, 0));
    T_OK(!get(c, of("b"), 0, &v));
    T_OK(get(c, of("a"), 0, &v) && get(c, of("c"), 0, &v));
    cache_memory_free(c);
    c = cache(4096, 500);
    T_OK(!put(c, of("a"), large, 10, 0));
    cache_memory_free(c);
}

/* Against an array: what is there is right and fresh, and the bytes stay below the bound. */
T_TEST(laws)
{
    enum { KEYS = 50 };
    static char value[KEYS][300];
    for (uint64_t round = 0; round < t_scale(20); round++) {
        size_t len[KEYS] = { 0 };
        uint64_t until[KEYS] = { 0 }, now = 0;
        const size_t most = 2000 + t_random_below(20000);
        struct cache_memory *c = cache(most, 350);
        for (int i = 0; i < 5000; i++, now += t_random_below(3)) {
            struct cache_memory_stats s;
            struct slice v;
            char key[8];
            size_t k = t_random_below(KEYS);
            snprintf(key, sizeof key, "k%zu", k);
            if (t_random_below(2)) {
                len[k] = t_random_below(300);
                t_random_bytes(value[k], len[k]);
                until[k] = now + t_random_below(200);
                bool kept = put(c, of(key), (struct slice){ value[k], len[k] }, until[k] - now,
                                now);
                if (!kept && cache_memory_drop(c, of(key)))
                    until[k] = 0;
                if (!kept)
                    until[k] = 0;
            } else if (t_random_below(10) == 0) {
                (void)cache_memory_drop(c, of(key));
                until[k] = 0;
            } else if (get(c, of(key), now, &v)) {
                T_OK(now < until[k] && v.len == len[k] && memcmp(v.p, value[k], v.len) == 0);
            }
            cache_memory_stats(c, &s);
            T_OK(s.bytes <= most, "%llu of %zu", (unsigned long long)s.bytes, most);
        }
        cache_memory_clear(c);
        struct cache_memory_stats s;
        cache_memory_stats(c, &s);
        T_EQ(s.bytes + s.entries, 0);
        cache_memory_free(c);
    }
}

T_TEST(one_fetch_for_many)
{
    struct cache_flights *f;
    struct cache_waiter w[5];
    T_EQ(cache_flights_new(2, 3, (struct siphash_key){ 1, 2 }, &f), 0);
    T_EQ(cache_flight_begin(f, of("a"), &w[0]), FLIGHT_FETCH);
    for (int i = 1; i < 4; i++)
        T_EQ(cache_flight_begin(f, of("a"), &w[i]), FLIGHT_WAIT);
    T_EQ(cache_flight_begin(f, of("a"), &w[4]), FLIGHT_ALONE); /* too many wait */
    T_EQ(cache_flight_begin(f, of("b"), &w[0]), FLIGHT_FETCH);
    T_EQ(cache_flight_begin(f, of("c"), &w[0]), FLIGHT_ALONE); /* too many fetch */
    T_OK(cache_flight_leave(f, of("a"), &w[3]) && !cache_flight_leave(f, of("a"), &w[3]));
    T_OK(!cache_flight_leave(f, of("b"), &w[1]) && !cache_flight_leave(f, of("c"), &w[1]));
    T_EQ(cache_flight_begin(f, of("a"), &w[4]), FLIGHT_WAIT);
    struct cache_waiter *first = cache_flight_end(f, of("a"));
    T_OK(first == &w[1] && first->next == &w[2] && w[2].next == &w[4] && w[4].next == NULL);
    T_OK(cache_flight_end(f, of("b")) == NULL);
    T_EQ(cache_flight_begin(f, of("a"), &w[0]), FLIGHT_FETCH);
    cache_flights_free(f);
}
