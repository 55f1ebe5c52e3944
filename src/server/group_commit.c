/*
 * The coordinator's side of the group commit: the clock, the lock, the log and the way back of the
 * jobs for drive/group.c, which serves them; and the removal of old keys.
 */
#include "server/coordinator_in.h"
#include "daemon/log.h"
#include "drive/hold.h"

#include <inttypes.h>

enum {
    SWEEP_S_MIN = 1, /* all keys are looked at once in a 24th of the retention, within these */
    SWEEP_S_MAX = 3600,
    SWEEP_MS_MIN = 10, /* between two steps of that */
};

static void now(void *user, struct group_now *out)
{
    const struct coordinator *c = user;
    uint64_t ns = mono_ns();
    out->ms = ns / 1000000;
    out->s = clock_f_at(&c->lease->clock, (int64_t)ns) / 1000000000;
    out->clock = c->lease->clock.state != CLOCK_WAIT;
    out->gate = c->lease->view.gate;
    out->gate_error = c->lease->view.error;
    out->held = c->lease->view.held;
    out->gate_why = c->lease->view.held ? HOLD_TEXT : c->lease->view.diag.text;
}

static void lock(void *user)
{
    ranges_lock(&((struct coordinator *)user)->ranges);
}

static void unlock(void *user)
{
    ranges_unlock(&((struct coordinator *)user)->ranges);
}

static void publish_counts(struct coordinator *c)
{
    const struct group_counts *n = &c->group.counts;
    struct coordinator_stats *s = &c->stats;
    atomic_store_explicit(&s->commits, n->commits, memory_order_relaxed);
    atomic_store_explicit(&s->commit_errors, n->commit_errors, memory_order_relaxed);
    atomic_store_explicit(&s->conflicts, n->conflicts, memory_order_relaxed);
    atomic_store_explicit(&s->tickets, n->tickets, memory_order_relaxed);
    atomic_store_explicit(&s->keys_kept, n->keys_kept, memory_order_relaxed);
    atomic_store_explicit(&s->keys_replayed, n->keys_replayed, memory_order_relaxed);
}

static void hand_back_all(void *user, struct job *j)
{
    publish_counts(user);
    while (j) {
        struct job *next = j->next;
        job_hand_back(j);
        j = next;
    }
}

static void other(void *user, struct job *j)
{
    if (coordinator_run_other(user, j))
        job_hand_back(j);
}

static int create(void *user, const char *name, size_t len, const struct seq_spec *spec,
                  struct seq_record *out, struct firn_diag *d)
{
    return coordinator_create(user, name, len, spec, out, d);
}

static void note(void *user, const struct group_noted *n)
{
    struct coordinator *c = user;
    if (n->set & 1 << GROUP_NOTE_FAILED)
        ticket_gate_failed(user, n->cause);
    if (n->set & 1 << GROUP_NOTE_FAILED && n->error == FIRN_ESTORE) {
        lease_doubt(c->lease); /* the slot's next write would notice it only in a while */
        c->doubted = true;
    }
    if (n->set & 1 << GROUP_NOTE_FAILED && n->log)
        log_warn("commit_failed", "sequence=%s error=%s cause=%s failures=%" PRIu64, n->failed,
                 firn_error_name(n->error), n->cause, n->failures);
    if (n->set & 1 << GROUP_NOTE_STARVED)
        log_warn("others_were_faster", "sequence=%s cause=%s", n->starved,
                 "other servers keep winning the writes of this sequence: send its requests to one "
                 "server");
    if (n->set & 1 << GROUP_NOTE_RECOVERED)
        log_info("commit_recovered", "failures=%" PRIu64, n->failures);
}

void group_commit_init(struct coordinator *c)
{
    struct group_rules rules = { .wait_ms = c->opts.wait_ms,
                                 .retention_s = c->opts.retention_s,
                                 .first_name = DEFAULT_SEQUENCE,
                                 .first = c->opts.first };
    group_init(&c->group, c->ranges.table, &rules);
}

void group_commit_run(struct coordinator *c, struct job *j)
{
    static const struct group_world hooks = { .now = now,
                                              .lock = lock,
                                              .unlock = unlock,
                                              .done = hand_back_all,
                                              .other = other,
                                              .create = create,
                                              .note = note };
    struct group_world w = hooks;
    w.user = c;
    struct job *again = group_serve(&c->group, &c->tickets, &w, j);
    publish_counts(c);
    c->retry_ms = c->group.failed || c->group.waits ? mono_ms() + RETRY_PAUSE_MS : 0;
    if (!again)
        return;
    struct job *last = again;
    while (last->next)
        last = last->next;
    pthread_mutex_lock(&c->mutex);
    job_prepend_all(&c->inbox, again, last);
    firn_assert(job_list_ok(&c->inbox));
    pthread_mutex_unlock(&c->mutex);
}

/* Remove some of the keys that are older than the retention. */
uint64_t group_commit_sweep(struct coordinator *c)
{
    struct group_now t;
    now(c, &t);
    uint64_t every_s = c->opts.retention_s / 24, now_s = t.s > 0 ? (uint64_t)t.s : 0;
    struct firn_diag d = { 0, "" };
    size_t removed = 0;
    bool more = false;
    every_s = every_s < SWEEP_S_MIN ? SWEEP_S_MIN : every_s > SWEEP_S_MAX ? SWEEP_S_MAX : every_s;
    uint64_t every_ms = every_s * 1000 / KEYED_PARTS;
    if (every_ms < SWEEP_MS_MIN)
        every_ms = SWEEP_MS_MIN;
    if (!t.clock || now_s < c->opts.retention_s)
        return t.ms + 1000;
    int r = keyed_sweep(c->store, c->sweep_part, now_s - c->opts.retention_s, &removed, &more, &d);
    atomic_fetch_add_explicit(&c->stats.keys_removed, removed, memory_order_relaxed);
    if (r)
        return mono_ms() + 1000; /* the store fails: later */
    c->sweep_part = (c->sweep_part + !more) % KEYED_PARTS;
    return mono_ms() + (more ? SWEEP_MS_MIN : every_ms);
}
