/*
 * zookeeper_name.h - registers as znodes. The key "slot/00012" is the znode ROOT/slot/00012,
 * "meta" is ROOT/_/meta: two levels, so that a scan lists one directory, not the store. Other
 * bytes than letters, digits and -_:. are escaped as %XX. The guards are ROOT/%guards/N (see
 * zookeeper.c), which no key can be.
 */
#ifndef FIRN_STORE_ZOOKEEPER_NAME_H
#define FIRN_STORE_ZOOKEEPER_NAME_H

#include "store/store.h"

#define ZK_NO_DIRECTORY "_" /* where the keys without a slash are */

enum {
    ZK_ROOT_BUF = 160,
    /* The root, two names of at most 3 bytes for each of the key, an empty name, slashes. */
    ZK_PATH_BUF = ZK_ROOT_BUF + 3 * STORE_KEY_MAX + 8,
    ZK_GUARDS = 64, /* creations in one of them disturb removals in the same one only */
};

/* `key` is not longer than STORE_KEY_MAX, `root` fits into ZK_ROOT_BUF. */
void zk_key_path(const char *root, struct firn_slice key, char out[ZK_PATH_BUF]);

/* The bytes that a znode's name stands for; their number, or -1: no such name, or more than
 * `size`. */
int zk_unescape(const char *name, char *out, size_t size);

unsigned zk_guard_of(struct firn_slice key);
void zk_guard_path(const char *root, unsigned guard, char out[ZK_PATH_BUF]);

#endif
