/*
 * choose.h - chooses a kind of ID for a set of requirements ("wishes"): a table of kinds and their
 * properties, and a pure function over it. A kind is recommended only if it meets all requirements.
 * May be called from any thread.
 */
#ifndef FIRN_CLI_COMPARE_CHOOSE_H
#define FIRN_CLI_COMPARE_CHOOSE_H

#include <stddef.h>
#include <stdint.h>

/* Bits of the requirements, in the order of the table choose_wishes[]. */
enum choose_bit {
    CHOOSE_64BIT,
    CHOOSE_GAPLESS,
    CHOOSE_SORTABLE,
    CHOOSE_STRICT,
    CHOOSE_AVAILABLE,
    CHOOSE_OFFLINE,
    CHOOSE_NO_SETUP,
    CHOOSE_PUBLIC,
    CHOOSE_HIDE_TIME,
    CHOOSE_STRINGS,
    CHOOSE_SHORT,
    CHOOSE_UUID,
    CHOOSE_JAVASCRIPT,
    CHOOSE_FAST,
    CHOOSE_DATED,
    CHOOSE_BITS /* their number */
};

struct choose_wish {
    const char *flag;     /* "64bit" */
    const char *question; /* for a terminal */
    const char *has;      /* "fits a signed 64-bit integer" */
    const char *lacks;    /* "does not fit a 64-bit integer" */
};
extern const struct choose_wish choose_wishes[CHOOSE_BITS];

struct choose_kind {
    const char *key, *name;
    uint32_t has;      /* 1 << enum choose_bit, or'ed */
    uint32_t chars;    /* of its text, at the most */
    const char *about; /* what it is */
    const char *con;   /* its main disadvantage */
    const char *how;   /* how to get one */
};
enum { CHOOSE_KINDS = 17 };
extern const struct choose_kind choose_kinds[CHOOSE_KINDS]; /* the likeliest choice first */

struct choose_answer {
    int best;                     /* of choose_kinds; -1: no kind meets all requirements */
    uint8_t order[CHOOSE_KINDS];  /* all kinds: those that lack least first, then as in the table */
    uint32_t lacks[CHOOSE_KINDS]; /* wishes that kind i does not fulfil */
    uint32_t conflict;            /* best -1: a smallest set of wishes that no kind fulfils */
};

void choose(uint32_t wishes, struct choose_answer *out);

/* Why these requirements exclude each other, as text; never NULL. */
const char *choose_why(uint32_t conflict);

#endif
