/*
 * The log and snapshot of a member in a folder. tests/unit/raft/disk.c stops it at every call.
 *
 * Usually what was taken becomes one batch behind the last one: one write over zeros that are on
 * the disk already, one sync. A snapshot is written beside, synced and renamed first; the batch
 * then has a record that names it. A fresh log file, with all that is kept, is begun at the start,
 * when the file has become large, and after every error: a file whose write or sync has failed is
 * never touched again, because the kernel may have dropped its pages as if they were written. A
 * fresh file has everything in it before it gets its name, so the files before it can go.
 *
 * For that all entries that the log keeps are in memory, as records, one block per save. That is as
 * much again as the core's own log: it is bounded by snapshots, and by what the core has under way.
 */
#include "raft/log_store.h"
#include "id/diag.h"
#include "raft/log_format.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NAME_BUF = 40,
    FILE_BYTES_MAX = 16 << 20, /* then a fresh file, unless a quarter of it would be kept */
    KEPT_MAX = FILE_BYTES_MAX / 4,
    BATCH_BYTES_KEEP = 1 << 20, /* a larger buffer is freed after its use */
};
static const size_t bytes_max = SIZE_MAX / 4; /* of a file in memory: what malloc() gives */

struct log_store {
    struct folder folder;
    uint64_t taken, saved; /* numbers of saves */

    /* What the log has to say, when all that was taken is written. */
    uint64_t term, vote;
    struct log_snapshot snapshot;
    uint64_t first, next;         /* index of the first entry, and behind the last one */
    struct log_save *head, *tail; /* the entries' blocks */
    size_t kept;                  /* their bytes */

    struct core_snapshot *unwritten; /* the snapshot, until its file is there */
    struct buf unwritten_head;

    uint64_t number;  /* of the next file */
    uint64_t current; /* number of the log; 0: none yet */
    int file;         /* it is open; -1: a fresh one has to be begun */
    struct log_file at;
    uint64_t size; /* zeros are synced up to here */
    struct buf batch;
    size_t batch_empty; /* its length without a record */
    char *zeros;        /* LOG_CHUNK of them */
};

/* ---- saves ---- */

static struct core_snapshot *copy_snapshot(const struct core_snapshot *s)
{
    struct core_snapshot *c = malloc(sizeof *c + s->len);
    if (c) {
        *c = *s;
        c->bytes = (char *)(c + 1);
        if (s->len > 0)
            memcpy(c + 1, s->bytes, s->len);
    }
    return c;
}

static struct log_save *new_block(size_t bytes)
{
    struct log_save *b = malloc(sizeof *b + bytes);
    if (b)
        *b = (struct log_save){ .end = bytes };
    return b;
}

struct log_save *log_save_copy(const struct core *c, const struct core_save *s)
{
    struct core_entry e;
    size_t bytes = 0;
    for (uint64_t i = 0; i < s->entries; i++) {
        bool there = core_entry_at(c, s->first + i, &e);
        firn_assert(there, "index=%" PRIu64, s->first + i);
        bytes += LOG_ENTRY_HEAD + e.len;
    }
    struct log_save *save = new_block(bytes);
    if (!save)
        return NULL;
    save->number = s->number;
    save->term = s->term;
    save->vote = s->vote;
    save->truncate = s->truncate;
    save->log_first = s->log_first;
    save->first = s->first;
    save->entries = s->entries;
    if (s->snapshot && !(save->snapshot = copy_snapshot(s->snapshot))) {
        free(save);
        return NULL;
    }
    struct buf b = { .p = save->record, .cap = bytes, .max = bytes };
    for (uint64_t i = 0; i < s->entries && core_entry_at(c, s->first + i, &e); i++)
        log_add_entry(&b, &e);
    firn_assert(b.len == bytes && !b.failed, "len=%zu bytes=%zu", b.len, bytes);
    return save;
}

void log_save_free(struct log_save *s)
{
    if (s)
        free(s->snapshot);
    free(s);
}

/* ---- the entries that are kept ---- */

static void keep(struct log_store *s, struct log_save *b)
{
    firn_assert(b->first == s->next, "first=%" PRIu64 " next=%" PRIu64, b->first, s->next);
    b->next = NULL;
    *(s->tail ? &s->tail->next : &s->head) = b;
    s->tail = b;
    s->kept += b->end - b->begin;
    s->next += b->entries;
}

/* The offset of the record with this index. */
static size_t offset_of(const struct log_save *b, uint64_t index)
{
    size_t at = b->begin;
    uint64_t found;
    while (at < b->end) {
        size_t size = log_entry_size(b->record + at, &found);
        if (found >= index)
            break;
        at += size;
    }
    return at;
}

static void forget_before(struct log_store *s, uint64_t first)
{
    if (first <= s->first)
        return;
    while (s->head && s->head->first + s->head->entries <= first) {
        struct log_save *b = s->head;
        s->head = b->next;
        s->kept -= b->end - b->begin;
        log_save_free(b);
    }
    if (s->head && s->head->first < first) {
        struct log_save *b = s->head;
        size_t at = offset_of(b, first);
        s->kept -= at - b->begin;
        b->begin = at;
        b->entries -= first - b->first;
        b->first = first;
    }
    if (!s->head)
        s->tail = NULL;
    s->first = first;
    s->next = s->next > first ? s->next : first;
}

static void forget_from(struct log_store *s, uint64_t from)
{
    if (from >= s->next)
        return;
    from = from > s->first ? from : s->first;
    struct log_save **link = &s->head;
    s->tail = NULL;
    while (*link && (*link)->first < from) {
        s->tail = *link;
        link = &s->tail->next;
    }
    for (struct log_save *b = *link, *next; b; b = next) {
        next = b->next;
        s->kept -= b->end - b->begin;
        log_save_free(b);
    }
    *link = NULL;
    if (s->tail && s->tail->first + s->tail->entries > from) {
        struct log_save *b = s->tail;
        size_t at = offset_of(b, from);
        s->kept -= b->end - at;
        b->end = at;
        b->entries = from - b->first;
    }
    s->next = from;
}

static void take_snapshot(struct log_store *s, struct core_snapshot *snapshot, uint64_t first)
{
    firn_assert(snapshot->index >= s->snapshot.index && first > 0 && first <= snapshot->index + 1,
                "index=%" PRIu64 " before=%" PRIu64 " first=%" PRIu64, snapshot->index,
                s->snapshot.index, first);
    free(s->unwritten);
    s->unwritten = snapshot;
    s->unwritten_head.len = 0;
    int r = snapshot_head(&s->unwritten_head, s->number++, snapshot, &s->snapshot);
    firn_assert(r == 0, "the room for it was made at the start");
    forget_before(s, first);
}

void log_store_take(struct log_store *s, struct log_save *save)
{
    bool batch = s->file >= 0;
    firn_assert(save->number == s->taken + 1 || s->taken == 0, "number=%" PRIu64 " before=%" PRIu64,
                save->number, s->taken);
    firn_assert(save->term > s->term ||
                    (save->term == s->term && (s->vote == 0 || save->vote == s->vote)),
                "term=%" PRIu64 " vote=%" PRIx64 " before: term=%" PRIu64 " vote=%" PRIx64,
                save->term, save->vote, s->term, s->vote);
    if (batch && (save->term != s->term || save->vote != s->vote))
        log_add_term(&s->batch, save->term, save->vote);
    s->term = save->term;
    s->vote = save->vote;
    s->taken = save->number;
    if (save->snapshot) {
        take_snapshot(s, save->snapshot, save->log_first);
        save->snapshot = NULL;
        if (batch)
            log_add_snapshot(&s->batch, &s->snapshot, save->log_first);
    }
    if (save->truncate && save->truncate < s->next) {
        forget_from(s, save->truncate);
        if (batch)
            log_add_truncate(&s->batch, save->truncate);
    }
    if (save->entries == 0) {
        log_save_free(save);
        return;
    }
    if (s->first == s->next && save->first == s->snapshot.index + 1)
        s->first = s->next = save->first; /* an empty log goes on behind its snapshot */
    if (batch)
        buf_add(&s->batch, save->record, save->end);
    keep(s, save);
}

/* ---- files ---- */

enum kind { KIND_OTHER, KIND_LOG, KIND_SNAPSHOT, KIND_TEMPORARY };

static const char *name_of(char to[NAME_BUF], enum kind kind, uint64_t number, bool temporary)
{
    snprintf(to, NAME_BUF, "%s-%016" PRIx64 "%s", kind == KIND_LOG ? "log" : "snapshot", number,
             temporary ? ".tmp" : "");
    return to;
}

static enum kind kind_of(const char *name, uint64_t *out_number)
{
    static const enum kind kinds[] = { KIND_LOG, KIND_SNAPSHOT };
    const char *dash = strchr(name, '-');
    char same[NAME_BUF];
    *out_number = dash ? strtoull(dash + 1, NULL, 16) : 0;
    for (size_t i = 0; i < 4; i++)
        if (strcmp(name_of(same, kinds[i / 2], *out_number, i % 2), name) == 0)
            return i % 2 ? KIND_TEMPORARY : kinds[i / 2];
    return KIND_OTHER;
}

static int failed(struct firn_diag *d, const char *what, const char *name, int error)
{
    return firn__diag(d, error == -ENOMEM ? FIRN_ENOMEM : FIRN_EIO, 0, "cannot %s %s: %s", what,
                      name, strerror(-error));
}

/* Gives a file that is written its name, durably. */
static int give_name(struct log_store *s, enum kind kind, uint64_t number)
{
    char from[NAME_BUF], to[NAME_BUF];
    int e = s->folder.calls->rename(s->folder.at, name_of(from, kind, number, true),
                                    name_of(to, kind, number, false));
    return e < 0 ? e : s->folder.calls->sync_folder(s->folder.at);
}

static int write_at(struct log_store *s, int file, const char *p, size_t len, uint64_t offset)
{
    return s->folder.calls->write(s->folder.at, file, p, len, offset);
}

static int write_zeros(struct log_store *s, int file, uint64_t from, uint64_t to)
{
    int e = 0;
    for (uint64_t n; from < to && e >= 0; from += n) {
        n = to - from < LOG_CHUNK ? to - from : LOG_CHUNK;
        e = write_at(s, file, s->zeros, (size_t)n, from);
    }
    return e;
}

static int write_snapshot(struct log_store *s, struct firn_diag *d)
{
    const struct folder_calls *calls = s->folder.calls;
    char name[NAME_BUF];
    if (!s->unwritten)
        return 0;
    name_of(name, KIND_SNAPSHOT, s->snapshot.number, true);
    int file = calls->create(s->folder.at, name), e = file;
    if (file >= 0) {
        const struct buf *head = &s->unwritten_head;
        e = write_at(s, file, head->p, head->len, 0);
        if (e >= 0)
            e = write_at(s, file, s->unwritten->bytes, s->unwritten->len, head->len);
        if (e >= 0)
            e = calls->sync(s->folder.at, file);
        calls->close(s->folder.at, file);
        if (e >= 0)
            e = give_name(s, KIND_SNAPSHOT, s->snapshot.number);
        if (e < 0)
            (void)calls->unlink(s->folder.at, name);
    }
    if (e < 0)
        return failed(d, "write", name, e);
    free(s->unwritten);
    s->unwritten = NULL;
    return 0;
}

static void clean(void *user, const char *name)
{
    struct log_store *s = user;
    uint64_t number;
    enum kind kind = kind_of(name, &number);
    if (kind == KIND_TEMPORARY || (kind == KIND_LOG && number != s->current) ||
        (kind == KIND_SNAPSHOT && number != s->snapshot.number))
        (void)s->folder.calls->unlink(s->folder.at, name);
}

/* Removes the files that the current log has replaced. If one stays, after a power cut or an error,
 * it does no harm: the log has a higher number, and names its snapshot. */
static void remove_replaced(struct log_store *s)
{
    (void)s->folder.calls->list(s->folder.at, clean, s);
}

static void drop_file(struct log_store *s)
{
    if (s->file >= 0)
        s->folder.calls->close(s->folder.at, s->file);
    s->file = -1;
}

static int end_batch(struct log_store *s)
{
    uint64_t offset;
    if (log_batch_end(&s->at, &s->batch, &offset) != 0)
        return -ENOMEM;
    return write_at(s, s->file, s->batch.p, s->batch.len, offset);
}

static void begin_batch(struct log_store *s)
{
    if (s->batch.cap > BATCH_BYTES_KEEP)
        buf_done(&s->batch);
    log_batch_begin(&s->batch);
    s->batch_empty = s->batch.len;
}

/* ---- writing ---- */

static int write_kept(struct log_store *s, uint64_t number)
{
    log_begin(&s->at, &s->batch, number, s->folder.calls->random(s->folder.at));
    log_add_term(&s->batch, s->term, s->vote);
    log_add_snapshot(&s->batch, &s->snapshot, s->head ? s->first : s->snapshot.index + 1);
    int e = 0;
    for (const struct log_save *b = s->head; b && e >= 0; b = b->next) {
        buf_add(&s->batch, b->record + b->begin, b->end - b->begin);
        if (s->batch.len > LOG_CHUNK && b->next) {
            e = end_batch(s);
            log_batch_begin(&s->batch);
        }
    }
    log_add_ready(&s->batch);
    if (e >= 0)
        e = end_batch(s);
    s->size = log_room(s->at.end);
    return e < 0 ? e : write_zeros(s, s->file, s->at.end, s->size);
}

static int begin_file(struct log_store *s, struct firn_diag *d)
{
    const struct folder_calls *calls = s->folder.calls;
    char name[NAME_BUF];
    drop_file(s);
    int r = write_snapshot(s, d);
    if (r != 0)
        return r;
    uint64_t number = s->number++;
    int e = calls->create(s->folder.at, name_of(name, KIND_LOG, number, true));
    if (e >= 0) {
        s->file = e;
        e = write_kept(s, number);
        if (e >= 0)
            e = calls->sync(s->folder.at, s->file);
        if (e >= 0)
            e = give_name(s, KIND_LOG, number);
        if (e < 0)
            (void)calls->unlink(s->folder.at, name);
    }
    if (e < 0) {
        drop_file(s);
        return failed(d, "write", name, e);
    }
    s->current = number;
    remove_replaced(s);
    return 0;
}

static int append(struct log_store *s, struct firn_diag *d)
{
    char name[NAME_BUF];
    uint64_t snapshot = s->unwritten ? s->snapshot.number : 0;
    if (s->batch.len == s->batch_empty)
        return 0;
    int r = write_snapshot(s, d);
    if (r != 0)
        return r;
    uint64_t end = s->at.end + s->batch.len + LOG_SECTOR; /* with its padding */
    int e = 0;
    if (log_room(end) > s->size) {
        e = write_zeros(s, s->file, s->size, log_room(end));
        if (e >= 0)
            e = s->folder.calls->sync(s->folder.at, s->file);
        s->size = log_room(end);
    }
    if (e >= 0)
        e = end_batch(s);
    if (e >= 0)
        e = s->folder.calls->sync(s->folder.at, s->file);
    if (e < 0)
        return failed(d, "write", name_of(name, KIND_LOG, s->current, false), e);
    if (snapshot)
        remove_replaced(s);
    return 0;
}

int log_store_write(struct log_store *s, struct firn_diag *d)
{
    bool large = s->at.end + s->batch.len > FILE_BYTES_MAX && s->kept < KEPT_MAX;
    int r = FIRN_EIO;
    if (!log_store_behind(s))
        return 0;
    if (s->file >= 0 && !s->batch.failed && !large)
        r = append(s, d);
    if (r != 0)
        r = begin_file(s, d);
    if (r != 0)
        return r;
    s->saved = s->taken;
    begin_batch(s);
    return 0;
}

uint64_t log_store_saved(const struct log_store *s)
{
    return s->saved;
}

bool log_store_behind(const struct log_store *s)
{
    return s->saved != s->taken;
}

/* ---- loading ---- */

struct loaded {
    struct buf log, snapshot_file;
    struct log_content content;
    struct core_snapshot snapshot;
};

void disk_loaded_done(struct disk_loaded *l)
{
    struct loaded *m = l->memory_;
    if (m) {
        buf_done(&m->log);
        buf_done(&m->snapshot_file);
        log_content_done(&m->content);
    }
    free(m);
    *l = (struct disk_loaded){ 0 };
}

struct found {
    uint64_t log, snapshot, highest;
    bool libraft; /* files of versions before this format */
};

static void find(void *user, const char *name)
{
    struct found *f = user;
    uint64_t number, *mine;
    enum kind kind = kind_of(name, &number);
    if (kind == KIND_OTHER) {
        f->libraft |= strcmp(name, "metadata1") == 0 || strcmp(name, "metadata2") == 0;
        return;
    }
    f->highest = number > f->highest ? number : f->highest;
    mine = kind == KIND_LOG ? &f->log : kind == KIND_SNAPSHOT ? &f->snapshot : &f->highest;
    *mine = number > *mine ? number : *mine;
}

static int damaged(struct firn_diag *d, const char *name, const struct firn_diag *why)
{
    return firn__diag(d, FIRN_EFORMAT, 0,
                      "%s is damaged (%.80s): remove this member, delete its folder, join again",
                      name, why->text);
}

static int read_files(struct log_store *s, uint64_t number, struct loaded *l, struct firn_diag *d)
{
    char name[NAME_BUF];
    struct firn_diag why = { 0 };
    name_of(name, KIND_LOG, number, false);
    int e = s->folder.calls->read(s->folder.at, name, &l->log);
    if (e < 0)
        return failed(d, "read", name, e);
    int r = log_read(l->log.p, l->log.len, &l->content, &why);
    if (r == 0 && l->content.number != number)
        r = firn__diag(&why, FIRN_EFORMAT, 0, "it is another file");
    if (r != 0)
        return r == FIRN_EFORMAT ? damaged(d, name, &why) : failed(d, "read", name, -ENOMEM);
    if (l->content.snapshot.number == 0)
        return 0;
    name_of(name, KIND_SNAPSHOT, l->content.snapshot.number, false);
    e = s->folder.calls->read(s->folder.at, name, &l->snapshot_file);
    if (e == -ENOENT)
        return damaged(d, name, &(struct firn_diag){ .text = "it is missing" });
    if (e < 0)
        return failed(d, "read", name, e);
    r = snapshot_read(l->snapshot_file.p, l->snapshot_file.len, &l->content.snapshot, &l->snapshot,
                      &why);
    return r != 0 ? damaged(d, name, &why) : 0;
}

static int keep_loaded(struct log_store *s, const struct log_content *c)
{
    s->term = c->term;
    s->vote = c->vote;
    s->snapshot = c->snapshot;
    s->first = s->next = c->first;
    for (size_t i = 0, n; i < c->entries; i += n) {
        size_t bytes = 0;
        for (n = 0; i + n < c->entries && (n == 0 || bytes < LOG_CHUNK); n++)
            bytes += LOG_ENTRY_HEAD + c->entry[i + n].len;
        struct log_save *block = new_block(bytes);
        if (!block)
            return FIRN_ENOMEM;
        struct buf b = { .p = block->record, .cap = bytes, .max = bytes };
        for (size_t k = 0; k < n; k++)
            log_add_entry(&b, &c->entry[i + k]);
        firn_assert(b.len == bytes, "len=%zu bytes=%zu", b.len, bytes);
        block->first = c->entry[i].index;
        block->entries = n;
        keep(s, block);
    }
    return 0;
}

static int load(struct log_store *s, uint64_t number, struct disk_loaded *out, struct firn_diag *d)
{
    struct loaded *l = calloc(1, sizeof *l);
    if (!l)
        return FIRN_ENOMEM;
    out->memory_ = l;
    buf_init(&l->log, bytes_max);
    buf_init(&l->snapshot_file, bytes_max);
    int r = read_files(s, number, l, d);
    if (r == 0)
        r = keep_loaded(s, &l->content);
    if (r == 0)
        log_state(&l->content, l->content.snapshot.number ? &l->snapshot : NULL, &out->state);
    out->any = l->content.term > 0;
    return r;
}

/* A log is there before anything else is: a snapshot without one shows that it was lost. */
static int load_or_begin(struct log_store *s, struct disk_loaded *out, struct firn_diag *d)
{
    struct found f = { 0 };
    int e = s->folder.calls->list(s->folder.at, find, &f);
    if (e < 0)
        return failed(d, "list", "the log's folder", e);
    s->number = f.highest + 1;
    if (f.log == 0 && f.snapshot != 0)
        return firn__diag(d, FIRN_EFORMAT, 0,
                          "there is a snapshot, but the log is missing: remove this member, delete "
                          "its folder, join again");
    if (f.log == 0 && f.libraft)
        return firn__diag(
            d, FIRN_EFORMAT, 0,
            "the log was written by a firnd with libraft, which this one cannot read: "
            "run that version, or see \"From a version with libraft\" in docs/cluster.md");
    int r = f.log != 0 ? load(s, f.log, out, d) : 0;
    if (r == 0)
        r = begin_file(s, d);
    if (r == 0)
        begin_batch(s);
    return r;
}

int log_store_open(const struct folder *f, struct log_store **out, struct disk_loaded *loaded,
                   struct firn_diag *d)
{
    struct log_store *s = calloc(1, sizeof *s);
    int r = FIRN_ENOMEM;
    *loaded = (struct disk_loaded){ 0 };
    if (s) {
        s->folder = *f;
        s->file = -1;
        s->first = s->next = 1;
        buf_init(&s->batch, bytes_max);
        buf_init(&s->unwritten_head, bytes_max);
        s->zeros = calloc(1, LOG_CHUNK);
        if (s->zeros && buf_grow(&s->unwritten_head, LOG_SNAPSHOT_HEAD_MAX))
            r = load_or_begin(s, loaded, d);
    }
    if (r != 0) {
        log_store_close(s);
        disk_loaded_done(loaded);
        return r;
    }
    *out = s;
    return 0;
}

void log_store_close(struct log_store *s)
{
    if (!s)
        return;
    drop_file(s);
    for (struct log_save *b = s->head, *next; b; b = next) {
        next = b->next;
        log_save_free(b);
    }
    free(s->unwritten);
    buf_done(&s->unwritten_head);
    buf_done(&s->batch);
    free(s->zeros);
    free(s);
}
