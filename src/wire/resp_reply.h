/*
 * resp_reply.h - reads replies of the Redis protocol, RESP2 and RESP3, out of bytes, value by
 * value. Knows no socket and keeps no state. Any thread.
 */
#ifndef FIRN_WIRE_RESP_REPLY_H
#define FIRN_WIRE_RESP_REPLY_H

#include "firn/error.h"
#include "wire/buf.h"

#include <sys/types.h>

enum {
    RESP_REPLY_LINE_MAX = 64 * 1024,
    RESP_REPLY_BULK_MAX = 64 << 20,
    RESP_REPLY_ELEMENTS_MAX = 1 << 24,
};

enum resp_type {
    RESP_NUMBER,  /* ':'; `text` has its digits */
    RESP_TEXT,    /* '$' and '=' */
    RESP_SIMPLE,  /* '+', and RESP3's '_', '#', ',' and '(' */
    RESP_NULL,    /* a '$' or '=' of length -1 */
    RESP_FAILURE, /* '-' and '!' */
    /* '*', '~', '>' and '%'; `members` values follow, 0 also for RESP2's null array */
    RESP_CONTAINER,
};

struct resp_value {
    enum resp_type type;
    struct slice text; /* borrowed; absent for RESP_NULL and RESP_CONTAINER */
    uint64_t members;
};

/* The value at the start of `p`, a container without its members: how many bytes it takes,
 * FIRN_EAGAIN when it is not whole yet, or FIRN_EFORMAT. */
FIRN_MUSTUSE ssize_t resp_reply(const char *p, size_t len, struct resp_value *out);

#endif
