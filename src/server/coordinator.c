/*
 * The thread's life: wait for a job or for the lease's next step; do the step; commit all TAKE jobs that
 * are there in one transaction; answer the others one by one; hand everything back.
 * When the store fails, TAKE jobs stay and are tried again until their deadline: a full disk then costs
 * time, not numbers, because a commit that landed unseen is found by its nonce.
 */
#include "server/coordinator.h"
#include "firn/dated.h"
#include "server/log.h"
#include "store/slotlock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    RETRY_MS = 50,
    WAIT_MS = 5000,
    KNOWN_MAX = 1024,
    FAILURE_LOG_MS = 10000,
    REOPEN_MS = 1000, /* between tries to reach a shared store at the start */
    KEYED_MAX = 256,  /* requests with a key in one commit; a record lists fewer */
    SWEEP_S_MIN = 1,  /* all keys are looked at once in a 24th of the retention, within these */
    SWEEP_S_MAX = 3600,
    SWEEP_MS_MIN = 10, /* between two steps of that */
    DAY_S = 86400,
};

struct outbox {
    struct loop *loop;
    pthread_mutex_t mutex;
    struct job *first, **tail;
    bool scheduled;
    struct loop_task task; /* the address leads back to the outbox */
};

/* What never changes about a sequence once it is there, so that a commit need not look it up. */
struct known {
    char name[RECORD_NAME_MAX + 1]; /* empty: a free place */
    char reg[RECORD_NAME_MAX + 1];  /* the register that counts: its own, or that of the period */
    struct seq_record record;
    bool dated;
    bool ahead; /* a range sequence: blocks are fetched ahead */
    uint32_t reset, digits, period;
    uint32_t settled; /* the period in which the keys of earlier ones were seen to */
};

struct coordinator {
    struct known known[KNOWN_MAX]; /* direct mapped by a hash of the name */
    struct coordinator_opts opts;
    struct board *board;
    struct firn_store *store;
    struct tickets tickets;
    struct ranges ranges;
    struct lease *lease;
    struct nodes *nodes;
    struct lease_world world;
    int lock_fd;
    struct coordinator_stats stats;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards the inbox and `stop` */
    pthread_cond_t wake;
    struct job *first, **tail;
    struct job *again, **again_tail; /* to be tried again, before what is in the inbox */
    struct job *keep, **keep_tail;   /* their keys are to be kept, then they are done */
    size_t keyed_n;                  /* requests with a key in the commit that is gathered */
    uint32_t sweep_part;
    bool failed; /* the store failed in this run over the jobs */
    bool stop, sleeping;
    enum slot_state state_logged;
    struct slot_grant grant_logged;
    enum clock_state clock_logged;
    int error_logged;
    uint64_t fences_logged;
    uint64_t failures, failure_logged_ms; /* commits that failed since one did not */
};

static uint64_t mono_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- the way back --- */

static void outbox_run(struct loop_task *t)
{
    struct outbox *o = (struct outbox *)(void *)((char *)t - offsetof(struct outbox, task));
    pthread_mutex_lock(&o->mutex);
    struct job *j = o->first;
    o->first = NULL;
    o->tail = &o->first;
    o->scheduled = false;
    pthread_mutex_unlock(&o->mutex);
    while (j) {
        struct job *next = j->next; /* done() may free the job */
        j->done(j);
        j = next;
    }
}

int outbox_new(struct loop *loop, struct outbox **out)
{
    struct outbox *o = calloc(1, sizeof *o);
    if (!o)
        return FIRN_ENOMEM;
    o->loop = loop;
    o->tail = &o->first;
    o->task.fn = outbox_run;
    pthread_mutex_init(&o->mutex, NULL);
    *out = o;
    return 0;
}

void outbox_free(struct outbox *o)
{
    if (!o)
        return;
    pthread_mutex_destroy(&o->mutex);
    free(o);
}

static void hand_back(struct job *j)
{
    struct outbox *o = j->back;
    j->next = NULL;
    pthread_mutex_lock(&o->mutex);
    *o->tail = j;
    o->tail = &j->next;
    bool call = !o->scheduled;
    o->scheduled = true;
    pthread_mutex_unlock(&o->mutex);
    if (call)
        loop_call(o->loop, &o->task);
}

void job_return(struct job *j, int result)
{
    j->result = result;
    hand_back(j);
}

/* --- dated sequences: "invoice" of 2026-11-16 is the register "invoice:20261116" --- */

static const char *const reset_names[] = { "day", "month", "year" };

void dated_note_format(uint32_t reset, uint32_t digits, char out[RECORD_NOTE_MAX + 1])
{
    snprintf(out, RECORD_NOTE_MAX + 1, "dated:%s:%u", reset_names[reset], digits);
}

int dated_note_parse(const char *note, uint32_t *out_reset, uint32_t *out_digits)
{
    for (uint32_t i = 0; i < 3; i++) {
        char prefix[16];
        int n = snprintf(prefix, sizeof prefix, "dated:%s:", reset_names[i]);
        if (strncmp(note, prefix, (size_t)n) != 0)
            continue;
        uint32_t digits = (uint32_t)strtoul(note + n, NULL, 10);
        if (digits < 1 || digits > FIRN_DATED_DIGITS_MAX)
            return FIRN_EFORMAT;
        *out_reset = i;
        *out_digits = digits;
        return 0;
    }
    return FIRN_EFORMAT;
}

/* --- jobs other than TAKE --- */

struct listing {
    struct job_listed *list;
    size_t n, cap;
};

static int list_one(void *user, const char *name, size_t len, const struct seq_record *r)
{
    struct listing *l = user;
    if (memchr(name, RECORD_INNER, len))
        return 0; /* the counter of a period, not a sequence that anybody made */
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        struct job_listed *grown = realloc(l->list, cap * sizeof *grown);
        if (!grown)
            return FIRN_ENOMEM;
        l->list = grown;
        l->cap = cap;
    }
    struct job_listed *e = &l->list[l->n++];
    memcpy(e->name, name, len);
    e->name[len] = '\0';
    e->record = *r;
    return 0;
}

static void run_list(struct coordinator *c, struct job *j)
{
    struct listing l = { NULL, 0, 0 };
    j->result = ticket_list(&c->tickets, list_one, &l, &j->diag);
    if (j->result) {
        free(l.list);
        return;
    }
    j->list = l.list;
    j->list_n = l.n;
}

/* A sequence's record; the default one comes into being when somebody looks for it. */
static int describe(struct coordinator *c, struct job *j, struct seq_record *out)
{
    int r = ticket_describe(&c->tickets, j->name, j->name_len, out, &j->diag);
    if (r != FIRN_ENOENT)
        return r;
    if (strcmp(j->name, DEFAULT_SEQUENCE) == 0) {
        r = ticket_create(&c->tickets, j->name, j->name_len, &c->opts.first, out, &j->diag);
    } else if (j->create) {
        struct seq_spec spec = { .mode = SEQ_RANGE };
        r = ticket_create(&c->tickets, j->name, j->name_len, &spec, out, &j->diag);
    } else {
        snprintf(j->diag.text, sizeof j->diag.text,
                 "there is no sequence %s: create it with POST /v1/sequences", j->name);
        return r;
    }
    if (r == 0)
        log_info("sequence_created", "name=%s mode=%s", j->name,
                 out->mode == SEQ_RANGE ? "range" : "gapless");
    return r == FIRN_ECONFLICT ? 0 : r; /* another process was faster: *out is what it made */
}

static void run_other(struct coordinator *c, struct job *j)
{
    if (j->what == JOB_LIST)
        run_list(c, j);
    else if (j->what == JOB_NODES)
        j->result = nodes_list(c->nodes, c->store, &j->nodes, &j->list_n, &j->diag);
    else if (j->what == JOB_CREATE)
        j->result = ticket_create(&c->tickets, j->name, j->name_len, &j->spec, &j->record,
                                  &j->diag);
    else
        j->result = describe(c, j, &j->record);
}

/* --- TAKE: the group commit --- */

/* One sequence of a commit and the jobs that wait on it. */
struct group {
    struct known *seq;
    struct job *first, **tail;
    struct job *keyed, **keyed_tail; /* those that the record lists with their keys */
};

static int64_t now_s(const struct coordinator *c)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return clock_f_at(&c->lease->clock, (int64_t)t.tv_sec * 1000000000 + t.tv_nsec) / 1000000000;
}

/* The register of the period that it is now, made when its first number is asked for. A period never
 * goes back while the process runs; after a restart with a clock set back it counts on in the old one. */
static int enter_period(struct coordinator *c, struct known *k, struct firn_diag *d)
{
    uint32_t period;
    if (c->lease->clock.state == CLOCK_WAIT)
        return FIRN_ECLOCK;
    int r = firn_dated_period(k->reset, now_s(c), &period);
    if (r || period <= k->period)
        return r;
    char name[sizeof k->name + 16];
    int n = snprintf(name, sizeof name, "%s%c%u", k->name, RECORD_INNER, period);
    if (n > RECORD_NAME_MAX) {
        snprintf(d->text, sizeof d->text, "a dated sequence's name has at most 55 characters");
        return FIRN_EINVAL;
    }
    struct seq_spec spec = { .mode = k->record.mode,
                             .start = k->record.start,
                             .step = k->record.step,
                             .offset = k->record.offset,
                             .max = k->record.max,
                             .note = "" };
    r = ticket_create(&c->tickets, name, (size_t)n, &spec, NULL, d);
    if (r && r != FIRN_ECONFLICT)
        return r;
    memcpy(k->reg, name, (size_t)n + 1);
    k->period = period;
    return 0;
}

/* FIRN_EAGAIN: the place is held by a sequence of this very commit; the next one will do. */
static int find_known(struct coordinator *c, struct job *j, const struct group *group, size_t n,
                      struct known **out)
{
    struct known *k = &c->known[record_name_hash(j->name, j->name_len) % KNOWN_MAX];
    if (strcmp(k->name, j->name) != 0) {
        for (size_t i = 0; i < n; i++)
            if (group[i].seq == k)
                return FIRN_EAGAIN;
        struct known fresh = { .dated = false };
        int r = describe(c, j, &fresh.record);
        if (r)
            return r;
        memcpy(fresh.name, j->name, j->name_len + 1);
        memcpy(fresh.reg, j->name, j->name_len + 1);
        fresh.dated = dated_note_parse(fresh.record.note, &fresh.reset, &fresh.digits) == 0;
        fresh.ahead = fresh.record.mode == SEQ_RANGE && !fresh.dated;
        *k = fresh;
    }
    *out = k;
    return k->dated ? enter_period(c, k, &j->diag) : 0;
}

static void finish(struct job *j, int result)
{
    j->result = result;
    hand_back(j);
}

/* Worth another try: the store failed, not the request. */
static bool may_heal(int error)
{
    return error == FIRN_EUNKNOWN || error == FIRN_EIO || error == FIRN_ECONFLICT ||
           error == FIRN_EAGAIN || error == FIRN_ENOMEM;
}

/* Jobs that could not be served now: they are tried again before all others, in their order, or
 * answered if they are late. */
static void put_back(struct coordinator *c, struct job *j, int error, const struct firn_diag *d)
{
    uint64_t now = mono_ms();
    while (j) {
        struct job *next = j->next;
        if (may_heal(error) && now < j->deadline_ms &&
            (j->what == JOB_TAKE || j->what == JOB_KEEP)) {
            j->next = NULL;
            *c->again_tail = j;
            c->again_tail = &j->next;
        } else {
            j->diag = *d;
            finish(j, error);
        }
        j = next;
    }
}

/* --- keys --- */

static void count_key(struct coordinator *c, const struct keyed *k)
{
    atomic_fetch_add_explicit(k->replayed ? &c->stats.keys_replayed : &c->stats.keys_kept, 1,
                              memory_order_relaxed);
}

/* The job gets what its key stands for. */
static void finish_keyed(struct coordinator *c, struct job *j)
{
    const struct keyed *k = j->keyed;
    if (j->what == JOB_TAKE) {
        j->range = (struct seq_range){ k->idem.first, k->idem.step, k->idem.count };
        j->period = (uint32_t)k->idem.period;
    }
    count_key(c, k);
    finish(j, 0);
}

static void keep_later(struct coordinator *c, struct job *j)
{
    j->taken = true;
    j->next = NULL;
    *c->keep_tail = j;
    c->keep_tail = &j->next;
}

/* Numbers from a block in hand: with a key they have to be kept before anybody hears of them. */
static void deliver(struct coordinator *c, struct job *j)
{
    if (!j->keyed || j->result) {
        hand_back(j);
        return;
    }
    struct idem_record *i = &j->keyed->idem;
    *i = (struct idem_record){ .args = j->keyed->ask.args,
                               .first = j->range.first,
                               .step = j->range.step,
                               .count = j->range.count };
    keep_later(c, j);
}

static void refuse_reused(struct job *j)
{
    finish(j, keyed_reused(&j->diag));
}

/* The keys of the earlier periods that a retry may still ask for: they get their registers, so that no
 * number of the new period is taken for them. */
static int settle_periods(struct coordinator *c, struct known *k, struct firn_diag *d)
{
    int64_t now = now_s(c), since = now - (int64_t)c->opts.retention_s;
    uint32_t last = k->period;
    if (k->settled == k->period)
        return 0;
    for (int64_t at = now - DAY_S; at > since - DAY_S && at > 0; at -= DAY_S) {
        char name[sizeof k->name + 16];
        uint32_t period;
        int r = firn_dated_period(k->reset, at, &period);
        if (r == 0 && period != last) {
            int n = snprintf(name, sizeof name, "%s%c%u", k->name, RECORD_INNER, period);
            last = period;
            r = ticket_flush(&c->tickets, name, (size_t)n, since > 0 ? (uint64_t)since : 0, d);
        }
        if (r)
            return r;
    }
    k->settled = k->period;
    return 0;
}

/* Before a job with a key joins a commit. FIRN_ENOENT: go on. 0: it is answered already. */
static int admit_keyed(struct coordinator *c, struct job *j, struct known *k)
{
    if (c->lease->clock.state == CLOCK_WAIT)
        return FIRN_ECLOCK; /* a key that seems to be of 1970 would be forgotten at once */
    if (k->dated) {
        int r = settle_periods(c, k, &j->diag);
        return r ? r : FIRN_ENOENT;
    }
    if (!k->ahead)
        return FIRN_ENOENT;
    int r = keyed_read(c->store, &j->keyed->ask.key, &j->keyed->idem, &j->diag);
    if (r)
        return r;
    j->record = k->record;
    j->keyed->replayed = true;
    if (keyed_check(&j->keyed->idem, j->keyed->ask.args, &j->diag) != 0)
        refuse_reused(j);
    else
        finish_keyed(c, j);
    return 0;
}

/* Give each job its part of what was granted, in order. The rest is settled before anybody is told, so
 * that who hears of a number and asks again gets a higher one: a range sequence keeps it in hand, for others
 * it waits for the next commit. Jobs that got nothing although there is more go back. */
static void share_out(struct coordinator *c, struct group *g, const struct ticket_job *t)
{
    struct seq_range range = t->range;
    struct job *served = NULL, **tail = &served, *j = g->first;
    bool taken = false;
    for (; j; j = j->next) {
        uint64_t n = j->want <= range.count ? j->want : j->partial ? range.count : 0;
        if (n == 0 && j->what == JOB_TAKE && t->more)
            break; /* and all behind it, or they would overtake it */
        j->range = (struct seq_range){ range.first, range.step, n };
        j->record = g->seq->record;
        j->period = g->seq->period;
        j->more = t->more;
        range.first += n * range.step;
        range.count -= n;
        taken |= n > 0;
        atomic_fetch_add_explicit(&c->stats.tickets, n, memory_order_relaxed);
        j->result = n || j->what == JOB_FETCH ? 0 : FIRN_EOVERFLOW;
        if (j->result)
            snprintf(j->diag.text, sizeof j->diag.text, "sequence %s has %s", j->name,
                     range.count ? "fewer numbers left than that" : "reached its last number");
        *tail = j;
        tail = &j->next;
    }
    *tail = NULL;
    if (g->seq->ahead)
        ranges_put(&c->ranges, g->seq->name, strlen(g->seq->name), &g->seq->record, &range, taken,
                   mono_ms());
    else
        ticket_return(&c->tickets, g->seq->reg, strlen(g->seq->reg), range);
    while (served) {
        struct job *next = served->next;
        deliver(c, served);
        served = next;
    }
    put_back(c, j, FIRN_EAGAIN, &(struct firn_diag){ 0, "" });
}

/* A block may have come since these jobs were sent: those that it serves need no commit, and one that
 * was to be fetched ahead is not needed twice. In order: behind a job that waits all others wait. True:
 * a commit is still needed. */
static bool serve_from_hand(struct coordinator *c, struct group *g)
{
    const char *name = g->seq->name;
    size_t len = strlen(name);
    struct job *keep = NULL, **tail = &keep;
    bool waits = false;
    for (struct job *j = g->first, *next; j; j = next) {
        bool fetch; /* noted in the cache, where ranges_asked() finds it */
        next = j->next;
        if (j->what == JOB_TAKE && !waits &&
            ranges_take(&c->ranges, name, len, j->want, false, mono_ms(), &j->range, &j->record,
                        &fetch) == 0) {
            j->result = 0;
            deliver(c, j);
            continue;
        }
        waits |= j->what == JOB_TAKE;
        *tail = j;
        tail = &j->next;
        j->next = NULL;
    }
    g->first = keep;
    if (waits || ranges_asked(&c->ranges, name, len))
        return true;
    for (struct job *j = keep, *next; j; j = next) {
        next = j->next;
        finish(j, 0);
    }
    return false;
}

/* Tries go on many times a second while a disk is full: the log tells the first, and then one now and
 * then. */
static void note_failure(struct coordinator *c, const char *name, int error,
                         const struct firn_diag *d)
{
    atomic_fetch_add_explicit(&c->stats.commit_errors, 1, memory_order_relaxed);
    c->failed = true;
    uint64_t now = mono_ms();
    if (c->failures++ == 0 || now >= c->failure_logged_ms + FAILURE_LOG_MS) {
        c->failure_logged_ms = now;
        log_warn("commit_failed", "sequence=%s error=%s cause=%s failures=%llu", name,
                 firn_error_name(error), d->text, (unsigned long long)c->failures);
    }
}

static void note_success(struct coordinator *c)
{
    if (c->failures)
        log_info("commit_recovered", "failures=%llu", (unsigned long long)c->failures);
    c->failures = 0;
}

/* Sort one job into its group. False: it cannot be served in this commit. */
static bool add_to_group(struct coordinator *c, struct group *group, size_t *n, struct job *j)
{
    size_t i = 0;
    int r = 0;
    while (i < *n && strcmp(group[i].seq->name, j->name) != 0)
        i++;
    struct known *k = i < *n ? group[i].seq : NULL;
    if (!k)
        r = find_known(c, j, group, *n, &k);
    if (r == 0 && k->dated && j->plain) {
        r = FIRN_EINVAL;
        snprintf(j->diag.text, sizeof j->diag.text,
                 "%s is dated, its bare numbers come again: FIRN.NEXT dated SEQ %s", j->name,
                 j->name);
    }
    if (r == 0 && j->keyed) {
        r = admit_keyed(c, j, k);
        if (r == 0)
            return false;
        r = r == FIRN_ENOENT ? 0 : r;
    }
    if (r) {
        if (r != FIRN_EAGAIN && may_heal(r))
            note_failure(c, j->name, r, &j->diag);
        j->next = NULL;
        put_back(c, j, r, &j->diag);
        return false;
    }
    struct group *g = &group[i];
    if (i == *n) {
        *g = (struct group){ .seq = k };
        g->tail = &g->first;
        g->keyed_tail = &g->keyed;
        (*n)++;
    }
    struct job ***tail = j->keyed && !k->ahead ? &g->keyed_tail : &g->tail;
    c->keyed_n += j->keyed != NULL;
    **tail = j;
    *tail = &j->next;
    j->next = NULL;
    return true;
}

/* What became of a group's requests with keys. */
static void share_keyed(struct coordinator *c, struct group *g, const struct firn_diag *d)
{
    for (struct job *j = g->keyed, *next; j; j = next) {
        struct keyed *k = j->keyed;
        next = j->next;
        j->next = NULL;
        j->record = g->seq->record;
        if (k->result == 0) {
            note_success(c);
            if (!k->replayed)
                atomic_fetch_add_explicit(&c->stats.tickets, k->idem.count, memory_order_relaxed);
            if (g->seq->dated && !k->kept)
                keep_later(c, j);
            else
                finish_keyed(c, j);
        } else if (k->result == FIRN_EREUSED) {
            refuse_reused(j);
        } else {
            if (k->result == FIRN_EOVERFLOW)
                snprintf(j->diag.text, sizeof j->diag.text,
                         "sequence %s has fewer numbers left than that", j->name);
            else if (k->result != FIRN_EAGAIN)
                note_failure(c, g->seq->reg, k->result, d);
            put_back(c, j, k->result, k->result == FIRN_EOVERFLOW ? &j->diag : d);
        }
    }
}

/* The keys whose numbers or IDs are there get their registers; then, and only then, somebody hears. */
static void run_keep(struct coordinator *c)
{
    while (c->keep) {
        struct job *job[KEYED_KEEP_MAX];
        struct keyed *keep[KEYED_KEEP_MAX];
        struct firn_diag d = { 0, "" };
        size_t n = 0;
        for (; c->keep && n < KEYED_KEEP_MAX; n++) {
            job[n] = c->keep;
            c->keep = c->keep->next;
            keep[n] = job[n]->keyed;
            struct idem_record *i = &keep[n]->idem;
            if (i->at == 0) { /* else a list has it, or this is not the first try */
                i->at = (uint64_t)now_s(c);
                c->tickets.random(c->tickets.random_user, i->req.b, sizeof i->req.b);
            }
        }
        keyed_keep(c->store, keep, n, &d);
        atomic_fetch_add_explicit(&c->stats.commits, 1, memory_order_relaxed);
        for (size_t i = 0; i < n; i++) {
            int r = keep[i]->result;
            job[i]->next = NULL;
            if (r == 0) {
                note_success(c);
                finish_keyed(c, job[i]);
            } else if (r == FIRN_EREUSED) {
                refuse_reused(job[i]);
            } else {
                if (r != FIRN_EAGAIN)
                    note_failure(c, job[i]->name, r, &d);
                put_back(c, job[i], r, &d);
            }
        }
    }
    c->keep_tail = &c->keep;
}

/* A step of forgetting old keys. Returns when the next one is due. */
static uint64_t sweep(struct coordinator *c)
{
    uint64_t every_s = c->opts.retention_s / 24, now = (uint64_t)now_s(c);
    struct firn_diag d = { 0, "" };
    size_t removed = 0;
    bool more = false;
    every_s = every_s < SWEEP_S_MIN ? SWEEP_S_MIN : every_s > SWEEP_S_MAX ? SWEEP_S_MAX : every_s;
    uint64_t every_ms = every_s * 1000 / KEYED_PARTS;
    if (every_ms < SWEEP_MS_MIN)
        every_ms = SWEEP_MS_MIN;
    if (c->lease->clock.state == CLOCK_WAIT || now < c->opts.retention_s)
        return mono_ms() + 1000;
    int r = keyed_sweep(c->store, c->sweep_part, now - c->opts.retention_s, &removed, &more, &d);
    atomic_fetch_add_explicit(&c->stats.keys_removed, removed, memory_order_relaxed);
    if (r)
        return mono_ms() + 1000; /* the store has other worries */
    c->sweep_part = (c->sweep_part + !more) % KEYED_PARTS;
    return mono_ms() + (more ? SWEEP_MS_MIN : every_ms);
}

static void commit_groups(struct coordinator *c, struct group *group, size_t n)
{
    struct ticket_job job[TICKET_JOBS_MAX];
    struct keyed *keyed[KEYED_MAX];
    struct firn_diag d = { 0, "" };
    size_t open = 0, keyed_n = 0;
    for (size_t i = 0; i < n; i++)
        if (!group[i].seq->ahead || serve_from_hand(c, &group[i]))
            group[open++] = group[i];
    n = open;
    if (n == 0)
        return;
    for (size_t i = 0; i < n; i++) {
        job[i] = (struct ticket_job){ .name = group[i].seq->reg,
                                      .name_len = strlen(group[i].seq->reg) };
        for (struct job *j = group[i].first; j; j = j->next)
            job[i].want += j->want;
        job[i].keyed = keyed + keyed_n;
        for (struct job *j = group[i].keyed; j; j = j->next, job[i].keyed_n++)
            keyed[keyed_n++] = j->keyed;
        const struct job *front = group[i].first; /* NULL: only the block ahead is wanted */
        job[i].least = front && !front->partial ? front->want : 1;
        if (group[i].seq->ahead) {
            uint64_t block = ranges_want(&c->ranges, group[i].seq->name,
                                         strlen(group[i].seq->name));
            job[i].want += block < SEQ_TAKE_MAX - job[i].want ? block : SEQ_TAKE_MAX - job[i].want;
        }
    }
    if (keyed_n > 0)
        c->tickets.now_s = (uint64_t)now_s(c);
    ticket_commit(&c->tickets, job, n, &d);
    atomic_fetch_add_explicit(&c->stats.commits, 1, memory_order_relaxed);
    for (size_t i = 0; i < n; i++) {
        share_keyed(c, &group[i], &d);
        if (job[i].want == 0)
            continue;
        if (job[i].result == 0 || job[i].result == FIRN_EOVERFLOW) {
            note_success(c);
            share_out(c, &group[i], &job[i]);
            continue;
        }
        note_failure(c, group[i].seq->reg, job[i].result, &d);
        if (group[i].seq->ahead) {
            static const struct seq_range none;
            ranges_put(&c->ranges, group[i].seq->name, strlen(group[i].seq->name),
                       &group[i].seq->record, &none, false, mono_ms());
        }
        put_back(c, group[i].first, job[i].result, &d);
    }
}

/* One commit's worth of the list, from `j` on; returns where the next one begins. A job that only looks
 * or creates ends it, so that it sees what was asked for before. */
static struct job *gather(struct coordinator *c, struct job *j, struct group *group, size_t *n)
{
    uint64_t total = 0;
    c->keyed_n = 0;
    while (j && *n < TICKET_JOBS_MAX - 1 && c->keyed_n < KEYED_MAX) {
        struct job *next = j->next;
        if (j->taken || j->what == JOB_KEEP) {
            c->keyed_n++;
            if (j->what == JOB_KEEP && c->lease->clock.state == CLOCK_WAIT)
                finish(j, FIRN_ECLOCK);
            else
                keep_later(c, j);
            j = next;
            continue;
        }
        bool take = j->what == JOB_TAKE || j->what == JOB_FETCH;
        if (*n > 0 && (!take || total + j->want > SEQ_TAKE_MAX))
            break;
        if (!take) {
            run_other(c, j);
            hand_back(j);
        } else if (add_to_group(c, group, n, j)) {
            total += j->want;
        }
        j = next;
    }
    return j;
}

/* What could not be served goes back in front of the inbox. */
static void keep_for_later(struct coordinator *c)
{
    if (!c->again)
        return;
    pthread_mutex_lock(&c->mutex);
    *c->again_tail = c->first;
    if (!c->first)
        c->tail = c->again_tail;
    c->first = c->again;
    pthread_mutex_unlock(&c->mutex);
    c->again = NULL;
    c->again_tail = &c->again;
}

/* Everything that is in the inbox now. After a failure the rest waits, too: nobody overtakes. */
static void run_jobs(struct coordinator *c, struct job *j)
{
    static struct group group[TICKET_JOBS_MAX];
    c->failed = false;
    while (j && !c->failed) {
        size_t n = 0;
        j = gather(c, j, group, &n);
        if (n > 0)
            commit_groups(c, group, n);
        run_keep(c);
    }
    *c->again_tail = j;
    while (*c->again_tail)
        c->again_tail = &(*c->again_tail)->next;
    keep_for_later(c);
}

void coordinator_submit(struct coordinator *c, struct job *first, struct job *last)
{
    uint64_t deadline = mono_ms() + (c->opts.wait_ms ? c->opts.wait_ms : WAIT_MS);
    for (struct job *j = first; j; j = j->next) {
        j->deadline_ms = deadline;
        j->taken = false;
        j->spec.note = j->note;
    }
    pthread_mutex_lock(&c->mutex);
    *c->tail = first;
    c->tail = &last->next;
    bool wake = c->sleeping;
    pthread_mutex_unlock(&c->mutex);
    if (wake)
        pthread_cond_signal(&c->wake);
}

/* --- the lease --- */

static void log_changes(struct coordinator *c)
{
    const struct lease_view *v = &c->lease->view;
    if (v->state != c->state_logged) {
        log_info("slot_state", "state=%s slot=%u from=%llu until=%llu", slot_state_name(v->state),
                 v->grant.slot, (unsigned long long)v->grant.from,
                 (unsigned long long)v->grant.until);
        c->state_logged = v->state;
    }
    if (v->grant.gen != c->grant_logged.gen || v->grant.until != c->grant_logged.until) {
        /* Every confirmed grant and extension: with these lines any ID can be traced to its leave. */
        log_debug("slot_granted", "slot=%u from=%llu until=%llu gen=%llu", v->grant.slot,
                  (unsigned long long)v->grant.from, (unsigned long long)v->grant.until,
                  (unsigned long long)v->grant.gen);
        c->grant_logged = v->grant;
    }
    if (v->clock != c->clock_logged) {
        static const char *const names[] = { "wait", "ok", "held", "suspect" };
        if (v->clock == CLOCK_OK)
            log_info("clock_state", "state=ok");
        else
            log_warn("clock_state", "state=%s behind_ms=%lld", names[v->clock],
                     (long long)v->behind_ns / 1000000);
        c->clock_logged = v->clock;
    }
    if (v->fences != c->fences_logged) {
        log_warn(
            "store_fenced", "cause=%s",
            "the store is a copy, was restored, or forgot: IDs go on above all it may have granted; "
            "check its sequences, they may have gone back");
        c->fences_logged = v->fences;
    }
    if (v->error != c->error_logged) {
        if (v->error)
            log_warn("lease_trouble", "error=%s cause=%s", firn_error_name(v->error), v->diag.text);
        else
            log_info("lease_recovered", "slot=%u", v->grant.slot);
        c->error_logged = v->error;
    }
}

static uint64_t highest_last(const struct coordinator *c)
{
    uint64_t last = 0;
    for (size_t i = 0; i < c->opts.last_n; i++) {
        uint64_t l = atomic_load_explicit(c->opts.last[i], memory_order_relaxed);
        last = l > last ? l : last;
    }
    return last;
}

static uint64_t step(struct coordinator *c)
{
    uint64_t next = lease_step(c->lease, highest_last(c));
    atomic_fetch_add_explicit(&c->stats.steps, 1, memory_order_relaxed);
    log_changes(c); /* first, so that no ID is older than the line about its grant */
    board_publish(c->board, &c->lease->view);
    return next;
}

/* Sleep until a job comes, `until_ms`, or the end. False at the end. */
static bool wait_for_work(struct coordinator *c, uint64_t until_ms, struct job **out)
{
    struct timespec t = { (time_t)(until_ms / 1000), (long)(until_ms % 1000) * 1000000 };
    pthread_mutex_lock(&c->mutex);
    c->sleeping = true;
    int timed_out = 0;
    while (!c->first && !c->stop && !timed_out)
        timed_out = pthread_cond_timedwait(&c->wake, &c->mutex, &t);
    c->sleeping = false;
    *out = c->first;
    c->first = NULL;
    c->tail = &c->first;
    bool go_on = !c->stop;
    pthread_mutex_unlock(&c->mutex);
    return go_on;
}

/* --- the store --- */

static bool is_shared(const struct coordinator *c)
{
    return c->opts.open_store || strstr(c->opts.store, "://") != NULL;
}

/* The store and what stands on it. */
static int open_store(struct coordinator *c, struct firn_diag *d)
{
    const struct coordinator_opts *o = &c->opts;
    int r = o->open_store ? o->open_store(o->open_user, o->store_timeout_ms, &c->store, d)
                          : firn_store_open(o->store, o->store_timeout_ms, &c->store, d);
    if (r == 0 && strncmp(c->opts.store, "sqlite:", 7) == 0)
        r = slot_lock_open(c->opts.store + 7, &c->lock_fd, d);
    if (r == 0)
        r = tickets_init(&c->tickets, c->store, NULL, NULL);
    if (r == 0) {
        lease_world_real(&c->world, &c->lock_fd);
        r = lease_open(c->lease, c->store, &c->opts.lease, &c->world, d);
    }
    return r;
}

/* A shared store that nobody answers for: say so, and let nobody wait in vain. */
static bool reach_store(struct coordinator *c, struct job *jobs)
{
    struct lease_view *v = &c->lease->view;
    if (c->store)
        return true;
    v->error = open_store(c, &v->diag);
    if (v->error == 0)
        return true;
    if (c->tickets.store) /* the store was there, but something that stands on it failed */
        tickets_done(&c->tickets);
    c->tickets.store = NULL;
    firn_store_close(c->store);
    c->store = NULL;
    log_changes(c);
    board_publish(c->board, v);
    for (struct job *j = jobs, *next; j; j = next) {
        next = j->next;
        j->diag = v->diag;
        finish(j, FIRN_EIO);
    }
    return false;
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void *run(void *arg)
{
    struct coordinator *c = arg;
    struct job *jobs = NULL;
    while (!reach_store(c, jobs))
        if (!wait_for_work(c, mono_ms() + REOPEN_MS, &jobs))
            goto stop;
    if (jobs)
        run_jobs(c, jobs);
    uint64_t due_ms = step(c), sweep_ms = mono_ms(), nodes_ms = sweep_ms;
    while (wait_for_work(c, earliest(due_ms, earliest(sweep_ms, nodes_ms)), &jobs)) {
        if (jobs)
            run_jobs(c, jobs);
        if (mono_ms() >= due_ms)
            due_ms = step(c);
        if (mono_ms() >= sweep_ms)
            sweep_ms = sweep(c);
        if (mono_ms() >= nodes_ms)
            nodes_ms = nodes_step(c->nodes, c->store, c->lease);
        if (jobs && c->failed) /* what failed was put back: give the store a moment */
            usleep(RETRY_MS * 1000);
    }
stop:
    while (jobs) { /* the loops are gone: nobody waits for these */
        struct job *next = jobs->next;
        finish(jobs, FIRN_ECLOSED);
        jobs = next;
    }
    return NULL;
}

/* --- life --- */

static void free_all(struct coordinator *c)
{
    if (c->tickets.store)
        tickets_done(&c->tickets);
    ranges_done(&c->ranges);
    firn_store_close(c->store);
    if (c->lock_fd >= 0)
        close(c->lock_fd);
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->wake);
    nodes_free(c->nodes);
    free(c->lease);
    free(c);
}

int coordinator_start(const struct coordinator_opts *o, struct board *board,
                      struct coordinator **out, struct firn_diag *d)
{
    struct coordinator *c = calloc(1, sizeof *c);
    if (!c)
        return FIRN_ENOMEM;
    c->opts = *o;
    c->board = board;
    c->lock_fd = -1;
    ranges_init(&c->ranges);
    c->tail = &c->first;
    c->again_tail = &c->again;
    c->keep_tail = &c->keep;
    c->opts.retention_s = o->retention_s ? o->retention_s : DAY_S;
    c->state_logged = SLOT_START;
    c->clock_logged = CLOCK_OK;
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&c->mutex, NULL);
    c->lease = calloc(1, sizeof *c->lease);
    int r = nodes_new(o->lease.name, o->addresses, &c->nodes);
    if (r == 0)
        r = c->lease ? open_store(c, d) : FIRN_ENOMEM;
    if (r == FIRN_EIO && is_shared(c) && !c->store) {
        log_warn("store_unreachable", "cause=%s", d->text);
        r = 0; /* the thread tries on */
    }
    if (r == 0 && pthread_create(&c->thread, NULL, run, c) != 0)
        r = FIRN_ENOMEM;
    if (r) {
        free_all(c);
        return r;
    }
    *out = c;
    return 0;
}

const struct coordinator_stats *coordinator_stats(const struct coordinator *c)
{
    return &c->stats;
}

struct ranges *coordinator_ranges(struct coordinator *c)
{
    return &c->ranges;
}

void coordinator_stop(struct coordinator *c, uint64_t last)
{
    pthread_mutex_lock(&c->mutex);
    c->stop = true;
    pthread_mutex_unlock(&c->mutex);
    pthread_cond_signal(&c->wake);
    pthread_join(c->thread, NULL);
    nodes_leave(c->nodes);
    int r = c->store ? lease_release(c->lease, last, 2000) : FIRN_EIO;
    if (r)
        log_warn("release_failed", "error=%s", firn_error_name(r));
    else
        log_info("slot_released", "slot=%u last=%llu", c->lease->view.grant.slot,
                 (unsigned long long)last);
    free_all(c);
}
