/*
 * sequence.h - ticket numbers (docs/protocol.md section 8): the next record, and what it grants.
 * Pure.
 *
 * seq_op is one write in flight on one sequence: build it on the text that was read, send it, tell
 * the outcome. n numbers are one compare-and-set next -> next + n * step. seq_cache is the double
 * buffer of a range sequence: it belongs to one thread, which asks the coordinator for the next
 * block in time.
 *
 * A write may also give numbers to keys (keyed.h). They come behind those without a key, and the
 * record lists them: so every process that knows the record knows them, whichever wrote it.
 */
#ifndef FIRN_COORD_SEQUENCE_H
#define FIRN_COORD_SEQUENCE_H

#include "coord/record.h"

#define SEQ_STEP_MAX      1000000
#define SEQ_NUMBER_MAX    (INT64_MAX - SEQ_STEP_MAX) /* the number after the last is a number too */
#define SEQ_TAKE_MAX      1000000                    /* numbers in one write */
#define SEQ_BLOCK_MIN     100
#define SEQ_BLOCK_MAX     1000000

#define TICKET_CURSOR_MAX (RECORD_NAME_MAX + 2) /* where a list of sequences goes on */

struct seq_range { /* first, first + step, ... : `count` numbers */
    uint64_t first, step, count;
};

static inline uint64_t seq_range_last(const struct seq_range *r)
{
    return r->first + (r->count - 1) * r->step;
}

struct seq_spec { /* zero means the default */
    enum seq_mode mode;
    uint64_t start;  /* default 1 */
    uint64_t step;   /* default 1 */
    uint64_t offset; /* numbers are offset modulo step */
    uint64_t max;    /* default SEQ_NUMBER_MAX */
    const char *note;
    uint64_t
        scope_max; /* not created if there are so many whose names begin with `scope`; 0: any */
    const char *scope;
    bool resume; /* where it was deleted: go on above its numbers, wherever start is */
};

/* The record of a new sequence; FIRN_EINVAL with the cause in `d`. */
FIRN_MUSTUSE int seq_new(const struct seq_spec *spec, const struct nonce *req,
                         struct seq_record *out, struct firn_diag *d);

/* Up to `want` numbers: as many as are left. FIRN_EOVERFLOW: none is. FIRN_EINVAL: want is 0. */
FIRN_MUSTUSE int seq_take(const struct seq_record *old, uint64_t want, const struct nonce *req,
                          struct seq_record *out_next, struct seq_range *out);

/* How many numbers are left. */
uint64_t seq_left(const struct seq_record *r);

/* Pass over the next n numbers, or over all that are left. False: there is nothing to pass over. */
FIRN_MUSTUSE bool seq_skip(struct seq_record *r, uint64_t n, const struct nonce *req);

/* A deleted sequence keeps its record, so that none of its numbers comes again: only `max` becomes
 * 0, which no other record has. Every reader then finds no number left in it. */
static inline bool seq_deleted(const struct seq_record *r)
{
    return r->max == 0;
}

void seq_delete(struct seq_record *r, const struct nonce *req);

/* The record of a deleted sequence that is created again. What servers may have kept of it must
 * stay the same: mode, step, offset and note. FIRN_ECONFLICT: they differ, or the first number
 * would be one that may have been given; the cause is in `d`. */
FIRN_MUSTUSE int seq_renew(const struct seq_record *deleted, const struct seq_spec *spec,
                           const struct nonce *req, struct seq_record *out, struct firn_diag *d);

#define SEQ_MINE 16

struct seq_ask { /* numbers for a key */
    struct nonce key;
    uint64_t args;
    uint64_t want;
    bool partial; /* fewer are fine where the sequence ends */
    bool listed;  /* out: the write has it */
};

struct seq_op {
    struct seq_record base; /* the record as last known */
    struct seq_keys keys;   /* of base */
    bool kept;              /* these have registers of their own: base may be replaced */
    struct seq_record next; /* the record in `value` */
    struct seq_keys next_keys;
    char base_text[RECORD_TEXT_MAX], value[RECORD_TEXT_MAX];
    size_t base_len, value_len; /* base_len 0: not known, read it first */
    struct {
        struct nonce req;
        struct seq_range range; /* without a key; may be none */
    } mine[SEQ_MINE];           /* own writes whose outcome is open */
    uint32_t mine_count;
    uint8_t writer[SEQ_WRITER_NAME]; /* the first bytes of its nonces; drawn with the first nonce */
    bool named;
};

enum seq_verdict {
    SEQ_GRANTED,  /* *out holds the numbers */
    SEQ_LATE,     /* it does, but higher ones were given since: only for requests that waited */
    SEQ_READ_IT,  /* read the record (fresh) and call seq_op_read */
    SEQ_TRY_AGAIN /* build again with a new nonce */
};

void seq_op_init(struct seq_op *op);

/* Take in the text of the record. FIRN_EFORMAT. With a write open: SEQ_GRANTED when the record is
 * the work of one of them, SEQ_LATE when one landed and other processes wrote after it (the record
 * names the last write of each writer), else SEQ_TRY_AGAIN. Numbers of a write that landed are lost
 * only if SEQ_WRITERS other processes wrote before this read: a hole, never a repeat. */
FIRN_MUSTUSE int seq_op_read(struct seq_op *op, const char *p, size_t len,
                             enum seq_verdict *out_verdict, struct seq_range *out,
                             struct firn_diag *d);

/* Build the write (base_text -> value) for up to `want` numbers. FIRN_EOVERFLOW: none left;
 * FIRN_EAGAIN: base is not known, read first. The request's nonce is `fresh` with the writer's
 * name. */
FIRN_MUSTUSE int seq_op_build(struct seq_op *op, uint64_t want, const struct nonce *fresh);

/* The same with numbers for keys, as many of `ask` as fit into a record; `want` may be 0. None of
 * them may be among op->keys. One that is not `listed` afterwards found no room in the record, no
 * numbers left, or its key taken by another of them. */
FIRN_MUSTUSE int seq_op_build_keyed(struct seq_op *op, uint64_t want, struct seq_ask *const *ask,
                                    size_t n, uint64_t at_s, const struct nonce *fresh);

/* The numbers that the known record gives to a key, or NULL. */
const struct seq_keyed *seq_op_find(const struct seq_op *op, const struct nonce *key);

/* The store's answer to the write. 0 makes value the new base. */
enum seq_verdict seq_op_done(struct seq_op *op, int result, struct seq_range *out);

/* Build the write that gives `rest` back: numbers that no request got, up to the record's next one,
 * which becomes their first. The compare proves that none was taken since. False: they are not the
 * last ones, or the outcome of a write is open, or keys of the record may have no register. */
FIRN_MUSTUSE bool seq_op_give_back(struct seq_op *op, const struct seq_range *rest,
                                   const struct nonce *fresh);

struct seq_cache {
    struct seq_range cur, spare;
    uint64_t block;    /* size of the block that `cur` was, to see when half of it is used */
    uint64_t want;     /* size to ask for next */
    uint64_t began_ms; /* when cur was begun, to measure demand */
    uint64_t need;     /* a run of numbers that both blocks are too short for; 0: none */
    bool asked;        /* a block is under way */
};

void seq_cache_init(struct seq_cache *c);

/* Up to `max` numbers of one piece. 0 numbers: FIRN_EAGAIN, wait for seq_cache_put. */
FIRN_MUSTUSE int seq_cache_some(struct seq_cache *c, uint64_t max, uint64_t now_ms,
                                struct seq_range *out);
/* Exactly n in a row (INCRBY); may leave a gap behind. */
FIRN_MUSTUSE int seq_cache_exactly(struct seq_cache *c, uint64_t n, uint64_t now_ms,
                                   struct seq_range *out);

/* How many numbers to fetch now, 0 for none. The answer counts as asked: fetch them, or call
 * seq_cache_failed. */
uint64_t seq_cache_ask(struct seq_cache *c);
void seq_cache_put(struct seq_cache *c, const struct seq_range *r, uint64_t now_ms);
void seq_cache_failed(struct seq_cache *c);

/* All numbers in hand that are in one piece with the last one; none are in hand afterwards. */
struct seq_range seq_cache_empty(struct seq_cache *c);

#endif
