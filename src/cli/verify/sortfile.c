/*
 * External merge sort. Records are collected in `mem`. When it is full they are sorted there and
 * appended to the temporary file as one run. At the end the runs are merged through a heap of
 * cursors, each with a piece of `mem` as its buffer; when there are more runs than buffers of a
 * useful size, passes over the file merge groups of them into longer runs first. If all records
 * fit, no file is made.
 *
 * Texts are stored in memory and in the file as `where`, one byte of length, the bytes. They are
 * sorted by the same radix sort as numbers: the key is eight bytes of the text, high byte first,
 * and texts that tie are sorted by their next eight.
 */
#include "cli/verify/sortfile.h"
#include "id/bytes.h"
#include "id/diag.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    TEXT_HEAD = 9, /* where, length */
    OUT_BYTES = 256 << 10,
    CURSOR_MIN_BYTES = 32 << 10, /* smaller reads cost more than another pass over the file */
    FAN_IN_MAX = 1024,
    FEW = 40, /* so many or fewer are faster sorted by insertion */
    KEY_BYTES = 8,
};

struct sort_cursor { /* reads one run through its piece of mem */
    unsigned char *buf;
    size_t buf_bytes, at, end;
    uint64_t offset, left_bytes; /* the rest of the run in the file */
};

struct sort_head { /* the first record of a run, with the key that the heap compares */
    uint64_t key, where;
    struct sort_cursor *cursor;
};

/* ---- texts ---- */

static uint64_t text_where(const unsigned char *rec)
{
    uint64_t where;
    memcpy(&where, rec, sizeof where);
    return where;
}

/* Bytes depth..depth+7, zeros after the end: ties that this causes are resolved by length. */
static uint64_t text_key(const unsigned char *rec, size_t depth)
{
    size_t len = rec[8];
    unsigned char b[KEY_BYTES] = { 0 };
    if (len > depth)
        memcpy(b, rec + TEXT_HEAD + depth, len - depth < KEY_BYTES ? len - depth : KEY_BYTES);
    return load_be64(b);
}

static int text_cmp(const unsigned char *a, const unsigned char *b)
{
    size_t alen = a[8], blen = b[8];
    int c = memcmp(a + TEXT_HEAD, b + TEXT_HEAD, alen < blen ? alen : blen);
    return c != 0 ? c : (alen > blen) - (alen < blen);
}

/* ---- sorting in memory ---- */

/* Stable radix sort by value, one byte per pass from the low end; passes over bytes that are the
 * same in all records are left out, and so is everything when the order is right already, as it
 * is for most files of IDs. Returns where the result is: `a` or `b`. */
static struct sort_number *radix_sort(struct sort_number *a, struct sort_number *b, size_t n)
{
    size_t hist[KEY_BYTES][256] = { 0 };
    bool rising = true;
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t v = a[i].value;
        rising &= v >= last;
        last = v;
        for (int d = 0; d < KEY_BYTES; d++)
            hist[d][v >> (8 * d) & 255]++;
    }
    if (rising)
        return a;
    for (int d = 0; d < KEY_BYTES; d++) {
        size_t *h = hist[d], sum = 0;
        if (h[a[0].value >> (8 * d) & 255] == n)
            continue;
        for (int i = 0; i < 256; i++) {
            size_t here = h[i];
            h[i] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            b[h[a[i].value >> (8 * d) & 255]++] = a[i];
        struct sort_number *t = a;
        a = b;
        b = t;
    }
    return a;
}

/* Sort a[0..n), whose texts share their first `depth` bytes; b is scratch. Depth of recursion is
 * SORT_TEXT_MAX / KEY_BYTES at most. Stable: `where` in a[] is the offset, which rises with the
 * line. */
static void text_sort(const unsigned char *mem, struct sort_number *a, struct sort_number *b,
                      size_t n, size_t depth)
{
    if (n <= FEW) {
        for (size_t i = 1; i < n; i++) {
            struct sort_number x = a[i];
            size_t j = i;
            for (; j > 0 && text_cmp(mem + a[j - 1].where, mem + x.where) > 0; j--)
                a[j] = a[j - 1];
            a[j] = x;
        }
        return;
    }
    bool ended = depth >= SORT_TEXT_MAX; /* equal except for zeros at the end: shorter first */
    for (size_t i = 0; i < n; i++)
        a[i].value = ended ? mem[a[i].where + 8] : text_key(mem + a[i].where, depth);
    struct sort_number *sorted = radix_sort(a, b, n);
    if (sorted != a)
        memcpy(a, sorted, n * sizeof *a);
    if (ended)
        return;
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && a[j].value == a[i].value; j++)
            ;
        if (j - i > 1)
            text_sort(mem, a + i, b, j - i, depth + KEY_BYTES);
    }
}

static size_t align_up(size_t n)
{
    return (n + sizeof(struct sort_number) - 1) / sizeof(struct sort_number) *
           sizeof(struct sort_number);
}

/* Memory that `count` records of `used_bytes` need until they are sorted. */
static size_t sort_needs(enum sort_kind kind, size_t used_bytes, size_t count)
{
    if (kind == SORT_NUMBERS)
        return used_bytes * 2;
    return align_up(used_bytes) + count * 2 * sizeof(struct sort_number);
}

static struct sort_number *sort_memory(struct sortfile *s)
{
    if (s->kind == SORT_NUMBERS) {
        struct sort_number *a = (struct sort_number *)(void *)s->mem;
        return radix_sort(a, a + s->count, s->count);
    }
    struct sort_number *a = (struct sort_number *)(void *)(s->mem + align_up(s->used_bytes));
    size_t offset = 0;
    for (size_t i = 0; i < s->count; i++) {
        a[i].where = offset;
        offset += (size_t)TEXT_HEAD + s->mem[offset + 8];
    }
    text_sort(s->mem, a, a + s->count, s->count, 0);
    return a;
}

/* ---- the temporary file ---- */

static const char *temp_dir(void)
{
    const char *dir = getenv("TMPDIR");
    return dir && *dir ? dir : P_tmpdir;
}

static int temp_file(int *out_fd, struct firn_diag *d)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/firn-sort-XXXXXX", temp_dir());
    int fd = -1;
    errno = ENAMETOOLONG;
    if (n > 0 && (size_t)n < sizeof path)
        fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0)
        return firn__diag(d, FIRN_EIO, 0,
                          "cannot make a temporary file in %.60s (%s): set TMPDIR to a folder that "
                          "can be written, or raise --memory",
                          temp_dir(), strerror(errno));
    unlink(path);
    *out_fd = fd;
    return 0;
}

static int write_all(struct sortfile *s, const unsigned char *p, size_t len, struct firn_diag *d)
{
    while (len > 0) {
        ssize_t n = write(s->out_fd, p, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            bool full = n == 0 || errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
            return firn__diag(d, FIRN_EIO, 0,
                              full ? "no space left in %.60s for sorting (%s): set TMPDIR to a "
                                     "folder with more room, or raise --memory"
                                   : "cannot write a temporary file in %.60s (%s): set TMPDIR to "
                                     "another folder, or raise --memory",
                              temp_dir(), n == 0 ? "nothing written" : strerror(errno));
        }
        p += n;
        len -= (size_t)n;
        s->file_bytes += (size_t)n;
    }
    return 0;
}

static int out_flush(struct sortfile *s, struct firn_diag *d)
{
    size_t len = s->out_len;
    s->out_len = 0;
    return write_all(s, s->out, len, d);
}

static int out_put(struct sortfile *s, const void *p, size_t len, struct firn_diag *d)
{
    if (s->out_len + len > OUT_BYTES) {
        int r = out_flush(s, d);
        if (r != 0)
            return r;
    }
    memcpy(s->out + s->out_len, p, len);
    s->out_len += len;
    return 0;
}

static int no_memory(struct firn_diag *d)
{
    return firn__diag(d, FIRN_ENOMEM, 0, "out of memory: lower --memory");
}

/* The run that begins at `offset` ends here. */
static int run_add(struct sortfile *s, uint64_t offset, struct firn_diag *d)
{
    if (s->runs_len == s->runs_cap) {
        size_t cap = s->runs_cap ? s->runs_cap * 2 : 64;
        struct sort_run *runs = realloc(s->runs, cap * sizeof *runs);
        if (!runs)
            return no_memory(d);
        s->runs = runs;
        s->runs_cap = cap;
    }
    s->runs[s->runs_len++] = (struct sort_run){ offset, s->file_bytes - offset };
    return 0;
}

/* Sort what is in memory and append it to the file as a run. */
static int spill(struct sortfile *s, struct firn_diag *d)
{
    int r = 0;
    if (s->count == 0)
        return 0;
    if (!s->out && !(s->out = malloc(OUT_BYTES)))
        return no_memory(d);
    if (s->fd < 0 && (r = temp_file(&s->fd, d)) != 0)
        return r;

    uint64_t offset = s->file_bytes;
    s->out_fd = s->fd;
    const struct sort_number *a = sort_memory(s);
    if (s->kind == SORT_NUMBERS) {
        r = write_all(s, (const unsigned char *)a, s->count * sizeof *a, d);
    } else {
        for (size_t i = 0; i < s->count && r == 0; i++) {
            const unsigned char *rec = s->mem + a[i].where;
            r = out_put(s, rec, (size_t)TEXT_HEAD + rec[8], d);
        }
        if (r == 0)
            r = out_flush(s, d);
    }
    if (r != 0)
        return r;
    s->count = s->used_bytes = 0;
    return run_add(s, offset, d);
}

/* ---- merging ---- */

/* Complete the record at `at` in the buffer. 1: done, 0: the run has ended. */
static int cursor_fill(struct sortfile *s, struct sort_cursor *c, struct firn_diag *d)
{
    size_t kept = c->end - c->at;
    if (s->kind == SORT_NUMBERS
            ? kept > 0
            : kept >= TEXT_HEAD && kept >= (size_t)TEXT_HEAD + c->buf[c->at + 8])
        return 1;
    if (kept == 0 && c->left_bytes == 0)
        return 0;
    memmove(c->buf, c->buf + c->at, kept);
    c->at = 0;
    c->end = kept;
    while (c->left_bytes > 0 && c->end < c->buf_bytes) {
        size_t want = c->buf_bytes - c->end;
        if (want > c->left_bytes)
            want = (size_t)c->left_bytes;
        ssize_t n = pread(s->fd, c->buf + c->end, want, (off_t)c->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return firn__diag(d, FIRN_EIO, 0, "cannot read a temporary file back (%s)",
                              n < 0 ? strerror(errno) : "it became shorter");
        c->end += (size_t)n;
        c->offset += (size_t)n;
        c->left_bytes -= (size_t)n;
    }
    return 1;
}

static void head_load(const struct sortfile *s, struct sort_head *h)
{
    const unsigned char *rec = h->cursor->buf + h->cursor->at;
    if (s->kind == SORT_NUMBERS) {
        struct sort_number n;
        memcpy(&n, rec, sizeof n);
        h->key = n.value;
        h->where = n.where;
    } else {
        h->key = text_key(rec, 0);
        h->where = text_where(rec);
    }
}

static inline bool head_less(const struct sortfile *s, const struct sort_head *a,
                             const struct sort_head *b)
{
    if (a->key != b->key)
        return a->key < b->key;
    if (s->kind == SORT_TEXTS) {
        int c = text_cmp(a->cursor->buf + a->cursor->at, b->cursor->buf + b->cursor->at);
        if (c != 0)
            return c < 0;
    }
    return a->where < b->where;
}

static void heap_down(struct sortfile *s, size_t i)
{
    struct sort_head *h = s->heap, x = h[i];
    size_t n = s->heap_len;
    for (size_t kid; (kid = 2 * i + 1) < n; i = kid) {
        if (kid + 1 < n && head_less(s, &h[kid + 1], &h[kid]))
            kid++;
        if (!head_less(s, &h[kid], &x))
            break;
        h[i] = h[kid];
    }
    h[i] = x;
}

static size_t fan_in(const struct sortfile *s)
{
    size_t n = s->mem_bytes / CURSOR_MIN_BYTES;
    return n < FAN_IN_MAX ? n : FAN_IN_MAX;
}

/* Cursors on `n` runs from `first` on. */
static int merge_begin(struct sortfile *s, size_t first, size_t n, struct firn_diag *d)
{
    size_t piece = s->mem_bytes / n / sizeof(struct sort_number) * sizeof(struct sort_number);
    s->heap_len = 0;
    s->top_taken = false;
    for (size_t i = 0; i < n; i++) {
        struct sort_cursor *c = &s->cursors[i];
        const struct sort_run *run = &s->runs[first + i];
        *c = (struct sort_cursor){ .buf = s->mem + i * piece,
                                   .buf_bytes = piece,
                                   .offset = run->offset,
                                   .left_bytes = run->len_bytes };
        int r = cursor_fill(s, c, d);
        if (r < 0)
            return r;
        if (r == 0)
            continue;
        struct sort_head *h = &s->heap[s->heap_len++];
        h->cursor = c;
        head_load(s, h);
    }
    for (size_t i = s->heap_len / 2; i-- > 0;)
        heap_down(s, i);
    return 0;
}

/* The smallest record of all cursors, left in its buffer until the next call. */
static inline int merge_next(struct sortfile *s, const unsigned char **out_rec, size_t *out_len,
                             struct firn_diag *d)
{
    if (s->top_taken) {
        struct sort_cursor *c = s->heap[0].cursor;
        c->at += s->kind == SORT_NUMBERS ? sizeof(struct sort_number)
                                         : (size_t)TEXT_HEAD + c->buf[c->at + 8];
        int r = cursor_fill(s, c, d);
        if (r < 0)
            return r;
        if (r == 0)
            s->heap[0] = s->heap[--s->heap_len];
        else
            head_load(s, &s->heap[0]);
        s->top_taken = false;
        if (s->heap_len > 0)
            heap_down(s, 0);
    }
    if (s->heap_len == 0)
        return 0;
    const struct sort_cursor *c = s->heap[0].cursor;
    *out_rec = c->buf + c->at;
    *out_len = s->kind == SORT_NUMBERS ? sizeof(struct sort_number)
                                       : (size_t)TEXT_HEAD + (*out_rec)[8];
    s->top_taken = true;
    return 1;
}

/* One pass over the file: groups of runs become one run each, in a new file. */
static int merge_pass(struct sortfile *s, struct firn_diag *d)
{
    int r = temp_file(&s->out_fd, d);
    if (r != 0)
        return r;
    size_t made = 0, most = fan_in(s);
    s->file_bytes = 0;
    for (size_t first = 0, n; first < s->runs_len && r == 0; first += n) {
        n = s->runs_len - first < most ? s->runs_len - first : most;
        uint64_t offset = s->file_bytes;
        const unsigned char *rec;
        size_t len;
        r = merge_begin(s, first, n, d);
        while (r == 0 && (r = merge_next(s, &rec, &len, d)) > 0)
            r = out_put(s, rec, len, d);
        if (r == 0)
            r = out_flush(s, d);
        s->runs[made++] = (struct sort_run){ offset, s->file_bytes - offset };
    }
    s->runs_len = made;
    close(s->fd);
    s->fd = s->out_fd;
    return r;
}

/* ---- the sorter ---- */

void sortfile_init(struct sortfile *s, enum sort_kind kind, size_t memory_bytes)
{
    *s = (struct sortfile){ .kind = kind, .fd = -1 };
    s->mem_bytes = memory_bytes > SORT_MEMORY_MIN_BYTES ? memory_bytes : SORT_MEMORY_MIN_BYTES;
}

void sortfile_done(struct sortfile *s)
{
    if (s->mem)
        munmap(s->mem, s->mem_bytes);
    if (s->fd >= 0)
        close(s->fd);
    free(s->runs);
    free(s->out);
    free(s->cursors);
    free(s->heap);
    *s = (struct sortfile){ .fd = -1 };
}

int sortfile__make_room(struct sortfile *s, size_t record_bytes, struct firn_diag *d)
{
    if (!s->mem) {
        /* Pages are allocated when they are touched, so a small input does not pay for a large
         * --memory. */
        void *mem = mmap(NULL, s->mem_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mem == MAP_FAILED)
            return no_memory(d);
        /* the scatter of radix sort needs few TLB misses */
        madvise(mem, s->mem_bytes, MADV_HUGEPAGE);
        s->mem = mem;
    }
    if (sort_needs(s->kind, s->used_bytes + record_bytes, s->count + 1) > s->mem_bytes)
        return spill(s, d);
    return 0;
}

int sortfile_add_text(struct sortfile *s, const char *p, size_t len, uint64_t where,
                      struct firn_diag *d)
{
    if (len > SORT_TEXT_MAX)
        return firn__diag(d, FIRN_EINVAL, 0, "a text is longer than %d bytes", SORT_TEXT_MAX);
    int r = sortfile__make_room(s, TEXT_HEAD + len, d);
    if (r != 0)
        return r;
    unsigned char *rec = s->mem + s->used_bytes;
    memcpy(rec, &where, sizeof where);
    rec[8] = (unsigned char)len;
    memcpy(rec + TEXT_HEAD, p, len);
    s->used_bytes += TEXT_HEAD + len;
    s->count++;
    return 0;
}

int sortfile_shrink(struct sortfile *s, size_t memory_bytes, struct firn_diag *d)
{
    if (memory_bytes < SORT_MEMORY_MIN_BYTES)
        memory_bytes = SORT_MEMORY_MIN_BYTES;
    if (memory_bytes >= s->mem_bytes)
        return 0;
    if (s->mem) {
        int r = 0;
        if (sort_needs(s->kind, s->used_bytes, s->count) > memory_bytes)
            r = spill(s, d);
        if (r != 0)
            return r;
        void *mem = mremap(s->mem, s->mem_bytes, memory_bytes, MREMAP_MAYMOVE);
        if (mem == MAP_FAILED)
            return no_memory(d);
        s->mem = mem;
    }
    s->mem_bytes = memory_bytes;
    return 0;
}

int sortfile_finish(struct sortfile *s, struct firn_diag *d)
{
    if (s->runs_len == 0) {
        if (s->count > 0)
            s->sorted = sort_memory(s);
        return 0;
    }
    int r = spill(s, d);
    if (r != 0)
        return r;
    s->cursors = calloc(fan_in(s), sizeof *s->cursors);
    s->heap = calloc(fan_in(s), sizeof *s->heap);
    if (!s->cursors || !s->heap)
        return no_memory(d);
    while (s->runs_len > fan_in(s))
        if ((r = merge_pass(s, d)) != 0)
            return r;
    return merge_begin(s, 0, s->runs_len, d);
}

int sortfile_next(struct sortfile *s, struct sort_item *out, struct firn_diag *d)
{
    const unsigned char *rec;
    size_t len;
    if (s->runs_len == 0) {
        if (s->sorted_at == s->count)
            return 0;
        const struct sort_number *n = &s->sorted[s->sorted_at++];
        rec = s->kind == SORT_NUMBERS ? (const unsigned char *)n : s->mem + n->where;
    } else {
        int r = merge_next(s, &rec, &len, d);
        if (r <= 0)
            return r;
    }
    if (s->kind == SORT_NUMBERS) {
        struct sort_number n;
        memcpy(&n, rec, sizeof n);
        *out = (struct sort_item){ .value = n.value, .where = n.where };
    } else {
        *out = (struct sort_item){ .text = (const char *)rec + TEXT_HEAD,
                                   .len = rec[8],
                                   .where = text_where(rec) };
    }
    return 1;
}
