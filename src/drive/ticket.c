/*
 * A commit goes in rounds: read the records that are not known, build a write for each sequence, send
 * all of them in one transaction, look at the answers. Usually that is one round without a read. A
 * write whose outcome is open stays in its entry, so that a later call finds it by its nonce.
 */
#include "drive/ticket.h"
#include "id/diag.h"
#include "id/rng_take.h"

#include <stdlib.h>

enum {
    ROUNDS_MAX = 16
}; /* another process may win that often in a row; then the caller asks again */

struct ticket_entry {
    char name[RECORD_NAME_MAX];
    size_t name_len; /* 0: unused */
    uint64_t used;
    struct seq_range left; /* granted, but nobody waits for it any more: put_left_back() */
    struct seq_op op;
};

static void kernel_random(void *user, void *out, size_t len)
{
    (void)user;
    firn__entropy(out, len);
}

int tickets_init(struct tickets *t, struct firn_store *store,
                 void (*random)(void *user, void *out, size_t len), void *user)
{
    struct ticket_entry *entry = calloc(TICKET_OPEN_MAX, sizeof *entry);
    if (!entry)
        return FIRN_ENOMEM;
    *t = (struct tickets){ .store = store,
                           .random = random ? random : kernel_random,
                           .random_user = user,
                           .entry = entry };
    return 0;
}

void tickets_done(struct tickets *t)
{
    free(t->entry);
    t->entry = NULL;
}

static struct ticket_entry *entry_of(struct tickets *t, const char *name, size_t len)
{
    struct ticket_entry *free_one = NULL, *e;
    for (size_t i = 0; i < TICKET_OPEN_MAX; i++) {
        e = &t->entry[i];
        if (e->name_len == len && memcmp(e->name, name, len) == 0) {
            e->used = ++t->clock;
            return e;
        }
        /* An entry with numbers in the air goes last: forgetting it would leave a hole. */
        bool idle = e->op.mine_count == 0 && e->left.count == 0;
        bool free_idle = free_one && free_one->op.mine_count == 0 && free_one->left.count == 0;
        if (!free_one || idle > free_idle || (idle == free_idle && e->used < free_one->used))
            free_one = e;
    }
    memcpy(free_one->name, name, len);
    free_one->name_len = len;
    free_one->used = ++t->clock;
    free_one->left = (struct seq_range){ 0 };
    seq_op_init(&free_one->op);
    return free_one;
}

/* The period that a record counts in, as the coordinator names such records; 0 for others. */
static uint64_t period_of(const char *name, size_t len)
{
    const char *at = memchr(name, RECORD_INNER, len);
    uint64_t period = 0;
    for (const char *p = at ? at + 1 : name + len; p < name + len && *p >= '0' && *p <= '9'; p++)
        period = period * 10 + (uint64_t)(*p - '0');
    return period;
}

/* Numbers for the job; what it does not want waits for the next one. */
static void hand_out(struct ticket_entry *e, struct ticket_job *job, struct seq_range got)
{
    job->result = 0;
    job->range = got;
    if (got.count <= job->want) {
        e->left.count = 0;
        return;
    }
    job->range.count = job->want;
    e->left = got;
    e->left.first += job->want * got.step;
    e->left.count -= job->want;
}

/* It still waits for numbers without a key. */
static bool wants_plain(const struct ticket_job *job)
{
    return job->want > 0 && job->range.count == 0;
}

/* An end that is not a good one, for all of the job that is not settled. */
static void fail(struct ticket_job *job, int error)
{
    if (wants_plain(job))
        job->result = error;
    for (size_t i = 0; i < job->keyed_n; i++)
        if (job->keyed[i]->open)
            job->keyed[i]->result = error;
}

/* Take in the sequence's record; `r` is what reading it answered. False: an error, which the job has got. */
static bool take_in(struct ticket_entry *e, struct ticket_job *job, int r,
                    const struct firn_record *rec, struct firn_diag *d)
{
    enum seq_verdict verdict;
    struct seq_range got;
    if (r == 0)
        r = seq_op_read(&e->op, rec->value, rec->len, &verdict, &got, d);
    if (r != 0) {
        fail(job, r);
        return false;
    }
    if (verdict == SEQ_LATE && got.count > job->waited)
        got.count =
            job->waited; /* whoever asked later must not get a lower number than others have */
    if (verdict == SEQ_TRY_AGAIN || got.count == 0)
        return true;
    if (wants_plain(job) && got.count >= job->least)
        hand_out(e, job, got);
    else
        e->left = got; /* too few for this one, or nobody waits: for another */
    return true;
}

static bool read_record(struct tickets *t, struct ticket_entry *e, struct ticket_job *job,
                        struct firn_diag *d)
{
    char key[RECORD_KEY_BUF];
    struct firn_record rec;
    struct firn_slice k = firn_slice(key, seq_key(e->name, e->name_len, key));
    int r = firn_store_read(t->store, k, true, &rec, d);
    return take_in(e, job, r, &rec, d);
}

static void settle(struct keyed *k, const struct idem_record *idem, bool kept, struct firn_diag *d)
{
    k->result = keyed_check(idem, k->ask.args, d);
    k->idem = *idem;
    k->kept = kept;
    k->replayed = kept || !k->ask.listed;
    k->open = false;
}

/* The keys that the known record lists. */
static void settle_listed(const struct ticket_entry *e, struct ticket_job *job, struct firn_diag *d)
{
    for (size_t i = 0; i < job->keyed_n && e->op.keys.n > 0; i++) {
        struct keyed *k = job->keyed[i];
        const struct seq_keyed *found = k->open ? seq_op_find(&e->op, &k->ask.key) : NULL;
        struct idem_record idem;
        if (!found)
            continue;
        keyed_listed(&e->op.base, &e->op.keys, found, period_of(e->name, e->name_len), &idem);
        settle(k, &idem, false, d);
    }
}

/* The keys that have a register are settled; of the others, in order, as many as a record can list are
 * for the next write. On an error of the store none is. */
static size_t look_up(struct tickets *t, struct ticket_job *job, struct seq_ask **ask,
                      struct firn_diag *d)
{
    size_t n = 0;
    for (size_t i = 0; i < job->keyed_n && n < SEQ_KEYS_MAX; i++) {
        struct keyed *k = job->keyed[i];
        struct idem_record idem;
        if (!k->open)
            continue;
        int r = keyed_read(t->store, &k->ask.key, &idem, d);
        if (r == 0) {
            settle(k, &idem, true, d);
        } else if (r == FIRN_ENOENT) {
            ask[n++] = &k->ask;
            k->looked = true; /* in this round, or in one before: it never had one then */
        } else {
            for (; i < job->keyed_n; i++)
                if (job->keyed[i]->open)
                    job->keyed[i]->result = r;
            for (size_t a = 0; a < n; a++)
                ((struct keyed *)(void *)ask[a])->result = r;
            return 0;
        }
    }
    return n;
}

_Static_assert(offsetof(struct keyed, ask) == 0, "an ask leads back to its request");

/* The write succeeded, or there was none to be made: the keys that it lists are settled, some others will
 * never be, and the rest has to come again. */
static void settle_written(const struct ticket_entry *e, struct ticket_job *job,
                           struct firn_diag *d)
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

/* Numbers in hand go back into the record, if nothing was taken from it since, or are given up: who asks
 * later must not get a lower number. The write names the record, so it also proves that. They stay in hand until
 * a write may have been done: one that was not done must not cost them. */
static void put_left_back(struct ticket_entry *e)
{
    struct seq_range *l = &e->left;
    if (l->count > 0 && l->first + l->count * l->step == e->op.base.next)
        e->op.base.next = l->first;
    else if (e->op.base.next != l->first)
        l->count = 0;
}

struct round {    /* what goes to the store together */
    size_t n;     /* sequences */
    size_t extra; /* registers for the lists that these replace */
    struct ticket_entry *entry[TICKET_JOBS_MAX];
    struct ticket_job *job[TICKET_JOBS_MAX];
    struct firn_cas cas[TICKET_JOBS_MAX], extra_cas[TICKET_JOBS_MAX];
    char key[TICKET_JOBS_MAX][RECORD_KEY_BUF];
    struct keyed_text text[TICKET_JOBS_MAX];
};

/* Rule (W) of keyed.h for the record that is to be replaced: with the write, or before it. `others` are
 * the sequences that may still join this round. */
static int keep_list(struct tickets *t, struct round *w, struct ticket_entry *e, size_t others,
                     struct firn_diag *d)
{
    const struct seq_op *op = &e->op;
    uint64_t period = period_of(e->name, e->name_len);
    if (op->keys.n == 0 || op->kept)
        return 0;
    if (t->store->ops->cas_many && w->n + 1 + others + w->extra + op->keys.n <= TICKET_JOBS_MAX) {
        keyed_creates(&op->base, &op->keys, period, w->extra_cas + w->extra, w->text + w->extra);
        w->extra += op->keys.n;
        return 0;
    }
    int r = keyed_flush(t->store, &op->base, &op->keys, period, d);
    e->op.kept = r == 0;
    return r;
}

/* What the job still wants becomes a part of the round, unless it can be had without. */
static void prepare(struct tickets *t, struct round *w, struct ticket_job *job, size_t others,
                    struct firn_diag *d)
{
    struct ticket_entry *e = entry_of(t, job->name, job->name_len);
    struct seq_ask *ask[SEQ_KEYS_MAX];
    struct nonce req;
    if (e->op.base_len == 0 && !read_record(t, e, job, d))
        return;
    settle_listed(e, job, d);
    size_t n = look_up(t, job, ask, d);
    if (!wants_plain(job) && n == 0)
        return;
    put_left_back(e);
    uint64_t want = wants_plain(job) ? job->want : 0;
    if (want > 0 && seq_left(&e->op.base) < job->least) { /* taking the rest would help nobody */
        job->result = FIRN_EOVERFLOW;
        want = 0;
    }
    if (want == 0 && n == 0)
        return;
    int r = keep_list(t, w, e, others, d);
    t->random(t->random_user, req.b, sizeof req.b);
    if (r == 0)
        r = seq_op_build_keyed(&e->op, want, ask, n, t->now_s, &req);
    if (r == FIRN_EOVERFLOW) {
        settle_written(e, job, d);
        if (want > 0)
            job->result = r;
        return;
    }
    if (r != 0) {
        fail(job, r);
        return;
    }
    w->cas[w->n].key = firn_slice(w->key[w->n], seq_key(e->name, e->name_len, w->key[w->n]));
    w->cas[w->n].old = firn_slice(e->op.base_text, e->op.base_len);
    w->cas[w->n].value = firn_slice(e->op.value, e->op.value_len);
    w->entry[w->n] = e;
    w->job[w->n++] = job;
    job->waited = job->want;
}

/* One durable transaction if the store has such; else the sequences one after the other, each with a
 * result of its own. */
static void send(struct tickets *t, struct round *w, int *result, struct firn_diag *d)
{
    struct firn_cas all[TICKET_JOBS_MAX];
    if (w->n + w->extra == 1 || !t->store->ops->cas_many) {
        for (size_t i = 0; i < w->n; i++)
            result[i] = firn_store_cas(t->store, &w->cas[i], d);
        return;
    }
    memcpy(all, w->cas, w->n * sizeof all[0]);
    memcpy(all + w->n, w->extra_cas, w->extra * sizeof all[0]);
    int r = firn_store_cas_many(t->store, all, w->n + w->extra, result, d);
    for (size_t i = 0; r && i < w->n; i++)
        result[i] = r;
}

/* One round over the jobs that are open. Returns how many still are. */
static size_t round_of(struct tickets *t, struct ticket_job *job, size_t count, bool *open,
                       struct firn_diag *d)
{
    struct round w;
    int result[TICKET_JOBS_MAX];
    size_t others = 0, still = 0;
    w.n = w.extra = 0;
    for (size_t i = 0; i < count; i++)
        others += open[i];
    for (size_t i = 0; i < count; i++) {
        if (!open[i])
            continue;
        open[i] = false;
        prepare(t, &w, &job[i], --others, d);
    }
    if (w.n > 0)
        send(t, &w, result, d);
    for (size_t k = 0; k < w.n; k++) {
        struct ticket_job *j = w.job[k];
        struct ticket_entry *e = w.entry[k];
        struct seq_range got;
        if (result[k] != FIRN_EIO) /* which promises that nothing was written */
            e->left.count = 0;
        if (seq_op_done(&e->op, result[k], &got) == SEQ_GRANTED) {
            if (got.count > 0)
                hand_out(e, j, got);
            settle_written(e, j, d);
            continue;
        }
        fail(j, result[k]);
        if (result[k] != FIRN_ECONFLICT && result[k] != FIRN_EUNKNOWN)
            continue;
        if (result[k] == FIRN_EUNKNOWN || !j->once)
            open[j - job] = true, still++;
        struct firn_record rec;
        const struct firn_store_ops *ops = t->store->ops;
        if (result[k] == FIRN_ECONFLICT && ops->cas_many && ops->instead &&
            ops->instead(t->store, k, &rec) == 0)
            (void)take_in(e, j, 0, &rec, d); /* else the next round reads it */
    }
    return still;
}

int ticket_commit(struct tickets *t, struct ticket_job *job, size_t count, struct firn_diag *d)
{
    bool open[TICKET_JOBS_MAX];
    if (count > TICKET_JOBS_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "at most %d sequences in one commit", TICKET_JOBS_MAX);
    for (size_t i = 0; i < count; i++) {
        open[i] = record_name_ok(job[i].name, job[i].name_len) &&
                  (job[i].want > 0 || job[i].keyed_n > 0);
        job[i].result = open[i] && job[i].want == 0 ? 0 : FIRN_EINVAL;
        job[i].range = (struct seq_range){ 0 };
        job[i].more = false;
        job[i].least = job[i].least ? job[i].least : 1;
        for (size_t k = 0; k < job[i].keyed_n; k++) {
            struct keyed *y = job[i].keyed[k];
            y->open = open[i];
            y->result = open[i] ? FIRN_EAGAIN : FIRN_EINVAL;
            y->ask.listed = y->looked = y->replayed = y->kept = false;
        }
    }
    for (int i = 0; i < ROUNDS_MAX && round_of(t, job, count, open, d) > 0; i++)
        ;
    int first = 0;
    bool granted = false;
    for (size_t i = 0; i < count; i++) {
        granted |= job[i].result == 0 && job[i].want > 0;
        first = first ? first : job[i].result;
        for (size_t k = 0; k < job[i].keyed_n; k++) {
            granted |= job[i].keyed[k]->result == 0;
            first = first ? first : job[i].keyed[k]->result;
        }
        if (job[i].result == 0) {
            const struct ticket_entry *e = entry_of(t, job[i].name, job[i].name_len);
            job[i].more = e->left.count > 0 || e->op.base_len == 0 || seq_left(&e->op.base) > 0;
        }
    }
    return granted ? 0 : first;
}

int ticket_flush(struct tickets *t, const char *name, size_t name_len, uint64_t since_s,
                 struct firn_diag *d)
{
    char key[RECORD_KEY_BUF];
    struct firn_record rec;
    struct seq_record r;
    struct seq_keys keys;
    size_t len = seq_key(name, name_len, key);
    int error = firn_store_read(t->store, firn_slice(key, len), true, &rec, d);
    if (error)
        return error == FIRN_ENOENT ? 0 : error;
    error = seq_parse_keyed(rec.value, rec.len, &r, &keys, d);
    if (error || keys.n == 0 || keys.at < since_s)
        return error;
    return keyed_flush(t->store, &r, &keys, period_of(name, name_len), d);
}

void ticket_return(struct tickets *t, const char *name, size_t name_len, struct seq_range rest)
{
    struct ticket_entry *e = entry_of(t, name, name_len);
    bool joined = e->left.count > 0 && rest.first + rest.count * rest.step == e->left.first;
    if (rest.count == 0)
        return;
    if (joined)
        rest.count += e->left.count; /* the other part of the same grant */
    if (joined ||
        e->left.count < rest.count) /* one piece is kept; a smaller one beside it is a hole */
        e->left = rest;
}

int ticket_create(struct tickets *t, const char *name, size_t name_len, const struct seq_spec *spec,
                  struct seq_record *out, struct firn_diag *d)
{
    if (!record_name_ok(name, name_len))
        return firn__diag(d, FIRN_EINVAL, 0,
                          "a sequence's name is 1 to %d of A-Z a-z 0-9 . _ : and -",
                          RECORD_NAME_MAX);
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct seq_record made, there;
    struct nonce req;
    t->random(t->random_user, req.b, sizeof req.b);
    int r = seq_new(spec, &req, &made, d);
    if (r != 0)
        return r;
    size_t key_len = seq_key(name, name_len, key), len = seq_encode(&made, text);
    struct firn_cas cas = { firn_slice(key, key_len), { NULL, 0 }, firn_slice(text, len) };
    r = firn_store_cas(t->store, &cas, d);
    if (r == FIRN_EUNKNOWN || r == FIRN_ECONFLICT) {
        /* Ours after all? The nonce tells, as long as nobody has taken a number yet. */
        int got = ticket_describe(t, name, name_len, &there, d);
        if (got != 0)
            return got == FIRN_ENOENT ? r : got;
        r = nonce_eq(&there.req, &req) ? 0 : FIRN_ECONFLICT;
        made = there;
    }
    if (out && (r == 0 || r == FIRN_ECONFLICT))
        *out = made;
    return r == FIRN_ECONFLICT
               ? firn__diag(d, r, 0, "the sequence '%.*s' exists", (int)name_len, name)
               : r;
}

int ticket_describe(struct tickets *t, const char *name, size_t name_len, struct seq_record *out,
                    struct firn_diag *d)
{
    char key[RECORD_KEY_BUF];
    struct firn_record rec;
    if (!record_name_ok(name, name_len))
        return FIRN_ENOENT;
    size_t len = seq_key(name, name_len, key);
    int r = firn_store_read(t->store, firn_slice(key, len), true, &rec, d);
    return r ? r : seq_parse(rec.value, rec.len, out, d);
}

int ticket_skip(struct tickets *t, const char *name, size_t name_len, uint64_t n,
                struct seq_record *out, struct firn_diag *d)
{
    char key[RECORD_KEY_BUF], text[RECORD_TEXT_MAX];
    struct firn_slice k = firn_slice(key, seq_key(name, name_len, key));
    struct firn_record rec;
    struct seq_keys keys;
    for (int i = 0; i < ROUNDS_MAX; i++) {
        int r = firn_store_read(t->store, k, true, &rec, d);
        if (r == 0)
            r = seq_parse_keyed(rec.value, rec.len, out, &keys, d);
        if (r == 0)
            r = keyed_flush(t->store, out, &keys, period_of(name, name_len), d);
        if (r != 0)
            return r;
        uint64_t left = seq_left(out);
        if (left == 0 || n == 0)
            return 0;
        out->next += (n < left ? n : left) * out->step;
        t->random(t->random_user, out->req.b, sizeof out->req.b);
        struct firn_cas cas = { k, firn_slice(rec.value, rec.len),
                                firn_slice(text, seq_encode(out, text)) };
        r = firn_store_cas(t->store, &cas, d);
        if (r != FIRN_ECONFLICT)
            return r;
    }
    return firn__diag(d, FIRN_EAGAIN, 0, "others keep taking numbers: try again");
}

struct listing {
    ticket_each_fn *each;
    void *user;
    struct firn_diag *d;
};

static int list_one(void *user, struct firn_slice key, struct firn_slice value)
{
    struct listing *l = user;
    struct seq_record r;
    int error = seq_parse(value.p, value.len, &r, l->d);
    return error ? error : l->each(l->user, key.p + 4, key.len - 4, &r);
}

int ticket_list(struct tickets *t, ticket_each_fn *each, void *user, struct firn_diag *d)
{
    struct listing l = { each, user, d };
    return firn_store_scan(t->store, firn_slice("seq/", 4), list_one, &l, d);
}
