/* Bodies of requests, collected up to a bound. Tested in tests/integration/gateway_bodies.py. */
#include "proxy/collect.h"
#include "proxy/held.h"

#include <stdlib.h>

enum { PIECE_BYTES = 64 * 1024 };

static const char too_large[] = "the request's body is larger than the gateway takes here";

enum link_result collect_begin(struct call *c, size_t max, void (*then)(struct call *c))
{
    const struct http_head *h = c->head;
    if (call_body_done(c) || c->collected)
        return LINK_NEXT;
    if (h->framing == FRAMED_BY_LENGTH && h->body_len > max) {
        call_problem(c, 413, too_large);
        return LINK_DONE;
    }
    if (h->framing == FRAMED_BY_LENGTH && !held_fits(c->worker, h->body_len)) {
        call_problem(c, 503, HELD_REFUSED);
        return LINK_DONE;
    }
    c->collected = calloc(1, sizeof *c->collected);
    if (!c->collected) {
        call_problem(c, 503, "the gateway is out of memory");
        return LINK_DONE;
    }
    buf_init(&c->collected->bytes, max);
    c->collected->then = then;
    edge_want_body(c->q);
    return LINK_WAIT;
}

bool collect_more(struct call *c, const char *p, size_t len)
{
    struct buf *b = &c->collected->bytes;
    if (!held_take(c->worker, &c->collected->held, len)) {
        call_problem(c, 503, HELD_REFUSED);
        return true;
    }
    buf_add(b, p, len);
    if (!b->failed)
        return true;
    if (len > b->max - b->len)
        call_problem(c, 413, too_large);
    else
        call_problem(c, 503, "the gateway is out of memory");
    return true; /* what follows is passed over */
}

void collect_end(struct call *c)
{
    c->collected->whole = true;
    c->collected->then(c);
}

void collect_send(struct call *c)
{
    struct collected *b = c->collected;
    bool more = true;
    if (b->sent == 0 && b->bytes.len == 0)
        return;
    while (more && b->sent < b->bytes.len) {
        size_t left = b->bytes.len - b->sent, n = left < PIECE_BYTES ? left : PIECE_BYTES;
        more = exchange_write(c->x, b->bytes.p + b->sent, n);
        b->sent += n;
    }
    if (b->sent == b->bytes.len)
        exchange_end(c->x);
}

void collect_free(struct call *c)
{
    if (c->collected) {
        held_set(c->worker, &c->collected->held, 0);
        buf_done(&c->collected->bytes);
    }
    free(c->collected);
    c->collected = NULL;
}
