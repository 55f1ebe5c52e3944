/*
 * etcd_members.h - the members of an etcd cluster: a request and its answer over HTTP, by the one
 * that works, with its user's token, within a time.
 *
 * A read may be asked of one member after another. A write may not: once a byte of it went out it
 * may land, even long after its answer was given up, and a second copy would meet the first as a
 * conflict, which says that nothing changed. So a write goes on to the next member only while
 * nothing was sent.
 */
#ifndef FIRN_STORE_ETCD_MEMBERS_H
#define FIRN_STORE_ETCD_MEMBERS_H

#include "store/etcd_json.h"
#include "store/url.h"

#define ETCD_RANGE  "/v3/kv/range"
#define ETCD_TXN    "/v3/kv/txn"
#define ETCD_WATCH  "/v3/watch"
#define ETCD_LOGIN  "/v3/auth/authenticate"
#define ETCD_STATUS "/v3/maintenance/status"

struct etcd_members;

/* Sends nothing yet. FIRN_EFORMAT: what is wrong with the URL. */
FIRN_MUSTUSE int etcd_members_open(const struct store_url *u, struct etcd_members **out,
                                   struct firn_diag *d);
void etcd_members_close(struct etcd_members *m);

/* What will be asked; the caller encodes it. */
struct etcd_text *etcd_request(struct etcd_members *m);

/* 0: there is an answer with status 200. FIRN_EIO: nothing was done. FIRN_EUNKNOWN: a write whose
 * outcome is open. */
FIRN_MUSTUSE int etcd_ask(struct etcd_members *m, const char *path, bool write, int64_t end_ms,
                          struct firn_diag *d);

/* The last answer: its body until the next request, and its HTTP Date in Unix ms (whole
 * seconds), or 0. */
struct firn_slice etcd_answer(const struct etcd_members *m);
uint64_t etcd_answer_date(const struct etcd_members *m);

/* That answer made no sense: another member's turn. Returns `error`. */
int etcd_distrust(struct etcd_members *m, int error, struct firn_diag *d);

/* Ask for a watch, and come back when it has news, after `ms`, or earlier for no reason. */
void etcd_listen(struct etcd_members *m, int64_t ms);

/* The member in use, for messages: "host:2379". */
const char *etcd_member(const struct etcd_members *m);

#endif
