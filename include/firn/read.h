/*
 * firn/read.h - what a text says when it is read as an ID of a given kind, and which kinds it can
 * be. All functions are pure and may be called from any thread.
 */
#ifndef FIRN_READ_H
#define FIRN_READ_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"
#include "firn/layout.h"

#ifdef __cplusplus
extern "C" {
#endif

enum firn_kind_flag {
    FIRN_KIND_TIME = 1,   /* carries the time at which it was made */
    FIRN_KIND_SORTS = 2,  /* its texts sort by that time */
    FIRN_KIND_MAKES = 4,  /* firn/mint.h can make it */
    FIRN_KIND_NUMBER = 8, /* a 64-bit number: may be written in any codec of firn/text.h */
    FIRN_KIND_UNSAFE = 16 /* two of them can be equal by design */
};

struct firn_kind { /* a row of the table: read it, never make one */
    const char *name;
    const char *about;
    uint32_t flags; /* enum firn_kind_flag */
    uint32_t bits;  /* of the binary form, 0 if there is none */
};

/* All kinds; `*out_n` is their number. */
FIRN_API const struct firn_kind *firn_kinds(size_t *out_n);
FIRN_API const struct firn_kind *firn_kind_find(const char *name, size_t len); /* or NULL */

#define FIRN_READ_TEXT_BUF   128 /* longest text that is read, with its NUL */
#define FIRN_READ_FIELDS_MAX 8
#define FIRN_READ_BYTES_MAX  20

struct firn_read_field {
    char name[12];  /* "time", "node", "random" ... */
    char value[64]; /* for people: a decimal number, a time or hex digits */
    uint8_t bit;    /* where it begins, counted from the high end of the binary form */
    uint8_t bits;   /* 0: the field has no place in a binary form */
};

struct firn_reading {
    const struct firn_kind
        *kind;        /* as asked; a UUID of any version is told as its version's kind */
    char layout[16];  /* kind snowflake: the preset's name, or "custom"; otherwise empty */
    int32_t has_time; /* 1: unix_us is when it was made */
    int32_t score;    /* of firn_detect(): 0..100, how plausible this reading is */
    int64_t unix_us;
    uint64_t number;               /* the value of a 64-bit kind */
    char text[FIRN_READ_TEXT_BUF]; /* the canonical text */
    uint8_t bytes[FIRN_READ_BYTES_MAX];
    uint32_t bytes_len; /* 0: text only */
    uint32_t fields_n;
    struct firn_read_field field[FIRN_READ_FIELDS_MAX]; /* in the order of the bits */
};

/* Read a text as one kind. `layout` matters for kind snowflake only; NULL means the default layout
 * `firn`. FIRN_EFORMAT, FIRN_ERANGE: it is not of that kind; the diag says why where there is more
 * to say than the kind's name. */
FIRN_API FIRN_MUSTUSE int firn_read(const struct firn_kind *kind, const char *p, size_t len,
                                    const struct firn_layout *layout, struct firn_reading *out,
                                    struct firn_diag *diag);

/* Every kind, and for numbers every preset layout, that the text can be, best first; at most `cap`.
 * The ranking asks how special the shape is and how plausible the time: between 2006 and a day
 * after `now_unix_ms`. Nothing is guessed silently: several readings mean that the text does not
 * tell. `*out_n` may be 0. FIRN_EINVAL: a NULL argument. */
FIRN_API FIRN_MUSTUSE int firn_detect(const char *p, size_t len, int64_t now_unix_ms,
                                      struct firn_reading *out, size_t cap, size_t *out_n);

#ifdef __cplusplus
}
#endif
#endif
