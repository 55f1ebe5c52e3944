/*
 * audit.h - the log of administrative actions: who asked for what, from where, and how it ended.
 *
 *     info  admin action=delete target=orders by=token:boss from=10.0.0.7:51234 result=done
 *
 * One line an action, written when its outcome is known, at every log level, never held back.
 * What the guard refuses is logged by the guard (`refused`).
 */
#ifndef FIRN_SERVER_AUDIT_H
#define FIRN_SERVER_AUDIT_H

#include "server/app.h"

enum { AUDIT_TARGET_BUF = 160 };

struct audit {
    const char *action;            /* a literal */
    char target[AUDIT_TARGET_BUF]; /* cut if it is longer */
    char by[96];                   /* token:NAME, certificate:NAME or local */
    char from[PEER_ADDRESS_BUF];
};

/* Call it with the request, while its connection is there. */
void audit_begin(struct audit *a, struct service_ctx *ctx, struct peer *peer,
                 struct slice authorization, const char *action, struct slice target);

/* `result` 0 is success; else `why` may say more about the error, or is "". */
void audit_end(const struct audit *a, int result, const char *why);

#endif
