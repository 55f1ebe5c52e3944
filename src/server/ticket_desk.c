/*
 * Tickets of one loop: a range sequence with numbers in hand answers at once; every other request
 * becomes a job. Jobs are collected over a turn of the loop and submitted to the coordinator with
 * one wake-up.
 */
#include "server/minter.h"
#include "platform/assert.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { GAPLESS_KNOWN = 64 };

struct ticket_desk {
    struct coordinator *coordinator;
    struct outbox *back;
    struct job *first, **tail, *last;                 /* to be submitted at the end of the turn */
    char gapless[GAPLESS_KNOWN][RECORD_NAME_MAX + 1]; /* names, by their hashes */
};

void ticket_submit(struct ticket_desk *d, struct job *j)
{
    firn_assert(j->name_len <= RECORD_NAME_MAX && *d->tail == NULL, "len=%zu", j->name_len);
    j->back = d->back;
    j->next = NULL;
    *d->tail = j;
    d->tail = &j->next;
    d->last = j;
}

void ticket_desk_turn(struct ticket_desk *d)
{
    if (!d->first)
        return;
    struct job *first = d->first, *last = d->last;
    firn_assert(!last->next && d->tail == &last->next);
    d->first = NULL;
    d->tail = &d->first;
    coordinator_submit(d->coordinator, first, last);
}

static void fetched(struct job *j)
{
    free(j);
}

/* Ask for the next block. Without memory for it, the next request that finds none in hand will. */
static void fetch_ahead(struct ticket_desk *d, const char *name, size_t len)
{
    struct job *j = calloc(1, sizeof *j);
    if (!j)
        return;
    j->what = JOB_FETCH;
    j->done = fetched;
    j->name_len = len;
    memcpy(j->name, name, len);
    ticket_submit(d, j);
}

static size_t place(const char *name, size_t len)
{
    return record_name_hash(name, len) % GAPLESS_KNOWN;
}

static void answered(struct job *j)
{
    struct ticket_wait *w = (struct ticket_wait *)(void *)j;
    firn_assert(j->what == JOB_TAKE && w->desk);
    firn_assert(j->result || j->range.count == j->want ||
                    (j->partial && j->range.count < j->want) ||
                    (j->keyed && j->range.count <= j->want),
                "count=%" PRIu64 " want=%" PRIu64, j->range.count, j->want);
    if (j->result == 0 && j->record.mode == SEQ_GAPLESS && !j->period)
        memcpy(w->desk->gapless[place(j->name, j->name_len)], j->name, j->name_len + 1);
    w->done(w);
}

bool ticket_is_gapless(const struct ticket_desk *d, const char *name, size_t len)
{
    const char *known = d->gapless[place(name, len)];
    firn_assert(len > 0); /* an empty place would match */
    return strncmp(known, name, len) == 0 && known[len] == '\0';
}

int ticket_in_hand(struct ticket_desk *d, const char *name, size_t len, uint64_t want, bool some,
                   uint64_t now_ms, struct seq_range *out)
{
    bool fetch;
    int r = ranges_take(coordinator_ranges(d->coordinator), name, len, want, some, now_ms, out,
                        NULL, &fetch);
    if (fetch)
        fetch_ahead(d, name, len);
    return r;
}

int ticket_take(struct ticket_desk *d, struct ticket_wait *w, bool behind, uint64_t now_ms)
{
    struct job *j = &w->job;
    j->period = 0;
    if (!behind && !j->keyed) {
        bool fetch;
        j->result = ranges_take(coordinator_ranges(d->coordinator), j->name, j->name_len, j->want,
                                false, now_ms, &j->range, &j->record, &fetch);
        if (fetch)
            fetch_ahead(d, j->name, j->name_len);
        if (j->result == 0)
            return 0;
    }
    j->what = JOB_TAKE;
    j->done = answered;
    w->desk = d;
    ticket_submit(d, j);
    return FIRN_EAGAIN;
}

int ticket_desk_new(struct coordinator *c, struct outbox *back, struct ticket_desk **out)
{
    struct ticket_desk *d = calloc(1, sizeof *d);
    if (!d)
        return FIRN_ENOMEM;
    d->coordinator = c;
    d->back = back;
    d->tail = &d->first;
    *out = d;
    return 0;
}

void ticket_desk_free(struct ticket_desk *d)
{
    free(d);
}
