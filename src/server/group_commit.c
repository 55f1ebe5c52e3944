/*
 * The coordinator's side of the group commit: the clock, the lock, the log and the way back of the
 * jobs for drive/serve.c, which serves them.
 */
#include "server/coordinator_in.h"
#include "daemon/log.h"
#include "drive/hold.h"

#include <inttypes.h>

static void now(void *user, struct group_now *out)
{
    const struct coordinator *c = user;
    serve_now(c->lease, (int64_t)mono_ns(), out);
    if (out->held)
        out->gate_why = HOLD_TEXT;
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
    atomic_store_explicit(&s->keys_removed, c->serve.keys_removed, memory_order_relaxed);
}

static void hand_back_all(void *user, struct job *j)
{
    const struct coordinator *c = user;
    publish_counts(user);
    while (j) {
        struct job *next = j->next;
        j->served_ns = c->turn_ns;
        job_hand_back(j);
        j = next;
    }
}

static void other(void *user, struct job *j)
{
    j->served_ns = ((struct coordinator *)user)->turn_ns;
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
    if (n->set & 1 << GROUP_NOTE_FAILED)
        ticket_gate_failed(user, n->cause);
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
    c->serve = (struct serve){ .lease = c->lease,
                               .tickets = &c->tickets,
                               .group = &c->group,
                               .retention_s = c->opts.retention_s };
    c->serve.world = (struct group_world){ .user = c,
                                           .now = now,
                                           .lock = lock,
                                           .unlock = unlock,
                                           .done = hand_back_all,
                                           .other = other,
                                           .create = create,
                                           .note = note };
}

void group_commit_turn(struct coordinator *c, struct job *jobs)
{
    c->turn_ns = mono_ns();
    struct job *again = serve_turn(&c->serve, jobs);
    publish_counts(c);
    if (!again)
        return;
    pthread_mutex_lock(&c->mutex);
    job_prepend_all(&c->inbox, again);
    firn_assert(job_list_ok(&c->inbox));
    pthread_mutex_unlock(&c->mutex);
}
