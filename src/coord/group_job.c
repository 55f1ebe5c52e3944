/*
 * What becomes of a job of a group commit (group.h): it is done, put back for a later commit, or
 * refused; with a key, its numbers are kept first. Tested by tests/unit/coord/group.c.
 */
#include "coord/group_in.h"
#include "coord/mutant.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>

void group_job_done(struct group_commit *g, struct job *j, int result)
{
    j->result = result;
    job_append(&g->done, j);
}

static void set_name(char out[RECORD_NAME_MAX + 1], const char *name)
{
    snprintf(out, RECORD_NAME_MAX + 1, "%s", name);
}

void group_note_failure(struct group_commit *g, const char *name, int error, const char *cause)
{
    g->counts.commit_errors++;
    g->failed = true;
    g->doubted |= error == FIRN_ESTORE;
    bool log = retry_failed(&g->retry_, g->now_.ms);
    if (g->noted.set & 1 << GROUP_NOTE_FAILED && g->noted.log)
        return; /* the first one of a step is told */
    g->noted.log = log;
    g->noted.set |= 1 << GROUP_NOTE_FAILED;
    set_name(g->noted.failed, name);
    g->noted.error = error;
    g->noted.failures = g->retry_.failures;
    snprintf(g->noted.cause, sizeof g->noted.cause, "%s", cause);
}

void group_recovered(struct group_commit *g)
{
    uint64_t failures = retry_succeeded(&g->retry_);
    if (failures == 0)
        return;
    g->noted.set |= 1 << GROUP_NOTE_RECOVERED;
    g->noted.failures = failures;
}

/* Jobs that could not be served now: they are tried again before later ones, in their order, or get
 * the error. */
void group_put_back(struct group_commit *g, struct job *j, int error, const struct firn_diag *d)
{
    firn_assert(error < 0 && job_list_ok(&g->again), "error=%d", error);
    while (j) {
        struct job *next = j->next;
        if (retry_waits(&g->retry_, j, error, g->now_.ms)) {
            job_append(&g->again, j);
        } else {
            if (error == FIRN_ECONFLICT && retry_starved(&g->retry_, g->now_.ms)) {
                g->noted.set |= 1 << GROUP_NOTE_STARVED;
                set_name(g->noted.starved, j->name);
            }
            j->diag = *d;
            group_job_done(g, j, error);
        }
        j = next;
    }
}

/* The job in hand cannot be served in this commit. */
enum group_do group_refuse(struct group_commit *g, int error)
{
    struct job *j = g->job;
    if (retry_counts(error) && retry_may_heal(error))
        group_note_failure(g, j->name, error, j->diag.text);
    j->next = NULL;
    struct firn_diag why = j->diag;
    struct seq_entry *e = seq_table_find(g->table_, j->name, j->name_len);
    bool gone = error == FIRN_ENOENT && e && e->known;
    group_put_back(g, j, error, &why);
    if (!gone)
        return go(g, AT_GATHER);
    g->seq_ = e;
    return ask(g, AT_FORGET, GROUP_LOCKED);
}

/* ---- keys ---- */

/* The job gets its key's numbers. */
void group_finish_keyed(struct group_commit *g, struct job *j)
{
    const struct keyed *k = j->keyed;
    firn_assert(k && k->result == 0 && k->idem.args == k->ask.args);
    if (j->what == JOB_TAKE) {
        firn_assert(k->idem.count > 0 && k->idem.count <= j->want, "count=%" PRIu64 " of %" PRIu64,
                    k->idem.count, j->want);
        j->range = (struct seq_range){ k->idem.first, k->idem.step, k->idem.count };
        j->period = (uint32_t)k->idem.period;
    }
    g->counts.keys_replayed += k->replayed;
    g->counts.keys_kept += !k->replayed;
    group_job_done(g, j, 0);
}

void group_keep_later(struct group_commit *g, struct job *j)
{
    firn_assert(j->keyed && job_list_ok(&g->keep_));
    j->taken = true;
    job_append(&g->keep_, j);
}

/* Numbers from a block in hand: with a key they are kept before the client is answered. */
void group_deliver(struct group_commit *g, struct job *j)
{
    if (!j->keyed || j->result) {
        group_job_done(g, j, j->result);
        return;
    }
    firn_assert(j->what == JOB_TAKE && j->range.count > 0 && j->range.step > 0);
    j->keyed->idem = (struct idem_record){ .args = j->keyed->ask.args,
                                           .first = j->range.first,
                                           .step = j->range.step,
                                           .count = j->range.count };
    if (FIRN_MUTANT(tk_key_not_kept)) {
        j->keyed->result = 0;
        group_finish_keyed(g, j);
        return;
    }
    group_keep_later(g, j);
}

void group_refuse_reused(struct group_commit *g, struct job *j)
{
    group_job_done(g, j, keyed_reused(&j->diag));
}
