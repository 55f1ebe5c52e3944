/*
 * Asks the peers of peers.h. One round asks all of them, one after the other, each with a deadline;
 * a clash makes the next rounds come soon. Tests: tests/unit/server/peers.c,
 * tests/integration/clones.py.
 */
#include "server/peers.h"
#include "daemon/log.h"
#include "id/diag.h"
#include "platform/mono.h"
#include "wire/http_response.h"
#include "wire/json_read.h"
#include "wire/link.h"
#include "wire/tls_context.h"
#include "wire/url.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    START_MS = 1000,  /* for all of them, before there is a slot */
    ANSWER_MS = 2000, /* for each of them, later */
    EVERY_MS = 5000,
    SOON_MS = 500, /* after the start, and after a clash */
    SOON_ROUNDS = 8,
    ANSWER_BYTES = 16384,
};

struct peer {
    char host[HOST_BYTES_MAX + 1], at[HOST_PORT_BUF];
    uint16_t port;
    bool down;             /* it was when it was last asked */
    unsigned looks;        /* at a clash, one after the other */
    struct node_face face; /* slot -1 when it did not answer */
};

struct peers {
    struct peers_opts opts;
    struct tls_context *tls;
    struct peers_stats stats;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool stop;
    size_t n;
    char answer[ANSWER_BYTES];
    struct peer peer[];
};

/* ---- one answer ---- */

struct reading {
    struct node_face *out;
    unsigned found;
};

static void take(void *user, const char *path, const char *value, bool quoted)
{
    struct reading *r = user;
    struct node_face *f = r->out;
    const struct {
        const char *path;
        char *text;
        size_t size;
    } texts[] = { { "layout", f->layout, sizeof f->layout },
                  { "store.id", f->store, sizeof f->store },
                  { "start", f->start, sizeof f->start } };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (quoted && strcmp(path, texts[i].path) == 0 && strlen(value) < texts[i].size) {
            memcpy(texts[i].text, value, strlen(value) + 1);
            r->found++;
        }
    if (strcmp(path, "ready") == 0)
        f->ready = strcmp(value, "true") == 0;
    else if (!quoted && strcmp(path, "slot") == 0 && strcmp(value, "null") != 0)
        f->slot = strtoll(value, NULL, 10);
}

int peer_read(const char *p, size_t len, struct node_face *out)
{
    struct reading r = { .out = out };
    *out = (struct node_face){ .slot = -1 };
    return json_each(p, len, take, &r) != 0 || r.found < 2 ? FIRN_EFORMAT : 0;
}

static int exchange(struct peers *p, const struct peer *e, int64_t until_ms, struct node_face *out,
                    struct firn_diag *d)
{
    char ask[HOST_PORT_BUF + 128];
    struct link *l;
    struct http_response answer;
    size_t len = 0, got;
    int n = snprintf(ask, sizeof ask,
                     "GET /v1/node HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n"
                     "Connection: close\r\n\r\n",
                     e->at);
    int r = link_open(e->host, e->port, p->tls, until_ms, &l, d);
    if (r != 0)
        return r;
    r = link_send(l, ask, (size_t)n, until_ms, d);
    ssize_t used = FIRN_EAGAIN;
    while (r == 0 && used == FIRN_EAGAIN && len < sizeof p->answer) {
        r = link_recv(l, p->answer + len, sizeof p->answer - len, &got, until_ms, d);
        len += r == 0 ? got : 0;
        if (r == 0)
            used = http_response_read(p->answer, len, false, &answer);
    }
    link_close(l);
    if (r == 0 &&
        (used <= 0 || answer.status != 200 || peer_read(answer.body.p, answer.body.len, out) != 0))
        r = firn__diag(d, FIRN_EFORMAT, 0, "its answer to /v1/node is not a firnd's");
    return r;
}

static void ask(struct peers *p, struct peer *e, int64_t until_ms)
{
    struct firn_diag d = { 0 };
    int r = exchange(p, e, until_ms, &e->face, &d);
    if (r != 0) {
        e->face = (struct node_face){ .slot = -1 };
        atomic_fetch_add_explicit(&p->stats.failures, 1, memory_order_relaxed);
        if (!e->down)
            log_warn("peer_down", "peer=%s cause=%s", e->at, d.text);
    } else if (e->down) {
        log_info("peer_up", "peer=%s slot=%" PRId64, e->at, e->face.slot);
    }
    e->down = r != 0;
}

/* ---- a round ---- */

/* The slots of all peers that are other processes with this layout. */
static void collect(const struct peers *p, const struct node_face *mine, struct slot_avoid *out)
{
    out->n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct node_face *f = &p->peer[i].face;
        if (f->slot >= 0 && f->slot < SLOTS_MAX && strcmp(f->layout, mine->layout) == 0 &&
            strcmp(f->start, mine->start) != 0 && out->n < SLOT_AVOID_MAX)
            out->slot[out->n++] = (uint32_t)f->slot;
    }
}

static bool judge(struct peers *p, struct peer *e, const struct node_face *mine)
{
    if (!faces_clash(mine, &e->face)) {
        e->looks = 0;
        return false;
    }
    if (++e->looks == 1)
        return false; /* a slot of a shared store may just have changed hands */
    if (e->looks == 2) {
        atomic_fetch_add_explicit(&p->stats.clashes, 1, memory_order_relaxed);
        log_error("slot_clash", "slot=%" PRId64 " peer=%s store=%s cause=%s", mine->slot, e->at,
                  e->face.store,
                  "the peer uses the same slot, with another store or a copy of this one: IDs may "
                  "have come twice; give both one shared store");
    }
    return face_yields(mine, &e->face, e->looks);
}

/* Returns when to look again, ms from now. */
static uint64_t look(struct peers *p, uint64_t round)
{
    struct node_face mine;
    struct slot_avoid used;
    bool yield = false, seen = false;
    uint32_t up = 0;
    for (size_t i = 0; i < p->n; i++) {
        ask(p, &p->peer[i], (int64_t)mono_ms() + ANSWER_MS);
        up += !p->peer[i].down;
    }
    atomic_store_explicit(&p->stats.up, up, memory_order_relaxed);
    p->opts.face(p->opts.user, &mine);
    for (size_t i = 0; i < p->n; i++) {
        yield |= judge(p, &p->peer[i], &mine);
        seen |= p->peer[i].looks > 0;
    }
    collect(p, &mine, &used);
    p->opts.avoid(p->opts.user, &used, yield);
    return seen || round < SOON_ROUNDS ? SOON_MS : EVERY_MS;
}

static void *run(void *arg)
{
    struct peers *p = arg;
    for (uint64_t round = 0;; round++) {
        struct timespec t = mono_timespec(mono_ns() + look(p, round) * 1000000);
        pthread_mutex_lock(&p->mutex);
        int over = 0;
        while (!p->stop && !over)
            over = pthread_cond_timedwait(&p->wake, &p->mutex, &t);
        bool stop = p->stop;
        pthread_mutex_unlock(&p->mutex);
        if (stop)
            return NULL;
    }
}

/* ---- life ---- */

void peers_slots(struct peers *p, const char *layout, struct slot_avoid *out)
{
    struct node_face mine = { .slot = -1 };
    int64_t until_ms = (int64_t)mono_ms() + START_MS;
    snprintf(mine.layout, sizeof mine.layout, "%s", layout);
    for (size_t i = 0; i < p->n; i++)
        ask(p, &p->peer[i], until_ms);
    collect(p, &mine, out);
}

int peers_new(const struct peers_opts *o, struct peers **out, struct firn_diag *d)
{
    struct peers *p = calloc(1, sizeof *p + o->at->n * sizeof p->peer[0]);
    if (!p)
        return firn__diag(d, FIRN_ENOMEM, 0, "out of memory");
    int r = o->cert ? link_tls_new(o->ca, o->cert, o->key, &p->tls, d) : 0;
    if (r != 0) {
        free(p);
        return r;
    }
    p->opts = *o;
    for (; p->n < o->at->n; p->n++) {
        struct peer *e = &p->peer[p->n];
        const struct config_addr *a = &o->at->v[p->n];
        snprintf(e->host, sizeof e->host, "%s", a->host);
        e->port = a->port;
        host_port_write(a->host, e->port, e->at);
        e->face.slot = -1;
    }
    pthread_mutex_init(&p->mutex, NULL);
    mono_cond_init(&p->wake);
    *out = p;
    return 0;
}

int peers_start(struct peers *p)
{
    p->started = pthread_create(&p->thread, NULL, run, p) == 0;
    return p->started ? 0 : FIRN_ENOMEM;
}

void peers_free(struct peers *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->mutex);
    p->stop = true;
    pthread_cond_signal(&p->wake);
    pthread_mutex_unlock(&p->mutex);
    if (p->started)
        pthread_join(p->thread, NULL);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->mutex);
    tls_context_free(p->tls);
    free(p);
}

const struct peers_stats *peers_stats(const struct peers *p)
{
    return &p->stats;
}
