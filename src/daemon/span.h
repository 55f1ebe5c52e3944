/*
 * span.h - one span of a trace, and how spans are written as OTLP/JSON. A span is a plain value of
 * fixed size: a server fills one while it works on a request and gives it to the exporter
 * (span_export.h). Pure, but for firn_rng_thread() in span_init().
 * https://opentelemetry.io/docs/specs/otlp/
 */
#ifndef FIRN_DAEMON_SPAN_H
#define FIRN_DAEMON_SPAN_H

#include "wire/trace.h"

enum span_kind { SPAN_INTERNAL = 1, SPAN_SERVER = 2, SPAN_CLIENT = 3 }; /* OTLP's numbers */

enum {
    SPAN_NAME_BUF = 96,
    SPAN_ATTRIBUTES_MAX = 16,
    SPAN_TEXT_BYTES = 1280, /* of all attributes and the tracestate */
};

struct span_attribute {
    const char *key; /* a literal */
    bool is_text;
    uint16_t at, len; /* in span.text */
    uint64_t number;
};

struct span {
    struct trace_parent self; /* the trace, and this span's own ID */
    uint8_t parent[TRACE_SPAN_BYTES];
    bool has_parent, remote; /* remote: the parent is another process's span */
    bool error;
    enum span_kind kind;
    char name[SPAN_NAME_BUF];
    uint64_t start_ns, end_ns; /* of CLOCK_MONOTONIC */
    unsigned attributes;
    struct span_attribute attribute[SPAN_ATTRIBUTES_MAX];
    uint16_t state_at, state_len; /* the tracestate, in `text` */
    uint16_t text_len;
    char text[SPAN_TEXT_BYTES]; /* last: what is not used is not copied */
};

/* The root of a new trace. */
void span_init_root(struct span *s, enum span_kind kind);

/* A child of the span `parent`, in its trace. */
void span_init_child(struct span *s, const struct trace_parent *parent, bool remote,
                     enum span_kind kind);

/* Attributes. `key` is a literal. Beyond the bounds they are left out. */
void span_text(struct span *s, const char *key, struct slice value);
void span_number(struct span *s, const char *key, uint64_t value);

/* A tracestate that trace_state_ok() takes. */
void span_state(struct span *s, struct slice value);

/* Bytes of a span that must be copied. */
size_t span_size(const struct span *s);

/* Whose spans they are; borrowed. */
struct span_resource {
    const char *service;  /* service.name */
    const char *version;  /* service.version */
    const char *instance; /* service.instance.id */
    const char *node;     /* firn.node, or NULL */
};

/* The body of a request: begin, each span, end. `real_ns`: what must be added to CLOCK_MONOTONIC
 * to have the Unix time. */
void spans_begin(struct buf *b, const struct span_resource *r);
void spans_add(struct buf *b, const struct span *s, uint64_t real_ns);
void spans_end(struct buf *b);

#endif
