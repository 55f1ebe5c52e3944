/* The registers in memory: random writes beside a plain array that is searched from end to end. */
#include "t.h"

#include "store/map.h"

#include <string.h>

enum { KEYS = 40, VALUE_LEN = 3 };

struct model {
    bool there[KEYS];
    char value[KEYS][VALUE_LEN];
};

static struct firn_slice key_of(unsigned k, char out[8])
{
    out[0] = (char)('a' + k % 3);
    out[1] = (char)('0' + k / 3);
    return firn_slice(out, k % 5 == 0 && k < 3 ? 1 : 2);
}

struct seen {
    char last[8];
    size_t last_len, n;
};

static int see(void *user, struct firn_slice key, struct firn_slice value)
{
    struct seen *s = user;
    size_t n = key.len < s->last_len ? key.len : s->last_len;
    int c = memcmp(s->last, key.p, n);
    T_OK(s->n == 0 || c < 0 || (c == 0 && s->last_len < key.len), "keys rise");
    T_EQ(value.len, VALUE_LEN);
    memcpy(s->last, key.p, key.len);
    s->last_len = key.len;
    s->n++;
    return 0;
}

T_TEST(agrees_with_a_plain_array)
{
    struct map m = { 0 };
    struct model plain = { { false }, { { 0 } } };
    for (size_t round = 0; round < t_scale(20000); round++) {
        unsigned k = (unsigned)t_random_below(KEYS);
        char name[8], fresh[VALUE_LEN], other[VALUE_LEN] = { 'n', 'o', 'n' };
        t_random_bytes(fresh, sizeof fresh);
        bool expects = t_random_below(2), removes = expects && t_random_below(2);
        bool right = t_random_below(4) > 0;
        struct firn_cas want = { key_of(k, name),
                                 { expects ? right ? plain.value[k] : other : NULL, VALUE_LEN },
                                 { removes ? NULL : fresh, removes ? 0 : VALUE_LEN } };
        bool match = expects ? plain.there[k] && memcmp(want.old.p, plain.value[k], VALUE_LEN) == 0
                             : !plain.there[k];
        int result = 1;
        T_EQ(map_cas(&m, &want, 1, &result), 0);
        T_EQ(result, match ? 0 : FIRN_ECONFLICT);
        if (match) {
            plain.there[k] = !removes;
            memcpy(plain.value[k], fresh, VALUE_LEN);
        }
        struct firn_record rec;
        T_EQ(map_read(&m, key_of(k, name), &rec), plain.there[k] ? 0 : FIRN_ENOENT);
        T_OK(!plain.there[k] || memcmp(rec.value, plain.value[k], VALUE_LEN) == 0);
    }
    size_t there = 0;
    for (unsigned k = 0; k < KEYS; k++)
        there += plain.there[k];
    struct seen s = { .n = 0 };
    T_EQ(map_scan(&m, firn_slice("", 0), firn_slice(NULL, 0), see, &s), 0);
    T_EQ(s.n, there);
    map_done(&m);
    map_done(&m);
}

T_TEST(bounds)
{
    static char big[STORE_VALUE_MAX + 1];
    struct map m = { 0 };
    int result;
    struct firn_cas want = { { big, MAP_KEY_MAX }, { NULL, 0 }, { big, STORE_VALUE_MAX } };
    T_EQ(map_cas(&m, &want, 1, &result), 0);
    want.key.len++;
    T_EQ(map_cas(&m, &want, 1, &result), FIRN_EINVAL);
    want.key.len = 1;
    want.value.len++;
    T_EQ(map_cas(&m, &want, 1, &result), FIRN_EINVAL);
    T_EQ(map_cas(&m, NULL, 0, NULL), 0);
    T_EQ(m.count, 1);
    map_done(&m);
}
