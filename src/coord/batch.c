/*
 * The group commit's decisions (batch.h). Each job of a round goes through: its record, its keys,
 * the list of the record that it replaces, its write; then all writes are sent, and answered in
 * order. Tests: tests/unit/coord/batch.c, tests/unit/drive/ticket.c,
 * tests/property/drive/keyed_world.c; the simulator runs it with faults.
 */
#include "coord/batch.h"
#include "coord/mutant.h"
#include "coord/retry.h"
#include "id/diag.h"
#include "platform/assert.h"

#include <inttypes.h>

_Static_assert(offsetof(struct keyed, ask) == 0, "an ask leads back to its request");

static struct keyed *request_of(struct seq_ask *ask)
{
    return (struct keyed *)(void *)ask;
}

static uint64_t range_end(const struct seq_range *r)
{
    return r->first + r->count * r->step;
}

/* ---- the table ---- */

struct seq_entry *batch_entry(struct seq_table *t, const char *name, size_t len)
{
    struct seq_entry *e = seq_table_find(t, name, len);
    return e ? e : seq_table_open(t, name, len);
}

void batch_forget(struct seq_table *t, const char *name, size_t len)
{
    struct seq_entry *e = seq_table_find(t, name, len);
    if (!e)
        return;
    e->left.count = 0;
    e->op.base_len = 0; /* its writes whose outcome is open stay known */
}

/* A record was read. Numbers in hand stay there only if it is the very one that they came from: a
 * write of unknown outcome that was not done must not cost them, one that was done took them. */
static void keep_left(struct seq_entry *e)
{
    if (!nonce_eq(&e->left_of, &e->op.base.req))
        e->left.count = 0;
}

/* Numbers in hand go back into the record, if nothing was taken from it since, or are given up: a
 * later request must not get a lower number. The write names the record, so it also proves that. */
static void put_left_back(struct seq_entry *e)
{
    struct seq_range *l = &e->left;
    struct seq_record *base = &e->op.base;
    if (l->count > 0 && l->step == base->step && l->first >= base->start &&
        range_end(l) == base->next && !FIRN_MUTANT(tk_left_dropped))
        base->next = l->first;
    else if (base->next != l->first)
        l->count = 0;
}

/* ---- jobs ---- */

/* It still waits for numbers without a key. */
static bool wants_plain(const struct ticket_job *job)
{
    return job->want > 0 && job->range.count == 0;
}

/* Numbers for the job; the rest waits for the next one. */
static void hand_out(struct seq_entry *e, struct ticket_job *job, struct seq_range got)
{
    firn_assert(wants_plain(job) && got.count > 0 && got.step > 0);
    job->result = 0;
    job->range = got;
    if (got.count <= job->want) {
        e->left.count = 0;
        return;
    }
    struct seq_range rest = { got.first + job->want * got.step, got.step, got.count - job->want };
    job->range.count = job->want;
    seq_table_keep(e, rest);
    firn_assert(range_end(&job->range) == rest.first && range_end(&rest) == range_end(&got));
}

/* An error for all of the job that is not settled. */
static void fail(struct ticket_job *job, int error)
{
    firn_assert(error != 0);
    if (wants_plain(job))
        job->result = error;
    for (size_t i = 0; i < job->keyed_n; i++)
        if (job->keyed[i]->open)
            job->keyed[i]->result = error;
}

static void settle(struct keyed *k, const struct idem_record *idem, bool kept, struct firn_diag *d)
{
    firn_assert(k->open);
    k->result = keyed_check(idem, k->ask.args, k->ask.want, d);
    k->idem = *idem;
    k->kept = kept;
    k->replayed = kept || !k->ask.listed;
    k->open = false;
}

/* The keys that the known record lists. */
static void settle_listed(const struct seq_entry *e, struct ticket_job *job, struct firn_diag *d)
{
    for (size_t i = 0; i < job->keyed_n && e->op.keys.n > 0; i++) {
        if (FIRN_MUTANT(tk_list_not_seen) && !job->keyed[i]->ask.listed)
            continue;
        struct keyed *k = job->keyed[i];
        const struct seq_keyed *found = k->open ? seq_op_find(&e->op, &k->ask.key) : NULL;
        struct idem_record idem;
        if (!found)
            continue;
        keyed_listed(&e->op.base, &e->op.keys, found, keyed_period(e->name, e->name_len), &idem);
        settle(k, &idem, false, d);
    }
}

/* The write succeeded, or there was none to be made: the keys that the record lists are settled,
 * some never will be, and the rest has to be asked for again. */
static void settle_written(const struct seq_entry *e, struct ticket_job *job, struct firn_diag *d)
{
    settle_listed(e, job, d);
    uint64_t left = seq_left(&e->op.base);
    for (size_t i = 0; i < job->keyed_n; i++) {
        struct keyed *k = job->keyed[i];
        bool never = left == 0 || (left < k->ask.want && !k->ask.partial);
        if (!k->open)
            continue;
        k->result = never && k->looked ? FIRN_EOVERFLOW : FIRN_EAGAIN;
        k->open = false;
    }
}

/* Take in the sequence's record. False: it cannot be read, which is the job's error. */
static bool take_record(struct seq_entry *e, struct ticket_job *job, int result, const char *p,
                        size_t len, struct firn_diag *d)
{
    enum seq_verdict verdict;
    struct seq_range got;
    if (result == 0)
        result = seq_op_read(&e->op, p, len, &verdict, &got, d);
    if (result != 0) {
        fail(job, result);
        return false;
    }
    firn_assert(verdict != SEQ_READ_IT && e->op.base_len > 0);
    keep_left(e);
    /* A later request must not get a lower number than one that was already given. */
    if (verdict == SEQ_LATE && got.count > job->waited && !FIRN_MUTANT(tk_late_to_any))
        got.count = job->waited;
    if (verdict == SEQ_TRY_AGAIN || got.count == 0)
        return true;
    if (wants_plain(job) && got.count >= job->least)
        hand_out(e, job, got);
    else
        seq_table_keep(e, got); /* too few for this job, or none waits: for another */
    return true;
}

/* ---- one job's way through a round ---- */

static void next_job(struct batch *b)
{
    b->at_ = BATCH_AT_JOB;
    b->i_++;
}

/* Rule (W) of keyed.h for the record that is to be replaced: with the write if there is room for it
 * and for the jobs that may still join. False: the registers have to be created before. */
static bool list_joins(struct batch *b)
{
    const struct seq_op *op = &b->e_->op;
    uint64_t period = keyed_period(b->e_->name, b->e_->name_len);
    if (op->keys.n == 0 || op->kept || FIRN_MUTANT(tk_list_dropped))
        return true;
    b->record = &op->base;
    b->list = &op->keys;
    b->period = period;
    if (!b->many_ || b->n + 1 + b->others_ + b->extra + op->keys.n > TICKET_JOBS_MAX)
        return false;
    keyed_creates(&op->base, &op->keys, period, b->extra_ + b->extra, b->text_ + b->extra);
    b->extra += op->keys.n;
    return true;
}

/* What the job in hand takes from its sequence. False: nothing. */
static bool takes_something(struct batch *b, struct firn_diag *d)
{
    struct ticket_job *job = &b->job_[b->i_];
    if (!wants_plain(job) && b->asks_ == 0)
        return false;
    if (seq_deleted(&b->e_->op.base)) { /* it may be created again: look at it anew then */
        firn__diag(d, FIRN_ENOENT, 0, "the sequence was deleted");
        fail(job, FIRN_ENOENT);
        batch_forget(b->table_, job->name, job->name_len);
        return false;
    }
    put_left_back(b->e_);
    b->want_ = wants_plain(job) ? job->want : 0;
    if (b->want_ > 0 && seq_left(&b->e_->op.base) < job->least) { /* the rest is of no use */
        job->result = FIRN_EOVERFLOW;
        b->want_ = 0;
    }
    return b->want_ > 0 || b->asks_ > 0;
}

static void build(struct batch *b, struct firn_diag *d)
{
    struct seq_entry *e = b->e_;
    struct ticket_job *job = &b->job_[b->i_];
    int r = b->kept_;
    if (r == 0)
        r = seq_op_build_keyed(&e->op, b->want_, b->ask_, b->asks_, b->now_s_, &b->fresh);
    if (r == FIRN_EOVERFLOW) {
        settle_written(e, job, d);
        if (b->want_ > 0)
            job->result = r;
        return;
    }
    if (r != 0) {
        fail(job, r);
        return;
    }
    size_t i = b->n++;
    firn_assert(b->n + b->extra + b->others_ <= TICKET_JOBS_MAX, "n=%zu extra=%zu others=%zu", b->n,
                b->extra, b->others_);
    firn_assert(e->op.next.next > e->op.base.next &&
                    e->op.next.next <= e->op.next.max + e->op.next.step,
                "base %" PRIu64 " next %" PRIu64, e->op.base.next, e->op.next.next);
    b->cas[i] = (struct firn_cas){
        firn_slice(b->name_[i], seq_key(e->name, e->name_len, b->name_[i])),
        firn_slice(e->op.base_text, e->op.base_len), firn_slice(e->op.value, e->op.value_len)
    };
    b->entry_[i] = e;
    b->writer_[i] = job;
    job->waited = job->want;
}

/* ---- rounds ---- */

static void begin_round(struct batch *b)
{
    b->n = b->extra = b->answered_ = b->i_ = b->others_ = 0;
    for (size_t i = 0; i < b->count_; i++)
        b->others_ += b->open_[i];
    b->at_ = BATCH_AT_JOB;
    if (b->others_ == 0 || b->rounds_++ == RETRY_ROUNDS_MAX)
        b->at_ = BATCH_AT_END;
}

void batch_init(struct batch *b, struct seq_table *t, struct ticket_job *job, size_t count,
                bool many, uint64_t now_s)
{
    firn_assert(count <= TICKET_JOBS_MAX);
    b->table_ = t;
    b->job_ = job;
    b->count_ = count;
    b->many_ = many;
    b->now_s_ = now_s;
    b->rounds_ = 0;
    for (size_t i = 0; i < count; i++) {
        bool open = record_name_ok(job[i].name, job[i].name_len) &&
                    (job[i].want > 0 || job[i].keyed_n > 0);
        b->open_[i] = open;
        job[i].result = open && job[i].want == 0 ? 0 : FIRN_EINVAL;
        job[i].range = (struct seq_range){ 0 };
        job[i].more = false;
        job[i].least = job[i].least ? job[i].least : 1;
        for (size_t k = 0; k < job[i].keyed_n; k++) {
            struct keyed *y = job[i].keyed[k];
            y->open = open;
            y->result = open ? FIRN_EAGAIN : FIRN_EINVAL;
            y->ask.listed = y->looked = y->replayed = y->kept = false;
        }
    }
    begin_round(b);
}

static int finish(struct batch *b)
{
    int first = 0;
    bool granted = false;
    for (size_t i = 0; i < b->count_; i++) {
        struct ticket_job *job = &b->job_[i];
        granted |= job->result == 0 && job->want > 0;
        first = first ? first : job->result;
        for (size_t k = 0; k < job->keyed_n; k++) {
            granted |= job->keyed[k]->result == 0;
            first = first ? first : job->keyed[k]->result;
        }
        if (job->result != 0)
            continue;
        firn_assert(job->range.count <= job->want && (job->want > 0) == (job->range.count > 0),
                    "want=%" PRIu64 " got=%" PRIu64, job->want, job->range.count);
        const struct seq_entry *e = seq_table_find(b->table_, job->name, job->name_len);
        job->more = !e || e->left.count > 0 || e->op.base_len == 0 || seq_left(&e->op.base) > 0;
    }
    seq_table_end_turn(b->table_);
    return granted ? 0 : first;
}

/* False: the table has no room for it. */
static bool begin_job(struct batch *b)
{
    struct ticket_job *job = &b->job_[b->i_];
    b->open_[b->i_] = false;
    b->others_--;
    b->e_ = batch_entry(b->table_, job->name, job->name_len);
    b->at_ = BATCH_AT_RECORD;
    b->key_len = seq_key(job->name, job->name_len, b->key);
    if (b->e_) {
        seq_table_pin(b->table_, b->e_);
        return true;
    }
    fail(job, FIRN_EAGAIN); /* the next commit has room */
    next_job(b);
    return false;
}

static enum batch_do write_all(struct batch *b)
{
    firn_assert(b->n + b->extra <= TICKET_JOBS_MAX && (b->extra == 0 || b->many_));
    memcpy(b->cas + b->n, b->extra_, b->extra * sizeof b->cas[0]);
    b->at_ = BATCH_AT_ANSWER;
    return BATCH_WRITE;
}

enum batch_do batch_next(struct batch *b, int *out_result, struct firn_diag *d)
{
    for (;;)
        switch (b->at_) {
        case BATCH_AT_JOB:
            while (b->i_ < b->count_ && !b->open_[b->i_])
                b->i_++;
            if (b->i_ == b->count_ && b->n > 0)
                return write_all(b);
            if (b->i_ == b->count_) {
                begin_round(b);
                break;
            }
            if (begin_job(b) && b->e_->op.base_len == 0)
                return BATCH_READ;
            break;
        case BATCH_AT_RECORD:
            firn_assert(b->e_->op.base_len > 0);
            settle_listed(b->e_, &b->job_[b->i_], d);
            b->k_ = b->asks_ = 0;
            b->at_ = BATCH_AT_KEYS;
            break;
        case BATCH_AT_KEYS: {
            const struct ticket_job *job = &b->job_[b->i_];
            while (b->k_ < job->keyed_n && !job->keyed[b->k_]->open)
                b->k_++;
            if (b->k_ < job->keyed_n && b->asks_ < SEQ_KEYS_MAX) {
                b->client_key = &job->keyed[b->k_]->ask.key;
                return BATCH_READ_KEY;
            }
            if (!takes_something(b, d)) {
                next_job(b);
                break;
            }
            b->kept_ = 0;
            b->at_ = BATCH_AT_LIST;
            if (!list_joins(b))
                return BATCH_KEEP_LIST;
            break;
        }
        case BATCH_AT_LIST:
            b->at_ = BATCH_AT_BUILD;
            return BATCH_DRAW;
        case BATCH_AT_BUILD:
            build(b, d);
            next_job(b);
            break;
        case BATCH_AT_ANSWER:
            firn_assert(b->answered_ == b->n);
            begin_round(b);
            break;
        case BATCH_AT_END:
            *out_result = finish(b);
            return BATCH_DONE;
        }
}

void batch_read_done(struct batch *b, int result, const char *p, size_t len, struct firn_diag *d)
{
    firn_assert(b->at_ == BATCH_AT_RECORD && b->e_->op.base_len == 0);
    if (!take_record(b->e_, &b->job_[b->i_], result, p, len, d))
        next_job(b);
}

void batch_key_done(struct batch *b, int result, const struct idem_record *kept,
                    struct firn_diag *d)
{
    struct ticket_job *job = &b->job_[b->i_];
    firn_assert(b->at_ == BATCH_AT_KEYS && b->k_ < job->keyed_n && b->asks_ < SEQ_KEYS_MAX);
    struct keyed *k = job->keyed[b->k_];
    if (FIRN_MUTANT(tk_key_not_read) && result == 0)
        result = FIRN_ENOENT;
    if (result == 0) {
        settle(k, kept, true, d);
    } else if (result == FIRN_ENOENT) {
        b->ask_[b->asks_++] = &k->ask;
        k->looked = true; /* in this round, or in one before: it never had a register then */
    } else {              /* on an error of the store no key is served */
        for (size_t i = b->k_; i < job->keyed_n; i++)
            if (job->keyed[i]->open)
                job->keyed[i]->result = result;
        for (size_t a = 0; a < b->asks_; a++)
            request_of(b->ask_[a])->result = result;
        b->asks_ = 0;
        b->k_ = job->keyed_n;
        return;
    }
    b->k_++;
}

void batch_list_done(struct batch *b, int result)
{
    firn_assert(b->at_ == BATCH_AT_LIST);
    b->e_->op.kept = result == 0;
    b->kept_ = result;
}

bool batch_answered(struct batch *b, int result, struct firn_diag *d)
{
    firn_assert(b->at_ == BATCH_AT_ANSWER && b->answered_ < b->n);
    struct ticket_job *job = b->writer_[b->answered_];
    struct seq_entry *e = b->entry_[b->answered_++];
    struct seq_range got;
    if (result == 0 && !FIRN_MUTANT(tk_left_after_write))
        e->left.count = 0;
    if (seq_op_done(&e->op, result, &got) == SEQ_GRANTED) {
        if (got.count > 0)
            hand_out(e, job, got);
        settle_written(e, job, d);
        return false;
    }
    fail(job, result);
    if (result == FIRN_EUNKNOWN || (result == FIRN_ECONFLICT && !job->once))
        b->open_[job - b->job_] = true;
    return result == FIRN_ECONFLICT;
}

void batch_instead(struct batch *b, const char *p, size_t len, struct firn_diag *d)
{
    firn_assert(b->at_ == BATCH_AT_ANSWER && b->answered_ > 0);
    size_t i = b->answered_ - 1;
    (void)take_record(b->entry_[i], b->writer_[i], 0, p, len, d); /* else the next round reads it */
}
