/* compare_report.h - what firn compare measured: tables for a terminal, JSON, and a page with plots. */
#ifndef FIRN_CLI_COMPARE_COMPARE_REPORT_H
#define FIRN_CLI_COMPARE_COMPARE_REPORT_H

#include "cli/compare/compare_kinds.h"
#include "cli/json.h"

void compare_put_tables(const struct compare_row row[COMPARE_KINDS]);

/* The member "kinds" of an object that is open. */
void compare_put_json(struct json *j, const struct compare_row row[COMPARE_KINDS]);

/* A page that needs nothing from elsewhere. -1: written; otherwise said. */
int compare_put_html(const char *path, const struct compare_row row[COMPARE_KINDS]);

#endif
