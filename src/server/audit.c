/* The log of administrative actions (audit.h). Tested in tests/integration/deleted.py. */
#include "server/audit.h"
#include "daemon/log.h"

#include <stdio.h>

void audit_begin(struct audit *a, struct service_ctx *ctx, struct peer *peer,
                 struct slice authorization, const char *action, struct slice target)
{
    char sort;
    const char *name = guard_who(ctx, peer, authorization, &sort);
    if (!name && peer->cert_name) { /* one of auth.admins, where there are tokens too */
        name = peer->cert_name;
        sort = 'c';
    }
    *a = (struct audit){ .action = action };
    snprintf(a->target, sizeof a->target, "%.*s", (int)target.len, target.p ? target.p : "");
    snprintf(a->by, sizeof a->by, "%s%s",
             sort == 't' ? "token:"
             : name      ? "certificate:"
                         : "local",
             name ? name : "");
    peer_address(peer, a->from);
}

void audit_end(const struct audit *a, int result, const char *why)
{
    if (result == 0)
        log_audit("admin", "action=%s target=%s by=%s from=%s result=done", a->action, a->target,
                  a->by, a->from);
    else
        log_audit("admin", "action=%s target=%s by=%s from=%s result=%s", a->action, a->target,
                  a->by, a->from, why[0] ? why : firn_error_message(result));
}
