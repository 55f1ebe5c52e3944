/*
 * The gate of sequences: the one place where jobs on sequences are refused or made to wait because
 * of the state of the store, and where readiness learns that tickets fail. Slots have the same
 * state (coord/lease.h), so a store that gives no Snowflake IDs gives no tickets either: one that
 * was never initialised, one that was replaced, one that must be fenced first.
 */
#include "server/coordinator_in.h"
#include "daemon/log.h"
#include "drive/hold.h"
#include "drive/setup.h"
#include "id/diag.h"

#include <stdio.h>
#include <string.h>

enum {
    UNREADY_MS = 1000,    /* commits that fail for so long are refused soon: not ready */
    PROBE_EVERY_MS = 500, /* while commits fail and no job comes that would tell */
    PROBE_BYTES = 700,    /* about as much as the longest record of a sequence */
};

static bool uses_sequences(enum job_what what)
{
    static const bool uses[] = { [JOB_TAKE] = true,   [JOB_KEEP] = true,   [JOB_FETCH] = true,
                                 [JOB_CREATE] = true, [JOB_DELETE] = true, [JOB_DESCRIBE] = true,
                                 [JOB_LIST] = false,  [JOB_NODES] = false, [JOB_LEASE] = false };
    return uses[what];
}

static void refuse(struct job *j, const struct lease_view *v)
{
    const char *why = v->held           ? HOLD_TEXT
                      : v->diag.text[0] ? v->diag.text
                                        : "the store is looked at: ask again";
    if (v->gate == LEASE_GATE_SHUT) {
        firn__diag(&j->diag, FIRN_ESTORE, 0, "halted: %.180s", why);
        job_return(j, FIRN_ESTORE);
    } else {
        firn__diag(&j->diag, FIRN_EAGAIN, 0, "%.190s", why);
        job_return(j, v->error == FIRN_ECLOCK ? FIRN_ECLOCK : FIRN_EAGAIN);
    }
}

bool ticket_gate(struct coordinator *c, struct job **jobs)
{
    const struct lease_view *v = &c->lease->view;
    struct job *pass = NULL, **pass_tail = &pass, *wait = NULL, **wait_tail = &wait;
    if (v->gate == LEASE_GATE_OPEN)
        return true;
    for (struct job *j = *jobs, *next; j; j = next) {
        next = j->next;
        bool refused = uses_sequences(j->what);
        if (refused && (v->gate == LEASE_GATE_SHUT || mono_ms() >= j->deadline_ms)) {
            refuse(j, v);
            continue;
        }
        struct job ***tail = refused ? &wait_tail : &pass_tail;
        **tail = j;
        *tail = &j->next;
    }
    *pass_tail = *wait_tail = NULL;
    *jobs = pass;
    if (wait) {
        pthread_mutex_lock(&c->mutex);
        *wait_tail = c->first;
        if (!c->first)
            c->tail = wait_tail;
        c->first = wait;
        firn_assert(jobs_linked(&c->first, c->tail));
        pthread_mutex_unlock(&c->mutex);
    }
    return !wait;
}

int ticket_gate_create(struct coordinator *c, struct firn_diag *d)
{
    struct meta_record m;
    if (!c->lease->born_)
        return 0;
    int r = setup_read_meta(c->store, &m, NULL, d);
    if (r == 0 && nonce_eq(&m.cluster, &c->lease->node.params.cluster))
        return 0;
    if (r != 0 && r != FIRN_ENOENT)
        return r;
    return firn__diag(d, FIRN_ESTORE, 0,
                      "the store's records are gone, so no sequence begins there: restore it, or "
                      "`firn admin init --recover`");
}

/* Sequences as readiness sees them. */
static bool failing(const struct coordinator *c)
{
    return c->failures > 0 && mono_ms() - c->failing_since_ms >= UNREADY_MS;
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
        group_commit_recovered(c);
}

void ticket_gate_failed(struct coordinator *c, const struct firn_diag *d)
{
    pthread_mutex_lock(&c->mutex);
    c->failing_why = *d;
    pthread_mutex_unlock(&c->mutex);
}

bool coordinator_failing(struct coordinator *c, struct firn_diag *out)
{
    if (!atomic_load_explicit(&c->stats.tickets_failing, memory_order_relaxed))
        return false;
    pthread_mutex_lock(&c->mutex);
    *out = c->failing_why;
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
    return c->failures > 0 ? now + PROBE_EVERY_MS : UINT64_MAX;
}
