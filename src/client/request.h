/*
 * request.h - what is asked of a server and what it answered, apart from how it is said (http1.h, resp2.h).
 */
#ifndef FIRN_CLIENT_REQUEST_H
#define FIRN_CLIENT_REQUEST_H

#include "client/runs.h"
#include "client/url.h"
#include "firn/client.h"

enum {
    KEY_MAX = 255,
    PATH_BUF = 192,
    BODY_BUF = 512,
    REQUEST_BYTES_MAX = 4096, /* a question as it is sent: path, token, key, body */
};

enum request_kind {
    REQUEST_NUMBERS, /* `n` numbers of the client's kind */
    REQUEST_TEXT,    /* one ID of it as text */
    REQUEST_GET,     /* a path of the HTTP API; the answer's body comes back as it is */
    REQUEST_POST,
    REQUEST_DELETE,
};

struct request {
    enum request_kind kind;
    uint64_t n;
    char key[KEY_MAX + 1];               /* "": none */
    char path[PATH_BUF], body[BODY_BUF]; /* REQUEST_GET and below */
};

/* These go over HTTP whatever the client speaks else: every port of firnd understands both. */
static inline bool request_is_http(const struct request *q)
{
    return q->kind >= REQUEST_GET;
}

struct response {
    int error;  /* 0, or what the server's refusal means: FIRN_E... */
    bool again; /* it may help to ask again, here later or elsewhere now */
    bool busy;  /* the server says that it cannot serve anybody at the moment */
    bool close; /* the connection is not to be used again */
    size_t at;  /* resp2.c: how far a list was read, and what of it is missing */
    uint64_t missing;
    struct runs numbers;             /* REQUEST_NUMBERS; the receiver frees it */
    char text[FIRN_CLIENT_TEXT_BUF]; /* REQUEST_TEXT: the ID; on error what the server says */
    const char *body; /* REQUEST_GET and below: borrowed from the bytes that were parsed */
    size_t body_len;
};

#endif
