/*
 * slotlock.h - which slots are in use, in two places.
 * - One lock byte per slot in a side file of the store: a byte that can be locked has no living
 *   holder. Open file description locks: they end with the last descriptor, so also by kill -9, and
 *   they hold between two handles of one process too.
 * - One name per slot that is bound to a socket, without a file, for the whole machine: so a copy
 *   of a store, or another new one, that is used on the same machine takes other slots. Only for
 *   layouts with many slots: where there are few, strangers would take them from each other.
 * Nothing but speed rests on the bytes (a wrong reclaim costs order, never a duplicate:
 * docs/coordination.md), so a deleted side file is no danger.
 *
 * The side file also says at which boot, of which machine, the store was last used, and since when.
 * At another one it may be a clone, while the original is in use elsewhere.
 */
#ifndef FIRN_STORE_SLOTLOCK_H
#define FIRN_STORE_SLOTLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "firn/error.h"
#include "store/machine.h"

struct slot_lock {
    int fd;   /* -1: not open */
    int name; /* the socket of the slot last locked, `slot`; -1: none */
    uint32_t slot;
    uint64_t since_ms; /* Unix ms: first used at this boot, after another one (a reboot, another
                        * machine, a clone); 0: at no other */
    uint64_t scope;    /* names are for stores of this layout; 0: none */
    char boot[BOOT_ID_BUF];
};
#define SLOT_LOCK_NONE       \
    {                        \
        .fd = -1, .name = -1 \
    }

#define SLOT_LOCK_NAMED 256 /* slots that a layout has at least, where names are used */

/* The scope of the names of a layout's slots: 0 where there are too few for names. */
uint64_t slot_name_scope(const char *layout, uint64_t slots);

/* Binds a slot's name; the socket in *out_fd keeps it, -1 where there are no such sockets.
 * FIRN_ECONFLICT: a process of this machine has it. */
FIRN_MUSTUSE int slot_name_bind(uint64_t scope, uint32_t slot, int *out_fd);

/* Open or create `<store_path>.slots`, for a layout with so many slots; slot_lock_close() drops its
 * locks. */
FIRN_MUSTUSE int slot_lock_open(const char *store_path, const char *layout, uint32_t slots,
                                struct slot_lock *out, struct firn_diag *d);
void slot_lock_close(struct slot_lock *l);

/* 0: this handle holds it from now on, or did before. FIRN_ECONFLICT: another one does. A handle
 * keeps the name of one slot, the last. */
FIRN_MUSTUSE int slot_lock_try(struct slot_lock *l, uint32_t slot);
void slot_lock_release(struct slot_lock *l, uint32_t slot);

#endif
