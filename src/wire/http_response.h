/*
 * http_response.h - reads HTTP/1.x responses out of bytes; knows no socket and keeps no state.
 * As strict about framing as http.h is: a client that misjudges where a response ends takes another
 * request's ID for its own. Any thread.
 */
#ifndef FIRN_WIRE_HTTP_RESPONSE_H
#define FIRN_WIRE_HTTP_RESPONSE_H

#include "wire/http_line.h"

enum {
    HTTP_RESPONSE_HEAD_MAX = 16 * 1024,        /* bytes of a head, interim ones included */
    HTTP_RESPONSE_BODY_MAX = 64 * 1024 * 1024, /* of a body in memory: 100,000 IDs of any kind */
};

/* All slices borrow from the bytes that were read. */
struct http_response {
    unsigned status; /* 200..999; 100..999 with http_response_next() */
    uint8_t minor;   /* HTTP/1.minor: 0 or 1 */
    bool close;      /* the connection ends with this response */
    enum http_framing framing;
    uint64_t
        body_len;   /* FRAMED_BY_LENGTH: bytes of the body. After HEAD there is none all the same */
    size_t interim; /* bytes of interim responses (1xx) in front, which were passed over */
    struct slice reason;
    struct slice body; /* http_response_read() only: whole, its chunks joined */
    size_t headers;
    struct http_header header[HTTP_FIELDS_MAX];
};

/* The head at the start of `p`: its length, FIRN_EAGAIN when it is not whole yet, or FIRN_EFORMAT
 * when it never can be. 101 is refused: no caller asks to switch protocols. */
FIRN_MUSTUSE ssize_t http_response_head(const char *p, size_t len, struct http_response *out);

/* The same for a proxy, which passes interim responses on or over itself: the first head, whatever
 * its status is (100..999). */
FIRN_MUSTUSE ssize_t http_response_next(const char *p, size_t len, struct http_response *out);

/* A whole response: its length, FIRN_EAGAIN or FIRN_EFORMAT. `eof`: no more bytes will come, which
 * ends a body that the connection's end frames. Chunks are joined in place in the call that
 * succeeds. On FIRN_EAGAIN out->status is 0 unless the head is whole. */
FIRN_MUSTUSE ssize_t http_response_read(char *p, size_t len, bool eof, struct http_response *out);

/* The value of the first header with that name, in lower case; absent if there is none. */
struct slice http_response_header(const struct http_response *r, const char *name);

#endif
