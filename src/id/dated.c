/*
 * Date-prefixed counters. A period is its prefix read as a number, so that later periods are larger
 * and no calendar is needed to compare them; what resets when is one row of a table each.
 */
#include "firn/dated.h"

#include <stdbool.h>

#include "id/civil.h"

static const struct {
    uint32_t prefix_len; /* digits before the '-' */
    uint32_t cut;        /* yyyymmdd / cut is the period */
    uint32_t first;      /* what a period lacks to its first day, as yyyymmdd */
} resets[] = {
    [FIRN_DATED_DAY] = { 8, 1, 0 },
    [FIRN_DATED_MONTH] = { 6, 100, 1 },
    [FIRN_DATED_YEAR] = { 4, 10000, 101 },
};

enum { RESETS = sizeof resets / sizeof resets[0] };

static bool period_valid(uint32_t reset, uint32_t period)
{
    if (reset >= RESETS || period > 99991231 / resets[reset].cut)
        return false;
    uint32_t day = period * resets[reset].cut + resets[reset].first;
    return firn__date_valid(
        (struct firn__date){ (int32_t)(day / 10000), day / 100 % 100, day % 100 });
}

static bool dated_valid(const struct firn_dated *id)
{
    return period_valid(id->reset, id->period) && id->digits <= FIRN_DATED_DIGITS_MAX &&
           id->number >= 1 && id->number <= FIRN_DATED_NUMBER_MAX;
}

int firn_dated_parse(const char *p, size_t len, unsigned digits, struct firn_dated *out)
{
    if (!p || !out || digits > FIRN_DATED_DIGITS_MAX)
        return FIRN_EINVAL;

    uint32_t reset = 0;
    while (reset < RESETS &&
           !(len > resets[reset].prefix_len && p[resets[reset].prefix_len] == '-'))
        reset++;
    if (reset == RESETS)
        return FIRN_EFORMAT;
    uint32_t period;
    size_t prefix_len = resets[reset].prefix_len;
    if (!firn__digits_parse(p, prefix_len, &period) || !period_valid(reset, period))
        return FIRN_EFORMAT;

    p += prefix_len + 1;
    len -= prefix_len + 1;
    if (len < 1 || len < digits || len > FIRN_DATED_DIGITS_MAX ||
        (digits && len > digits && p[0] == '0'))
        return FIRN_EFORMAT;
    uint64_t number = 0;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(unsigned char)p[i] - '0';
        if (digit > 9)
            return FIRN_EFORMAT;
        number = number * 10 + digit;
    }
    if (number == 0)
        return FIRN_EFORMAT;
    *out = (struct firn_dated){
        .reset = reset, .period = period, .digits = (uint32_t)len, .number = number
    };
    return 0;
}

size_t firn_dated_format(const struct firn_dated *id, char out[FIRN_DATED_TEXT_BUF])
{
    out[0] = '\0';
    if (!dated_valid(id))
        return 0;

    size_t width = 1;
    for (uint64_t above = 10; id->number >= above; above *= 10)
        width++;
    size_t digits = id->digits ? id->digits : FIRN_DATED_DIGITS;
    if (width < digits)
        width = digits;
    size_t prefix_len = resets[id->reset].prefix_len;
    firn__digits_format(id->period, prefix_len, out);
    out[prefix_len] = '-';
    firn__digits_format(id->number, width, out + prefix_len + 1);
    out[prefix_len + 1 + width] = '\0';
    return prefix_len + 1 + width;
}

int firn_dated_cmp(const struct firn_dated *a, const struct firn_dated *b)
{
    if (a->period != b->period)
        return a->period < b->period ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

int firn_dated_period(unsigned reset, int64_t unix_s, uint32_t *out)
{
    if (!out || reset >= RESETS)
        return FIRN_EINVAL;
    if (unix_s < FIRN__UNIX_S_MIN || unix_s > FIRN__UNIX_S_MAX)
        return FIRN_ERANGE;
    struct firn__date date = firn__date_from_days(firn__unix_to_days(unix_s));
    *out = ((uint32_t)date.year * 10000 + date.month * 100 + date.day) / resets[reset].cut;
    return 0;
}

int firn_dated_gen_init(struct firn_dated_gen *g, unsigned reset, unsigned digits)
{
    if (!g || reset >= RESETS || digits > FIRN_DATED_DIGITS_MAX)
        return FIRN_EINVAL;
    *g = (struct firn_dated_gen){ .last = { .reset = reset,
                                            .digits = digits ? digits : FIRN_DATED_DIGITS } };
    return 0;
}

int firn_dated_gen_resume(struct firn_dated_gen *g, const struct firn_dated *last)
{
    if (!g || !last || !dated_valid(last))
        return FIRN_EINVAL;
    g->last = *last;
    return 0;
}

int firn_dated_next(struct firn_dated_gen *g, int64_t unix_s, struct firn_dated *out)
{
    if (!g || !out)
        return FIRN_EINVAL;
    struct firn_dated next = g->last;
    uint32_t period;
    int r = firn_dated_period(next.reset, unix_s, &period);
    if (r != 0)
        return r;

    if (period > next.period) {
        next.period = period;
        next.number = 0;
    }
    if (next.number >= FIRN_DATED_NUMBER_MAX)
        return FIRN_EOVERFLOW;
    next.number++;
    g->last = *out = next;
    return 0;
}
