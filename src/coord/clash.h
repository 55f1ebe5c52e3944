/*
 * clash.h - whether two nodes stamp the same slot, by what each says of itself in /v1/node.
 * Pure. Leases keep the nodes of one store apart; nothing does for two stores, whose nodes see each
 * other only when somebody asks both: firn doctor, firn top, a client that has both in its list, or
 * a firnd that has the other one among its peers.
 */
#ifndef FIRN_COORD_CLASH_H
#define FIRN_COORD_CLASH_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "firn/layout.h"

#define FACE_ID_BUF 33 /* 32 hex digits and a NUL */

struct node_face {
    char store[FACE_ID_BUF]; /* the store's cluster nonce: copies have the original's */
    char start[FACE_ID_BUF]; /* of the process, random; "": it does not say */
    char layout[FIRN_LAYOUT_TEXT_BUF];
    int64_t slot; /* -1: none */
    bool ready;
};

/* Two processes that give out IDs of one layout with one slot. Nodes of a store that they share
 * may look so for a moment, when a slot went from one to the other between two requests: look
 * twice. */
static inline bool faces_clash(const struct node_face *a, const struct node_face *b)
{
    return a->ready && b->ready && a->slot >= 0 && a->slot == b->slot && a->start[0] &&
           b->start[0] && strcmp(a->start, b->start) != 0 && strcmp(a->layout, b->layout) == 0;
}

/* Whether `mine` is to take another slot, having seen the clash `looks` times in a row. Of two that
 * both look, one moves, the one with the higher start; if it does not, the other one does. */
bool face_yields(const struct node_face *mine, const struct node_face *theirs, unsigned looks);

#endif
