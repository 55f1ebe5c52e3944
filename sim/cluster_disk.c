/*
 * The disk's twin in a cluster's world. Saves are written and synced in batches, as raft/disk.h
 * says: taken, written, synced, reported. A member may die at each of these steps. A process that
 * is killed leaves what it wrote; with the machine's power goes what was not synced: any number of
 * the last saves. In one world of four the disk is the log store as shipped (raft/log_store.c) on a
 * folder in memory (cluster_folder.c); the image of the disk is what it must then have.
 */
#include "cluster_in.h"
#include "member_in.h"

static char *copy_of(const char *p, size_t len)
{
    char *c = malloc(len + 1);
    if (!c)
        abort();
    if (len > 0)
        memcpy(c, p, len);
    return c;
}

uint64_t k_disk_last(const struct kmember *m)
{
    return m->disk.first + m->disk.entries - 1;
}

bool k_disk_has(const struct kmember *m, uint64_t index, uint64_t term)
{
    const struct image_of_disk *d = &m->disk;
    if (index >= d->first && index < d->first + d->entries)
        return d->entry[index - d->first].term == term;
    return index <= d->snapshot.index;
}

static void drop_from(struct image_of_disk *d, uint64_t index)
{
    while (d->entries > 0 && d->first + d->entries > index)
        free(d->entry[--d->entries].bytes);
}

static void drop_before(struct image_of_disk *d, uint64_t index)
{
    size_t n = index <= d->first ? 0 : (size_t)(index - d->first);
    if (n > d->entries)
        n = d->entries;
    for (size_t i = 0; i < n; i++)
        free(d->entry[i].bytes);
    if (n > 0)
        memmove(d->entry, d->entry + n, (d->entries - n) * sizeof *d->entry);
    d->entries -= n;
    d->first = index > d->first || d->entries == 0 ? index : d->first;
}

static void save_done(struct save *v)
{
    for (uint64_t i = 0; v->entry && i < v->s.entries; i++)
        free(v->entry[i].bytes);
    free(v->entry);
    if (v->snapshot)
        free((char *)v->snapshot->bytes);
    free(v->snapshot);
    log_save_free(v->real);
    *v = (struct save){ 0 };
}

static void forget_saves(struct kmember *m)
{
    for (size_t i = 0; i < m->queued; i++)
        save_done(&m->queue[i]);
    m->queued = m->batch = 0;
    m->stage = DISK_IDLE;
}

static void put_on_disk(struct kmember *m, const struct save *v)
{
    struct image_of_disk *d = &m->disk;
    d->term = v->s.term;
    d->vote = v->s.vote;
    if (v->snapshot) {
        free((char *)d->snapshot.bytes);
        d->snapshot = *v->snapshot;
        d->snapshot.bytes = copy_of(v->snapshot->bytes, v->snapshot->len);
        drop_before(d, v->s.log_first);
    }
    if (v->s.truncate)
        drop_from(d, v->s.truncate);
    for (uint64_t i = 0; i < v->s.entries; i++) {
        const struct stored *e = &v->entry[i];
        if (e->index != d->first + d->entries)
            violate(k.w, "disk", "member %" PRIu64 " saves entry %" PRIu64 " behind %" PRIu64,
                    m->id, e->index, d->first + d->entries - 1);
        if (d->entries == d->room) {
            d->room = d->room ? d->room * 2 : 64;
            d->entry = realloc(d->entry, d->room * sizeof *d->entry);
            if (!d->entry)
                abort();
        }
        d->entry[d->entries] = *e;
        d->entry[d->entries++].bytes = copy_of(e->bytes, e->len);
    }
}

void k_disk_take(struct kmember *m, const struct core_save *s)
{
    if (m->queued == QUEUE_MAX) {
        violate(k.w, "disk", "member %" PRIu64 " has %d saves under way", m->id, QUEUE_MAX);
        return;
    }
    struct save *v = &m->queue[m->queued++];
    *v = (struct save){ .s = *s };
    if (s->snapshot) {
        v->snapshot = malloc(sizeof *v->snapshot);
        if (!v->snapshot)
            abort();
        *v->snapshot = *s->snapshot;
        v->snapshot->bytes = copy_of(s->snapshot->bytes, s->snapshot->len);
    }
    v->entry = s->entries ? calloc(s->entries, sizeof *v->entry) : NULL;
    for (uint64_t i = 0; i < s->entries; i++) {
        struct core_entry e;
        if (!core_entry_at(m->core, s->first + i, &e)) {
            violate(k.w, "disk", "entry %" PRIu64 " is to be saved, and is not there",
                    s->first + i);
            v->s.entries = i;
            break;
        }
        v->entry[i] = (struct stored){ e.index, e.term, e.type, copy_of(e.bytes, e.len), e.len };
    }
    if (m->files && !(v->real = log_save_copy(m->core, s)))
        abort();
    if (m->stage == DISK_IDLE) {
        m->stage = DISK_WRITING;
        m->batch = 0;
        k_at(k_now() + 50 + (int64_t)rand_below(&k.rng, 300), K_DISK, k_machine(m), m->life, NULL);
    }
}

static int64_t sync_takes(struct kmember *m)
{
    int64_t us = 50 + (int64_t)rand_below(&k.rng, (uint64_t)k.c.sync_us);
    return us + (m->slow_until > k_now() ? m->slow_us : 0);
}

/* Has the log store write the batch: all of it, or up to where the power goes. */
static bool write_batch(struct kmember *m, size_t batch)
{
    struct firn_diag d;
    for (size_t i = 0; i < batch; i++)
        if (m->queue[i].real) {
            log_store_take(m->store, m->queue[i].real);
            m->queue[i].real = NULL;
        }
    return log_store_write(m->store, &d) == 0;
}

/* 0: nothing more than before. */
static void saved(struct kmember *m, uint64_t number)
{
    if (m->whole) {
        whole_saved(m, number);
        return;
    }
    if (number)
        core_saved(m->core, number, k_local_ms(m));
    k_after(m);
}

void k_disk_step(struct kmember *m)
{
    unsigned machine = k_machine(m);
    if (m->stage == DISK_WRITING && m->full_until > k_now() && !m->files) {
        sometimes.rc_disk_full++;
        m->full = true;
        k_at(k_now() + 20000, K_DISK, machine, m->life, NULL);
        return;
    }
    if (!k_io(m))
        return;
    switch (m->stage) {
    case DISK_IDLE:
        break;
    case DISK_WRITING:
        m->batch = m->queued;
        m->stage = DISK_SYNCING;
        k_at(k_now() + sync_takes(m), K_DISK, machine, m->life, NULL);
        if (SIM_MUTANT(rc_sync_skipped))
            saved(m, m->queue[m->batch - 1].s.number);
        break;
    case DISK_SYNCING:
        if (m->files && !write_batch(m, m->batch)) {
            sometimes.rc_disk_full += !m->dying;
            m->full = true;
            k_at(k_now() + 20000, K_DISK, machine, m->life, NULL);
            break;
        }
        m->full = false;
        for (size_t i = 0; i < m->batch; i++)
            put_on_disk(m, &m->queue[i]);
        m->stage = DISK_REPORTING;
        k_at(k_now() + 10 + (int64_t)rand_below(&k.rng, 200), K_DISK, machine, m->life, NULL);
        break;
    case DISK_REPORTING: {
        uint64_t number = m->queue[m->batch - 1].s.number;
        for (size_t i = 0; i < m->batch; i++)
            save_done(&m->queue[i]);
        m->queued -= m->batch;
        memmove(m->queue, m->queue + m->batch, m->queued * sizeof m->queue[0]);
        m->batch = 0;
        m->stage = m->queued > 0 ? DISK_WRITING : DISK_IDLE;
        if (m->queued > 0)
            k_at(k_now() + 50, K_DISK, machine, m->life, NULL);
        saved(m, SIM_MUTANT(rc_sync_skipped) ? 0 : number);
        break;
    }
    }
}

void k_disk_crash(struct kmember *m, bool power)
{
    size_t written = m->stage == DISK_SYNCING ? m->batch : 0, kept = written;
    if (m->files) {
        /* The calls of the batch that were made before it. */
        m->stops_in = 1 + (int64_t)rand_below(&k.rng, 8);
        if (written > 0 && m->store)
            (void)write_batch(m, m->batch);
        m->stops_in = 0;
        log_store_close(m->store);
        m->store = NULL;
        k_folder_crash(m, power);
        m->stage = DISK_IDLE; /* which of the saves are there is seen at the next start */
        return;
    }
    if (power && written > 0) {
        kept = (size_t)rand_below(&k.rng, written + 1);
        sometimes.rc_write_lost += kept < written;
    } else if (m->stage == DISK_WRITING && m->queued > 0) {
        kept = (size_t)rand_below(&k.rng, m->queued);
    }
    for (size_t i = 0; i < kept; i++)
        put_on_disk(m, &m->queue[i]);
    forget_saves(m);
}

static void state_of(const struct image_of_disk *d, struct core_saved_state *s,
                     struct disk_loaded *loaded)
{
    struct core_entry *e = d->entries ? calloc(d->entries, sizeof *e) : NULL;
    for (size_t i = 0; i < d->entries; i++)
        e[i] = (struct core_entry){ d->entry[i].index, d->entry[i].term, d->entry[i].type,
                                    d->entry[i].bytes, d->entry[i].len };
    *loaded = (struct disk_loaded){ .memory_ = e };
    *s = (struct core_saved_state){ .term = d->term,
                                    .vote = d->vote,
                                    .snapshot = d->snapshot.index ? &d->snapshot : NULL,
                                    .first = d->entries ? d->first : d->snapshot.index + 1,
                                    .entry = e,
                                    .entries = d->entries };
}

static bool same_state(const struct image_of_disk *d, const struct core_saved_state *s)
{
    uint64_t snapshot = s->snapshot ? s->snapshot->index : 0;
    bool same = d->term == s->term && d->vote == s->vote && d->snapshot.index == snapshot &&
                d->entries == s->entries && (s->entries == 0 || s->first == d->first);
    for (size_t i = 0; i < s->entries && same; i++)
        same = d->entry[i].term == s->entry[i].term && d->entry[i].len == s->entry[i].len &&
               memcmp(d->entry[i].bytes, s->entry[i].bytes, s->entry[i].len) == 0;
    return same;
}

/* What the log store has loaded must be what was reported as saved, and of the saves under way
 * some of the first ones. */
static void compare(struct kmember *m, const struct core_saved_state *s)
{
    size_t kept = 0;
    while (!same_state(&m->disk, s) && kept < m->queued)
        put_on_disk(m, &m->queue[kept++]);
    if (!same_state(&m->disk, s))
        violate(k.w, "disk", "member %" PRIu64 " has loaded another log than it had saved", m->id);
    sometimes.rc_write_lost += kept < m->queued;
    forget_saves(m);
}

bool k_disk_open(struct kmember *m, struct core_saved_state *s, struct disk_loaded *loaded)
{
    struct firn_diag d = { 0 };
    struct folder f = { &k_folder_calls, m };
    if (!m->files) {
        state_of(&m->disk, s, loaded);
        return true;
    }
    int r = log_store_open(&f, &m->store, loaded, &d);
    if (r == 0) {
        *s = loaded->state;
        compare(m, s);
        return true;
    }
    m->store = NULL;
    if (r == FIRN_EFORMAT)
        violate(k.w, "disk", "member %" PRIu64 ": %s", m->id, d.text);
    k_folder_crash(m, m->dying);
    return false;
}

void k_disk_loaded_done(struct kmember *m, struct disk_loaded *loaded)
{
    if (m->files)
        disk_loaded_done(loaded);
    else
        free(loaded->memory_);
}

void k_disk_clear(struct kmember *m)
{
    k_disk_crash(m, false);
    forget_saves(m);
    k_folder_clear(m);
    drop_from(&m->disk, 0);
    free(m->disk.entry);
    free((char *)m->disk.snapshot.bytes);
    m->disk = (struct image_of_disk){ .first = 1 };
}
