/*
 * How readiness learns that tickets fail. Jobs on sequences are refused or wait in coord/group.c,
 * by the gate of the lease.
 */
#include "server/coordinator_in.h"

#include <stdio.h>
#include <string.h>

enum {
    UNREADY_MS = 1000,    /* commits that fail for so long are refused soon: not ready */
    PROBE_EVERY_MS = 500, /* while commits fail and no job comes that would tell */
    PROBE_BYTES = 700,    /* about as much as the longest record of a sequence */
};

/* Sequences as readiness sees them. */
static bool failing(const struct coordinator *c)
{
    return c->group.retry_.failures > 0 &&
           mono_ms() - c->group.retry_.failing_since_ms >= UNREADY_MS;
}

/* A key that no client has: removed with the other old ones. */
static void probe(struct coordinator *c)
{
    struct idem_record i = { .args = 0, .count = 1 };
    struct nonce key;
    struct keyed k = { .replayed = false }, *keep = &k;
    struct firn_diag d = { 0, "" };
    i.at = (uint64_t)clock_f_at(&c->lease->clock, (int64_t)mono_ns()) / 1000000000;
    c->tickets.random(c->tickets.random_user, key.b, sizeof key.b);
    c->tickets.random(c->tickets.random_user, i.req.b, sizeof i.req.b);
    memset(i.ids, '-', PROBE_BYTES);
    i.ids[PROBE_BYTES] = '\0';
    k.ask.key = key;
    k.idem = i;
    keyed_keep(c->store, &keep, 1, &d);
    if (k.result == 0)
        group_recovered(&c->group);
}

void ticket_gate_failed(struct coordinator *c, const char *why)
{
    pthread_mutex_lock(&c->mutex);
    snprintf(c->failing_why, sizeof c->failing_why, "%s", why);
    pthread_mutex_unlock(&c->mutex);
}

bool coordinator_failing(struct coordinator *c, struct firn_diag *out)
{
    if (!atomic_load_explicit(&c->stats.tickets_failing, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&c->mutex);
    memcpy(out->text, c->failing_why, sizeof out->text);
    pthread_mutex_unlock(&c->mutex);
    return true;
}

uint64_t ticket_gate_watch(struct coordinator *c, bool idle)
{
    uint64_t now = mono_ms();
    if (idle && c->lease->view.gate == LEASE_GATE_OPEN && failing(c) && now >= c->probe_ms &&
        c->lease->clock.state != CLOCK_WAIT) {
        probe(c);
        c->probe_ms = now + PROBE_EVERY_MS;
    }
    atomic_store_explicit(&c->stats.tickets_failing, failing(c), memory_order_relaxed);
    return c->group.retry_.failures > 0 ? now + PROBE_EVERY_MS : UINT64_MAX;
}
