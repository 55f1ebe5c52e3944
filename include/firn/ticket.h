/*
 * firn/ticket.h - ticket numbers: 1, 2, 3 ... as plain decimal text.
 * The numbers come from a sequence in a store; here is only how they are written and checked. Pure
 * functions: any thread may call them.
 */
#ifndef FIRN_TICKET_H
#define FIRN_TICKET_H

#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FIRN_TICKET_MAX          UINT64_C(9223372036854775807) /* 2^63 - 1: fits int64_t */
#define FIRN_TICKET_TEXT_LEN_MAX 19
#define FIRN_TICKET_TEXT_BUF     20

/* Digits only, no sign, no leading zero, so that a number has one text. FIRN_EFORMAT: other text.
 * FIRN_ERANGE: 0, or above FIRN_TICKET_MAX. */
FIRN_API FIRN_MUSTUSE int firn_ticket_parse(const char *p, size_t len, uint64_t *out);

/* Writes a NUL and answers the length without it. 0 and an empty text if `number` is no ticket. */
FIRN_API size_t firn_ticket_format(uint64_t number, char out[FIRN_TICKET_TEXT_BUF]);

/*
 * Several masters share one sequence without talking: each counts in steps of `step` (at least
 * their number) from its own `offset`. 0 if `number` is this master's: number = offset modulo step.
 * FIRN_ERANGE: it is another master's. FIRN_EINVAL: `number` is no ticket, `step` is 0, or `offset`
 * is above `step`. Offset 0 and offset `step` are the same series.
 */
FIRN_API FIRN_MUSTUSE int firn_ticket_check(uint64_t number, uint64_t offset, uint64_t step);

#ifdef __cplusplus
}
#endif
#endif
