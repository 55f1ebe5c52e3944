/* Which requests are tried again, and for how long. */
#include "coord/retry.h"

void retry_init(struct retry *r, uint64_t wait_ms)
{
    *r = (struct retry){ .wait_ms = wait_ms ? wait_ms : RETRY_WAIT_MS };
}

bool retry_may_heal(int error)
{
    return error == FIRN_EUNKNOWN || error == FIRN_EIO || error == FIRN_ECONFLICT ||
           error == FIRN_EAGAIN || error == FIRN_ENOMEM;
}

bool retry_counts(int error)
{
    return error != FIRN_EAGAIN && error != FIRN_ECONFLICT;
}

static bool hopeless(const struct retry *r, int error, uint64_t now_ms)
{
    return retry_counts(error) && r->failures > 0 && now_ms - r->failing_since_ms >= r->wait_ms;
}

void retry_round(struct retry *r, uint64_t now_ms)
{
    r->round_ms = now_ms;
}

bool retry_waits(const struct retry *r, const struct job *j, int error, uint64_t now_ms)
{
    bool waits = j->what == JOB_KEEP || (j->what == JOB_TAKE && !hopeless(r, error, now_ms));
    uint64_t took = r->round_ms > 0 && retry_counts(error) ? now_ms - r->round_ms : 0;
    return retry_may_heal(error) && now_ms + took < j->deadline_ms && waits;
}

bool retry_failed(struct retry *r, uint64_t now_ms)
{
    if (r->failures == 0)
        r->failing_since_ms = now_ms;
    if (r->failures++ > 0 && now_ms < r->logged_ms + RETRY_LOG_MS)
        return false;
    r->logged_ms = now_ms;
    return true;
}

uint64_t retry_succeeded(struct retry *r)
{
    uint64_t failures = r->failures;
    r->failures = 0;
    return failures;
}

bool retry_starved(struct retry *r, uint64_t now_ms)
{
    if (r->starved_logged_ms > 0 && now_ms < r->starved_logged_ms + RETRY_LOG_MS)
        return false;
    r->starved_logged_ms = now_ms;
    return true;
}
