/* The bytes of log and snapshot files; log_format.h has the layout and the rule for torn ends. */
#include "raft/log_format.h"
#include "id/bytes.h"
#include "id/diag.h"
#include "raft/crc32c.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    BATCH_HEAD = 40,
    SNAPSHOT_HEAD = 56,
    RECORD_HEAD = 8, /* u8 kind, u8 type of an entry, u16 0, u32 length of its bytes or a CRC */
};
enum record { FILE_RECORD = 1, TERM, SNAPSHOT, TRUNCATE, ENTRY, READY };

static const uint32_t batch_magic = 0x6669726e; /* "firn" */
static const char snapshot_magic[8] = "firnsnap";

static bool zeros(const char *p, size_t len)
{
    return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

static uint32_t zero_sectors(const char *p, size_t len)
{
    uint32_t n = 0;
    for (size_t at = 0; at < len; at += LOG_SECTOR)
        n += zeros(p + at, LOG_SECTOR);
    return n;
}

static uint64_t sectors(uint64_t bytes)
{
    return (bytes + LOG_SECTOR - 1) / LOG_SECTOR * LOG_SECTOR;
}

uint64_t log_room(uint64_t end)
{
    return (end + LOG_SECTOR + LOG_CHUNK - 1) / LOG_CHUNK * LOG_CHUNK;
}

/* ---- writing ---- */

/* A record with `numbers` further u64 behind its head; returns where these go, or NULL. */
static char *add(struct buf *b, enum record kind, int type, uint32_t word, size_t numbers)
{
    char *p = buf_room(b, RECORD_HEAD + 8 * numbers);
    if (!p)
        return NULL;
    memset(p, 0, RECORD_HEAD);
    p[0] = (char)kind;
    p[1] = (char)type;
    store_be32(p + 4, word);
    buf_commit(b, RECORD_HEAD + 8 * numbers);
    return p + RECORD_HEAD;
}

void log_batch_begin(struct buf *b)
{
    b->len = 0;
    b->failed = false;
    char *p = buf_room(b, BATCH_HEAD);
    if (p) {
        memset(p, 0, BATCH_HEAD);
        buf_commit(b, BATCH_HEAD);
    }
}

void log_begin(struct log_file *f, struct buf *b, uint64_t number, uint64_t salt)
{
    *f = (struct log_file){ .salt = salt };
    log_batch_begin(b);
    char *p = add(b, FILE_RECORD, 0, 0, 1);
    if (p)
        store_be64(p, number);
}

void log_add_term(struct buf *b, uint64_t term, uint64_t vote)
{
    char *p = add(b, TERM, 0, 0, 2);
    if (p) {
        store_be64(p, term);
        store_be64(p + 8, vote);
    }
}

void log_add_snapshot(struct buf *b, const struct log_snapshot *s, uint64_t first)
{
    char *p = add(b, SNAPSHOT, 0, s->crc, 5);
    if (p) {
        store_be64(p, s->number);
        store_be64(p + 8, s->index);
        store_be64(p + 16, s->term);
        store_be64(p + 24, s->len);
        store_be64(p + 32, first);
    }
}

void log_add_truncate(struct buf *b, uint64_t from)
{
    char *p = add(b, TRUNCATE, 0, 0, 1);
    if (p)
        store_be64(p, from);
}

void log_add_entry(struct buf *b, const struct core_entry *e)
{
    firn_assert(e->len <= CORE_ENTRY_BYTES_MAX && e->index > 0, "index=%" PRIu64 " len=%zu",
                e->index, e->len);
    char *p = add(b, ENTRY, e->type, (uint32_t)e->len, 2);
    if (p) {
        store_be64(p, e->index);
        store_be64(p + 8, e->term);
        buf_add(b, e->bytes, e->len);
    }
}

void log_add_ready(struct buf *b)
{
    (void)add(b, READY, 0, 0, 0);
}

size_t log_entry_size(const char *p, uint64_t *out_index)
{
    firn_assert(p[0] == ENTRY, "kind=%d", p[0]);
    *out_index = load_be64(p + RECORD_HEAD);
    return LOG_ENTRY_HEAD + load_be32(p + 4);
}

int log_batch_end(struct log_file *f, struct buf *b, uint64_t *out_offset)
{
    size_t len = b->len, pad = (size_t)sectors(len) - len;
    char *p = buf_room(b, pad);
    if (!p || b->failed || len - BATCH_HEAD > UINT32_MAX)
        return FIRN_ENOMEM;
    memset(p, 0, pad);
    buf_commit(b, pad);
    p = b->p;
    store_be32(p, batch_magic); /* so the first sector is never zeros */
    store_be64(p + 8, f->salt);
    store_be64(p + 16, f->batches);
    store_be32(p + 24, (uint32_t)(len - BATCH_HEAD));
    store_be32(p + 28, zero_sectors(p, b->len));
    store_be32(p + 32, crc32c(0, p + BATCH_HEAD, b->len - BATCH_HEAD));
    store_be32(p + 4, crc32c(0, p + 8, BATCH_HEAD - 8));
    *out_offset = f->end;
    f->end += b->len;
    f->batches++;
    return 0;
}

/* ---- reading ---- */

static int damaged(struct firn_diag *d, size_t at, const char *what)
{
    return firn__diag(d, FIRN_EFORMAT, 0, "at byte %zu: %s", at, what);
}

static bool head_valid(const char *p)
{
    return load_be32(p) == batch_magic && load_be32(p + 4) == crc32c(0, p + 8, BATCH_HEAD - 8);
}

/* Does any sector from `at` on begin a batch of this file? */
static bool batch_behind(const char *p, size_t len, size_t at, uint64_t salt)
{
    for (; len - at >= LOG_SECTOR; at += LOG_SECTOR)
        if (head_valid(p + at) && load_be64(p + at + 8) == salt)
            return true;
    return false;
}

/* The batch at f->end. 0: *out_len is the length of its records. FIRN_EAGAIN: the log ends here.
 * FIRN_EFORMAT. */
static int next_batch(const char *file, size_t len, struct log_content *c, size_t *out_len,
                      struct firn_diag *d)
{
    struct log_file *f = &c->at;
    size_t at = (size_t)f->end, rest = len - at;
    const char *p = file + at;
    if (rest < LOG_SECTOR)
        return damaged(d, at, "the file ends without room for a next batch: it was truncated");
    if (zeros(p, LOG_SECTOR)) {
        c->torn = !zeros(p, rest);
        return batch_behind(file, len, at + LOG_SECTOR, f->salt)
                   ? damaged(d, at, "a batch is missing")
                   : FIRN_EAGAIN;
    }
    if (!head_valid(p))
        return damaged(d, at, "a batch has a wrong checksum");
    if (f->batches == 0)
        f->salt = load_be64(p + 8);
    if (load_be64(p + 8) != f->salt || load_be64(p + 16) != f->batches)
        return damaged(d, at, "a batch is not the next one");
    size_t records = load_be32(p + 24), total = (size_t)sectors(BATCH_HEAD + records);
    if (total > rest || rest - total < LOG_SECTOR)
        return damaged(d, at, "a batch goes to the end of the file: it was truncated");
    if (load_be32(p + 32) != crc32c(0, p + BATCH_HEAD, total - BATCH_HEAD)) {
        if (zero_sectors(p, total) <= load_be32(p + 28) || !zeros(p + total, rest - total))
            return damaged(d, at, "a batch has a wrong checksum");
        c->torn = true;
        return FIRN_EAGAIN;
    }
    f->end += total;
    f->batches++;
    *out_len = records;
    return 0;
}

/* The term that an entry at `index` has at least. */
static uint64_t term_before(const struct log_content *c, uint64_t index)
{
    return c->entries > 0              ? c->entry[c->entries - 1].term
           : index > c->snapshot.index ? c->snapshot.term
                                       : 0;
}

static int read_entry(struct log_content *c, const struct core_entry *e)
{
    /* An empty log may go on behind the snapshot, too. */
    if (c->entries == 0 && e->index == c->snapshot.index + 1)
        c->first = e->index;
    if (e->index != c->first + c->entries || e->term < term_before(c, e->index) ||
        e->term > c->term || e->type < ENTRY_NOTHING || e->type > ENTRY_CONFIG ||
        e->len > CORE_ENTRY_BYTES_MAX)
        return FIRN_EFORMAT;
    if (c->entries == c->cap_) {
        size_t cap = c->cap_ ? 2 * c->cap_ : 64;
        struct core_entry *more = reallocarray(c->entry, cap, sizeof *more);
        if (!more)
            return FIRN_ENOMEM;
        c->entry = more;
        c->cap_ = cap;
    }
    c->entry[c->entries++] = *e;
    return 0;
}

static int read_snapshot(struct log_content *c, const struct log_snapshot *s, uint64_t first)
{
    if (first == 0 || first > s->index + 1 || s->index < c->snapshot.index ||
        s->term < c->snapshot.term || (s->number == 0) != (s->index == 0))
        return FIRN_EFORMAT;
    if (first > c->first) {
        size_t gone = first - c->first < c->entries ? (size_t)(first - c->first) : c->entries;
        c->entries -= gone;
        if (c->entries > 0)
            memmove(c->entry, c->entry + gone, c->entries * sizeof *c->entry);
        c->first = first;
    }
    c->snapshot = *s;
    return 0;
}

static int read_term(struct log_content *c, uint64_t term, uint64_t vote)
{
    if (term < c->term || (term == c->term && c->vote != 0 && vote != c->vote))
        return FIRN_EFORMAT;
    c->term = term;
    c->vote = vote;
    return 0;
}

struct reading {
    struct log_content *c;
    bool file, ready; /* these records were there */
};

/* The record at p, of at most `len` bytes. Returns its length, or an error. */
static int64_t read_record(struct reading *r, const char *p, size_t len)
{
    static const uint8_t numbers[] = {
        [FILE_RECORD] = 1, [TERM] = 2, [SNAPSHOT] = 5, [TRUNCATE] = 1, [ENTRY] = 2, [READY] = 0,
    };
    struct log_content *c = r->c;
    if (len < RECORD_HEAD || p[0] < FILE_RECORD || p[0] > READY || load_be32(p) & 0xffff ||
        (p[0] == FILE_RECORD) == r->file || (p[0] == READY && r->ready))
        return FIRN_EFORMAT;
    enum record kind = (enum record)p[0];
    uint32_t word = load_be32(p + 4);
    uint64_t v[5] = { 0 };
    size_t size = RECORD_HEAD + 8u * numbers[kind];
    if (len < size || (kind == ENTRY && len - size < word))
        return FIRN_EFORMAT;
    for (size_t i = 0; i < numbers[kind]; i++)
        v[i] = load_be64(p + RECORD_HEAD + 8 * i);
    int e = 0;
    switch (kind) {
    case FILE_RECORD:
        c->number = v[0];
        r->file = true;
        break;
    case TERM:
        e = read_term(c, v[0], v[1]);
        break;
    case SNAPSHOT:
        e = read_snapshot(c, &(struct log_snapshot){ v[0], v[1], v[2], v[3], word }, v[4]);
        break;
    case TRUNCATE:
        if (v[0] > c->first + c->entries)
            return FIRN_EFORMAT;
        c->entries = v[0] > c->first ? (size_t)(v[0] - c->first) : 0;
        break;
    case ENTRY:
        e = read_entry(c, &(struct core_entry){ v[0], v[1], (enum core_type)p[1], p + size, word });
        size += word;
        break;
    case READY:
        r->ready = true;
        break;
    }
    return e != 0 ? e : (int64_t)size;
}

/* Do the entries reach the snapshot, and agree with it? */
static bool joined(const struct log_content *c)
{
    const struct log_snapshot *s = &c->snapshot;
    if (c->entries == 0 || s->index == 0)
        return c->entries == 0 || c->first == 1;
    if (c->first > s->index)
        return c->first == s->index + 1 && c->entry[0].term >= s->term;
    return s->index - c->first < c->entries && c->entry[s->index - c->first].term == s->term;
}

int log_read(const char *p, size_t len, struct log_content *out, struct firn_diag *d)
{
    struct log_content c = { .first = 1 };
    struct reading reading = { .c = &c };
    size_t records = 0;
    int r;
    while ((r = next_batch(p, len, &c, &records, d)) == 0) {
        size_t begin = (size_t)c.at.end - (size_t)sectors(BATCH_HEAD + records) + BATCH_HEAD;
        for (size_t at = begin; at < begin + records;) {
            int64_t size = read_record(&reading, p + at, begin + records - at);
            if (size < 0) {
                r = size == FIRN_ENOMEM
                        ? FIRN_ENOMEM
                        : damaged(d, at, "a record does not follow the ones before");
                goto failed;
            }
            at += (size_t)size;
        }
    }
    if (r == FIRN_EAGAIN)
        r = !reading.ready ? damaged(d, (size_t)c.at.end, "the log is not complete")
            : !joined(&c)  ? damaged(d, (size_t)c.at.end, "log and snapshot do not fit together")
                           : 0;
    if (r != 0)
        goto failed;
    if (c.entries == 0 && c.snapshot.index > 0)
        c.first = c.snapshot.index + 1;
    *out = c;
    return 0;
failed:
    free(c.entry);
    return r;
}

void log_content_done(struct log_content *c)
{
    free(c->entry);
    *c = (struct log_content){ 0 };
}

void log_state(const struct log_content *c, const struct core_snapshot *snapshot,
               struct core_saved_state *out)
{
    *out = (struct core_saved_state){ .term = c->term,
                                      .vote = c->vote,
                                      .snapshot = snapshot,
                                      .first = c->first,
                                      .entry = c->entry,
                                      .entries = c->entries };
}

/* ---- snapshots ----
 * 8 bytes "firnsnap", u32 CRC-32C of the head behind it, u32 CRC-32C of configuration and state,
 * u64 number, u64 index, u64 term, u64 length of the state, u64 length of the configuration;
 * configuration; state. */

int snapshot_head(struct buf *b, uint64_t number, const struct core_snapshot *s,
                  struct log_snapshot *out)
{
    char *p = buf_room(b, SNAPSHOT_HEAD + CORE_CONFIG_BYTES_MAX);
    if (!p)
        return FIRN_ENOMEM;
    size_t config = config_write(&s->config, p + SNAPSHOT_HEAD, CORE_CONFIG_BYTES_MAX);
    firn_assert(config > 0 && s->index > 0 && number > 0, "members=%u", s->config.count);
    uint32_t crc = crc32c(crc32c(0, p + SNAPSHOT_HEAD, config), s->bytes, s->len);
    memcpy(p, snapshot_magic, sizeof snapshot_magic);
    store_be32(p + 12, crc);
    store_be64(p + 16, number);
    store_be64(p + 24, s->index);
    store_be64(p + 32, s->term);
    store_be64(p + 40, s->len);
    store_be64(p + 48, config);
    store_be32(p + 8, crc32c(0, p + 12, SNAPSHOT_HEAD - 12));
    buf_commit(b, SNAPSHOT_HEAD + config);
    *out = (struct log_snapshot){ number, s->index, s->term, s->len, crc };
    return 0;
}

int snapshot_read(const char *p, size_t len, const struct log_snapshot *named,
                  struct core_snapshot *out, struct firn_diag *d)
{
    if (len < SNAPSHOT_HEAD || memcmp(p, snapshot_magic, sizeof snapshot_magic) != 0 ||
        load_be32(p + 8) != crc32c(0, p + 12, SNAPSHOT_HEAD - 12))
        return damaged(d, 0, "this is no snapshot");
    uint64_t size = load_be64(p + 40), config = load_be64(p + 48), rest = len - SNAPSHOT_HEAD;
    if (config > rest || size != rest - config ||
        load_be32(p + 12) != crc32c(0, p + SNAPSHOT_HEAD, (size_t)rest))
        return damaged(d, SNAPSHOT_HEAD, "the snapshot has a wrong length or checksum");
    struct log_snapshot s = { load_be64(p + 16), load_be64(p + 24), load_be64(p + 32), size,
                              load_be32(p + 12) };
    if (named && (s.number != named->number || s.index != named->index || s.term != named->term ||
                  s.len != named->len || s.crc != named->crc))
        return damaged(d, 16, "the log names another snapshot");
    if (s.index == 0 || config_read(p + SNAPSHOT_HEAD, (size_t)config, &out->config) != 0)
        return damaged(d, SNAPSHOT_HEAD, "the configuration cannot be read");
    out->index = s.index;
    out->term = s.term;
    out->bytes = p + SNAPSHOT_HEAD + config;
    out->len = (size_t)size;
    return 0;
}
