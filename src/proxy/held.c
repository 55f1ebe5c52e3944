/* Bytes of bodies that a loop holds. Tested in tests/integration/gateway_bodies.py. */
#include "proxy/held.h"
#include "daemon/metrics.h"

bool held_fits(struct service_ctx *w, uint64_t bytes)
{
    if (w->held <= HELD_BYTES_MAX && bytes <= HELD_BYTES_MAX - w->held)
        return true;
    latency__more(&w->held_refused, 1);
    return false;
}

void held_set(struct service_ctx *w, size_t *held, size_t bytes)
{
    __atomic_store_n(&w->held, w->held - *held + bytes, __ATOMIC_RELAXED);
    *held = bytes;
}

bool held_take(struct service_ctx *w, size_t *held, size_t bytes)
{
    if (!held_fits(w, bytes))
        return false;
    held_set(w, held, *held + bytes);
    return true;
}

void held_metrics(struct app *a, const struct plan *p, struct metrics *m)
{
    uint64_t held = 0, refused = 0;
    (void)p;
    for (size_t i = 0; i < a->workers_n; i++) {
        held += __atomic_load_n(&a->workers[i].held, __ATOMIC_RELAXED);
        refused += __atomic_load_n(&a->workers[i].held_refused, __ATOMIC_RELAXED);
    }
    metric(m, "firn_proxy_held_bytes", "Bytes of bodies that are held whole, now.", (double)held);
    metric(m, "firn_proxy_held_refused_total",
           "Bodies that were refused because a loop held too many bytes.", (double)refused);
}
