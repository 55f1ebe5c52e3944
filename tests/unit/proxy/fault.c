/* Injected faults: shares, headers, and that a number decides alone. */
#include "proxy/fault.h"
#include "t.h"

static const struct slice none = { NULL, 0 };

T_TEST(shares)
{
    const struct fault_rule r = {
        .delay_ms = 100, .delay_share = 2500, .abort_status = 503, .abort_share = 1000
    };
    int delayed = 0, aborted = 0, both = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t random = t_random();
        struct fault f = fault_pick(&r, none, random), again = fault_pick(&r, none, random);
        T_OK(f.delay_ms == again.delay_ms && f.status == again.status);
        T_OK((f.delay_ms == 0 || f.delay_ms == 100) && (f.status == 0 || f.status == 503));
        delayed += f.delay_ms > 0;
        aborted += f.status > 0;
        both += f.delay_ms && f.status;
    }
    T_OK(delayed > 24000 && delayed < 26000, "%d", delayed); /* 7 standard deviations */
    T_OK(aborted > 9300 && aborted < 10700, "%d", aborted);
    T_OK(both > 2150 && both < 2850, "%d", both);
}

T_TEST(all_and_none)
{
    const struct fault_rule all = { .delay_ms = 5,
                                    .delay_share = FAULT_SHARE_ALL,
                                    .abort_status = 500,
                                    .abort_share = FAULT_SHARE_ALL };
    const struct fault_rule zero = { .delay_ms = 5, .abort_status = 500 };
    static const uint64_t edge[] = { 0, 1, UINT32_MAX, UINT64_C(0xffffffff00000000), UINT64_MAX };
    for (size_t i = 0; i < T_LEN(edge); i++) {
        struct fault f = fault_pick(&all, none, edge[i]), g = fault_pick(&zero, none, edge[i]);
        T_OK(f.delay_ms == 5 && f.status == 500 && g.delay_ms == 0 && g.status == 0);
    }
}

T_TEST(by_header)
{
    struct fault_rule r = { .abort_status = 418,
                            .abort_share = FAULT_SHARE_ALL,
                            .header = "x-fault" };
    const struct slice yes = { "yes", 3 }, empty = { "", 0 };
    T_EQ(fault_pick(&r, none, 0).status, 0);
    T_EQ(fault_pick(&r, empty, 0).status, 418);
    r.value = "yes";
    T_EQ(fault_pick(&r, yes, 0).status, 418);
    T_EQ(fault_pick(&r, empty, 0).status, 0);
}

T_TEST(rules_that_cannot_be_used)
{
    T_OK(!fault_rule_wrong(&(struct fault_rule){ 0 }));
    T_OK(fault_rule_wrong(&(struct fault_rule){ .abort_share = FAULT_SHARE_ALL + 1 }));
    T_OK(fault_rule_wrong(&(struct fault_rule){ .abort_status = 100 }));
    T_OK(fault_rule_wrong(&(struct fault_rule){ .delay_ms = FAULT_DELAY_MAX_MS + 1 }));
    T_OK(fault_rule_wrong(&(struct fault_rule){ .value = "x" }));
}
