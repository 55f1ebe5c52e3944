/*
 * The breaker's steps. The window is a ring of slices, so that counting costs the same however many
 * requests there are; its length is therefore exact to a tenth.
 */
#include "proxy/breaker.h"

#include <stddef.h>
#include <string.h>

const char *breaker_rules_wrong(const struct breaker_rules *r)
{
    if (r->error_percent > 100)
        return "error_percent must be 0 to 100";
    if (r->consecutive == 0 && r->error_percent == 0)
        return "nothing opens the breaker: set consecutive or error_percent";
    if (r->error_percent > 0 && (r->volume_min == 0 || r->window_ms < BREAKER_SLICES))
        return "error_percent needs volume_min of at least 1 and a window of at least 10 ms";
    if (r->open_ms == 0 || r->open_max_ms < r->open_ms)
        return "open_ms must be at least 1 and open_max_ms not below it";
    return r->probes == 0 || r->probe_ms == 0 ? "probes and probe_ms must be at least 1" : NULL;
}

const char *breaker_state_name(enum breaker_state s)
{
    static const char *const name[] = { "closed", "open", "half_open" };
    return name[s];
}

static void enter(struct breaker *b, enum breaker_state s)
{
    b->state = s;
    b->era++;
    b->in_a_row = 0;
    b->probe_end_ms = 0;
    memset(b->good, 0, sizeof b->good);
    memset(b->bad, 0, sizeof b->bad);
}

static void open_it(struct breaker *b, const struct breaker_rules *r, uint64_t now_ms)
{
    uint64_t ms = (uint64_t)r->open_ms << (b->reopened < 16 ? b->reopened : 16);
    enter(b, BREAKER_OPEN);
    b->opened++;
    b->reopened++;
    b->retry_ms = now_ms + (ms < r->open_max_ms ? ms : r->open_max_ms);
}

struct breaker_pass breaker_ask(struct breaker *b, const struct breaker_rules *r, uint64_t now_ms)
{
    if (b->state == BREAKER_OPEN && now_ms >= b->retry_ms)
        enter(b, BREAKER_HALF_OPEN);
    if (b->state == BREAKER_HALF_OPEN && b->probe_end_ms && now_ms >= b->probe_end_ms)
        open_it(b, r, now_ms); /* no answer is an answer */
    if (b->state == BREAKER_OPEN || b->probe_end_ms)
        return (struct breaker_pass){ .pass = false };
    if (b->state == BREAKER_HALF_OPEN) {
        b->probe_end_ms = now_ms + r->probe_ms;
        b->probe++;
    }
    return (struct breaker_pass){ true, b->state == BREAKER_HALF_OPEN, b->era, b->probe };
}

/* Makes the slice of this moment the newest and forgets those that left the window. */
static size_t slice_of(struct breaker *b, const struct breaker_rules *r, uint64_t now_ms)
{
    const uint32_t slice_ms = r->window_ms < BREAKER_SLICES ? 1 : r->window_ms / BREAKER_SLICES;
    const uint64_t at = now_ms / slice_ms;
    for (uint64_t n = b->slice_at + 1; n <= at && n <= b->slice_at + BREAKER_SLICES; n++)
        b->good[n % BREAKER_SLICES] = b->bad[n % BREAKER_SLICES] = 0;
    if (at > b->slice_at)
        b->slice_at = at;
    return b->slice_at % BREAKER_SLICES;
}

static bool too_many(const struct breaker *b, const struct breaker_rules *r)
{
    uint64_t good = 0, bad = 0;
    if (r->consecutive && b->in_a_row >= r->consecutive)
        return true;
    for (int i = 0; i < BREAKER_SLICES; i++) {
        good += b->good[i];
        bad += b->bad[i];
    }
    return r->error_percent && good + bad >= r->volume_min &&
           bad * 100 >= (good + bad) * r->error_percent;
}

static void answer_closed(struct breaker *b, const struct breaker_rules *r, bool good,
                          uint64_t now_ms)
{
    size_t slice = slice_of(b, r, now_ms);
    if (good) {
        b->good[slice]++;
        b->in_a_row = 0;
        return;
    }
    b->bad[slice]++;
    b->in_a_row++;
    if (too_many(b, r))
        open_it(b, r, now_ms);
}

static void answer_probe(struct breaker *b, const struct breaker_rules *r, bool good,
                         uint64_t now_ms)
{
    b->probe_end_ms = 0;
    if (!good) {
        open_it(b, r, now_ms);
    } else if (++b->in_a_row >= r->probes) {
        enter(b, BREAKER_CLOSED);
        b->reopened = 0;
    }
}

void breaker_answer(struct breaker *b, const struct breaker_rules *r, struct breaker_pass pass,
                    enum breaker_outcome how, uint64_t now_ms)
{
    if (!pass.pass || pass.era != b->era)
        return;
    if (b->state == BREAKER_CLOSED) {
        if (how != BREAKER_UNKNOWN)
            answer_closed(b, r, how == BREAKER_GOOD, now_ms);
        return;
    }
    if (pass.probe != b->probe)
        return;
    if (how == BREAKER_UNKNOWN)
        b->probe_end_ms = 0; /* the next request is the probe */
    else
        answer_probe(b, r, how == BREAKER_GOOD, now_ms);
}

uint64_t breaker_retry_ms(const struct breaker *b, uint64_t now_ms)
{
    uint64_t at = b->state == BREAKER_OPEN ? b->retry_ms : b->probe_end_ms;
    return at > now_ms ? at - now_ms : 1;
}
