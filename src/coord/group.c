/*
 * The group commit's way of a job into the commit (group.h): gather, describe, admit, add. Each
 * state is one function; the table at the end has them all, with those of group_share.c. The
 * simulator runs it with faults.
 */
#include "coord/group_in.h"
#include "coord/mutant.h"
#include "firn/dated.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>

/* ---- one job's way into the commit ---- */

/* The constants of a deleted sequence count no more: it may be created again. */
static enum group_do forgotten(struct group_commit *g)
{
    return go(g, AT_GATHER);
}

static bool uses_sequences(enum job_what what)
{
    static const bool uses[] = {
        [JOB_TAKE] = true,   [JOB_KEEP] = true,     [JOB_FETCH] = true, [JOB_CREATE] = true,
        [JOB_DELETE] = true, [JOB_DESCRIBE] = true, [JOB_LIST] = false, [JOB_NODES] = false,
        [JOB_SLOTS] = false, [JOB_LEASE] = false
    };
    return uses[what];
}

/* A store that gives no Snowflake IDs gives no tickets either: one that was never initialised, one
 * that was replaced, one that must be fenced first. */
static enum group_do hold(struct group_commit *g, struct job *j)
{
    const struct group_now *n = &g->now_;
    const char *why = n->gate_why && n->gate_why[0] ? n->gate_why
                                                    : "the store is looked at: ask again";
    if (n->gate == LEASE_GATE_SHUT) {
        group_job_done(g, j, firn__diag(&j->diag, FIRN_ESTORE, 0, "halted: %.180s", why));
    } else if (n->ms >= j->deadline_ms) {
        (void)firn__diag(&j->diag, FIRN_EAGAIN, 0, "%.190s", why);
        group_job_done(g, j, n->gate_error == FIRN_ECLOCK ? FIRN_ECLOCK : FIRN_EAGAIN);
    } else {
        g->waits = true;
        job_append(&g->again, j);
    }
    return GROUP_GO;
}

/* A job that only looks or creates ends the commit, so that it sees what was asked for before. */
static enum group_do gather(struct group_commit *g)
{
    struct job *j = g->todo_;
    bool full = g->n == TICKET_JOBS_MAX - 1 || g->keyed_n_ == GROUP_KEYED_MAX;
    if (!j || full || g->failed)
        return go(g, AT_HAND);
    bool keep = j->taken || j->what == JOB_KEEP, take = j->what == JOB_TAKE || j->what == JOB_FETCH;
    if (!keep && g->n > 0 && (!take || g->total_ + j->want > SEQ_TAKE_MAX))
        return go(g, AT_HAND);
    g->todo_ = j->next;
    g->job = j;
    j->next = NULL;
    bool open = g->now_.gate == LEASE_GATE_OPEN || (g->now_.held && j->what == JOB_KEEP) ||
                FIRN_MUTANT(tk_no_gate);
    if (!open && uses_sequences(j->what))
        return hold(g, j);
    if (keep) {
        g->keyed_n_++;
        if (j->what == JOB_KEEP && !g->now_.clock)
            group_job_done(g, j, FIRN_ECLOCK);
        else
            group_keep_later(g, j);
        return GROUP_GO;
    }
    firn_assert(j->name_len <= RECORD_NAME_MAX && strlen(j->name) == j->name_len, "len=%zu",
                j->name_len);
    memcpy(g->name, j->name, j->name_len + 1);
    g->name_len = j->name_len;
    if (j->what == JOB_DESCRIBE)
        return ask(g, AT_DESCRIBED, GROUP_DESCRIBE);
    if (!take)
        return GROUP_OTHER;
    for (g->i_ = 0; g->i_ < g->n; g->i_++)
        if (strcmp(g->group_[g->i_].seq->name, j->name) == 0) {
            g->seq_ = g->group_[g->i_].seq;
            g->reg_ = g->group_[g->i_].reg;
            return go(g, AT_ADMIT);
        }
    g->seq_ = seq_table_find(g->table_, j->name, j->name_len);
    if (!g->seq_ || !g->seq_->known)
        return ask(g, AT_DESCRIBED, GROUP_DESCRIBE);
    seq_table_pin(g->table_, g->seq_);
    return go(g, AT_PERIOD);
}

/* The table is full of this commit's sequences: commit those, then go on with the job. */
static enum group_do no_room(struct group_commit *g)
{
    firn_assert(g->n > 0); /* otherwise none is pinned */
    g->job->next = g->todo_;
    g->todo_ = g->job;
    return go(g, AT_HAND);
}

static enum group_do have_record(struct group_commit *g)
{
    if (seq_deleted(&g->record_))
        return group_refuse(
            g, firn__diag(&g->job->diag, FIRN_ENOENT, 0,
                          "sequence %s was deleted: POST /v1/sequences creates it again, "
                          "with a start of %" PRIu64 " or more",
                          g->job->name, g->record_.next));
    if (g->job->what != JOB_DESCRIBE)
        return ask(g, AT_OPENED, GROUP_LOCKED);
    g->job->record = g->record_;
    group_job_done(g, g->job, 0);
    return go(g, AT_GATHER);
}

static enum group_do described(struct group_commit *g)
{
    struct job *j = g->job;
    j->diag = g->diag;
    if (g->result_ == 0)
        return have_record(g);
    if (g->result_ != FIRN_ENOENT)
        return group_refuse(g, g->result_);
    bool first = g->rules_.first_name && strcmp(j->name, g->rules_.first_name) == 0;
    g->spec = first ? g->rules_.first : (struct seq_spec){ .mode = SEQ_RANGE };
    g->spec.scope_max = first ? 0 : j->scope_max;
    g->spec.scope = j->scope;
    if (first || j->create)
        return ask(g, AT_CREATED, GROUP_CREATE);
    return group_refuse(g, firn__diag(&j->diag, FIRN_ENOENT, 0,
                                      "there is no sequence %s: create it with POST /v1/sequences",
                                      j->name));
}

static enum group_do created(struct group_commit *g)
{
    g->job->diag = g->diag;
    if (g->result_ && g->result_ != FIRN_ECONFLICT)
        return group_refuse(g, g->result_);
    return have_record(g); /* another process may have been faster: its record is there */
}

static void open_sequence(struct group_commit *g)
{
    g->seq_ = seq_table_open(g->table_, g->job->name, g->job->name_len);
    if (!g->seq_)
        return;
    if (!g->seq_->known)
        seq_table_describe(g->seq_, &g->record_);
    seq_table_pin(g->table_, g->seq_);
}

static enum group_do opened(struct group_commit *g)
{
    return g->seq_ ? go(g, AT_PERIOD) : no_room(g);
}

/* The register of the current period, created when its first number is asked for. A period never
 * goes back while the process runs; after a restart with a clock set back it goes on in the older
 * one. */
static enum group_do enter_period(struct group_commit *g)
{
    struct seq_entry *e = g->seq_;
    g->reg_ = e;
    if (!e->dated)
        return go(g, AT_ADMIT);
    if (!g->now_.clock)
        return group_refuse(g, FIRN_ECLOCK);
    int r = firn_dated_period(e->reset, g->now_.s, &g->period_);
    if (r)
        return group_refuse(g, r);
    if (FIRN_MUTANT(tk_period_back) && g->period_ < e->period)
        e->period = 0;
    if (g->period_ <= e->period)
        return go(g, AT_REGISTER);
    if (e->period == 0)
        return go(g, AT_PERIOD_SEEN);
    memcpy(g->name, e->name, e->name_len + 1); /* another server may have deleted it since */
    g->name_len = e->name_len;
    g->record_ = e->record;
    return ask(g, AT_PERIOD_SEEN, GROUP_DESCRIBE);
}

static enum group_do make_period(struct group_commit *g)
{
    struct seq_entry *e = g->seq_;
    struct job *j = g->job;
    if (e->period > 0 && g->result_) {
        j->diag = g->diag;
        return group_refuse(g, g->result_);
    }
    if (e->period > 0 && seq_deleted(&g->record_))
        return group_refuse(g, firn__diag(&j->diag, FIRN_ENOENT, 0, "the sequence was deleted"));
    g->name_len = period_name(e->name, g->period_, g->name);
    if (g->name_len == 0)
        return group_refuse(g, firn__diag(&j->diag, FIRN_EINVAL, 0,
                                          "a dated sequence's name has at most 55 characters"));
    g->spec = (struct seq_spec){ .mode = e->record.mode,
                                 .start = e->record.start,
                                 .step = e->record.step,
                                 .offset = e->record.offset,
                                 .max = e->record.max,
                                 .note = "",
                                 .resume = true };
    return ask(g, AT_PERIOD_MADE, GROUP_CREATE);
}

static enum group_do period_made(struct group_commit *g)
{
    if (g->result_ && g->result_ != FIRN_ECONFLICT) {
        g->job->diag = g->diag;
        return group_refuse(g, g->result_);
    }
    firn_assert(g->period_ > g->seq_->period, "period=%u after %u", g->period_, g->seq_->period);
    g->seq_->period = g->period_;
    return go(g, AT_REGISTER);
}

/* The entry of the period's register. */
static void open_register(struct group_commit *g)
{
    g->reg_ = seq_table_open(g->table_, g->name, g->name_len);
}

static enum group_do have_register(struct group_commit *g)
{
    if (g->reg_ == g->seq_) {
        g->name_len = period_name(g->seq_->name, g->seq_->period, g->name);
        g->reg_ = seq_table_find(g->table_, g->name, g->name_len);
        if (!g->reg_)
            return GROUP_LOCKED; /* and here again */
    }
    if (!g->reg_)
        return no_room(g);
    seq_table_pin(g->table_, g->reg_);
    return go(g, AT_ADMIT);
}

/* A request with a key may be answered already: range sequences have it in its register, those of
 * earlier periods of a dated one must be there before a number of the new period is taken. */
static enum group_do admit(struct group_commit *g)
{
    struct job *j = g->job;
    const struct seq_entry *e = g->seq_;
    if (e->dated && j->plain)
        return group_refuse(
            g, firn__diag(&j->diag, FIRN_EINVAL, 0,
                          "%s is dated, its bare numbers come again: FIRN.NEXT dated SEQ "
                          "%s",
                          j->name, j->name));
    if (!j->keyed)
        return go(g, AT_ADD);
    if (!g->now_.clock)
        return group_refuse(
            g, FIRN_ECLOCK); /* a key that seems to be of 1970 would be forgotten at once */
    if (e->dated && e->settled != e->period) {
        period_walk_init(&g->walk_, e->reset, e->period, g->now_.s, g->rules_.retention_s);
        g->since_s = g->walk_.since_s > 0 ? (uint64_t)g->walk_.since_s : 0;
        return go(g, AT_SETTLE);
    }
    if (!e->ahead)
        return go(g, AT_ADD);
    g->key = &j->keyed->ask.key;
    return ask(g, AT_KEY_READ, GROUP_READ_KEY);
}

/* Create the registers of keys of earlier periods that a retry may still use. */
static enum group_do settle_periods(struct group_commit *g)
{
    uint32_t period;
    int r = period_walk_next(&g->walk_, &period);
    if (r < 0)
        return group_refuse(g, r);
    if (r == 0) {
        g->seq_->settled = g->seq_->period;
        return go(g, AT_ADD);
    }
    g->name_len = period_name(g->seq_->name, period, g->name);
    return ask(g, AT_SETTLED, GROUP_FLUSH);
}

static enum group_do settled(struct group_commit *g)
{
    g->job->diag = g->diag;
    return g->result_ ? group_refuse(g, g->result_) : go(g, AT_SETTLE);
}

static enum group_do key_read(struct group_commit *g)
{
    struct job *j = g->job;
    j->diag = g->diag;
    if (g->result_ == FIRN_ENOENT)
        return go(g, AT_ADD);
    if (g->result_)
        return group_refuse(g, g->result_);
    j->record = g->seq_->record;
    j->keyed->idem = g->kept_;
    j->keyed->replayed = true;
    j->keyed->result = keyed_check(&g->kept_, j->keyed->ask.args, j->want, &j->diag);
    if (j->keyed->result != 0)
        group_refuse_reused(g, j);
    else
        group_finish_keyed(g, j);
    return go(g, AT_GATHER);
}

static enum group_do add(struct group_commit *g)
{
    struct job *j = g->job;
    struct group *p = &g->group_[g->i_];
    firn_assert(g->i_ <= g->n && g->i_ < TICKET_JOBS_MAX, "group=%zu of %zu", g->i_, g->n);
    if (g->i_ == g->n) {
        *p = (struct group){ .seq = g->seq_, .reg = g->reg_, .open = true };
        job_list_init(&p->plain);
        job_list_init(&p->keyed);
        g->n++;
    }
    g->keyed_n_ += j->keyed != NULL;
    g->total_ += j->want;
    job_append(j->keyed && !p->seq->ahead ? &p->keyed : &p->plain, j);
    return go(g, AT_GATHER);
}

/* ---- runs ---- */

static enum group_do cycle(struct group_commit *g)
{
    seq_table_end_turn(g->table_);
    g->n = g->keyed_n_ = 0;
    g->total_ = 0;
    /* What is behind a job that waits, waits, too: no job overtakes another. */
    bool on = g->todo_ && !g->failed && !g->lost_ && !g->again.first;
    return go(g, on ? AT_GATHER : AT_END);
}

static enum group_do end(struct group_commit *g)
{
    firn_assert(!g->keep_.first && job_list_ok(&g->again));
    job_append_all(&g->again, g->todo_);
    g->todo_ = NULL;
    return GROUP_DONE;
}

static enum group_do (*const steps[])(struct group_commit *g) = {
    [AT_GATHER] = gather,
    [AT_DESCRIBED] = described,
    [AT_CREATED] = created,
    [AT_OPENED] = opened,
    [AT_FORGET] = forgotten,
    [AT_PERIOD] = enter_period,
    [AT_PERIOD_SEEN] = make_period,
    [AT_PERIOD_MADE] = period_made,
    [AT_REGISTER] = have_register,
    [AT_ADMIT] = admit,
    [AT_SETTLE] = settle_periods,
    [AT_SETTLED] = settled,
    [AT_KEY_READ] = key_read,
    [AT_ADD] = add,
    [AT_HAND] = group_at_hand,
    [AT_BUILD] = group_at_build,
    [AT_COMMITTED] = group_at_committed,
    [AT_PUT] = group_at_keep,
    [AT_KEEP] = group_at_keep,
    [AT_KEPT] = group_at_kept,
    [AT_CYCLE] = cycle,
    [AT_END] = end,
};

enum group_do group_next(struct group_commit *g, const struct group_now *now)
{
    enum group_do what;
    g->now_ = *now;
    if (g->begins_)
        retry_round(&g->retry_, now->ms);
    g->begins_ = false;
    do
        what = steps[g->at_](g);
    while (what == GROUP_GO);
    return what;
}

void group_init(struct group_commit *g, struct seq_table *t, const struct group_rules *rules)
{
    g->table_ = t;
    g->rules_ = *rules;
    retry_init(&g->retry_, rules->wait_ms);
    g->counts = (struct group_counts){ 0 };
    g->noted.set = 0;
    g->todo_ = NULL;
    g->failed = g->waits = g->doubted = g->lost_ = g->begins_ = false;
    g->n = g->keyed_n_ = 0;
    g->total_ = 0;
    g->at_ = AT_END;
    job_list_init(&g->done);
    job_list_init(&g->again);
    job_list_init(&g->keep_);
}

void group_run(struct group_commit *g, struct job *first)
{
    firn_assert(g->at_ == AT_END && !g->again.first && !g->keep_.first && !g->done.first);
    g->todo_ = first;
    g->failed = g->waits = g->doubted = g->lost_ = false;
    g->begins_ = true;
    g->at_ = AT_GATHER;
}

void group_locked(struct group_commit *g)
{
    firn_assert(g->at_ == AT_OPENED || g->at_ == AT_FORGET || g->at_ == AT_REGISTER ||
                g->at_ == AT_BUILD || g->at_ == AT_PUT);
    if (g->at_ == AT_OPENED)
        open_sequence(g);
    else if (g->at_ == AT_FORGET)
        seq_table_forget(g->table_, g->seq_->name, g->seq_->name_len);
    else if (g->at_ == AT_REGISTER)
        open_register(g);
    else if (g->at_ == AT_BUILD)
        group_serve_from_hand(g);
    else
        group_put_blocks(g);
}

static void told(struct group_commit *g, enum at a, enum at b, int result)
{
    firn_assert(g->at_ == (int)a || g->at_ == (int)b, "at=%d", g->at_);
    g->result_ = result;
}

void group_described(struct group_commit *g, int result, const struct seq_record *r)
{
    told(g, AT_DESCRIBED, AT_PERIOD_SEEN, result);
    if (result == 0)
        g->record_ = *r;
}

void group_created(struct group_commit *g, int result, const struct seq_record *r)
{
    told(g, AT_CREATED, AT_PERIOD_MADE, result);
    if (result == 0 || result == FIRN_ECONFLICT)
        g->record_ = *r;
}

void group_flushed(struct group_commit *g, int result)
{
    told(g, AT_SETTLED, AT_SETTLED, result);
}

void group_key_read(struct group_commit *g, int result, const struct idem_record *kept)
{
    told(g, AT_KEY_READ, AT_KEY_READ, result);
    if (result == 0)
        g->kept_ = *kept;
}

void group_committed(struct group_commit *g)
{
    told(g, AT_COMMITTED, AT_COMMITTED, 0);
}

void group_kept(struct group_commit *g)
{
    told(g, AT_KEPT, AT_KEPT, 0);
}
