/*
 * The coordinator's thread: wait for a job or for the lease's next step; take a turn (drive/serve.c
 * with group_commit.c): commit all jobs that take numbers, do the other jobs one by one, hand every
 * job back (outbox.c), step the lease.
 */
#include "server/coordinator_in.h"
#include "firn/dated.h"
#include "daemon/log.h"
#include "drive/hold.h"
#include "id/diag.h"
#include "store/note.h"
#include "store/slotlock.h"
#include "platform/mono.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GIVE_BACK_MS = 2000, /* at most so long at the end */
    REOPEN_MS = 1000,    /* between tries to reach a shared store at the start */
    DAY_S = 86400,
};

/* --- jobs that neither take nor keep --- */

static int list_one(void *user, const char *name, size_t len, const struct seq_record *r)
{
    struct job *j = user;
    firn_assert(j->list_n < j->want && len <= RECORD_NAME_MAX, "%zu of %" PRIu64 ", len=%zu",
                j->list_n, j->want, len);
    struct job_listed *e = &j->list[j->list_n++];
    memcpy(e->name, name, len);
    e->name[len] = '\0';
    e->record = *r;
    return 0;
}

static void run_list(struct coordinator *c, struct job *j)
{
    j->list_n = 0;
    j->list = calloc(j->want, sizeof *j->list);
    j->result = j->list
                    ? ticket_page(&c->tickets, j->cursor, j->want, list_one, j, &j->more, &j->diag)
                    : FIRN_ENOMEM;
    if (j->result == 0)
        return;
    free(j->list);
    j->list = NULL;
}

/* The limit of the client's token. FIRN_ECONFLICT: the sequence is there already. */
static int check_scope(struct coordinator *c, const char *name, size_t len,
                       const struct seq_spec *spec, struct seq_record *out, struct firn_diag *d)
{
    uint64_t n;
    int r = ticket_count(&c->tickets, spec->scope, strlen(spec->scope), spec->scope_max, &n, d);
    if (r != 0 || n < spec->scope_max)
        return r;
    if (ticket_describe(&c->tickets, name, len, out, d) == 0 && !seq_deleted(out))
        return FIRN_ECONFLICT;
    return firn__diag(d, FIRN_ENOSPC, 0,
                      "there are %" PRIu64 " sequences %s*, and max_sequences of the token allows "
                      "no more: delete some, or raise it",
                      n, spec->scope);
}

int coordinator_create(struct coordinator *c, const char *name, size_t len,
                       const struct seq_spec *spec, struct seq_record *out, struct firn_diag *d)
{
    bool period = memchr(name, RECORD_INNER, len) != NULL; /* no sequence of its own */
    uint64_t n = atomic_load_explicit(&c->stats.sequences, memory_order_relaxed);
    if (!period && c->opts.sequences_max && n >= c->opts.sequences_max) {
        *out = (struct seq_record){ .step = 0 };
        if (ticket_describe(&c->tickets, name, len, out, d) == 0 && !seq_deleted(out))
            return FIRN_ECONFLICT;
        return firn__diag(d, FIRN_ENOSPC, 0,
                          "there are %" PRIu64 " sequences, and limits.sequences allows no more: "
                          "delete some, or raise it",
                          n);
    }
    int r = serve_may_create(&c->serve, d);
    if (r == 0 && spec->scope_max)
        r = check_scope(c, name, len, spec, out, d);
    if (r == 0)
        r = ticket_create(&c->tickets, name, len, spec, out, d);
    if (r != 0 || period)
        return r;
    census_changed(&c->census, 1, &c->stats.sequences);
    log_info("sequence_created", "name=%.*s mode=%s", (int)len, name,
             out->mode == SEQ_RANGE ? "range" : "gapless");
    return 0;
}

/* The counter of the current period, which other servers may be counting in. They look at the
 * sequence again when it refuses them, and whenever they enter another period. */
static int delete_period(struct coordinator *c, struct job *j)
{
    uint32_t reset, digits, period;
    struct seq_record r;
    char name[sizeof j->name + 16];
    if (dated_note_parse(j->record.note, &reset, &digits) != 0)
        return 0;
    int64_t now_s = clock_f_at(&c->lease->clock, (int64_t)mono_ns()) / 1000000000;
    if (c->lease->clock.state == CLOCK_WAIT || firn_dated_period(reset, now_s, &period) != 0)
        return FIRN_ECLOCK;
    int n = snprintf(name, sizeof name, "%s%c%u", j->name, RECORD_INNER, period);
    int e = n > RECORD_NAME_MAX ? 0 : ticket_delete(&c->tickets, name, (size_t)n, &r, &j->diag);
    return e == FIRN_ENOENT ? 0 : e;
}

static int run_delete(struct coordinator *c, struct job *j)
{
    int r = serve_may_create(&c->serve, &j->diag); /* another store's are not ours to delete */
    if (r == 0)
        r = ticket_delete(&c->tickets, j->name, j->name_len, &j->record, &j->diag);
    bool gone = r == 0 || (r == FIRN_ENOENT && j->record.step > 0);
    int period = gone ? delete_period(c, j) : 0;
    if (gone)
        coordinator_forget(c, j->name, j->name_len);
    if (r == FIRN_ENOENT)
        snprintf(j->diag.text, sizeof j->diag.text, "there is no sequence %s", j->name);
    if (r != 0)
        return r;
    census_changed(&c->census, -1, &c->stats.sequences);
    log_info("sequence_deleted", "name=%s next=%" PRIu64, j->name, j->record.next);
    return period;
}

void coordinator_forget(struct coordinator *c, const char *name, size_t len)
{
    ranges_close(&c->ranges, name, len);
}

static void lease_done(struct lease_ask *a, int result)
{
    struct job *j = ((struct lease_job *)(void *)a)->job;
    j->diag = a->diag;
    job_return(j, result);
}

static void run_lease(struct coordinator *c, struct job *j)
{
    struct lease_job *l = j->user;
    l->job = j;
    l->ask.done = lease_done;
    l->ask.deadline_ms = j->deadline_ms;
    l->ask.diag.text[0] = '\0';
    leases_ask(c->leases, c->store, &l->ask);
}

bool coordinator_run_other(struct coordinator *c, struct job *j)
{
    if (j->what == JOB_LEASE) {
        run_lease(c, j);
        return false;
    }
    if (j->what == JOB_LIST)
        run_list(c, j);
    else if (j->what == JOB_NODES)
        j->result = nodes_list(c->nodes, c->store, &j->nodes, &j->list_n, &j->diag);
    else if (j->what == JOB_SLOTS)
        j->result = slots_list(&c->slot_list, c->store, c->lease, mono_ms(), &j->slots, &j->list_n,
                               &j->diag);
    else if (j->what == JOB_CREATE)
        j->result = coordinator_create(c, j->name, j->name_len, &j->spec, &j->record, &j->diag);
    else
        j->result = run_delete(c, j);
    return true;
}

/* --- the inbox --- */

void coordinator_submit(struct coordinator *c, struct job *first, struct job *last)
{
    uint64_t now_ns = mono_ns(), deadline = now_ns / 1000000 + c->opts.wait_ms;
    firn_assert(first && !last->next);
    for (struct job *j = first; j; j = j->next) {
        firn_assert(j->next || j == last); /* the list ends with `last` */
        firn_assert(j->name_len <= RECORD_NAME_MAX, "len=%zu", j->name_len);
        j->began_ns = now_ns;
        j->deadline_ms = deadline;
        j->taken = j->tried = false;
        j->spec.note = j->note;
        j->spec.scope = j->scope;
        j->spec.scope_max = j->scope_max;
    }
    pthread_mutex_lock(&c->mutex);
    firn_assert(job_list_ok(&c->inbox));
    *c->inbox.tail = first;
    c->inbox.tail = &last->next;
    bool wake = c->sleeping;
    pthread_mutex_unlock(&c->mutex);
    if (wake)
        pthread_cond_signal(&c->wake);
}

void coordinator_avoid(struct coordinator *c, const struct slot_avoid *slots, bool yield)
{
    pthread_mutex_lock(&c->mutex);
    c->avoid = *slots;
    c->yield |= yield;
    c->avoid_new = true;
    bool wake = c->sleeping && yield; /* else the next step is soon enough */
    pthread_mutex_unlock(&c->mutex);
    if (wake)
        pthread_cond_signal(&c->wake);
}

/* --- the lease --- */

/* True: the slot is to be given up now. */
static bool take_avoid(void *user)
{
    struct coordinator *c = user;
    pthread_mutex_lock(&c->mutex);
    bool yield = c->yield;
    if (c->avoid_new)
        lease_avoid(c->lease, &c->avoid, yield);
    c->avoid_new = c->yield = false;
    pthread_mutex_unlock(&c->mutex);
    return yield;
}

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
        /* Every confirmed grant and extension: so any ID can be traced to its grant. */
        log_debug("slot_granted", "slot=%u from=%llu until=%llu gen=%llu", v->grant.slot,
                  (unsigned long long)v->grant.from, (unsigned long long)v->grant.until,
                  (unsigned long long)v->grant.gen);
        c->grant_logged = v->grant;
    }
    if (v->clock != c->clock_logged) {
        if (v->clock == CLOCK_OK)
            log_info("clock_state", "state=ok");
        else
            log_warn("clock_state", "state=%s behind_ms=%lld", clock_state_name(v->clock),
                     (long long)v->behind_ns / 1000000);
        c->clock_logged = v->clock;
    }
    if (v->steps.back + v->steps.ahead != c->steps_logged) {
        log_warn("clock_step", "by_ms=%lld state=%s cause=%s",
                 (long long)v->steps.last_ns / 1000000, clock_state_name(v->clock),
                 "the system clock was set, by NTP or by hand; no ID repeats");
        c->steps_logged = v->steps.back + v->steps.ahead;
    }
    if (v->fences != c->fences_logged) {
        log_warn(
            "store_fenced", "cause=%s",
            "the store is a copy, was restored, or lost writes: IDs go on above all it may have granted; "
            "check its sequences, they may have gone back");
        c->fences_logged = v->fences;
    }
    if (v->held != c->held_logged) {
        if (v->held)
            log_warn("sequences_held", "cause=%s", HOLD_TEXT);
        else
            log_info("sequences_released", "by=operator");
        c->held_logged = v->held;
    }
    if (v->error != c->error_logged ||
        (v->error == FIRN_ENOSLOT && strcmp(v->diag.text, c->no_slot_logged) != 0)) {
        memcpy(c->no_slot_logged, v->diag.text, sizeof c->no_slot_logged);
        if (v->error)
            log_warn("lease_trouble", "error=%s cause=%s", firn_error_name(v->error), v->diag.text);
        else
            log_info("lease_recovered", "slot=%u", v->grant.slot);
        c->error_logged = v->error;
    }
}

static uint64_t highest_last(void *user)
{
    const struct coordinator *c = user;
    uint64_t last = 0;
    for (size_t i = 0; i < c->opts.last_n; i++) {
        uint64_t l = atomic_load_explicit(c->opts.last[i], memory_order_relaxed);
        last = l > last ? l : last;
    }
    return last;
}

static void publish(void *user)
{
    struct coordinator *c = user;
    const struct slot_grant *g = &c->lease->view.grant;
    firn_assert(g->gen == 0 || (g->from <= g->until && g->slot < SLOTS_MAX),
                "slot=%u from=%" PRIu64 " until=%" PRIu64, g->slot, g->from, g->until);
    atomic_fetch_add_explicit(&c->stats.steps, 1, memory_order_relaxed);
    log_changes(c); /* first, so that no ID is older than the line about its grant */
    board_publish(c->board, &c->lease->view);
}

/* Sleep until a job comes, `until_ms`, or the end; after a failure jobs wait until serve.retry_ms.
 * False
 * at the end. */
static bool wait_for_work(struct coordinator *c, uint64_t until_ms, struct job **out)
{
    bool paused = c->serve.retry_ms > mono_ms();
    uint64_t end_ms = paused && c->serve.retry_ms < until_ms ? c->serve.retry_ms : until_ms;
    struct timespec t = { (time_t)(end_ms / 1000), (long)(end_ms % 1000) * 1000000 };
    int timed_out = 0;
    pthread_mutex_lock(&c->mutex);
    c->sleeping = !paused;
    while ((paused || !c->inbox.first) && !c->stop && !c->yield && !timed_out)
        timed_out = pthread_cond_timedwait(&c->wake, &c->mutex, &t);
    c->sleeping = false;
    firn_assert(job_list_ok(&c->inbox));
    bool go_on = !c->stop;
    *out = go_on && c->serve.retry_ms > mono_ms() ? NULL : job_take_all(&c->inbox);
    pthread_mutex_unlock(&c->mutex);
    return go_on;
}

/* --- the store --- */

static bool is_shared(const struct coordinator *c)
{
    return firn_store_url_shared(c->opts.store);
}

/* The store, its tickets and its lease. */
static int open_store(struct coordinator *c, struct firn_diag *d)
{
    const struct coordinator_opts *o = &c->opts;
    int r = o->open_store ? o->open_store(o->open_user, o->store_timeout_ms, &c->store, d)
                          : firn_store_open(o->store, o->store_timeout_ms, &c->store, d);
    if (r == 0)
        r = store_counted_new(c->store, &c->store_counts, &c->store);
    if (r == 0 && strncmp(c->opts.store, "sqlite:", 7) == 0)
        r = slot_lock_open(c->opts.store + 7, o->lease.layout, o->lease.slots, &c->slots, d);
    if (r == 0 && strncmp(c->opts.store, "sqlite:", 7) == 0)
        c->note = note_open(c->opts.store + 7);
    c->opts.lease.noted = c->note ? atomic_load(&c->note->tick) : 0;
    if (r == 0)
        tickets_init_table(&c->tickets, c->store, c->ranges.table, NULL, NULL);
    if (r == 0) {
        lease_world_real(&c->world, &c->slots);
        c->opts.lease.since_ms = c->slots.since_ms;
        leases_since(c->leases, c->slots.since_ms);
        r = lease_open(c->lease, c->store, &c->opts.lease, &c->world, d);
    }
    return r;
}

/* Open a shared store that could not be reached. While it cannot, every job fails at once. */
static bool reach_store(struct coordinator *c, struct job *jobs)
{
    struct lease_view *v = &c->lease->view;
    if (c->store)
        return true;
    v->error = open_store(c, &v->diag);
    if (v->error == 0)
        return true;
    if (c->tickets.store) /* the store was opened, but a later step failed */
        tickets_done(&c->tickets);
    c->tickets.store = NULL;
    firn_store_close(c->store);
    c->store = NULL;
    log_changes(c);
    board_publish(c->board, v);
    for (struct job *j = jobs, *next; j; j = next) {
        next = j->next;
        j->diag = v->diag;
        job_return(j, FIRN_EIO);
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
    c->serve.last = highest_last;
    c->serve.hurry = take_avoid;
    c->serve.publish = publish;
    group_commit_turn(c, NULL); /* jobs find the gate as it is */
    uint64_t nodes_ms = mono_ms(), leases_ms = nodes_ms, census_ms = nodes_ms;
    uint64_t slots_ms = nodes_ms;
    uint64_t watch_ms = UINT64_MAX;
    do {
        group_commit_turn(c, jobs);
        if (jobs || mono_ms() >= leases_ms) /* a job may have left a request that waits */
            leases_ms = leases_step(c->leases, c->store);
        if (mono_ms() >= nodes_ms)
            nodes_ms = nodes_step(c->nodes, c->store, c->lease);
        if (mono_ms() >= census_ms)
            census_ms = census_step(&c->census, &c->tickets, mono_ms(), &c->stats.sequences);
        if (mono_ms() >= slots_ms)
            slots_ms = slots_step(&c->slot_list, c->store, c->lease, mono_ms());
        watch_ms = ticket_gate_watch(c, !jobs && c->serve.retry_ms <= mono_ms());
    } while (wait_for_work(
        c,
        earliest(earliest(c->serve.due_ms, leases_ms),
                 earliest(earliest(watch_ms, nodes_ms), earliest(census_ms, slots_ms))),
        &jobs));
stop:
    while (jobs) { /* the loops have ended: their requests get no answer */
        struct job *next = jobs->next;
        job_return(jobs, FIRN_ECLOSED);
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
    slot_lock_close(&c->slots);
    note_close(c->note);
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->wake);
    nodes_free(c->nodes);
    leases_free(c->leases, NULL);
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
    c->slots = (struct slot_lock)SLOT_LOCK_NONE;
    job_list_init(&c->inbox);
    c->opts.retention_s = o->retention_s ? o->retention_s : DAY_S;
    c->opts.wait_ms = o->wait_ms ? o->wait_ms : RETRY_WAIT_MS;
    c->state_logged = SLOT_START;
    c->clock_logged = CLOCK_OK;
    mono_cond_init(&c->wake);
    pthread_mutex_init(&c->mutex, NULL);
    c->lease = calloc(1, sizeof *c->lease);
    int r = ranges_init(&c->ranges);
    if (r == 0)
        group_commit_init(c);
    if (r == 0)
        r = nodes_new(o->lease.name, o->addresses, &c->nodes);
    struct leases_opts lent = { .max = o->leases_max, .params = o->lease };
    lent.params.pinned = false; /* clients take what is free */
    if (strncmp(o->store, "sqlite:", 7) == 0)
        lent.lock_path = o->store + 7;
    if (r == 0)
        r = leases_new(&lent, &c->leases);
    if (r == 0)
        r = c->lease ? open_store(c, d) : FIRN_ENOMEM;
    if (r == FIRN_EIO && is_shared(c) && !c->store) {
        log_warn("store_unreachable", "cause=%s", d->text);
        r = 0; /* the thread goes on trying */
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

_Atomic uint64_t *coordinator_note(struct coordinator *c)
{
    return c->note ? &c->note->tick : NULL;
}

const struct store_counts *coordinator_store_counts(const struct coordinator *c)
{
    return &c->store_counts;
}

uint32_t coordinator_slots_used(const struct coordinator *c, uint32_t *out_total)
{
    *out_total = atomic_load_explicit(&c->slot_list.total, memory_order_relaxed);
    return atomic_load_explicit(&c->slot_list.used, memory_order_relaxed);
}

const struct leases_stats *coordinator_leases(const struct coordinator *c)
{
    return leases_stats(c->leases);
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
    firn_assert(!c->inbox.first && !c->group.again.first); /* every job went back to its loop */
    uint64_t given = c->store ? serve_end(&c->serve, mono_ms() + GIVE_BACK_MS) : 0;
    if (given > 0)
        log_info("numbers_given_back", "count=%" PRIu64, given);
    nodes_leave(c->nodes);
    leases_free(c->leases, c->store);
    c->leases = NULL;
    int r = c->store ? lease_release(c->lease, last, 2000) : FIRN_EIO;
    if (r)
        log_warn("release_failed", "error=%s", firn_error_name(r));
    else
        log_info("slot_released", "slot=%u last=%llu", c->lease->view.grant.slot,
                 (unsigned long long)last);
    free_all(c);
}
