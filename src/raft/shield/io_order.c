/*
 * What the disk is asked for, one after another where libraft would do it at once. When the end of the log is cut
 * off (it is not what the leader has) while a snapshot of our own is being written, what is appended behind the
 * cut reaches the disk before it, is acknowledged, and goes with it. Segments that are open do not say at which
 * entry they begin: after a restart the rest of the log moves down into the gap, in its place, and if the terms
 * are the same nobody sees it. Then this member's registers are other ones than everybody's, for ever.
 *
 * So a cut waits until nothing is under way, and as long as the append behind it is not acknowledged, nothing
 * else begins. A snapshot that the leader sent replaces the log: it waits likewise. All keep their order, and what is
 * cancelled in the end is told in the reverse one.
 */
#include "raft/shield/truncation.h"
#include "raft/node_in.h"

#include <stdlib.h>

enum io_kind { IO_APPEND, IO_TRUNCATE, IO_PUT };

struct io_order_item { /* waits, or is under way */
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
            raft_index from, to; /* the first that goes, and the last there is */
        } cut;
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
    bool cut = o->truncated && o->appends == 0; /* and nothing behind it yet */
    switch (i->kind) {
    case IO_APPEND:
        return !o->truncated || cut;
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

/* When libraft is told that an entry was not written, it forgets that one and all behind it. Told the older one first
 * it would look for the newer one where nothing is any more. So what closing cancels waits for its end. */
static void cancel(struct io_order_item *i)
{
    struct io_order_item **at = &i->node->shield.order.cancelled;
    if (i->kind != IO_APPEND) {
        answer(i, RAFT_CANCELED);
        return;
    }
    while (*at && (*at)->number > i->number)
        at = &(*at)->next;
    i->next = *at;
    *at = i;
}

/* Not from inside libraft's callbacks: it is not done with what it calls them for, and lets a cut begin too
 * early. */
static void go_soon(struct node *n)
{
    if (n->shield.order.first)
        node_pump_soon(n);
}

static void appended(struct raft_io_append *req, int status)
{
    struct io_order_item *i = req->data;
    struct node *n = i->node;
    n->shield.order.appends--;
    if (n->shield.order.truncated && status == 0) /* else it may still be going on */
        truncation_done(n->shield.truncation_path);
    n->shield.order.truncated = false;
    if (status == RAFT_CANCELED)
        cancel(i);
    else
        answer(i, status);
    go_soon(n);
}

static void put_done(struct raft_io_snapshot_put *req, int status)
{
    struct io_order_item *i = req->data;
    struct node *n = i->node;
    n->shield.order.putting = false;
    answer(i, status);
    go_soon(n);
}

/* Where it fails, the item is still the caller's. */
static int begin(struct node *n, struct io_order_item *i)
{
    struct io_order *o = &n->shield.order;
    int r = o->failed;
    if (r != 0)
        return r;
    switch (i->kind) {
    case IO_APPEND:
        i->append.req.data = i;
        r = o->append(&n->io, &i->append.req, i->append.entries, i->append.count, appended);
        o->appends += r == 0;
        return r;
    case IO_TRUNCATE:
        truncation_note(n->shield.truncation_path, i->cut.from, i->cut.to);
        r = o->truncate(&n->io, i->cut.from);
        o->truncated = r == 0;
        o->failed = r; /* nothing may follow what should have gone */
        if (r == 0)
            free(i);
        return r;
    default:
        i->put.req.data = i;
        o->putting = true; /* it may end before this returns */
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
    int r = take(
        n, (struct io_order_item){ .kind = IO_TRUNCATE,
                                   .cut = { .from = index, .to = n->shield.order.next - 1 } });
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
    n->shield.order.next = next;
}

static void on_closed(struct raft_io *io)
{
    struct io_order *o = &node_of(io)->shield.order;
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
