/*
 * audit_id.h - what the ID of a row says: its shard and its time. The layout is `audit` of
 * firn/layout.h, and firnd must serve it:
 *
 *     0 | 41 bits ms since 2021-01-01 | 5 bits shard | 5 bits worker | 12 bits sequence number
 *
 * Also the time stamp that `id: legacy` uses in the place of an ID. Pure; any thread.
 */
#ifndef FIRN_AUDITLOG_AUDIT_ID_H
#define FIRN_AUDITLOG_AUDIT_ID_H

#include "auditlog/shard_map.h"

#define AUDIT_ID_MAX ((uint64_t)INT64_MAX) /* the sign bit stays free: it is a bigint */

uint32_t audit_id_shard(uint64_t id);
int64_t audit_id_unix_ms(uint64_t id);

/* The smallest ID of a time; 0 and AUDIT_ID_MAX for times before the epoch and after the end. */
uint64_t audit_id_floor(int64_t unix_ms);

/* Whether a generator made this ID for the shard, about now: another layout, or a generator without
 * `shard`, shows here. */
bool audit_id_plausible(uint64_t id, uint32_t shard, int64_t now_unix_ms);

/* Decimal digits alone, from 1 to AUDIT_ID_MAX. FIRN_EFORMAT, FIRN_ERANGE. */
FIRN_MUSTUSE int audit_id_read(struct slice text, uint64_t *out);

/* yyyyMMddHHmmssSSS of a Unix time in ms, in UTC, as a number. */
uint64_t legacy_id(int64_t unix_ms);

#endif
