/*
 * trace.h - W3C Trace Context: reads and writes the header fields traceparent and tracestate, and
 * judges X-Request-ID. Pure functions over text, for any thread.
 * https://www.w3.org/TR/trace-context-2/
 */
#ifndef FIRN_WIRE_TRACE_H
#define FIRN_WIRE_TRACE_H

#include "firn/error.h"
#include "wire/buf.h"

enum {
    TRACE_ID_BYTES = 16,
    TRACE_SPAN_BYTES = 8,
    TRACE_ID_BUF = 2 * TRACE_ID_BYTES + 1, /* in hex, with a NUL */
    TRACE_SPAN_BUF = 2 * TRACE_SPAN_BYTES + 1,
    TRACE_PARENT_BUF = 56,       /* "00-" trace "-" span "-01" */
    TRACE_STATE_BYTES_MAX = 512, /* what the specification wants everybody to pass on */
    TRACE_STATE_MEMBERS_MAX = 32,
    REQUEST_ID_BYTES_MAX = 128,
};

enum trace_flag {
    TRACE_SAMPLED = 1, /* the caller may have recorded it */
    TRACE_RANDOM = 2,  /* the trace's ID is random */
};

struct trace_parent {
    uint8_t trace[TRACE_ID_BYTES];
    uint8_t span[TRACE_SPAN_BYTES]; /* the caller's */
    uint8_t flags;                  /* of enum trace_flag; others are dropped */
};

/* Reads a traceparent of version 00, or as much as version 00 has of a later one. FIRN_EFORMAT:
 * anything else, upper-case digits, version ff, an ID that is all zero. */
FIRN_MUSTUSE int trace_parent_read(struct slice text, struct trace_parent *out);

/* Writes it as version 00. Returns `out`. */
char *trace_parent_write(const struct trace_parent *p, char out[TRACE_PARENT_BUF]);

/* Two lower-case digits per byte, and a NUL. */
void trace_hex(const uint8_t *bytes, size_t n, char *out);

/* Whether a tracestate may be passed on as it is: at most 32 members and 512 bytes, no key twice.
 * An empty one is fine. */
bool trace_state_ok(struct slice text);

/* Whether a client's X-Request-ID may be echoed and logged: 1 to 128 letters, digits and
 * -._~:/+=@| and nothing that means something in a header, a log line or JSON. */
bool request_id_ok(struct slice text);

#endif
