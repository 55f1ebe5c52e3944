/* watch.h - notices two servers of a client's list that use one slot (watch.c). */
#ifndef FIRN_CLIENT_WATCH_H
#define FIRN_CLIENT_WATCH_H

#include "client/url.h"
#include "coord/clash.h"

struct watch {
    struct node_face face[SERVERS_MAX]; /* what each server said last; slot -1: nothing */
    size_t at;                          /* the server that is asked next */
    unsigned looks;                     /* rounds in a row with a clash */
    uint32_t told;                      /* servers that are avoided for it, a bit each */
    uint64_t due_ms;
};

/* The answer to /v1/node; what cannot be read has no slot. */
void watch_read(const char *p, size_t len, struct node_face *out);

/* After a round: the servers to avoid, a bit each. */
uint32_t watch_judge(struct watch *w, size_t n);

struct core;
void watch_tend(struct core *c); /* locked; as discover_tend() */

#endif
