/*
 * canon.h - one form of JSON for all texts that PostgreSQL's jsonb does not tell apart.
 * A jsonb column gives back another text than it was given: members in another order, the last of
 * two with one name, other spaces and escapes, 1e2 as 100. A digest of the row must not change with
 * that, so it is taken over this form, which is the same before the text is written and after it
 * is read. Numbers keep every digit; 1.0 and 1 are one number.
 *
 * The form, bytes: o MEMBER... e | a VALUE... e | s LEN TEXT | n LEN NUMERAL | t | f | z. A member
 * is k LEN NAME VALUE, by length of the name and then by its bytes. LEN is 4 bytes, high byte
 * first; a numeral is [-]DIGITS e [-]EXPONENT without zeros at either end of the digits, or 0.
 */
#ifndef FIRN_AUDITLOG_CANON_H
#define FIRN_AUDITLOG_CANON_H

#include "firn/error.h"
#include "wire/buf.h"

enum { CANON_EXPONENT_DIGITS_MAX = 9 };

struct canon { /* scratch, kept from one text to the next; zeroed: empty. One thread */
    struct buf members, order;
};

void canon_done(struct canon *c);

/* Appends the form of `json` to `out`. FIRN_EFORMAT: not JSON as src/wire reads it, or an exponent
 * beyond reason; FIRN_ENOMEM: `out` is full. Then `out` is as long as before. */
FIRN_MUSTUSE int canon_json(struct canon *c, struct slice json, struct buf *out);

#endif
