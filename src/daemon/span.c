/* Spans and their JSON (span.h). */
#include "daemon/span.h"
#include "firn/random.h"
#include "wire/json_write.h"

#include <stdio.h>

enum { FLAG_HAS_REMOTE = 0x100, FLAG_REMOTE = 0x200 }; /* of Span.flags, beside the W3C flags */

/* An ID that is all zero is none. */
static void random_id(uint8_t *out, size_t n)
{
    do
        firn_rng_bytes(firn_rng_thread(), out, n);
    while (memcmp(out, (uint8_t[TRACE_ID_BYTES]){ 0 }, n) == 0);
}

/* Everything but `text`, whose bytes count only up to text_len. */
static void clear(struct span *s, enum span_kind kind)
{
    memset(s, 0, offsetof(struct span, text));
    s->kind = kind;
    random_id(s->self.span, sizeof s->self.span);
}

void span_init_root(struct span *s, enum span_kind kind)
{
    clear(s, kind);
    random_id(s->self.trace, sizeof s->self.trace);
    s->self.flags = TRACE_SAMPLED | TRACE_RANDOM;
}

void span_init_child(struct span *s, const struct trace_parent *parent, bool remote,
                     enum span_kind kind)
{
    clear(s, kind);
    memcpy(s->self.trace, parent->trace, sizeof s->self.trace);
    memcpy(s->parent, parent->span, sizeof s->parent);
    s->self.flags = parent->flags;
    s->has_parent = true;
    s->remote = remote;
}

static bool keep(struct span *s, struct slice value, uint16_t *at, uint16_t *len)
{
    if (value.len > sizeof s->text - s->text_len)
        return false;
    *at = s->text_len;
    *len = (uint16_t)value.len;
    if (value.len > 0)
        memcpy(s->text + s->text_len, value.p, value.len);
    s->text_len = (uint16_t)(s->text_len + value.len);
    return true;
}

void span_text(struct span *s, const char *key, struct slice value)
{
    struct span_attribute a = { .key = key, .is_text = true };
    if (value.p && s->attributes < SPAN_ATTRIBUTES_MAX && keep(s, value, &a.at, &a.len))
        s->attribute[s->attributes++] = a;
}

void span_number(struct span *s, const char *key, uint64_t value)
{
    if (s->attributes < SPAN_ATTRIBUTES_MAX)
        s->attribute[s->attributes++] = (struct span_attribute){ .key = key, .number = value };
}

void span_state(struct span *s, struct slice value)
{
    if (!keep(s, value, &s->state_at, &s->state_len))
        s->state_len = 0;
}

size_t span_size(const struct span *s)
{
    return offsetof(struct span, text) + s->text_len;
}

/* ---- JSON ---- */

/* 64-bit numbers are strings in proto3's JSON. */
static void attribute(struct buf *b, const char *key, const char *text, size_t len, uint64_t number)
{
    json_begin(b, NULL, '{');
    json_text(b, "key", key);
    json_begin(b, "value", '{');
    if (text)
        json_bytes(b, "stringValue", text, len);
    else
        json_id(b, "intValue", number);
    json_end(b, '}');
    json_end(b, '}');
}

static void resource_text(struct buf *b, const char *key, const char *text)
{
    if (text)
        attribute(b, key, text, strlen(text), 0);
}

void spans_begin(struct buf *b, const struct span_resource *r)
{
    json_begin(b, NULL, '{');
    json_begin(b, "resourceSpans", '[');
    json_begin(b, NULL, '{');
    json_begin(b, "resource", '{');
    json_begin(b, "attributes", '[');
    resource_text(b, "service.name", r->service);
    resource_text(b, "service.version", r->version);
    resource_text(b, "service.instance.id", r->instance);
    resource_text(b, "firn.node", r->node);
    json_end(b, ']');
    json_end(b, '}');
    json_begin(b, "scopeSpans", '[');
    json_begin(b, NULL, '{');
    json_begin(b, "scope", '{');
    json_text(b, "name", "firn");
    json_text(b, "version", r->version);
    json_end(b, '}');
    json_begin(b, "spans", '[');
}

static void hex(struct buf *b, const char *key, const uint8_t *bytes, size_t n)
{
    char text[TRACE_ID_BUF];
    trace_hex(bytes, n, text);
    json_text(b, key, text);
}

void spans_add(struct buf *b, const struct span *s, uint64_t real_ns)
{
    json_begin(b, NULL, '{');
    hex(b, "traceId", s->self.trace, sizeof s->self.trace);
    hex(b, "spanId", s->self.span, sizeof s->self.span);
    if (s->has_parent)
        hex(b, "parentSpanId", s->parent, sizeof s->parent);
    if (s->state_len > 0)
        json_bytes(b, "traceState", s->text + s->state_at, s->state_len);
    json_count(b, "flags",
               s->self.flags | FLAG_HAS_REMOTE | (s->remote ? (unsigned)FLAG_REMOTE : 0));
    json_text(b, "name", s->name);
    json_count(b, "kind", s->kind);
    json_id(b, "startTimeUnixNano", real_ns + s->start_ns);
    json_id(b, "endTimeUnixNano", real_ns + s->end_ns);
    json_begin(b, "attributes", '[');
    for (unsigned i = 0; i < s->attributes; i++) {
        const struct span_attribute *a = &s->attribute[i];
        attribute(b, a->key, a->is_text ? s->text + a->at : NULL, a->len, a->number);
    }
    json_end(b, ']');
    json_begin(b, "status", '{');
    if (s->error)
        json_count(b, "code", 2);
    json_end(b, '}');
    json_end(b, '}');
}

void spans_end(struct buf *b)
{
    json_end(b, ']');
    json_end(b, '}');
    json_end(b, ']');
    json_end(b, '}');
    json_end(b, ']');
    json_end(b, '}');
}
