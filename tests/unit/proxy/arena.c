/* Memory of a request: alignment, zeroes, and the bound. */
#include "proxy/arena.h"
#include "t.h"

T_TEST(arena_gives_zeroes_within_its_bound)
{
    struct arena a = { .max = 100000 };
    size_t total = 0;
    for (size_t n = 1; total + n <= 100000; n += 7) {
        unsigned char *p = arena_get(&a, n);
        T_OK(p && (uintptr_t)p % _Alignof(max_align_t) == 0);
        for (size_t i = 0; i < n; i++)
            T_EQ(p[i], 0);
        memset(p, 0xff, n);
        total += n;
    }
    T_OK(!arena_get(&a, 100000) && a.failed);
    T_OK(!arena_get(&a, 1)); /* it stays so */
    arena_done(&a);
    T_OK(!a.failed && arena_get(&a, 70000)); /* larger than a block */
    struct slice s = arena_copy(&a, (struct slice){ "abc", 2 });
    T_STR(s.p, "ab");
    arena_done(&a);
    arena_done(&a);
}
