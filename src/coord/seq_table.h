/*
 * seq_table.h - all that a process knows of each sequence it uses, in one entry per register: the
 * sequence's constants, the blocks in hand of a range sequence, the period of a dated one, and the
 * last record with the writes that are still open. Pure; the memory is the driver's.
 *
 * One thread (the coordinator) owns the table. Other threads may call seq_table_take() and
 * seq_table_peek() if all of them, and the owner for the calls marked "locked", hold one lock. What
 * those two read is written by locked calls only; all other fields belong to the owner alone.
 */
#ifndef FIRN_COORD_SEQ_TABLE_H
#define FIRN_COORD_SEQ_TABLE_H

#include "coord/sequence.h"

enum {
    SEQ_TABLE_MAX = 1024, /* entries; the least recently used one makes room */
    SEQ_BUCKETS = 2048,
};

struct seq_entry {
    /* Shared. */
    char name[RECORD_NAME_MAX + 1];
    uint32_t name_len;        /* 0: unused */
    uint16_t next_;           /* in its bucket: index + 1; 0: the last */
    bool known;               /* the constants below are those of the sequence */
    bool dated;               /* it begins anew with each period, in a register of its own */
    bool ahead;               /* a range sequence that is not dated: blocks are fetched ahead */
    bool hot_;                /* numbers were taken since the owner last looked */
    struct seq_cache cache;   /* its blocks in hand */
    struct seq_record record; /* the constants: mode, start, step, offset, max, note */

    /* The owner's. */
    uint32_t reset, digits, period; /* of a dated one; period 0: none was entered */
    uint32_t settled;      /* in this period the keys of earlier ones have got their registers */
    uint64_t used, pinned; /* when, in calls and in turns */
    struct seq_range left; /* numbers granted that no request waits for, */
    struct nonce left_of;  /* as op.base was when it had this `req` */
    struct seq_op op;      /* the record as last known, and the open writes */
};

struct seq_table {
    struct seq_entry *entry; /* `max` of them, zeroed at first */
    size_t max, count;
    uint64_t calls, turn;
    uint16_t bucket[SEQ_BUCKETS];
};

/* `max` is at most SEQ_TABLE_MAX. */
void seq_table_init(struct seq_table *t, struct seq_entry *entry, size_t max);

/* The entry of a register, or NULL. */
struct seq_entry *seq_table_find(struct seq_table *t, const char *name, size_t len);

/* Locked. The same; a new one may replace the least recently used of those that are not pinned, one
 * without numbers in flight if it can. NULL: all are pinned. */
struct seq_entry *seq_table_open(struct seq_table *t, const char *name, size_t len);

/* Locked. The constants of a sequence, from its record. */
void seq_table_describe(struct seq_entry *e, const struct seq_record *r);

/* Locked. The sequence was deleted: nothing that is known of it counts any more but its open
 * writes. */
void seq_table_forget(struct seq_table *t, const char *name, size_t len);

/* The entry stays where it is until the end of the turn. */
void seq_table_pin(struct seq_table *t, struct seq_entry *e);
void seq_table_end_turn(struct seq_table *t);

/* Numbers of a grant that no request took: the next commit of that sequence takes them first,
 * unless another process has taken higher ones by then. */
void seq_table_return(struct seq_entry *e, struct seq_range rest);

/* The numbers in hand are these, of the record as last known. */
void seq_table_keep(struct seq_entry *e, struct seq_range left);

enum seq_hand {
    SEQ_HAND_TAKEN,   /* *out holds numbers */
    SEQ_HAND_SHORT,   /* a range sequence, with too few in hand, or none was wanted */
    SEQ_HAND_GAPLESS, /* a gapless sequence that is not dated: it never has any */
    SEQ_HAND_UNKNOWN, /* the table does not have it */
    SEQ_HAND_DATED,
};

/* Locked, any thread. `want` numbers in one piece, or with `some` up to as many; 0: none, only say
 * what it is. `out_record` may be NULL. Where *out_fetch becomes true, the caller has the owner
 * fetch the next block. */
FIRN_MUSTUSE enum seq_hand seq_table_take(struct seq_table *t, const char *name, size_t len,
                                          uint64_t want, bool some, uint64_t now_ms,
                                          struct seq_range *out, struct seq_record *out_record,
                                          bool *out_fetch);

/* Locked, any thread. The next number that would be given, without taking it. FIRN_ENOENT: none is
 * in hand. */
int seq_table_peek(struct seq_table *t, const char *name, size_t len, uint64_t *out);

/* Locked. Forget the numbers in hand of all sequences: the store that granted them is no longer
 * known to be the one that is there. */
void seq_table_drop(struct seq_table *t);

/* Locked. A block arrived (or, with count 0, none did). `fresh`: a job was given lower numbers of
 * this block, so older numbers in hand are dropped; otherwise numbers would fall. */
void seq_table_put(struct seq_entry *e, const struct seq_range *block, bool fresh, uint64_t now_ms);

#endif
