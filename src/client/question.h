/*
 * question.h - what is asked of a server and what it answered, apart from how it is said (http1.h, resp2.h).
 */
#ifndef FIRN_CLIENT_QUESTION_H
#define FIRN_CLIENT_QUESTION_H

#include "client/runs.h"
#include "client/url.h"
#include "firn/client.h"

enum {
    KEY_MAX = 255,
    PATH_BUF = 192,
    BODY_BUF = 512,
    QUESTION_BYTES_MAX = 4096, /* a question as it is sent: path, token, key, body */
};

enum question_what {
    ASK_NUMBERS, /* `n` numbers of the client's kind */
    ASK_TEXT,    /* one ID of it as text */
    ASK_GET,     /* a path of the HTTP API; the answer's body comes back as it is */
    ASK_POST,
    ASK_DELETE,
};

struct question {
    enum question_what what;
    uint64_t n;
    char key[KEY_MAX + 1];               /* "": none */
    char path[PATH_BUF], body[BODY_BUF]; /* ASK_GET and below */
};

/* These go over HTTP whatever the client speaks else: every port of firnd understands both. */
static inline bool question_is_http(const struct question *q)
{
    return q->what >= ASK_GET;
}

struct answer_in {
    int error;  /* 0, or what the server's refusal means: FIRN_E... */
    bool again; /* it may help to ask again, here later or elsewhere now */
    bool busy;  /* the server says that it cannot serve anybody at the moment */
    bool close; /* the connection is not to be used again */
    size_t at;  /* resp2.c: how far a list was read, and what of it is missing */
    uint64_t missing;
    struct runs numbers;             /* ASK_NUMBERS; the receiver frees it */
    char text[FIRN_CLIENT_TEXT_BUF]; /* ASK_TEXT: the ID; on error what the server says */
    const char *body; /* ASK_GET and below: borrowed from the bytes that were parsed */
    size_t body_len;
};

#endif
