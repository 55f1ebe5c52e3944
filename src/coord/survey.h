/*
 * survey.h - all slots of a store at once: what INIT, recovery and FENCE decide and write.
 * See docs/protocol.md section 5. Pure: drive/setup.h makes the calls to the store.
 *
 * Slots first, meta last, so that a store with a meta record is complete. The cluster's identity is
 * decided by the process that creates the first slot: an INIT that finds it goes on with that
 * identity, so two at once make one store.
 */
#ifndef FIRN_COORD_SURVEY_H
#define FIRN_COORD_SURVEY_H

#include "coord/register.h"
#include "coord/slot.h"

struct setup_spec {                       /* a store to be made */
    const char *layout;                   /* canonical text */
    uint32_t slot_lo, slots;              /* 1..SLOTS_MAX */
    uint64_t window, max_drift, skew_max; /* ticks */
    uint64_t floor; /* no timestamp below it; 0: above all that a lost store may have granted */
};

/* FIRN_EINVAL. */
FIRN_MUSTUSE int setup_spec_check(const struct setup_spec *spec, struct firn_diag *d);

struct slot_text { /* a slot's register as it was read; len 0: absent */
    size_t len;
    char text[RECORD_TEXT_MAX];
};

struct slot_survey {
    uint32_t lo, n;         /* slots lo .. lo + n - 1 */
    struct slot_text *slot; /* n of them; the driver's, zeroed at first */
    struct nonce cluster;
    uint64_t floor;
};

/* A register of the scan; other keys are ignored. */
void survey_add(struct slot_survey *s, struct firn_slice key, struct firn_slice value);

/* Slot lo + i as a fresh read found it; len 0: absent. FIRN_EFORMAT: too long. */
FIRN_MUSTUSE int survey_set(struct slot_survey *s, uint32_t i, const char *p, size_t len,
                            struct firn_diag *d);

/* Its record. FIRN_EFORMAT. */
FIRN_MUSTUSE int survey_slot(const struct slot_survey *s, uint32_t i, struct slot_record *out,
                             struct firn_diag *d);

/* Sets s->cluster to the cluster that the slots belong to; *out_found: there is one. *out_used: a
 * slot was held at some time. FIRN_EFORMAT; FIRN_ESTORE: they belong to several clusters. */
FIRN_MUSTUSE int survey_cluster(struct slot_survey *s, bool *out_found, bool *out_used,
                                struct firn_diag *d);

/* 0, or what keeps a fence from being completed: a slot without a readable record. A fence that
 * began without this check would raise some slots, stop at the bad one, and begin again and
 * again. */
FIRN_MUSTUSE int survey_whole(const struct slot_survey *s, struct firn_diag *d);

/* Another process has fenced the store since `known_floor` was read, and the fence covers `reach`.
 * A higher floor alone does not say so: a store that went back in the middle of a fence has the new
 * meta record and the old slots. */
bool survey_fenced(const struct slot_survey *s, const struct meta_record *m, uint64_t known_floor,
                   uint64_t reach);

/* A slot for people: "free", "held", "lapsed" (held, but its window is over: the owner is dead or
 * partitioned), "retired", or "poisoned": its window ends beyond anything that a correct clock and
 * a fence could have granted. `f`: clock F; `now`: the later one of F and the store's clock. */
const char *survey_word(const struct meta_record *m, const struct slot_record *r, uint64_t f,
                        uint64_t now);

/* The meta record of a new store; `store_inc` is left to the driver. */
void survey_meta(const struct slot_survey *s, const struct setup_spec *spec,
                 const struct nonce *req, struct meta_record *out);

/* Writing up to SURVEY_BATCH_MAX slots in one transaction, again and again until all are as
 * wanted. */
#define SURVEY_BATCH_MAX 64

enum survey_wish { SURVEY_CREATE_ABSENT, SURVEY_RAISE_PRESENT, SURVEY_RAISE_ALL };

struct survey_batch {
    struct slot_survey *survey; /* borrowed */
    enum survey_wish wish;
    uint32_t at, n; /* slots at .. at + n - 1 of the survey */
    bool done[SURVEY_BATCH_MAX];

    size_t count; /* writes of this round */
    struct firn_cas cas[SURVEY_BATCH_MAX];
    uint32_t slot[SURVEY_BATCH_MAX]; /* each one's place in the survey */
    char key[SURVEY_BATCH_MAX][RECORD_KEY_BUF], text[SURVEY_BATCH_MAX][RECORD_TEXT_MAX];
};

void survey_batch_init(struct survey_batch *b, struct slot_survey *s, uint32_t at, uint32_t n,
                       enum survey_wish wish);

/* Slot `i` of the survey still has to be written. */
bool survey_batch_wants(const struct survey_batch *b, uint32_t i);

/* Add its write to the round, which began with count = 0. `f`: clock F. FIRN_EFORMAT. */
FIRN_MUSTUSE int survey_batch_add(struct survey_batch *b, uint32_t i, uint64_t f,
                                  const struct nonce *req, struct firn_diag *d);

/* The store's answer to write k. True: another process changed the slot; read it into the survey,
 * then call survey_batch_reread(). */
FIRN_MUSTUSE bool survey_batch_written(struct survey_batch *b, size_t k, int result);
void survey_batch_reread(struct survey_batch *b, size_t k);

#endif
