/*
 * libraft's log on a real disk, through io_order.c: entries are appended and cut off, snapshots are
 * taken and received, the process ends at any moment, and the next one must find what was
 * acknowledged, each entry in its place. Each life is a process of its own; what it was promised is
 * in memory that they share. With FIRN_WITHOUT_ORDER in the environment libraft is on its own, and
 * this fails within a few worlds.
 */
#include "raft/shield/closed_segment.h"
#include "raft/shield/truncation.h"
#include "raft/node_in.h"
#include "raft/shield/segment.h"
#include "t.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORLDS = 8,
    LIVES = 10,
    ENTRIES_MAX = 4096,
    AT_ONCE = 4,
    TOLD = 64 * 1024,
};

struct world {
    uint64_t entry[ENTRIES_MAX]; /* what is in the log there */
    uint64_t last, acked;        /* in the log; and on the disk, as it said */
    uint64_t snapshot;           /* that is there */
    uint64_t generations;
    char dir[64];
    size_t told; /* what was done, for who reads of a failure */
    char story[TOLD];
};

static struct world *w;

__attribute__((format(printf, 1, 2))) static void tell(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(w->story + w->told, TOLD - w->told, fmt, args);
    va_end(args);
    if (n > 0 && w->told + (size_t)n < TOLD)
        w->told += (size_t)n;
}

/* ---- a member that has nothing but its disk ---- */

static struct node node;

static int transport_init(struct raft_uv_transport *t, raft_id id, const char *address)
{
    (void)t, (void)id, (void)address;
    return 0;
}

static void transport_close(struct raft_uv_transport *t, raft_uv_transport_close_cb cb)
{
    cb(t);
}

static void on_wake(uv_async_t *a)
{
    (void)a;
    io_order_run(&node);
}

static bool opened(void)
{
    char log[100];
    struct firn_diag d = { 0 };
    snprintf(log, sizeof log, "%s/log", w->dir);
    snprintf(node.shield.truncation_path, sizeof node.shield.truncation_path, "%s/cut", w->dir);
    uv_loop_init(&node.loop.uv);
    uv_async_init(&node.loop.uv, &node.loop.wake, on_wake);
    node.net.transport = (struct raft_uv_transport){ .init = transport_init,
                                                     .close = transport_close };
    if (raft_uv_init(&node.io, &node.loop.uv, log, &node.net.transport) != 0)
        return false;
    raft_uv_set_auto_recovery(&node.io, false);
    if (!getenv("FIRN_WITHOUT_ORDER"))
        io_order_watch(&node);
    return node.io.init(&node.io, 1, "1") == 0 && closed_repair(log, &d) == 0 &&
           truncation_finish(node.shield.truncation_path, log, &d) == 0 &&
           closed_drop_replaced(log, &d) == 0 && segment_check(log, &d) == 0;
}

/* Whether it is what was promised. From then on what is there is the promise. */
static bool loaded(void)
{
    raft_term term;
    raft_id vote;
    struct raft_snapshot *s;
    raft_index first;
    struct raft_entry *e;
    size_t n;
    int r = node.io.load(&node.io, &term, &vote, &s, &first, &e, &n);
    if (r != 0) {
        tell("refused: %s\n", node.io.errmsg);
        return false;
    }
    uint64_t last = first + n - 1, snapshot = s ? s->index : 0;
    last = last > snapshot ? last : snapshot;
    tell("found %llu to %" PRIu64 ", snapshot %" PRIu64 "\n", first, last, snapshot);
    if (last < w->acked || snapshot < w->snapshot)
        return false;
    for (size_t i = 0; i < n; i++) {
        uint64_t is = *(uint64_t *)e[i].buf.base, *should = &w->entry[first + i];
        if (first + i <= w->acked && is != *should && first + i > snapshot) {
            tell("entry %llu is %" PRIx64 ", not %" PRIx64 "\n", first + i, is, *should);
            return false;
        }
        *should = is;
    }
    w->last = w->acked = last;
    w->snapshot = snapshot;
    io_order_start(&node, last + 1);
    return true;
}

/* ---- what it does ---- */

struct appending {
    struct raft_io_append req;
    uint64_t first;
    unsigned n;
    uint64_t is[AT_ONCE];
    struct raft_entry e[AT_ONCE];
};

static void on_appended(struct raft_io_append *req, int status)
{
    struct appending *a = (struct appending *)(void *)req;
    tell("  appended %" PRIu64 " +%u: %d\n", a->first, a->n, status);
    for (unsigned i = 0; i < a->n && status == 0; i++)
        if (a->first + i == w->acked + 1 && a->first + i <= w->last &&
            w->entry[a->first + i] == a->is[i])
            w->acked++;
}

static void do_append(void)
{
    struct appending *a = calloc(1, sizeof *a);
    a->first = w->last + 1;
    a->n = 1 + (unsigned)t_random_below(AT_ONCE);
    w->generations++;
    for (unsigned i = 0; i < a->n; i++) {
        a->is[i] = w->generations << 32 | (a->first + i);
        w->entry[++w->last] = a->is[i];
        a->e[i] = (struct raft_entry){ .term = 1,
                                       .type = RAFT_COMMAND,
                                       .buf = { &a->is[i], sizeof a->is[i] } };
    }
    tell("append %" PRIu64 " +%u, %" PRIx64 "\n", a->first, a->n, w->generations);
    (void)node.io.append(&node.io, &a->req, a->e, a->n, on_appended);
}

static struct raft_io_snapshot_put put_req;
static struct raft_snapshot put;
static bool putting;

static void on_put(struct raft_io_snapshot_put *req, int status)
{
    (void)req;
    putting = false;
    tell("  snapshot %llu: %d\n", put.index, status);
    if (status == 0)
        w->snapshot = put.index;
    raft_configuration_close(&put.configuration);
}

static void do_put(uint64_t index, unsigned trailing)
{
    static char bytes[64] = "registers";
    static struct raft_buffer b = { bytes, sizeof bytes };
    put = (struct raft_snapshot){
        .index = index, .term = 1, .configuration_index = 1, .bufs = &b, .n_bufs = 1
    };
    raft_configuration_init(&put.configuration);
    (void)raft_configuration_add(&put.configuration, 1, "1", RAFT_VOTER);
    putting = true;
    tell("snapshot %" PRIu64 ", %u stay\n", index, trailing);
    (void)node.io.snapshot_put(&node.io, trailing, &put_req, &put, on_put);
}

/* Never what is in a snapshot; always with something behind it, as Raft does. */
static void do_cut(void)
{
    uint64_t low = w->snapshot > put.index ? w->snapshot : put.index;
    if (w->last <= low)
        return;
    uint64_t most = w->last - low, at = w->last - t_random_below(most < 8 ? most : 8);
    tell("cut at %" PRIu64 "\n", at);
    w->last = at - 1;
    w->acked = w->acked < w->last ? w->acked : w->last;
    (void)node.io.truncate(&node.io, at);
    do_append();
}

static void run_for(uint64_t us)
{
    uint64_t end = uv_hrtime() + us * 1000;
    tell("run %" PRIu64 "\n", us);
    do
        uv_run(&node.loop.uv, UV_RUN_NOWAIT);
    while (uv_hrtime() < end);
}

/* The leader's: it is ahead, and nothing that follows may be appended before it is there. */
static void do_install(void)
{
    uint64_t until = uv_hrtime() + UINT64_C(10000000000), index = w->last + 1 + t_random_below(5);
    do_put(index, 0);
    if (t_random_below(3) == 0) { /* it ends meanwhile */
        run_for(t_random_below(3000));
        _exit(0);
    }
    while (putting && uv_hrtime() < until)
        uv_run(&node.loop.uv, UV_RUN_ONCE);
    if (putting)
        _exit(2);
    w->last = w->acked = index;
}

static void live(void)
{
    if (!opened() || !loaded())
        _exit(1);
    uint64_t steps = 3 + t_random_below(25);
    for (uint64_t i = 0; i < steps && w->last + 2 * AT_ONCE < ENTRIES_MAX; i++)
        switch (t_random_below(16)) {
        default:
            do_append();
            break;
        case 6:
        case 7:
        case 8:
            do_cut();
            break;
        case 9:
        case 10:
        case 11:
            if (!putting && w->acked > w->snapshot && w->acked > put.index)
                do_put(w->acked, 1 + (unsigned)t_random_below(10));
            break;
        case 12:
        case 13:
        case 14:
            run_for(t_random_below(4) ? t_random_below(300) : t_random_below(8000));
            break;
        case 15:
            if (!putting && t_random_below(4) == 0)
                do_install();
        }
    run_for(t_random_below(6000));
    _exit(0);
}

T_TEST(what_was_acknowledged_is_there_and_in_its_place)
{
    w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    T_OK(w != MAP_FAILED);
    const char *more = getenv("FIRN_WORLDS");
    uint64_t worlds = more ? strtoull(more, NULL, 10) : t_scale(WORLDS);
    for (uint64_t i = 0; i < worlds; i++) {
        char command[100];
        memset(w, 0, sizeof *w);
        strcpy(w->dir, "/tmp/firn-order-XXXXXX");
        T_OK(mkdtemp(w->dir));
        snprintf(command, sizeof command, "mkdir %s/log", w->dir);
        T_EQ(system(command), 0);
        for (int life = 0; life < LIVES; life++) {
            int status = 0;
            tell("-- life %d\n", life);
            pid_t child = fork();
            if (child == 0) {
                for (int drawn = 0; drawn < life; drawn++)
                    (void)t_random(); /* not the same again */
                live();
            }
            T_OK(child > 0 && waitpid(child, &status, 0) == child);
            T_EQ(status, 0, "%s", w->story + (w->told > 3000 ? w->told - 3000 : 0));
        }
        for (int drawn = 0; drawn < 1000; drawn++)
            (void)t_random();
        snprintf(command, sizeof command, "rm -r %s", w->dir);
        T_EQ(system(command), 0);
    }
    munmap(w, sizeof *w);
}
