/* The checker itself: histories whose answer is known, and random ones against trying all
 * orders. */
#include "linear.h"
#include "t.h"

enum { FEW = 7, MANY = 1000000 };

static enum lin_verdict check(const struct lin_op *op, size_t n)
{
    struct lin_found found;
    return lin_check(op, n, 0, MANY, &found);
}

T_TEST(linear_known_histories)
{
    static const struct lin_op plain[] = { { LIN_OK, 0, 1, 0, 1, 0 }, { LIN_READ, 1, 0, 2, 3, 0 } };
    static const struct lin_op stale[] = { { LIN_OK, 0, 1, 0, 1, 0 }, { LIN_READ, 0, 0, 2, 3, 0 } };
    static const struct lin_op while_written[] = { { LIN_OK, 0, 1, 0, 9, 0 },
                                                   { LIN_READ, 0, 0, 1, 2, 0 },
                                                   { LIN_READ, 1, 0, 3, 4, 0 } };
    static const struct lin_op back[] = { { LIN_OK, 0, 1, 0, 9, 0 },
                                          { LIN_READ, 1, 0, 1, 2, 0 },
                                          { LIN_READ, 0, 0, 3, 4, 0 } };
    static const struct lin_op late[] = { { LIN_UNKNOWN, 0, 1, 0, 0, 0 },
                                          { LIN_READ, 0, 0, 5, 6, 0 },
                                          { LIN_READ, 1, 0, 7, 8, 0 } };
    static const struct lin_op lost[] = { { LIN_UNKNOWN, 0, 1, 0, 0, 0 },
                                          { LIN_OK, 0, 2, 5, 6, 0 },
                                          { LIN_READ, 1, 0, 7, 8, 0 } };
    static const struct lin_op two_win[] = { { LIN_OK, 0, 1, 0, 9, 0 }, { LIN_OK, 0, 2, 0, 9, 0 } };
    static const struct lin_op conflict[] = { { LIN_CONFLICT, 0, 1, 0, 1, 0 } };
    static const struct lin_op told[] = { { LIN_CONFLICT, 0, 2, 0, 9, 0 },
                                          { LIN_OK, 0, 1, 3, 4, 0 } };
    T_EQ(check(plain, T_LEN(plain)), LIN_YES);
    T_EQ(check(stale, T_LEN(stale)), LIN_NO);
    T_EQ(check(while_written, T_LEN(while_written)), LIN_YES);
    T_EQ(check(back, T_LEN(back)), LIN_NO);
    T_EQ(check(late, T_LEN(late)), LIN_YES);
    T_EQ(check(lost, T_LEN(lost)), LIN_NO);
    T_EQ(check(two_win, T_LEN(two_win)), LIN_NO);
    T_EQ(check(conflict, T_LEN(conflict)), LIN_NO);
    T_EQ(check(told, T_LEN(told)), LIN_YES);
    T_EQ(check(NULL, 0), LIN_YES);
}

/* Every order, without any cleverness. */
static bool any_order(const struct lin_op *op, size_t n, unsigned done, uint32_t value)
{
    bool complete = true;
    for (size_t i = 0; i < n; i++)
        complete &= (done >> i & 1) || op[i].kind == LIN_UNKNOWN;
    if (complete)
        return true;
    for (size_t i = 0; i < n; i++) {
        bool first = !(done >> i & 1);
        for (size_t k = 0; k < n && first; k++) /* no other call returned before it began */
            first = done >> k & 1 || op[k].kind == LIN_UNKNOWN || op[k].ret >= op[i].call;
        if (!first || (value == op[i].old) != (op[i].kind != LIN_CONFLICT))
            continue;
        bool writes = op[i].kind == LIN_OK || op[i].kind == LIN_UNKNOWN;
        if (any_order(op, n, done | 1u << i, writes ? op[i].new : value))
            return true;
    }
    return false;
}

T_TEST(linear_agrees_with_all_orders)
{
    unsigned yes = 0, no = 0;
    for (uint64_t round = 0; round < t_scale(60000); round++) {
        struct lin_op op[FEW];
        size_t n = 1 + t_random_below(FEW);
        for (size_t i = 0; i < n; i++) {
            op[i] = (struct lin_op){ .kind = (enum lin_kind)t_random_below(4),
                                     .old = (uint32_t)t_random_below(3),
                                     .new = (uint32_t)t_random_below(3),
                                     .call = t_random_below(12) };
            op[i].ret = op[i].call + 1 + t_random_below(8);
        }
        bool right = any_order(op, n, 0, 0);
        T_EQ(check(op, n), right ? LIN_YES : LIN_NO, "round %" PRIu64, round);
        yes += right;
        no += !right;
    }
    T_OK(yes > 100 && no > 100);
}
