/* The bounded set of firn verify --follow: exact while it has room, then it forgets its older half
 * and says how many. */
#include "cli/verify/seen.h"
#include "t.h"

#include <stdio.h>

enum { BIG = 64 << 20, SMALL = 256 << 10 };

static size_t text_of(uint64_t i, char out[256])
{
    return (size_t)snprintf(out, 256, "%" PRIu64, i * UINT64_C(0x9e3779b97f4a7c15));
}

T_TEST(every_id_is_new_once)
{
    struct seen s;
    uint64_t where, n = t_scale(200000);
    char id[256];
    T_EQ(seen_init(&s, BIG), 0);
    for (uint64_t i = 0; i < n; i++)
        T_EQ(seen_add(&s, id, text_of(i, id), i + 7, &where), 1, "%s", id);
    for (uint64_t i = 0; i < n; i++) {
        T_EQ(seen_add(&s, id, text_of(i, id), 0, &where), 0, "%s", id);
        T_EQ(where, i + 7, "%s", id);
    }
    T_EQ(s.forgotten, 0);
    seen_done(&s);
}

T_TEST(texts_differ_by_length_and_by_zeros)
{
    static const char bytes[255];
    struct seen s;
    uint64_t where;
    T_EQ(seen_init(&s, BIG), 0);
    for (size_t len = 0; len <= sizeof bytes; len++)
        T_EQ(seen_add(&s, bytes, len, len, &where), 1, "%zu zeros", len);
    for (size_t len = 0; len <= sizeof bytes; len++) {
        T_EQ(seen_add(&s, bytes, len, 0, &where), 0, "%zu zeros", len);
        T_EQ(where, len);
    }
    seen_done(&s);
}

/* Whatever was forgotten is among the oldest: what it says is new was either never added, or is
 * older than the IDs that it still has to know. */
T_TEST(when_full_it_forgets_the_older_half)
{
    struct seen s;
    uint64_t where, n = 40000, known = 0;
    char id[256];
    T_EQ(seen_init(&s, SMALL), 0);
    for (uint64_t i = 0; i < n; i++)
        T_EQ(seen_add(&s, id, text_of(i, id), i, &where), 1, "%s", id);
    T_OK(s.forgotten > 0);
    T_EQ(s.now.used + s.before.used + s.forgotten, n);
    for (uint64_t i = s.forgotten; i < n; i++, known++) {
        T_EQ(seen_add(&s, id, text_of(i, id), 0, &where), 0, "the newest are known: %s", id);
        T_EQ(where, i);
    }
    T_OK(known > 1000, "%" PRIu64, known);
    T_EQ(seen_add(&s, id, text_of(0, id), n, &where), 1, "the oldest is forgotten, and new again");
    T_EQ(seen_add(&s, id, text_of(0, id), 0, &where), 0);
    T_EQ(where, n);
    seen_done(&s);
}
