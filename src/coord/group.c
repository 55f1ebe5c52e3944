/*
 * The group commit's decisions about jobs (group.h): gather, admit, serve from hand, share out,
 * keep keys, put back. Each state is one function; the table at the end has them all. The
 * simulator runs it with faults.
 */
#include "coord/group.h"
#include "coord/mutant.h"
#include "firn/dated.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdio.h>

enum at {
    AT_GATHER,
    AT_DESCRIBED, /* the job's record was read */
    AT_CREATED,   /* or made */
    AT_OPENED,    /* its sequence has an entry */
    AT_FORGET,    /* it was deleted */
    AT_PERIOD,
    AT_PERIOD_SEEN,
    AT_PERIOD_MADE,
    AT_REGISTER,
    AT_ADMIT,
    AT_SETTLE,
    AT_SETTLED,
    AT_KEY_READ,
    AT_ADD,
    AT_HAND, /* the commit is gathered */
    AT_BUILD,
    AT_COMMITTED,
    AT_PUT,
    AT_KEEP,
    AT_KEPT,
    AT_CYCLE,
    AT_END,
};

#define GROUP_GO ((enum group_do) - 1) /* go on with the next state */

static enum group_do go(struct group_commit *g, enum at at)
{
    g->at_ = at;
    return GROUP_GO;
}

static enum group_do ask(struct group_commit *g, enum at then, enum group_do what)
{
    g->at_ = then;
    g->diag.text[0] = '\0';
    return what;
}

/* ---- what becomes of a job ---- */

static void done(struct group_commit *g, struct job *j, int result)
{
    j->result = result;
    job_append(&g->done, j);
}

static void set_name(char out[RECORD_NAME_MAX + 1], const char *name)
{
    snprintf(out, RECORD_NAME_MAX + 1, "%s", name);
}

static void note_failure(struct group_commit *g, const char *name, int error, const char *cause)
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

static const struct firn_diag others_were_faster = {
    .text =
        "other servers keep winning the writes of this sequence: send its requests to one server"
};

/* Jobs that could not be served now: they are tried again before later ones, in their order, or get
 * the error. */
static void put_back(struct group_commit *g, struct job *j, int error, const struct firn_diag *d)
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
            done(g, j, error);
        }
        j = next;
    }
}

/* The job in hand cannot be served in this commit. */
static enum group_do refuse(struct group_commit *g, int error)
{
    struct job *j = g->job;
    if (retry_counts(error) && retry_may_heal(error))
        note_failure(g, j->name, error, j->diag.text);
    j->next = NULL;
    struct firn_diag why = j->diag;
    struct seq_entry *e = seq_table_find(g->table_, j->name, j->name_len);
    bool gone = error == FIRN_ENOENT && e && e->known;
    put_back(g, j, error, &why);
    if (!gone)
        return go(g, AT_GATHER);
    g->seq_ = e;
    return ask(g, AT_FORGET, GROUP_LOCKED);
}

/* The constants of a deleted sequence count no more: it may be created again. */
static enum group_do forgotten(struct group_commit *g)
{
    return go(g, AT_GATHER);
}

/* ---- keys ---- */

/* The job gets its key's numbers. */
static void finish_keyed(struct group_commit *g, struct job *j)
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
    done(g, j, 0);
}

static void keep_later(struct group_commit *g, struct job *j)
{
    firn_assert(j->keyed && job_list_ok(&g->keep_));
    j->taken = true;
    job_append(&g->keep_, j);
}

/* Numbers from a block in hand: with a key they are kept before the client is answered. */
static void deliver(struct group_commit *g, struct job *j)
{
    if (!j->keyed || j->result) {
        done(g, j, j->result);
        return;
    }
    firn_assert(j->what == JOB_TAKE && j->range.count > 0 && j->range.step > 0);
    j->keyed->idem = (struct idem_record){ .args = j->keyed->ask.args,
                                           .first = j->range.first,
                                           .step = j->range.step,
                                           .count = j->range.count };
    if (FIRN_MUTANT(tk_key_not_kept)) {
        j->keyed->result = 0;
        finish_keyed(g, j);
        return;
    }
    keep_later(g, j);
}

static void refuse_reused(struct group_commit *g, struct job *j)
{
    done(g, j, keyed_reused(&j->diag));
}

/* ---- one job's way into the commit ---- */

static bool uses_sequences(enum job_what what)
{
    static const bool uses[] = { [JOB_TAKE] = true,   [JOB_KEEP] = true,   [JOB_FETCH] = true,
                                 [JOB_CREATE] = true, [JOB_DELETE] = true, [JOB_DESCRIBE] = true,
                                 [JOB_LIST] = false,  [JOB_NODES] = false, [JOB_LEASE] = false };
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
        done(g, j, firn__diag(&j->diag, FIRN_ESTORE, 0, "halted: %.180s", why));
    } else if (n->ms >= j->deadline_ms) {
        (void)firn__diag(&j->diag, FIRN_EAGAIN, 0, "%.190s", why);
        done(g, j, n->gate_error == FIRN_ECLOCK ? FIRN_ECLOCK : FIRN_EAGAIN);
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
            done(g, j, FIRN_ECLOCK);
        else
            keep_later(g, j);
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
        return refuse(g, firn__diag(&g->job->diag, FIRN_ENOENT, 0,
                                    "sequence %s was deleted: POST /v1/sequences creates it again, "
                                    "with a start of %" PRIu64 " or more",
                                    g->job->name, g->record_.next));
    if (g->job->what != JOB_DESCRIBE)
        return ask(g, AT_OPENED, GROUP_LOCKED);
    g->job->record = g->record_;
    done(g, g->job, 0);
    return go(g, AT_GATHER);
}

static enum group_do described(struct group_commit *g)
{
    struct job *j = g->job;
    j->diag = g->diag;
    if (g->result_ == 0)
        return have_record(g);
    if (g->result_ != FIRN_ENOENT)
        return refuse(g, g->result_);
    bool first = g->rules_.first_name && strcmp(j->name, g->rules_.first_name) == 0;
    g->spec = first ? g->rules_.first : (struct seq_spec){ .mode = SEQ_RANGE };
    g->spec.scope_max = first ? 0 : j->scope_max;
    g->spec.scope = j->scope;
    if (first || j->create)
        return ask(g, AT_CREATED, GROUP_CREATE);
    return refuse(g, firn__diag(&j->diag, FIRN_ENOENT, 0,
                                "there is no sequence %s: create it with POST /v1/sequences",
                                j->name));
}

static enum group_do created(struct group_commit *g)
{
    g->job->diag = g->diag;
    if (g->result_ && g->result_ != FIRN_ECONFLICT)
        return refuse(g, g->result_);
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
        return refuse(g, FIRN_ECLOCK);
    int r = firn_dated_period(e->reset, g->now_.s, &g->period_);
    if (r)
        return refuse(g, r);
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
        return refuse(g, g->result_);
    }
    if (e->period > 0 && seq_deleted(&g->record_))
        return refuse(g, firn__diag(&j->diag, FIRN_ENOENT, 0, "the sequence was deleted"));
    g->name_len = period_name(e->name, g->period_, g->name);
    if (g->name_len == 0)
        return refuse(g, firn__diag(&j->diag, FIRN_EINVAL, 0,
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
        return refuse(g, g->result_);
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
        return refuse(g, firn__diag(&j->diag, FIRN_EINVAL, 0,
                                    "%s is dated, its bare numbers come again: FIRN.NEXT dated SEQ "
                                    "%s",
                                    j->name, j->name));
    if (!j->keyed)
        return go(g, AT_ADD);
    if (!g->now_.clock)
        return refuse(g,
                      FIRN_ECLOCK); /* a key that seems to be of 1970 would be forgotten at once */
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
        return refuse(g, r);
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
    return g->result_ ? refuse(g, g->result_) : go(g, AT_SETTLE);
}

static enum group_do key_read(struct group_commit *g)
{
    struct job *j = g->job;
    j->diag = g->diag;
    if (g->result_ == FIRN_ENOENT)
        return go(g, AT_ADD);
    if (g->result_)
        return refuse(g, g->result_);
    j->record = g->seq_->record;
    j->keyed->idem = g->kept_;
    j->keyed->replayed = true;
    j->keyed->result = keyed_check(&g->kept_, j->keyed->ask.args, j->want, &j->diag);
    if (j->keyed->result != 0)
        refuse_reused(g, j);
    else
        finish_keyed(g, j);
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

/* ---- the commit ---- */

static enum group_do hand(struct group_commit *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->group_[i].seq->ahead)
            return ask(g, AT_BUILD, GROUP_LOCKED);
    return go(g, AT_BUILD);
}

/* A block may have arrived since these jobs were sent: jobs that it serves need no commit, and a
 * block is not fetched twice. In order: behind a job that waits, later ones wait. */
static void serve_from_hand(struct group_commit *g, struct group *p)
{
    struct seq_entry *e = p->seq;
    struct job *next = job_take_all(&p->plain);
    bool waits = false;
    for (struct job *j = next; j; j = next) {
        next = j->next;
        if (j->what == JOB_TAKE && !waits &&
            seq_cache_exactly(&e->cache, j->want, g->now_.ms, &j->range) == 0) {
            firn_assert(j->range.count == j->want, "count=%" PRIu64 " want=%" PRIu64,
                        j->range.count, j->want);
            (void)seq_cache_ask(&e->cache); /* noted as `asked` */
            j->record = e->record;
            j->result = 0;
            deliver(g, j);
            continue;
        }
        waits |= j->what == JOB_TAKE;
        job_append(&p->plain, j);
    }
    p->open = waits || e->cache.asked;
    p->block = e->cache.want;
    if (p->open)
        return;
    for (struct job *j = job_take_all(&p->plain); j; j = next) { /* fetches that came too late */
        next = j->next;
        done(g, j, 0);
    }
}

static void serve_all_from_hand(struct group_commit *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->group_[i].seq->ahead)
            serve_from_hand(g, &g->group_[i]);
}

/* Lists move with their group: an empty one points into it. */
static void move_group(struct group *to, struct group *from)
{
    if (to == from)
        return;
    struct job *plain = from->plain.first, *keyed = from->keyed.first;
    *to = *from;
    job_list_init(&to->plain);
    job_list_init(&to->keyed);
    job_append_all(&to->plain, plain);
    job_append_all(&to->keyed, keyed);
}

/* One group's part of the commit. */
static void build_ticket(struct group_commit *g, struct group *p, struct ticket_job *t,
                         size_t *keyed_n)
{
    *t = (struct ticket_job){ .name = p->reg->name,
                              .name_len = p->reg->name_len,
                              .once = !p->seq->ahead };
    bool waited = true;
    for (const struct job *j = p->plain.first; j; j = j->next) {
        waited &= j->tried;
        t->waited += waited ? j->want : 0;
        t->want += j->want;
    }
    t->keyed = g->keyed_ + *keyed_n;
    for (const struct job *j = p->keyed.first; j; j = j->next, t->keyed_n++)
        g->keyed_[(*keyed_n)++] = j->keyed;
    firn_assert(*keyed_n <= GROUP_KEYED_MAX, "keyed=%zu", *keyed_n);
    const struct job *front = p->plain.first; /* NULL: only keys */
    t->least = front && !front->partial ? front->want : 1;
    if (p->seq->ahead) {
        t->want += p->block < SEQ_TAKE_MAX - t->want ? p->block : SEQ_TAKE_MAX - t->want;
        t->waited = t->want; /* blocks come in any order */
    }
    firn_assert(t->waited <= t->want && (t->want > 0 || t->keyed_n > 0),
                "waited=%" PRIu64 " want=%" PRIu64, t->waited, t->want);
}

static enum group_do build(struct group_commit *g)
{
    size_t open = 0, keyed_n = 0;
    for (size_t i = 0; i < g->n; i++)
        if (g->group_[i].open)
            move_group(&g->group_[open++], &g->group_[i]);
    g->n = open;
    if (g->n == 0)
        return go(g, AT_KEEP);
    for (size_t i = 0; i < g->n; i++)
        build_ticket(g, &g->group_[i], &g->ticket[i], &keyed_n);
    firn_assert(g->n <= TICKET_JOBS_MAX && keyed_n <= g->keyed_n_, "n=%zu keyed=%zu of %zu", g->n,
                keyed_n, g->keyed_n_);
    g->now_s = g->now_.s > 0 ? (uint64_t)g->now_.s : 0;
    return ask(g, AT_COMMITTED, GROUP_COMMIT);
}

/* Give each job its share of the grant, in order. The rest is settled before any job is answered: a
 * range sequence keeps it in hand, a gapless one for the next commit. Jobs that got nothing
 * although there is more go back. */
static void share_out(struct group_commit *g, struct group *p, const struct ticket_job *t)
{
    struct seq_range range = t->range;
    struct job *j = job_take_all(&p->plain), *next;
    uint64_t given = 0;
    for (; j; j = next) {
        next = j->next;
        uint64_t n = j->want <= range.count ? j->want : j->partial ? range.count : 0;
        if (n == 0 && j->what == JOB_TAKE && t->more)
            break; /* and all behind it, or they would overtake it */
        j->range = (struct seq_range){ range.first, range.step, n };
        j->record = p->seq->record;
        j->period = p->seq->period;
        j->more = t->more;
        firn_assert(n <= range.count && n <= j->want, "n=%" PRIu64 " left=%" PRIu64, n,
                    range.count);
        range.first += n * range.step;
        range.count -= n;
        given += n;
        g->counts.tickets += n;
        j->result = n || j->what == JOB_FETCH ? 0 : FIRN_EOVERFLOW;
        if (j->result)
            (void)firn__diag(&j->diag, j->result, 0, "sequence %s has %s", j->name,
                             range.count ? "fewer numbers left than that"
                                         : "reached its last number");
        deliver(g, j);
    }
    firn_assert(given + range.count == t->range.count,
                "given=%" PRIu64 " left=%" PRIu64 " granted=%" PRIu64, given, range.count,
                t->range.count);
    p->rest = range;
    p->taken = given > 0;
    if (!p->seq->ahead)
        seq_table_return(p->reg, range);
    put_back(g, j, FIRN_EAGAIN, &(struct firn_diag){ 0, "" });
}

/* The jobs without a key. True: another server's write came first. */
static bool share_plain(struct group_commit *g, struct group *p, const struct ticket_job *t)
{
    bool lost = t->result == FIRN_ECONFLICT;
    if (t->result == 0 || t->result == FIRN_EOVERFLOW) {
        group_recovered(g);
        share_out(g, p, t);
        return false;
    }
    if (!lost)
        note_failure(g, p->reg->name, t->result, g->diag.text);
    p->gone |= t->result == FIRN_ENOENT;
    for (struct job *j = p->plain.first; j; j = j->next)
        j->tried = true;
    put_back(g, job_take_all(&p->plain), t->result, lost ? &others_were_faster : &g->diag);
    return lost;
}

/* And those with one. */
static bool share_keyed(struct group_commit *g, struct group *p)
{
    bool lost = false;
    struct job *next;
    for (struct job *j = job_take_all(&p->keyed); j; j = next) {
        struct keyed *k = j->keyed;
        next = j->next;
        j->next = NULL;
        j->record = p->seq->record;
        if (k->result == 0) {
            group_recovered(g);
            firn_assert(k->idem.count > 0 && k->idem.count <= k->ask.want,
                        "count=%" PRIu64 " want=%" PRIu64, k->idem.count, k->ask.want);
            g->counts.tickets += k->replayed ? 0 : k->idem.count;
            if (p->seq->dated && !k->kept && !FIRN_MUTANT(tk_dated_not_kept))
                keep_later(g, j);
            else
                finish_keyed(g, j);
        } else if (k->result == FIRN_EREUSED) {
            refuse_reused(g, j);
        } else {
            const struct firn_diag *why = &g->diag;
            struct firn_diag few;
            if (k->result == FIRN_EOVERFLOW) {
                (void)firn__diag(&few, k->result, 0, "sequence %s has fewer numbers left than that",
                                 j->name);
                why = &few;
            } else if (k->result == FIRN_ECONFLICT) {
                lost = true;
                why = &others_were_faster;
            } else if (k->result != FIRN_EAGAIN) {
                note_failure(g, p->reg->name, k->result, g->diag.text);
            }
            p->gone |= k->result == FIRN_ENOENT;
            put_back(g, j, k->result, why);
        }
    }
    return lost;
}

static enum group_do committed(struct group_commit *g)
{
    bool blocks = false;
    g->counts.commits++;
    for (size_t i = 0; i < g->n; i++) {
        struct group *p = &g->group_[i];
        p->rest = (struct seq_range){ 0 };
        p->taken = p->gone = false;
        /* In this order they go back, too: no job waits behind more keys than a commit takes. */
        bool lost = g->ticket[i].want > 0 && share_plain(g, p, &g->ticket[i]);
        lost |= share_keyed(g, p);
        g->lost_ |= lost;
        g->counts.conflicts += lost;
        blocks |= p->seq->ahead || p->gone;
    }
    return blocks ? ask(g, AT_PUT, GROUP_LOCKED) : go(g, AT_KEEP);
}

/* The rest of each range sequence's grant becomes its block in hand. */
static void put_blocks(struct group_commit *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct group *p = &g->group_[i];
        if (p->seq->ahead)
            seq_table_put(p->seq, &p->rest, p->taken, g->now_.ms);
        if (p->gone)
            seq_table_forget(g->table_, p->seq->name, p->seq->name_len);
    }
    g->at_ = AT_KEEP;
}

/* ---- keys whose numbers or IDs are known: create their registers, then answer ---- */

static enum group_do keep(struct group_commit *g)
{
    if (!g->keep_.first)
        return go(g, AT_CYCLE);
    struct job *j = job_take_all(&g->keep_);
    for (g->keep_n = 0; j && g->keep_n < KEYED_KEEP_MAX; g->keep_n++) {
        struct job *next = j->next;
        struct idem_record *i = &j->keyed->idem;
        g->keeping_[g->keep_n] = j;
        g->keep[g->keep_n] = j->keyed;
        if (i->at == 0) { /* else a list has it, or this is not the first try */
            i->at = (uint64_t)g->now_.s;
            i->req = (struct nonce){ { 0 } };
        }
        j = next;
    }
    job_append_all(&g->keep_, j);
    return ask(g, AT_KEPT, GROUP_KEEP);
}

static enum group_do kept(struct group_commit *g)
{
    g->counts.commits++;
    for (size_t i = 0; i < g->keep_n; i++) {
        struct job *j = g->keeping_[i];
        int r = g->keep[i]->result;
        j->next = NULL;
        if (r == 0) {
            group_recovered(g);
            finish_keyed(g, j);
        } else if (r == FIRN_EREUSED) {
            refuse_reused(g, j);
        } else {
            if (r != FIRN_EAGAIN)
                note_failure(g, j->name, r, g->diag.text);
            put_back(g, j, r, &g->diag);
        }
    }
    return go(g, AT_KEEP);
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
    [AT_HAND] = hand,
    [AT_BUILD] = build,
    [AT_COMMITTED] = committed,
    [AT_PUT] = keep,
    [AT_KEEP] = keep,
    [AT_KEPT] = kept,
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
        serve_all_from_hand(g);
    else
        put_blocks(g);
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
