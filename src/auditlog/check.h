/* check.h - whether a database may be used: its schema, its settings, its partitions. The thread of
 * the session. */
#ifndef FIRN_AUDITLOG_CHECK_H
#define FIRN_AUDITLOG_CHECK_H

#include "auditlog/schema.h"
#include "auditlog/session.h"

/* Looks, and makes the partitions of the days ahead. False: `why` says what is wrong. */
bool check_database(struct session *s, const struct schema_place *place, uint32_t ahead_days,
                    struct session_why *why);

#endif
