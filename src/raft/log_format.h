/*
 * log_format.h - the bytes of a member's log file and of its snapshot file. No I/O: the disk, the
 * simulator and the tests give and take buffers.
 *
 * A log file is self-contained and is a row of batches, then zeros. Each batch is one write, begins
 * at a sector and is padded with zeros to whole sectors:
 *   u32 magic, u32 CRC-32C of the rest of the head
 *   u64 salt of the file, u64 number of the batch: 0, 1, 2, ...
 *   u32 length of the records, u32 sectors of the batch that are all zeros, u32 CRC-32C of all
 *   sectors behind the head, u32 0                         (big-endian; 40 bytes)
 *   records
 * A batch counts as a whole or not at all. The salt is random for each file, so that bytes of an
 * older file are never taken for a batch.
 *
 * Records: FILE (the first one of a file), TERM (term and vote), SNAPSHOT (which one the log is
 * based on from here on, and the first entry that stays), TRUNCATE, ENTRY, READY (all that the file
 * was begun with is before it). A file is written under a temporary name up to READY, synced and
 * renamed; so a file without READY is damaged.
 *
 * Torn or damaged? A disk writes whole sectors, each sector of the file is written once, over
 * zeros, and a batch only after the one before it is synced. So a batch that a power cut
 * interrupted has more sectors that are zeros than its head says (or no head at all: its first
 * sector is zeros), and no batch behind it. It was never acknowledged and does not count. Anything
 * else that is not a valid batch is damage. The zeros are synced before a batch is written over
 * them, at least one sector more than the batch needs (log_room()): a file that ends earlier was
 * truncated from outside, which is damage, too.
 */
#ifndef FIRN_RAFT_LOG_FORMAT_H
#define FIRN_RAFT_LOG_FORMAT_H

#include "raft/core/core.h"
#include "wire/buf.h"

enum {
    LOG_SECTOR = 512,
    LOG_CHUNK = 1 << 20, /* a file grows by this many zeros, or a multiple */
    LOG_ENTRY_HEAD = 24, /* bytes of an ENTRY record beside the entry's */
    LOG_SNAPSHOT_HEAD_MAX = 64 + CORE_CONFIG_BYTES_MAX, /* of snapshot_head() */
};

/* ---- writing: log_begin() or log_batch_begin(), log_add_...(), log_batch_end() ---- */

struct log_snapshot { /* names a snapshot file in the log */
    uint64_t number;  /* of the file; 0: there is no snapshot */
    uint64_t index, term;
    uint64_t len; /* of the state in it */
    uint32_t crc; /* of the file's bytes behind its first sums: snapshot_head() */
};

struct log_file { /* where the next batch goes */
    uint64_t salt;
    uint64_t batches; /* so many are in the file */
    uint64_t end;     /* offset of the next batch: where log_batch_end()'s bytes have to go */
};

/* Begins batch 0 of a new file, with the record FILE. */
void log_begin(struct log_file *f, struct buf *b, uint64_t number, uint64_t salt);
/* Begins a later batch: `b` is emptied. */
void log_batch_begin(struct buf *b);

void log_add_term(struct buf *b, uint64_t term, uint64_t vote);
/* Entries before `first` go; those from there on stay. */
void log_add_snapshot(struct buf *b, const struct log_snapshot *s, uint64_t first);
void log_add_truncate(struct buf *b, uint64_t from);
void log_add_entry(struct buf *b, const struct core_entry *e);
void log_add_ready(struct buf *b);

/* Ends the batch: `b` is what has to be written at *out_offset, whole sectors. FIRN_ENOMEM: `b` has
 * failed; nothing has changed. */
FIRN_MUSTUSE int log_batch_end(struct log_file *f, struct buf *b, uint64_t *out_offset);

/* The size that the file must have, zeros that are synced, before a batch that ends at `end` is
 * written. */
uint64_t log_room(uint64_t end);

/* Length of the ENTRY record at p, which log_add_entry() has written; *out_index: its index. */
size_t log_entry_size(const char *p, uint64_t *out_index);

/* ---- reading ---- */

struct log_content {
    uint64_t number; /* of the file */
    uint64_t term, vote;
    struct log_snapshot snapshot;
    uint64_t first;           /* index of entry[0], or of the next entry */
    struct core_entry *entry; /* its bytes are borrowed from the file's */
    size_t entries, cap_;
    bool torn;          /* a batch at the end was not written completely: left out */
    struct log_file at; /* the end of the valid batches; not to be continued after `torn` */
};

/* FIRN_EFORMAT: damaged, indexes with a hole, a term that goes back: `d` says where.
 * FIRN_ENOMEM. */
FIRN_MUSTUSE int log_read(const char *p, size_t len, struct log_content *out, struct firn_diag *d);
void log_content_done(struct log_content *c);

/* What core_new() takes. `snapshot` is the one that c->snapshot names, or NULL. All is borrowed. */
void log_state(const struct log_content *c, const struct core_snapshot *snapshot,
               struct core_saved_state *out);

/* ---- the snapshot's file: a head, then the bytes of the state ---- */

/* Writes the head into `b`, and what the log has to say about it into *out. FIRN_ENOMEM. */
FIRN_MUSTUSE int snapshot_head(struct buf *b, uint64_t number, const struct core_snapshot *s,
                               struct log_snapshot *out);

/* `named`: what the log says; NULL: not compared. *out borrows the bytes. FIRN_EFORMAT. */
FIRN_MUSTUSE int snapshot_read(const char *p, size_t len, const struct log_snapshot *named,
                               struct core_snapshot *out, struct firn_diag *d);

#endif
