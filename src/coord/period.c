/*
 * Dated sequences: when they begin anew, how many digits their numbers have, which registers count.
 */
#include "coord/period.h"
#include "firn/dated.h"

#include <stdio.h>
#include <stdlib.h>

enum { DAY_S = 86400 };

static const char *const reset_names[] = { "day", "month", "year" };

void dated_note_format(uint32_t reset, uint32_t digits, char out[RECORD_NOTE_MAX + 1])
{
    snprintf(out, RECORD_NOTE_MAX + 1, "dated:%s:%u", reset_names[reset], digits);
}

int dated_note_parse(const char *note, uint32_t *out_reset, uint32_t *out_digits)
{
    for (uint32_t i = 0; i < 3; i++) {
        char prefix[16];
        int n = snprintf(prefix, sizeof prefix, "dated:%s:", reset_names[i]);
        if (strncmp(note, prefix, (size_t)n) != 0)
            continue;
        uint32_t digits = (uint32_t)strtoul(note + n, NULL, 10);
        if (digits < 1 || digits > FIRN_DATED_DIGITS_MAX)
            return FIRN_EFORMAT;
        *out_reset = i;
        *out_digits = digits;
        return 0;
    }
    return FIRN_EFORMAT;
}

size_t period_name(const char *name, uint32_t period, char out[PERIOD_NAME_BUF])
{
    int n = snprintf(out, PERIOD_NAME_BUF, "%s%c%u", name, RECORD_INNER, period);
    return n > 0 && n <= RECORD_NAME_MAX ? (size_t)n : 0;
}

void period_walk_init(struct period_walk *w, uint32_t reset, uint32_t period, int64_t now_s,
                      uint64_t retention_s)
{
    w->reset = reset;
    w->last = period;
    w->at_s = now_s;
    w->since_s = now_s - (int64_t)retention_s;
}

int period_walk_next(struct period_walk *w, uint32_t *out_period)
{
    for (w->at_s -= DAY_S; w->at_s > w->since_s - DAY_S && w->at_s > 0; w->at_s -= DAY_S) {
        uint32_t period;
        int r = firn_dated_period(w->reset, w->at_s, &period);
        if (r != 0)
            return r;
        if (period == w->last)
            continue;
        *out_period = w->last = period;
        return 1;
    }
    return 0;
}
