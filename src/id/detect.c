/*
 * Which kinds a text can be, best first. A reading's score is made of two parts: how special its
 * shape is (a UUID's hyphens are hard to hit by chance, 21 letters are not) and how plausible its
 * time. A recent time beats an older one: a number read with the wrong epoch is off by years.
 * Tested in tests/unit/id/read.c.
 */
#include "firn/read.h"
#include "id/read.h"

#include <string.h>

#define EARLIEST_MS INT64_C(1136073600000) /* 2006: before all of these formats but UUIDs */
#define DAY_MS      INT64_C(86400000)
#define NOW_MAX_MS  (INT64_MAX - DAY_MS) /* what lies later is taken as this */
#define JUST_NOW_MS INT64_C(600000)      /* ten minutes, to either side of the clock */

enum { TIME_MAX = 40, NO_TIME = 15, JUST_NOW = 5 };

/* What is tried, and what its shape is worth. `uuid` stands for all its versions. */
static const struct {
    const char *kind;
    int shape;
} shapes[] = {
    { "uuid", 60 },     { "typeid", 58 }, { "dated", 55 }, { "ksuid", 50 },     { "ulid", 50 },
    { "objectid", 48 }, { "xid", 46 },    { "tsid", 40 },  { "stamp17", 45 },   { "prefixed", 38 },
    { "ticket", 25 },   { "nanoid", 12 }, { "cuid2", 10 }, { "snowflake", 44 },
};

static int plausible(const struct firn_reading *r, int64_t now_unix_ms)
{
    int64_t ms = r->unix_us / 1000;
    return ms >= EARLIEST_MS && ms <= now_unix_ms + DAY_MS;
}

static int score(const struct firn_reading *r, int shape, int64_t now_unix_ms)
{
    if (!r->has_time)
        return shape + NO_TIME;
    if (!plausible(r, now_unix_ms))
        return shape / 4;
    int64_t ms = r->unix_us / 1000, span = now_unix_ms + DAY_MS - EARLIEST_MS;
    return shape + TIME_MAX / 2 + (int)((ms - EARLIEST_MS) * (TIME_MAX / 2) / span);
}

/* Keep `out` sorted, best first; of equals the first found stays ahead. */
static void insert(struct firn_reading *out, size_t cap, size_t *n, const struct firn_reading *r)
{
    size_t at = *n;
    while (at > 0 && out[at - 1].score < r->score)
        at--;
    if (at >= cap)
        return;
    size_t keep = *n < cap ? *n : cap - 1;
    memmove(out + at + 1, out + at, (keep - at) * sizeof *out);
    out[at] = *r;
    *n = keep + 1;
}

/* People look at IDs that were just made. Of a layout's wrong readings one in many thousands falls
 * into these minutes, so that the right one wins against others of the last years. */
static int just_now(const struct firn_reading *r, int64_t now_unix_ms)
{
    int64_t ms = r->unix_us / 1000;
    return ms >= now_unix_ms - JUST_NOW_MS && ms <= now_unix_ms + JUST_NOW_MS ? JUST_NOW : 0;
}

/* A number can be of any layout. One that was stamped within a day of a layout's epoch is more
 * likely a small number than an ID of that layout. */
static void detect_layouts(const char *p, size_t len, int shape, int64_t now_unix_ms,
                           struct firn_reading *out, size_t cap, size_t *n)
{
    const struct firn_kind *kind = firn_kind_find("snowflake", 9);
    size_t presets_n;
    const struct firn_preset *preset = firn_layout_presets(&presets_n);
    for (size_t i = 0; i < presets_n; i++) {
        struct firn_layout l;
        struct firn_reading r;
        if (firn_layout_parse(preset[i].text, strlen(preset[i].text), 0, &l, NULL) != 0 ||
            firn_read(kind, p, len, &l, &r, NULL) != 0)
            continue;
        int worth = r.unix_us / 1000 < l.epoch_ms + DAY_MS ? shape / 4 : shape;
        r.score = worth == shape ? score(&r, shape, now_unix_ms) + just_now(&r, now_unix_ms)
                                 : worth;
        insert(out, cap, n, &r);
    }
}

int firn_detect(const char *p, size_t len, int64_t now_unix_ms, struct firn_reading *out,
                size_t cap, size_t *out_n)
{
    if (!p || !out || !out_n || cap == 0 || now_unix_ms < EARLIEST_MS)
        return FIRN_EINVAL;
    now_unix_ms = now_unix_ms < NOW_MAX_MS ? now_unix_ms : NOW_MAX_MS;
    size_t n = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (strcmp(shapes[i].kind, "snowflake") == 0) {
            detect_layouts(p, len, shapes[i].shape, now_unix_ms, out, cap, &n);
            continue;
        }
        const struct firn_kind *kind = firn_kind_find(shapes[i].kind, strlen(shapes[i].kind));
        struct firn_reading r;
        if (!firn__read_usual_length(kind, len) || firn_read(kind, p, len, NULL, &r, NULL) != 0)
            continue;
        r.score = score(&r, shapes[i].shape, now_unix_ms);
        insert(out, cap, &n, &r);
    }
    *out_n = n;
    return 0;
}
