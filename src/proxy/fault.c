/* Draws two independent shares out of one random number: its halves. */
#include "proxy/fault.h"

#include <string.h>

const char *fault_rule_wrong(const struct fault_rule *r)
{
    if (r->delay_share > FAULT_SHARE_ALL || r->abort_share > FAULT_SHARE_ALL)
        return "a share must be 0 to 100 percent";
    if (r->delay_ms > FAULT_DELAY_MAX_MS)
        return "a delay may be at most 10 minutes";
    if (r->abort_status != 0 && (r->abort_status < 200 || r->abort_status > 599))
        return "the status must be 200 to 599";
    return r->value && !r->header ? "a value needs the name of its header" : NULL;
}

static bool hit(uint32_t random, uint32_t share)
{
    return ((uint64_t)random * FAULT_SHARE_ALL >> 32) < share;
}

struct fault fault_pick(const struct fault_rule *r, struct slice header, uint64_t random)
{
    struct fault f = { 0, 0 };
    if (r->header && (!header.p || (r->value && !slice_is(header, r->value))))
        return f;
    if (hit((uint32_t)random, r->delay_share))
        f.delay_ms = r->delay_ms;
    if (hit((uint32_t)(random >> 32), r->abort_share))
        f.status = r->abort_status;
    return f;
}
