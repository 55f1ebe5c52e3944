/*
 * Connections of a pool and the queues of exchanges on them. A queue is begun on an idle or a new
 * connection, grows while its first request is not sent (`filling`), and only shrinks afterwards:
 * from the front as answers come, or from the back when the one in front stops them
 * (line_orphan()). Without pipelining it has one exchange. Tested in
 * tests/unit/net/upstream_line.c.
 */
#include "net/upstream_line.h"

#include <stdlib.h>

void line_link(struct line *c, struct line **list)
{
    c->next = *list;
    c->prev = list;
    if (c->next)
        c->next->prev = &c->next;
    *list = c;
}

void line_unlink(struct line *c)
{
    *c->prev = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

void line_close(struct line *c)
{
    firn_assert(!c->x);
    if (c->pool->filling == c)
        c->pool->filling = NULL;
    line_unlink(c);
    stat_add(&c->pool->stats.conns, (uint64_t)-1);
    c->pool->loop->outgoing--;
    stream_close(c->stream);
    if (c->busy)
        c->dead = true;
    else
        free(c);
}

void line_deadline(struct line *c)
{
    const struct upstream_opts *o = &c->pool->opts;
    const struct exchange *x = c->x;
    uint32_t ms = 0;
    if (!c->connected)
        ms = o->connect_ms;
    else if (!x)
        ms = o->idle_ms;
    else if (x->paused)
        ms = 0; /* the client's side has a deadline for its reading */
    else if (x->tunnel)
        ms = x->ended ? o->tunnel_end_ms : o->tunnel_ms;
    else if (x->answered || x->throttled)
        ms = o->body_ms;
    else if (x->ended)
        ms = o->head_ms;
    stream_deadline(c->stream, ms);
}

void exchange_unlink(struct exchange *x)
{
    struct upstream *u = x->pool;
    struct line *c = x->line;
    *x->prev = x->next;
    if (x->next)
        x->next->prev = x->prev;
    else if (c)
        c->last = x->prev;
    else
        u->waiting_last = x->prev;
    if (c)
        c->n--;
    x->line = NULL;
    stat_add(c ? &u->stats.in_flight : &u->stats.waiting, (uint64_t)-1);
}

void exchange_free(struct exchange *x)
{
    buf_done(&x->head);
    free(x);
}

bool line_wanted(const struct line *c)
{
    const struct exchange *x = c->x;
    while (x && x->dropped)
        x = x->next;
    return x != NULL;
}

void line_orphan(struct line *c, struct exchange *x)
{
    struct upstream *u = c->pool;
    while (c->last != (x ? &x->next : &c->x)) {
        struct exchange *o = (struct exchange *)((char *)c->last - offsetof(struct exchange, next));
        exchange_unlink(o);
        if (o->dropped) {
            exchange_free(o);
            continue;
        }
        o->orphan = true;
        o->end = c->connected ? EXCHANGE_STALE : EXCHANGE_NO_CONNECT;
        o->next = u->waiting;
        o->prev = &u->waiting;
        if (o->next)
            o->next->prev = &o->next;
        else
            u->waiting_last = &o->next;
        u->waiting = o;
        stat_add(&u->stats.waiting, 1);
    }
}

void exchange_detach(struct exchange *x, bool reuse)
{
    struct line *c = x->line;
    struct upstream *u = x->pool;
    exchange_unlink(x);
    if (!c)
        return;
    if (!reuse) {
        if (line_wanted(c) && c->x->sent && c->served < u->opts.pipeline)
            u->rest_until_ms = loop_now_ms(u->loop) + u->opts.rest_ms;
        line_orphan(c, NULL);
        line_close(c);
        return;
    }
    c->served++;
    if (!c->x) {
        c->idle = true;
        line_unlink(c);
        line_link(c, &u->idle);
    }
    stream_resume(c->stream);
    line_deadline(c);
}

void exchange_attach(struct exchange *x, struct line *c)
{
    struct upstream *u = x->pool;
    firn_assert(!x->line && (!c->x || (x->pipes && u->filling == c)));
    x->next = NULL;
    x->prev = c->last;
    *c->last = x;
    c->last = &x->next;
    c->n++;
    c->idle = false;
    if (c->n > 1)
        stat_add(&u->stats.pipelined, 1);
    if (c->n == u->opts.pipeline && u->filling == c)
        u->filling = NULL;
    if (c->connected)
        stream_deadline(c->stream, 0); /* the idle one: a timer comes before the head is sent */
    x->line = c;
    stat_add(&u->stats.in_flight, 1);
    stat_add(&u->stats.reused, c->served > 0);
}
