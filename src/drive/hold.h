/*
 * hold.h - the register "hold": while it is there, no number of a sequence is given. A restored
 * backup has it, because numbers that were issued since the backup would be issued again, and only
 * an operator knows how many (docs/protocol.md section 8).
 */
#ifndef FIRN_DRIVE_HOLD_H
#define FIRN_DRIVE_HOLD_H

#include "drive/setup.h"

/* What a server tells its clients meanwhile. */
#define HOLD_TEXT                                                                            \
    "this store is a restored backup, and numbers issued since may come again: `firn admin " \
    "fence --skip N`"

FIRN_MUSTUSE int hold_read(struct firn_store *s, bool *out_held, struct firn_diag *d);
FIRN_MUSTUSE int hold_lift(struct firn_store *s, struct firn_diag *d);

/* Make a backup of what it is to be: the store that is opened from it fences itself, and holds its
 * sequences. `e->store` is the copy. */
FIRN_MUSTUSE int hold_backup(const struct setup *e, struct firn_diag *d);

#endif
