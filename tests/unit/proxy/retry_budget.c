/* The budget of retries: never more than its share of the requests, and what was saved up. */
#include "proxy/retry_budget.h"
#include "t.h"

T_TEST(a_fifth_when_everything_fails)
{
    struct retry_budget b;
    int retries = 0;
    retry_budget_init(&b, RETRY_PERCENT, RETRY_SAVED);
    for (int i = 0; i < 10000; i++) {
        retry_budget_request(&b);
        retries += retry_budget_take(&b);
    }
    T_OK(retries >= 2000 && retries <= 2000 + RETRY_SAVED, "%d", retries);
}

T_TEST(none_and_all)
{
    struct retry_budget b;
    retry_budget_init(&b, 0, 10);
    retry_budget_request(&b);
    T_OK(!retry_budget_take(&b));
    retry_budget_init(&b, 100, 1);
    for (int i = 0; i < 10; i++) {
        retry_budget_request(&b);
        T_OK(retry_budget_take(&b));
        T_OK(!retry_budget_take(&b));
    }
}

T_TEST(never_more_than_its_share)
{
    for (uint64_t round = 0; round < t_scale(200); round++) {
        struct retry_budget b;
        uint64_t requests = 0, retries = 0;
        const uint32_t percent = (uint32_t)t_random_below(101),
                       saved = (uint32_t)t_random_below(20);
        const uint64_t odds = 1 + t_random_below(9);
        retry_budget_init(&b, percent, saved);
        for (int i = 0; i < 2000; i++) {
            if (t_random_below(10) < odds) {
                retry_budget_request(&b);
                requests++;
            } else {
                retries += retry_budget_take(&b);
            }
            T_OK(retries * 100 <= requests * percent + saved * 100);
        }
    }
}
