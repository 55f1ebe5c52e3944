/* Rows of counters (stats.h). Readers need no lock: a row is complete before it is put in front of
 * the list, and none is taken out. Tested in tests/integration/gateway_watch.py. */
#include "proxy/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const stats_class[STATS_CLASSES] = { "gone", "1xx", "2xx", "3xx", "4xx", "5xx" };

static struct stats *find(struct stats *const *list, enum stats_kind kind, const char *name)
{
    struct stats *s = __atomic_load_n(list, __ATOMIC_ACQUIRE);
    while (s && (s->kind != kind || strcmp(s->name, name) != 0))
        s = s->next;
    return s;
}

struct stats *stats_row(struct stats **list, enum stats_kind kind, const char *name)
{
    struct stats *s = find(list, kind, name);
    if (s || !(s = calloc(1, sizeof *s)))
        return s;
    s->kind = kind;
    snprintf(s->name, sizeof s->name, "%s", name);
    s->next = *list;
    __atomic_store_n(list, s, __ATOMIC_RELEASE);
    return s;
}

static uint64_t now(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void stats_sum(struct stats *const *list, enum stats_kind kind, const char *name, struct stats *sum)
{
    const struct stats *s = find(list, kind, name);
    if (!s)
        return;
    for (size_t i = 0; i < STATS_CLASSES; i++)
        sum->status[i] += now(&s->status[i]);
    sum->bytes_in += now(&s->bytes_in);
    sum->bytes_out += now(&s->bytes_out);
    latency_merge(&sum->latency, &s->latency);
}

void stats_free(struct stats **list)
{
    for (struct stats *s = *list, *next; s; s = next) {
        next = s->next;
        free(s);
    }
    *list = NULL;
}
