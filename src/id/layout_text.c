/*
 * The text form of layouts (grammar in firn/layout.h). The parser walks the text once and keeps its
 * place, so that every error names the column at which it was found.
 * Tested in tests/unit/id/layout.c.
 */
#include "firn/layout.h"
#include "id/civil.h"
#include "id/diag.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_EPOCH_MS INT64_C(1609459200000) /* 2021-01-01T00:00:00Z */

enum { ITEMS_MAX = 16 }; /* fields and gaps in one text; more than there are sensible bits for */

struct cursor {
    const char *p;
    size_t len, at;
    struct firn_diag *diag;
};

struct item {  /* one name:width[<<shift][@tick] */
    int field; /* enum firn_field, or -1 for unused */
    unsigned width, shift;
    bool placed; /* has an explicit shift */
    size_t column;
};

static const struct {
    const char *name;
    int field;
} field_names[] = {
    { "unused", -1 },
    { "time", FIRN_FIELD_TIME },
    { "dc", FIRN_FIELD_DC },
    { "node", FIRN_FIELD_NODE },
    { "worker", FIRN_FIELD_NODE },
    { "shard", FIRN_FIELD_SHARD },
    { "seq", FIRN_FIELD_SEQ },
};

static const struct {
    const char *name;
    uint64_t us;
} tick_units[] = { { "us", 1 }, { "ms", 1000 }, { "s", 1000000 } };

static bool take(struct cursor *c, const char *literal)
{
    size_t n = strlen(literal);
    if (c->len - c->at < n || memcmp(c->p + c->at, literal, n) != 0)
        return false;
    c->at += n;
    return true;
}

/* A run of letters, digits and '-', of which the cursor is moved to the end. */
static size_t take_word(struct cursor *c, const char **out)
{
    size_t from = c->at;
    while (c->at < c->len) {
        char ch = c->p[c->at];
        if (!((ch >= 'a' && ch <= 'z') || ch == '-'))
            break;
        c->at++;
    }
    *out = c->p + from;
    return c->at - from;
}

static int take_number(struct cursor *c, uint64_t max, const char *what, uint64_t *out)
{
    size_t from = c->at;
    uint64_t v = 0;
    while (c->at < c->len && c->p[c->at] >= '0' && c->p[c->at] <= '9') {
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(c->p[c->at] - '0'), &v) || v > max)
            return firn__diag(c->diag, FIRN_ERANGE, from + 1, "the %s is above %llu", what,
                              (unsigned long long)max);
        c->at++;
    }
    if (c->at == from)
        return firn__diag(c->diag, FIRN_EFORMAT, from + 1, "expected a number for the %s", what);
    *out = v;
    return 0;
}

static int parse_tick(struct cursor *c, uint64_t *out_us)
{
    size_t from = c->at;
    uint64_t n;
    int r = take_number(c, 1000000, "tick", &n);
    if (r)
        return r;
    for (size_t i = 0; i < sizeof tick_units / sizeof tick_units[0]; i++) {
        if (!take(c, tick_units[i].name))
            continue;
        uint64_t us = n * tick_units[i].us;
        if (us < 1 || us > 1000000)
            return firn__diag(c->diag, FIRN_ERANGE, from + 1,
                              "the tick must be between 1us and 1s");
        *out_us = us;
        return 0;
    }
    return firn__diag(c->diag, FIRN_EFORMAT, c->at + 1, "expected a unit: us, ms or s");
}

static int parse_item(struct cursor *c, struct item *item, uint64_t *tick_us)
{
    const char *word;
    uint64_t n;
    item->column = c->at + 1;
    size_t len = take_word(c, &word), i = 0;
    for (; i < sizeof field_names / sizeof field_names[0]; i++)
        if (len == strlen(field_names[i].name) && memcmp(word, field_names[i].name, len) == 0)
            break;
    if (i == sizeof field_names / sizeof field_names[0])
        return firn__diag(c->diag, FIRN_EFORMAT, item->column,
                          "expected a field: unused, time, dc, node, worker, shard or seq");
    item->field = field_names[i].field;
    if (!take(c, ":"))
        return firn__diag(c->diag, FIRN_EFORMAT, c->at + 1,
                          "expected ':' and the field's width in bits");
    size_t width_column = c->at + 1;
    int r = take_number(c, 64, "width", &n);
    if (r)
        return r;
    if (n == 0)
        return firn__diag(c->diag, FIRN_ERANGE, width_column, "a field of 0 bits: leave it out");
    item->width = (unsigned)n;
    item->placed = take(c, "<<");
    if (item->placed) {
        r = take_number(c, 63, "shift", &n);
        if (r)
            return r;
        item->shift = (unsigned)n;
    }
    if (c->at < c->len && c->p[c->at] == '@') {
        if (item->field != FIRN_FIELD_TIME)
            return firn__diag(c->diag, FIRN_EFORMAT, c->at + 1, "only the time field has a tick");
        c->at++;
        return parse_tick(c, tick_us);
    }
    return 0;
}

/* Give the items that have no explicit shift their places: each ends where the next one begins. */
static int place(struct cursor *c, struct item *item, size_t n)
{
    unsigned total = 0;
    size_t placed = 0;
    for (size_t i = 0; i < n; i++)
        placed += item[i].placed;
    if (placed == n)
        return 0;
    if (placed != 0)
        return firn__diag(c->diag, FIRN_EFORMAT, item[0].column,
                          "give every field a shift (<<), or none");
    for (size_t i = 0; i < n; i++) {
        total += item[i].width;
        if (total > 64)
            return firn__diag(c->diag, FIRN_ERANGE, item[i].column,
                              "the fields up to here have %u bits, 64 is the most", total);
    }
    for (size_t i = 0; i < n; i++) {
        total -= item[i].width;
        item[i].shift = total;
    }
    return 0;
}

static int add_field(struct cursor *c, const struct item *item, struct firn_layout *l)
{
    if (item->shift + item->width > 64)
        return firn__diag(c->diag, FIRN_ERANGE, item->column,
                          "%u bits above bit %u do not fit into 64", item->width, item->shift);
    if (item->field < 0)
        return 0;
    const char *name = firn_field_name((enum firn_field)item->field);
    if (l->field[item->field].width)
        return firn__diag(c->diag, FIRN_EFORMAT, item->column, "the field %s is there twice", name);
    uint64_t before = firn_layout_mask(l);
    l->field[item->field] = (struct firn_bits){ (uint8_t)item->shift, (uint8_t)item->width };
    if (__builtin_popcountll(firn_layout_mask(l)) !=
        __builtin_popcountll(before) + (int)item->width)
        return firn__diag(c->diag, FIRN_ERANGE, item->column,
                          "the field %s overlaps one before it: bits %u to %u are taken", name,
                          item->shift, item->shift + item->width - 1);
    return 0;
}

static int parse_epoch(struct cursor *c, int64_t now_unix_ms, int64_t *out_ms)
{
    size_t from = c->at, end = from;
    bool digits = true;
    while (end < c->len && c->p[end] != ';') {
        digits &= c->p[end] >= '0' && c->p[end] <= '9';
        end++;
    }
    if (digits) {
        uint64_t ms;
        int r = take_number(c, INT64_C(253402300799999), "epoch", &ms); /* the year 9999 */
        if (r)
            return r;
        *out_ms = (int64_t)ms;
    } else {
        struct firn__time t;
        if (firn__rfc3339_parse(c->p + from, end - from, &t) != 0)
            return firn__diag(c->diag, FIRN_EFORMAT, from + 1,
                              "expected a time such as 2021-01-01T00:00:00Z, or Unix milliseconds");
        if (t.unix_s < 0 || t.ns % 1000000 != 0)
            return firn__diag(c->diag, FIRN_ERANGE, from + 1,
                              "the epoch must be whole milliseconds, 1970 or later");
        *out_ms = t.unix_s * 1000 + t.ns / 1000000;
        c->at = end;
    }
    if (now_unix_ms > 0 && *out_ms > now_unix_ms)
        return firn__diag(c->diag, FIRN_ERANGE, from + 1, "the epoch lies in the future");
    return 0;
}

static int parse_option(struct cursor *c, int64_t now_unix_ms, struct firn_layout *l)
{
    size_t from = c->at;
    if (take(c, "epoch="))
        return parse_epoch(c, now_unix_ms, &l->epoch_ms);
    const char *word;
    size_t len = take_word(c, &word);
    if (len == 8 && memcmp(word, "unsigned", 8) == 0)
        l->flags |= FIRN_LAYOUT_UNSIGNED;
    else if (len == 11 && memcmp(word, "decode-only", 11) == 0)
        l->flags |= FIRN_LAYOUT_DECODE_ONLY;
    else if (!(len == 6 && memcmp(word, "signed", 6) == 0)) /* signed is the default */
        return firn__diag(c->diag, FIRN_EFORMAT, from + 1,
                          "expected epoch=, signed, unsigned or decode-only");
    return 0;
}

static int parse_spec(struct cursor *c, int64_t now_unix_ms, struct firn_layout *l)
{
    struct item item[ITEMS_MAX];
    size_t n = 0;
    int r;
    do {
        if (n == ITEMS_MAX)
            return firn__diag(c->diag, FIRN_ERANGE, c->at + 1, "more than %d fields", ITEMS_MAX);
        r = parse_item(c, &item[n], &l->tick_us);
        if (r)
            return r;
        n++;
    } while (take(c, ","));
    r = place(c, item, n);
    for (size_t i = 0; i < n && r == 0; i++)
        r = add_field(c, &item[i], l);
    while (r == 0 && take(c, ";"))
        r = parse_option(c, now_unix_ms, l);
    if (r == 0 && c->at != c->len)
        r = firn__diag(c->diag, FIRN_EFORMAT, c->at + 1,
                       "expected ',' and a field, or ';' and an option");
    return r;
}

static const struct firn_preset *find_preset(const char *p, size_t len)
{
    size_t n;
    const struct firn_preset *presets = firn_layout_presets(&n);
    for (size_t i = 0; i < n; i++)
        if (strlen(presets[i].name) == len && memcmp(presets[i].name, p, len) == 0)
            return &presets[i];
    return NULL;
}

int firn_layout_parse(const char *p, size_t len, int64_t now_unix_ms, struct firn_layout *out,
                      struct firn_diag *diag)
{
    if (!p || !out)
        return FIRN_EINVAL;
    const struct firn_preset *preset = find_preset(p, len);
    if (preset) {
        p = preset->text;
        len = strlen(preset->text);
    } else if (!memchr(p, ':', len)) {
        return firn__diag(diag, FIRN_ENOENT, 1,
                          "no preset has this name; `firn layout list` shows them");
    }
    struct cursor c = { p, len, 0, diag };
    struct firn_layout l = { .tick_us = 1000, .epoch_ms = DEFAULT_EPOCH_MS };
    int r = parse_spec(&c, now_unix_ms, &l);
    if (r == 0)
        r = firn_layout_check(&l, now_unix_ms, diag);
    if (r == 0)
        *out = l;
    return r;
}

/* The field whose highest bit is just below `top`, or -1: the bits down to the next field are
 * unused. */
static int field_below(const struct firn_layout *l, unsigned top, unsigned *next_top)
{
    *next_top = 0;
    for (int f = 0; f < FIRN_FIELDS; f++) {
        unsigned high = l->field[f].shift + l->field[f].width;
        if (l->field[f].width == 0 || high > top)
            continue;
        if (high == top)
            return f;
        if (high > *next_top)
            *next_top = high;
    }
    return -1;
}

size_t firn_layout_format(const struct firn_layout *l, char out[FIRN_LAYOUT_TEXT_BUF])
{
    size_t at = 0;
    unsigned top = 64;
    const size_t cap = FIRN_LAYOUT_TEXT_BUF;
    const char *comma = "";
    while (top > 0) {
        unsigned next_top;
        int f = field_below(l, top, &next_top);
        if (f >= 0) {
            at += (size_t)snprintf(out + at, cap - at, "%s%s:%u", comma,
                                   firn_field_name((enum firn_field)f), l->field[f].width);
            top = l->field[f].shift;
        } else {
            at += (size_t)snprintf(out + at, cap - at, "%sunused:%u", comma, top - next_top);
            top = next_top;
        }
        if (f == FIRN_FIELD_TIME) {
            bool s = l->tick_us % 1000000 == 0, ms = l->tick_us % 1000 == 0;
            at += (size_t)snprintf(out + at, cap - at, "@%llu%s",
                                   (unsigned long long)(l->tick_us / (s    ? 1000000
                                                                      : ms ? 1000
                                                                           : 1)),
                                   s    ? "s"
                                   : ms ? "ms"
                                        : "us");
        }
        comma = ",";
    }
    char when[FIRN__RFC3339_BUF];
    struct firn__time t = { l->epoch_ms / 1000, (uint32_t)(l->epoch_ms % 1000 * 1000000) };
    firn__rfc3339_format(t, l->epoch_ms % 1000 ? 3 : 0, when, sizeof when);
    at += (size_t)snprintf(out + at, cap - at, ";epoch=%s%s%s", when,
                           l->flags & FIRN_LAYOUT_UNSIGNED ? ";unsigned" : "",
                           l->flags & FIRN_LAYOUT_DECODE_ONLY ? ";decode-only" : "");
    return at;
}
