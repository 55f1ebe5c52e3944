/*
 * record.h - the records in the registers: meta, slot/<n>, seq/<name>, idem/<key>. Pure functions.
 * A record is text, one `name=value` line a field, all fields, in one order:
 *     firn=slot 1
 *     cluster=00112233445566778899aabbccddeeff
 *     epoch=7
 *     ...
 * Only one text exists for each record, so comparing whole values is comparing records. The parser
 * takes nothing else: an unreadable slot is an error, never "free".
 */
#ifndef FIRN_COORD_RECORD_H
#define FIRN_COORD_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "firn/error.h"

#define RECORD_TEXT_MAX   1024 /* bytes without NUL; a store may hold longer ones */
#define RECORD_NAME_MAX   64   /* a node's or a sequence's name */
#define RECORD_LAYOUT_MAX 255
#define RECORD_INC_MAX    63
#define RECORD_NOTE_MAX   127
#define RECORD_KEY_BUF    (8 + RECORD_NAME_MAX + 1)

struct nonce { /* 128 bits from the kernel: incarnations, requests, clusters; all zero is "none" */
    uint8_t b[16];
};

#define NONCE_TEXT_BUF 33
void nonce_text(const struct nonce *n, char out[NONCE_TEXT_BUF]); /* 32 hex digits and a NUL */

static inline bool nonce_eq(const struct nonce *a, const struct nonce *b)
{
    return memcmp(a->b, b->b, sizeof a->b) == 0;
}

/* Texts below: 1.. bytes 0x21..0x7e (names and notes may be empty, and notes may hold spaces), with
 * NUL. Ticks are the layout's time unit since its epoch, at most 2^63-1 as all numbers here. */
struct meta_record {
    struct nonce cluster;
    char layout[RECORD_LAYOUT_MAX + 1];
    uint64_t slot_lo, slot_hi;            /* slots are slot_lo <= n < slot_hi */
    uint64_t window, max_drift, skew_max; /* ticks */
    uint64_t floor;                       /* no slot was granted below it since the last FENCE */
    char store_inc[RECORD_INC_MAX + 1];   /* firn_store_identity() when it was written */
    struct nonce req;
};

enum slot_hold { SLOT_FREE, SLOT_HELD, SLOT_RETIRED };

struct slot_record {
    struct nonce cluster;
    uint64_t epoch;
    enum slot_hold state;
    struct nonce owner; /* incarnation; none unless held */
    char name[RECORD_NAME_MAX + 1];
    uint64_t from, until; /* ticks: the last grant is [from, until) */
    uint64_t at;          /* the owner's F when it wrote this */
    struct nonce req;
};

enum seq_mode { SEQ_GAPLESS, SEQ_RANGE };

/* The last write of each of the latest writers, so that one whose answer was lost can tell whether
 * its write landed, also after other processes have written: the first 8 bytes of the request's
 * nonce, of which the first 4 name the writer (sequence.h). */
#define SEQ_WRITERS     16
#define SEQ_WRITER_NAME 4
struct seq_writer {
    uint8_t b[8];
};

struct seq_record {
    enum seq_mode mode;
    uint64_t start; /* the first number given, or the least above it that fits offset and step */
    uint64_t step, offset;          /* every number is offset modulo step; offset < step */
    uint64_t max;                   /* the last number that may be given */
    uint64_t next;                  /* the next number; above max: exhausted */
    char note[RECORD_NOTE_MAX + 1]; /* the caller's: a format, a date pattern */
    struct nonce req;
    uint32_t writers;                      /* how many of them */
    struct seq_writer writer[SEQ_WRITERS]; /* the latest first */
};

/* Numbers that a client asked for with a key of its own (keyed.h says what for). The key is known
 * by 128 bits of a hash, and so is what was asked for besides, by 48. */
struct seq_keyed {
    struct nonce key;
    uint64_t args;
    uint64_t first, count;
};

/* The keyed numbers that the last write to a sequence gave out: the last line of its record. The
 * record's version tells what it has: 1 neither writers nor keys, 2 keys, 3 writers, 4 both. */
#define SEQ_KEYS_MAX    16 /* fewer where long numbers leave no room for so many */
#define RECORD_ARGS_MAX ((UINT64_C(1) << 48) - 1)
struct seq_keys {
    uint32_t n;
    uint64_t at; /* Unix seconds of that write */
    struct seq_keyed key[SEQ_KEYS_MAX];
};

/* What a key stands for, in a register of its own: numbers of a sequence, or IDs as texts. */
#define IDEM_IDS_MAX 760 /* twenty UUIDs */
struct idem_record {
    uint64_t args;
    uint64_t first, step, count; /* first, step: 0 for texts */
    uint64_t period;             /* of a dated sequence, else 0 */
    uint64_t at;                 /* Unix seconds */
    char ids[IDEM_IDS_MAX + 1];  /* texts with a space between; empty for numbers */
    struct nonce req;
};

/* The text and its length; the structs are taken as valid (record_check_name for names). */
size_t meta_encode(const struct meta_record *r, char out[RECORD_TEXT_MAX]);
size_t slot_encode(const struct slot_record *r, char out[RECORD_TEXT_MAX]);
size_t seq_encode(const struct seq_record *r, char out[RECORD_TEXT_MAX]);
size_t idem_encode(const struct idem_record *r, char out[RECORD_TEXT_MAX]);

/* With the keyed numbers; 0: they do not fit into one record. */
size_t seq_encode_keyed(const struct seq_record *r, const struct seq_keys *keys,
                        char out[RECORD_TEXT_MAX]);

/* FIRN_EFORMAT, with the place in `d`; also for a newer version of the record. */
FIRN_MUSTUSE int meta_parse(const char *p, size_t len, struct meta_record *out,
                            struct firn_diag *d);
FIRN_MUSTUSE int slot_parse(const char *p, size_t len, struct slot_record *out,
                            struct firn_diag *d);
FIRN_MUSTUSE int seq_parse(const char *p, size_t len, struct seq_record *out, struct firn_diag *d);
FIRN_MUSTUSE int seq_parse_keyed(const char *p, size_t len, struct seq_record *out,
                                 struct seq_keys *out_keys, struct firn_diag *d);
FIRN_MUSTUSE int idem_parse(const char *p, size_t len, struct idem_record *out,
                            struct firn_diag *d);

/* Keys: "meta", "slot/00012" (so that byte order is slot order), "seq/<name>", "idem/<32 hex
 * digits>". Returns the length. */
#define META_KEY     "meta"
#define META_KEY_LEN 4
size_t slot_key(uint32_t slot, char out[RECORD_KEY_BUF]);
size_t seq_key(const char *name, size_t len, char out[RECORD_KEY_BUF]);
size_t idem_key(const struct nonce *key, char out[RECORD_KEY_BUF]);
FIRN_MUSTUSE int slot_key_parse(const char *p, size_t len, uint32_t *out_slot);

/* A name for a node or a sequence: 1..RECORD_NAME_MAX of A-Z a-z 0-9 . _ : - and not more; a
 * sequence is a path segment in URLs, so nothing that would need escaping. RECORD_INNER is for
 * names that firn makes of them (the counter of a dated sequence's period), so that no user's name
 * can be one. */
#define RECORD_INNER '@'
bool record_name_ok(const char *p, size_t len);
bool record_user_name_ok(const char *p, size_t len);

/* The same for a text with NUL: 0, or FIRN_EINVAL with the rule in `d`. */
FIRN_MUSTUSE int record_user_name_check(const char *name, struct firn_diag *d);

/* FNV-1a, for small tables of names that were used last. */
static inline uint32_t record_name_hash(const char *p, size_t len)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (unsigned char)p[i]) * 16777619u;
    return hash;
}

#endif
