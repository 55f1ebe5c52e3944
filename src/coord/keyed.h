/*
 * keyed.h - numbers and IDs under a key that the client chose: a retry gets the same ones again.
 * Pure: drive/keyed.h makes the calls to the store.
 *
 * The answer to a key is in the register idem/<hash of the key>. It is created once, never
 * rewritten, and removed when it is older than the retention. It is made in one of two ways.
 *
 * IDs, and numbers of blocks in hand (range sequences): first the ID, then the register.
 * keyed_keep() creates it; if the register exists already, its content is the answer and ours is
 * burned. So a key has one answer, because a register is created once. A crash in between costs an
 * ID that no client has seen.
 *
 * Numbers straight from a sequence's record (gapless ones), where burning would leave a hole: the
 * write that takes the numbers lists the keys that they are for, in the very record (struct
 * seq_keys). Rule:
 *   (W) before a process replaces a record, every key of the record's list has its register.
 * The register's content follows from the record alone, so several processes may create it, in any
 * order and again and again. To take numbers for a key:
 *   1. know the record, by a fresh read or because this process wrote it;
 *   2. after that, read the key's register, fresh;
 *   3. if the record's list or the register has the key: that is the answer;
 *   4. else replace exactly the record of 1 by one with `next` advanced and the key in its list.
 * Claim: no key gets numbers twice from one sequence. Let record A list the key, and a process do
 * step 4 for it again, on record B. The records of a sequence are one chain, since each write names
 * the whole record that it replaces and no record comes back (its nonce). B before A: the write
 * fails, B has been replaced. B is A: step 3 found it in the list. B after A: A was replaced before
 * B was known in step 1, thus by (W) the register was there by then, and step 2 came after step 1:
 * step 3 found it. []
 * Claim: a retry leaves no hole. A key's numbers are taken by the write that lists it, and from
 * then on they are what every retry is answered with; whether the first answer arrived makes no
 * difference. []
 * Neither claim uses a clock, or the writer's identity, or that an answer of the store arrives.
 *
 * Where the store has transactions over several registers, (W) and step 4 are one: each register is
 * still compared on its own. A register of the list that exists already is as good as one that was
 * made. If the record was not the one expected, the registers of its list stay, and rightly: it was
 * written.
 *
 * A dated sequence has one record for each period, so the chain ends at midnight. Two things are
 * added: a number is answered only after its register is there and has it (keyed_keep(), so a key
 * has one answer), and before a key is served in a new period the lists of the earlier ones are
 * kept (so a retry after midnight finds the number of yesterday). Only if two servers whose clocks
 * are on different sides of midnight take numbers for the same key, one of the two is burned.
 */
#ifndef FIRN_COORD_KEYED_H
#define FIRN_COORD_KEYED_H

#include "coord/register.h"
#include "coord/sequence.h"

struct keyed {               /* one request with a key */
    struct seq_ask ask;      /* in: the key, the arguments; of a sequence also how many */
    struct idem_record idem; /* the key's answer */
    int result;              /* 0, FIRN_EREUSED, FIRN_EAGAIN: the next time, or the store's error */
    bool replayed;           /* the key had this answer before this request */
    bool kept;               /* it has its register */
    bool open;               /* batch.c's: not settled yet */
    bool looked;             /* batch.c's: it has no register */
};

/* FIRN_EREUSED, and what to do about it. */
int keyed_reused(struct firn_diag *d);

/* 0, or FIRN_EREUSED: the key was used with other arguments than these, or its record does not hold
 * 1 to `want` numbers; `want` is 0 where the key stands for IDs. */
FIRN_MUSTUSE int keyed_check(const struct idem_record *kept, uint64_t args, uint64_t want,
                             struct firn_diag *d);

/* The register's content for a key in a record's list; `period` of a dated sequence, else 0. */
void keyed_listed(const struct seq_record *r, const struct seq_keys *keys,
                  const struct seq_keyed *key, uint64_t period, struct idem_record *out);

/* The period that a sequence's name counts in, as the coordinator names such records
 * ("orders@20260101"); 0 for other names. */
uint64_t keyed_period(const char *name, size_t len);

struct keyed_text { /* a register to be created for a key in a list */
    char key[RECORD_KEY_BUF], value[320];
};

/* The writes that create the registers of a list: keys->n of them in `cas`, which borrows
 * `text`. */
void keyed_creates(const struct seq_record *r, const struct seq_keys *keys, uint64_t period,
                   struct firn_cas *cas, struct keyed_text *text);

/* Creating the registers of several requests at once. */
#define KEYED_KEEP_MAX 64

struct keyed_keep {
    size_t n;
    struct keyed *request[KEYED_KEEP_MAX];
    struct firn_cas cas[KEYED_KEEP_MAX]; /* that creates its register */
    char key[KEYED_KEEP_MAX][RECORD_KEY_BUF], value[KEYED_KEEP_MAX][RECORD_TEXT_MAX];
};

/* The writes for `request`, which holds the content in `idem`. A key that comes twice is written
 * once; all results become FIRN_EAGAIN until they are told. */
void keyed_keep_build(struct keyed_keep *k, struct keyed *const *request, size_t n);

/* The store's answer to write `i`. True: the register exists, read it and call
 * keyed_keep_read(). */
FIRN_MUSTUSE bool keyed_keep_written(struct keyed_keep *k, size_t i, int result);
void keyed_keep_read(struct keyed_keep *k, size_t i, int result, const struct idem_record *kept,
                     struct firn_diag *d);

/* Removing old registers: each call looks at one of KEYED_PARTS parts of all keys. */
#define KEYED_PARTS     256
#define KEYED_SWEEP_MAX 32

struct keyed_sweep {
    uint64_t before_s;
    size_t n;
    struct firn_cas cas[KEYED_SWEEP_MAX]; /* that remove a register */
    char key[KEYED_SWEEP_MAX][RECORD_KEY_BUF], value[KEYED_SWEEP_MAX][RECORD_TEXT_MAX];
};

/* One register of the part. False: it is to be removed and there is no room for it in this sweep.
 * A record of a newer version is left alone. */
FIRN_MUSTUSE bool keyed_sweep_add(struct keyed_sweep *w, struct firn_slice key,
                                  struct firn_slice value);

#endif
