/*
 * firn/now.h - an ID in one call, with nothing to set up.
 *
 *     char id[FIRN_UUID_TEXT_BUF];
 *     if (firn_uuid_v7_now_text(id) == 0) puts(id);
 *
 * All functions may be called from any thread. UUIDs and ULIDs come from state of the calling
 * thread: those of one thread rise, and a child of fork() starts anew. In a signal handler they may
 * be called, too, once the thread has made one outside; an ID made inside another call does not
 * continue its order.
 * Errors: FIRN_EINVAL for a NULL, FIRN_ERANGE for a clock after the year 10889.
 */
#ifndef FIRN_NOW_H
#define FIRN_NOW_H

#include <stdint.h>

#include "firn/error.h"
#include "firn/gen.h"
#include "firn/layout.h"
#include "firn/text.h"
#include "firn/ulid.h"
#include "firn/uuid.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Unix milliseconds by the coarse clock, which may be some milliseconds old: what the functions
 * below stamp, and what to give to those that take a `unix_ms`. */
FIRN_API uint64_t firn_now_ms(void);

FIRN_API FIRN_MUSTUSE int firn_uuid_v7_now(struct firn_uuid *out);
FIRN_API FIRN_MUSTUSE int firn_uuid_v7_now_text(char out[FIRN_UUID_TEXT_BUF]);

FIRN_API FIRN_MUSTUSE int firn_ulid_now(struct firn_ulid *out);
FIRN_API FIRN_MUSTUSE int firn_ulid_now_text(char out[FIRN_ULID_TEXT_BUF]);

/*
 * A Snowflake ID of the process's own generator, a struct firn_shared. It needs a worker number
 * that no other process uses in the same space of IDs; none is ever assumed. It is FIRN_WORKER_ID
 * in the environment, for the layout `firn`, or what firn_snowflake_setup() was given. For numbers
 * that are leased instead of configured see firn/node.h.
 * FIRN_ENOSLOT: there is no number. FIRN_EFORMAT, FIRN_ERANGE: FIRN_WORKER_ID is none, or above
 * the layout's last. FIRN_EFORKED: this is a child of fork(), whose parent has the number; give
 * the child one of its own by firn_snowflake_setup(). Other errors as for firn_gen_next().
 */
FIRN_API FIRN_MUSTUSE int firn_snowflake_now(uint64_t *out_id);
FIRN_API FIRN_MUSTUSE int firn_snowflake_now_text(char out[FIRN_U64_TEXT_BUF]);

/* The layout (NULL: `firn`) and the options, with opts->slot as the worker number, before the first
 * ID of the process. FIRN_ECONFLICT: there is a generator already, and it stays. Errors of
 * firn_shared_new(). */
FIRN_API FIRN_MUSTUSE int firn_snowflake_setup(const struct firn_layout *l,
                                               const struct firn_gen_opts *opts);

#ifdef __cplusplus
}
#endif
#endif
