/* compare_report.h - the results of firn compare as tables for a terminal and as JSON. */
#ifndef FIRN_CLI_COMPARE_COMPARE_REPORT_H
#define FIRN_CLI_COMPARE_COMPARE_REPORT_H

#include "cli/compare/compare_kinds.h"
#include "wire/json_write.h"

void compare_put_tables(const struct compare_row row[COMPARE_KINDS]);

/* The member "kinds" of an object that is open. */
void compare_put_json(struct buf *j, const struct compare_row row[COMPARE_KINDS]);

#endif
