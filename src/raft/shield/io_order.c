/*
 * Serialises log I/O that libraft issues concurrently.
 * When libraft truncates the log while it writes a snapshot of its own, the entries that it appends
 * behind the truncation reach the disk before the truncation, are acknowledged, and are removed by
 * it. Open segments do not contain the index of their first entry: after a restart the rest of the
 * log moves down into the gap, and if the terms are the same no check notices. Then this member's
 * registers differ from the cluster's for ever.
 *
 * So a truncation waits until no other operation is under way, and until the append behind it is
 * acknowledged no other operation begins. A snapshot from the leader replaces the log: it waits
 * likewise. All operations keep their order, and those that closing cancels are reported in reverse
 * order.
 */
#include "raft/shield/truncation.h"
#include "raft/node_in.h"

#include <stdlib.h>

enum io_kind { IO_APPEND, IO_TRUNCATE, IO_PUT };

struct io_order_item { /* an operation that waits or is under way */
    struct io_order_item *next;
    struct node *node;
    uint64_t number;
    enum io_kind kind;
    union {
        struct {
            struct raft_io_append req, *theirs;
            const struct raft_entry *entries;
            unsigned count;
            raft_io_append_cb cb;
        } append;
        struct {
            raft_index from, to; /* the first entry to remove, and the last of the log */
        } truncate;
        struct {
            unsigned trailing;
            struct raft_io_snapshot_put req, *theirs;
            const struct raft_snapshot *snapshot;
            raft_io_snapshot_put_cb cb;
        } put;
    };
};

static bool may_begin(const struct io_order *o, const struct io_order_item *i)
{
    bool first_behind = o->truncated && o->appends == 0; /* the first append behind a truncation */
    switch (i->kind) {
    case IO_APPEND:
        return !o->truncated || first_behind;
    case IO_TRUNCATE:
        return o->appends == 0 && !o->putting;
    default:
        return !o->truncated && !o->putting && (i->put.trailing > 0 || o->appends == 0);
    }
}

static void answer(struct io_order_item *i, int status)
{
    if (i->kind == IO_APPEND)
        i->append.cb(i->append.theirs, status);
    else if (i->kind == IO_PUT)
        i->put.cb(i->put.theirs, status);
    free(i);
}

/* When an append fails, libraft drops its entries and all behind them from memory. If the older of
 * two appends failed first, it would look for the newer one's entries in vain. So the appends that
 * closing cancels wait for its end. */
static void cancel(struct io_order_item *i)
{
    struct io_order_item **at = &i->node->shield.order.cancelled;
    if (i->kind != IO_APPEND) {
        answer(i, RAFT_CANCELED);
        return;
    }
    while (*at && (*at)->number > i->number)
        at = &(*at)->next;
    firn_assert(!*at || (*at)->number < i->number, "an operation is cancelled twice");
    i->next = *at;
    *at = i;
}

/* Not from inside libraft's callbacks: libraft has not finished the operation then, and would begin
 * a truncation too early. */
static void run_soon(struct node *n)
{
    if (n->shield.order.first)
        node_pump_soon(n);
}

static void appended(struct raft_io_append *req, int status)
{
    struct io_order_item *i = req->data;
    struct node *n = i->node;
    firn_assert(i->kind == IO_APPEND && n->shield.order.appends > 0, "appends=%u",
                n->shield.order.appends);
    n->shield.order.appends--;
    if (n->shield.order.truncated && status == 0) /* else the truncation may not have ended */
        truncation_done(n->shield.truncation_path);
    n->shield.order.truncated = false;
    if (status == RAFT_CANCELED)
        cancel(i);
    else
        answer(i, status);
    run_soon(n);
}

static void put_done(struct raft_io_snapshot_put *req, int status)
{
    struct io_order_item *i = req->data;
    struct node *n = i->node;
    firn_assert(i->kind == IO_PUT && n->shield.order.putting);
    n->shield.order.putting = false;
    answer(i, status);
    run_soon(n);
}

/* On error the item stays the caller's. */
static int begin(struct node *n, struct io_order_item *i)
{
    struct io_order *o = &n->shield.order;
    int r = o->failed;
    firn_assert(may_begin(o, i), "kind=%d appends=%u putting=%d truncated=%d", (int)i->kind,
                o->appends, o->putting, o->truncated);
    if (r != 0)
        return r;
    switch (i->kind) {
    case IO_APPEND:
        i->append.req.data = i;
        r = o->append(&n->io, &i->append.req, i->append.entries, i->append.count, appended);
        o->appends += r == 0;
        return r;
    case IO_TRUNCATE:
        truncation_note(n->shield.truncation_path, i->truncate.from, i->truncate.to);
        r = o->truncate(&n->io, i->truncate.from);
        o->truncated = r == 0;
        o->failed = r; /* no append may follow entries that should have been removed */
        if (r == 0)
            free(i);
        return r;
    default:
        i->put.req.data = i;
        o->putting = true; /* it may end before put() returns */
        r = o->put(&n->io, i->put.trailing, &i->put.req, i->put.snapshot, put_done);
        if (r != 0)
            o->putting = false;
        return r;
    }
}

void io_order_run(struct node *n)
{
    struct io_order *o = &n->shield.order;
    while (o->first && may_begin(o, o->first)) {
        struct io_order_item *i = o->first;
        o->first = i->next;
        firn_assert(!i->next || i->next->number > i->number);
        int r = begin(n, i);
        if (r != 0)
            answer(i, r);
    }
}

static int take(struct node *n, struct io_order_item item)
{
    struct io_order *o = &n->shield.order;
    struct io_order_item *i = malloc(sizeof *i), **last = &o->first;
    if (!i)
        return RAFT_NOMEM;
    *i = item;
    i->node = n;
    i->number = ++o->begun;
    i->next = NULL;
    if (!o->first && may_begin(o, i)) {
        int r = begin(n, i);
        if (r != 0)
            free(i);
        return r;
    }
    while (*last)
        last = &(*last)->next;
    *last = i;
    return 0;
}

static int on_append(struct raft_io *io, struct raft_io_append *req,
                     const struct raft_entry entries[], unsigned count, raft_io_append_cb cb)
{
    struct node *n = node_of(io);
    firn_assert(count > 0 && n->shield.order.next > 0, "count=%u next=%llu", count,
                n->shield.order.next);
    int r = take(n,
                 (struct io_order_item){
                     .kind = IO_APPEND,
                     .append = { .theirs = req, .entries = entries, .count = count, .cb = cb } });
    n->shield.order.next += r == 0 ? count : 0;
    return r;
}

static int on_truncate(struct raft_io *io, raft_index index)
{
    struct node *n = node_of(io);
    firn_assert(index > 0 && index <= n->shield.order.next, "index=%llu next=%llu", index,
                n->shield.order.next);
    int r = take(
        n, (struct io_order_item){ .kind = IO_TRUNCATE,
                                   .truncate = { .from = index, .to = n->shield.order.next - 1 } });
    if (r == 0)
        n->shield.order.next = index;
    return r;
}

static int on_put(struct raft_io *io, unsigned trailing, struct raft_io_snapshot_put *req,
                  const struct raft_snapshot *snapshot, raft_io_snapshot_put_cb cb)
{
    struct node *n = node_of(io);
    int r = take(
        n, (struct io_order_item){
               .kind = IO_PUT,
               .put = { .trailing = trailing, .theirs = req, .snapshot = snapshot, .cb = cb } });
    if (r == 0 && trailing == 0)
        n->shield.order.next = snapshot->index + 1;
    return r;
}

void io_order_start(struct node *n, raft_index next)
{
    firn_assert(next > 0 && n->shield.order.begun == 0, "next=%llu", next);
    n->shield.order.next = next;
}

static void on_closed(struct raft_io *io)
{
    struct io_order *o = &node_of(io)->shield.order;
    firn_assert(!o->first && o->appends == 0 && !o->putting, "appends=%u putting=%d", o->appends,
                o->putting);
    while (o->cancelled) {
        struct io_order_item *i = o->cancelled;
        o->cancelled = i->next;
        answer(i, RAFT_CANCELED);
    }
    o->closed(io);
}

static void on_close(struct raft_io *io, raft_io_close_cb cb)
{
    struct io_order *o = &node_of(io)->shield.order;
    firn_assert(!o->closed, "closed twice");
    o->failed = RAFT_CANCELED;
    o->closed = cb;
    while (o->first) {
        struct io_order_item *i = o->first;
        o->first = i->next;
        cancel(i);
    }
    o->close(io, on_closed);
}

void io_order_watch(struct node *n)
{
    n->shield.order = (struct io_order){ .append = n->io.append,
                                         .truncate = n->io.truncate,
                                         .put = n->io.snapshot_put,
                                         .close = n->io.close };
    n->io.append = on_append;
    n->io.truncate = on_truncate;
    n->io.snapshot_put = on_put;
    n->io.close = on_close;
}
