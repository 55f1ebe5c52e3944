/*
 * sortfile.h - sorts more records than fit in memory.
 * A record is a 64-bit number or a text of up to SORT_TEXT_MAX bytes; each carries `where`, an
 * ordinal that rises as records are added (firn verify: the line, counted over all its files; the
 * file's index follows from it, which keeps a record at 16 bytes).
 * Add everything, finish once, then take the records in ascending order; equal ones come in the
 * order of `where`. Beyond its memory a sorter spills to unlinked files in $TMPDIR: no file is
 * left, however the process ends. One thread.
 */
#ifndef FIRN_CLI_VERIFY_SORTFILE_H
#define FIRN_CLI_VERIFY_SORTFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

enum {
    SORT_TEXT_MAX = 128,            /* a length fits a byte, a record any buffer */
    SORT_MEMORY_MIN_BYTES = 1 << 19 /* below, merging would read in tiny pieces */
};

enum sort_kind { SORT_NUMBERS, SORT_TEXTS };

struct sort_number { /* as it lies in memory and in the file */
    uint64_t value;
    uint64_t where;
};

struct sort_item {
    uint64_t value;   /* of a number */
    const char *text; /* of a text: borrowed until the next call */
    size_t len;
    uint64_t where;
};

struct sort_run { /* one sorted stretch of the temporary file */
    uint64_t offset, len_bytes;
};

struct sortfile { /* all private */
    enum sort_kind kind;
    unsigned char *mem; /* records from the bottom, room to sort them above; later merge buffers */
    size_t mem_bytes, used_bytes, count;
    int fd;     /* the temporary file, -1 while none is needed */
    int out_fd; /* where runs are written: fd, or the next file during a pass */
    uint64_t file_bytes;
    struct sort_run *runs;
    size_t runs_len, runs_cap;
    unsigned char *out; /* write buffer */
    size_t out_len;
    struct sort_number
        *sorted; /* when all fits: the order; for texts `where` is an offset in mem */
    size_t sorted_at;
    struct sort_cursor *cursors; /* when not: one per run, and the heap over them */
    struct sort_head *heap;
    size_t heap_len;
    bool top_taken; /* the heap's first record was handed out and is to be stepped over */
};

/* Nothing is allocated before the first record. `memory_bytes` bounds the allocation (except one
 * write buffer); less than SORT_MEMORY_MIN_BYTES counts as that. */
void sortfile_init(struct sortfile *s, enum sort_kind kind, size_t memory_bytes);
void sortfile_done(struct sortfile *s);

/* FIRN_EIO: no temporary file, or no space for it. FIRN_ENOMEM. `d` has the cause and the
 * remedy. */
FIRN_MUSTUSE int sortfile_add_text(struct sortfile *s, const char *p, size_t len, uint64_t where,
                                   struct firn_diag *d);

int sortfile__make_room(struct sortfile *s, size_t record_bytes, struct firn_diag *d);

/* Inline: this runs once per ID. */
FIRN_MUSTUSE static inline int sortfile_add_number(struct sortfile *s, uint64_t value,
                                                   uint64_t where, struct firn_diag *d)
{
    if (__builtin_expect(
            s->used_bytes * 2 + 2 * sizeof(struct sort_number) > s->mem_bytes || !s->mem, 0)) {
        int r = sortfile__make_room(s, sizeof(struct sort_number), d);
        if (r != 0)
            return r;
    }
    struct sort_number *n = (struct sort_number *)(void *)(s->mem + s->used_bytes);
    n->value = value;
    n->where = where;
    s->used_bytes += sizeof *n;
    s->count++;
    return 0;
}

/* Return memory while records are being added: a second sorter needs its share. */
FIRN_MUSTUSE int sortfile_shrink(struct sortfile *s, size_t memory_bytes, struct firn_diag *d);

/* No more records come. */
FIRN_MUSTUSE int sortfile_finish(struct sortfile *s, struct firn_diag *d);

/* 1 and the next record, 0 at the end, negative on error. */
FIRN_MUSTUSE int sortfile_next(struct sortfile *s, struct sort_item *out, struct firn_diag *d);

#endif
