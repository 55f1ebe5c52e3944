/*
 * bench_report.h - the results of a load run: as a table, as JSON, as a file for a later
 * comparison, and as an exit status. One thread.
 */
#ifndef FIRN_CLI_BENCH_BENCH_REPORT_H
#define FIRN_CLI_BENCH_BENCH_REPORT_H

#include "cli/bench/bench_target.h"

#include <stdio.h>

struct bench_run {
    const struct bench_target *target;
    const struct load_plan *plan;
    const struct load_result *result;
    bool calls; /* a library was called: no connections */
    bool order; /* an ID that does not rise is a failure */
};

void bench_put_table(const struct bench_run *b);
void bench_put_json(const struct bench_run *b, FILE *out);

/* Reports failures; STATUS_OK or STATUS_FAILED. */
int bench_verdict(const struct bench_run *b);

/* Write the JSON to a file, completely or not at all. -1: done. */
int bench_save(const struct bench_run *b, const char *path);

/* Read two such files and show the second as ratios of the first. An exit status. */
int bench_compare(const char *before, const char *after, bool json);

#endif
