/* request.h - requests to a server and its responses, independent of the protocol (http1.h,
 * resp2.h). */
#ifndef FIRN_CLIENT_REQUEST_H
#define FIRN_CLIENT_REQUEST_H

#include "client/runs.h"
#include "client/url.h"
#include "firn/client.h"
#include "wire/trace.h"

enum {
    KEY_MAX = 255,
    PATH_BUF = 192,
    BODY_BUF = 512,
    REQUEST_BYTES_MAX = 4096, /* as it is sent: path, token, key, body */
};

enum request_kind {
    REQUEST_NUMBERS, /* `n` numbers of the client's kind */
    REQUEST_TEXT,    /* one ID of it as text */
    REQUEST_GET,     /* a path of the HTTP API; the response's body is returned as it is */
    REQUEST_POST,
    REQUEST_DELETE,
};

struct request {
    enum request_kind kind;
    uint64_t n;
    uint32_t shard;                                                   /* of snowflakes */
    char key[KEY_MAX + 1];                                            /* "": none */
    char path[PATH_BUF], body[BODY_BUF];                              /* REQUEST_GET and below */
    char id[REQUEST_ID_BYTES_MAX + 1], traceparent[TRACE_PARENT_BUF]; /* of the caller; "": none */
};

/* How firnd begins to say that a layout has no such shard. */
#define SHARD_REFUSED "the shard does not fit"

/* These go over HTTP even with proto=resp: every port of firnd speaks both. */
static inline bool request_is_http(const struct request *q)
{
    return q->kind >= REQUEST_GET;
}

struct response {
    int error;  /* 0, or the meaning of the server's error: FIRN_E... */
    bool again; /* a retry may help, on this server later or on another now */
    bool busy;  /* the server reports that it is not ready */
    bool close; /* the connection must not be used again */
    size_t at;  /* resp2.c: bytes of a list that were read, and values that are missing */
    uint64_t missing;
    struct runs numbers;             /* REQUEST_NUMBERS; the trip frees it */
    char text[FIRN_CLIENT_TEXT_BUF]; /* REQUEST_TEXT: the ID; on error the server's message */
    const char *body; /* REQUEST_GET and below: borrowed from the bytes that were parsed */
    size_t body_len;
};

#endif
