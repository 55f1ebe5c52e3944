/*
 * http.h - reads HTTP/1.x requests out of bytes; it knows no socket and keeps no state.
 * Strict where leniency has led to request smuggling: line ends are CRLF, framing is unambiguous,
 * header names are tokens, Host is there once. All functions may be called from any thread.
 */
#ifndef FIRN_WIRE_HTTP_H
#define FIRN_WIRE_HTTP_H

#include "firn/error.h"
#include "wire/buf.h"
#include "wire/http_line.h"

#include <sys/types.h>

enum {
    HTTP_HEAD_BYTES_MAX = 16 * 1024,  /* request line and headers: 431 beyond */
    HTTP_TARGET_BYTES_MAX = 8 * 1024, /* 414 beyond; RFC 9112 asks for 8000 */
    HTTP_HEADERS_MAX = HTTP_FIELDS_MAX,
    HTTP_BODY_BYTES_MAX = 64 * 1024, /* 413 beyond */
    HTTP_CHUNKS_MAX = 1024,          /* bounds the work of looking at an unfinished body again */
    /* The longest request that can still become whole; what a connection must be able to keep. */
    HTTP_REQUEST_BYTES_MAX = HTTP_HEAD_BYTES_MAX + HTTP_BODY_BYTES_MAX + 48 * 1024,
};

enum http_method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_PATCH,
    METHOD_OPTIONS,
};

/* All slices borrow from the parsed bytes. Header values come without the space around them. */
struct http_request {
    struct slice self,
        rest; /* its bytes and those behind it: set by the caller for http_repeats() */
    enum http_method method;
    uint8_t minor;        /* HTTP/1.minor: 0 or 1 */
    bool keep_alive;      /* as the version and Connection say */
    bool expect_continue; /* on FIRN_EAGAIN: the client waits for 100 Continue before its body */
    bool in_body;         /* on FIRN_EAGAIN: the head is complete, the body is not */
    bool traced;          /* traceparent or X-Request-ID is there: wire/trace.h reads them */
    struct slice path;    /* as sent, percent-encoded; begins with '/', or is "*" for OPTIONS */
    struct slice query;   /* what follows '?'; absent when there is none */
    struct slice host, accept, content_type, authorization, idempotency_key, if_none_match;
    struct slice last_event_id;           /* what an EventSource had before it asks again */
    struct slice origin, fetch_site;      /* what a browser says about the page that asks */
    struct slice body;                    /* chunks joined; length 0 when there is none */
    struct slice traceparent, request_id; /* empty when it was there twice */
    struct slice tracestate;              /* of several the first, which is the end that counts */
};

struct http_error {
    uint16_t status;    /* what to answer; the connection cannot be used afterwards */
    const char *reason; /* one sentence without a full stop */
};

/* Reads one request from the start of `p`. Returns how many bytes it took; FIRN_EAGAIN when it is
 * not whole yet (call again with the same bytes and more); FIRN_EFORMAT with *err set when it never
 * can be. A chunked body is joined in place, which is why `p` is writable; that happens only in the
 * call that returns the request. Of repeated Accept headers the first counts. */
ssize_t http_parse(char *p, size_t len, struct http_request *req, struct http_error *err);

/* The same, but llhttp reads every request to its end and both must agree: for tests, which compare
 * the two. */
ssize_t http_parse_slow(char *p, size_t len, struct http_request *req, struct http_error *err);

/* How many requests follow that repeat this one byte for byte; at most `max`. Only for GETs
 * without a body on a connection that stays open: a handler may answer such a run at once
 * (reply.repeats). */
size_t http_repeats(const struct http_request *req, size_t max);

const char *http_method_name(enum http_method m);
bool http_is_method(const char *p, size_t len); /* exactly one of these */

/* "Not Found"; "Unknown" for a status that is not in the table. */
const char *http_status_text(unsigned status);

/* Is a Content-Type this media type, whatever its parameters are? A list of types is none. */
bool http_type_is(struct slice value, const char *type);

/* Is media type `type` ("text/plain") named in an Accept value, with q above 0? */
bool http_names_type(struct slice value, const char *type);

#endif
