/*
 * error_ring.h - the last failures, in fixed memory, for people who ask what is wrong: answers with
 * 5xx and those that broke off. Requests that failed the same way (status, route, service, server
 * and reason) are one entry with a count and the ID of the last, so that a flood of one failure
 * does not hide the others. Any thread.
 */
#ifndef FIRN_PROXY_ERROR_RING_H
#define FIRN_PROXY_ERROR_RING_H

#include "wire/buf.h"

#include <pthread.h>

enum { ERRORS_KEPT = 32, ERROR_TEXT_BUF = 96 };

struct error_entry {
    int64_t time_us; /* Unix; of the last */
    uint64_t times;
    unsigned status;
    char id[ERROR_TEXT_BUF], client[ERROR_TEXT_BUF], method[32], path[ERROR_TEXT_BUF];
    char route[ERROR_TEXT_BUF], service[ERROR_TEXT_BUF], server[ERROR_TEXT_BUF];
    char why[160];
};

struct error_ring {
    pthread_mutex_t lock;
    size_t n;
    struct error_entry kept[ERRORS_KEPT]; /* the newest first */
};

void error_ring_init(struct error_ring *r);

/* `times` of the entry is not looked at. */
void error_ring_add(struct error_ring *r, const struct error_entry *e);

/* The member `errors`: an array, the newest first. */
void error_ring_write(struct error_ring *r, struct buf *b);

#endif
