/*
 * http_head.h - reads the head of an HTTP/1 request with every field in it, for proxies: methods
 * and fields that firnd does not know are kept. Its rules are those of http.h, where any doubt
 * about where a request ends is refused; tests/fuzz/http_head.c compares the two. Pure; any thread.
 */
#ifndef FIRN_WIRE_HTTP_HEAD_H
#define FIRN_WIRE_HTTP_HEAD_H

#include "wire/http.h"
#include "wire/http_line.h"

enum { HTTP_METHOD_BYTES_MAX = 24 };

/* All slices borrow from the bytes that were read. */
struct http_head {
    struct slice method;
    struct slice path;  /* as sent, percent-encoded; begins with '/', or is "*" for OPTIONS */
    struct slice query; /* what follows '?'; absent when there is none */
    struct slice host;  /* from the target if it names one, else from Host; may be absent in 1.0 */
    uint8_t minor;      /* HTTP/1.minor: 0 or 1 */
    bool keep_alive;    /* as the version and Connection say */
    bool expect_continue;
    bool websocket;            /* asks to be upgraded to that protocol, properly */
    bool te_trailers;          /* may be sent trailers */
    enum http_framing framing; /* never FRAMED_BY_CLOSE */
    uint64_t body_len;         /* FRAMED_BY_LENGTH; 0: no body */
    size_t headers;
    struct http_header header[HTTP_FIELDS_MAX]; /* in their order, framing fields among them */
};

/* The head at the start of `p`: how many bytes it takes; FIRN_EAGAIN when it is not whole yet;
 * FIRN_EFORMAT with *err set when it never can be. CONNECT and TRACE are refused. */
FIRN_MUSTUSE ssize_t http_head_read(const char *p, size_t len, struct http_head *out,
                                    struct http_error *err);

/* Makes the slices of `h` borrow from `to`, where its bytes were copied, instead of `from`. */
void http_head_moved(struct http_head *h, const char *from, const char *to);

/* The value of the first field with that lower-case name; absent if there is none. */
struct slice http_head_value(const struct http_head *h, const char *name);

#endif
