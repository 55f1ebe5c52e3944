/*
 * id_body.h - the IDs in a server's answer.
 * {"id":"123"}, {"id":123} and {"ids":["1","2"]}; lines; big-endian 64-bit integers; replies of the
 * Redis protocol. Strict: a body that is not exactly one of these is an error, not a guess. Pure;
 * may be called from any thread.
 */
#ifndef FIRN_CLI_ID_BODY_H
#define FIRN_CLI_ID_BODY_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { ID_BODY_TEXT_MAX = 64, ID_BODY_TEXT_BUF };

enum id_body_form { ID_BODY_JSON, ID_BODY_LINES, ID_BODY_BYTES };

/* The text of the single ID of a JSON body, {"id":"…"} or {"id":number}, with its NUL.
 * FIRN_EFORMAT: it is something else. A text is printable ASCII without escapes. */
FIRN_MUSTUSE int id_body_one(const char *p, size_t len, char out[ID_BODY_TEXT_BUF]);

/* Called with each ID, in order. */
typedef void id_body_fn(uint64_t id, void *user);

/* Every ID of a body; all must be 64-bit numbers. FIRN_EFORMAT: one is not, or there is none;
 * `each` may have seen those before it. */
FIRN_MUSTUSE int id_body_each(enum id_body_form form, const char *p, size_t len, id_body_fn *each,
                              void *user);

/* The same for IDs of any kind, as texts of 1 to ID_BODY_TEXT_MAX bytes; not for ID_BODY_BYTES. */
typedef void id_body_text_fn(const char *text, size_t len, void *user);
FIRN_MUSTUSE int id_body_each_text(enum id_body_form form, const char *p, size_t len,
                                   id_body_text_fn *each, void *user);

struct resp_answer {
    bool error;     /* the reply is an error */
    bool other;     /* it holds something that is neither a number nor a container */
    uint64_t count; /* of numbers */
};

/* One reply of the Redis protocol, RESP2 or RESP3, at the start of `p`: its length, FIRN_EAGAIN
 * or FIRN_EFORMAT. `each` (or NULL) sees its numbers, integers and bulk strings alike, in the
 * call that succeeds. */
FIRN_MUSTUSE ssize_t id_body_resp(const char *p, size_t len, id_body_fn *each, void *user,
                                  struct resp_answer *out);

/* The same, but `each` sees, and `count` counts, every integer and bulk string as a text. */
FIRN_MUSTUSE ssize_t id_body_resp_text(const char *p, size_t len, id_body_text_fn *each, void *user,
                                       struct resp_answer *out);

#endif
