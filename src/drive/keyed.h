/*
 * keyed.h - numbers and IDs under a key that the client chose, so that a retry gets the same ones again.
 * Blocking calls for the coordinator thread.
 *
 * What a key stands for is in the register idem/<hash of the key>. It is created once, never rewritten,
 * and removed when it is older than the retention. Two ways lead there.
 *
 * IDs, and numbers of blocks in hand (range sequences): first the ID, then the register. keyed_keep()
 * creates it; if another one is there already, that one is the answer and ours is burned. So a key has
 * one answer, because a register is created once. A crash in between costs an ID that nobody has seen.
 *
 * Numbers straight from a sequence's record (gapless ones), where burning would leave a hole: the write
 * that takes the numbers lists the keys that they are for, in the very record (struct seq_keys). Rule:
 *   (W) whoever replaces a record first sees to it that every key of its list has its register.
 * The register's content follows from the record alone, so several may do that, in any order and again
 * and again. To take numbers for a key:
 *   1. know the record, by a fresh read or because one wrote it;
 *   2. after that, read the key's register, fresh;
 *   3. if the record's list or the register has the key: that is the answer;
 *   4. else replace exactly the record of 1 by one with `next` advanced and the key in its list.
 * Claim: no key gets numbers twice from one sequence. Let record A list the key, and somebody do step 4
 * for it again, on record B. The records of a sequence are one chain, since each write names the whole
 * record that it replaces and no record comes back (its nonce). B before A: the write fails, B has been
 * replaced. B is A: step 3 found it in the list. B after A: A was replaced before B was known in step 1,
 * thus by (W) the register was there by then, and step 2 came after step 1: step 3 found it. []
 * Claim: a retry leaves no hole. A key's numbers are taken by the write that lists it, and from then on
 * they are what every retry is answered with; whether the first answer arrived makes no difference. []
 * Neither uses a clock, or asks who wrote what, or that an answer of the store arrives.
 *
 * Where the store has transactions over several registers, (W) and step 4 are one: each register is still
 * compared on its own. A register of the list that is there already is as good as one that was made. If
 * the record was not the one expected, the registers of its list stay, and rightly: it was written.
 *
 * A dated sequence has one record for each period, so the chain ends at midnight. Two things are added: a
 * number is answered only after its register is there and has it (keyed_keep(), so a key has one answer),
 * and before a key is served in a new period the lists of the earlier ones are kept (so a retry after
 * midnight finds the number of yesterday). Only if two servers whose clocks are on different sides of
 * midnight take numbers for the same key, one of the two is burned.
 */
#ifndef FIRN_DRIVE_KEYED_H
#define FIRN_DRIVE_KEYED_H

#include "coord/sequence.h"
#include "store/store.h"

struct keyed {               /* one request with a key */
    struct seq_ask ask;      /* in: the key, the arguments; of a sequence also how many */
    struct idem_record idem; /* what the key stands for */
    int result;    /* 0, FIRN_EREUSED, FIRN_EAGAIN: the next time, or what the store said */
    bool replayed; /* the key has stood for it before this request */
    bool kept;     /* it has its register */
    bool open;     /* ticket.c's: not settled yet */
    bool looked;   /* ticket.c's: it has no register */
};

/* What the key stands for. FIRN_ENOENT: nothing (any more). */
FIRN_MUSTUSE int keyed_read(struct firn_store *s, const struct nonce *key, struct idem_record *out,
                            struct firn_diag *d);

/* FIRN_EREUSED, and what to do about it. */
int keyed_reused(struct firn_diag *d);

/* 0, or FIRN_EREUSED: the key was used with other arguments than these. */
FIRN_MUSTUSE int keyed_check(const struct idem_record *kept, uint64_t args, struct firn_diag *d);

/* The register's content for a key in a record's list; `period` of a dated sequence, else 0. */
void keyed_listed(const struct seq_record *r, const struct seq_keys *keys,
                  const struct seq_keyed *key, uint64_t period, struct idem_record *out);

struct keyed_text { /* a register to be created for a key in a list */
    char key[RECORD_KEY_BUF], value[320];
};

/* The writes that create the registers of a list: keys->n of them, into `cas` with `text` behind. */
void keyed_creates(const struct seq_record *r, const struct seq_keys *keys, uint64_t period,
                   struct firn_cas *cas, struct keyed_text *text);

/* See to it that every key of the list has its register. 0: they have; else some may not. */
FIRN_MUSTUSE int keyed_flush(struct firn_store *s, const struct seq_record *r,
                             const struct seq_keys *keys, uint64_t period, struct firn_diag *d);

/* Create the registers of `keep`, with what `idem` says; afterwards it says what the key does stand for. At
 * most KEYED_KEEP_MAX, in one transaction where the store has them. A key that is there twice gets
 * FIRN_EAGAIN the second time. After an error of the store keep it again, as it was. */
#define KEYED_KEEP_MAX 64
void keyed_keep(struct firn_store *s, struct keyed *const *keep, size_t n, struct firn_diag *d);

/* Removes registers that were made before `before_s`: some of one of KEYED_PARTS parts that all keys are
 * divided into, so that a call takes little time. True in *out_more: the part has more of them. */
#define KEYED_PARTS     256
#define KEYED_SWEEP_MAX 32
FIRN_MUSTUSE int keyed_sweep(struct firn_store *s, uint32_t part, uint64_t before_s,
                             size_t *out_removed, bool *out_more, struct firn_diag *d);

#endif
