/*
 * machine.h - where a store's file is: the machine, and the machine's boot. A file that was cloned
 * with its whole disk has the inode and time of birth of the original; it can be told from it only
 * by the machine on which it is found.
 */
#ifndef FIRN_STORE_MACHINE_H
#define FIRN_STORE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "firn/error.h"

#define MACHINE_ID_BUF 33 /* 32 hex digits and a NUL */
#define BOOT_ID_BUF    37

/* "": not known, as in many containers. */
void machine_id(char out[MACHINE_ID_BUF]);

/* New at each boot of the kernel, also where containers have no machine-id. "": not known. */
void machine_boot(char out[BOOT_ID_BUF]);

struct file_identity {
    uint64_t inode;
    int64_t born_s; /* 0: the file system does not tell */
    uint32_t born_ns;
    const char *machine; /* as machine_id() */
};

/* "sqlite:<inode>:<birth>:<8 hex digits of the machine>", the last part only where the machine is
 * known. The inode and its birth survive a reboot (a device number, and on some file systems the
 * file system's id, need not), and no copy has both; a clone of the disk on another machine has. */
void file_identity_text(const struct file_identity *f, char *out, size_t cap);

/* The identity that a store was made or fenced with, and the one that it has now. Stores of earlier
 * versions have no machine in theirs. */
FIRN_MUSTUSE bool file_identity_same(const char *kept, const char *now);

#endif
