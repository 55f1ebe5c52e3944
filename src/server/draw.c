/*
 * Numbers for a request. While there are plenty it draws them, and that is all. When they are
 * short, or the request is large, its client must not have taken more than its share lately
 * (stamps_share()). A request that cannot have its numbers now is handed over again a little later;
 * the loop serves other requests meanwhile. Tested in tests/integration/shares.py.
 */
#include "server/draw.h"
#include "platform/mono.h"
#include "server/rate.h"

#include <stdlib.h>

enum {
    PATIENCE_MS = 5000, /* as long as tickets wait for the store */
    RETRY_MS = 1,       /* a tick, about */
    RETRY_MAX_MS = 20,
    SLACK_NS = 10 * 1000 * 1000, /* requests that come together are not out of turn */
};

struct rate_table *draw_shares_new(void)
{
    return calloc(1, sizeof(struct rate_table));
}

/* The time in which the layout makes n IDs, times 2^k, in the rates' ticks. */
static uint64_t price(const struct firn_layout *l, uint64_t n, int k)
{
    unsigned __int128 ticks = (unsigned __int128)n * l->tick_us * 1000 * RATE_TICKS_PER_NS;
    ticks = ticks << k >> l->field[FIRN_FIELD_SEQ].width;
    return ticks < UINT64_MAX ? (uint64_t)ticks : UINT64_MAX;
}

struct bill {
    uint64_t client; /* 0: nothing to pay */
    uint64_t now_ns;
    int k;
};

/* Whether the request may draw now. False: *wait_ms. */
static bool may_draw(struct service_ctx *ctx, struct reply *r, const struct draw *d,
                     struct bill *bill, uint32_t *wait_ms)
{
    struct stamps_room room;
    uint64_t wait_ns;
    bool large = d->n > STAMPS_SMALL;
    *bill = (struct bill){ 0, 0, 0 };
    if ((!large && !minter_tight(ctx->minter, d->which)) || !ctx->app->shares)
        return true;
    minter_room(ctx->minter, d->which, &room);
    if (room.full == 0)
        return true; /* no window: the draw tells why */
    int k = stamps_share(&room, d->n);
    *wait_ms = RETRY_MS;
    if (k < 0)
        return false;
    if (k == 0 && !large)
        return true;
    bill->client = guard_client(ctx, r->peer, d->authorization) + (uint64_t)d->which;
    bill->now_ns = mono_ns();
    bill->k = k ? k : 1;
    if (k == 0 || !rate_owes(ctx->app->shares, bill->client, SLACK_NS * RATE_TICKS_PER_NS,
                             bill->now_ns, &wait_ns))
        return true;
    uint64_t ms = wait_ns / 1000000 + 1;
    *wait_ms = ms < RETRY_MAX_MS ? (uint32_t)ms : RETRY_MAX_MS;
    return false;
}

/* More come with the next tick, or with the next extension of the window. */
static bool will_pass(struct app *app, int error)
{
    const char *why;
    return error == FIRN_EAGAIN || (error == FIRN_EWINDOW && app_ready(app, &why));
}

int draw_numbers(struct service_ctx *ctx, struct reply *r, const struct draw *d, size_t *out_n,
                 bool *out_again)
{
    size_t got = 0, want = d->n + d->more;
    uint32_t wait_ms = RETRY_MS;
    struct bill bill;
    int e = may_draw(ctx, r, d, &bill, &wait_ms) ? 0 : FIRN_EAGAIN;
    while (got < want && e == 0) {
        size_t some = 0;
        e = minter_numbers(ctx->minter, d->which, d->shard, ctx->numbers + got, want - got, &some);
        got += e ? 0 : some;
    }
    if (bill.client && got > 0)
        rate_charge(ctx->app->shares, bill.client,
                    price(&ctx->app->plan.layout[d->which], got, bill.k), bill.now_ns);
    *out_n = got;
    *out_again = false;
    if (got >= d->n)
        return 0;
    if (r->waited_ms < PATIENCE_MS && will_pass(ctx->app, e))
        *out_again = reply_retry(r, wait_ms);
    return e;
}
