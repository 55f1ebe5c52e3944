/* Counts the calls of a store. Methods that the inner store lacks are NULL here, too. */
#include "store/counted.h"
#include "platform/mono.h"

#include <stdlib.h>

struct counted {
    struct firn_store base;
    struct firn_store_ops ops;
    struct firn_store *inner;
    struct store_counts *counts;
};

static struct counted *of(struct firn_store *s)
{
    return (struct counted *)(void *)s;
}

static enum store_result result_of(int r)
{
    return r == FIRN_ENOENT      ? STORE_ABSENT
           : r == FIRN_ECONFLICT ? STORE_CONFLICT
           : r == FIRN_EUNKNOWN  ? STORE_UNKNOWN
           : r < 0               ? STORE_FAILED
                                 : STORE_OK;
}

static int count(struct firn_store *s, enum store_op op, uint64_t began_ns, int r)
{
    struct store_counts *n = of(s)->counts;
    latency__more(&n->calls[op][result_of(r)], 1);
    latency_add(&n->took[op], mono_ns() - began_ns, 1);
    return r;
}

static int counted_read(struct firn_store *s, struct firn_slice key, bool fresh,
                        struct firn_record *out, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    uint64_t began = mono_ns();
    return count(s, STORE_READ, began, in->ops->read(in, key, fresh, out, d));
}

static int counted_cas(struct firn_store *s, const struct firn_cas *want, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    uint64_t began = mono_ns();
    return count(s, STORE_WRITE, began, in->ops->cas(in, want, d));
}

static int counted_cas_many(struct firn_store *s, const struct firn_cas *want, size_t n,
                            int *result, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    uint64_t began = mono_ns();
    return count(s, STORE_WRITE, began, in->ops->cas_many(in, want, n, result, d));
}

static int counted_cas_each(struct firn_store *s, const struct firn_cas *want, size_t n,
                            int *result, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    uint64_t began = mono_ns();
    return count(s, STORE_WRITE, began, in->ops->cas_each(in, want, n, result, d));
}

static int counted_scan(struct firn_store *s, struct firn_slice prefix, firn_record_fn *each,
                        void *user, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    uint64_t began = mono_ns();
    return count(s, STORE_SCAN, began, in->ops->scan(in, prefix, each, user, d));
}

static int counted_scan_after(struct firn_store *s, struct firn_slice prefix,
                              struct firn_slice after, firn_record_fn *each, void *user,
                              struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    uint64_t began = mono_ns();
    return count(s, STORE_SCAN, began, in->ops->scan_after(in, prefix, after, each, user, d));
}

/* --- passed on --- */

static int counted_identity(struct firn_store *s, char out[STORE_ID_TEXT_BUF], struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    return in->ops->identity(in, out, d);
}

static int counted_wait(struct firn_store *s, struct firn_slice key, struct firn_slice old,
                        uint32_t timeout_ms, struct firn_record *out, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    return in->ops->wait(in, key, old, timeout_ms, out, d);
}

static int counted_check(struct firn_store *s, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    return in->ops->check(in, d);
}

static int counted_instead(struct firn_store *s, size_t i, struct firn_record *out)
{
    struct firn_store *in = of(s)->inner;
    return in->ops->instead(in, i, out);
}

static int counted_accept(struct firn_store *s, bool forever, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    return in->ops->accept(in, forever, d);
}

static int counted_backup(struct firn_store *s, const char *path, struct firn_diag *d)
{
    struct firn_store *in = of(s)->inner;
    return in->ops->backup(in, path, d);
}

static void counted_close(struct firn_store *s)
{
    firn_store_close(of(s)->inner);
    free(s);
}

int store_counted_new(struct firn_store *inner, struct store_counts *counts,
                      struct firn_store **out)
{
    const struct firn_store_ops *in = inner->ops;
    struct counted *c = calloc(1, sizeof *c);
    if (!c)
        return FIRN_ENOMEM;
    c->inner = inner;
    c->counts = counts;
    c->ops = (struct firn_store_ops){
        .size = sizeof c->ops,
        .scheme = in->scheme,
        .shared = in->shared,
        .read = counted_read,
        .cas = in->cas ? counted_cas : NULL,
        .cas_many = in->cas_many ? counted_cas_many : NULL,
        .scan = in->scan ? counted_scan : NULL,
        .identity = counted_identity,
        .close = counted_close,
        .wait = in->wait ? counted_wait : NULL,
        .cas_each = in->cas_each ? counted_cas_each : NULL,
        .check = in->check ? counted_check : NULL,
        .instead = in->instead ? counted_instead : NULL,
        .scan_after = in->scan_after ? counted_scan_after : NULL,
        .accept = in->accept ? counted_accept : NULL,
        .backup = in->backup ? counted_backup : NULL,
    };
    c->base.ops = &c->ops;
    *out = &c->base;
    return 0;
}
