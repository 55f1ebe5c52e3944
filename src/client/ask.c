/*
 * Reads what a call asks for: the public struct firn_client_ask becomes a struct order, whose
 * requests carry its key, shard and names. Tests: tests/unit/client/async.c.
 */
#include "client/handle.h"
#include "id/diag.h"
#include "platform/mono.h"

#include <string.h>

static bool is_number(const char *kind)
{
    return strcmp(kind, "snowflake") == 0 || strcmp(kind, "sonyflake") == 0 ||
           strcmp(kind, "ticket") == 0;
}

static int read_key(const char *key, struct request *q, struct firn_diag *d)
{
    size_t len = key ? strlen(key) : 0;
    for (size_t i = 0; i < len && len <= KEY_MAX; i++)
        if (key[i] <= ' ' || key[i] > '~')
            len = KEY_MAX + 1;
    if (key && (len == 0 || len > KEY_MAX))
        return firn__diag(d, FIRN_EINVAL, 0,
                          "a key has 1 to 255 printable characters without spaces");
    if (key)
        memcpy(q->key, key, len + 1);
    return 0;
}

/* The names of the caller's own request; they become header lines. */
static int read_names(const struct firn_client_ask *a, struct request *q, struct firn_diag *d)
{
    struct trace_parent parent;
    struct slice id = { a->request_id, a->request_id ? strlen(a->request_id) : 0 };
    struct slice trace = { a->traceparent, a->traceparent ? strlen(a->traceparent) : 0 };
    if (id.p && !request_id_ok(id))
        return firn__diag(d, FIRN_EINVAL, 0,
                          "request_id is not 1 to 128 letters, digits and -._~:/+=@|");
    if (trace.p && trace_parent_read(trace, &parent) != 0)
        return firn__diag(d, FIRN_EINVAL, 0, "traceparent is not in the form of W3C Trace Context");
    if (id.p)
        memcpy(q->id, id.p, id.len + 1);
    if (trace.p)
        trace_parent_write(&parent, q->traceparent);
    return 0;
}

int order_read(const struct firn_client *f, const struct firn_client_ask *a, enum request_kind kind,
               struct order *out, struct firn_diag *d)
{
    const struct client_opts *o = &f->opts;
    *out = (struct order){ .q = { .kind = kind, .n = 1, .shard = a->shard }, .user = a->user };
    out->end_ms = mono_ms() + (a->deadline_ms ? a->deadline_ms : o->deadline_ms);
    out->here = o->mode != MODE_REMOTE && !a->key;
    if (kind == REQUEST_NUMBERS && !is_number(o->kind))
        return firn__diag(d, FIRN_ENOTSUP, 0, "%s IDs are texts: use firn_client_next_text()",
                          o->kind);
    if (a->shard && strcmp(o->kind, "snowflake") != 0)
        return firn__diag(d, FIRN_EINVAL, 0,
                          "a shard is for kind=snowflake, not for kind=%.40s: leave it 0", o->kind);
    int r = read_key(a->key, &out->q, d);
    return r ? r : read_names(a, &out->q, d);
}

int order_take(const struct firn_client *f, const struct firn_client_ask *ask, bool text,
               struct order *out, struct firn_diag *d)
{
    struct firn_client_ask a = FIRN_CLIENT_ASK_INIT;
    int r = firn__sized_copy(&a, sizeof a, ask, ask->size,
                             SIZE_UP_TO(struct firn_client_ask, user));
    if (r)
        return firn__diag(d, r, 0,
                          r == FIRN_EINVAL ? "ask.size is not set: start from FIRN_CLIENT_ASK_INIT"
                                           : "the ask is newer than this library");
    return order_read(f, &a, text || a.text ? REQUEST_TEXT : REQUEST_NUMBERS, out, d);
}
