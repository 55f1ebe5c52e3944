/* The ring of the last hour's rows. Tested in tests/unit/server/history.c. */
#include "server/history.h"
#include "platform/assert.h"

#include <string.h>

void history_init(struct history *h)
{
    pthread_mutex_init(&h->mutex, NULL);
    h->rows = 0;
    memset(h->before, 0, sizeof h->before);
}

void history_done(struct history *h)
{
    pthread_mutex_destroy(&h->mutex);
}

static int32_t saturated(int64_t v)
{
    return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}

/* A counter never falls; one that is read while a loop adds to its parts may seem to. */
static int32_t risen(uint64_t before, uint64_t now)
{
    return now <= before ? 0 : now - before > INT32_MAX ? INT32_MAX : (int32_t)(now - before);
}

void history_add(struct history *h, uint64_t unix_ms, const uint64_t *value, size_t n,
                 size_t counters)
{
    firn_assert(n <= HISTORY_COLUMNS && counters <= n, "n=%zu counters=%zu", n, counters);
    pthread_mutex_lock(&h->mutex);
    struct history_row *row = &h->ring[h->rows % HISTORY_ROWS];
    memset(row, 0, sizeof *row);
    for (size_t i = 0; i < n; i++) {
        if (i >= counters)
            row->value[i] = saturated((int64_t)value[i]);
        else
            row->value[i] = risen(h->before[i], value[i]);
        h->before[i] = value[i];
    }
    row->unix_ms = unix_ms;
    row->number = ++h->rows;
    pthread_mutex_unlock(&h->mutex);
}

size_t history_read(struct history *h, uint64_t after, struct history_row out[HISTORY_PAGE])
{
    size_t n = 0;
    pthread_mutex_lock(&h->mutex);
    uint64_t gone = h->rows > HISTORY_ROWS ? h->rows - HISTORY_ROWS : 0;
    for (uint64_t at = after > gone ? after : gone; at < h->rows && n < HISTORY_PAGE; at++)
        out[n++] = h->ring[at % HISTORY_ROWS];
    pthread_mutex_unlock(&h->mutex);
    return n;
}
