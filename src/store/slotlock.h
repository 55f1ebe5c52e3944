/*
 * slotlock.h - one lock byte per slot in a side file: a byte that can be locked has no living
 * holder. Open file description locks: they end with the last descriptor, so also by kill -9, and
 * they hold between two handles of one process too. Nothing but speed rests on them (a wrong
 * reclaim costs order, never a duplicate: docs/coordination.md), so a deleted side file is no
 * danger.
 */
#ifndef FIRN_STORE_SLOTLOCK_H
#define FIRN_STORE_SLOTLOCK_H

#include <stdint.h>

#include "firn/error.h"

/* Open or create `<store_path>.slots`; *out_fd is the caller's to close, which drops its locks. */
FIRN_MUSTUSE int slot_lock_open(const char *store_path, int *out_fd, struct firn_diag *d);

/* 0: this descriptor holds it from now on, or did before. FIRN_ECONFLICT: another one does. */
FIRN_MUSTUSE int slot_lock_try(int fd, uint32_t slot);
void slot_lock_release(int fd, uint32_t slot);

#endif
