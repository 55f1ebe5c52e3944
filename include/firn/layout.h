/*
 * firn/layout.h - 64-bit ID layouts as data.
 * A layout lists bit fields, high bit first, with an epoch and a tick (the unit of its time field).
 * Twitter, Sonyflake, Instagram and the others are rows of one table; users write their own:
 *
 *     unused:1,time:41@1ms,dc:5,worker:5,seq:12;epoch=2021-01-01T00:00:00Z
 *
 *   field    unused, time, dc, node (or worker), shard, seq; each but unused at most once
 *   :width   bits; fields follow each other, the last one ends at bit 0
 *   <<shift  optional explicit place of the field's lowest bit (then every field must have one)
 *   @tick    of the time field: 1us to 1s, for instance 10ms
 *   ;epoch=  a time (RFC 3339, UTC) or Unix milliseconds; default 2021-01-01
 *   ;unsigned     bit 63 is used: IDs do not fit a signed 64-bit integer for the whole lifetime
 *   ;decode-only  there is no identity (node, dc or shard): such IDs can be read, never issued
 *
 * All functions are pure and may be called from any thread.
 */
#ifndef FIRN_LAYOUT_H
#define FIRN_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

enum firn_field {
    FIRN_FIELD_TIME,
    FIRN_FIELD_DC,
    FIRN_FIELD_NODE,
    FIRN_FIELD_SHARD,
    FIRN_FIELD_SEQ,
    FIRN_FIELDS
};

enum firn_layout_flag {
    FIRN_LAYOUT_UNSIGNED = 1,   /* may use bit 63 */
    FIRN_LAYOUT_DECODE_ONLY = 2 /* no identity field: generators refuse it */
};

struct firn_bits {
    uint8_t shift; /* of the lowest bit */
    uint8_t width; /* 0: the layout has no such field */
};

struct firn_layout { /* a plain value: copy it freely */
    struct firn_bits field[FIRN_FIELDS];
    uint32_t flags;   /* enum firn_layout_flag */
    uint64_t tick_us; /* microseconds per unit of the time field */
    int64_t epoch_ms; /* Unix milliseconds of time 0 */
};

#define FIRN_LAYOUT_TEXT_BUF 192 /* holds every layout's text with its NUL */

/* The parts of one ID. Fields that the layout does not have are 0. */
struct firn_parts {
    uint64_t field[FIRN_FIELDS]; /* indexed by enum firn_field; time counts ticks since the epoch */
};

/* A row of the preset table. */
struct firn_preset {
    const char *name, *text, *summary;
};

/* Parse a preset's name or a layout text. `now_unix_ms` is there to refuse an epoch in the
 * future; 0 leaves that check out. FIRN_EFORMAT and FIRN_ERANGE: the diag names the column and
 * the reason. */
FIRN_API FIRN_MUSTUSE int firn_layout_parse(const char *p, size_t len, int64_t now_unix_ms,
                                            struct firn_layout *out, struct firn_diag *diag);

/* Canonical text; parsing it gives the same layout. Returns its length. */
FIRN_API size_t firn_layout_format(const struct firn_layout *l, char out[FIRN_LAYOUT_TEXT_BUF]);

/* The rules that parsing applies, for a layout made by hand. */
FIRN_API FIRN_MUSTUSE int firn_layout_check(const struct firn_layout *l, int64_t now_unix_ms,
                                            struct firn_diag *diag);

/* All presets; `*out_n` is their number. */
FIRN_API const struct firn_preset *firn_layout_presets(size_t *out_n);

/* "time", "dc", "node", "shard", "seq". */
FIRN_API const char *firn_field_name(enum firn_field f);

/* FIRN_ERANGE: a part does not fit its field (the diag names it), or the layout lacks the field. */
FIRN_API FIRN_MUSTUSE int firn_layout_compose(const struct firn_layout *l,
                                              const struct firn_parts *parts, uint64_t *out_id,
                                              struct firn_diag *diag);

/* FIRN_ERANGE: the ID has bits set that belong to no field, so it was not made by this layout. */
FIRN_API FIRN_MUSTUSE int firn_layout_decompose(const struct firn_layout *l, uint64_t id,
                                                struct firn_parts *out);

/* The identity that a generator needs exclusively: dc and node joined, or the shard where the
 * layout has neither. Slots are 0..count-1; a decode-only layout has 0. */
FIRN_API uint64_t firn_layout_slots(const struct firn_layout *l);

/* Where the bits of slot number `slot` go: the ID with that identity and all else 0. */
FIRN_API uint64_t firn_layout_slot_bits(const struct firn_layout *l, uint64_t slot);

/* The mask of all bits that belong to a field. */
FIRN_API uint64_t firn_layout_mask(const struct firn_layout *l);

/* Ticks from the epoch to a Unix time in microseconds, rounded down; times before the epoch give
 * 0. */
FIRN_API uint64_t firn_layout_ticks(const struct firn_layout *l, int64_t unix_us);

/* Unix microseconds of a tick; INT64_MAX where that is beyond the representable. */
FIRN_API int64_t firn_layout_unix_us(const struct firn_layout *l, uint64_t tick);

/* The first Unix microsecond that the time field cannot express. */
FIRN_API int64_t firn_layout_end_us(const struct firn_layout *l);

/* 1 if IDs sort by time: the time field is above all others. */
FIRN_API int firn_layout_sortable(const struct firn_layout *l);

/* Whether an ID of layout `a` can equal one of layout `b`, both stamped at `now_unix_us` or later.
 * 1: yes, and `*out_id` is the smallest such ID; 0: never. IDs that exist already are not
 * considered. */
FIRN_API int firn_layout_collide(const struct firn_layout *a, const struct firn_layout *b,
                                 int64_t now_unix_us, uint64_t *out_id);

#ifdef __cplusplus
}
#endif
#endif
