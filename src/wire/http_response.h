/*
 * http_answer.h - reads HTTP/1.x answers out of bytes; knows no socket and keeps no state.
 * Strict about framing, for a client that misreads where an answer ends takes a stranger's ID for its
 * own. May be called from any thread.
 */
#ifndef FIRN_WIRE_HTTP_RESPONSE_H
#define FIRN_WIRE_HTTP_RESPONSE_H

#include "firn/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    HTTP_ANSWER_HEAD_MAX = 16 * 1024,
    HTTP_ANSWER_BODY_MAX = 64 * 1024 * 1024, /* 100,000 IDs of any kind, several times over */
};

enum http_framing { FRAMED_BY_LENGTH, FRAMED_BY_CHUNKS, FRAMED_BY_CLOSE };

struct http_head {
    unsigned status; /* 200..999: interim answers (1xx) are skipped, and counted in the length */
    enum http_framing framing;
    size_t body_len; /* FRAMED_BY_LENGTH only */
    bool close;      /* the connection ends with this answer */
};

/* The head at the start of `p`: its length, or FIRN_EAGAIN when it is not whole yet, or FIRN_EFORMAT
 * when it never can be. */
FIRN_MUSTUSE ssize_t http_answer_head(const char *p, size_t len, struct http_head *out);

/* A chunked body at the start of `p`: its length as sent, with FIRN_EAGAIN and FIRN_EFORMAT as above.
 * The chunks are joined in place at the front of `p`, `*out_len` bytes, in the call that succeeds. */
FIRN_MUSTUSE ssize_t http_answer_chunks(char *p, size_t len, size_t *out_len);

#endif
