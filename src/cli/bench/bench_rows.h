/*
 * bench_rows.h - the rows of `firn bench lib`: a table of small loops.
 * A row's function does `n` operations on thread number `thread` (0 or 1) and keeps their results
 * alive; the caller measures the time.
 */
#ifndef FIRN_CLI_BENCH_BENCH_ROWS_H
#define FIRN_CLI_BENCH_BENCH_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct bench_row {
    const char *key;   /* stable name for programs: "uuid4.text" */
    const char *group; /* "uuid" */
    const char *what;  /* for people */
    void (*run)(uint64_t n, unsigned thread);
    void (*prepare)(void); /* before each timed run, or NULL */
    unsigned threads;      /* 0 and 1: one; 2: both run n operations at the same time */
    uint64_t fixed_n;      /* operations of a run that is limited by real time; 0: as many as fit */
};

extern const struct bench_row bench_rows[];
extern const size_t bench_rows_n;

/* Prepare generators and inputs. 0, or an error of libfirn; `*out_tsc` says whether there is an
 * invariant time stamp counter (rows with the key prefix "tsc" need it). */
int bench_rows_init(int *out_tsc);

#endif
