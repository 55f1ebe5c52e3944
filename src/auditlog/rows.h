/* rows.h - rows of the audit log as JSON. Pure; any thread. */
#ifndef FIRN_AUDITLOG_ROWS_H
#define FIRN_AUDITLOG_ROWS_H

#include "wire/buf.h"

struct shown_row {
    uint64_t id, map_version;
    int64_t at_us;
    struct slice user, actor, action, detail; /* detail: JSON as it is */
    bool legacy;                              /* its ID says no shard */
};

/* One object and a line end. */
void row_write(struct buf *b, const struct shown_row *r);

/* Lines as the elements of an array `entries`, and the cursor: {"entries":[...],"next":"ID"};
 * `next` 0: null. */
void rows_page(struct buf *b, struct slice lines, uint64_t next);

#endif
