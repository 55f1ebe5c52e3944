/*
 * quorum_say.h - explains the states of a quorum's stores. Pure: under inbox->lock, or where no
 * thread changes them.
 */
#ifndef FIRN_STORE_QUORUM_SAY_H
#define FIRN_STORE_QUORUM_SAY_H

#include "store/quorum_acceptor.h"

/* How many are formed members of one quorum. */
unsigned quorum_together(const struct acceptor *a, unsigned n);

/* FIRN_ESTORE: so many are refused that those left are no majority. Another error: with those
 * that cannot be used as they are set up; it is what the first of them said. Only an operator
 * can help. 0: waiting may. */
int quorum_hopeless(const struct acceptor *a, unsigned n);

/* Why store i does not take part, and what can be done; "" for a member that is well. In short:
 * in one line with other reasons; `firn admin doctor` shows all. */
#define QUORUM_REASON_BUF 320
void quorum_reason(const struct acceptor *a, unsigned n, unsigned i, bool in_short,
                   char out[QUORUM_REASON_BUF]);

/* The first store that is in the same server as store i, by what their engines say of
 * themselves: i, if there is none, or if that cannot be told (files, ZooKeeper). */
unsigned quorum_server_of(const struct acceptor *a, unsigned n, unsigned i);

/* One sentence: how many take part, and why each other store does not. The first reason is told
 * in full, because its cure is at its end; stores with the same one are named together. */
void quorum_say(const struct acceptor *a, unsigned n, char *out, size_t size);

#endif
