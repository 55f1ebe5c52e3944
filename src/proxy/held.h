/*
 * held.h - bytes of bodies that a loop holds whole: requests that are collected, answers that are
 * changed, parts of composed and GraphQL answers. What one request may hold is a setting; what all
 * of a loop hold together is bounded here, so that many large bodies at once are refused with 503
 * and not paid for with the memory of the process. On the loop's thread.
 */
#ifndef FIRN_PROXY_HELD_H
#define FIRN_PROXY_HELD_H

#include "proxy/worker.h"

enum { HELD_BYTES_MAX = 64 * 1024 * 1024 }; /* of a loop */

#define HELD_REFUSED "the gateway holds as many bodies as it may; try again"

/* Whether so many more fit; otherwise it is counted as refused. */
bool held_fits(struct service_ctx *w, uint64_t bytes);

/* The same, and they are held from now on: added to `*held`, which the caller keeps. */
bool held_take(struct service_ctx *w, size_t *held, size_t bytes);

/* What is there already has changed its length, or is gone (0). */
void held_set(struct service_ctx *w, size_t *held, size_t bytes);

void held_metrics(struct app *a, const struct plan *p, struct metrics *m);

#endif
