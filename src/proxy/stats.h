/*
 * stats.h - what is counted for each route and each service, by name: a loop has a row for each and
 * writes it alone, any thread sums up those of all loops. Rows outlive reloads, so that a counter
 * never goes back; they are freed when the process ends, one per name that ever was in a
 * configuration.
 */
#ifndef FIRN_PROXY_STATS_H
#define FIRN_PROXY_STATS_H

#include "wire/latency.h"

#include <stdbool.h>

enum { STATS_NAME_BUF = 64, STATS_CLASSES = 6 };

enum stats_kind { STATS_ROUTE, STATS_SERVICE };

struct stats {
    struct stats *next;
    enum stats_kind kind;
    char name[STATS_NAME_BUF];
    uint64_t status[STATS_CLASSES]; /* by hundreds; [0]: the client went away */
    uint64_t bytes_in, bytes_out;   /* of bodies */
    struct latency latency;
};

/* "gone", "1xx" ... "5xx" */
extern const char *const stats_class[STATS_CLASSES];

static inline unsigned stats_class_of(unsigned status)
{
    return status >= 500 ? 5 : status == 499 ? 0 : status / 100;
}

/* On the loop's thread: the row of that name, made where it is not there. NULL: no memory. */
struct stats *stats_row(struct stats **list, enum stats_kind kind, const char *name);

/* One more answer. */
static inline void stats_add(struct stats *s, unsigned status, uint64_t in, uint64_t out,
                             uint64_t ns)
{
    latency__more(&s->status[stats_class_of(status)], 1);
    latency__more(&s->bytes_in, in);
    latency__more(&s->bytes_out, out);
    latency_add(&s->latency, ns, 1);
}

/* Any thread: adds the row of that name, if it is there, to `sum`. */
void stats_sum(struct stats *const *list, enum stats_kind kind, const char *name,
               struct stats *sum);

void stats_free(struct stats **list);

#endif
