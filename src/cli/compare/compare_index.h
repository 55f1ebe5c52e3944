/*
 * compare_index.h - measures IDs in an index: rows inserted per second by primary key, and the size
 * of the table. One thread.
 */
#ifndef FIRN_CLI_COMPARE_COMPARE_INDEX_H
#define FIRN_CLI_COMPARE_COMPARE_INDEX_H

#include "cli/compare/compare_kinds.h"

/* Into a SQLite file of its own in TMPDIR, with a cache that is far smaller than the table, so
 * that it shows which pages are touched. The file is removed afterwards. */
void compare_index_sqlite(const struct compare_ids *ids, struct compare_index *out);

#endif
