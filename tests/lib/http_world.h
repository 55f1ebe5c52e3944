/*
 * http_world.h - the HTTP side of the server without sockets, store and coordinator: requests go in
 * as text, answers come out as text. Instead of the ticket desk stands one that this header defines
 * (the linker then leaves the real one out). Include it in one file of a program.
 *
 * Its sequences: "default" answers at once from 100001; "slow" waits for world_settle(); "dated" is
 * dated and waits; "short" has three numbers left; "broken" fails like a store; "taken" exists when
 * it is created, with other settings unless these are the defaults; nothing else exists.
 * A key is kept, unless world.keep is an error; with world.replay it was there before.
 */
#ifndef HTTP_WORLD_H
#define HTTP_WORLD_H

#include "daemon/metrics.h"
#include "firn/dated.h"
#include "net/conn.h"
#include "server/app.h"
#include "server/tracing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static struct world {
    struct app app;
    struct service_ctx ctx;
    struct service service;
    struct loop *loop;
    struct conn conn;
    struct reply *reply;
    struct job *first, **tail; /* wait for world_settle() */
    uint64_t next;
    int keep;
    bool replay;
    char answer[4 * 1024 * 1024]; /* the last one, with a NUL */
    size_t answer_len;
} world;

/* --- the desk --- */

static void world_wait(struct job *j)
{
    j->next = NULL;
    *world.tail = j;
    world.tail = &j->next;
}

enum seq_hand ticket_in_hand(struct ticket_desk *d, const char *name, size_t len, uint64_t want,
                             bool some, uint64_t now_ms, struct seq_range *out,
                             struct seq_record *out_record)
{
    (void)d, (void)some, (void)now_ms, (void)out_record;
    if (len == 7 && memcmp(name, "gapless", 7) == 0)
        return SEQ_HAND_GAPLESS;
    if (want == 0 || len != strlen(DEFAULT_SEQUENCE) || memcmp(name, DEFAULT_SEQUENCE, len) != 0)
        return SEQ_HAND_UNKNOWN;
    *out = (struct seq_range){ world.next, 1, want };
    world.next += want;
    return SEQ_HAND_TAKEN;
}

void ticket_queue(struct ticket_desk *d, struct ticket_wait *w)
{
    (void)d;
    w->job.what = JOB_TAKE;
    world_wait(&w->job);
}

void ticket_submit(struct ticket_desk *d, struct job *j)
{
    (void)d;
    world_wait(j);
}

void ticket_desk_turn(struct ticket_desk *d)
{
    (void)d;
}

static void world_record(struct job *j)
{
    struct seq_spec spec = { .note = "" };
    struct nonce none = { { 0 } };
    if (strcmp(j->name, "dated") == 0)
        spec.note = "dated:day:6";
    if (seq_new(&spec, &none, &j->record, NULL) != 0)
        abort();
}

static void world_run(struct job *j)
{
    static const char *const known[] = { "default", "slow", "dated", "short", "broken", "taken" };
    bool exists = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        exists |= strcmp(known[i], j->name) == 0;
    if (j->keyed)
        j->keyed->replayed = world.replay;
    if (j->what == JOB_KEEP || (j->keyed && world.keep)) {
        j->result = world.keep;
        return;
    }
    j->result = exists ? 0 : FIRN_ENOENT;
    if (strcmp(j->name, "broken") == 0)
        j->result = FIRN_EIO;
    if (j->what == JOB_LIST) {
        j->result = 0;
        j->list = calloc(2, sizeof *j->list);
        j->list_n = 2;
        struct job a = { .name = "dated" }, b = { .name = "slow" };
        world_record(&a);
        world_record(&b);
        snprintf(j->list[0].name, sizeof j->list[0].name, "dated");
        snprintf(j->list[1].name, sizeof j->list[1].name, "slow");
        j->list[0].record = a.record;
        j->list[1].record = b.record;
    } else if (j->what == JOB_CREATE && !exists) {
        struct nonce none = { { 0 } };
        j->spec.note = j->note; /* as coordinator_submit() */
        j->result = seq_new(&j->spec, &none, &j->record, &j->diag);
    } else if (j->what == JOB_CREATE) {
        j->result = FIRN_ECONFLICT;
        world_record(j);
    } else if (j->result == 0) {
        world_record(j);
        bool few = strcmp(j->name, "short") == 0;
        bool first = strcmp(j->name, DEFAULT_SEQUENCE) == 0; /* behind another request */
        j->range = (struct seq_range){ first ? world.next : 41, 1,
                                       few && j->want > 3 ? 3 : j->want };
        world.next += first ? j->want : 0;
        if (strcmp(j->name, "dated") == 0)
            j->period = 20261116;
    }
}

/* Everything that waits, and what comes of it. */
static void world_settle(void)
{
    while (world.first) {
        struct job *j = world.first;
        world.first = j->next;
        if (!world.first)
            world.tail = &world.first;
        world_run(j);
        if (j->what == JOB_TAKE) {
            struct ticket_wait *w = (struct ticket_wait *)(void *)j;
            w->done(w);
        } else {
            j->done(j);
        }
    }
}

/* metrics.c wants a coordinator. */
void metrics_write(struct app *app, struct metrics *m)
{
    (void)app;
    buf_add_str(m->out, "firn_up 1\n");
}

/* --- the world --- */

static void world_resp(struct service_ctx *ctx, const struct resp_request *q, struct reply *r)
{
    (void)ctx;
    (void)q;
    (void)r;
}

/* The window opens: slot 5, from now on for an hour. Not ready: a server that has just started. */
static void world_open_window(bool ready)
{
    if (!ready) { /* a grant is never taken back, so it is another board */
        board_done(&world.app.board);
        board_init(&world.app.board);
    }
    struct timespec real, mono;
    clock_gettime(CLOCK_REALTIME, &real);
    clock_gettime(CLOCK_MONOTONIC, &mono);
    struct lease_view v = { .state = ready ? SLOT_ACTIVE : SLOT_START, .clock = CLOCK_OK };
    v.off_ns = (int64_t)(real.tv_sec - mono.tv_sec) * 1000000000 + real.tv_nsec - mono.tv_nsec;
    if (ready) {
        uint64_t tick = firn_layout_ticks(&world.app.plan.lease, (int64_t)real.tv_sec * 1000000);
        v.grant = (struct slot_grant){ .gen = 1, .slot = 5, .from = tick, .until = tick + 3600000 };
        v.floor_tick = tick;
        v.max_drift = 5000;
        v.window = 3000;
        v.ready = true;
        v.gate = LEASE_GATE_OPEN;
        v.ready_until = v.grant.until;
    }
    board_publish(&world.app.board, &v);
}

static void world_start(void)
{
    struct firn_layout l;
    world.tail = &world.first;
    world.next = 100001;
    world.app.loops = 1;
    world.app.ctx = &world.ctx;
    board_init(&world.app.board);
    static struct history history; /* two rows */
    history_init(&history);
    for (uint64_t i = 1; i <= 2; i++)
        history_add(&history, i * 1000, &(uint64_t){ i }, 1, 1);
    world.app.history = &history;
    memcpy(world.app.start, "s", 2);
    world.ctx.app = &world.app;
    world.ctx.numbers_max = 100000;
    world.ctx.numbers = calloc(world.ctx.numbers_max, sizeof *world.ctx.numbers);
    world.ctx.ticket_kind = firn_kind_find("ticket", 6);
    http_init(&world.ctx);
    world.service = (struct service){ .ctx = &world.ctx, .http = http_handle, .resp = world_resp };
    world.service.answered = tracing_answered;
    if (firn_layout_parse("firn", 4, 0, &l, NULL) != 0 ||
        stamp_plan_init(&world.app.plan, &l, NULL) != 0 ||
        numbers_new(&world.app.plan, &world.app.board, 1, &world.app.numbers) != 0 ||
        minter_new(&world.app.plan, &world.app.board, world.app.numbers, &world.ctx.minter) != 0 ||
        loop_new(NULL, &world.service, &world.app.places, &world.loop) != 0)
        abort();
    world.ctx.loop = world.loop;
    world.conn.loop = world.loop;
    world.conn.in_todo = true; /* then reply_done() does nothing but mark */
    world_open_window(true);
}

static inline void world_end(void)
{
    http_done(&world.ctx);
    minter_free(world.ctx.minter);
    numbers_free(world.app.numbers);
    free(world.ctx.numbers);
    loop_free(world.loop);
    history_done(world.app.history);
    board_done(&world.app.board);
    memset(&world, 0, sizeof world);
}

/* One request, however many waits it takes. The answer is in world.answer; false: no request. */
static bool world_ask(char *request, size_t len, enum port port)
{
    struct http_request req;
    struct http_error err;
    struct reply r = { .loop = world.loop, .peer = &world.conn.peer };
    ssize_t used = http_parse(request, len, &req, &err);
    if (used < 0)
        return false;
    world.conn.peer.tag = (int)port;
    buf_init(&r.own, sizeof world.answer - 1);
    r.out = &r.own;
    r.head = req.method == METHOD_HEAD;
    r.keep_alive = req.keep_alive;
    r.minor = req.minor;
    http_handle(&world.ctx, &req, &r);
    memset(request, '#', (size_t)used); /* nothing may read it any more */
    world_settle();
    if (r.deferred && !r.done)
        abort(); /* nothing is left that could answer */
    world.conn.held = 0;
    world.loop->held_bytes = 0;
    if (r.own.failed || r.own.len == 0)
        abort();
    world.answer_len = r.own.len;
    memcpy(world.answer, r.own.p, r.own.len);
    world.answer[r.own.len] = '\0';
    buf_done(&r.own);
    return true;
}

#endif
