/*
 * resp.h - the server's side of the Redis protocol: reads requests, writes RESP2 and RESP3 replies.
 * It knows no socket and keeps no state. All functions may be called from any thread.
 */
#ifndef FIRN_WIRE_RESP_H
#define FIRN_WIRE_RESP_H

#include "firn/error.h"
#include "wire/buf.h"

#include <sys/types.h>

enum {
    RESP_ARGS_MAX = 1024,
    RESP_BULK_BYTES_MAX = 64 * 1024,
    RESP_INLINE_BYTES_MAX = 64 * 1024, /* as Redis */
    RESP_REQUEST_BYTES_MAX = 128 * 1024,
    RESP_ERROR_BUF = 64,
};

struct resp_request {
    struct slice self, rest; /* its bytes and those behind it; for resp_repeats() */
    size_t argc;
    struct slice argv[RESP_ARGS_MAX]; /* borrowed from the parsed bytes; argv[0] is the command */
};

/* Reads one request (an array of bulk strings, or an inline command line) from the start of `p`.
 * Returns how many bytes it took, FIRN_EAGAIN when it is not whole yet, or FIRN_EFORMAT with the
 * text of the error as Redis words it ("Protocol error: invalid bulk length"); the connection
 * cannot be used afterwards. argc 0 is possible (an empty line, *0): no reply is due. Quoted
 * inline arguments are unescaped in place, in the call that returns the request. */
ssize_t resp_parse(char *p, size_t len, struct resp_request *req, char err[RESP_ERROR_BUF]);

/* How many requests follow that repeat this one byte for byte; at most `max`. Clients that pipeline
 * send such runs, and a handler may answer one at once (reply.repeats). */
size_t resp_repeats(const struct resp_request *req, size_t max);

/* Whether argument `i` exists and equals `word`, whatever the case of ASCII letters. */
bool resp_is(const struct resp_request *req, size_t i, const char *word);

/* Argument as an integer, as Redis reads one: optional '-', no leading zeros, space or '+'.
 * FIRN_EFORMAT or FIRN_ERANGE otherwise. */
FIRN_MUSTUSE int resp_i64(struct slice arg, int64_t *out);

/* Writers. `proto` is 2 or 3: what the connection agreed on with HELLO. Text of simple strings
 * and errors must fit one line; CR and LF in it become spaces. An error begins with its code
 * ("ERR ..."). */
void resp_simple(struct buf *b, const char *text);
void resp_error(struct buf *b, const char *text);
__attribute__((format(printf, 2, 3))) void resp_errorf(struct buf *b, const char *fmt, ...);
void resp_int(struct buf *b, int64_t v);
void resp_bulk(struct buf *b, const void *p, size_t len);
void resp_bulk_str(struct buf *b, const char *text);
void resp_array(struct buf *b, size_t n);          /* followed by n values */
void resp_map(struct buf *b, int proto, size_t n); /* followed by n pairs; RESP2: an array of 2n */
void resp_set(struct buf *b, int proto, size_t n); /* RESP2: an array */
void resp_null(struct buf *b, int proto);          /* RESP2: $-1 */
void resp_verbatim(struct buf *b, int proto, const char format[3], const void *p, size_t len);

#endif
