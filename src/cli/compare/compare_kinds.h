/*
 * compare_kinds.h - the kinds that firn compare measures side by side, and the results. A row that
 * could not be measured says why. One thread.
 */
#ifndef FIRN_CLI_COMPARE_COMPARE_KINDS_H
#define FIRN_CLI_COMPARE_COMPARE_KINDS_H

#include "cli/bench/bench_target.h"
#include "cli/compare/compare_servers.h"
#include "wire/histogram.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum compare_source { FROM_SERVER, FROM_COUNTER, FROM_PROCESS, FROM_DATABASE };

struct compare_kind {
    const char *key, *name;
    enum compare_source source;
    uint32_t bits, chars;    /* of the binary form, and of the usual text at the most */
    const char *mint;        /* FROM_PROCESS: the kind's name in libfirn */
    const char *sequence[2]; /* FROM_SERVER: names; NULL: Snowflake */
    const char *spec[2];     /* JSON bodies that make them */
    bool sorts;              /* is meant to rise */
    const char *needs;       /* what has to run, or be configured, for it */
};

struct compare_ids { /* numbers of 64 bits, or 16 bytes each, in the order of generation */
    uint32_t width;
    size_t n;
    uint8_t *data;
};

struct compare_index {
    bool measured;
    char why_not[120];
    uint64_t rows, per_second, bytes;
};

enum compare_death { DEATH_NOT_MEASURED, DEATH_NO_SERVER, DEATH_MEASURED };

struct compare_outage {
    uint64_t asked, failed, gap_ns; /* the longest wait of one request */
};

struct compare_row {
    const struct compare_kind *kind;
    bool measured;
    char how[80];                /* "firnd, 8 connections" */
    char why_not[BENCH_WHY_BUF]; /* or why it was not measured */
    uint64_t per_second, p50_ns, p99_ns;
    uint64_t ids, distinct;
    bool rising; /* on each connection, of which FROM_SERVER and FROM_COUNTER have several */
    struct compare_index sqlite, postgres;
    enum compare_death death;
    char death_why_not[120];
    struct compare_outage killed, away; /* measured both, or neither: `death` */
};

/* Whether `rising` was seen over all IDs of the kind, and not of each connection alone. */
static inline bool compare_one_source(const struct compare_kind *k)
{
    return k->source == FROM_PROCESS || k->source == FROM_DATABASE;
}

enum { COMPARE_KINDS = 10 };
extern const struct compare_kind compare_kinds[COMPARE_KINDS];

struct compare_world {
    const char *snowflake, *ticket;  /* http://host:port, no path */
    const char *redis, *postgres;    /* or NULL */
    struct compare_servers *servers; /* that compare has started, or NULL */
    uint64_t rows;                   /* that go into each index */
    uint64_t run_ms;                 /* for each kind */
    bool remote;                     /* servers on other machines may be loaded: --allow-remote */
    const volatile sig_atomic_t *stop;
    void (*progress)(const char *what, unsigned step, unsigned steps);
};

/* Measure all kinds into `row`. STATUS_OK, or STATUS_FAILED when an ID came twice, reported. */
int compare_measure(const struct compare_world *w, struct compare_row row[COMPARE_KINDS]);

#endif
