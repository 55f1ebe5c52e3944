/*
 * The group commit: every job that waits for numbers when a commit begins goes into that commit, in
 * the order of arrival. When the store fails, the jobs stay and are tried again until their
 * deadline: a full disk then costs time, not numbers, because a commit whose answer was lost is
 * found by its nonce.
 */
#include "firn/dated.h"
#include "server/coordinator_in.h"
#include "daemon/log.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    FAILURE_LOG_MS = 10000,
    KEYED_MAX = 256, /* requests with a key in one commit; a record lists fewer */
    SWEEP_S_MIN = 1, /* all keys are looked at once in a 24th of the retention, within these */
    SWEEP_S_MAX = 3600,
    SWEEP_MS_MIN = 10, /* between two steps of that */
    DAY_S = 86400,
};

/* One sequence of a commit and the jobs that wait on it. */
struct group {
    struct known *seq;
    struct job *first, **tail;
    struct job *keyed, **keyed_tail; /* those that the record lists with their keys */
};

static int64_t now_s(const struct coordinator *c)
{
    return clock_f_at(&c->lease->clock, (int64_t)mono_ns()) / 1000000000;
}

/* The register of the current period, created when its first number is asked for. A period never
 * goes back while the process runs; after a restart with a clock set back it goes on in the older
 * one. */
static int enter_period(struct coordinator *c, struct known *k, struct firn_diag *d)
{
    uint32_t period;
    if (c->lease->clock.state == CLOCK_WAIT)
        return FIRN_ECLOCK;
    int r = firn_dated_period(k->reset, now_s(c), &period);
    if (r || period <= k->period)
        return r;
    struct seq_record now;
    if (k->period && (r = ticket_describe(&c->tickets, k->name, strlen(k->name), &now, d)) != 0)
        return r;
    if (k->period && seq_deleted(&now)) {
        snprintf(d->text, sizeof d->text, "the sequence was deleted");
        return FIRN_ENOENT;
    }
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
                             .note = "",
                             .resume = true };
    r = ticket_gate_create(c, d);
    if (r == 0)
        r = ticket_create(&c->tickets, name, (size_t)n, &spec, NULL, d);
    if (r && r != FIRN_ECONFLICT)
        return r;
    firn_assert(period > k->period, "period=%u after %u", period, k->period);
    memcpy(k->reg, name, (size_t)n + 1);
    k->period = period;
    return 0;
}

/* FIRN_EAGAIN: a sequence of this commit has the same place in the table; use the next commit. */
static int find_known(struct coordinator *c, struct job *j, const struct group *group, size_t n,
                      struct known **out)
{
    firn_assert(j->name_len <= RECORD_NAME_MAX && strlen(j->name) == j->name_len, "len=%zu",
                j->name_len);
    struct known *k = &c->known[record_name_hash(j->name, j->name_len) % KNOWN_MAX];
    if (strcmp(k->name, j->name) != 0) {
        for (size_t i = 0; i < n; i++)
            if (group[i].seq == k)
                return FIRN_EAGAIN;
        struct known fresh = { .dated = false };
        int r = coordinator_describe(c, j, &fresh.record);
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

static const struct firn_diag others_were_faster = {
    .text =
        "other servers keep winning the writes of this sequence: send its requests to one server"
};

/* Worth another try: the store failed, not the request. */
static bool may_heal(int error)
{
    return error == FIRN_EUNKNOWN || error == FIRN_EIO || error == FIRN_ECONFLICT ||
           error == FIRN_EAGAIN || error == FIRN_ENOMEM;
}

static void note_starved(struct coordinator *c, const char *name)
{
    uint64_t now = mono_ms();
    if (now < c->starved_logged_ms + FAILURE_LOG_MS)
        return;
    c->starved_logged_ms = now;
    log_warn("others_were_faster", "sequence=%s cause=%s", name, others_were_faster.text);
}

/* The store has failed for as long as a job waits: new jobs need not wait at all. */
static bool hopeless(const struct coordinator *c, int error, uint64_t now)
{
    return error != FIRN_EAGAIN && error != FIRN_ECONFLICT && c->failures > 0 &&
           now - c->failing_since_ms >= coordinator_wait_ms(c);
}

/* Jobs that could not be served now: they are tried again before later ones, in their order, or get
 * the error if their deadline has passed. */
static void put_back(struct coordinator *c, struct job *j, int error, const struct firn_diag *d)
{
    uint64_t now = mono_ms();
    if (error == FIRN_ENOENT && j)
        coordinator_forget(c, j->name, j->name_len);
    firn_assert(error < 0 && jobs_linked(&c->again, c->again_tail), "error=%d", error);
    while (j) {
        struct job *next = j->next;
        bool waits = j->what == JOB_KEEP || (j->what == JOB_TAKE && !hopeless(c, error, now));
        if (may_heal(error) && now < j->deadline_ms && waits) {
            j->next = NULL;
            *c->again_tail = j;
            c->again_tail = &j->next;
        } else {
            if (error == FIRN_ECONFLICT)
                note_starved(c, j->name);
            j->diag = *d;
            job_return(j, error);
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

/* The job gets its key's numbers. */
static void finish_keyed(struct coordinator *c, struct job *j)
{
    const struct keyed *k = j->keyed;
    firn_assert(k && k->result == 0 && k->idem.args == k->ask.args);
    if (j->what == JOB_TAKE) {
        firn_assert(k->idem.count > 0 && k->idem.count <= j->want, "count=%" PRIu64 " of %" PRIu64,
                    k->idem.count, j->want);
        j->range = (struct seq_range){ k->idem.first, k->idem.step, k->idem.count };
        j->period = (uint32_t)k->idem.period;
    }
    count_key(c, k);
    job_return(j, 0);
}

static void keep_later(struct coordinator *c, struct job *j)
{
    firn_assert(j->keyed && jobs_linked(&c->keep, c->keep_tail));
    j->taken = true;
    j->next = NULL;
    *c->keep_tail = j;
    c->keep_tail = &j->next;
}

/* Numbers from a block in hand: with a key they are kept before the client is answered. */
static void deliver(struct coordinator *c, struct job *j)
{
    if (!j->keyed || j->result) {
        job_hand_back(j);
        return;
    }
    struct idem_record *i = &j->keyed->idem;
    firn_assert(j->what == JOB_TAKE && j->range.count > 0 && j->range.step > 0);
    *i = (struct idem_record){ .args = j->keyed->ask.args,
                               .first = j->range.first,
                               .step = j->range.step,
                               .count = j->range.count };
    keep_later(c, j);
}

static void refuse_reused(struct job *j)
{
    job_return(j, keyed_reused(&j->diag));
}

/* Create the registers of keys of earlier periods that a retry may still use, so that no number of
 * the new period is taken for them. */
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
    if (keyed_check(&j->keyed->idem, j->keyed->ask.args, j->want, &j->diag) != 0)
        refuse_reused(j);
    else
        finish_keyed(c, j);
    return 0;
}

/* Give each job its share of the grant, in order. The rest is settled before any job is answered,
 * so that a client that asks again gets higher numbers: a range sequence keeps the rest in hand, a
 * gapless one for the next commit. Jobs that got nothing although there is more go back. */
static void share_out(struct coordinator *c, struct group *g, const struct ticket_job *t)
{
    struct seq_range range = t->range;
    struct job *served = NULL, **tail = &served, *j = g->first;
    uint64_t given = 0;
    bool taken = false;
    for (; j; j = j->next) {
        uint64_t n = j->want <= range.count ? j->want : j->partial ? range.count : 0;
        if (n == 0 && j->what == JOB_TAKE && t->more)
            break; /* and all behind it, or they would overtake it */
        j->range = (struct seq_range){ range.first, range.step, n };
        j->record = g->seq->record;
        j->period = g->seq->period;
        j->more = t->more;
        firn_assert(n <= range.count && n <= j->want, "n=%" PRIu64 " left=%" PRIu64, n,
                    range.count);
        range.first += n * range.step;
        range.count -= n;
        given += n;
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
    firn_assert(given + range.count == t->range.count,
                "given=%" PRIu64 " left=%" PRIu64 " granted=%" PRIu64, given, range.count,
                t->range.count);
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

/* A block may have arrived since these jobs were sent: jobs that it serves need no commit, and a
 * block is not fetched twice. In order: behind a job that waits, later ones wait. True: a commit is
 * still needed. */
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
            firn_assert(j->range.count == j->want, "count=%" PRIu64 " want=%" PRIu64,
                        j->range.count, j->want);
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
        job_return(j, 0);
    }
    return false;
}

/* While a disk is full there are many tries per second: the log has the first, and then one every
 * FAILURE_LOG_MS. */
static void note_failure(struct coordinator *c, const char *name, int error,
                         const struct firn_diag *d)
{
    atomic_fetch_add_explicit(&c->stats.commit_errors, 1, memory_order_relaxed);
    c->failed = true;
    ticket_gate_failed(c, d);
    uint64_t now = mono_ms();
    if (c->failures == 0)
        c->failing_since_ms = now;
    if (c->failures++ == 0 || now >= c->failure_logged_ms + FAILURE_LOG_MS) {
        c->failure_logged_ms = now;
        log_warn("commit_failed", "sequence=%s error=%s cause=%s failures=%llu", name,
                 firn_error_name(error), d->text, (unsigned long long)c->failures);
    }
}

void group_commit_recovered(struct coordinator *c)
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
    firn_assert(i <= *n && i < TICKET_JOBS_MAX, "group=%zu of %zu", i, *n);
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

/* Answer a group's jobs with keys. True: another server's write came first. */
static bool share_keyed(struct coordinator *c, struct group *g, const struct firn_diag *d)
{
    bool lost = false;
    for (struct job *j = g->keyed, *next; j; j = next) {
        struct keyed *k = j->keyed;
        next = j->next;
        j->next = NULL;
        j->record = g->seq->record;
        if (k->result == 0) {
            group_commit_recovered(c);
            firn_assert(k->idem.count > 0 && k->idem.count <= k->ask.want,
                        "count=%" PRIu64 " want=%" PRIu64, k->idem.count, k->ask.want);
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
            else if (k->result == FIRN_ECONFLICT)
                lost = true;
            else if (k->result != FIRN_EAGAIN)
                note_failure(c, g->seq->reg, k->result, d);
            put_back(c, j, k->result,
                     k->result == FIRN_EOVERFLOW   ? &j->diag
                     : k->result == FIRN_ECONFLICT ? &others_were_faster
                                                   : d);
        }
    }
    return lost;
}

/* And the jobs without. */
static bool share_plain(struct coordinator *c, struct group *g, const struct ticket_job *t,
                        const struct firn_diag *d)
{
    static const struct seq_range none;
    bool lost = t->result == FIRN_ECONFLICT;
    if (t->result == 0 || t->result == FIRN_EOVERFLOW) {
        group_commit_recovered(c);
        share_out(c, g, t);
        return false;
    }
    if (!lost)
        note_failure(c, g->seq->reg, t->result, d);
    if (g->seq->ahead)
        ranges_put(&c->ranges, g->seq->name, strlen(g->seq->name), &g->seq->record, &none, false,
                   mono_ms());
    for (struct job *j = g->first; j; j = j->next)
        j->tried = true;
    put_back(c, g->first, t->result, lost ? &others_were_faster : d);
    return lost;
}

/* Create the registers of keys whose numbers or IDs are known; only then are the jobs answered. */
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
        firn_assert(n > 0 && n <= KEYED_KEEP_MAX, "n=%zu", n);
        keyed_keep(c->store, keep, n, &d);
        atomic_fetch_add_explicit(&c->stats.commits, 1, memory_order_relaxed);
        for (size_t i = 0; i < n; i++) {
            int r = keep[i]->result;
            job[i]->next = NULL;
            if (r == 0) {
                group_commit_recovered(c);
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

/* Remove some of the keys that are older than the retention. */
uint64_t group_commit_sweep(struct coordinator *c)
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
        return mono_ms() + 1000; /* the store fails: later */
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
                                      .name_len = strlen(group[i].seq->reg),
                                      .once = !group[i].seq->ahead };
        bool waited = true;
        for (struct job *j = group[i].first; j; j = j->next) {
            waited &= j->tried;
            job[i].waited += waited ? j->want : 0;
            job[i].want += j->want;
        }
        job[i].keyed = keyed + keyed_n;
        for (struct job *j = group[i].keyed; j; j = j->next, job[i].keyed_n++)
            keyed[keyed_n++] = j->keyed;
        firn_assert(keyed_n <= KEYED_MAX, "keyed=%zu", keyed_n);
        const struct job *front = group[i].first; /* NULL: only the block ahead is wanted */
        job[i].least = front && !front->partial ? front->want : 1;
        if (group[i].seq->ahead) {
            uint64_t block = ranges_want(&c->ranges, group[i].seq->name,
                                         strlen(group[i].seq->name));
            job[i].want += block < SEQ_TAKE_MAX - job[i].want ? block : SEQ_TAKE_MAX - job[i].want;
            job[i].waited = job[i].want; /* blocks come in any order */
        }
        firn_assert(job[i].waited <= job[i].want && (job[i].want > 0 || job[i].keyed_n > 0),
                    "waited=%" PRIu64 " want=%" PRIu64, job[i].waited, job[i].want);
    }
    firn_assert(n <= TICKET_JOBS_MAX && keyed_n <= c->keyed_n, "n=%zu keyed=%zu of %zu", n, keyed_n,
                c->keyed_n);
    if (keyed_n > 0)
        c->tickets.now_s = (uint64_t)now_s(c);
    ticket_commit(&c->tickets, job, n, &d);
    atomic_fetch_add_explicit(&c->stats.commits, 1, memory_order_relaxed);
    for (size_t i = 0; i < n; i++) {
        /* In this order they go back, too: no job waits behind more keys than a commit takes. */
        bool lost = job[i].want > 0 && share_plain(c, &group[i], &job[i], &d);
        lost |= share_keyed(c, &group[i], &d);
        c->lost |= lost;
        atomic_fetch_add_explicit(&c->stats.conflicts, lost, memory_order_relaxed);
    }
}

/* One commit's worth of the list, from `j` on; returns where the next one begins. A job that only
 * looks or creates ends it, so that it sees what was asked for before. */
static struct job *gather(struct coordinator *c, struct job *j, struct group *group, size_t *n)
{
    uint64_t total = 0;
    c->keyed_n = 0;
    while (j && *n < TICKET_JOBS_MAX - 1 && c->keyed_n < KEYED_MAX) {
        struct job *next = j->next;
        if (j->taken || j->what == JOB_KEEP) {
            c->keyed_n++;
            if (j->what == JOB_KEEP && c->lease->clock.state == CLOCK_WAIT)
                job_return(j, FIRN_ECLOCK);
            else
                keep_later(c, j);
            j = next;
            continue;
        }
        bool take = j->what == JOB_TAKE || j->what == JOB_FETCH;
        if (*n > 0 && (!take || total + j->want > SEQ_TAKE_MAX))
            break;
        if (!take) {
            if (coordinator_run_other(c, j))
                job_hand_back(j);
        } else if (add_to_group(c, group, n, j)) {
            total += j->want;
        }
        j = next;
    }
    return j;
}

/* Jobs that could not be served go back in front of the inbox. */
static void keep_for_later(struct coordinator *c)
{
    if (!c->again)
        return;
    pthread_mutex_lock(&c->mutex);
    firn_assert(jobs_linked(&c->first, c->tail));
    *c->again_tail = c->first;
    if (!c->first)
        c->tail = c->again_tail;
    c->first = c->again;
    pthread_mutex_unlock(&c->mutex);
    c->again = NULL;
    c->again_tail = &c->again;
}

/* All jobs that are in the inbox now. After a failure, or when another server's write came first,
 * the rest waits, too: no job overtakes another. */
void group_commit_run(struct coordinator *c, struct job *j)
{
    static struct group group[TICKET_JOBS_MAX];
    firn_assert(!c->again && !c->keep); /* the last run left nothing behind */
    c->failed = c->lost = false;
    while (j && !c->failed && !c->lost) {
        size_t n = 0;
        j = gather(c, j, group, &n);
        if (n > 0)
            commit_groups(c, group, n);
        run_keep(c);
    }
    firn_assert(!c->keep && jobs_linked(&c->again, c->again_tail));
    *c->again_tail = j;
    while (*c->again_tail)
        c->again_tail = &(*c->again_tail)->next;
    keep_for_later(c);
}
