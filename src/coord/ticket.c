/*
 * A commit goes in rounds: read the records that are not known, build a write for each sequence, send
 * all of them in one transaction, look at the answers. Usually that is one round without a read. A
 * write whose outcome is open stays in its entry, so that a later call finds it by its nonce.
 */
#include "coord/ticket.h"
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
    struct seq_range left; /* granted, but nobody waits for it any more: the next to ask gets it */
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
    *t = (struct tickets){ store, random ? random : kernel_random, user, entry, 0 };
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

/* Read the sequence's record. True when that alone settled the job. */
static bool read_record(struct tickets *t, struct ticket_entry *e, struct ticket_job *job,
                        struct firn_diag *d)
{
    char key[RECORD_KEY_BUF];
    struct firn_record rec;
    enum seq_verdict verdict;
    struct seq_range got;
    size_t len = seq_key(e->name, e->name_len, key);
    job->result = firn_store_read(t->store, firn_slice(key, len), true, &rec, d);
    if (job->result == 0)
        job->result = seq_op_read(&e->op, rec.value, rec.len, &verdict, &got, d);
    if (job->result != 0)
        return true;
    if (verdict != SEQ_GRANTED)
        return false;
    if (got.count < job->least && e->left.count == 0) { /* too few for this one, not for another */
        e->left = got;
        return false;
    }
    hand_out(e, job, got);
    return true;
}

/* One transaction where the engine has that. Elsewhere the writes go one by one: each has an outcome of
 * its own, and none waits for another. */
static void send(struct firn_store *s, const struct firn_cas *cas, size_t n, int *result,
                 struct firn_diag *d)
{
    int r = n == 1 ? FIRN_ENOTSUP : firn_store_cas_many(s, cas, n, result, d);
    for (size_t i = 0; i < n && r != 0; i++)
        result[i] = r == FIRN_ENOTSUP ? firn_store_cas(s, &cas[i], d) : r;
}

/* One round over the jobs that are open. Returns how many still are. */
static size_t round_of(struct tickets *t, struct ticket_job *job, size_t count, bool *open,
                       struct firn_diag *d)
{
    struct ticket_entry *entry[TICKET_JOBS_MAX];
    struct firn_cas cas[TICKET_JOBS_MAX];
    char key[TICKET_JOBS_MAX][RECORD_KEY_BUF];
    size_t who[TICKET_JOBS_MAX], n = 0, still = 0;
    int result[TICKET_JOBS_MAX];

    for (size_t i = 0; i < count; i++) {
        if (!open[i])
            continue;
        struct ticket_entry *e = entry_of(t, job[i].name, job[i].name_len);
        struct nonce req;
        open[i] = false;
        if (e->left.count > 0 && e->left.count >= job[i].least) {
            hand_out(e, &job[i], e->left);
            continue;
        }
        if (e->op.base_len == 0 && read_record(t, e, &job[i], d))
            continue;
        if (seq_left(&e->op.base) < job[i].least) { /* taking the rest would help nobody */
            job[i].result = FIRN_EOVERFLOW;
            continue;
        }
        t->random(t->random_user, req.b, sizeof req.b);
        job[i].result = seq_op_build(&e->op, job[i].want, &req);
        if (job[i].result != 0)
            continue;
        cas[n].key = firn_slice(key[n], seq_key(e->name, e->name_len, key[n]));
        cas[n].old = firn_slice(e->op.base_text, e->op.base_len);
        cas[n].value = firn_slice(e->op.value, e->op.value_len);
        entry[n] = e;
        who[n++] = i;
    }
    if (n == 0)
        return 0;
    send(t->store, cas, n, result, d);
    for (size_t k = 0; k < n; k++) {
        struct ticket_job *j = &job[who[k]];
        struct seq_range got;
        j->result = result[k];
        if (seq_op_done(&entry[k]->op, j->result, &got) == SEQ_GRANTED)
            hand_out(entry[k], j, got);
        else if (j->result == FIRN_ECONFLICT || j->result == FIRN_EUNKNOWN)
            open[who[k]] = true, still++;
    }
    return still;
}

int ticket_commit(struct tickets *t, struct ticket_job *job, size_t count, struct firn_diag *d)
{
    bool open[TICKET_JOBS_MAX];
    if (count > TICKET_JOBS_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "at most %d sequences in one commit", TICKET_JOBS_MAX);
    for (size_t i = 0; i < count; i++) {
        open[i] = record_name_ok(job[i].name, job[i].name_len) && job[i].want > 0;
        job[i].result = FIRN_EINVAL;
        job[i].range = (struct seq_range){ 0 };
        job[i].more = false;
        job[i].least = job[i].least ? job[i].least : 1;
    }
    for (int i = 0; i < ROUNDS_MAX && round_of(t, job, count, open, d) > 0; i++)
        ;
    int first = 0;
    bool granted = false;
    for (size_t i = 0; i < count; i++) {
        granted |= job[i].result == 0;
        first = first ? first : job[i].result;
        if (job[i].result == 0) {
            const struct ticket_entry *e = entry_of(t, job[i].name, job[i].name_len);
            job[i].more = e->left.count > 0 || e->op.base_len == 0 || seq_left(&e->op.base) > 0;
        }
    }
    return granted ? 0 : first;
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
