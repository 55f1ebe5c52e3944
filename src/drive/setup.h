/*
 * setup.h - INIT, recovery, FENCE and RETIRE on a store (docs/protocol.md section 5).
 * Blocking; for the lease and for operators. coord/survey.h decides. Every operation is made of
 * single compare-and-swaps that may be repeated: one that was interrupted, or that two processes do
 * at once, is begun again and ends the same.
 */
#ifndef FIRN_DRIVE_SETUP_H
#define FIRN_DRIVE_SETUP_H

#include "coord/survey.h"
#include "store/store.h"

struct setup { /* the caller and its time; all borrowed */
    struct firn_store *store;
    uint64_t f; /* clock F now, in ticks of the layout */
    uint64_t s; /* the store's own clock in ticks; 0: it has none */
    /* The caller's memory, which a store that went back may have lost: the highest floor it ever
     * saw, and the end of its own window. Both 0 for an operator. */
    uint64_t floor, reach;
    void (*random)(void *user, void *out, size_t len);
    void *user;
};

/* The meta record, read fresh. FIRN_ENOENT, FIRN_EFORMAT. `rec` (may be NULL) receives it as it
 * was. */
FIRN_MUSTUSE int setup_read_meta(struct firn_store *s, struct meta_record *out,
                                 struct firn_record *rec, struct firn_diag *d);

/* Create every record. FIRN_ECONFLICT: meta exists already. FIRN_ENOENT: there is no meta, but
 * there are slots that were in use: the store is damaged, see setup_recover. Called again after an
 * error, it continues. */
FIRN_MUSTUSE int setup_init(const struct setup *e, const struct setup_spec *spec,
                            struct firn_diag *d);

/* Repair a store that lost records: missing slots are created at the floor, the other slots are
 * raised to it, meta is made if it is missing. Every user of the store must be stopped. */
FIRN_MUSTUSE int setup_recover(const struct setup *e, const struct setup_spec *spec,
                               struct firn_diag *d);

/* Raise every slot above all grants that the store may have forgotten. `known_floor` is the floor
 * of the meta record that the caller saw before it found a reason: when another process has fenced
 * since, and that covers the caller's own window, nothing more is done. *out_raised (may be NULL):
 * it was done here. FIRN_EAGAIN: other processes keep writing. */
FIRN_MUSTUSE int setup_fence(const struct setup *e, uint64_t known_floor, bool *out_raised,
                             struct firn_diag *d);

/* Take a slot out of use for good: one that a wrong clock left in the far future, for example. A
 * held slot only with `force`: its holder, if it lives, uses up its window and then takes another
 * slot. FIRN_ECONFLICT: it is held, or was just changed. */
FIRN_MUSTUSE int setup_retire(const struct setup *e, uint32_t slot, bool force,
                              struct firn_diag *d);

#endif
