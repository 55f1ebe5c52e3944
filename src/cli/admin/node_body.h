/*
 * node_body.h - the members in an answer of GET /v1/nodes:
 * {"nodes":[{"number":0,"name":"a",...},...]}.
 * Members of an object that it does not know are skipped, so that a newer server can say more;
 * anything else that is not such an answer is an error. Pure; may be called from any thread.
 */
#ifndef FIRN_CLI_ADMIN_NODE_BODY_H
#define FIRN_CLI_ADMIN_NODE_BODY_H

#include "coord/roster.h"

struct node_row {
    uint64_t number, age_ms;
    char name[RECORD_NAME_MAX + 1], address[MEMBER_ADDRESS_MAX + 1], slots[MEMBER_SLOTS_MAX + 1],
        version[MEMBER_VERSION_MAX + 1], kind[MEMBER_KIND_MAX + 1], state[16];
};

typedef void node_row_fn(void *user, const struct node_row *row);

/* FIRN_EFORMAT: it is something else; `each` may have seen rows before. */
FIRN_MUSTUSE int node_body_each(const char *p, size_t len, node_row_fn *each, void *user);

#endif
