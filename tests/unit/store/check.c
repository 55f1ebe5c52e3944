/* The checks that all engines share. */
#include "t.h"

#include "store/check.h"

#include <string.h>

static struct firn_slice text(const char *p)
{
    return firn_slice(p, p ? strlen(p) : 0);
}

T_TEST(byte_order)
{
    static const char *const rising[] = { "", "a", "a/", "a/b", "ab", "b", "\x80", "\xff" };
    for (size_t i = 0; i < T_LEN(rising); i++)
        for (size_t k = 0; k < T_LEN(rising); k++) {
            int c = store_compare(text(rising[i]), text(rising[k]));
            T_EQ((c > 0) - (c < 0), (i > k) - (i < k), "%zu %zu", i, k);
        }
    T_OK(store_begins(text("slot/1"), text("slot/")) && store_begins(text("a"), text("")));
    T_OK(store_begins(text("a"), text(NULL)) && !store_begins(text("a"), text("ab")));
}

T_TEST(writes)
{
    static char big[STORE_VALUE_MAX + 1];
    struct firn_diag d;
    struct firn_slice key = { big, STORE_KEY_MAX }, value = { big, STORE_VALUE_MAX };
    struct firn_slice long_key = { big, STORE_KEY_MAX + 1 }, long_value = { big, sizeof big };
    const struct {
        struct firn_cas want;
        int error;
    } some[] = {
        { { key, text(NULL), value }, 0 },
        { { key, value, text(NULL) }, 0 },
        { { key, value, text("") }, 0 },
        { { long_key, text(NULL), value }, FIRN_EINVAL },
        { { key, text(NULL), long_value }, FIRN_EINVAL },
        { { key, long_value, value }, FIRN_EINVAL },
        { { key, text(NULL), text(NULL) }, FIRN_EINVAL },
    };
    for (size_t i = 0; i < T_LEN(some); i++)
        T_EQ(store_check_writes(&some[i].want, 1, 1, &d), some[i].error, "%zu", i);
    T_EQ(store_check_writes(&some[0].want, 2, 1, &d), FIRN_EINVAL);
    T_EQ(store_check_writes(NULL, 0, 0, &d), 0);
    T_EQ(store_check_key(key, STORE_KEY_MAX, &d), 0);
    T_EQ(store_check_key(long_key, STORE_KEY_MAX, &d), FIRN_EINVAL);
}

T_TEST(unchanged)
{
    struct firn_record rec = { .len = 1, .value = "x" };
    T_OK(store_unchanged(0, &rec, text("x")) && store_unchanged(FIRN_ENOENT, &rec, text(NULL)));
    T_OK(!store_unchanged(0, &rec, text("y")) && !store_unchanged(0, &rec, text(NULL)));
    T_OK(!store_unchanged(FIRN_ENOENT, &rec, text("x")) &&
         !store_unchanged(FIRN_EIO, &rec, text("x")));
}
