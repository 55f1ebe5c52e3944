/* Readiness, as both protocols report it. Tested in tests/unit/server/http.c. */
#include "server/app.h"
#include "drive/hold.h"

#include <stdio.h>
#include <string.h>

/* The coordinator may hang in the store while its window runs out, and then publishes nothing. */
static bool in_time(struct app *app, const struct lease_view *v)
{
    struct board_clock c;
    board_clock_init(&c, &app->board);
    int64_t us = (int64_t)(c.base.fine_ns(&c.base) / 1000);
    return firn_layout_ticks(&app->plan.lease, us) < v->ready_until;
}

static bool tickets_work(struct app *app, const struct lease_view *v, const char **why)
{
    static _Thread_local char text[sizeof((struct firn_diag *)0)->text + 64];
    struct firn_diag d;
    if (v->held) {
        *why = HOLD_TEXT;
        return false;
    }
    if (!app->coordinator || !coordinator_failing(app->coordinator, &d))
        return true;
    snprintf(text, sizeof text, "tickets cannot be written (%s)", d.text);
    *why = text;
    return false;
}

/* Whether Snowflake IDs can be made: sequences that are held do not keep them back. */
static bool ids_ready(struct app *app, struct lease_view *out, const char **why)
{
    struct lease_view v;
    board_copy(&app->board, &v);
    *out = v;
    if (atomic_load(&app->draining)) {
        *why = "shutting down";
        return false;
    }
    if ((v.gate == LEASE_GATE_OPEN || v.held) && v.ready && in_time(app, &v)) {
        *why = v.clock == CLOCK_HELD ? "ready; the clock stepped back or stands still, and is held"
               : v.clock == CLOCK_SUSPECT ? "ready; the clock leapt ahead and is not followed now"
                                          : "ready";
        return true;
    }
    static const char *const reasons[] = {
        [SLOT_START] = "starting: no slot yet",
        [SLOT_ACTIVE] =
            "the window of timestamps is nearly used up and the store does not extend it",
        [SLOT_DRY] = "the window of timestamps is used up: the store does not answer",
        [SLOT_FENCED] = "another process took over the slot: acquiring another",
        [SLOT_NO_SLOT] = "no slot is free",
        [SLOT_WAIT_CLOCK] = "the clock is far behind the store: waiting for it to be set",
        [SLOT_TWIN] = "another process runs with this one's identity: acquiring another",
        [SLOT_REGRESSED] = "the store forgot what it confirmed: it must be fenced",
        [SLOT_HALTED] = "halted: an operator must look at the store",
        [SLOT_RELEASING] = "shutting down",
        [SLOT_CLOSED] = "shut down",
    };
    *why = v.clock == CLOCK_WAIT && v.state != SLOT_START && v.state != SLOT_HALTED
               ? "the clock is not plausible: waiting for it to be set"
           : v.gate == LEASE_GATE_WAIT && v.ready
               ? "the store may have become another one: it is looked at, and fenced if so"
               : reasons[v.state];
    if (v.error && v.diag.text[0] &&
        strcmp(*why, v.diag.text) != 0) { /* add the store's own words */
        static _Thread_local char text[sizeof v.diag.text + 128];
        snprintf(text, sizeof text, "%s (%s)", *why, v.diag.text);
        *why = text;
    }
    return false;
}

bool app_ready(struct app *app, const char **why)
{
    struct lease_view v;
    return ids_ready(app, &v, why) && tickets_work(app, &v, why);
}

void app_face(struct app *app, struct node_face *out)
{
    struct lease_view v;
    const char *why;
    *out = (struct node_face){ .slot = -1, .ready = app_ready(app, &why) };
    board_copy(&app->board, &v);
    if (v.grant.gen) {
        out->slot = v.grant.slot;
        nonce_text(&v.cluster, out->store);
    }
    memcpy(out->start, app->start, sizeof out->start);
    firn_layout_format(&app->plan.layout[LEASED_SNOWFLAKE], out->layout);
}

const char *face_line(const struct node_face *f, char out[FACE_LINE_BUF])
{
    int n = snprintf(out, FACE_LINE_BUF, "Firn-Node: start=%s", f->start);
    if (f->slot >= 0)
        snprintf(out + n, FACE_LINE_BUF - (size_t)n, "; slot=%lld; store=%s\r\n",
                 (long long)f->slot, f->store);
    else
        snprintf(out + n, FACE_LINE_BUF - (size_t)n, "\r\n");
    return out;
}

const char *mint_trouble(struct app *app, int error)
{
    struct lease_view v;
    const char *why;
    if (error == FIRN_EAGAIN)
        return "the layout's IDs for this moment are used up: ask again, or choose a layout with a wider sequence";
    if (error == FIRN_ERANGE)
        return "the shard does not fit, or the layout has no shard field";
    if (error == FIRN_EEXHAUSTED)
        return "the layout has no timestamps left: choose one with a later epoch";
    if (ids_ready(app, &v, &why)) /* a burst, faster than the window is extended */
        return "the timestamps granted so far are used up and more are on their way: ask again in a moment";
    return why;
}
