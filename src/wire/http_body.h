/*
 * http_body.h - reads the body of an HTTP/1 message piece by piece, as a proxy passes it on: the
 * data of a piece is a part of the bytes that came in, and nothing is kept. As strict as
 * http_line.h. Pure; any thread.
 */
#ifndef FIRN_WIRE_HTTP_BODY_H
#define FIRN_WIRE_HTTP_BODY_H

#include "wire/http_line.h"

enum { HTTP_TRAILERS_BYTES_MAX = 8 * 1024 };

struct http_body { /* set by http_body_begin() */
    enum http_framing framing;
    uint64_t left; /* bytes of the body, or of the chunk in hand */
    uint8_t at;    /* private: where in the framing */
    bool done;     /* the body is complete. FRAMED_BY_CLOSE: never, the connection's end says so */
    struct slice trailers; /* once done: the field lines behind the last chunk, each with its CR LF;
                            * borrowed from the bytes of that call */
    const char *why;       /* after FIRN_EFORMAT; a static text */
};

/* `len` counts with FRAMED_BY_LENGTH. */
void http_body_begin(struct http_body *b, enum http_framing framing, uint64_t len);

/* Looks at the bytes at `p`: returns how many it used, and in *data which of them are data (perhaps
 * none). Used none: it is done, or more bytes are needed behind these. FIRN_EFORMAT: b->why. */
FIRN_MUSTUSE ssize_t http_body_next(struct http_body *b, const char *p, size_t len,
                                    struct slice *data);

#endif
