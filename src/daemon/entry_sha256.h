/* entry_sha256.h - a key of an entry (config_entries.h) whose value is a SHA-256 as 64 hex digits,
 * kept as its 32 bytes: what a configuration has in the place of a token. */
#ifndef FIRN_DAEMON_ENTRY_SHA256_H
#define FIRN_DAEMON_ENTRY_SHA256_H

#include "daemon/config_entries.h"

extern const struct entry_type entry_sha256; /* uint8_t[32]; the key must have `missing` */

#endif
