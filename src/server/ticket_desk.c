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

struct ticket_desk {
    struct coordinator *coordinator;
    struct outbox *back;
    struct job_list turn; /* to be submitted at the end of the turn */
    struct job *last;     /* of these */
};

void ticket_submit(struct ticket_desk *d, struct job *j)
{
    firn_assert(j->name_len <= RECORD_NAME_MAX && job_list_ok(&d->turn), "len=%zu", j->name_len);
    j->back = d->back;
    job_append(&d->turn, j);
    d->last = j;
}

void ticket_desk_turn(struct ticket_desk *d)
{
    if (!d->turn.first)
        return;
    firn_assert(d->turn.tail == &d->last->next && job_list_ok(&d->turn));
    coordinator_submit(d->coordinator, job_take_all(&d->turn), d->last);
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

static void answered(struct job *j)
{
    struct ticket_wait *w = (struct ticket_wait *)(void *)j;
    firn_assert(j->what == JOB_TAKE && w->desk);
    firn_assert(j->result || j->range.count == j->want ||
                    (j->partial && j->range.count < j->want) ||
                    (j->keyed && j->range.count <= j->want),
                "count=%" PRIu64 " want=%" PRIu64, j->range.count, j->want);
    w->done(w);
}

enum seq_hand ticket_in_hand(struct ticket_desk *d, const char *name, size_t len, uint64_t want,
                             bool some, uint64_t now_ms, struct seq_range *out,
                             struct seq_record *out_record)
{
    bool fetch;
    enum seq_hand hand = ranges_take(coordinator_ranges(d->coordinator), name, len, want, some,
                                     now_ms, out, out_record, &fetch);
    if (fetch)
        fetch_ahead(d, name, len);
    return hand;
}

void ticket_queue(struct ticket_desk *d, struct ticket_wait *w)
{
    struct job *j = &w->job;
    j->period = 0;
    j->what = JOB_TAKE;
    j->done = answered;
    w->desk = d;
    ticket_submit(d, j);
}

int ticket_desk_new(struct coordinator *c, struct outbox *back, struct ticket_desk **out)
{
    struct ticket_desk *d = calloc(1, sizeof *d);
    if (!d)
        return FIRN_ENOMEM;
    d->coordinator = c;
    d->back = back;
    job_list_init(&d->turn);
    *out = d;
    return 0;
}

void ticket_desk_free(struct ticket_desk *d)
{
    free(d);
}
