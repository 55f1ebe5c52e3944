/* A log file from a disk: read whole or refused; what was read, written again, is read the same. */
#include "raft/log_format.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void end(struct log_file *f, struct buf *b)
{
    uint64_t at;
    char zeros[LOG_SECTOR] = { 0 };
    if (log_batch_end(f, b, &at) != 0)
        abort();
    buf_add(b, zeros, sizeof zeros);
}

static void same(const struct log_content *c)
{
    struct log_file f;
    struct log_content again;
    struct buf b;
    buf_init(&b, SIZE_MAX / 4);
    log_begin(&f, &b, c->number, 7);
    log_add_term(&b, c->term, c->vote);
    log_add_snapshot(&b, &c->snapshot, c->first);
    for (size_t i = 0; i < c->entries; i++)
        log_add_entry(&b, &c->entry[i]);
    log_add_ready(&b);
    end(&f, &b);
    if (log_read(b.p, b.len, &again, NULL) != 0 || again.first != c->first || again.torn ||
        again.entries != c->entries || again.term != c->term || again.vote != c->vote ||
        again.snapshot.number != c->snapshot.number || again.snapshot.crc != c->snapshot.crc)
        abort();
    for (size_t i = 0; i < c->entries; i++)
        if (again.entry[i].index != c->first + i || again.entry[i].term != c->entry[i].term ||
            again.entry[i].len != c->entry[i].len)
            abort();
    log_content_done(&again);
    buf_done(&b);
}

static void look(const char *p, size_t len)
{
    struct log_content c;
    if (log_read(p, len, &c, NULL) == 0) {
        same(&c);
        log_content_done(&c);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_file f;
    struct core_snapshot s;
    struct buf b;
    look((const char *)data, size);
    (void)!snapshot_read((const char *)data, size, NULL, &s, NULL);
    /* The input as the records of a batch whose checksums are right. */
    buf_init(&b, SIZE_MAX / 4);
    log_begin(&f, &b, 1, 7);
    buf_add(&b, data, size);
    end(&f, &b);
    look(b.p, b.len);
    buf_done(&b);
    return 0;
}
